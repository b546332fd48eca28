//! Buffers: the queue at the end of one virtual lane of one link, as its receiver knows it.

use crate::fabric::ids::{LaneId, PacketId};
use crate::time::SimTime;

/// A first-in first-out queue of packets.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    /// Its first and last packet.
    pub first: PacketId,
    pub last: PacketId,
    /// Until the head asks for a link: when the last flit of the packet has left that was the head before. From then on:
    /// since when it has asked.
    pub since: SimTime,
    /// The lane that the head has chosen, and how many credits it must find there. While a packet leaves, until `since`: its credits.
    pub chosen: LaneId,
    pub need: u32,
    /// Credits of its packets, those on the link to it included; and the most so far, those of the packet included that leaves.
    pub held: u32,
    pub held_most: u32,
}

impl Buffer {
    /// Nothing in it.
    pub const EMPTY: Self = Self {
        first: PacketId::NONE,
        last: PacketId::NONE,
        since: SimTime::ZERO,
        chosen: LaneId::NONE,
        need: 0,
        held: 0,
        held_most: 0,
    };

    /// A packet with `credits` credits has started at `now` on the link to it. What leaves at the same instant counts until its last flit
    /// has left, so that it is the same whichever is told first.
    #[inline]
    pub fn reserve(&mut self, credits: u16, now: SimTime) {
        self.held += u32::from(credits);
        let leaving = if self.since > now { self.need } else { 0 };
        self.held_most = self.held_most.max(self.held + leaving);
    }

    /// Its first packet, with `credits` credits, starts to leave, and has left at `ended`; `next` is behind it.
    #[inline]
    pub fn release(&mut self, credits: u16, ended: SimTime, next: PacketId) {
        self.since = ended;
        self.need = credits.into();
        self.held -= u32::from(credits);
        self.first = next;
        if next == PacketId::NONE {
            self.last = PacketId::NONE;
        }
    }
}
