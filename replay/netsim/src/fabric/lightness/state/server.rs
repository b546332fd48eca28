//! What servers know: their flows, packets and links.

use super::predictor::OpenMessage;
use super::rack::RackFlow;
use super::tor::Medium;
use crate::fabric::ids::PacketId;
use crate::fabric::pipe::Pipe;
use crate::network::{FlowKind, Token};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What was handed over and of which something is still to be sent.
pub struct Outgoing {
    pub left: u64,
    /// Bytes of the application's message of which it is a part, or those that were predicted for it.
    pub total: u64,
}

/// One direction between two servers.
pub struct ServerFlow {
    pub source: u32,
    pub destination: u32,
    pub loopback: Option<Pipe>,
    /// Its ways through the networks below the ToRs, where there are such.
    pub below: Option<RackFlow>,
    /// The wavelength on which it goes through the packet switch.
    pub wavelength: u32,
    pub outgoing: VecDeque<Outgoing>,
    /// A place that it was given, having waited for it.
    pub granted: Option<Medium>,
    /// Packets of all messages handed over so far.
    pub planned: u64,
    /// Packets sent so far, which numbers them.
    pub sent: u64,
    /// Bytes of all messages sent so far.
    pub sent_bytes: u64,
    /// Bytes of all messages handed over so far, where circuits are planned.
    pub handed_over: u64,
    /// Whether its destination is one of those that the circuit switch is for.
    pub to_circuit: bool,
    /// Whether what it is for is one of those.
    pub kind_to_circuit: bool,
    /// What it is for.
    pub kind: FlowKind,
    /// Whether the server of a connection sends on it.
    pub by_server: bool,
    /// Where sizes are predicted, the message of which not all was handed over.
    pub begun: Option<OpenMessage>,
    /// All packets below this number have arrived.
    pub received: u64,
    /// Numbers of those that arrived early.
    pub early: BTreeSet<u64>,
    /// Numbers of those that were lost, of messages that are not yet at their end.
    pub lost: BTreeSet<u64>,
    /// At its destination's ToR, where that puts packets in order: the next one's number, and those that came early.
    pub in_order: u64,
    pub held: BTreeMap<u64, PacketId>,
    /// Messages that are not yet delivered: the number of the last packet, and the name.
    pub marks: VecDeque<(u64, Token)>,
}

/// A packet, electrical or photonic.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub flow: u32,
    pub number: u64,
    /// Bytes of its message, and bytes on the fibre.
    pub payload: u32,
    pub wire: u32,
    pub way: Medium,
    /// Whether it has a place in its destination's ToR.
    pub placed: bool,
    /// Its place in the order in which its ToR's channel first sent packets.
    pub order: u64,
    /// How often the packet switch refused it.
    pub refused: u32,
}

/// The buffer of a ToR's Output.
#[derive(Default)]
pub struct OutputBuffer {
    /// Places that are taken.
    pub taken: u32,
    /// Circuits that wait for one.
    pub circuits: VecDeque<u32>,
}

/// A server's sending side.
#[derive(Default)]
pub struct Nic {
    /// Flows that have something to send and do not wait for a place, in turn.
    pub turn: VecDeque<u32>,
    pub busy: bool,
}
