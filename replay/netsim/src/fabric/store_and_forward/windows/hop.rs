//! A packet on a link: all that is known of it, in one line of the cache.

use crate::fabric::messages::NUMBER;
use crate::fabric::packet::{Loss, LostPacket};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

/// A packet that is on its way over a link.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Hop {
    /// When it arrives: picoseconds since its window began.
    pub offset: u32,
    /// Where the link ends.
    pub node: NodeId,
    pub link: LinkId,
    pub destination: NodeId,
    pub bytes: u32,
    /// How many switches it has passed.
    pub switches: u32,
    /// Its flow, by which routings may choose.
    pub flow: u64,
    pub handed_over: SimTime,
    /// When it began to leave its source host.
    pub left: SimTime,
    /// Source host x 2^40 + number.
    pub key: u64,
    pub token: Token,
}

impl Hop {
    /// The same packet, on its way over `link` to `node` behind one switch more.
    #[inline]
    pub const fn onto(&self, link: LinkId, node: NodeId) -> Self {
        Self { node, link, switches: self.switches + 1, ..*self }
    }

    #[inline]
    pub const fn source(&self) -> HostIndex {
        HostIndex((self.key >> 40) as u32)
    }

    /// The packet is lost at `at`.
    pub const fn lost(&self, at: SimTime) -> LostPacket {
        LostPacket {
            at,
            handed_over: self.handed_over,
            source: self.source(),
            number: self.key & NUMBER,
            token: self.token,
            reason: Loss::InNetwork,
        }
    }
}
