//! What a ToR knows of its channels to the packet switch.

use crate::fabric::ids::PacketId;
use crate::time::SimTime;
use std::collections::VecDeque;

/// How a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Within the rack.
    Electrical,
    /// On a channel to the packet switch.
    Ops(u32),
    /// On the circuit (or the direct fibre) of a pair of racks.
    Circuit(u32),
}

/// A ToR's channel to the packet switch: one wavelength of its fibre.
#[derive(Default)]
pub struct Channel {
    pub waiting: VecDeque<PacketId>,
    /// Packets to be sent again, by the order in which they first went.
    pub again: Vec<PacketId>,
    pub sending: bool,
    pub unacknowledged: u32,
    /// Places in its buffer that are taken or promised.
    pub reserved: u32,
    /// Flows that wait for a place.
    pub wants: VecDeque<u32>,
    pub order: u64,
    /// Until when it keeps clear of its ToR's own packets; there is an event then.
    pub held_until: SimTime,
}
