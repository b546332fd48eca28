//! Values of swept keys as numbers.

use std::str::FromStr;

use netsim::units::{Bytes, DurationPs, Length, Rate};

/// The values as numbers, rates, times, sizes or lengths, where all are of one of these kinds.
pub(crate) fn quantities(values: &[String]) -> Option<Vec<f64>> {
    fn all(values: &[String], of: impl Fn(&str) -> Option<f64>) -> Option<Vec<f64>> {
        values.iter().map(|text| of(text)).collect()
    }
    #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
    fn quantity<T: FromStr>(text: &str, of: fn(T) -> Option<u64>) -> Option<f64> {
        of(text.parse().ok()?).map(|value| value as f64)
    }
    all(values, |text| text.parse().ok().filter(|value: &f64| value.is_finite()))
        .or_else(|| all(values, |text| quantity(text, Rate::bps)))
        .or_else(|| all(values, |text| quantity(text, |time: DurationPs| Some(time.ps()))))
        .or_else(|| all(values, |text| quantity(text, |size: Bytes| Some(size.get()))))
        .or_else(|| all(values, |text| quantity(text, |length: Length| Some(length.0))))
}
