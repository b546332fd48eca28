//! Sums of numbers that a damaged trace may have: they end at the largest number.

/// Adds to a sum.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The sum of all.
pub(crate) fn sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}
