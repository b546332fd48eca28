//! What results come to.

use serde::Serialize;
use std::collections::BTreeMap;

/// How often each whole number came.
pub type Histogram = BTreeMap<u64, u64>;

/// The mean bandwidth of messages, as a part of what one has alone, from how many have which congestion; `None` without messages.
#[must_use]
pub fn bandwidth(congestion: &Histogram) -> Option<f64> {
    let messages: u64 = congestion.values().sum();
    let shares: f64 = congestion.iter().map(|(weight, count)| float(*count) / float(*weight)).sum();
    (messages > 0).then(|| shares / float(messages))
}

/// A number of messages or runs.
#[expect(clippy::cast_precision_loss, reason = "at most 2^53 messages")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

/// Results of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub runs: usize,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (of a sample: n - 1); 0 of a single one.
    pub deviation: f64,
    /// Half the width of the mean's 99% interval: 2.576 standard errors.
    pub half_width_99: f64,
}

impl Summary {
    /// Of these values; `None` if there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = float(values.len() as u64);
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let variance = squares / (count - 1.0).max(1.0);
        Some(Self {
            runs: values.len(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            deviation: variance.sqrt(),
            half_width_99: 2.576 * (variance / count).sqrt(),
        })
    }
}
