//! One level: all its messages at once.

use crate::{CongestionError, Pair, Paths};
use netsim::topology::{LinkId, NodeId};

/// Counts messages over links; kept from level to level so that nothing is allocated anew.
#[derive(Debug)]
pub(crate) struct Loads {
    /// Messages over each link; all 0 between levels.
    counts: Vec<u32>,
    /// The paths of all messages, one behind the other, and where each ends.
    links: Vec<LinkId>,
    ends: Vec<usize>,
}

impl Loads {
    pub(crate) fn new(links: usize) -> Self {
        Self { counts: vec![0; links], links: Vec::new(), ends: Vec::new() }
    }

    /// The congestion of each of `pairs` in `weights`, 0 for one of a host with itself; adds the loads of links to `totals`.
    pub(crate) fn level(
        &mut self,
        paths: Paths<'_>,
        ranks: &[NodeId],
        pairs: &[Pair],
        weights: &mut Vec<u32>,
        totals: &mut [u64],
    ) -> Result<(), CongestionError> {
        self.links.clear();
        self.ends.clear();
        for pair in pairs {
            let begin = self.links.len();
            paths.walk(ranks[pair.from as usize], ranks[pair.to as usize], &mut self.links)?;
            for link in &self.links[begin..] {
                self.counts[link.0 as usize] += 1;
            }
            self.ends.push(self.links.len());
        }
        weights.clear();
        let mut begin = 0;
        for end in &self.ends {
            let path = &self.links[begin..*end];
            weights.push(path.iter().map(|link| self.counts[link.0 as usize]).max().unwrap_or(0));
            begin = *end;
        }
        for link in &self.links {
            totals[link.0 as usize] += 1;
            self.counts[link.0 as usize] = 0;
        }
        Ok(())
    }

    /// Links on all paths of the last level.
    pub(crate) const fn visits(&self) -> usize {
        self.links.len()
    }
}
