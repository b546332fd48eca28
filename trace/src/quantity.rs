//! Durations and sizes as people write them: `200ms`, `1s`, `128MiB`.

use std::time::Duration;

/// Reads a duration: a number and one of `ns`, `us`, `ms`, `s`, `min`, `h`, as in `1s`, `1.5s`, `200ms`.
///
/// # Errors
/// Says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds_per_unit = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("\"{text}\" is no duration: write it as 200ms, 1s or 5min")),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds_per_unit).ok())
        .ok_or_else(|| format!("\"{text}\" is no duration: write it as 200ms, 1s or 5min"))
}

/// Reads a size in bytes: a number, and one of `B`, `kB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB`, `K`, `M`, `G`
/// (powers of 1024), in any case, or nothing (bytes).
///
/// # Errors
/// Says what was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
    ];
    parse_whole(text, &units).ok_or_else(|| format!("\"{text}\" is no size: write it as 4096, 64KiB or 128MiB"))
}

/// Reads a whole or decimal number and one of the units, which are in lower case and read in any case; of what is less than a
/// whole, nothing is left. `None` if it is anything else, or does not fit.
#[must_use]
pub fn parse_whole(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split(text);
    let (_, factor) = units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    let Some((whole, part)) = number.split_once('.') else { return number.parse::<u64>().ok()?.checked_mul(*factor) };
    let digits = u32::try_from(part.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(*factor)?;
    let part = part.parse::<u64>().ok()?.checked_mul(*factor)?;
    whole.checked_add(part / 10u64.pow(digits))
}

/// A size as people write it, rounded up, so that [`parse_bytes`] reads no less: `1023B`, `65KiB`, `3MiB`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    // Two digits at least.
    let unit = units.iter().find(|(unit, _)| bytes / unit >= 10);
    unit.map_or_else(|| format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes.div_ceil(*unit)))
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}
