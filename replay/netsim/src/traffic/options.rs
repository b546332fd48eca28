//! How a run is made.

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
}

/// How a run is made. Nothing of it shows in what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether the record of every packet is kept.
    pub keep: bool,
    /// Whether it is counted what each host sends each other one.
    pub pairs: bool,
    /// How the fabric is run.
    pub engine: EngineKind,
    /// Threads at most.
    pub threads: usize,
}

impl Default for RunOptions {
    /// No records, no pairs, one thread.
    fn default() -> Self {
        Self { keep: false, pairs: false, engine: EngineKind::Auto, threads: 1 }
    }
}
