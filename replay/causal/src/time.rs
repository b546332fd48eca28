//! Time of a job.

use std::fmt;

/// A time in picoseconds since the job was submitted; negative before. It reaches 106 days to either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobTime(pub i64);

impl JobTime {
    /// The job is submitted.
    pub const SUBMISSION: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(i64::MAX);
    /// Stands for a time at which something has not happened.
    pub(crate) const NEVER: Self = Self(i64::MIN);

    /// `ns` nanoseconds after the submission.
    #[must_use]
    pub fn from_ns(ns: i128) -> Self {
        Self(i64::try_from(ns * 1_000).unwrap_or(if ns < 0 { i64::MIN + 1 } else { i64::MAX }))
    }

    /// Picoseconds since the submission; 0 for what was before.
    #[must_use]
    pub fn ps(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Seconds since the submission, for people and summaries.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a display value; 2^53 ps are 2.5 hours to the ps")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// This time plus `ps` picoseconds, at most [`JobTime::MAX`].
    #[must_use]
    pub const fn plus_ps(self, ps: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ps))
    }

    /// Picoseconds from `earlier` to this time; 0 if `earlier` is later.
    #[must_use]
    pub fn since_ps(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for JobTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}
