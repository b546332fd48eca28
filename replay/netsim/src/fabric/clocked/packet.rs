//! Packets that clocked switches pass on.

use crate::fabric::ids::MessageId;
use crate::fabric::messages::{Cut, NUMBER, Open, key};
use crate::fabric::packet::PacketRecord;
use crate::time::SimTime;
use crate::topology::NodeId;

/// A packet on its way.
#[derive(Clone, Copy)]
pub(in crate::fabric) struct Packet {
    pub message: MessageId,
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
            destination,
            flits,
            bytes: cut.bytes,
            left,
            key: key(message.source, cut.number),
            flow: message.flow,
            switches: 0,
        }
    }

    /// What is told of it, of which the first flit `left` its host, and the last has `arrived`.
    #[inline]
    pub fn record(&self, message: &Open, left: SimTime, arrived: SimTime) -> PacketRecord {
        PacketRecord {
            handed_over: message.handed_over,
            left,
            arrived,
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
