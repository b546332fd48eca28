//! A timing wheel: what lies ahead, slot of time by slot of time, and a heap for what lies beyond the last slot.
//!
//! It does best when it spans what events are usually scheduled ahead (link and serialisation times): then scheduling is
//! appending to a slot's list, whatever the number that is pending. The slot that is being worked off is not in the wheel:
//! whoever uses it holds that, in an order of his own.

use crate::count::count;
use crate::time::SimTime;
use crate::units::DurationPs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SLOTS: usize = 1 << 12;
const WORDS: usize = SLOTS / 64;
const EMPTY: u32 = u32::MAX;

/// Something that happens at a time, which comes first in its order.
pub(crate) trait Timed: Copy + Ord {
    /// When it happens.
    fn time(&self) -> SimTime;
}

/// What happens behind the slot that is being worked off.
pub(crate) struct TimingWheel<T> {
    /// The lists of later slots, by slot number modulo SLOTS; [`EMPTY`] where there is nothing. Lists that are used again
    /// are those that were in use last, which are still in the cache.
    slots: Vec<u32>,
    lists: Vec<Vec<T>>,
    spare: Vec<u32>,
    /// One bit a slot that holds something, and one a word of these.
    occupied: [u64; WORDS],
    occupied_words: u64,
    beyond: BinaryHeap<Reverse<T>>,
    /// The number of the slot (time >> shift) that is being worked off.
    cursor: u64,
    shift: u32,
}

impl<T: Timed> TimingWheel<T> {
    /// An empty wheel that spans `horizon` at least.
    pub fn new(horizon: DurationPs) -> Self {
        let width = (horizon.ps() / (SLOTS as u64 - 2) + 1).clamp(1, 1 << 50).next_power_of_two();
        Self {
            slots: vec![EMPTY; SLOTS],
            lists: Vec::new(),
            spare: Vec::new(),
            occupied: [0; WORDS],
            occupied_words: 0,
            beyond: BinaryHeap::new(),
            cursor: 0,
            shift: width.trailing_zeros(),
        }
    }

    /// How many things are in it.
    pub fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum::<usize>() + self.beyond.len()
    }

    /// Puts `thing` in; gives it back if it belongs into the slot that is being worked off, or before it.
    #[inline]
    #[must_use]
    pub fn schedule(&mut self, thing: T) -> Option<T> {
        let slot = thing.time().0 >> self.shift;
        if slot.wrapping_sub(self.cursor + 1) < SLOTS as u64 - 1 {
            self.put(slot, thing);
        } else if slot <= self.cursor {
            return Some(thing);
        } else {
            self.beyond.push(Reverse(thing));
        }
        None
    }

    #[inline]
    fn put(&mut self, slot: u64, thing: T) {
        let index = (slot % SLOTS as u64) as usize;
        let mut list = self.slots[index];
        if list == EMPTY {
            list = self.spare.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                count(self.lists.len() - 1)
            });
            self.slots[index] = list;
            self.occupied[index / 64] |= 1 << (index % 64);
            self.occupied_words |= 1 << (index / 64);
        }
        self.lists[list as usize].push(thing);
    }

    /// The first that lies beyond the last slot.
    #[inline]
    pub fn first_beyond(&self) -> Option<&T> {
        self.beyond.peek().map(|Reverse(thing)| thing)
    }

    /// Moves on to the next slot that holds something, whose things become `run`, which is empty, in any order. Returns whether
    /// there is such a slot.
    pub fn settle(&mut self, run: &mut Vec<T>) -> bool {
        let Some(distance) = self.next_occupied() else { return false };
        self.cursor += distance;
        let index = (self.cursor % SLOTS as u64) as usize;
        let list = std::mem::replace(&mut self.slots[index], EMPTY);
        // The run's old, empty list becomes a spare one.
        std::mem::swap(run, &mut self.lists[list as usize]);
        self.spare.push(list);
        self.occupied[index / 64] &= !(1 << (index % 64));
        if self.occupied[index / 64] == 0 {
            self.occupied_words &= !(1 << (index / 64));
        }
        self.pull(run);
        true
    }

    /// With nothing in any slot, moves on to where what lies beyond begins: the things of that slot become `run`, which is empty, the
    /// first one first.
    pub fn jump(&mut self, run: &mut Vec<T>) {
        if let Some(first) = self.first_beyond() {
            self.cursor = first.time().0 >> self.shift;
            self.pull(run);
        }
    }

    /// Takes from the heap what the slots can hold now; what belongs into the one that is being worked off goes to `run`.
    fn pull(&mut self, run: &mut Vec<T>) {
        while let Some(first) = self.first_beyond() {
            let slot = first.time().0 >> self.shift;
            if slot >= self.cursor.saturating_add(SLOTS as u64) {
                break;
            }
            let Some(Reverse(thing)) = self.beyond.pop() else { break };
            if slot <= self.cursor {
                run.push(thing);
            } else {
                self.put(slot, thing);
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
