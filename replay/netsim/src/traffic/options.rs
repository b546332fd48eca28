//! How a run is made.

use crate::fabric::optimistic::OptimisticOptions;

/// How a fabric is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// In windows where that is quicker, else by events.
    #[default]
    Auto,
    /// By events, one after the other.
    Events,
    /// In windows, on several threads if wanted. Only `store-and-forward` and `credit` can be run so.
    Windows,
    /// By Time Warp, on several threads if wanted. Only `store-and-forward` can be run so.
    Optimistic,
}

impl EngineKind {
    /// As options call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Events => "events",
            Self::Windows => "windows",
            Self::Optimistic => "optimistic",
        }
    }

    /// Whether it runs parts of a network, on several threads if wanted, however small it is.
    pub(super) const fn has_parts(self) -> bool {
        matches!(self, Self::Windows | Self::Optimistic)
    }
}

/// So many circuits of a run are told one by one at most.
const MAX_CIRCUITS: usize = 65_536;
/// The same of all runs of a sweep together: about 100 MB.
const MAX_CIRCUITS_IN_ALL: usize = 8 * MAX_CIRCUITS;

/// How a run is made. Nothing of it shows in what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether the record of every packet is kept.
    pub keep: bool,
    /// Whether it is counted what each host sends each other one.
    pub pairs: bool,
    /// So many optical circuits are told one by one at most; 65,536 is the most that fabrics tell.
    pub circuits: usize,
    /// How the fabric is run.
    pub engine: EngineKind,
    /// Threads at most.
    pub threads: usize,
    /// How parts are run by Time Warp.
    pub optimistic: OptimisticOptions,
}

impl Default for RunOptions {
    /// No records, no pairs, all circuits that the fabric tells, one thread.
    fn default() -> Self {
        let optimistic = OptimisticOptions::default();
        Self { keep: false, pairs: false, circuits: MAX_CIRCUITS, engine: EngineKind::Auto, threads: 1, optimistic }
    }
}

impl RunOptions {
    /// How many circuits each of so many `runs` tells, so that all of them find room.
    #[must_use]
    pub fn circuits_of_each(runs: usize) -> usize {
        (MAX_CIRCUITS_IN_ALL / runs.max(1)).min(MAX_CIRCUITS)
    }
}
