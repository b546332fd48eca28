//! A packet on a link: all that is known of it, in one line of the cache.

use crate::fabric::messages::NUMBER;
use crate::fabric::packet::{Loss, LostPacket};
use crate::fabric::windows::{Letter, put};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

/// A packet that is on its way over a link.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Hop {
    // What changes at each switch comes first: the rest is copied in words of the processor's widest.
    /// When it arrives: picoseconds since its window began.
    pub offset: u32,
    /// Where the link ends.
    pub node: NodeId,
    pub link: LinkId,
    /// How many switches it has passed.
    pub switches: u32,
    pub destination: NodeId,
    pub bytes: u32,
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
    /// What it takes in a letter.
    pub const BYTES: usize = 64;

    /// Writes it into a letter.
    pub fn write(&self, letter: &mut Vec<u8>) {
        let Self { offset, node, link, destination, bytes, switches, flow, handed_over, left, key, token } = *self;
        let longs = [flow, handed_over.0, left.0, key, token.0];
        put(letter, &longs, &[offset, node.0, link.0, destination.0, bytes, switches]);
    }

    /// Reads one; `None` if there is none.
    pub fn read(letter: &mut Letter<'_>) -> Option<Self> {
        Some(Self {
            flow: letter.long()?,
            handed_over: letter.time()?,
            left: letter.time()?,
            key: letter.long()?,
            token: Token(letter.long()?),
            offset: letter.short()?,
            node: NodeId(letter.short()?),
            link: LinkId(letter.short()?),
            destination: NodeId(letter.short()?),
            bytes: letter.short()?,
            switches: letter.short()?,
        })
    }

    /// It is on its way over `link` to `node`, behind one switch more.
    #[inline(always)]
    pub const fn goes_on(&mut self, link: LinkId, node: NodeId) {
        (self.node, self.link) = (node, link);
        self.switches += 1;
    }

    /// The same packet, on its way over `link` to `node` behind one switch more.
    #[inline(always)]
    pub const fn onto(&self, link: LinkId, node: NodeId) -> Self {
        let mut hop = *self;
        hop.goes_on(link, node);
        hop
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
