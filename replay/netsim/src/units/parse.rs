//! How quantities are written, and what is wrong with those that cannot be read.

use std::fmt;
use thiserror::Error;

/// A quantity that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// No number at the start.
    #[error("\"{value}\" is no {what}: it starts with no number; write it like {examples}")]
    NoNumber {
        /// What was written.
        value: String,
        /// What was expected.
        what: &'static str,
        /// How it may be written.
        examples: &'static str,
    },
    /// A number without a unit.
    #[error("\"{value}\" has no unit; a {what} is written like {examples}")]
    NoUnit {
        /// What was written.
        value: String,
        /// What was expected.
        what: &'static str,
        /// How it may be written.
        examples: &'static str,
    },
    /// A unit that does not measure what is asked for.
    #[error("\"{value}\" is no {what}: unknown unit \"{unit}\"; write it like {examples}")]
    UnknownUnit {
        /// What was written.
        value: String,
        /// The unit that is not known.
        unit: String,
        /// What was expected.
        what: &'static str,
        /// How it may be written.
        examples: &'static str,
    },
    /// More digits than what is kept can hold.
    #[error("\"{value}\" is too fine for a {what}, which is kept in whole {kept}")]
    TooFine {
        /// What was written.
        value: String,
        /// What was expected.
        what: &'static str,
        /// The unit in which it is kept.
        kept: &'static str,
    },
    /// Larger than what is kept can hold.
    #[error("\"{value}\" is too large for a {what}")]
    TooLarge {
        /// What was written.
        value: String,
        /// What was expected.
        what: &'static str,
    },
    /// A rate of zero.
    #[error("\"{value}\": a rate must be above 0; \"unlimited\" is allowed")]
    ZeroRate {
        /// What was written.
        value: String,
    },
}

/// How one kind of quantity is written.
pub(super) struct Kind {
    pub what: &'static str,
    pub examples: &'static str,
    kept: &'static str,
    /// Unit names in lower case, each with its size in the unit that is kept.
    units: &'static [(&'static str, u64)],
}

/// Splits `text` into the digits of a decimal number (as an integer), how many of them stand behind the point, and
/// the unit.
fn split(text: &str) -> Option<(u128, u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.len() > 30 {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let places = u32::try_from(fraction.len()).ok()?;
    Some((digits.parse().ok()?, places, unit.trim()))
}

impl Kind {
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let value = || text.to_owned();
        let (what, examples) = (self.what, self.examples);
        let Some((digits, places, unit)) = split(text.trim()) else {
            return Err(UnitError::NoNumber { value: value(), what, examples });
        };
        if unit.is_empty() {
            return Err(UnitError::NoUnit { value: value(), what, examples });
        }
        let lower = unit.to_lowercase();
        let Some((_, size)) = self.units.iter().find(|(name, _)| *name == lower) else {
            return Err(UnitError::UnknownUnit { value: value(), unit: unit.to_owned(), what, examples });
        };
        let too_large = || UnitError::TooLarge { value: value(), what };
        let scaled = digits.checked_mul(u128::from(*size)).ok_or_else(too_large)?;
        let divisor = 10u128.pow(places);
        if scaled % divisor != 0 {
            return Err(UnitError::TooFine { value: value(), what, kept: self.kept });
        }
        u64::try_from(scaled / divisor).map_err(|_| too_large())
    }

    /// Writes `value` in the largest unit of `names` that divides it.
    pub fn write(&self, value: u64, names: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, size) in names {
            if value != 0 && value.is_multiple_of(*size) {
                return write!(f, "{}{name}", value / size);
            }
        }
        match names.last() {
            Some((name, _)) => write!(f, "{value}{name}"),
            None => write!(f, "{value}"),
        }
    }
}

pub(super) const RATE: Kind = Kind {
    what: "rate",
    examples: "\"10Gbps\", \"100mbit\", \"1250MB/s\", \"1250MiB/s\" or \"unlimited\"",
    kept: "bits per second",
    units: &[
        ("bps", 1),
        ("bit", 1),
        ("bit/s", 1),
        ("kbps", 1_000),
        ("kbit", 1_000),
        ("kbit/s", 1_000),
        ("mbps", 1_000_000),
        ("mbit", 1_000_000),
        ("mbit/s", 1_000_000),
        ("gbps", 1_000_000_000),
        ("gbit", 1_000_000_000),
        ("gbit/s", 1_000_000_000),
        ("tbps", 1_000_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("tbit/s", 1_000_000_000_000),
        ("kb/s", 8_000),
        ("mb/s", 8_000_000),
        ("gb/s", 8_000_000_000),
        ("kib/s", 8 << 10),
        ("mib/s", 8 << 20),
        ("gib/s", 8 << 30),
    ],
};

pub(super) const DURATION: Kind = Kind {
    what: "duration",
    examples: "\"1678ns\", \"0.8ns\", \"20us\", \"753ms\" or \"1s\"",
    kept: "picoseconds",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("µs", 1_000_000),
        ("μs", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
    ],
};

pub(super) const BYTES: Kind = Kind {
    what: "size",
    examples: "\"1500B\", \"64KiB\", \"32kB\" or \"6MB\"",
    kept: "bytes",
    units: &[
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ],
};

pub(super) const LENGTH: Kind = Kind {
    what: "length",
    examples: "\"50m\", \"30cm\" or \"2km\"",
    kept: "millimetres",
    units: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
};

pub(super) const PER_BYTE: Kind = Kind {
    what: "delay per byte",
    examples: "\"1.35ns/B\" or \"4.05ns/3B\"",
    kept: "femtoseconds",
    units: &[("fs", 1), ("ps", 1_000), ("ns", 1_000_000), ("us", 1_000_000_000)],
};

pub(super) const PACKETS: Kind = Kind {
    what: "buffer",
    examples: "\"170 packets\", \"170p\", \"256KiB\" or \"unlimited\"",
    kept: "packets or bytes",
    units: &[("p", 1), ("packet", 1), ("packets", 1)],
};
