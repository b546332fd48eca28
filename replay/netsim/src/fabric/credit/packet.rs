//! A packet on its way.

use crate::fabric::ids::{MessageId, PacketId};
use crate::time::SimTime;
use crate::topology::NodeId;

/// A packet on its way.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Packet {
    /// The packet behind it in its queue.
    pub next: PacketId,
    pub message: MessageId,
    /// The node to which it goes.
    pub destination: NodeId,
    pub flits: u16,
    pub credits: u16,
    /// When its first and last flit arrive (or arrived) at the end of its present link. In cycles: the first one alone, as the cycle in which
    /// it can be the head of its queue.
    pub first: SimTime,
    pub last: SimTime,
    pub left: SimTime,
    /// Source host x 2^40 + number.
    pub key: u64,
    pub flow: u64,
    pub bytes: u32,
    pub switches: u16,
    /// The VL of class 0.
    pub base: u8,
}
