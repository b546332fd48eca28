//! Quantities with units, as configuration files write them.
//!
//! | type | written as | kept as |
//! |---|---|---|
//! | [`Rate`] | `10Gbps`, `100mbit`, `2.5Gbit/s`, `1250MB/s`, `1250MiB/s`, `unlimited` | bits per second |
//! | [`DurationPs`] | `1678ns`, `0.8ns`, `20us`, `753ms`, `1s`, `2min` | picoseconds |
//! | [`PerByte`] | `1.35ns/B`, `4.05ns/3B` | femtoseconds per byte |
//! | [`Bytes`] | `80B`, `1500B`, `64KiB`, `32kB`, `6MB` | bytes |
//! | [`Length`] | `50m`, `30cm`, `2km` | millimetres |
//! | [`Buffer`] | `170 packets`, `170p`, `256KiB`, `unlimited` | packets or bytes |
//!
//! A number without a unit is an error, for nobody can see afterwards what was meant. Fractions are exact: a value
//! that is no whole number of the unit in which it is kept is an error too. Units of rates are decimal (k = 1000);
//! sizes tell `kB` (1000) from `KiB` (1024). Upper and lower case are the same but for `b` and `B`: `Mb/s` are bits,
//! `MB/s` are bytes, and a size in `b` is refused.

mod parse;

use parse::{BYTES, DURATION, Kind, LENGTH, PACKETS, PER_BYTE, RATE};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Add;
use std::str::FromStr;

pub use parse::UnitError;

/// A rate in bits per second; never 0. [`Rate::UNLIMITED`] takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Bits times picoseconds per second of one byte.
const BYTE_PS: u64 = 8_000_000_000_000;

impl Rate {
    /// No limit: everything takes no time.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// A rate of `bps` bits per second; 0 is taken for unlimited.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        if bps == 0 { Self::UNLIMITED } else { Self(bps) }
    }

    /// Bits per second; `None` when unlimited.
    #[must_use]
    pub const fn bps(self) -> Option<u64> {
        if self.0 == u64::MAX { None } else { Some(self.0) }
    }

    /// Picoseconds that `bytes` take at this rate, rounded down; at most `u64::MAX`.
    #[must_use]
    pub fn time_ps(self, bytes: u64) -> u64 {
        if self.0 == u64::MAX {
            0
        } else if bytes <= u64::MAX / BYTE_PS {
            bytes * BYTE_PS / self.0
        } else {
            let wide = u128::from(bytes) * u128::from(BYTE_PS) / u128::from(self.0);
            u64::try_from(wide).unwrap_or(u64::MAX)
        }
    }

    /// Picoseconds that `bytes` take at this rate when they follow others without a gap: `remainder` carries what those
    /// left of a picosecond, so that k packets take floor(k x bits / rate) together and nothing accumulates. Set it to 0
    /// when the link was idle.
    #[must_use]
    pub fn next_time_ps(self, bytes: u32, remainder: &mut u64) -> u64 {
        if self.0 == u64::MAX {
            return 0;
        }
        // Only packets of more than 2 MB do not fit; such a one loses less than a picosecond.
        match u64::from(bytes).checked_mul(BYTE_PS).and_then(|bits| bits.checked_add(*remainder)) {
            Some(bits) => {
                *remainder = bits % self.0;
                bits / self.0
            }
            None => {
                *remainder = 0;
                self.time_ps(bytes.into())
            }
        }
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "unlimited" {
            return Ok(Self::UNLIMITED);
        }
        // "Mb/s" means bits, "MB/s" and "MiB/s" bytes: the one place where case tells units apart.
        match RATE.parse(&text.replace("b/s", "bps"))? {
            0 => Err(UnitError::ZeroRate { value: text.to_owned() }),
            bps => Ok(Self(bps)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX {
            return f.write_str("unlimited");
        }
        let names = [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];
        RATE.write(self.0, &names, f)
    }
}

/// A duration in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationPs(pub u64);

impl DurationPs {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// `us` microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// The picoseconds.
    #[must_use]
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }
}

impl Add for DurationPs {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl FromStr for DurationPs {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        DURATION.parse(text).map(Self)
    }
}

impl fmt::Display for DurationPs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
        DURATION.write(self.0, &names, f)
    }
}

/// A delay per byte, in femtoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerByte(u64);

impl PerByte {
    /// `ps` picoseconds per byte.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps * 1_000)
    }

    /// A third of `three`: the delay per byte of a delay that is given per 3 bytes.
    #[must_use]
    pub const fn from_three_bytes(three: DurationPs) -> Self {
        Self(three.0.saturating_mul(1_000) / 3)
    }

    /// Femtoseconds per byte.
    #[must_use]
    pub const fn fs(self) -> u64 {
        self.0
    }

    /// Picoseconds for `bytes`, rounded down; at most `u64::MAX`.
    #[must_use]
    pub fn time_ps(self, bytes: u64) -> u64 {
        let wide = u128::from(self.0) * u128::from(bytes) / 1_000;
        u64::try_from(wide).unwrap_or(u64::MAX)
    }
}

impl FromStr for PerByte {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (what, examples) = (PER_BYTE.what, PER_BYTE.examples);
        let Some((delay, size)) = text.trim().split_once('/') else {
            return Err(UnitError::NoUnit { value: text.to_owned(), what, examples });
        };
        let bytes = match size.trim() {
            "B" => 1,
            other => other.parse::<Bytes>().map(Bytes::get).map_err(|_| UnitError::UnknownUnit {
                value: text.to_owned(),
                unit: format!("/{other}"),
                what,
                examples,
            })?,
        };
        let femtos = PER_BYTE.parse(delay)?;
        if bytes == 0 || femtos % bytes != 0 {
            return Err(UnitError::TooFine { value: text.to_owned(), what, kept: "femtoseconds per byte" });
        }
        Ok(Self(femtos / bytes))
    }
}

impl fmt::Display for PerByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [("ns/B", 1_000_000), ("ps/B", 1_000), ("fs/B", 1)];
        PER_BYTE.write(self.0, &names, f)
    }
}

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The bytes.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        if unit.contains('b') {
            let (value, unit) = (text.to_owned(), unit.to_owned());
            return Err(UnitError::UnknownUnit { value, unit, what: BYTES.what, examples: BYTES.examples });
        }
        BYTES.parse(text).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BYTES.write(self.0, &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)], f)
    }
}

/// A length in millimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(pub u64);

impl Length {
    /// The time that light needs through so much fibre, at 5 ns a metre (the deliverable's `CableDelay`, which it
    /// calls the speed of the lasers).
    #[must_use]
    pub const fn light_time(self) -> DurationPs {
        DurationPs(self.0.saturating_mul(5))
    }
}

impl FromStr for Length {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        LENGTH.parse(text).map(Self)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LENGTH.write(self.0, &[("m", 1_000), ("mm", 1)], f)
    }
}

/// How much may wait in front of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// At most so many packets.
    Packets(u32),
    /// At most so many bytes.
    Bytes(u64),
    /// Whatever comes.
    Unlimited,
}

impl FromStr for Buffer {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        match PACKETS.parse(text) {
            Ok(packets) => u32::try_from(packets)
                .map(Self::Packets)
                .map_err(|_| UnitError::TooLarge { value: text.to_owned(), what: PACKETS.what }),
            Err(as_packets) => text.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.0)).map_err(|_| as_packets),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Reads a quantity from a string and refuses a bare number with the unit's error.
struct Quantity<T>(&'static Kind, std::marker::PhantomData<T>);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} with its unit, like {}", self.0.what, self.0.examples)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        Err(self.no_unit(&number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        Err(self.no_unit(&number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        Err(self.no_unit(&number))
    }
}

impl<T> Quantity<T> {
    fn no_unit<E: serde::de::Error>(&self, number: &dyn fmt::Display) -> E {
        E::custom(UnitError::NoUnit { value: number.to_string(), what: self.0.what, examples: self.0.examples })
    }
}

macro_rules! quantity_in_strings {
    ($($type:ty => $kind:expr),* $(,)?) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Quantity::<Self>(&$kind, std::marker::PhantomData)).map_err(D::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

quantity_in_strings! {
    Rate => RATE,
    DurationPs => DURATION,
    PerByte => PER_BYTE,
    Bytes => BYTES,
    Length => LENGTH,
    Buffer => PACKETS,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_configurations_write() {
        assert_eq!("10Gbps".parse::<Rate>().unwrap().bps(), Some(10_000_000_000));
        assert_eq!("100mbit".parse::<Rate>().unwrap().bps(), Some(100_000_000));
        assert_eq!("2.46 Gbit/s".parse::<Rate>().unwrap().bps(), Some(2_460_000_000));
        assert_eq!("1250MB/s".parse::<Rate>().unwrap().bps(), Some(10_000_000_000));
        assert_eq!("250MiB/s".parse::<Rate>().unwrap().bps(), Some(250 * (8 << 20)));
        assert_eq!("100Mb/s".parse::<Rate>().unwrap(), "100mbit".parse().unwrap());
        assert_eq!("unlimited".parse::<Rate>().unwrap(), Rate::UNLIMITED);
        assert_eq!("1678ns".parse::<DurationPs>().unwrap(), DurationPs(1_678_000));
        assert_eq!("0.8ns".parse::<DurationPs>().unwrap(), DurationPs(800));
        assert_eq!("753ms".parse::<DurationPs>().unwrap(), DurationPs(753_000_000_000));
        assert_eq!("1.35ns/B".parse::<PerByte>().unwrap(), "4.05ns/3B".parse().unwrap());
        assert_eq!("1.35ns/B".parse::<PerByte>().unwrap().time_ps(1_500), 2_025_000);
        assert_eq!("64KiB".parse::<Bytes>().unwrap(), Bytes(65_536));
        assert_eq!("32kB".parse::<Bytes>().unwrap(), Bytes(32_000));
        assert_eq!("50m".parse::<Length>().unwrap().light_time(), DurationPs::from_ns(250));
        assert_eq!("170 packets".parse::<Buffer>().unwrap(), Buffer::Packets(170));
        assert_eq!("256KiB".parse::<Buffer>().unwrap(), Buffer::Bytes(262_144));
        assert_eq!("unlimited".parse::<Buffer>().unwrap(), Buffer::Unlimited);
    }

    #[test]
    fn refuses_with_the_value_and_what_is_allowed() {
        let wrong: [(Result<u64, UnitError>, &str); 10] = [
            ("100".parse::<Rate>().map(|_| 0), "\"100\" has no unit"),
            ("0bps".parse::<Rate>().map(|_| 0), "above 0"),
            ("-5Gbps".parse::<Rate>().map(|_| 0), "\"-5Gbps\" is no rate"),
            ("5furlongs".parse::<Rate>().map(|_| 0), "unknown unit \"furlongs\""),
            ("0.3ps".parse::<DurationPs>().map(|_| 0), "too fine"),
            ("999999999999min".parse::<DurationPs>().map(|_| 0), "too large"),
            ("1.35ns".parse::<PerByte>().map(|_| 0), "no unit"),
            ("5kb".parse::<Bytes>().map(|_| 0), "unknown unit \"kb\""),
            ("1..5B".parse::<Bytes>().map(|_| 0), "no number"),
            ("3 elephants".parse::<Buffer>().map(|_| 0), "170 packets"),
        ];
        for (result, part) in wrong {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(part), "{message} does not say {part}");
        }
    }

    #[test]
    fn a_bare_number_in_toml_is_an_error_that_names_it() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Link {
            rate: Rate,
        }
        let error = toml::from_str::<Link>("rate = 100").unwrap_err().to_string();
        assert!(error.contains("\"100\" has no unit"), "{error}");
        assert!(error.contains("10Gbps"), "{error}");
    }

    #[test]
    fn packets_without_gaps_lose_no_part_of_a_picosecond() {
        let rate = Rate::from_bps(7_000_000_001);
        let mut remainder = 0;
        let together: u64 = (0..1_000).map(|_| rate.next_time_ps(1_514, &mut remainder)).sum();
        assert_eq!(together, rate.time_ps(1_514_000));
        assert_ne!(together, 1_000 * rate.time_ps(1_514));
    }

    #[test]
    fn time_of_bytes_is_exact() {
        let rate = Rate::from_bps(100_000_000);
        assert_eq!(rate.time_ps(1_514), 121_120_000);
        assert_eq!(Rate::from_bps(3).time_ps(1), 2_666_666_666_666);
        assert_eq!(rate.time_ps(1 << 40), (1u64 << 40) * 80_000);
        assert_eq!(Rate::UNLIMITED.time_ps(u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in 1u64..u64::MAX) {
            prop_assert_eq!(Rate(value).to_string().parse::<Rate>().unwrap(), Rate(value));
            prop_assert_eq!(DurationPs(value).to_string().parse::<DurationPs>().unwrap(), DurationPs(value));
            prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
            prop_assert_eq!(Length(value).to_string().parse::<Length>().unwrap(), Length(value));
            prop_assert_eq!(PerByte(value).to_string().parse::<PerByte>().unwrap(), PerByte(value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<DurationPs>();
            let _ = text.parse::<PerByte>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Length>();
            let _ = text.parse::<Buffer>();
        }
    }
}
