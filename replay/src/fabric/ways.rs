//! The choice of a link at a switch, for the fabrics that simulate packets.

use crate::kernel::random::draw;
use crate::routing::{Next, RoutingConfig};
use crate::topology::NodeId;

/// What a rule of choice may know of a packet.
#[derive(Clone, Copy)]
pub(super) struct Chooser {
    pub destination: NodeId,
    pub flow: u64,
    /// Source host x 2^40 + number.
    #[expect(dead_code, reason = "for routings that draw for each packet")]
    pub key: u64,
}

/// Which of `next.links` a packet at switch `at` takes, by a rule that knows only packet and place.
#[inline]
pub(super) fn position(rule: RoutingConfig, seed: u64, at: NodeId, packet: &Chooser, next: &Next<'_>) -> usize {
    let links = next.links.len() as u64;
    if links <= 1 {
        return 0;
    }
    let position = match rule {
        RoutingConfig::Ecmp => draw(seed, u64::from(at.0), packet.flow) % links,
        RoutingConfig::DModK => u64::from(packet.destination.0) % links,
    };
    usize::try_from(position).unwrap_or(0)
}

/// The number by which random choices know a packet.
pub(super) const fn key(source: u32, number: u64) -> u64 {
    ((source as u64) << 40).wrapping_add(number)
}

/// The bits of a packet's [`key`] that are its number.
pub(super) const NUMBER: u64 = (1 << 40) - 1;
