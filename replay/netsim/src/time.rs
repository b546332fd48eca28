//! Simulated time: integer picoseconds.

use crate::units::DurationPs;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// A simulated time in picoseconds since the start of the simulation.
///
/// 2^64 ps are 213 days, far longer than any job that is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(pub u64);

impl SimTime {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);
    /// No simulation goes on beyond this: 150 days. What is scheduled then, at most some days ahead, still fits.
    pub const LATEST: Self = Self(150 * 86_400 * 1_000_000_000_000);

    /// The time `ns` nanoseconds after the start.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// This time in seconds, for people and for summaries.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a display value; 2^53 ps are 2.5 hours to the ps")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// This time plus `ps` picoseconds, at most [`SimTime::MAX`].
    #[must_use]
    #[inline]
    pub const fn plus_ps(self, ps: u64) -> Self {
        Self(self.0.saturating_add(ps))
    }

    /// The time that lies `span` before this one; `None` if that is before the start.
    #[must_use]
    #[inline]
    pub const fn checked_sub(self, span: DurationPs) -> Option<Self> {
        match self.0.checked_sub(span.ps()) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// Picoseconds from `earlier` to this time; 0 if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since_ps(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// For times up to some days after [`SimTime::LATEST`], which need no check.
impl Add<DurationPs> for SimTime {
    type Output = Self;

    #[inline]
    fn add(self, span: DurationPs) -> Self {
        Self(self.0 + span.ps())
    }
}

/// The span from an earlier time to this one.
impl Sub for SimTime {
    type Output = DurationPs;

    #[inline]
    fn sub(self, earlier: Self) -> DurationPs {
        DurationPs(self.0 - earlier.0)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}
