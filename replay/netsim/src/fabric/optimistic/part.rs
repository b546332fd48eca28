//! One part, which runs ahead and takes back what came too early.

use std::collections::BTreeMap;

use super::history::History;
use super::key::Key;
use super::model::{Model, Output, Sent};
use super::options::OptimisticCost;
use crate::time::SimTime;

/// An event for another part, or the anti-message that cancels it.
#[derive(Clone, Copy)]
pub(super) struct Message<E> {
    pub anti: bool,
    pub key: Key,
    pub event: E,
}

/// What parts send each other. Of two messages of one part the one sent first comes first.
pub(super) struct Mail<E, N> {
    pub messages: Vec<Message<E>>,
    notes: Vec<N>,
}

impl<E, N> Default for Mail<E, N> {
    fn default() -> Self {
        Self { messages: Vec::new(), notes: Vec::new() }
    }
}

impl<E, N> Mail<E, N> {
    pub const fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.notes.is_empty()
    }

    /// Puts what is in `other` behind what is here.
    pub fn append(&mut self, other: &mut Self) {
        self.messages.append(&mut other.messages);
        self.notes.append(&mut other.notes);
    }
}

type MailOf<M> = Mail<<M as Model>::Event, <M as Model>::Note>;

/// A part of what is simulated, and what lies ahead of it and behind it.
pub(in crate::fabric) struct Part<M: Model> {
    pub model: M,
    number: usize,
    /// Events that are to be run.
    pending: BTreeMap<Key, M::Event>,
    /// Ends, until they are sure.
    ends: BTreeMap<Key, M::Event>,
    history: History<M::Event, M::Before>,
    /// What has come and was not looked at.
    pub(super) inbox: MailOf<M>,
    /// For each part, what was not brought there yet.
    pub(super) outbox: Vec<MailOf<M>>,
    /// What came of events that were taken back, and is to be cancelled.
    cancelled: Vec<Sent<M::Event>>,
    output: Output<M::Event, M::Note>,
    /// Messages to other parts that were not cancelled.
    remote: u64,
    cost: OptimisticCost,
}

impl<M: Model> Part<M> {
    /// Part `number` of `parts`.
    pub fn new(number: usize, parts: usize, model: M) -> Self {
        Self {
            number,
            pending: BTreeMap::new(),
            ends: BTreeMap::new(),
            history: History::new(model.places()),
            inbox: Mail::default(),
            outbox: std::iter::repeat_with(Mail::default).take(parts).collect(),
            cancelled: Vec::new(),
            output: Output::default(),
            remote: 0,
            cost: OptimisticCost::default(),
            model,
        }
    }

    /// Events that other parts have of it.
    pub const fn remote_events(&self) -> u64 {
        self.remote
    }

    pub const fn cost(&self) -> &OptimisticCost {
        &self.cost
    }

    /// Runs at most `most` events that are earlier than `horizon`. Returns whether it ran any.
    pub fn run_batch(&mut self, shared: &M::Shared, most: u32, horizon: SimTime) -> bool {
        let mut ran = 0;
        while ran < most {
            let next = self.pending.first_key_value().map(|(key, _)| key.time());
            let input = self.model.next_input().filter(|at| next.is_none_or(|next| *at <= next));
            match (input, next) {
                (Some(at), _) if at < horizon => self.run_inputs(shared),
                (None, Some(at)) if at < horizon => self.run_next(shared),
                _ => break,
            }
            ran += 1;
        }
        ran > 0
    }

    fn run_inputs(&mut self, shared: &M::Shared) {
        let mut output = std::mem::take(&mut self.output);
        self.model.run_inputs(shared, &mut output);
        for (part, note) in output.notes.drain(..) {
            if part == self.number { self.model.receive(note) } else { self.outbox[part].notes.push(note) }
        }
        for sent in output.sent.drain(..) {
            self.send(shared, sent);
        }
        self.output = output;
    }

    fn run_next(&mut self, shared: &M::Shared) {
        let Some((key, event)) = self.pending.pop_first() else { return };
        let Some(place) = self.model.place(shared, &event) else {
            self.ends.insert(key, event);
            return;
        };
        // A straggler.
        if self.roll_back(place, key) {
            self.cost.primary_rollbacks += 1;
            self.cancel_all(shared);
        }
        let (before, sent) = self.model.run(shared, key.time(), place, &event);
        self.history.push(place, key, event, before, sent);
        self.cost.most_uncommitted = self.cost.most_uncommitted.max(self.history.len() as u64);
        if let Some(sent) = sent {
            self.send(shared, sent);
        }
    }

    fn send(&mut self, shared: &M::Shared, sent: Sent<M::Event>) {
        let Sent { part, key, event } = sent;
        if part == self.number {
            self.insert(shared, key, event);
        } else {
            self.remote += 1;
            self.outbox[part].messages.push(Message { anti: false, key, event });
        }
    }

    fn insert(&mut self, shared: &M::Shared, key: Key, event: M::Event) {
        let list = if self.model.is_end(shared, &event) { &mut self.ends } else { &mut self.pending };
        list.insert(key, event);
    }

    /// Takes back what was run at `place` from `key` on. Returns whether there was anything.
    fn roll_back(&mut self, place: usize, key: Key) -> bool {
        let mut any = false;
        while self.history.latest(place).is_some_and(|latest| latest >= key)
            && let Some(undone) = self.history.take_back(place)
        {
            self.model.restore(place, undone.before, undone.sent.is_some());
            self.pending.insert(undone.key, undone.event);
            self.cancelled.extend(undone.sent);
            self.cost.rolled_back += 1;
            any = true;
        }
        any
    }

    /// Cancels what came of events that were taken back, and what came of that.
    fn cancel_all(&mut self, shared: &M::Shared) {
        while let Some(Sent { part, key, event }) = self.cancelled.pop() {
            if part == self.number {
                self.annihilate(shared, key, &event);
            } else {
                self.remote -= 1;
                self.cost.anti_messages += 1;
                self.outbox[part].messages.push(Message { anti: true, key, event });
            }
        }
    }

    /// Removes an event that does not happen after all, wherever it is. If it was run, it is taken back first.
    fn annihilate(&mut self, shared: &M::Shared, key: Key, event: &M::Event) {
        if self.model.is_end(shared, event) {
            self.ends.remove(&key);
        } else if self.pending.remove(&key).is_none() {
            match self.model.place(shared, event) {
                Some(place) => {
                    self.cost.secondary_rollbacks += u64::from(self.roll_back(place, key));
                    self.pending.remove(&key);
                }
                None => {
                    self.ends.remove(&key);
                }
            }
        }
    }

    /// Looks at what has come.
    pub(super) fn receive(&mut self, shared: &M::Shared) {
        for note in self.inbox.notes.drain(..) {
            self.model.receive(note);
        }
        let mut messages = std::mem::take(&mut self.inbox.messages);
        for Message { anti, key, event } in messages.drain(..) {
            if anti {
                self.annihilate(shared, key, &event);
                self.cancel_all(shared);
            } else {
                self.insert(shared, key, event);
            }
        }
        self.inbox.messages = messages;
    }

    /// The time before which nothing happens here any more but because of what other parts send.
    pub(super) fn earliest(&self) -> Option<SimTime> {
        let pending = self.pending.first_key_value().map(|(key, _)| key.time());
        let came = self.inbox.messages.iter().map(|message| message.key.time()).min();
        [pending, came, self.model.next_input()].into_iter().flatten().min()
    }

    /// Whatever is earlier than `gvt` is sure: what was kept to take it back is given up.
    pub(super) fn collect_fossils(&mut self, shared: &M::Shared, gvt: SimTime) {
        while let Some(done) = self.history.next_sure(gvt) {
            self.model.commit(shared, done.key.time(), &done.event, done.sent.is_some());
        }
        while let Some(end) = self.ends.first_entry().filter(|end| end.key().time() < gvt) {
            let (key, event) = end.remove_entry();
            self.model.commit_end(shared, key.time(), &event);
        }
    }

    /// Forgets all that lies ahead.
    pub fn forget(&mut self) {
        self.pending.clear();
        self.ends.clear();
        self.inbox = Mail::default();
        self.outbox.clear();
    }
}
