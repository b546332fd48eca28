//! Numbers for people.

/// Seconds with three or four digits that matter: "48.97 s", "12.3 ms", "56 µs".
#[must_use]
pub fn seconds(value: f64) -> String {
    let size = value.abs();
    if size >= 1_000.0 {
        format!("{value:.0} s")
    } else if size >= 100.0 {
        format!("{value:.1} s")
    } else if size >= 1.0 {
        format!("{value:.2} s")
    } else if size >= 1e-3 {
        format!("{:.1} ms", value * 1e3)
    } else if size >= 1e-6 {
        format!("{:.0} µs", value * 1e6)
    } else if size >= 1e-9 {
        format!("{:.0} ns", value * 1e9)
    } else if size > 0.0 {
        "< 1 ns".to_owned()
    } else {
        "0 s".to_owned()
    }
}

/// Seconds, or a dash.
#[must_use]
pub fn maybe_seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), seconds)
}

/// A share as a signed percentage: "+3.1%"; what is rounded to nothing has no sign.
fn signed_percent(value: f64) -> String {
    let text = format!("{:+.1}%", value * 100.0);
    if text == "-0.0%" || text == "+0.0%" { "0.0%".to_owned() } else { text }
}

/// A change as a signed percentage: "+3.1%"; factors from 10 on as "×12".
#[must_use]
pub fn change(value: f64) -> String {
    if value >= 9.0 { format!("×{:.0}", value + 1.0) } else { signed_percent(value).replace('-', "−") }
}

/// A change, or a dash.
#[must_use]
pub fn maybe_change(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), change)
}

/// A share as a percentage.
#[must_use]
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent > 0.0 && percent < 0.1 { "< 0.1%".to_owned() } else { format!("{percent:.1}%") }
}

/// A count with thin spaces between thousands.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Bytes in decimal units.
#[must_use]
pub fn bytes(value: u64) -> String {
    scaled(value, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")], "B")
}

/// A rate; 0 = none.
#[must_use]
pub fn rate(bps: u64) -> String {
    if bps == 0 {
        return "–".to_owned();
    }
    scaled(bps, &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")], "bit/s")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn scaled(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    for (size, unit) in units {
        if value >= *size {
            let number = value as f64 / *size as f64;
            return if number >= 100.0 || number.fract() < 0.005 {
                format!("{number:.0} {unit}")
            } else {
                format!("{number:.1} {unit}")
            };
        }
    }
    format!("{value} {smallest}")
}

/// A position in percent, short.
#[must_use]
pub fn percent_of(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { (part / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    format!("{percent:.3}%")
}

/// Ticks of a time axis from 0 to `end`: at most about `most` of them, at round numbers.
#[must_use]
pub fn ticks(end: f64, most: f64) -> Vec<f64> {
    if end.is_nan() || end <= 0.0 || !end.is_finite() {
        return vec![0.0];
    }
    let raw = end / most;
    let power = libm::pow(10.0, libm::log10(raw).floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= raw);
    let step = step.unwrap_or(10.0 * power);
    let mut ticks = Vec::new();
    let mut tick = 0.0;
    while tick <= end * 1.000_1 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}

/// A tick's label.
#[must_use]
pub fn tick(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value < 1.0 {
        format!("{} ms", (value * 1e3).round())
    } else {
        format!("{} s", (value * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, change, count, rate, seconds, ticks};

    #[test]
    fn numbers_read_well() {
        assert_eq!(seconds(48.971), "48.97 s");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(0.000_056), "56 µs");
        assert_eq!(seconds(0.000_000_3), "300 ns");
        assert_eq!(seconds(1e-12), "< 1 ns");
        assert_eq!(change(-0.000_04), "0.0%");
        assert_eq!(change(0.0), "0.0%");
        assert_eq!(change(0.031), "+3.1%");
        assert_eq!(change(-0.5), "−50.0%");
        assert_eq!(change(11.2), "×12");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(bytes(134_000_000), "134 MB");
        assert_eq!(rate(100_000_000), "100 Mbit/s");
        assert_eq!(rate(0), "–");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(48.0, 6.0), vec![0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(0.0, 6.0), vec![0.0]);
        assert!(ticks(1e9, 6.0).len() <= 8);
    }
}
