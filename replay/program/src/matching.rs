//! Which receive takes which message, as in MPI: receives in the order in which they were posted, messages in that in which they came.

use std::collections::{BTreeMap, VecDeque};

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

/// Posted receives and messages that none has taken.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    next: u64,
    /// Receives from one rank, with the order in which they were posted.
    posted: HashMap<Envelope, VecDeque<(u64, OperationId)>>,
    /// Receives from any rank.
    posted_any: HashMap<(RankId, u64), VecDeque<(u64, OperationId)>>,
    /// Messages by their order of arrival, of a receiver and a tag.
    arrived: HashMap<(RankId, u64), BTreeMap<u64, (Envelope, OperationId)>>,
    /// The same from one rank.
    arrived_from: HashMap<Envelope, VecDeque<u64>>,
}

impl Matching {
    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A receive is posted: the send whose message it takes, if one is there.
    pub fn post(&mut self, receive: OperationId, envelope: Envelope) -> Option<OperationId> {
        let queue = self.arrived_from.get_mut(&envelope);
        if let Some(order) = queue.and_then(VecDeque::pop_front) {
            return self.arrived.get_mut(&(envelope.to, envelope.tag))?.remove(&order).map(|(_, send)| send);
        }
        let order = self.order();
        self.posted.entry(envelope).or_default().push_back((order, receive));
        None
    }

    /// The same of a receive that takes any rank's message.
    pub fn post_any(&mut self, receive: OperationId, to: RankId, tag: u64) -> Option<OperationId> {
        if let Some((_, (envelope, send))) = self.arrived.get_mut(&(to, tag)).and_then(BTreeMap::pop_first) {
            // The earliest of a receiver and a tag is the earliest of its sender.
            self.arrived_from.get_mut(&envelope)?.pop_front();
            return Some(send);
        }
        let order = self.order();
        self.posted_any.entry((to, tag)).or_default().push_back((order, receive));
        None
    }

    /// A message has come: the receive that takes it, if one is posted.
    pub fn arrive(&mut self, send: OperationId, envelope: Envelope) -> Option<OperationId> {
        let Envelope { to, tag, .. } = envelope;
        let first = |queue: Option<&VecDeque<(u64, OperationId)>>| queue.and_then(|queue| queue.front().copied());
        let (named, any) = (first(self.posted.get(&envelope)), first(self.posted_any.get(&(to, tag))));
        let is_any = any.is_some_and(|(order, _)| named.is_none_or(|(other, _)| order < other));
        let queue = if is_any { self.posted_any.get_mut(&(to, tag)) } else { self.posted.get_mut(&envelope) };
        if let Some((_, receive)) = queue.and_then(VecDeque::pop_front) {
            return Some(receive);
        }
        let order = self.order();
        self.arrived.entry((to, tag)).or_default().insert(order, (envelope, send));
        self.arrived_from.entry(envelope).or_default().push_back(order);
        None
    }

    /// Messages that no receive has taken, and who sent each: the lowest of these.
    pub fn left(&self) -> Option<OperationId> {
        self.arrived.values().flat_map(BTreeMap::values).map(|(_, send)| *send).min()
    }
}
