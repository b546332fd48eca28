//! What heads ask for that may commit themselves to lanes which one packet has at a time.

use crate::fabric::ids::LaneId;
use crate::routing::Lane;

/// A head that asks for a lane.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub queue: LaneId,
    pub offered: Lane,
    pub lane: LaneId,
    /// The lane's link in the whole network, and its VL there.
    pub place: (u32, u32),
    /// The queue's position in the lane's round robin.
    pub position: u32,
}

/// What is only used within an instant.
#[derive(Default)]
pub(super) struct Grants {
    /// The heads of a switch that have no lane yet.
    pub heads: Vec<LaneId>,
    pub asks: Vec<Ask>,
}
