//! Many runs of a pattern.

use crate::chains::Chains;
use crate::level::Loads;
use crate::metrics::{Bandwidths, Histogram, bandwidth};
use crate::{CongestionError, Joined, Pair, Paths, Sends, Subset};
use netsim::kernel::random::draw;
use netsim::topology::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Who sends to whom.
    pub pattern: Joined,
    /// How many hosts take part; all if not given.
    pub hosts: Option<usize>,
    /// Which hosts take part, if not all do.
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

/// All runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Runs by their levels' greatest congestion, added up (`sum_max_cong`).
    pub sum_max: Histogram,
    /// Runs by the longest chain of messages that wait for each other, each as long as its congestion; ranks of the first
    /// pattern only (`dep_max_delay`).
    pub delay: Histogram,
    /// Runs by their messages' mean bandwidth (`hist_acc_band`), those that have messages.
    pub bandwidth: Bandwidths,
    /// Messages of all runs by their congestion (`hist_max_cong`).
    pub congestion: Histogram,
    /// Messages over each link, of all levels and runs, by number of the link.
    pub links: Vec<u64>,
    /// Links on all paths: how much was looked at.
    pub visits: u64,
}

impl Results {
    /// The runs of `other`, too.
    fn merge(&mut self, other: Self) {
        let add = |sums: &mut Histogram, counts: Histogram| {
            counts.into_iter().for_each(|(value, count)| *sums.entry(value).or_default() += count);
        };
        add(&mut self.sum_max, other.sum_max);
        add(&mut self.delay, other.delay);
        add(&mut self.congestion, other.congestion);
        self.bandwidth.merge(&other.bandwidth);
        self.links.iter_mut().zip(other.links).for_each(|(sum, count)| *sum += count);
        self.visits += other.visits;
    }
}

/// The place of the mapping's draws, beside those of patterns.
const MAPPING: u64 = 0x6d61_7070_696e_6700;

impl Experiment {
    /// Runs it; `done` is called after each run.
    ///
    /// # Errors
    /// When hosts, levels or parts are asked for that there are not, or the routing has no path for a pair.
    pub fn run(&self, paths: &Paths<'_>, done: impl Fn() + Sync) -> Result<Results, CongestionError> {
        let links = paths.topology().links().len();
        let n = u32::try_from(self.ranks(paths)?).unwrap_or(u32::MAX);
        let begin = || (Counting::new(links, Chains::new(self.pattern.part(n), self.sends)), Results::default());
        let shares = self
            .each(paths, &done, begin, |(counting, share), run, ranks| self.one(paths, counting, share, run, ranks))?;
        let mut results = Results { links: vec![0; links], ..Results::default() };
        for (counting, share) in shares {
            let congestion = histogram(&counting.all);
            results.merge(Results { congestion, links: counting.loads.into_totals(), ..share });
        }
        results.links = paths.by_link(results.links);
        Ok(results)
    }

    /// The hosts of run `run`, rank by rank.
    ///
    /// # Errors
    /// As [`Experiment::run`], paths apart.
    pub fn mapping(&self, paths: &Paths<'_>, run: u64) -> Result<Vec<NodeId>, CongestionError> {
        let (hosts, count) = self.chosen(paths)?;
        let mut ranks = Vec::new();
        self.subset.ranks(&hosts, count, self.shuffled, draw(self.seed, MAPPING, run), &mut ranks);
        Ok(ranks)
    }

    /// How many hosts take part.
    ///
    /// # Errors
    /// As [`Experiment::run`], paths apart.
    pub fn ranks(&self, paths: &Paths<'_>) -> Result<usize, CongestionError> {
        Ok(self.chosen(paths)?.1)
    }

    /// The hosts that may take part, and how many do.
    fn chosen(&self, paths: &Paths<'_>) -> Result<(Vec<NodeId>, usize), CongestionError> {
        let hosts = self.subset.hosts(paths.topology())?;
        let wanted = self.hosts.unwrap_or(hosts.len());
        if hosts.len() < 2 {
            return Err(CongestionError::TooFew { hosts: hosts.len() });
        }
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

    /// Does `one` for each run, with its number and the hosts of its ranks, and `done` after it. Each thread keeps what `begin`
    /// makes for it.
    pub(crate) fn each<S: Send>(
        &self,
        paths: &Paths<'_>,
        done: &(impl Fn() + Sync),
        begin: impl Fn() -> S + Sync,
        one: impl Fn(&mut S, u64, &[NodeId]) -> Result<(), CongestionError> + Sync,
    ) -> Result<Vec<S>, CongestionError> {
        let (hosts, count) = self.chosen(paths)?;
        let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let threads = usize::try_from(self.runs).unwrap_or(usize::MAX).min(self.threads);
        let shares = on_threads(threads, || {
            let (mut kept, mut ranks) = (begin(), Vec::new());
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= self.runs || run > failed.load(Ordering::Relaxed) {
                    return Ok(kept);
                }
                self.subset.ranks(&hosts, count, self.shuffled, draw(self.seed, MAPPING, run), &mut ranks);
                if let Err(error) = one(&mut kept, run, &ranks) {
                    failed.fetch_min(run, Ordering::Relaxed);
                    return Err((run, error));
                }
                done();
            }
        });
        // The first run that fails is the same for any number of threads.
        let mut failures: Vec<_> = Vec::new();
        let mut all = Vec::new();
        for share in shares {
            match share {
                Ok(kept) => all.push(kept),
                Err(failure) => failures.push(failure),
            }
        }
        match failures.into_iter().min_by_key(|(run, _)| *run) {
            Some((_, error)) => Err(error),
            None => Ok(all),
        }
    }

    /// One run of the pattern.
    fn one(
        &self,
        paths: &Paths<'_>,
        counting: &mut Counting,
        share: &mut Results,
        run: u64,
        ranks: &[NodeId],
    ) -> Result<(), CongestionError> {
        let n = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let Counting { loads, chains, pairs, weights, tally, all } = counting;
        chains.begin();
        let mut sum_max = 0;
        for level in self.level.map_or(0..self.pattern.levels(n), |level| level..level + 1) {
            self.pattern.level(level, n, self.seed, run, pairs);
            loads.level(paths, ranks, pairs, weights)?;
            share.visits += loads.visits() as u64;
            let most = weights.iter().copied().max().unwrap_or(0);
            sum_max += u64::from(most);
            tally.resize(tally.len().max(most as usize + 1), 0);
            for weight in weights.iter() {
                tally[*weight as usize] += 1;
            }
            chains.level(pairs, weights);
        }
        *share.sum_max.entry(sum_max).or_default() += 1;
        *share.delay.entry(chains.longest()).or_default() += 1;
        if let Some(bandwidth) = bandwidth(&histogram(tally)) {
            share.bandwidth.add(bandwidth);
        }
        all.resize(tally.len(), 0);
        for (sum, count) in all.iter_mut().zip(tally) {
            *sum += std::mem::take(count);
        }
        Ok(())
    }
}

/// What a thread keeps from run to run.
struct Counting {
    loads: Loads,
    chains: Chains,
    pairs: Vec<Pair>,
    weights: Vec<u32>,
    /// Messages by their congestion: of a run, and of all.
    tally: Vec<u64>,
    all: Vec<u64>,
}

impl Counting {
    fn new(links: usize, chains: Chains) -> Self {
        let (tally, all) = (Vec::new(), Vec::new());
        Self { loads: Loads::new(links), chains, pairs: Vec::new(), weights: Vec::new(), tally, all }
    }
}

/// Messages by their congestion; one of a host to itself takes no link and has none.
fn histogram(tally: &[u64]) -> Histogram {
    (0..).zip(tally.iter().copied()).skip(1).filter(|(_, count)| *count > 0).collect()
}

/// What `work` gives on each of `threads` threads, this one among them.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}
