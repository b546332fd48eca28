//! Both ends of a link in cycles: where it begins, and where it ends.

use crate::topology::LinkId;

/// Of a link for which no look is on the way.
pub(super) const NEVER: u64 = u64::MAX;

/// A link, where it begins. It fits into one line of a cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(in crate::fabric::credit) struct Output {
    /// Bytes and packets that started on it in the present interval.
    pub bytes: u64,
    pub packets: u64,
    /// Its lane of VL 0.
    pub first_lane: u32,
    /// The cycle from which it is free.
    pub free_at: u64,
    /// The earliest cycle in which it looks again; [`NEVER`] if none is known.
    pub wake: u64,
    /// The link, as the topology numbers it.
    pub link: LinkId,
    /// The switch or the host at which it begins, and the switch at which it ends; each counted from 0 on.
    pub from: u32,
    pub to: u32,
    /// Its queue of VL 0, where it ends.
    pub first_queue: u32,
    /// The VLs for which somebody asks, a bit each.
    pub asking: u16,
    /// The VL at which the next arbitration begins.
    pub turn: u8,
    /// Its bit among the links that begin at its switch, and that of its queue of VL 0 among those where it ends.
    pub bit: u8,
    pub first_bit: u8,
    /// How many outputs begin where it does: its lane of VL 1 is so many behind that of VL 0, and so on.
    pub stride: u8,
    /// Cycles from the start of a packet until it can be the head of its queue; to a host, until its last flit has arrived, less its flits.
    pub ahead: u8,
    /// Cycles that credits are on their way.
    pub back: u8,
    pub from_host: bool,
    pub to_host: bool,
    /// Whether it takes a packet of each queue at a time, without credits: to a host that takes all at once.
    pub is_parallel: bool,
}

/// A link, where it ends.
#[derive(Clone, Copy)]
pub(super) struct Input {
    /// Its lane of VL 0, where it begins; how many behind it that of VL 1 is, and so on.
    pub first_lane: u32,
    pub stride: u8,
    /// Cycles that credits are on their way.
    pub back: u8,
}

/// Links are asked for by this many VLs at most.
const VLS: u32 = u16::BITS;

impl Output {
    /// The VLs for which somebody asks: from the one on whose turn it is, then those before it.
    #[inline]
    pub fn asking_in_turn(&self) -> InTurn {
        InTurn { turned: self.asking.rotate_right(self.turn.into()), turn: self.turn.into() }
    }
}

/// VLs, from the one on whose turn it is.
pub(in crate::fabric::credit) struct InTurn {
    /// Those that are left, a bit each, turned so that the first one is the lowest.
    turned: u16,
    turn: u32,
}

impl Iterator for InTurn {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let turned = self.turned;
        self.turned &= turned.wrapping_sub(1);
        (turned != 0).then(|| (turned.trailing_zeros() + self.turn) % VLS)
    }
}
