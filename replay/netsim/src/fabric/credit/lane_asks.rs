//! What heads ask for that may commit themselves to lanes which one packet has at a time.

use crate::fabric::ids::LaneId;
use crate::routing::Lane;

/// Some lanes, a bit each; several may share one.
#[derive(Clone, Copy, Default)]
pub(super) struct LaneBits(u64);

impl LaneBits {
    /// With `lane`.
    pub fn add(&mut self, lane: LaneId) {
        // The upper bits of a product with a large odd number: lanes of one switch are spread over all of them.
        self.0 |= 1 << (lane.0.wrapping_mul(0x9e37_79b9) >> 26);
    }

    /// Whether no lane is in both.
    pub const fn is_apart(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }
}

/// A head of a switch that has no lane yet.
#[derive(Clone, Copy)]
pub(super) struct Seeker {
    pub queue: LaneId,
    /// The lane to which it would commit itself, and all lanes on which that depends; unknown if not `known`.
    pub offered: Option<Lane>,
    pub looked: LaneBits,
    pub known: bool,
}

/// A head that asks for a lane.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub queue: LaneId,
    pub offered: Lane,
    pub lane: LaneId,
    /// All lanes on which it depends that it asks for this one.
    pub looked: LaneBits,
    /// The lane's link in the whole network, and its VL there.
    pub place: (u32, u32),
    /// The queue's position in the lane's round robin.
    pub position: u32,
}

/// What is only used within an instant.
#[derive(Default)]
pub(super) struct Grants {
    /// The heads of a switch that have no lane yet.
    pub heads: Vec<Seeker>,
    pub asks: Vec<Ask>,
}
