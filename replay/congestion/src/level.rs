//! One level: all its messages at once.

use crate::{CongestionError, Pair, Paths};
use netsim::topology::NodeId;

/// Counts messages over links, by the numbers of [`Paths`]; kept from level to level so that nothing is allocated anew.
#[derive(Debug)]
pub(crate) struct Loads {
    /// Messages over each link; all 0 between levels.
    counts: Vec<u32>,
    /// Those of all levels.
    totals: Vec<u64>,
    /// The paths of all messages, one behind the other, and where each ends.
    links: Vec<u32>,
    ends: Vec<usize>,
}

impl Loads {
    pub(crate) fn new(links: usize) -> Self {
        Self { counts: vec![0; links], totals: vec![0; links], links: Vec::new(), ends: Vec::new() }
    }

    /// The congestion of each of `pairs` in `weights`, 0 for one of a host with itself.
    pub(crate) fn level(
        &mut self,
        paths: &Paths<'_>,
        ranks: &[NodeId],
        pairs: &[Pair],
        weights: &mut Vec<u32>,
    ) -> Result<(), CongestionError> {
        let hosts = pairs.iter().map(|pair| (ranks[pair.from as usize], ranks[pair.to as usize]));
        paths.write(hosts, &mut self.links, &mut self.ends)?;
        for link in &self.links {
            self.counts[*link as usize] += 1;
        }
        weights.clear();
        let mut begin = 0;
        for end in &self.ends {
            let path = &self.links[begin..*end];
            weights.push(path.iter().map(|link| self.counts[*link as usize]).max().unwrap_or(0));
            begin = *end;
        }
        self.clear();
        Ok(())
    }

    /// Adds the counts to the totals, link by link where most were passed, else along the paths.
    fn clear(&mut self) {
        if self.links.len() > self.counts.len() / 8 {
            for (total, count) in self.totals.iter_mut().zip(&mut self.counts) {
                // No computer counts to 2^64; without a check, several are added at once.
                *total = total.wrapping_add(u64::from(*count));
                *count = 0;
            }
            return;
        }
        for link in &self.links {
            self.totals[*link as usize] += 1;
            self.counts[*link as usize] = 0;
        }
    }

    /// Links on all paths of the last level.
    pub(crate) const fn visits(&self) -> usize {
        self.links.len()
    }

    /// Messages over each link, of all levels.
    pub(crate) fn into_totals(self) -> Vec<u64> {
        self.totals
    }
}
