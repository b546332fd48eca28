//! What will happen, instant by instant.
//!
//! Like [`crate::kernel::EventQueue`] on a timing wheel, but leaner: what happens in one instant of a `credit` fabric comes to
//! the same in any order, so that entries need no key but their time.

use crate::kernel::{Timed, TimingWheel};
use crate::time::SimTime;
use crate::units::DurationPs;
use std::cmp::Reverse;

/// A time, and what happens then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<E> {
    at: SimTime,
    event: E,
}

impl<E: Copy + Ord> Timed for Entry<E> {
    #[inline]
    fn time(&self) -> SimTime {
        self.at
    }
}

/// Pending events by their time.
pub(super) struct PendingEvents<E> {
    /// What is left of the slot that is being worked off: the last is the least.
    run: Vec<Entry<E>>,
    wheel: TimingWheel<Entry<E>>,
    taken: u64,
}

impl<E: Copy + Ord> PendingEvents<E> {
    /// No events, on a wheel that spans `horizon` at least.
    pub fn new(horizon: DurationPs) -> Self {
        Self { run: Vec::new(), wheel: TimingWheel::new(horizon), taken: 0 }
    }

    /// Forgets all events that are pending, but not how many were taken out.
    pub fn forget(&mut self) {
        *self = Self { taken: self.taken, ..Self::new(DurationPs::ZERO) };
    }

    /// How many events were taken out so far.
    pub const fn processed(&self) -> u64 {
        self.taken
    }

    /// Puts `event` at `at`, later than what was taken out last.
    #[inline]
    pub fn schedule(&mut self, at: SimTime, event: E) {
        if let Some(entry) = self.wheel.schedule(Entry { at, event }) {
            // Behind those of its own instant, which can be thousands, so that none of them moves.
            let place = self.run.partition_point(|other| other.at >= at);
            self.run.insert(place, entry);
        } else if self.run.is_empty() {
            self.settle();
        }
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.run.last().or_else(|| self.wheel.first_beyond()).map(|entry| entry.at)
    }

    /// Takes out an event of the instant `at`, if there is one and none before it.
    #[inline]
    pub fn pop(&mut self, at: SimTime) -> Option<E> {
        if self.run.is_empty() {
            self.wheel.jump(&mut self.run);
            self.run.sort_by_key(|entry| Reverse(entry.at));
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

    /// The next events in their order, `count` at most, as far as they are known without going on.
    #[inline]
    pub fn next_few(&self, count: usize) -> impl Iterator<Item = E> {
        self.run.iter().rev().take(count).map(|entry| entry.event)
    }

    /// Goes on with the next slot that holds something.
    fn settle(&mut self) {
        if self.wheel.settle(&mut self.run) && self.run.windows(2).any(|two| two[0].at < two[1].at) {
            self.run.sort_unstable_by_key(|entry| Reverse(entry.at));
        }
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
            let mut pending = PendingEvents::new(DurationPs(1 << horizon));
            let mut sorted = std::collections::BTreeMap::<SimTime, Vec<usize>>::new();
            let mut now = SimTime::ZERO;
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Some((bits, ahead)) => {
                        let at = now.plus_ps(1 + (ahead & ((1 << bits) - 1)));
                        pending.schedule(at, id);
                        sorted.entry(at).or_default().push(id);
                    }
                    None => {
                        let expected = sorted.pop_first();
                        prop_assert_eq!(pending.next_time(), expected.as_ref().map(|(at, _)| *at));
                        let Some((at, events)) = expected else { continue };
                        prop_assert_eq!(pending.pop(SimTime(at.0 - 1)), None);
                        let mut got: Vec<usize> = std::iter::from_fn(|| pending.pop(at)).collect();
                        got.sort_unstable();
                        prop_assert_eq!(got, events);
                        now = at;
                    }
                }
            }
        }
    }
}
