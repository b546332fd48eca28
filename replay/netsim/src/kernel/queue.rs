//! The queue of pending events, in a total order: on a timing wheel, whose slots are sorted as they come up.
//!
//! What is scheduled into the slot that is being worked off waits in a small heap beside it.

use super::random::mix;
use super::wheel::{Timed, TimingWheel};
use crate::time::SimTime;
use crate::units::DurationPs;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A place of the simulated network that schedules events (a logical process): a link, a host, a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u32);

/// The order of things within one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Something arrives, or ends.
    Arrive = 0,
    /// Something is decided that has to see all arrivals of the instant.
    Decide = 1,
}

const PLACE_BITS: u32 = 24;
const NUMBER_BITS: u32 = 39;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The rank of `place` (below 2^24) among those that meet at `time`: the lowest comes first, and no two are equal.
#[must_use]
#[inline]
pub const fn tie(time: SimTime, place: Place) -> u64 {
    // Multiplication by an odd number and addition are one-to-one modulo 2^24, so that ranks stay distinct.
    (place.0 as u64).wrapping_mul(0x9e_3779).wrapping_add(mix(time.0)) & PLACE_MASK
}

/// The total order of events: time, phase, place (scrambled by the time), the place's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    time: u64,
    rest: u64,
}

impl Key {
    fn new(time: SimTime, phase: Phase, place: Place, number: u64) -> Self {
        let rank = tie(time, place) << NUMBER_BITS;
        let rest = ((phase as u64) << (PLACE_BITS + NUMBER_BITS)) | rank | (number & NUMBER_MASK);
        Self { time: time.0, rest }
    }

    /// The time of the event.
    #[must_use]
    pub const fn time(self) -> SimTime {
        SimTime(self.time)
    }
}

#[derive(Clone, Copy)]
struct Entry<E> {
    key: Key,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E: Copy> Timed for Entry<E> {
    #[inline]
    fn time(&self) -> SimTime {
        self.key.time()
    }
}

/// Pending events, taken out in the order of their [`Key`]s.
pub struct EventQueue<E> {
    /// What was in the slot that is being worked off: the last is the least.
    run: Vec<Entry<E>>,
    /// What was scheduled before the end of that slot since.
    late: BinaryHeap<Reverse<Entry<E>>>,
    /// Later slots. They hold nothing while `run` and `late` are empty.
    wheel: TimingWheel<Entry<E>>,
    numbers: Vec<u64>,
    popped: u64,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue whose wheel spans `horizon_ps` picoseconds at least: as far ahead as most events are scheduled.
    #[must_use]
    pub fn new(horizon_ps: u64) -> Self {
        Self {
            run: Vec::new(),
            late: BinaryHeap::new(),
            wheel: TimingWheel::new(DurationPs(horizon_ps)),
            numbers: Vec::new(),
            popped: 0,
        }
    }

    /// Forgets all events that are pending, but not how many were taken out.
    pub fn forget(&mut self) {
        *self = Self { popped: self.popped, ..Self::new(1) };
    }

    /// How many events are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.run.len() + self.late.len() + self.wheel.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next_time().is_none()
    }

    /// How many events were taken out so far.
    #[must_use]
    pub const fn processed(&self) -> u64 {
        self.popped
    }

    /// Puts `event` at `time`, as the next event that `place` schedules. Places are numbered below 2^24.
    pub fn schedule(&mut self, time: SimTime, phase: Phase, place: Place, event: E) {
        let index = place.0 as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        let number = self.numbers[index];
        self.numbers[index] += 1;
        let entry = Entry { key: Key::new(time, phase, place, number), event };
        if let Some(late) = self.wheel.schedule(entry) {
            self.late.push(Reverse(late));
        } else if self.run.is_empty() && self.late.is_empty() {
            self.settle();
        }
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<SimTime> {
        let near = match (self.run.last(), self.late.peek()) {
            (Some(run), Some(Reverse(late))) => Some(run.key.min(late.key)),
            (Some(run), None) => Some(run.key),
            (None, late) => late.map(|Reverse(late)| late.key),
        };
        near.or_else(|| self.wheel.first_beyond().map(|entry| entry.key)).map(Key::time)
    }

    /// At most `count` events that come soon, the next one first; not those that are scheduled meanwhile.
    pub fn next_few(&self, count: usize) -> impl Iterator<Item = E> {
        self.run.iter().rev().take(count).map(|entry| entry.event)
    }

    /// Takes out the next event if it is not later than `until`.
    #[inline]
    pub fn pop_until(&mut self, until: SimTime) -> Option<(SimTime, E)> {
        match self.run.last() {
            // Mostly nothing is late.
            Some(Entry { key, event }) if self.late.is_empty() => {
                let (time, event) = (key.time(), *event);
                if time > until {
                    return None;
                }
                self.run.pop();
                self.popped += 1;
                if self.run.is_empty() {
                    self.settle();
                }
                Some((time, event))
            }
            _ => self.pop_of_all(until),
        }
    }

    /// The same where something is late, or nothing lies in the slot that is being worked off.
    #[inline(never)]
    fn pop_of_all(&mut self, until: SimTime) -> Option<(SimTime, E)> {
        if self.next_time()? > until {
            return None;
        }
        if self.run.is_empty() && self.late.is_empty() {
            self.wheel.jump(&mut self.run);
            self.run.reverse();
        }
        let from_run = match (self.run.last(), self.late.peek()) {
            (Some(run), Some(Reverse(late))) => run.key < late.key,
            (run, _) => run.is_some(),
        };
        let entry = if from_run { self.run.pop() } else { self.late.pop().map(|Reverse(late)| late) }?;
        self.popped += 1;
        if self.run.is_empty() && self.late.is_empty() {
            self.settle();
        }
        Some((entry.key.time(), entry.event))
    }

    /// Goes on with the next slot that holds something.
    fn settle(&mut self) {
        if self.wheel.settle(&mut self.run) {
            self.run.sort_unstable_by_key(|entry| Reverse(entry.key));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn within_an_instant_decisions_come_after_arrivals() {
        for time in 1..100 {
            let mut queue = EventQueue::new(1 << 20);
            queue.schedule(SimTime(time), Phase::Decide, Place(0), 'd');
            queue.schedule(SimTime(time), Phase::Arrive, Place(1), 'a');
            queue.schedule(SimTime(time - 1), Phase::Decide, Place(1), 'b');
            let order: Vec<char> = std::iter::from_fn(|| queue.pop_until(SimTime::MAX)).map(|(_, e)| e).collect();
            assert_eq!(order, ['b', 'a', 'd']);
            assert_eq!(queue.processed(), 3);
        }
    }

    #[test]
    fn the_order_of_places_that_meet_changes_with_the_instant_and_not_with_insertion() {
        let order_at = |time: u64, places: [u32; 3]| -> Vec<u32> {
            let mut queue = EventQueue::new(1 << 20);
            for place in places {
                queue.schedule(SimTime(time), Phase::Arrive, Place(place), place);
            }
            std::iter::from_fn(|| queue.pop_until(SimTime::MAX)).map(|(_, e)| e).collect()
        };
        let mut firsts = std::collections::BTreeMap::new();
        for time in 0..300 {
            assert_eq!(order_at(time, [1, 2, 3]), order_at(time, [3, 1, 2]));
            *firsts.entry(order_at(time, [1, 2, 3])[0]).or_insert(0) += 1;
        }
        assert_eq!(firsts.len(), 3, "one place was never first: {firsts:?}");
    }

    #[test]
    fn a_place_keeps_the_order_in_which_it_scheduled() {
        let mut queue = EventQueue::new(1 << 20);
        for number in 0..100 {
            queue.schedule(SimTime(7), Phase::Arrive, Place(3), number);
        }
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop_until(SimTime::MAX)).map(|(_, e)| e).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_taken_out_that_is_later_than_asked() {
        let mut queue = EventQueue::new(1 << 20);
        queue.schedule(SimTime(1 << 50), Phase::Arrive, Place(0), ());
        assert_eq!(queue.pop_until(SimTime(1_000)), None);
        assert_eq!(queue.next_time(), Some(SimTime(1 << 50)));
        queue.schedule(SimTime(2_000), Phase::Arrive, Place(0), ());
        assert_eq!(queue.next_time(), Some(SimTime(2_000)));
        assert_eq!(queue.pop_until(SimTime(1_999)), None);
        assert_eq!(queue.pop_until(SimTime(2_000)), Some((SimTime(2_000), ())));
    }

    /// A step of a random use: push so far ahead (in bits), or pop.
    fn steps() -> impl Strategy<Value = Vec<Option<(u32, u64, u32)>>> {
        prop::collection::vec(prop::option::weighted(0.6, (0u32..45, any::<u64>(), 0u32..20)), 1..400)
    }

    proptest! {
        #[test]
        fn gives_what_a_sorted_list_gives(steps in steps(), horizon in 14u32..40) {
            let mut queue = EventQueue::new(1 << horizon);
            let mut sorted = std::collections::BTreeMap::new();
            let mut now = 0;
            let mut numbers = [0; 20];
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Some((bits, ahead, place)) => {
                        let time = SimTime(now + (ahead & ((1 << bits) - 1)));
                        queue.schedule(time, Phase::Arrive, Place(place), id);
                        let number = &mut numbers[place as usize];
                        sorted.insert(Key::new(time, Phase::Arrive, Place(place), *number), id);
                        *number += 1;
                    }
                    None => {
                        let expected = sorted.pop_first().map(|(key, id)| (key.time(), id));
                        prop_assert_eq!(queue.next_time(), expected.map(|(time, _)| time));
                        let got = queue.pop_until(SimTime::MAX);
                        prop_assert_eq!(got, expected);
                        now = got.map_or(now, |(time, _)| time.0);
                    }
                }
                prop_assert_eq!(queue.len(), sorted.len());
            }
        }
    }
}
