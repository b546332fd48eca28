//! What will happen, instant by instant.
//!
//! Like [`crate::kernel::EventQueue`] a timing wheel with a heap for what lies beyond, but leaner: what happens in one
//! instant of a `credit` fabric comes to the same in any order, so that entries need no key but their time.

use crate::time::SimTime;
use crate::units::DurationPs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SLOTS: usize = 1 << 12;
const WORDS: usize = SLOTS / 64;
const EMPTY: u32 = u32::MAX;

/// A time, and what happens then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<E> {
    at: SimTime,
    event: E,
}

/// Pending events by their time.
pub(super) struct TimingWheel<E> {
    /// What is left of the slot that is being worked off: the last is the least.
    run: Vec<Entry<E>>,
    /// The lists of later slots, by slot number modulo SLOTS; [`EMPTY`] where there is nothing. Lists that are used again
    /// are those that were in use last, which are still in the cache.
    slots: Vec<u32>,
    lists: Vec<Vec<Entry<E>>>,
    spare: Vec<u32>,
    /// One bit a slot that holds something, and one a word of these.
    occupied: [u64; WORDS],
    occupied_words: u64,
    beyond: BinaryHeap<Reverse<Entry<E>>>,
    /// The number of the slot (time >> shift) that is being worked off.
    cursor: u64,
    shift: u32,
    taken: u64,
}

impl<E: Copy + Ord> TimingWheel<E> {
    /// An empty agenda whose wheel spans `horizon` at least.
    pub fn new(horizon: DurationPs) -> Self {
        let width = (horizon.ps() / (SLOTS as u64 - 2) + 1).clamp(1, 1 << 50).next_power_of_two();
        Self {
            run: Vec::new(),
            slots: vec![EMPTY; SLOTS],
            lists: Vec::new(),
            spare: Vec::new(),
            occupied: [0; WORDS],
            occupied_words: 0,
            beyond: BinaryHeap::new(),
            cursor: 0,
            shift: width.trailing_zeros(),
            taken: 0,
        }
    }

    /// How many events were taken out so far.
    pub const fn processed(&self) -> u64 {
        self.taken
    }

    /// Puts `event` at `at`, later than what was taken out last.
    #[inline]
    pub fn schedule(&mut self, at: SimTime, event: E) {
        let slot = at.0 >> self.shift;
        let entry = Entry { at, event };
        if slot.wrapping_sub(self.cursor + 1) < SLOTS as u64 - 1 {
            self.put(slot, entry);
            if self.run.is_empty() {
                self.settle();
            }
        } else if slot <= self.cursor {
            self.insert(entry);
        } else {
            self.beyond.push(Reverse(entry));
        }
    }

    /// Puts an entry into the run: behind those of its own instant, which can be thousands, so that none of them moves.
    #[inline]
    fn insert(&mut self, entry: Entry<E>) {
        let place = self.run.partition_point(|other| other.at >= entry.at);
        self.run.insert(place, entry);
    }

    #[inline]
    fn put(&mut self, slot: u64, entry: Entry<E>) {
        let index = (slot % SLOTS as u64) as usize;
        let mut list = self.slots[index];
        if list == EMPTY {
            list = self.spare.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                crate::count::count(self.lists.len() - 1)
            });
            self.slots[index] = list;
            self.occupied[index / 64] |= 1 << (index % 64);
            self.occupied_words |= 1 << (index / 64);
        }
        self.lists[list as usize].push(entry);
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        match self.run.last() {
            Some(entry) => Some(entry.at),
            None => self.beyond.peek().map(|Reverse(entry)| entry.at),
        }
    }

    /// Takes out an event of the instant `at`, if there is one and none before it.
    #[inline]
    pub fn pop(&mut self, at: SimTime) -> Option<E> {
        if self.run.is_empty() {
            self.jump();
        }
        let next = self.run.last()?;
        if next.at != at {
            return None;
        }
        let event = next.event;
        self.run.pop();
        self.taken += 1;
        if self.run.is_empty() {
            self.settle();
        }
        Some(event)
    }

    /// Moves on to the next slot that holds something, and takes from the heap what the wheel can hold then.
    fn settle(&mut self) {
        let Some(distance) = self.next_occupied() else { return };
        self.cursor += distance;
        let index = (self.cursor % SLOTS as u64) as usize;
        let list = std::mem::replace(&mut self.slots[index], EMPTY);
        // The run's old, empty list becomes a spare one.
        std::mem::swap(&mut self.run, &mut self.lists[list as usize]);
        self.spare.push(list);
        self.occupied[index / 64] &= !(1 << (index % 64));
        if self.occupied[index / 64] == 0 {
            self.occupied_words &= !(1 << (index / 64));
        }
        if self.run.windows(2).any(|two| two[0].at < two[1].at) {
            self.run.sort_unstable_by_key(|entry| Reverse(entry.at));
        }
        self.pull();
    }

    /// With nothing before the heap, moves on to where that begins.
    fn jump(&mut self) {
        if let Some(Reverse(first)) = self.beyond.peek() {
            self.cursor = first.at.0 >> self.shift;
            self.pull();
        }
    }

    fn pull(&mut self) {
        while let Some(Reverse(first)) = self.beyond.peek() {
            let slot = first.at.0 >> self.shift;
            if slot >= self.cursor + SLOTS as u64 {
                break;
            }
            let Some(Reverse(entry)) = self.beyond.pop() else { break };
            if slot <= self.cursor {
                self.insert(entry);
            } else {
                self.put(slot, entry);
            }
        }
    }

    /// How many slots after the cursor the next one lies that holds something.
    fn next_occupied(&self) -> Option<u64> {
        let start = ((self.cursor + 1) % SLOTS as u64) as usize;
        let word = start / 64;
        let here = self.occupied[word] & (u64::MAX << (start % 64));
        let found = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // The words behind this one, then those before it, then what of this one lies before the start.
            let later = self.occupied_words & (u64::MAX << word << 1);
            let words = if later != 0 { later } else { self.occupied_words };
            if words == 0 {
                return None;
            }
            let word = words.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        Some(((found + SLOTS - start) % SLOTS) as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A step: schedule so far ahead (in bits) of the last instant, or take the next instant.
        #[test]
        fn gives_each_instant_what_was_put_there(
            steps in prop::collection::vec(prop::option::weighted(0.6, (0u32..40, any::<u64>())), 1..400),
            horizon in 0u32..36,
        ) {
            let mut timing_wheel = TimingWheel::new(DurationPs(1 << horizon));
            let mut sorted = std::collections::BTreeMap::<SimTime, Vec<usize>>::new();
            let mut now = SimTime::ZERO;
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Some((bits, ahead)) => {
                        let at = now.plus_ps(1 + (ahead & ((1 << bits) - 1)));
                        timing_wheel.schedule(at, id);
                        sorted.entry(at).or_default().push(id);
                    }
                    None => {
                        let expected = sorted.pop_first();
                        prop_assert_eq!(timing_wheel.next_time(), expected.as_ref().map(|(at, _)| *at));
                        let Some((at, events)) = expected else { continue };
                        prop_assert_eq!(timing_wheel.pop(SimTime(at.0 - 1)), None);
                        let mut got: Vec<usize> = std::iter::from_fn(|| timing_wheel.pop(at)).collect();
                        got.sort_unstable();
                        prop_assert_eq!(got, events);
                        now = at;
                    }
                }
            }
        }
    }
}
