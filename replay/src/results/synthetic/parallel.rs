//! What it took to make runs in parts.

use netsim::statistics::{RunFigures, float};
use serde::{Deserialize, Serialize};

/// What it took to run networks in parts, in windows or optimistically.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parallel {
    /// Parts of a network.
    pub parts: usize,
    /// Threads that ran them.
    pub threads: usize,
    /// The width of a window: nothing that one part does shows sooner in another.
    pub lookahead_ns: f64,
    /// Windows in which something happened, of all runs; 0 if they were run optimistically.
    pub windows: u64,
    /// Packets and credits that one part sent another, of all runs.
    pub remote_events: u64,
    /// The share that these are of `events`.
    pub remote_share: f64,
    /// How long threads waited for each other, of all runs and threads.
    pub barrier_wait_s: f64,
    /// What it took beside that to run them optimistically; null in windows.
    #[serde(default)]
    pub optimistic: Option<Optimistic>,
}

/// What it took to run networks optimistically, of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimistic {
    /// Batches of each part between two computations of GVT.
    pub gvt_interval: u32,
    /// Events of a batch at most.
    pub batch: u32,
    /// How far ahead of GVT a part ran at most.
    pub ahead_ns: f64,
    /// How often GVT was computed.
    pub gvt_rounds: u64,
    /// Events that were taken back, as often as they were. `events` are those that were committed.
    pub rolled_back: u64,
    /// 1 - `rolled_back` / `events`; below 0 if more was taken back than committed.
    pub efficiency: f64,
    /// How often events were taken back because an earlier one came late.
    pub primary_rollbacks: u64,
    /// How often events were taken back because one of them was cancelled.
    pub secondary_rollbacks: u64,
    /// Messages to other parts that were cancelled.
    pub anti_messages: u64,
    /// The most events that a part had run and could still have had to take back.
    pub most_uncommitted: u64,
}

impl Parallel {
    /// What it took to make `runs`; `None` if they were made by events.
    pub(super) fn of(runs: &[&RunFigures]) -> Option<Self> {
        let costs = || runs.iter().filter_map(|run| Some((run.events, run.cost.parallel?)));
        let (_, first) = costs().next()?;
        let (events, remote_events) =
            costs().fold((0, 0), |sum, (events, cost)| (sum.0 + events, sum.1 + cost.remote_events));
        Some(Self {
            parts: first.parts,
            threads: first.threads,
            lookahead_ns: float(first.lookahead_ps) / 1e3,
            windows: costs().map(|(_, cost)| cost.windows).sum(),
            remote_events,
            remote_share: share(remote_events, events),
            barrier_wait_s: costs().map(|(_, cost)| cost.barrier_wait_s).sum(),
            optimistic: Optimistic::of(runs, events),
        })
    }
}

impl Optimistic {
    /// What it took to make `runs`, which committed so many `events`; `None` if they were made in windows.
    fn of(runs: &[&RunFigures], events: u64) -> Option<Self> {
        let costs = || runs.iter().filter_map(|run| run.cost.parallel?.optimistic);
        let first = costs().next()?;
        let rolled_back = costs().map(|cost| cost.rolled_back).sum();
        Some(Self {
            gvt_interval: first.gvt_interval,
            batch: first.batch,
            ahead_ns: float(first.ahead_ps) / 1e3,
            gvt_rounds: costs().map(|cost| cost.gvt_rounds).sum(),
            rolled_back,
            efficiency: 1.0 - share(rolled_back, events),
            primary_rollbacks: costs().map(|cost| cost.primary_rollbacks).sum(),
            secondary_rollbacks: costs().map(|cost| cost.secondary_rollbacks).sum(),
            anti_messages: costs().map(|cost| cost.anti_messages).sum(),
            most_uncommitted: costs().map(|cost| cost.most_uncommitted).max().unwrap_or(0),
        })
    }
}

/// The share that `some` are of `all`.
fn share(some: u64, all: u64) -> f64 {
    if all > 0 { float(some) / float(all) } else { 0.0 }
}
