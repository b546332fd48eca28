//! Messages at the hosts: queued as they were handed over, cut into packets one by one, and put together again.
//!
//! A message in a queue is one entry, however long it is; a packet exists only when it starts. So a long backlog at a
//! source costs little.

use super::ids::MessageId;
use super::packet::{Loss, LostPacket, Message};
use super::slab::Slab;
use crate::network::{HostIndex, Token};
use crate::time::SimTime;
use crate::units::Bytes;

/// A message under way.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub handed_over: SimTime,
    pub token: Token,
    pub flow: u64,
    pub source: HostIndex,
    pub destination: HostIndex,
    /// Payload that is in no packet yet, and the number of the next packet.
    rest: u64,
    number: u64,
    /// Packets that have neither arrived nor been lost.
    open: u64,
    lost: bool,
    next: MessageId,
}

/// A message, as one of its packets takes it along into another part of the network.
#[derive(Clone, Copy)]
pub(super) struct Carried(Open);

/// A packet, as its host sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The message that it belongs to.
    pub message: MessageId,
    /// Its number among the packets of its source.
    pub number: u64,
    /// Its length, headers included.
    pub bytes: u32,
}

/// What waits at a host.
#[derive(Clone, Copy)]
struct Queue {
    first: MessageId,
    last: MessageId,
    /// Packets of its messages that have not been taken out.
    packets: u64,
}

impl Queue {
    const EMPTY: Self = Self { first: MessageId::NONE, last: MessageId::NONE, packets: 0 };
}

/// The messages of all hosts.
pub(super) struct Messages {
    open: Slab<MessageId, Open>,
    queues: Vec<Queue>,
    /// How many packets were numbered at each host.
    numbers: Vec<u64>,
    mtu: u64,
    headers: u64,
    /// Packets that were taken out so far.
    begun: u64,
}

impl Messages {
    /// No messages in `queues` queues of `hosts` hosts.
    pub fn new(hosts: u32, queues: usize, mtu: Bytes, headers: Bytes) -> Self {
        Self {
            open: Slab::default(),
            queues: vec![Queue::EMPTY; queues],
            numbers: vec![0; hosts as usize],
            mtu: mtu.get(),
            headers: headers.get(),
            begun: 0,
        }
    }

    /// How many packets were taken out so far.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Puts `message` at the end of `queue`. Returns whether the queue was empty.
    #[inline]
    pub fn hand_over(&mut self, now: SimTime, message: &Message, queue: usize) -> bool {
        let packets = packets_of(message.bytes, self.mtu);
        let number = &mut self.numbers[message.source.0 as usize];
        let id = self.open.insert(Open {
            handed_over: now,
            token: message.token,
            flow: message.flow,
            source: message.source,
            destination: message.destination,
            rest: message.bytes,
            number: *number,
            open: packets,
            lost: false,
            next: MessageId::NONE,
        });
        *number += packets;
        let queue = &mut self.queues[queue];
        let was_empty = queue.first == MessageId::NONE;
        if was_empty {
            queue.first = id;
        } else {
            self.open.get_mut(queue.last).next = id;
        }
        queue.last = id;
        queue.packets += packets;
        was_empty
    }

    /// The length of the next packet of `queue` and when its message was handed over; `None` if nothing waits there.
    #[inline]
    pub fn peek(&self, queue: usize) -> Option<(u32, SimTime)> {
        let first = self.queues[queue].first;
        (first != MessageId::NONE).then(|| {
            let open = self.open.get(first);
            (self.packet_bytes(open.rest), open.handed_over)
        })
    }

    /// The key of the next packet of `queue`; `None` if nothing waits there.
    #[inline]
    pub fn next_key(&self, queue: usize) -> Option<u64> {
        let first = self.queues[queue].first;
        (first != MessageId::NONE).then(|| {
            let open = self.open.get(first);
            key(open.source, open.number)
        })
    }

    /// The number of the next packet of a message that `host` is handed over.
    pub fn next_number(&self, host: HostIndex) -> u64 {
        self.numbers[host.0 as usize]
    }

    /// How many packets wait in `queue`.
    #[inline]
    pub fn waiting(&self, queue: usize) -> u64 {
        self.queues[queue].packets
    }

    /// Whether nothing waits in `queue`.
    #[inline]
    pub fn is_empty(&self, queue: usize) -> bool {
        self.queues[queue].first == MessageId::NONE
    }

    /// Takes the next packet out of `queue`.
    #[inline]
    pub fn cut(&mut self, queue: usize) -> Option<Cut> {
        let message = self.queues[queue].first;
        if message == MessageId::NONE {
            return None;
        }
        let bytes = self.packet_bytes(self.open.get(message).rest);
        self.begun += 1;
        let open = self.open.get_mut(message);
        let number = open.number;
        open.number += 1;
        open.rest -= open.rest.min(self.mtu);
        let queue = &mut self.queues[queue];
        queue.packets -= 1;
        if open.rest == 0 {
            if message == queue.last {
                *queue = Queue::EMPTY;
            } else {
                queue.first = open.next;
            }
        }
        Some(Cut { message, number, bytes })
    }

    /// The message with number `id`.
    #[inline]
    pub fn get(&self, id: MessageId) -> &Open {
        self.open.get(id)
    }

    /// A packet of message `id` has arrived: the message's token, if it is complete now.
    #[inline]
    pub fn arrived(&mut self, id: MessageId) -> Option<Token> {
        self.ended(id, false)
    }

    /// A packet of message `id` goes on in another part of the network.
    pub fn carry_away(&mut self, id: MessageId) -> Carried {
        let carried = Carried(Open { rest: 0, open: 1, next: MessageId::NONE, ..*self.open.get(id) });
        self.ended(id, false);
        carried
    }

    /// A packet comes from another part of the network, with what its message is there.
    pub fn carry_in(&mut self, message: Carried) -> MessageId {
        self.open.insert(message.0)
    }

    /// The next packet of `queue` is lost at `at`, as it finds no room; nothing without one.
    pub fn lose_head(&mut self, queue: usize, at: SimTime) -> Option<LostPacket> {
        let Cut { message, number, .. } = self.cut(queue)?;
        self.begun -= 1;
        let Open { handed_over, source, token, .. } = *self.get(message);
        self.lost(message);
        Some(LostPacket { at, handed_over, source, number, token, reason: Loss::BlockedHead })
    }

    /// A packet of message `id` was lost.
    pub fn lost(&mut self, id: MessageId) {
        self.ended(id, true);
    }

    #[inline]
    fn ended(&mut self, id: MessageId, lost: bool) -> Option<Token> {
        let open = self.open.get_mut(id);
        open.open -= 1;
        open.lost |= lost;
        if open.open > 0 {
            return None;
        }
        let open = self.open.remove(id);
        (!open.lost).then_some(open.token)
    }

    /// The length of a packet that takes what it can of `rest`; a packet without any byte is sent as one of 1 byte.
    #[inline]
    fn packet_bytes(&self, rest: u64) -> u32 {
        let bytes = (rest.min(self.mtu) + self.headers).max(1);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// The number by which random choices know a packet: source host x 2^40 + its number there.
#[inline]
pub(super) const fn key(source: HostIndex, number: u64) -> u64 {
    ((source.0 as u64) << 40).wrapping_add(number)
}

/// The bits of a packet's [`key`] that are its number.
pub(super) const NUMBER: u64 = (1 << 40) - 1;

/// How many packets of at most `mtu` bytes of payload a message of `bytes` is cut into.
pub(super) fn packets_of(bytes: u64, mtu: u64) -> u64 {
    // Dividing takes long.
    if bytes <= mtu { 1 } else { bytes.div_ceil(mtu) }
}
