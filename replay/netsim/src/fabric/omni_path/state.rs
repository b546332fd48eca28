//! What is on its way, where it waits, and what waits for what.

use crate::fabric::cycle::Cycle;
use crate::fabric::ids::{MessageId, PacketId, UnitId};
use crate::fabric::slab::Slab;
use crate::topology::{LinkId, NodeId};

/// What happens at the begin of a cycle.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// A packet's header has come to the end of a link, at a switch.
    Header(PacketId, LinkId),
    /// A packet has arrived at its host, by a link.
    Deliver(PacketId, LinkId),
    /// A unit may ask.
    Ask(UnitId),
    /// A link may take a packet.
    Look(LinkId),
    /// The sender of a link learns of so many free credits of a VL.
    Credits(LinkId, u8, u32),
    /// A packet has left a central link's buffer.
    FromCentral(UnitId, u8, u32),
    /// A packet has left the buffer of the output in front of a link.
    FromOutput(LinkId, u8, u32),
}

/// A packet on its way.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    /// The packet behind it in its queue.
    pub next: PacketId,
    pub message: MessageId,
    pub destination: NodeId,
    /// The link by which it goes on.
    pub out: LinkId,
    /// Its VL on the link by which it came, and on that by which it goes on.
    pub vl: u8,
    pub out_vl: u8,
    /// The VL of class 0.
    pub base: u8,
    /// When it may ask or leave, as far as it goes by the latencies of stages and by earlier requests.
    pub ready: Cycle,
    pub left: Cycle,
    pub key: u64,
    pub flow: u64,
    pub bytes: u32,
    pub flits: u32,
    pub credits: u32,
    pub switches: u32,
}

/// A first-in first-out queue of packets.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    pub first: PacketId,
    pub last: PacketId,
}

impl Queue {
    pub const EMPTY: Self = Self { first: PacketId::NONE, last: PacketId::NONE };

    /// Puts `id` at its end. Returns whether it was empty.
    pub fn push(&mut self, id: PacketId, packets: &mut Slab<PacketId, Packet>) -> bool {
        packets.get_mut(id).next = PacketId::NONE;
        let was_empty = self.first == PacketId::NONE;
        if was_empty {
            self.first = id;
        } else {
            packets.get_mut(self.last).next = id;
        }
        self.last = id;
        was_empty
    }

    /// Takes out its head, which is there.
    pub fn pop(&mut self, packets: &Slab<PacketId, Packet>) -> PacketId {
        let id = self.first;
        self.first = packets.get(id).next;
        id
    }
}

/// An input or a central link, which passes one packet at a time.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    /// When it may pass the next one.
    pub free_at: Cycle,
    /// The earliest event that is on the way for it.
    pub wake: Cycle,
    /// The VL at which its round robin begins.
    pub turn: u8,
}

impl Default for Unit {
    fn default() -> Self {
        Self { free_at: Cycle::default(), wake: Cycle::NEVER, turn: 0 }
    }
}

/// Where packets are written into a central link's buffer or an output's, one at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct WritePort {
    pub free_at: Cycle,
    /// The unit, as its switch counts them, at which its round robin begins.
    pub turn: u32,
}

/// Where a packet wants to go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Central(UnitId),
    Output(LinkId),
}

/// What a unit asks for, for the head of one of its queues.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub target: Target,
    pub unit: UnitId,
    /// The VL of the queue.
    pub queue_vl: u8,
    pub packet: PacketId,
}

/// A link, as its sender uses it.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    pub free_at: Cycle,
    /// The earliest event that is on the way for it.
    pub wake: Cycle,
    /// The VL at which its round robin begins.
    pub turn: u8,
    /// Whether it is in the list of links that have to look.
    pub listed: bool,
}

impl Default for Sender {
    fn default() -> Self {
        Self { free_at: Cycle::default(), wake: Cycle::NEVER, turn: 0, listed: false }
    }
}
