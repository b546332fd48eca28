//! What is going to happen, in order.

use netsim::time::SimTime;
use std::collections::{BTreeMap, VecDeque};

/// Happenings by time and by step within the instant; those of one step in the order in which they were noted.
pub struct Timeline<S, H> {
    happenings: BTreeMap<(SimTime, S), VecDeque<H>>,
}

impl<S: Ord + Copy, H> Timeline<S, H> {
    pub fn new() -> Self {
        Self { happenings: BTreeMap::new() }
    }

    /// Notes that `happening` happens at `time`, in `step`.
    pub fn note(&mut self, time: SimTime, step: S, happening: H) {
        self.happenings.entry((time, step)).or_default().push_back(happening);
    }

    /// The next instant at which something happens.
    pub fn next_instant(&self) -> Option<SimTime> {
        self.happenings.keys().next().map(|(time, _)| *time)
    }

    /// Takes the next happening of the instant `now`, if there is any left.
    pub fn take(&mut self, now: SimTime) -> Option<H> {
        let mut first = self.happenings.first_entry().filter(|entry| entry.key().0 == now)?;
        let happening = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        happening
    }
}
