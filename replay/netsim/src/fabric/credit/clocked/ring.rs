//! What comes in the next cycles: a list for each of them, in place of a queue of events.

use crate::fabric::ids::PacketId;

/// Cycles that are held: what is put in comes less than so many cycles behind the last one that was taken out.
pub(in crate::fabric::credit) const CYCLES: u64 = 64;

/// A queue that has a head: its switch, and its bit among the queues there.
#[derive(Clone, Copy)]
pub(in crate::fabric::credit) struct Head {
    pub switch: u32,
    pub bit: u32,
}

/// A packet of so many flits and credits whose credits come back to the sender of a lane: those of its first flit in this cycle, those of
/// the next ones in the next ones.
#[derive(Clone, Copy)]
pub(in crate::fabric::credit) struct Back {
    pub lane: u32,
    pub flits: u16,
    pub credits: u16,
}

/// What comes in a cycle.
#[derive(Default)]
pub(in crate::fabric::credit) struct Due {
    pub backs: Vec<Back>,
    /// Heads that go on.
    pub heads: Vec<Head>,
    /// Packets that have arrived at their hosts.
    pub arrived: Vec<PacketId>,
    /// Outputs that are free again, or may find their credits.
    pub looks: Vec<u32>,
    /// Lanes that may have room for heads that seek it.
    pub seeks: Vec<u32>,
}

/// What comes in the next [`CYCLES`] cycles.
pub(in crate::fabric::credit) struct Ring {
    /// By cycle modulo [`CYCLES`].
    slots: Box<[Due; CYCLES as usize]>,
    /// Which of them are looked at when their cycle comes, a bit each.
    occupied: u64,
    /// The first cycle that was not taken out.
    begin: u64,
    /// Lists without anything in them, to be used again.
    spare: Due,
}

impl Ring {
    /// Nothing comes.
    pub fn new() -> Self {
        Self { slots: Box::new(std::array::from_fn(|_| Due::default())), occupied: 0, begin: 0, spare: Due::default() }
    }

    /// What comes in `cycle`, to be added to.
    #[inline(always)]
    pub fn at(&mut self, cycle: u64) -> &mut Due {
        let slot = cycle % CYCLES;
        self.occupied |= 1 << slot;
        &mut self.slots[slot as usize]
    }

    /// The next cycle in which something comes.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let turned = self.occupied.rotate_right((self.begin % CYCLES) as u32);
        (turned != 0).then(|| self.begin + u64::from(turned.trailing_zeros()))
    }

    /// Takes out what comes in `cycle`, before which nothing is left.
    pub fn take(&mut self, cycle: u64) -> Due {
        let comes = self.next() == Some(cycle);
        self.begin = cycle + 1;
        if !comes {
            return Due::default();
        }
        let slot = cycle % CYCLES;
        self.occupied &= !(1 << slot);
        std::mem::replace(&mut self.slots[slot as usize], std::mem::take(&mut self.spare))
    }

    /// Gives the lists of what was taken out back, for others.
    pub fn give_back(&mut self, mut due: Due) {
        due.backs.clear();
        due.heads.clear();
        due.arrived.clear();
        due.looks.clear();
        due.seeks.clear();
        self.spare = due;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Each step puts something in so many cycles ahead of the last one, or takes the next cycle out; now and then nothing is left, and
        /// a later cycle begins by itself.
        #[test]
        fn gives_each_cycle_what_was_put_there(steps in prop::collection::vec((0u64..3, 1u64..CYCLES), 1..300)) {
            let mut ring = Ring::new();
            let mut expected = BTreeMap::<u64, Vec<PacketId>>::new();
            let mut now = 0;
            ring.take(now);
            for (number, (what, ahead)) in (0..).zip(steps) {
                if what > 0 {
                    ring.at(now + ahead).arrived.push(PacketId(number));
                    expected.entry(now + ahead).or_default().push(PacketId(number));
                    continue;
                }
                let next = expected.pop_first();
                prop_assert_eq!(ring.next(), next.as_ref().map(|next| next.0));
                let (at, packets) = next.unwrap_or((now + 5 * ahead, Vec::new()));
                now = at;
                let due = ring.take(now);
                prop_assert_eq!(&due.arrived, &packets);
                ring.give_back(due);
            }
        }
    }
}
