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

/// Receives or sends of a rank that are gone through one by one, a round of dissemination each at most; more are looked up.
const FEW: usize = 16;

/// One of the few of a receiver: its envelope but for the receiver, and itself.
#[derive(Clone, Copy, Debug)]
struct OneOfFew {
    from: RankId,
    id: OperationId,
    tag: u64,
    bytes: Option<u64>,
    order: u64,
}

impl OneOfFew {
    const fn envelope(&self, to: RankId) -> Envelope {
        Envelope { to, from: self.from, tag: self.tag, bytes: self.bytes }
    }

    const fn ordered(&self) -> Ordered {
        (self.order, self.id)
    }
}

/// Receives or sends by envelope, those of an envelope in their order. Mostly a rank has few at a time, which lie together.
#[derive(Debug, Default)]
struct Envelopes {
    /// By receiver, in their order.
    few: Vec<VecDeque<OneOfFew>>,
    /// How many more each receiver has. All of them are behind the few.
    more: Vec<usize>,
    many: HashMap<Envelope, Queue>,
}

impl Envelopes {
    /// Puts in the last one. Returns whether it is not among the few.
    fn push(&mut self, envelope: Envelope, last: Ordered) -> bool {
        let to = envelope.to.0 as usize;
        if to >= self.few.len() {
            self.few.resize_with(to + 1, VecDeque::new);
            self.more.resize(to + 1, 0);
        }
        let is_one_of_few = self.more[to] == 0 && self.few[to].len() < FEW;
        if is_one_of_few {
            let Envelope { from, tag, bytes, .. } = envelope;
            self.few[to].push_back(OneOfFew { from, id: last.1, tag, bytes, order: last.0 });
        } else {
            self.more[to] += 1;
            self.many.entry(envelope).or_default().push(last);
        }
        !is_one_of_few
    }

    /// The few of a receiver, in their order.
    fn few(&self, to: RankId) -> impl Iterator<Item = (Envelope, Ordered)> {
        let few = self.few.get(to.0 as usize).into_iter().flatten();
        few.map(move |one| (one.envelope(to), one.ordered()))
    }

    /// The first of an envelope.
    fn first(&self, envelope: Envelope) -> Option<Ordered> {
        let few = self.few(envelope.to).find(|(of, _)| *of == envelope).map(|(_, first)| first);
        few.or_else(|| self.many.get(&envelope)?.first)
    }

    /// Takes the first of a receiver's few for which `is_wanted`.
    fn take_few(&mut self, to: RankId, is_wanted: impl Fn(&Envelope) -> bool) -> Option<Ordered> {
        let few = self.few.get_mut(to.0 as usize)?;
        let place = few.iter().position(|one| is_wanted(&one.envelope(to)))?;
        // Mostly it is the first one: nothing is moved then.
        few.remove(place).map(|one| one.ordered())
    }

    /// Takes the first of an envelope from those that are not among the few.
    fn take_many(&mut self, envelope: Envelope) -> Option<Ordered> {
        let more = self.more.get_mut(envelope.to.0 as usize).filter(|more| **more > 0)?;
        let first = take_first(&mut self.many, envelope)?;
        *more -= 1;
        Some(first)
    }

    fn iter(&self) -> impl Iterator<Item = Ordered> {
        let few = self.few.iter().flatten().map(OneOfFew::ordered);
        few.chain(self.many.values().flat_map(Queue::iter).copied())
    }
}

/// Posted receives and messages that none has taken.
#[derive(Debug)]
pub(crate) struct Matching {
    next: u64,
    /// Whether there are receives from any rank.
    takes_any: bool,
    /// Receives from one rank.
    posted: Envelopes,
    /// Receives from any rank.
    posted_any: HashMap<(RankId, u64), Queue>,
    /// Sends whose messages came.
    arrived: Envelopes,
    /// Those of them that are not among the few, of a receiver and a tag by their order, if there are receives from any rank.
    arrived_any: HashMap<(RankId, u64), BTreeMap<u64, Envelope>>,
}

impl Matching {
    /// Nothing is posted; `takes_any` says whether receives from any rank will be.
    pub fn new(takes_any: bool) -> Self {
        Self {
            next: 0,
            takes_any,
            posted: Envelopes::default(),
            posted_any: HashMap::default(),
            arrived: Envelopes::default(),
            arrived_any: HashMap::default(),
        }
    }

    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A receive is posted: the send whose message it takes, if one is there.
    pub fn post(&mut self, receive: OperationId, envelope: Envelope) -> Option<OperationId> {
        if let Some((_, send)) = self.arrived.take_few(envelope.to, |of| *of == envelope) {
            return Some(send);
        }
        if let Some((order, send)) = self.arrived.take_many(envelope) {
            if self.takes_any {
                self.arrived_any.get_mut(&(envelope.to, envelope.tag))?.remove(&order);
            }
            return Some(send);
        }
        let order = self.order();
        self.posted.push(envelope, (order, receive));
        None
    }

    /// The same of a receive that takes any rank's message.
    pub fn post_any(&mut self, receive: OperationId, to: RankId, tag: u64) -> Option<OperationId> {
        if let Some((_, send)) = self.arrived.take_few(to, |of| of.tag == tag) {
            return Some(send);
        }
        if let Some((_, envelope)) = self.arrived_any.get_mut(&(to, tag)).and_then(BTreeMap::pop_first) {
            // The earliest of a receiver and a tag is the earliest of its sender.
            return self.arrived.take_many(envelope).map(|(_, send)| send);
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
            let few = self.posted.take_few(to, |of| *of == envelope);
            few.or_else(|| self.posted.take_many(envelope))
        };
        if let Some((_, receive)) = taken {
            return Some(receive);
        }
        let order = self.order();
        if self.arrived.push(envelope, (order, send)) && self.takes_any {
            self.arrived_any.entry((to, tag)).or_default().insert(order, envelope);
        }
        None
    }

    /// Whether a receive from any rank was posted before those from the sender of a message.
    fn any_was_posted_first(&self, envelope: Envelope) -> bool {
        let first = |queue: Option<&Queue>| queue.and_then(|queue| queue.first);
        let any = if self.takes_any { first(self.posted_any.get(&(envelope.to, envelope.tag))) } else { None };
        any.is_some_and(|(order, _)| self.posted.first(envelope).is_none_or(|(other, _)| order < other))
    }

    /// Messages that no receive has taken, and who sent each: the lowest of these.
    pub fn left(&self) -> Option<OperationId> {
        self.arrived.iter().map(|(_, send)| send).min()
    }
}
