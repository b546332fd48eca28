//! The order of events.

use crate::kernel::{Place, tie};
use crate::time::SimTime;

/// Time, then the order of the places that meet at that instant: as the event engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fabric) struct Key {
    time: SimTime,
    rank: u64,
}

impl Key {
    /// Of what comes from `place` at `time`. Nothing else comes from there at that instant, so that no two keys are equal.
    #[inline]
    pub const fn new(time: SimTime, place: Place) -> Self {
        Self { time, rank: (tie(time, place) << 32) | place.0 as u64 }
    }

    #[inline]
    pub const fn time(self) -> SimTime {
        self.time
    }
}
