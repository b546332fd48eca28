//! What rates, delays and lengths of any fabric may be, wherever they stand in it.
//!
//! Simulated times are 64 bits of picoseconds, 213 days. A run ends at [`SimTime::LATEST`]; these limits see to it that
//! nothing that happens before adds up to a time that does not fit.

use super::FabricError;
use super::figures::MAX_INTERVALS;
use crate::time::SimTime;
use crate::units::{DurationPs, Length, Rate};
use serde::Serialize;
use toml::{Table, Value};

/// At a lower rate one packet of 1,500 B takes minutes: a mistake of a unit.
const MIN_RATE: Rate = Rate::from_bps(1_000);
const MAX_DELAY: DurationPs = DurationPs::from_ms(3_600_000);
/// Light needs 5 s for it.
const MAX_LENGTH: u64 = 1_000_000_000_000;

/// What a key of a fabric holds.
enum Quantity {
    Rate(Rate),
    Delay(DurationPs),
    Length(Length),
}

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let rate = text.parse().ok().map(Self::Rate);
        let rate = rate.or_else(|| text.parse().ok().map(Self::Delay));
        rate.or_else(|| text.parse().ok().map(Self::Length))
    }
}

/// Every key of the fabric that holds a rate, a delay or a length, by its path below `fabric`.
fn quantities(config: &impl Serialize) -> Vec<(String, Quantity)> {
    let mut found = Vec::new();
    if let Ok(Value::Table(table)) = Value::try_from(config) {
        walk(&table, "", &mut found);
    }
    found
}

fn walk(table: &Table, above: &str, found: &mut Vec<(String, Quantity)>) {
    for (key, value) in table {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Value::String(text) => found.extend(Quantity::parse(text).map(|quantity| (path, quantity))),
            Value::Table(inner) => walk(inner, &path, found),
            Value::Array(values) => {
                let tables = values.iter().filter_map(Value::as_table);
                tables.enumerate().for_each(|(index, inner)| walk(inner, &format!("{path}[{index}]"), found));
            }
            _ => {}
        }
    }
}

/// Whether a key says how finely traffic is counted, which delays nothing.
fn is_interval(path: &str) -> bool {
    path.rsplit('.').next() == Some("interval")
}

/// Refuses rates, delays and lengths with which no run comes to its end.
///
/// # Errors
/// The first of them, with its key.
pub fn check(config: &impl Serialize) -> Result<(), FabricError> {
    for (path, quantity) in quantities(config) {
        let (value, allowed) = match quantity {
            Quantity::Rate(rate) if rate < MIN_RATE => (rate.to_string(), "at least 1kbps"),
            Quantity::Delay(_) if is_interval(&path) => continue,
            Quantity::Delay(delay) if delay > MAX_DELAY => (delay.to_string(), "at most 60min"),
            Quantity::Length(length) if length.0 > MAX_LENGTH => (length.to_string(), "at most 1000000km"),
            _ => continue,
        };
        return Err(FabricError::Limit { path, value, allowed });
    }
    Ok(())
}

/// The slowest rate and the longest delay of a fabric, each as `fabric.KEY = VALUE`: what people should look at when a
/// run has no end. None where the fabric has no such key.
#[must_use]
pub fn slowest(config: &impl Serialize) -> (Option<String>, Option<String>) {
    let (mut rate, mut delay) = (None::<(Rate, String)>, None::<(DurationPs, String)>);
    for (path, quantity) in quantities(config) {
        match quantity {
            Quantity::Rate(value) if rate.as_ref().is_none_or(|(least, _)| value < *least) => {
                rate = Some((value, format!("fabric.{path} = {value}")));
            }
            Quantity::Delay(value) if !is_interval(&path) && delay.as_ref().is_none_or(|(most, _)| value > *most) => {
                delay = Some((value, format!("fabric.{path} = {value}")));
            }
            _ => {}
        }
    }
    let not_unlimited = rate.filter(|(rate, _)| *rate != Rate::UNLIMITED).map(|(_, text)| text);
    (not_unlimited, delay.filter(|(delay, _)| delay.ps() > 0).map(|(_, text)| text))
}

/// How long a fabric with this `interval` (0: it has none) may be simulated: each link keeps a number for each interval.
#[must_use]
pub fn latest(interval_ps: u64) -> SimTime {
    if interval_ps == 0 {
        return SimTime::LATEST;
    }
    SimTime(interval_ps.saturating_mul(MAX_INTERVALS)).min(SimTime::LATEST)
}
