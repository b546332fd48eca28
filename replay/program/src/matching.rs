//! Which receive takes which message, as in MPI: receives in the order in which they were posted, messages in that in which they came.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;

use foldhash::fast::RandomState;

use crate::builder::{OperationId, RankId};

/// Looked into for each message: SipHash takes longer than all else there.
type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// By what a receive and a message of one sender know each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    pub to: RankId,
    pub from: RankId,
    pub tag: u64,
    /// Bytes of the message, where it is known by them as well.
    pub bytes: Option<u64>,
}

/// A receive or a send, and the order in which it was posted or its message came.
type Ordered = (u64, OperationId);

/// Receives or sends in their order. Mostly there is one at a time, which needs no memory of its own.
#[derive(Debug, Default)]
struct Queue {
    first: Option<Ordered>,
    rest: VecDeque<Ordered>,
}

impl Queue {
    fn push(&mut self, last: Ordered) {
        match self.first {
            None => self.first = Some(last),
            Some(_) => self.rest.push_back(last),
        }
    }

    fn pop(&mut self) -> Option<Ordered> {
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }

    fn iter(&self) -> impl Iterator<Item = &Ordered> {
        self.first.iter().chain(&self.rest)
    }
}

/// Takes the first of the queue of `key`; a queue that is empty goes.
fn take_first<K: Eq + Hash>(queues: &mut HashMap<K, Queue>, key: K) -> Option<Ordered> {
    let Entry::Occupied(mut queue) = queues.entry(key) else { return None };
    let first = queue.get_mut().pop();
    if queue.get().first.is_none() {
        queue.remove();
    }
    first
}

/// Posted receives and messages that none has taken.
#[derive(Debug)]
pub(crate) struct Matching {
    next: u64,
    /// Whether there are receives from any rank.
    takes_any: bool,
    /// Receives from one rank.
    posted: HashMap<Envelope, Queue>,
    /// Receives from any rank.
    posted_any: HashMap<(RankId, u64), Queue>,
    /// Sends whose messages came.
    arrived: HashMap<Envelope, Queue>,
    /// The same of a receiver and a tag by their order, if there are receives from any rank.
    arrived_any: HashMap<(RankId, u64), BTreeMap<u64, Envelope>>,
}

impl Matching {
    /// Nothing is posted; `takes_any` says whether receives from any rank will be.
    pub fn new(takes_any: bool) -> Self {
        Self {
            next: 0,
            takes_any,
            posted: HashMap::default(),
            posted_any: HashMap::default(),
            arrived: HashMap::default(),
            arrived_any: HashMap::default(),
        }
    }

    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A receive is posted: the send whose message it takes, if one is there.
    pub fn post(&mut self, receive: OperationId, envelope: Envelope) -> Option<OperationId> {
        if let Some((order, send)) = take_first(&mut self.arrived, envelope) {
            if self.takes_any {
                self.arrived_any.get_mut(&(envelope.to, envelope.tag))?.remove(&order);
            }
            return Some(send);
        }
        let order = self.order();
        self.posted.entry(envelope).or_default().push((order, receive));
        None
    }

    /// The same of a receive that takes any rank's message.
    pub fn post_any(&mut self, receive: OperationId, to: RankId, tag: u64) -> Option<OperationId> {
        if let Some((_, envelope)) = self.arrived_any.get_mut(&(to, tag)).and_then(BTreeMap::pop_first) {
            // The earliest of a receiver and a tag is the earliest of its sender.
            return take_first(&mut self.arrived, envelope).map(|(_, send)| send);
        }
        let order = self.order();
        self.posted_any.entry((to, tag)).or_default().push((order, receive));
        None
    }

    /// A message has come: the receive that takes it, if one is posted.
    pub fn arrive(&mut self, send: OperationId, envelope: Envelope) -> Option<OperationId> {
        let Envelope { to, tag, .. } = envelope;
        let taken = if self.any_was_posted_first(envelope) {
            take_first(&mut self.posted_any, (to, tag))
        } else {
            take_first(&mut self.posted, envelope)
        };
        if let Some((_, receive)) = taken {
            return Some(receive);
        }
        let order = self.order();
        self.arrived.entry(envelope).or_default().push((order, send));
        if self.takes_any {
            self.arrived_any.entry((to, tag)).or_default().insert(order, envelope);
        }
        None
    }

    /// Whether a receive from any rank was posted before those from the sender of a message.
    fn any_was_posted_first(&self, envelope: Envelope) -> bool {
        let first = |queue: Option<&Queue>| queue.and_then(|queue| queue.first);
        let any = if self.takes_any { first(self.posted_any.get(&(envelope.to, envelope.tag))) } else { None };
        any.is_some_and(|(order, _)| first(self.posted.get(&envelope)).is_none_or(|(other, _)| order < other))
    }

    /// Messages that no receive has taken, and who sent each: the lowest of these.
    pub fn left(&self) -> Option<OperationId> {
        self.arrived.values().flat_map(Queue::iter).map(|(_, send)| *send).min()
    }
}
