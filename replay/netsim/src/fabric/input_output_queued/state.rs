//! What is on its way, and where packets wait.

use crate::fabric::ids::PacketId;
use crate::topology::{LinkId, NodeId};
use std::collections::VecDeque;

/// Never.
pub(super) const NEVER: u64 = u64::MAX;

/// A VC at the end of a link, at a switch.
#[derive(Clone, Default)]
pub(super) struct InputVc {
    /// Packets of which a flit has arrived and that have no VC of an output, in order.
    pub waiting: VecDeque<PacketId>,
    /// The cycle from which nothing moves out of it that was granted: then the next packet is first.
    pub moves_until: u64,
}

/// A packet in the queue of an output.
#[derive(Clone, Copy)]
pub(super) struct Queued {
    pub packet: PacketId,
    pub flits: u32,
    /// When its first flit is there.
    pub ready_at: u64,
    /// Flits for which there must be credits when it begins to leave.
    pub needs: u32,
}

/// How full the queue of an output's VC is: what each packet looks at that may ask for it.
#[derive(Clone, Copy, Default)]
pub(super) struct Fill {
    /// The cycle from which no packet moves into it.
    pub moves_until: u64,
    /// Flits of the packets in it, and of the packet that leaves.
    pub flits: u32,
}

/// A link that ends at a switch.
#[derive(Clone, Copy)]
pub(super) struct InputPort {
    pub link: LinkId,
    /// The switch.
    pub at: NodeId,
    pub from_host: bool,
    /// The first VC of its sender's output, and cycles until that is told of credits.
    pub sender_vc: u32,
    pub told_after: u32,
}

/// A VC of a link, at its sender.
#[derive(Clone)]
pub(super) struct OutputVc {
    /// Packets that have not begun to leave, in order.
    pub queue: VecDeque<Queued>,
    credits: u32,
    /// The credits that come back one a cycle: from which cycle on, and how many.
    returning: (u64, u32),
}

impl OutputVc {
    pub const fn new(credits: u32) -> Self {
        Self { queue: VecDeque::new(), credits, returning: (0, 0) }
    }

    /// The credits that have come by `now`.
    #[inline]
    pub fn credits(&self, now: u64) -> u32 {
        let (from, all) = self.returning;
        let came = (now + 1).saturating_sub(from).min(u64::from(all));
        // No more than `all`.
        self.credits + u32::try_from(came).unwrap_or(all)
    }

    /// From `now` on so many credits come, one a cycle; all that were to come before have.
    #[inline]
    pub const fn credits_return(&mut self, now: u64, flits: u32) {
        self.credits += self.returning.1;
        self.returning = (now, flits);
    }

    /// A packet begins to leave.
    #[inline]
    pub const fn take_credits(&mut self, now: u64, flits: u32) {
        if self.credits >= flits {
            self.credits -= flits;
            return;
        }
        // Some of its credits are those that come now; they are there by now.
        let missing = flits - self.credits;
        self.credits = 0;
        let (from, all) = self.returning;
        self.returning = (from + missing as u64, all - missing);
        debug_assert!(from + missing as u64 <= now + 1, "credits are taken before they come");
    }

    /// The cycle in which there are `needs` credits, if that is known by `now` and later.
    #[inline]
    pub fn has_credits_at(&self, needs: u32, now: u64) -> Option<u64> {
        let (from, all) = self.returning;
        let missing = needs.checked_sub(self.credits).filter(|missing| *missing > 0 && *missing <= all)?;
        Some(from + u64::from(missing) - 1).filter(|at| *at > now)
    }
}

/// A link, at its sender.
#[derive(Clone, Copy)]
pub(super) struct Output {
    /// The packet that leaves, or left last: from which cycle on, its flits, and its VC.
    pub since: u64,
    pub flits: u32,
    pub vc: u8,
    /// The VC with which the choice of the next packet begins.
    pub turn: u8,
    /// VCs with packets that have not begun to leave, a bit each.
    pub waiting: u16,
    /// When it is looked at next whether a packet may leave.
    pub try_at: u64,
    pub from_host: bool,
    pub to_host: bool,
}

impl Output {
    /// Nothing has left by a link from a host, or to one.
    pub const fn new(from_host: bool, to_host: bool) -> Self {
        Self { since: 0, flits: 0, vc: 0, turn: 0, waiting: 0, try_at: NEVER, from_host, to_host }
    }

    /// The flits that have left by `now` of the packet that leaves.
    #[inline]
    pub fn left_by(&self, now: u64) -> u32 {
        // No more than its flits.
        u32::try_from(now - self.since.min(now)).unwrap_or(u32::MAX).min(self.flits)
    }

    /// The cycle from which the link is free.
    #[inline]
    pub const fn free_from(&self) -> u64 {
        self.since + self.flits as u64
    }
}

/// A packet first in `input_vc` asks for `output_vc`, both numbered among all.
#[derive(Clone, Copy)]
pub(super) struct VcRequest {
    /// What decides the order of random grants, the least first: whether a host sent it, and what was drawn.
    pub rank: (bool, u64),
    pub input_vc: u32,
    pub output_vc: u32,
    /// Flits for which there must be credits when it leaves.
    pub needs: u32,
}

/// A VC of an output that a packet may ask for.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub output_vc: u32,
    pub needs: u32,
}

/// What happens in a cycle, before hosts and switches work.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// The first flit of a packet arrives at a switch, in a VC of an input.
    Arrives { input_vc: u32, packet: PacketId },
    /// The last flit of a packet arrives at its host.
    Delivered { packet: PacketId },
    /// Credits of a VC of an output come back, one a cycle.
    Credits { output_vc: u32, flits: u32 },
    /// The packet that moved out of a VC of an input has done so.
    Moved { input_vc: u32 },
    /// An output looks whether a packet may leave.
    Try { output: u32 },
}
