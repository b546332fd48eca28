//! Many runs of a pattern.

use crate::level::Loads;
use crate::metrics::{Histogram, bandwidth};
use crate::{CongestionError, Joined, Paths, Subset};
use netsim::kernel::random::draw;
use netsim::topology::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a rank's send holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sends {
    /// Its receiver alone: the sender goes on at once.
    #[default]
    Free,
    /// The sender's next level, too.
    Serial,
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Who sends to whom.
    pub pattern: Joined,
    /// How many hosts take part; all if not given.
    pub hosts: Option<usize>,
    /// Which.
    pub subset: Subset,
    /// Whether ranks are mapped to hosts at random, for each run anew.
    pub shuffled: bool,
    /// The one level that is looked at, from 0 on; all if not given.
    pub level: Option<usize>,
    /// How many runs.
    pub runs: u64,
    /// What decides all that is random.
    pub seed: u64,
    /// For the delay.
    pub sends: Sends,
    /// Threads; the results do not depend on it.
    pub threads: usize,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Levels' greatest congestion, added up (`sum_max_cong`).
    pub sum_max: u64,
    /// Messages by their congestion (`hist_max_cong`).
    pub congestion: Histogram,
    /// Their mean bandwidth (`hist_acc_band`); `None` without messages.
    pub bandwidth: Option<f64>,
    /// The longest chain of messages that wait for each other, each as long as its congestion; ranks of the first pattern only
    /// (`dep_max_delay`).
    pub delay: u64,
}

/// All runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Each run, in order.
    pub runs: Vec<Outcome>,
    /// Messages of all runs by their congestion.
    pub congestion: Histogram,
    /// Messages over each link, of all levels and runs, by number of the link.
    pub links: Vec<u64>,
    /// Links on all paths: how much was looked at.
    pub visits: u64,
}

/// What one thread has done.
struct Share {
    runs: Vec<(u64, Outcome)>,
    links: Vec<u64>,
    visits: u64,
}

/// The place of the mapping's draws, beside those of patterns.
const MAPPING: u64 = 0x6d61_7070_696e_6700;

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// When hosts, levels or parts are asked for that there are not, or the routing has no path for a pair.
    pub fn run(&self, paths: Paths<'_>) -> Result<Results, CongestionError> {
        let (hosts, ranks) = self.ranks(paths)?;
        let next = AtomicU64::new(0);
        let threads = u64::try_from(self.threads).unwrap_or(1).clamp(1, self.runs);
        let shares = std::thread::scope(|scope| {
            let work = || self.share(paths, &hosts, ranks, &next);
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut shares = vec![work()];
            for other in others {
                shares.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            shares
        });
        let mut all = Vec::new();
        let mut results = Results {
            runs: Vec::new(),
            congestion: Histogram::new(),
            links: vec![0; paths.topology().links().len()],
            visits: 0,
        };
        let mut failed: Option<(u64, CongestionError)> = None;
        for share in shares {
            match share {
                Ok(share) => {
                    all.extend(share.runs);
                    results.links.iter_mut().zip(share.links).for_each(|(sum, count)| *sum += count);
                    results.visits += share.visits;
                }
                Err(error) if failed.as_ref().is_none_or(|(run, _)| error.0 < *run) => failed = Some(error),
                Err(_) => {}
            }
        }
        if let Some((_, error)) = failed {
            return Err(error);
        }
        all.sort_unstable_by_key(|(run, _)| *run);
        for (_, outcome) in all {
            for (weight, count) in &outcome.congestion {
                *results.congestion.entry(*weight).or_default() += count;
            }
            results.runs.push(outcome);
        }
        Ok(results)
    }

    /// The hosts of run `run`, rank by rank.
    ///
    /// # Errors
    /// As [`Experiment::run`], paths apart.
    pub fn mapping(&self, paths: Paths<'_>, run: u64) -> Result<Vec<NodeId>, CongestionError> {
        let (hosts, count) = self.ranks(paths)?;
        let mut ranks = Vec::new();
        self.subset.ranks(&hosts, count, self.shuffled, draw(self.seed, MAPPING, run), &mut ranks);
        Ok(ranks)
    }

    /// The hosts that may take part, and how many do.
    fn ranks(&self, paths: Paths<'_>) -> Result<(Vec<NodeId>, usize), CongestionError> {
        let hosts = self.subset.hosts(paths.topology())?;
        let wanted = self.hosts.unwrap_or(hosts.len());
        if wanted < 2 || wanted > hosts.len() {
            return Err(CongestionError::Hosts { wanted, least: 2, most: hosts.len() });
        }
        if let Some((part, _)) = self.pattern.against {
            let part = part as usize;
            if part < 2 || part.saturating_add(2) > wanted {
                return Err(CongestionError::Part { part, hosts: wanted });
            }
        }
        let levels = self.pattern.levels(u32::try_from(wanted).unwrap_or(u32::MAX));
        if let Some(level) = self.level.filter(|level| *level >= levels) {
            return Err(CongestionError::Level { level, levels });
        }
        if self.runs == 0 {
            return Err(CongestionError::NoRun);
        }
        Ok((hosts, wanted))
    }

    /// Takes one run after the other until there is none left; an error comes with its run.
    fn share(
        &self,
        paths: Paths<'_>,
        hosts: &[NodeId],
        count: usize,
        next: &AtomicU64,
    ) -> Result<Share, (u64, CongestionError)> {
        let links = paths.topology().links().len();
        let mut share = Share { runs: Vec::new(), links: vec![0; links], visits: 0 };
        let mut loads = Loads::new(links);
        let (mut ranks, mut pairs, mut weights, mut tally) = (Vec::new(), Vec::new(), Vec::new(), Vec::<u64>::new());
        let n = u32::try_from(count).unwrap_or(u32::MAX);
        let measured = self.pattern.part(n);
        let levels = self.level.map_or(0..self.pattern.levels(n), |level| level..level + 1);
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= self.runs {
                return Ok(share);
            }
            self.subset.ranks(hosts, count, self.shuffled, draw(self.seed, MAPPING, run), &mut ranks);
            let mut outcome = Outcome::default();
            let mut reached = vec![0u64; measured as usize];
            let mut later = reached.clone();
            for level in levels.clone() {
                self.pattern.level(level, n, self.seed, run, &mut pairs);
                loads.level(paths, &ranks, &pairs, &mut weights, &mut share.links).map_err(|error| (run, error))?;
                share.visits += loads.visits() as u64;
                let most = weights.iter().copied().max().unwrap_or(0);
                outcome.sum_max += u64::from(most);
                tally.resize(tally.len().max(most as usize + 1), 0);
                for (pair, weight) in pairs.iter().zip(&weights) {
                    tally[*weight as usize] += 1;
                    if pair.from < measured {
                        let arrival = reached[pair.from as usize] + u64::from(*weight);
                        let receiver = &mut later[pair.to as usize];
                        *receiver = arrival.max(*receiver);
                        if self.sends == Sends::Serial {
                            let sender = &mut later[pair.from as usize];
                            *sender = arrival.max(*sender);
                        }
                    }
                }
                // What was reached never comes earlier: only those of this level differ.
                for pair in pairs.iter().filter(|pair| pair.from < measured) {
                    reached[pair.to as usize] = later[pair.to as usize];
                    reached[pair.from as usize] = later[pair.from as usize];
                }
            }
            for (weight, count) in tally.iter_mut().enumerate() {
                // A message of a host to itself takes no link.
                if weight > 0 && *count > 0 {
                    outcome.congestion.insert(weight as u64, *count);
                }
                *count = 0;
            }
            outcome.bandwidth = bandwidth(&outcome.congestion);
            outcome.delay = reached.into_iter().max().unwrap_or(0);
            share.runs.push((run, outcome));
        }
    }
}
