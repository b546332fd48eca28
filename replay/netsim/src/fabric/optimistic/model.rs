//! What is simulated optimistically.

use super::key::Key;
use crate::time::SimTime;

/// An event that comes of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric) struct Sent<E> {
    /// The part in which it happens.
    pub part: usize,
    pub key: Key,
    pub event: E,
}

/// What inputs bring.
pub(in crate::fabric) struct Output<E, N> {
    pub sent: Vec<Sent<E>>,
    /// What parts are to know, with their numbers.
    pub notes: Vec<(usize, N)>,
}

impl<E, N> Default for Output<E, N> {
    fn default() -> Self {
        Self { sent: Vec::new(), notes: Vec::new() }
    }
}

/// One part of what is simulated: places, whose state events read and change, each event that of one place, and inputs, which hang on nothing that
/// happens.
pub(in crate::fabric) trait Model: Send {
    /// What all parts read and none changes.
    type Shared: Sync;
    type Event: Copy + Send;
    /// What a place was.
    type Before: Send;
    /// What inputs say to parts, which is never taken back.
    type Note: Send;

    /// How many places it has.
    fn places(&self) -> usize;

    /// Whether `event` changes nothing and nothing comes of it. It is seen when it is sure.
    fn is_end(&self, shared: &Self::Shared, event: &Self::Event) -> bool;

    /// Where `event` happens, no end; `None`: it is one after all.
    fn place(&self, shared: &Self::Shared, event: &Self::Event) -> Option<usize>;

    /// Runs `event` at `at`. Returns what `place` was before, and what comes of the event.
    fn run(
        &mut self,
        shared: &Self::Shared,
        at: SimTime,
        place: usize,
        event: &Self::Event,
    ) -> (Self::Before, Option<Sent<Self::Event>>);

    /// Makes `place` what it was before an event; `sent`: whether something had come of it.
    fn restore(&mut self, place: usize, before: Self::Before, sent: bool);

    /// `event` is sure, and so is whether something has come of it.
    fn commit(&mut self, shared: &Self::Shared, at: SimTime, event: &Self::Event, sent: bool);

    /// `event`, an end, is sure.
    fn commit_end(&mut self, shared: &Self::Shared, at: SimTime, event: &Self::Event);

    /// From now on, all happens until `until`, that instant not included.
    fn begin(&mut self, shared: &Self::Shared, until: SimTime);

    /// All happens only until `until` after all, which is not earlier than anything that inputs were run for.
    fn shorten(&mut self, until: SimTime);

    /// The time before which no input brings anything; `None`: none does any more.
    fn next_input(&self) -> Option<SimTime>;

    /// Runs the inputs of that time and those that follow within the lookahead.
    fn run_inputs(&mut self, shared: &Self::Shared, output: &mut Output<Self::Event, Self::Note>);

    fn receive(&mut self, note: Self::Note);

    /// Events that are sure.
    fn events(&self) -> u64;
}
