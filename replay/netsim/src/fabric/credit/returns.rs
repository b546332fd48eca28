//! A packet on its way out of a buffer: by its times all are known at which its flits leave, and its credits come back.

use crate::fabric::ids::ReturnId;
use crate::time::SimTime;

/// A packet that leaves a buffer, and so gives its credits back.
#[derive(Clone, Copy)]
pub(super) struct Return {
    /// When it started, and when its last flit has left.
    pub start: SimTime,
    pub end: SimTime,
    /// The remainder with which the link started.
    pub rest: u64,
    /// The packet that leaves after it.
    pub next: ReturnId,
    /// The wire whose time it takes.
    pub timing: u16,
    pub flits: u16,
    pub credits: u16,
}

impl Return {
    /// A packet of `flits` flits that starts at `start`, with remainder `rest`, and gives `credits` back.
    #[inline]
    pub const fn new(timing: u16, start: SimTime, end: SimTime, rest: u64, flits: u16, credits: u16) -> Self {
        Self { start, end, rest, next: ReturnId::NONE, timing, flits, credits }
    }
}
