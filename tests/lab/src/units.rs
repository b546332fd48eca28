//! Quantities as people write them on the command line, always with their unit.

use std::fmt;
use std::str::FromStr;

use trace::quantity::parse_whole;

/// The rate of a link, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRate {
    /// Bits per second of Ethernet frames, as `tc` counts (header and payload, no preamble, no checksum).
    Shaped(u64),
    /// As fast as the machine copies.
    Unshaped,
}

impl LinkRate {
    /// Bits per second, `None` = unshaped.
    #[must_use]
    pub const fn bps(self) -> Option<u64> {
        match self {
            Self::Shaped(bps) => Some(bps),
            Self::Unshaped => None,
        }
    }

    /// The narrower of two.
    #[must_use]
    pub fn narrower(self, other: Self) -> Self {
        match (self, other) {
            (Self::Shaped(a), Self::Shaped(b)) => Self::Shaped(a.min(b)),
            (Self::Unshaped, rate) | (rate, Self::Unshaped) => rate,
        }
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unshaped => f.write_str("unshaped"),
            Self::Shaped(bps) if bps.is_multiple_of(1_000_000_000) => {
                write!(f, "{}gbit", bps / 1_000_000_000)
            }
            Self::Shaped(bps) if bps.is_multiple_of(1_000_000) => {
                write!(f, "{}mbit", bps / 1_000_000)
            }
            Self::Shaped(bps) if bps.is_multiple_of(1_000) => write!(f, "{}kbit", bps / 1_000),
            Self::Shaped(bps) => write!(f, "{bps}bit"),
        }
    }
}

/// Rates that a link can be set to: slower ones starve the heartbeats, faster ones the machine cannot shape.
const RATES_BPS: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("unshaped") {
            return Ok(Self::Unshaped);
        }
        let units = [
            ("gbit", 1_000_000_000),
            ("gbps", 1_000_000_000),
            ("mbit", 1_000_000),
            ("mbps", 1_000_000),
            ("kbit", 1_000),
            ("kbps", 1_000),
        ];
        let bps = parse_whole(text, &units)
            .ok_or_else(|| format!("{text:?} is no rate: write 100mbit, 1gbit or unshaped"))?;
        if RATES_BPS.contains(&bps) {
            Ok(Self::Shaped(bps))
        } else {
            Err(format!("{text} is out of range: from 1mbit to 10gbit, or unshaped"))
        }
    }
}

/// An amount of data, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 && n.is_multiple_of(1_000_000_000) => {
                write!(f, "{}GB", n / 1_000_000_000)
            }
            n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => write!(f, "{}MB", n / 1_000_000),
            n if n >= 1_000 && n.is_multiple_of(1_000) => write!(f, "{}KB", n / 1_000),
            n => write!(f, "{n}B"),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [
            ("gib", 1 << 30),
            ("mib", 1 << 20),
            ("kib", 1 << 10),
            ("gb", 1_000_000_000),
            ("mb", 1_000_000),
            ("kb", 1_000),
            ("b", 1),
        ];
        match parse_whole(text, &units) {
            Some(bytes) if bytes > 0 => Ok(Self(bytes)),
            Some(_) => Err(format!("{text} is nothing: write 1KB or more")),
            None => Err(format!("{text:?} is no size: write 128MB (10^6) or 128MiB (2^20)")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn rates_are_read_with_their_unit_only() {
        assert_eq!("100mbit".parse(), Ok(LinkRate::Shaped(100_000_000)));
        assert_eq!("1Gbps".parse(), Ok(LinkRate::Shaped(1_000_000_000)));
        assert_eq!("2.5mbit".parse(), Ok(LinkRate::Shaped(2_500_000)));
        assert_eq!("unshaped".parse(), Ok(LinkRate::Unshaped));
        for bad in ["100", "mbit", "-1mbit", "0mbit", "1e3mbit", "100gbit", "", "1..5mbit"] {
            assert!(bad.parse::<LinkRate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_tell_powers_of_ten_from_powers_of_two() {
        assert_eq!("128MB".parse(), Ok(Bytes(128_000_000)));
        assert_eq!("128MiB".parse(), Ok(Bytes(128 << 20)));
        for bad in ["128", "0MB", "99999999999999GB", "MB", "1.MB"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read_again() {
        for rate in [LinkRate::Unshaped, LinkRate::Shaped(2_500_000), LinkRate::Shaped(50_000_000)] {
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
