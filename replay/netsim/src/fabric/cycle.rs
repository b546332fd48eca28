//! The clock of clocked switches: whole cycles, each as long as a flit on a link.

use crate::fabric::packet::LinkTime;
use crate::time::SimTime;

/// A cycle, counted from the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fabric) struct Cycle(pub u64);

impl Cycle {
    /// None: never.
    pub const NEVER: Self = Self(u64::MAX);

    /// The cycle `cycles` later.
    pub const fn plus(self, cycles: u32) -> Self {
        Self(self.0 + cycles as u64)
    }

    /// When it begins.
    pub fn begins(self, clock: &LinkTime) -> SimTime {
        SimTime(clock.cycle_ps(self.0))
    }

    /// The first cycle that does not begin before `time`.
    pub fn from(time: SimTime, clock: &LinkTime) -> Self {
        let bps = clock.rate.bps().unwrap_or(u64::MAX);
        let begun = match (time.0.checked_mul(bps), u64::from(clock.flit).checked_mul(8_000_000_000_000)) {
            // Mostly 64 bits are enough, and dividing by them is quicker.
            (Some(product), Some(flit)) => product / flit,
            _ => {
                let begun = u128::from(time.0) * u128::from(bps) / (u128::from(clock.flit) * 8_000_000_000_000);
                u64::try_from(begun).unwrap_or(u64::MAX)
            }
        };
        // Begins are rounded down, so that the cycle behind may begin at `time`, too.
        let first = (begun..).take(2).find(|cycle| clock.cycle_ps(*cycle) >= time.0);
        Self(first.unwrap_or(begun.saturating_add(1)))
    }

    /// The last cycle that begins at `time` or before.
    pub fn until(time: SimTime, clock: &LinkTime) -> Self {
        if time == SimTime::MAX {
            return Self(u64::MAX - 1);
        }
        let first = Self::from(time, clock);
        if first.begins(clock) == time { first } else { Self(first.0.saturating_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::units::{Bytes, Rate};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cycles_and_times_agree(rate in 1_000..8_000_000_000_000u64, flit in 1..200u64, time in 0..1u64 << 56) {
            let clock = LinkTime::new(Rate::from_bps(rate), Bytes(flit), Bytes(1), Bytes(0));
            prop_assume!(clock.cycle_ps(1) > 0);
            let first = Cycle::from(SimTime(time), &clock);
            prop_assert!(first.begins(&clock).0 >= time);
            prop_assert!(first.0 == 0 || Cycle(first.0 - 1).begins(&clock).0 < time);
            let last = Cycle::until(SimTime(time), &clock);
            prop_assert!(last.begins(&clock).0 <= time && last.plus(1).begins(&clock).0 > time);
        }
    }
}
