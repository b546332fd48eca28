//! What results come to.

use serde::{Deserialize, Serialize};
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

/// The value that half of those counted do not exceed; `None` if there is none.
#[must_use]
pub fn median(values: &Histogram) -> Option<u64> {
    let half = values.values().sum::<u64>().div_ceil(2);
    let mut below = 0;
    values
        .iter()
        .find(|(_, count)| {
            below += **count;
            below >= half
        })
        .map(|(value, _)| *value)
}

/// A number of messages or runs.
#[expect(clippy::cast_precision_loss, reason = "at most 2^53 messages")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

/// Results of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many.
    pub runs: u64,
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
    /// Of the values that `runs` counts; `None` if there is none.
    #[must_use]
    pub fn of(runs: &Histogram) -> Option<Self> {
        let (min, max) = (*runs.first_key_value()?.0, *runs.last_key_value()?.0);
        let count: u64 = runs.values().sum();
        let sum: f64 = runs.iter().map(|(value, runs)| float(*value) * float(*runs)).sum();
        let mean = sum / float(count);
        let squares = runs.iter().map(|(value, runs)| (float(*value) - mean).powi(2) * float(*runs)).sum();
        Some(Self::from_moments(count, float(min), float(max), mean, squares))
    }

    /// `squares` are the squared distances from the mean, added up.
    fn from_moments(runs: u64, min: f64, max: f64, mean: f64, squares: f64) -> Self {
        let count = float(runs);
        let variance = squares / (count - 1.0).max(1.0);
        Self { runs, min, max, mean, deviation: variance.sqrt(), half_width_99: 2.576 * (variance / count).sqrt() }
    }
}

/// Whole numbers up to 2^50, added up with their squares: exactly, so their order does not matter. Sums fit for 2^27 of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    fn add(&mut self, value: u64) {
        let value = u128::from(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Their mean, and their squared distances from it, added up. There must be some.
    #[expect(clippy::cast_precision_loss, reason = "rounded once, at the end")]
    fn mean_and_squares(&self) -> (f64, f64) {
        let count = u128::from(self.count);
        // Distances from the mean rounded down; what that leaves is the same for all.
        let (mean, rest) = (self.sum / count, (self.sum % count) as f64);
        let squares = (self.squares + count * mean * mean).saturating_sub(2 * mean * self.sum) as f64;
        (self.sum as f64 / count as f64, (squares - rest * rest / count as f64).max(0.0))
    }
}

/// Bandwidths of runs, as parts of what a message has alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bandwidths {
    /// Runs in each of [`Bandwidths::BINS`] bins of the same width over 0 to 1.01, as ORCS has them.
    pub bins: [u64; Self::BINS],
    /// In units of 2^-48.
    moments: Moments,
    range: Option<(f64, f64)>,
}

impl Bandwidths {
    /// How many bins there are.
    pub const BINS: usize = 20;
    const UNIT: f64 = (1u64 << 48) as f64;

    /// Where bin `bin` begins and the one before it ends.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "at most 20")]
    pub const fn edge(bin: usize) -> f64 {
        bin as f64 * (1.01 / Self::BINS as f64)
    }

    /// One run more, with a bandwidth from 0 to 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^48")]
    pub(crate) fn add(&mut self, bandwidth: f64) {
        self.moments.add((bandwidth * Self::UNIT).round() as u64);
        let (min, max) = self.range.unwrap_or((bandwidth, bandwidth));
        self.range = Some((min.min(bandwidth), max.max(bandwidth)));
        if let Some(bin) = (0..Self::BINS).find(|bin| bandwidth < Self::edge(bin + 1)) {
            self.bins[bin] += 1;
        }
    }

    /// The runs of `other`, too.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bins.iter_mut().zip(other.bins).for_each(|(sum, runs)| *sum += runs);
        self.moments.merge(&other.moments);
        if let Some((min, max)) = other.range {
            let (least, most) = self.range.unwrap_or((min, max));
            self.range = Some((least.min(min), most.max(max)));
        }
    }

    /// What they come to; `None` if no run had messages.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let (min, max) = self.range?;
        let (mean, squares) = self.moments.mean_and_squares();
        let squares = squares / (Self::UNIT * Self::UNIT);
        Some(Summary::from_moments(self.moments.count, min, max, mean / Self::UNIT, squares))
    }
}

/// Times of runs, to the nanosecond.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    moments: Moments,
    /// The least and the most.
    range: Option<(u64, u64)>,
}

impl Times {
    /// Longer times count as this one: 13 days.
    const MAX_NS: u64 = 1 << 50;

    /// One run more.
    pub(crate) fn add(&mut self, ps: u64) {
        let ns = (ps / 1_000).min(Self::MAX_NS);
        self.moments.add(ns);
        let (min, max) = self.range.unwrap_or((ns, ns));
        self.range = Some((min.min(ns), max.max(ns)));
    }

    /// The runs of `other`, too.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        if let Some((min, max)) = other.range {
            let (least, most) = self.range.unwrap_or((min, max));
            self.range = Some((least.min(min), most.max(max)));
        }
    }

    /// What they come to in seconds; `None` without runs.
    #[must_use]
    pub fn seconds(&self) -> Option<Summary> {
        let (min, max) = self.range?;
        let (mean, squares) = self.moments.mean_and_squares();
        let seconds = |ns: f64| ns / 1e9;
        let (min, max) = (seconds(float(min)), seconds(float(max)));
        Some(Summary::from_moments(self.moments.count, min, max, seconds(mean), squares / 1e18))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_have_the_moments_of_their_values_in_any_order() {
        let values: Vec<f64> = (1..=1_000u32).map(|n| 1.0 / f64::from(n % 17 + 1)).collect();
        let (mut all, mut parts) = (Bandwidths::default(), [Bandwidths::default(), Bandwidths::default()]);
        for (index, value) in values.iter().enumerate() {
            all.add(*value);
            parts[usize::from(index % 3 == 0)].add(*value);
        }
        let [mut first, second] = parts;
        first.merge(&second);
        assert_eq!(first, all);
        let mean = values.iter().sum::<f64>() / 1e3;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 999.0).sqrt();
        let found = all.summary();
        assert!(found.is_some_and(|found| (found.mean - mean).abs() < 1e-12));
        assert!(found.is_some_and(|found| (found.deviation - deviation).abs() < 1e-12));
        assert_eq!(all.bins.iter().sum::<u64>(), 1_000);
    }

    #[test]
    fn half_are_not_above_the_median() {
        assert_eq!(median(&Histogram::from([(1, 2), (5, 1), (9, 1)])), Some(1));
        assert_eq!(median(&Histogram::from([(1, 2), (5, 2), (9, 1)])), Some(5));
        assert_eq!(median(&Histogram::new()), None);
    }

    #[test]
    fn equal_bandwidths_do_not_deviate() {
        let mut thirds = Bandwidths::default();
        (0..100_000).for_each(|_| thirds.add(1.0 / 3.0));
        assert!(thirds.summary().is_some_and(|found| found.deviation == 0.0 && (found.mean - 1.0 / 3.0).abs() < 1e-14));
        assert_eq!(Bandwidths::default().summary(), None);
    }
}
