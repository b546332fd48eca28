//! A measurement that begins when the network has settled, and its batches.

use serde::{Deserialize, Serialize};

use super::span::Span;
use crate::statistics::{SeriesRow, float};
use crate::time::SimTime;

/// How many intervals have to be alike, one after the other.
const ALIKE: u32 = 3;

/// When a network counts as settled: `{ interval = "1000 cycles", threshold = 0.05, most = "25000 cycles" }`, which are INSEE's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Convergence {
    /// What is compared with the interval before it.
    pub interval: Span,
    /// The share by which accepted load and mean latency may differ.
    pub threshold: f64,
    /// How long behind the warm-up it may take; then the measurement begins all the same.
    pub most: Span,
}

impl Default for Convergence {
    fn default() -> Self {
        Self { interval: Span::Cycles(1_000), threshold: 0.05, most: Span::Cycles(25_000) }
    }
}

/// What the keys `convergence`, `batches`, `batch` and `evolution` come to, in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Interval, threshold, and the latest time at which the measurement begins.
    pub convergence: Option<(u64, f64, u64)>,
    /// The end of the warm-up.
    pub warm_up_ps: u64,
    /// How long packets count.
    pub measurement_ps: u64,
    /// How long packets that count may take longer.
    pub drain_ps: u64,
    /// How many batches the measurement has, and how long each is.
    pub batches: Option<(u64, u64)>,
    /// Intervals of the whole run that are counted.
    pub evolution_ps: Option<u64>,
}

/// Waits until a network has settled.
pub(super) struct Settling {
    start_ps: u64,
    interval_ps: u64,
    threshold: f64,
    latest_ps: u64,
    /// Intervals that have ended.
    ended: u64,
    /// Intervals in a row that were like the one before.
    alike: u32,
}

impl Settling {
    /// `None` where the measurement does not wait.
    pub fn new(plan: &StepPlan) -> Option<Self> {
        let (interval_ps, threshold, latest_ps) = plan.convergence?;
        Some(Self { start_ps: plan.warm_up_ps, interval_ps, threshold, latest_ps, ended: 0, alike: 0 })
    }

    /// When the present interval ends.
    pub const fn next(&self) -> SimTime {
        SimTime(self.start_ps.saturating_add(self.interval_ps.saturating_mul(self.ended + 1)))
    }

    /// The present interval has ended, `rows` are those so far. Says whether the network has settled if the measurement begins now.
    pub fn look(&mut self, rows: impl Fn(usize) -> SeriesRow) -> Option<bool> {
        let now = self.next();
        let index = usize::try_from(self.ended).unwrap_or(usize::MAX);
        self.ended += 1;
        if let Some(before) = index.checked_sub(1) {
            let (before, last) = (rows(before), rows(index));
            self.alike = if self.is_alike(&before, &last) { self.alike + 1 } else { 0 };
        }
        if self.alike >= ALIKE {
            return Some(true);
        }
        (now.0 >= self.latest_ps).then_some(false)
    }

    fn is_alike(&self, before: &SeriesRow, last: &SeriesRow) -> bool {
        let near = |before: f64, last: f64| before > 0.0 && ((last - before) / before).abs() < self.threshold;
        let latencies = before.packet.mean().zip(last.packet.mean());
        near(float(before.accepted_bytes), float(last.accepted_bytes))
            && latencies.is_some_and(|(before, last)| near(before, last))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn settling() -> Settling {
        let plan = StepPlan { convergence: Some((100, 0.05, 2_000)), warm_up_ps: 1_000, ..StepPlan::default() };
        Settling::new(&plan).unwrap()
    }

    /// When it settles if interval n has accepted `loads[n]`, and whether it did.
    fn settles(loads: &[u64]) -> Option<(u64, bool)> {
        let mut settling = settling();
        let latency = {
            let mut times = crate::statistics::Times::default();
            times.record(10);
            times
        };
        let row = |index: usize| SeriesRow {
            accepted_bytes: loads.get(index).copied().unwrap_or_default(),
            packet: latency,
            ..SeriesRow::default()
        };
        (0..20).find_map(|_| {
            let now = settling.next();
            settling.look(row).map(|settled| (now.0, settled))
        })
    }

    #[test]
    fn three_intervals_in_a_row_are_like_the_one_before_them() {
        assert_eq!(settles(&[1_000, 1_010, 990, 1_000]), Some((1_400, true)));
        assert_eq!(settles(&[500, 1_000, 1_010, 990, 1_000]), Some((1_500, true)));
        assert_eq!(settles(&[1_000, 1_010, 1_500, 1_510, 1_520, 1_530]), Some((1_600, true)));
    }

    #[test]
    fn what_never_settles_is_measured_at_the_latest_time() {
        let loads: Vec<u64> = (0..20).map(|n| 1_000 << n).collect();
        assert_eq!(settles(&loads), Some((2_000, false)));
        assert_eq!(settles(&[]), Some((2_000, false)), "nothing that arrives is never settled");
    }
}
