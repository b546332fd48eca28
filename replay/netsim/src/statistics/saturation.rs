//! Whether a network carries what is offered to it.

use serde::{Deserialize, Serialize};

use super::meter::Batch;
use super::{float, interval, wide};

/// What says that a network is saturated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Saturation {
    /// It carries what is offered.
    No,
    /// Less arrives than is handed over.
    AcceptsLess {
        /// Accepted over offered load.
        share: f64,
    },
    /// Packets that are handed over later take longer.
    LatencyGrows {
        /// How much the mean latency grows through the measurement, over its mean.
        by: f64,
    },
}

impl Saturation {
    /// Whether it is.
    #[must_use]
    pub fn is_saturated(self) -> bool {
        self != Self::No
    }
}

/// Accepted load below this share of the offered one is less.
const ACCEPTED_SHARE: f64 = 0.98;
/// What may be chance.
const ERRORS: f64 = 3.0;
/// Growth of latency through the measurement, over its mean, that is no matter.
const GROWTH: f64 = 0.2;
/// Fewer batches say nothing.
const MIN_BATCHES: usize = 4;

/// Judges by the batches of a measurement: accepted below offered by more than 2% and 3 standard errors (of the batches'
/// differences), or mean latency growing from batch to batch by more than 3 standard errors of its slope and by more than
/// a fifth of the mean through the measurement. `end_ps` is when the run ended: what has not arrived by then has taken
/// until then at least.
#[must_use]
pub fn judge(batches: &[Batch], end_ps: u64) -> Saturation {
    if batches.len() < MIN_BATCHES {
        return Saturation::No;
    }
    let offered: f64 = batches.iter().map(|batch| float(batch.offered)).sum();
    let accepted: f64 = batches.iter().map(|batch| float(batch.accepted)).sum();
    let differences: Vec<f64> = batches.iter().map(|batch| float(batch.offered) - float(batch.accepted)).collect();
    if let Some(difference) = interval(&differences)
        && offered > 0.0
        && accepted < ACCEPTED_SHARE * offered
        && difference.mean > ERRORS * difference.error
    {
        return Saturation::AcceptsLess { share: accepted / offered };
    }
    let latencies: Vec<f64> = batches.iter().filter_map(|batch| batch.latency(end_ps)).collect();
    match growth(&latencies) {
        Some((by, errors)) if by > GROWTH && errors > ERRORS => Saturation::LatencyGrows { by },
        _ => Saturation::No,
    }
}

/// How much values grow from the first to the last by a straight line through them, over their mean, and how many
/// standard errors of the slope that is.
fn growth(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < MIN_BATCHES {
        return None;
    }
    let count = float(values.len() as u64);
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let place = |index: usize| float(index as u64) - middle;
    let spread: f64 = (0..values.len()).map(|index| place(index).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(index, value)| place(index) * (value - mean)).sum::<f64>() / spread;
    let rest: f64 = values.iter().enumerate().map(|(index, value)| (value - mean - slope * place(index)).powi(2)).sum();
    let error = (rest / (count - 2.0) / spread).sqrt();
    (mean > 0.0).then(|| (slope * (count - 1.0) / mean, if error > 0.0 { slope / error } else { f64::INFINITY }))
}

impl Batch {
    /// The mean latency of the packets handed over in it, in picoseconds, at the least.
    fn latency(&self, end_ps: u64) -> Option<f64> {
        // With losses nobody knows which of the others still wait.
        let open = if self.lossy { 0 } else { self.sent.saturating_sub(self.delivered) };
        let left = wide(self.sent_at.saturating_sub(self.delivered_at));
        let least = if open == 0 { 0.0 } else { (float(open) * float(end_ps) - left).max(0.0) };
        let counted = self.delivered + open;
        (counted > 0).then(|| (wide(self.latency) + least) / float(counted))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn batch(offered: u64, accepted: u64, latency: u128) -> Batch {
        Batch { offered, accepted, sent: 10, delivered: 10, latency: latency * 10, ..Batch::default() }
    }

    #[test]
    fn less_accepted_is_saturated_if_it_is_no_chance() {
        let steady: Vec<Batch> = (0..10).map(|n| batch(1_000, 960 + n % 3, 50)).collect();
        assert!(matches!(judge(&steady, 0), Saturation::AcceptsLess { share } if (0.95..0.97).contains(&share)));
        let close: Vec<Batch> = (0..10).map(|n| batch(1_000, 985 + n % 3, 50)).collect();
        assert_eq!(judge(&close, 0), Saturation::No);
        let wild: Vec<Batch> = (0..10).map(|n| batch(1_000, if n % 2 == 0 { 1_300 } else { 600 }, 50)).collect();
        assert_eq!(judge(&wild, 0), Saturation::No);
    }

    #[test]
    fn latency_that_grows_is_saturated() {
        let of =
            |latency: fn(u128) -> u128| -> Vec<Batch> { (0..10).map(|n| batch(1_000, 1_000, latency(n))).collect() };
        assert!(judge(&of(|n| 1_000 + 100 * n), 0).is_saturated());
        assert_eq!(judge(&of(|n| 1_000 - 50 * n), 0), Saturation::No);
        assert_eq!(judge(&of(|n| 1_000 + 10 * n), 0), Saturation::No, "a tenth is no matter");
        assert_eq!(judge(&of(|n| if n % 2 == 0 { 1_000 } else { 2_000 }), 0), Saturation::No);
    }

    #[test]
    fn what_never_arrives_counts_until_the_end() {
        let stuck = |n: u64| Batch {
            offered: 1_000,
            accepted: 1_000,
            sent: 10,
            sent_at: u128::from(10 * n),
            delivered: 10 - n.min(9),
            delivered_at: u128::from((10 - n.min(9)) * n),
            latency: 10,
            ..Batch::default()
        };
        let batches: Vec<Batch> = (0..10).map(stuck).collect();
        assert!(judge(&batches, 1_000).is_saturated());
    }
}
