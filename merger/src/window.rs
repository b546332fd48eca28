//! The part of a capture that a trace is made of.

use crate::error::MergeError;
use crate::history::Histories;

/// How long before its submission and behind its end packets are taken to be a job's, milliseconds: the client asks for an
/// id and copies files beforehand, and masters clean up afterwards.
const MARGIN_MS: u64 = 10_000;

/// A span of time, or a job's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From when, nanoseconds since the epoch; `None` = from the begin.
    pub from_ns: Option<u64>,
    /// Until when; `None` = to the end.
    pub to_ns: Option<u64>,
    /// The job, by id.
    pub job: Option<String>,
}

/// A window on the reference clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    /// Whether something that lasted from `first_ns` to `last_ns` lies in it, at least in part.
    pub fn meets(&self, first_ns: u64, last_ns: u64) -> bool {
        first_ns <= self.to_ns && last_ns >= self.from_ns
    }

    /// The part of a span that lies in it.
    pub fn part_of(&self, (first_ns, last_ns): (u64, u64)) -> (u64, u64) {
        let first_ns = first_ns.max(self.from_ns);
        (first_ns, last_ns.min(self.to_ns).max(first_ns))
    }
}

impl Window {
    /// Leaves those jobs of `histories` that lie in it, at least in part, and tells when it is.
    ///
    /// # Errors
    /// If there is no such job.
    pub(crate) fn cut(&self, histories: &mut Histories) -> Result<Span, MergeError> {
        let mut span = Span { from_ns: self.from_ns.unwrap_or(0), to_ns: self.to_ns.unwrap_or(u64::MAX) };
        let ends_ns = |finish_ms: u64| if finish_ms == 0 { u64::MAX } else { finish_ms.saturating_mul(1_000_000) };
        if let Some(id) = &self.job {
            let Some(job) = histories.jobs.iter().find(|job| job.id == *id) else {
                let jobs = histories.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(", ");
                return Err(MergeError::NoJob { job: id.clone(), jobs });
            };
            let margin_ns = MARGIN_MS * 1_000_000;
            span.from_ns = span.from_ns.max(job.submit_ms.saturating_mul(1_000_000).saturating_sub(margin_ns));
            span.to_ns = span.to_ns.min(ends_ns(job.finish_ms).saturating_add(margin_ns));
            histories.jobs.retain(|job| job.id == *id);
        }
        if *self != Self::default() {
            histories.jobs.retain(|job| span.meets(job.submit_ms.saturating_mul(1_000_000), ends_ns(job.finish_ms)));
            let kept: Vec<&str> = histories.jobs.iter().map(|job| job.id.as_str()).collect();
            histories.configurations.retain(|job, _| kept.contains(&job.as_str()));
        }
        Ok(span)
    }
}
