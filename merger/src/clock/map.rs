//! From one clock to another: an offset that grows at a steady rate.

use crate::capture::sense::LATEST_NS;

/// Adds to a time `t` of one clock what makes it a time of another: `offset_ns + rate * (t - at_ns)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockMap {
    /// Time at which the offset is `offset_ns`, nanoseconds since the epoch on the first clock.
    pub at_ns: i64,
    /// What the second clock was ahead then, nanoseconds.
    pub offset_ns: f64,
    /// What it gains, as a share (1e-6 = 1 ppm).
    pub rate: f64,
}

impl ClockMap {
    /// What to add to `t_ns`.
    #[must_use]
    pub fn delta_ns(&self, t_ns: i64) -> f64 {
        self.offset_ns + self.rate * (t_ns.saturating_sub(self.at_ns) as f64)
    }

    /// A time of the first clock on the second one, nanoseconds since the epoch. 0, which stands for "not seen" in
    /// captures, stays 0, and nothing is moved beyond the latest time that is believed.
    #[must_use]
    pub fn apply(&self, t_ns: u64) -> u64 {
        if t_ns == 0 {
            return 0;
        }
        let t = i64::try_from(t_ns).unwrap_or(i64::MAX);
        let moved = t.saturating_add(rounded(self.delta_ns(t)));
        u64::try_from(moved.max(1)).unwrap_or(1).min(LATEST_NS)
    }

    /// First `inner`, then this.
    #[must_use]
    pub fn after(&self, inner: &Self) -> Self {
        let whole = inner.offset_ns.round();
        let rest = inner.offset_ns - whole;
        let between = inner.at_ns.saturating_add(whole as i64);
        Self {
            at_ns: inner.at_ns,
            offset_ns: inner.offset_ns + self.delta_ns(between) + self.rate * rest,
            rate: (1.0 + self.rate) * (1.0 + inner.rate) - 1.0,
        }
    }

    /// From the second clock to the first.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let whole = self.offset_ns.round();
        let rate = 1.0 / (1.0 + self.rate) - 1.0;
        let rest = self.offset_ns - whole;
        Self { at_ns: self.at_ns.saturating_add(whole as i64), offset_ns: -self.offset_ns - rate * rest, rate }
    }
}

/// As `value.round() as i64`, which is a call of a function on processors that may lack an instruction for it.
#[inline]
fn rounded(value: f64) -> i64 {
    /// The largest number below a half: what lies just below a half of one is not rounded away from 0 by it.
    const BELOW_HALF: f64 = 0.5 - f64::EPSILON / 4.0;
    (value + BELOW_HALF.copysign(value)) as i64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_rounded_half_away_from_nothing(
            value in prop_oneof![any::<f64>(), -1e6..1e6f64, (-1000i32..1000).prop_map(|half| f64::from(half) / 2.0)],
            ulps in -1i64..=1,
        ) {
            let value = f64::from_bits((value.to_bits() as i64).wrapping_add(ulps) as u64);
            prop_assert_eq!(rounded(value), value.round() as i64, "{}", value);
        }
    }

    const T: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn there_and_back_is_where_it_was() {
        let map = ClockMap { at_ns: T, offset_ns: 61_234_567_890.25, rate: 48e-6 };
        for t in [T, T + 3_600_000_000_000, T - 5_000_000_000] {
            let round_trip = map.inverse().after(&map);
            assert!(round_trip.delta_ns(t).abs() < 0.01, "{}", round_trip.delta_ns(t));
        }
    }

    #[test]
    fn not_seen_stays_not_seen() {
        assert_eq!(ClockMap { at_ns: T, offset_ns: 5.0, rate: 0.0 }.apply(0), 0);
        assert_eq!(ClockMap { at_ns: T, offset_ns: 5.0, rate: 0.0 }.apply(T as u64), T as u64 + 5);
    }
}
