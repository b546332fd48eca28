//! How times are distributed: mean, standard deviation and extremes exactly, percentiles from buckets.

use serde::{Deserialize, Serialize};

use super::{float, wide};

/// Buckets of a power of two: a bucket is at most 1/256 of its values wide.
const BITS: u32 = 8;
const HALF: usize = 1 << BITS;

/// A distribution of whole numbers in bounded memory (at most 116 KiB): numbers below 512 exactly, larger ones in 256
/// buckets for each power of two, so that a percentile is off by less than 0.2%.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Histogram {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
    buckets: Vec<u64>,
}

/// A histogram as a file has it.
#[derive(Deserialize)]
struct Written {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
    buckets: Vec<u64>,
}

impl TryFrom<Written> for Histogram {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { count, sum, squares, min, max, buckets } = written;
        let counted = buckets.iter().try_fold(0u64, |all, bucket| all.checked_add(*bucket));
        if counted != Some(count) || min > max || buckets.len() > bucket_of(u64::MAX) + 1 {
            return Err("the buckets of a histogram contradict its count, least or largest number");
        }
        Ok(Self { count, sum, squares, min, max, buckets })
    }
}

/// A number that several histograms count.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    value: u64,
    square: u128,
    bucket: usize,
}

impl Sample {
    #[inline]
    pub fn new(value: u64) -> Self {
        Self { value, square: u128::from(value) * u128::from(value), bucket: bucket_of(value) }
    }
}

impl Histogram {
    /// Counts a number.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.take(&Sample::new(value));
    }

    /// The same of one that others count, too.
    #[inline]
    pub(super) fn take(&mut self, sample: &Sample) {
        let Sample { value, square, bucket } = *sample;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        // 2^64 numbers below 2^64 fit.
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(value.into());
        self.squares = self.squares.saturating_add(square);
        match self.buckets.get_mut(bucket) {
            Some(count) => *count = count.wrapping_add(1),
            None => self.grow(bucket),
        }
    }

    /// Counts a number so often.
    fn record_times(&mut self, value: u64, times: u64) {
        let mut one = Self::default();
        one.record(value);
        let of_all = |of_one: u128| of_one.saturating_mul(times.into());
        one.buckets[bucket_of(value)] = times;
        self.add(&Self { count: times, sum: of_all(one.sum), squares: of_all(one.squares), ..one });
    }

    /// Counts the first number of a bucket above all that there were.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.buckets.resize(bucket + 1, 0);
        self.buckets[bucket] = 1;
    }

    /// Counts all numbers of another one.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// How many numbers were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The least of them; 0 without any.
    #[must_use]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// The largest of them; 0 without any.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| wide(self.sum) / float(self.count))
    }

    /// Their standard deviation, that of a sample; 0 for a single number.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        if self.count < 2 {
            return Some(0.0);
        }
        let squares = wide(self.squares) - mean * mean * float(self.count);
        Some((squares.max(0.0) / float(self.count - 1)).sqrt())
    }

    /// The number that a share `quantile` of them does not exceed: the middle of its bucket.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the count")]
        let rank = ((quantile * float(self.count)).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let (low, width) = range_of(bucket);
                let middle = float(low) + (float(width) - 1.0) / 2.0;
                return Some(middle.clamp(float(self.min), float(self.max)));
            }
        }
        Some(float(self.max))
    }

    /// The buckets that hold something: the least number of each, its width, and how many numbers it holds.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.buckets.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| {
            let (low, width) = range_of(bucket);
            (low, width, *count)
        })
    }
}

/// A distribution of numbers that are small as a rule: those below 512 have a counter each, and nothing else.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallCounts {
    /// By number.
    counts: Vec<u64>,
    others: Histogram,
}

impl SmallCounts {
    /// Counts a number.
    #[inline]
    pub fn record(&mut self, value: u32) {
        match self.counts.get_mut(value as usize) {
            Some(count) => *count = count.wrapping_add(1),
            None => self.record_first(value),
        }
    }

    /// Counts a number above all that there were.
    #[cold]
    fn record_first(&mut self, value: u32) {
        if value as usize >= 2 * HALF {
            return self.others.record(value.into());
        }
        self.counts.resize(value as usize + 1, 0);
        self.counts[value as usize] = 1;
    }

    /// Counts all numbers of another one.
    pub fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.others.add(&other.others);
    }

    /// All numbers.
    pub fn histogram(&self) -> Histogram {
        let mut all = self.others.clone();
        let counted = (0..).zip(&self.counts).filter(|(_, times)| **times > 0);
        counted.for_each(|(value, times)| all.record_times(value, *times));
        all
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    if value < 2 * HALF as u64 {
        return usize::try_from(value).unwrap_or(0);
    }
    let shift = 63 - BITS - value.leading_zeros();
    let place = usize::try_from(value >> shift).unwrap_or(0);
    shift as usize * HALF + place
}

/// The least number of a bucket, and how many numbers fall into it.
fn range_of(bucket: usize) -> (u64, u64) {
    if bucket < 2 * HALF {
        return (bucket as u64, 1);
    }
    let shift = bucket / HALF - 1;
    let place = bucket - shift * HALF;
    ((place as u64) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let last = bucket_of(u64::MAX);
        let mut expected = 0u64;
        for bucket in 0..=last {
            let (low, width) = range_of(bucket);
            assert_eq!(low, expected, "bucket {bucket}");
            assert_eq!((bucket_of(low), bucket_of(low + (width - 1))), (bucket, bucket));
            expected = low.wrapping_add(width);
        }
        assert_eq!(expected, 0, "the last bucket ends with the last number");
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_numbers(mut values in prop::collection::vec(0u64..1 << 40, 1..400)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            for quantile in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
                let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let (exact, found) = (values[rank - 1] as f64, histogram.quantile(quantile).unwrap());
                prop_assert!((found - exact).abs() <= exact / 500.0, "{quantile}: {found} for {exact}");
            }
            let mean = values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((histogram.mean().unwrap() - mean).abs() <= mean * 1e-12);
        }

        #[test]
        fn small_numbers_are_counted_as_others_are(
            values in prop::collection::vec(prop_oneof![0u32..20, 500u32..530, any::<u32>()], 0..200),
            cut in 0usize..200,
        ) {
            let cut = cut.min(values.len());
            let (mut plain, mut first, mut second) = (Histogram::default(), SmallCounts::default(), SmallCounts::default());
            values.iter().for_each(|value| plain.record(u64::from(*value)));
            values[..cut].iter().for_each(|value| first.record(*value));
            values[cut..].iter().for_each(|value| second.record(*value));
            first.add(&second);
            prop_assert_eq!(first.histogram(), plain);
        }

        #[test]
        fn halves_add_up_to_the_whole(values in prop::collection::vec(any::<u64>(), 0..200), cut in 0usize..200) {
            let cut = cut.min(values.len());
            let of = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|value| histogram.record(*value));
                histogram
            };
            let mut sum = of(&values[..cut]);
            sum.add(&of(&values[cut..]));
            prop_assert_eq!(sum, of(&values));
        }
    }
}
