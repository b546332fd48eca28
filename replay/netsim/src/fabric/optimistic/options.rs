//! How parts are run optimistically, and what that took.

use serde::{Deserialize, Serialize};

/// How far parts run ahead by themselves where nothing is said: so many times the least time from one part to another.
pub(super) const LOOKAHEADS_AHEAD: u64 = 16;

/// How parts are run optimistically. Nothing of it shows in what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimisticOptions {
    /// Batches of each part between two computations of GVT, at least 1.
    pub gvt_interval: u32,
    /// Events of a batch at most, at least 1.
    pub batch: u32,
    /// How far ahead of GVT a part may run, in picoseconds; `None`: 16 times the lookahead.
    pub ahead_ps: Option<u64>,
}

impl Default for OptimisticOptions {
    /// As in FatTreeSim's runs (document 001, 4.2.1): a GVT interval of 32 and batches of 8.
    fn default() -> Self {
        Self { gvt_interval: 32, batch: 8, ahead_ps: None }
    }
}

/// What it took to run parts optimistically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptimisticCost {
    /// Batches of each part between two computations of GVT.
    pub gvt_interval: u32,
    /// Events of a batch at most.
    pub batch: u32,
    /// How far ahead of GVT a part ran at most, in picoseconds.
    pub ahead_ps: u64,
    /// How often GVT was computed.
    pub gvt_rounds: u64,
    /// Events that were taken back. They were run again, or did not happen after all.
    pub rolled_back: u64,
    /// How often events were taken back because an earlier one came late.
    pub primary_rollbacks: u64,
    /// How often events were taken back because one of them was cancelled.
    pub secondary_rollbacks: u64,
    /// Messages to other parts that were cancelled.
    pub anti_messages: u64,
    /// The most events that a part had run and could still have had to take back.
    pub most_uncommitted: u64,
}

impl OptimisticCost {
    /// Adds what another part took.
    pub(super) fn add(&mut self, other: &Self) {
        self.rolled_back += other.rolled_back;
        self.primary_rollbacks += other.primary_rollbacks;
        self.secondary_rollbacks += other.secondary_rollbacks;
        self.anti_messages += other.anti_messages;
        self.most_uncommitted = self.most_uncommitted.max(other.most_uncommitted);
    }
}
