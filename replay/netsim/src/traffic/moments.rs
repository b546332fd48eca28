//! When hosts hand over their next messages: in the order of time, those of one instant in an order that is drawn.

use crate::kernel::{CycleQueue, EventQueue, Phase, Place};
use crate::time::SimTime;

/// Hosts, each at the time of its next message.
pub(super) enum Moments {
    /// Where that may be any time.
    Events(Box<EventQueue<u32>>),
    /// Where it is the begin of a cycle.
    Cycles(CycleQueue),
}

impl Moments {
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        match self {
            Self::Events(queue) => queue.next_time(),
            Self::Cycles(queue) => queue.next_time(),
        }
    }

    /// The next host, if its time is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: SimTime) -> Option<u32> {
        match self {
            Self::Events(queue) => queue.pop_until(until).map(|(_, host)| host),
            Self::Cycles(queue) => queue.pop_until(until).map(|place| place.0),
        }
    }

    /// The next message of `host` comes at `at`, which is the begin of `cycle` where all are.
    #[inline]
    pub fn schedule(&mut self, at: SimTime, cycle: u64, host: u32) {
        match self {
            Self::Events(queue) => queue.schedule(at, Phase::Arrive, Place(host), host),
            Self::Cycles(queue) => queue.schedule(cycle, Place(host)),
        }
    }
}
