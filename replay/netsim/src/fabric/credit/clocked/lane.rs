//! Both ends of a virtual lane in cycles: what its sender knows of it, and the queue at its end.

use crate::fabric::credit::lanes::CREDIT;
use crate::fabric::ids::PacketId;

/// A credit, in bytes.
const CREDIT_BYTES: u32 = CREDIT as u32;

/// A virtual lane of a link, as its sender knows it: half a line of a cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(in crate::fabric::credit) struct Lane {
    /// Queues of the sender that ask for it, a bit each.
    pub mask: u64,
    /// Of the packet that gives credits back, or did last: the cycle before that in which its first flit does, its flits, and its credits. One
    /// of a single flit leaves nothing here.
    back_from: u64,
    back_flits: u8,
    back_credits: u16,
    /// Flits that have started, modulo 2^32.
    pub flits: u32,
    /// Credits that are free without those of that packet; below 0 if some of these are taken already.
    free: i32,
    /// Credits that heads need which have chosen it.
    claimed: u16,
    /// The bit at which the next arbitration begins.
    pub begin: u8,
    /// Whether its link waits for credits of which nothing is known yet, and whether heads do that seek room.
    pub is_awaited: bool,
    pub is_sought: bool,
}

impl Lane {
    /// A lane with `credits` credits.
    pub const fn new(credits: i32) -> Self {
        Self {
            mask: 0,
            back_from: 0,
            back_flits: 0,
            back_credits: 0,
            flits: 0,
            free: credits,
            claimed: 0,
            begin: 0,
            is_awaited: false,
            is_sought: false,
        }
    }

    /// Credits that are free in the cycle `now`, where flits have `flit` bytes.
    #[inline]
    pub fn free(&self, now: u64, flit: u32) -> i64 {
        let flits = u32::try_from(now - self.back_from).unwrap_or(u32::MAX);
        let is_back = flits >= u32::from(self.back_flits);
        let back = if is_back { self.back_credits.into() } else { flits * flit / CREDIT_BYTES };
        i64::from(self.free) + i64::from(back)
    }

    /// The same, less those that heads need which have chosen it.
    #[inline]
    pub fn unclaimed(&self, now: u64, flit: u32) -> i64 {
        self.free(now, flit) - i64::from(self.claimed)
    }

    /// The cycle in which `need` credits are free, where fewer are now, if that is known.
    pub fn free_from(&self, need: u32, flit: u32) -> Option<u64> {
        let missing = u64::try_from(i64::from(need) - i64::from(self.free)).ok()?;
        let flits = (missing * CREDIT).div_ceil(flit.into()).min(self.back_flits.into());
        (missing <= self.back_credits.into()).then_some(self.back_from + flits)
    }

    /// The same of credits that no head needs which has chosen it.
    #[inline]
    pub fn unclaimed_from(&self, need: u32, flit: u32) -> Option<u64> {
        self.free_from(need + u32::from(self.claimed), flit)
    }

    /// In the cycle `now` the first flit gives its credits back of a packet with so many flits and credits; the packet before has given back
    /// all.
    #[inline]
    pub fn give_back(&mut self, now: u64, (flits, credits): (u16, u16)) {
        self.free += i32::from(self.back_credits);
        if flits == 1 {
            self.free += i32::from(credits);
            (self.back_flits, self.back_credits) = (0, 0);
            return;
        }
        // Less than the cycles of a ring.
        let flits = u8::try_from(flits).unwrap_or(u8::MAX);
        (self.back_from, self.back_flits, self.back_credits) = (now - 1, flits, credits);
    }

    /// A head that needs so many credits chooses it.
    #[inline]
    pub const fn claim(&mut self, credits: u16) {
        self.claimed += credits;
    }

    /// A packet with so many flits and credits starts, which are free. Returns whether the count of flits began again.
    #[inline]
    pub fn start(&mut self, (flits, credits): (u16, u16)) -> bool {
        self.free -= i32::from(credits);
        let (flits, overflows) = self.flits.overflowing_add(flits.into());
        self.flits = flits;
        overflows
    }

    /// The head of a queue that starts had chosen it.
    #[inline]
    pub const fn disclaim(&mut self, credits: u16) {
        self.claimed -= credits;
    }
}

/// The queue at the end of a lane: half a line of a cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(in crate::fabric::credit) struct Queue {
    /// Its first and last packet.
    pub first: PacketId,
    pub last: PacketId,
    /// The credits that its head must find in the lane that it has chosen.
    pub need: u32,
    /// The cycle from which the packet has left that left last, and its credits.
    pub left_at: u64,
    left_credits: u32,
    /// Credits of its packets, those on the link to it included, and the most so far, those of the packet included that leaves.
    held: u32,
    pub held_most: u32,
}

impl Queue {
    /// Nothing in it.
    pub const EMPTY: Self = Self {
        first: PacketId::NONE,
        last: PacketId::NONE,
        need: 0,
        left_at: 0,
        left_credits: 0,
        held: 0,
        held_most: 0,
    };

    /// A packet with so many credits starts in the cycle `now` on the link to it.
    #[inline]
    pub fn reserve(&mut self, credits: u16, now: u64) {
        self.held += u32::from(credits);
        let leaving = if self.left_at > now { self.left_credits } else { 0 };
        self.held_most = self.held_most.max(self.held + leaving);
    }

    /// Its first packet, with so many credits, starts to leave and has left at the cycle `ended`; `next` is behind it.
    #[inline]
    pub fn release(&mut self, credits: u16, ended: u64, next: PacketId) {
        (self.left_at, self.left_credits) = (ended, credits.into());
        self.held -= u32::from(credits);
        self.first = next;
        if next == PacketId::NONE {
            self.last = PacketId::NONE;
        }
    }
}
