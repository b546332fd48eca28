//! Quantiles of values that are all there.

use crate::sums;

/// Values in order.
#[derive(Clone, Debug, Default)]
pub struct Sorted(Vec<u64>);

impl Sorted {
    /// Of values in any order.
    #[must_use]
    pub fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// The least value that so many percent do not exceed (nearest rank); `None` = there is no value.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let rank = (self.0.len() as u64 * u64::from(percent.min(100))).div_ceil(100).max(1);
        self.0.get(usize::try_from(rank - 1).ok()?).copied()
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.0.last().copied()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        sums::sum(self.0.iter().copied())
    }

    /// In order.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.0
    }
}
