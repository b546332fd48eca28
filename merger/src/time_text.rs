//! Times as people and their tools write them.

use chrono::DateTime;

/// The earliest time that a person is believed to mean, nanoseconds since the epoch: in the year 2001.
const EARLIEST_NS: u64 = 1_000_000_000_000_000_000;
/// The latest one: in the year 2096.
const LATEST_NS: u64 = 4_000_000_000_000_000_000;

/// A time as people write it: seconds since the epoch (also with decimals, or as milliseconds, microseconds or
/// nanoseconds), or a date and time with its distance from UTC. `None` = it is none, or not of this age.
#[must_use]
pub fn time_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let ns = if whole.is_empty() || !digits(whole) || !digits(fraction) {
        let dated = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1).replace(',', ".")).ok()?;
        u64::try_from(dated.timestamp_nanos_opt()?).ok()?
    } else {
        let number: u64 = whole.parse().ok()?;
        // Digits behind the point: as many as say nanoseconds.
        let behind = format!("{:0<9}", fraction.get(..9).unwrap_or(fraction)).parse::<u64>().ok()?;
        match number {
            0..100_000_000_000 => number.saturating_mul(1_000_000_000).saturating_add(behind),
            100_000_000_000..100_000_000_000_000 => number.saturating_mul(1_000_000) + behind / 1_000,
            100_000_000_000_000..100_000_000_000_000_000 => number.saturating_mul(1_000),
            _ => number,
        }
    };
    (EARLIEST_NS..=LATEST_NS).contains(&ns).then_some(ns)
}
