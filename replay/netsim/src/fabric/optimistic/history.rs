//! What a part has run and may still have to take back.

use std::collections::VecDeque;

use super::key::Key;
use super::model::Sent;
use crate::time::SimTime;

/// An event that was run.
pub(super) struct Done<E, B> {
    pub key: Key,
    pub event: E,
    pub sent: Option<Sent<E>>,
    /// What its place was before it; `None` once it was taken back.
    before: Option<B>,
    /// The number of the event before it at its place.
    previous: u64,
}

/// An event that was taken back.
pub(super) struct Undone<E, B> {
    pub key: Key,
    pub event: E,
    pub sent: Option<Sent<E>>,
    pub before: B,
}

/// Events in the order in which they were run, with numbers in that order. The last of them was not taken back.
pub(super) struct History<E, B> {
    done: VecDeque<Done<E, B>>,
    /// The number of the first of them. Whatever has a lower number is sure.
    first: u64,
    /// The number of each place's latest event that was not taken back.
    latest: Vec<u64>,
}

impl<E: Copy, B> History<E, B> {
    pub fn new(places: usize) -> Self {
        Self { done: VecDeque::new(), first: 1, latest: vec![0; places] }
    }

    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// An event was run at `place`, behind all that are noted there.
    pub fn push(&mut self, place: usize, key: Key, event: E, before: B, sent: Option<Sent<E>>) {
        let number = self.first + self.done.len() as u64;
        let previous = std::mem::replace(&mut self.latest[place], number);
        self.done.push_back(Done { key, event, sent, before: Some(before), previous });
    }

    fn index(&self, place: usize) -> Option<usize> {
        usize::try_from(self.latest[place].checked_sub(self.first)?).ok()
    }

    /// The latest event at `place` that can be taken back.
    pub fn latest(&self, place: usize) -> Option<Key> {
        self.done.get(self.index(place)?).map(|done| done.key)
    }

    /// Takes back the latest event of `place`.
    pub fn take_back(&mut self, place: usize) -> Option<Undone<E, B>> {
        let index = self.index(place)?;
        let done = self.done.get_mut(index)?;
        let undone = Undone { key: done.key, event: done.event, sent: done.sent.take(), before: done.before.take()? };
        self.latest[place] = done.previous;
        while self.done.back().is_some_and(|done| done.before.is_none()) {
            self.done.pop_back();
        }
        Some(undone)
    }

    /// Forgets the event that was run first, if it is earlier than `gvt`: nothing can have it taken back any more.
    pub fn next_sure(&mut self, gvt: SimTime) -> Option<Done<E, B>> {
        loop {
            let front = self.done.front()?;
            if front.before.is_some() && front.key.time() >= gvt {
                return None;
            }
            self.first += 1;
            let done = self.done.pop_front()?;
            if done.before.is_some() {
                return Some(done);
            }
        }
    }
}
