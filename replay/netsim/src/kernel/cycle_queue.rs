//! Pending things that happen at begins of cycles, one a place: in the order of [`super::EventQueue`], found with less.

use super::queue::{Place, tie};
use crate::time::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cycles ahead for which there are lists, at least and at most.
const MIN_SLOTS: u64 = 64;
const MAX_SLOTS: u64 = 1 << 12;

/// Places that wait for cycles, each for one at a time.
pub(crate) struct CycleQueue {
    cycle_ps: u64,
    /// The present cycle: when it begins, and the places that wait for it, each behind its rank: the last is the first one.
    now: u64,
    begins: SimTime,
    run: Vec<u64>,
    /// Those that wait for the next cycles, by cycle modulo their number, with a bit for each list in which somebody is.
    slots: Vec<Vec<u32>>,
    occupied: Vec<u64>,
    /// Those that wait for later ones.
    beyond: BinaryHeap<Reverse<(u64, u32)>>,
}

impl CycleQueue {
    /// The `first` cycles for which places wait, of `cycle_ps` picoseconds each; mostly they will wait for less than `ahead` cycles.
    pub fn new(cycle_ps: u64, ahead: u64, first: impl Iterator<Item = (u64, Place)>) -> Self {
        let slots = ahead.clamp(MIN_SLOTS, MAX_SLOTS).next_power_of_two();
        let mut queue = Self {
            cycle_ps,
            // The one before the first.
            now: u64::MAX,
            begins: SimTime::ZERO,
            run: Vec::new(),
            slots: (0..slots).map(|_| Vec::new()).collect(),
            occupied: vec![0; (slots / 64) as usize],
            beyond: BinaryHeap::new(),
        };
        for (cycle, place) in first {
            if cycle < queue.mask() { queue.put(cycle, place.0) } else { queue.beyond.push(Reverse((cycle, place.0))) }
        }
        queue
    }

    #[inline]
    const fn mask(&self) -> u64 {
        self.slots.len() as u64 - 1
    }

    /// `place`, which waits for no cycle, waits for `cycle`, not before the present one.
    #[inline]
    pub fn schedule(&mut self, cycle: u64, place: Place) {
        let ahead = cycle.wrapping_sub(self.now);
        if ahead.wrapping_sub(1) < self.mask() {
            self.put(cycle, place.0);
        } else if ahead == 0 {
            let entry = rank(self.begins, place.0);
            let at = self.run.partition_point(|other| *other > entry);
            self.run.insert(at, entry);
        } else {
            self.beyond.push(Reverse((cycle, place.0)));
        }
    }

    #[inline]
    fn put(&mut self, cycle: u64, place: u32) {
        let slot = (cycle & self.mask()) as usize;
        self.slots[slot].push(place);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// When the next one comes.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        if self.run.is_empty() { Some(self.begin_of(self.next_cycle()?)) } else { Some(self.begins) }
    }

    /// Takes out the next one if it does not come later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: SimTime) -> Option<Place> {
        if self.run.is_empty() {
            let cycle = self.next_cycle()?;
            if self.begin_of(cycle) > until {
                return None;
            }
            self.turn_to(cycle);
        }
        if self.begins > until {
            return None;
        }
        self.run.pop().map(|entry| Place(entry as u32))
    }

    #[inline]
    const fn begin_of(&self, cycle: u64) -> SimTime {
        SimTime(cycle.saturating_mul(self.cycle_ps))
    }

    /// The next cycle, behind the present one, for which somebody waits.
    #[inline]
    fn next_cycle(&self) -> Option<u64> {
        self.next_occupied().or_else(|| self.beyond.peek().map(|Reverse((cycle, _))| *cycle))
    }

    /// Makes `cycle`, the next one for which somebody waits, the present one.
    fn turn_to(&mut self, cycle: u64) {
        (self.now, self.begins) = (cycle, self.begin_of(cycle));
        // Less than a round ahead now.
        while let Some(Reverse((cycle, place))) = self.beyond.peek().copied()
            && cycle - self.now <= self.mask()
        {
            self.beyond.pop();
            self.put(cycle, place);
        }
        let slot = (cycle & self.mask()) as usize;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let begins = self.begins;
        self.run.extend(self.slots[slot].drain(..).map(|place| rank(begins, place)));
        self.run.sort_unstable_by_key(|entry| Reverse(*entry));
    }

    /// The next cycle with a list in which somebody is.
    fn next_occupied(&self) -> Option<u64> {
        let first = self.now.wrapping_add(1);
        let start = (first & self.mask()) as usize;
        let words = self.occupied.len();
        let in_word = |word: usize, mask: u64| {
            let bits = self.occupied[word] & mask;
            (bits != 0).then(|| (word * 64) as u64 + u64::from(bits.trailing_zeros()))
        };
        let here = u64::MAX << (start % 64);
        let behind = (1..words).map(|step| (start / 64 + step) % words);
        let found = in_word(start / 64, here)
            .or_else(|| behind.map(|word| in_word(word, u64::MAX)).find_map(|found| found))
            .or_else(|| in_word(start / 64, !here))?;
        Some(first + (found.wrapping_sub(start as u64) & self.mask()))
    }
}

/// A place behind its rank among those that meet at `time`.
#[inline]
const fn rank(time: SimTime, place: u32) -> u64 {
    tie(time, Place(place)) << 32 | place as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::kernel::{EventQueue, Phase};
    use proptest::prelude::*;

    const CYCLE_PS: u64 = 700;

    proptest! {
        /// Each place waits again so many cycles after it was taken out, as long as there are gaps left.
        #[test]
        fn gives_what_the_event_queue_gives(
            starts in prop::collection::vec(0u64..300, 1..30),
            gaps in prop::collection::vec((0u32..14, any::<u64>()), 0..300),
        ) {
            let first = (0..).zip(&starts).map(|(place, cycle)| (*cycle, Place(place)));
            let (mut cycles, mut events) = (CycleQueue::new(CYCLE_PS, 1, first), EventQueue::new(1 << 20));
            for (place, cycle) in (0..).zip(starts) {
                events.schedule(SimTime(cycle * CYCLE_PS), Phase::Arrive, Place(place), place);
            }
            let mut gaps = gaps.into_iter();
            while let Some((at, place)) = events.pop_until(SimTime::MAX) {
                prop_assert_eq!(cycles.next_time(), Some(at));
                if let Some(before) = at.0.checked_sub(1) {
                    prop_assert_eq!(cycles.pop_until(SimTime(before)), None);
                }
                prop_assert_eq!(cycles.pop_until(at), Some(Place(place)));
                if let Some((bits, gap)) = gaps.next() {
                    let cycle = at.0 / CYCLE_PS + 1 + (gap & ((1 << bits) - 1));
                    cycles.schedule(cycle, Place(place));
                    events.schedule(SimTime(cycle * CYCLE_PS), Phase::Arrive, Place(place), place);
                }
            }
            prop_assert_eq!(cycles.next_time(), None);
        }
    }
}
