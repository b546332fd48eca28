//! What hosts, `ToR`s and uplinks of a `rotor` fabric hold.

use super::schedule::Rack;
use crate::fabric::ids::{MessageId, PacketId};
use crate::time::SimTime;
use std::collections::VecDeque;

/// A packet that has left its host.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub message: MessageId,
    pub destination: u32,
    pub bytes: u32,
    pub left: SimTime,
    /// Source host x 2^40 + number.
    pub key: u64,
    /// The rack that has it, or that has sent it on and holds a copy.
    pub rack: Rack,
    /// The rack to which it is on its way.
    pub towards: Rack,
    pub switches: u32,
    /// Whether it takes short ways, and does not wait for the circuit to its rack.
    pub hurries: bool,
}

/// A host.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// When its link to the `ToR` is free, and the one from it.
    pub up_free: SimTime,
    pub down_free: SimTime,
    /// Whether an event is there for the next packet of those that do not wait for a circuit.
    pub pushes: bool,
    /// By rack: how many of its hosts something waits for here, and whose turn it is among them.
    pub waiting: Vec<u32>,
    pub turn: Vec<u32>,
    /// The rack whose turn it is where any will do.
    pub rack_turn: Rack,
}

/// An uplink of a `ToR`.
#[derive(Clone, Debug, Default)]
pub(super) struct Uplink {
    pub free: SimTime,
    /// When its next event is, and how many were set before: an older one is void.
    pub next: Option<SimTime>,
    pub generation: u32,
    /// Packets on short ways that go over the circuit of the period.
    pub queue: VecDeque<PacketId>,
    pub queue_period: u64,
    /// The host of its rack whose turn it is.
    pub turn: usize,
    /// The period in which it sent last, how much, and how much of each host of its rack.
    pub period: u64,
    pub sent: u64,
    pub sent_of: Vec<u64>,
}

/// A `ToR`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tor {
    /// Its hosts.
    pub hosts: Vec<u32>,
    /// By rack: packets here that wait for the circuit to it.
    pub transit: Vec<VecDeque<PacketId>>,
    /// By rack: how many queues of its hosts, and packets here, wait for it.
    pub pending: Vec<u64>,
    /// All of these.
    pub pending_all: u64,
}
