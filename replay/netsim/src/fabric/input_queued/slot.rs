//! Places for flits at the ends of links, each with a time.

/// A place for a flit in the ring of a VC at the end of a link. A flit is put there as it leaves for it, with the cycle of its arrival, by which it
/// is told whether it is there; when it goes on, the cycle of that stays behind, by which its sender knows when the credit has come back. A host
/// takes a flit as it arrives.
///
/// Cycles are kept by their last 30 bits: [`Slot::renewed`] now and then sees to it that none is so far away that it would be taken for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

const GONE: u32 = 1 << 31;
const WANTED: u32 = 1 << 30;
const CYCLE: u32 = WANTED - 1;

/// Slots are to be renewed when so many cycles have passed.
pub(super) const RENEWED_EVERY: u64 = 1 << 28;
/// What is further back may be taken for being so far back.
const LONG_AGO: u64 = 1 << 27;

impl Slot {
    /// One in which no flit was yet.
    pub const EMPTY: Self = Self(GONE);

    /// A flit that arrives in a cycle, which may be past.
    #[inline]
    pub const fn coming(cycle: u64) -> Self {
        Self(cycle as u32 & CYCLE)
    }

    /// Its flit has gone on in a cycle.
    #[inline]
    pub const fn gone(cycle: u64) -> Self {
        Self(cycle as u32 & CYCLE | GONE)
    }

    /// The same, whose sender waits for its credit.
    #[inline]
    pub const fn wanted(self) -> Self {
        Self(self.0 | WANTED)
    }

    #[inline]
    pub const fn is_gone(self) -> bool {
        self.0 & GONE != 0
    }

    #[inline]
    pub const fn is_wanted(self) -> bool {
        self.0 & WANTED != 0
    }

    /// How many cycles `cycle` is behind that of the slot.
    #[inline]
    const fn until(self, cycle: u64) -> i32 {
        ((cycle as u32).wrapping_sub(self.0) << 2) as i32 >> 2
    }

    /// Whether the slot's cycle is `cycle` or an earlier one.
    #[inline]
    pub const fn by(self, cycle: u64) -> bool {
        self.until(cycle) >= 0
    }

    /// The slot's cycle; `near` is not far from it.
    #[inline]
    pub const fn cycle(self, near: u64) -> u64 {
        near.wrapping_sub(self.until(near) as u64)
    }

    /// The same in cycle `now`, where the last one before that in which anything happened was `before`.
    pub const fn renewed(self, before: u64, now: u64) -> Self {
        let cycle = self.cycle(before);
        if cycle + LONG_AGO >= now { self } else { Self(self.0 & !CYCLE | (now - LONG_AGO) as u32 & CYCLE) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is past stays past, and what is to come stays so, however much time passes without anything happening.
        #[test]
        fn slots_tell_past_and_future_apart(
            begin in 0..1u64 << 40,
            ahead in 0..1u64 << 23,
            steps in prop::collection::vec(prop_oneof![0..1u64 << 20, 0..1u64 << 34], 1..8),
            gone in any::<bool>(),
            wanted in any::<bool>(),
        ) {
            let cycle = begin + ahead;
            let plain = if gone { Slot::gone(cycle) } else { Slot::coming(cycle) };
            let mut slot = if wanted { plain.wanted() } else { plain };
            let (mut now, mut renewed) = (begin, begin);
            for step in steps {
                prop_assert_eq!(slot.by(now), cycle <= now);
                prop_assert_eq!((slot.is_gone(), slot.is_wanted()), (gone, wanted));
                if cycle + LONG_AGO >= now {
                    prop_assert_eq!(slot.cycle(now), cycle);
                }
                let before = now;
                now += step;
                if now - renewed >= RENEWED_EVERY {
                    (slot, renewed) = (slot.renewed(before, now), now);
                }
            }
            prop_assert_eq!(slot.by(now), cycle <= now);
        }
    }
}
