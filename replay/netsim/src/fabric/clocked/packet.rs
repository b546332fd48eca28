//! Packets that clocked switches pass on.

use crate::fabric::cycle::Cycle;
use crate::fabric::ids::{MessageId, PacketId};
use crate::fabric::messages::{Cut, NUMBER, Open, key};
use crate::fabric::packet::{LinkTime, PacketRecord};
use crate::topology::NodeId;

/// A packet on its way.
#[derive(Clone, Copy)]
pub(in crate::fabric) struct Packet {
    pub message: MessageId,
    /// The packet behind it, where queues are lists.
    pub next: PacketId,
    pub destination: NodeId,
    pub flits: u32,
    pub bytes: u32,
    /// The cycle in which its first flit left its host.
    pub left: u64,
    pub key: u64,
    pub flow: u64,
    pub switches: u32,
}

impl Packet {
    /// What was cut off `message` to `destination` begins to leave in the cycle `left`.
    pub fn new(cut: Cut, message: &Open, destination: NodeId, flits: u32, left: u64) -> Self {
        Self {
            message: cut.message,
            next: PacketId::NONE,
            destination,
            flits,
            bytes: cut.bytes,
            left,
            key: key(message.source, cut.number),
            flow: message.flow,
            switches: 0,
        }
    }

    /// What is told of it when its last flit has arrived at the begin of the cycle `now`.
    pub fn record(&self, message: &Open, now: u64, clock: &LinkTime) -> PacketRecord {
        PacketRecord {
            handed_over: message.handed_over,
            left: Cycle(self.left).begins(clock),
            arrived: Cycle(now).begins(clock),
            source: message.source,
            destination: message.destination,
            number: self.key & NUMBER,
            bytes: self.bytes,
            flits: self.flits,
            switches: self.switches,
            token: message.token,
        }
    }
}
