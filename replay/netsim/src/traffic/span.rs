//! A length of time, as the keys of `[traffic]` have it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::DurationPs;

/// A time, or a number of flit times of the host link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A time.
    Time(DurationPs),
    /// So many flit times.
    Cycles(u64),
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if let Some(number) = trimmed.strip_suffix("cycles").or_else(|| trimmed.strip_suffix("cycle")) {
            return number.trim().replace('_', "").parse().map(Self::Cycles).map_err(|_| {
                format!("\"{text}\" is no number of cycles; write it like \"5000 cycles\", or a time like \"20us\"")
            });
        }
        trimmed.parse().map(Self::Time).map_err(|error: crate::units::UnitError| format!("{error}, or \"5000 cycles\""))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Cycles(cycles) => write!(f, "{cycles} cycles"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, like \"20us\", or a number of flit times, like \"5000 cycles\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Span, E> {
                Err(E::custom(format!("\"{number}\" has no unit; write \"{number} cycles\", or a time like \"20us\"")))
            }
        }
        deserializer.deserialize_any(Text)
    }
}
