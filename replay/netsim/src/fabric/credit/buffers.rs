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
    /// The lane that the head has chosen, and how many credits it must find there.
    pub chosen: LaneId,
    pub need: u32,
    /// Credits of its packets, those on the link to it included; and the most so far.
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
}
