//! What masters know of attempts that may be too slow, and of second ones.

use std::collections::BTreeMap;

use trace::ids::{TaskId, TimerId};
use trace::rows::TaskKind;

use super::capacity::ContainerId;
use crate::kernel::StepId;

/// A running attempt that may be too slow.
#[derive(Debug)]
pub(super) struct Watched {
    /// By which it reports.
    pub(super) timer: TimerId,
    /// Ends of the computing on each piece of its input.
    pub(super) pieces: Vec<StepId>,
    /// A map's merges of its spills.
    pub(super) merges: Vec<StepId>,
    /// A reduce has merged its input.
    pub(super) sorted: Option<StepId>,
    /// Its progress in the report under way.
    pub(super) reported: f64,
    /// What its master believes it takes in all.
    pub(super) estimate_ps: Option<u64>,
}

/// What a master knows for its decisions.
#[derive(Debug, Default)]
pub(super) struct Speculation {
    /// Tasks that have a second attempt, or shall have one, by their first one; the second one once it has a container.
    pub(super) seconds: BTreeMap<TaskId, Option<TaskId>>,
    /// Attempts that finished first, and the time that they took, picoseconds: maps, reduces.
    pub(super) finished: [(u64, u128); 2],
    /// Containers of killed attempts in which nothing was started, until the ResourceManager knows.
    pub(super) unused: Vec<ContainerId>,
}

/// The place of a kind in [`Speculation::finished`].
pub(super) const fn kind_index(kind: TaskKind) -> usize {
    if matches!(kind, TaskKind::Reduce) { 1 } else { 0 }
}
