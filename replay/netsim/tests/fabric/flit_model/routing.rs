//! Rules by which a packet takes one of several links, that know only packet and place.

use netsim::kernel::random::draw;
use netsim::routing::{Choice, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId};

/// What a rule knows of a packet.
pub struct Labels {
    pub key: u64,
    pub flow: u64,
    pub source: NodeId,
    pub destination: NodeId,
}

/// Which of `links` a packet takes at `switch`.
pub fn rule(
    config: &RoutingConfig,
    routes: &Routes,
    seed: u64,
    switch: NodeId,
    links: &[LinkId],
    packet: &Labels,
) -> LinkId {
    let number = links.len() as u64;
    let place = u64::from(switch.0);
    let position = match config {
        RoutingConfig::Ecmp => draw(seed, place, packet.flow) % number,
        RoutingConfig::EcmpPacket | RoutingConfig::Random => draw(seed, place, packet.key) % number,
        // Digits of hosts' numbers, files and grids: the routing's own rules, which its own tests check.
        _ => match routes.choose(links.len(), switch, packet.key, packet.flow, packet.source, packet.destination) {
            Choice::Index(index) => index as u64,
            Choice::ByCredits => panic!("the switch chooses by credits"),
        },
    };
    links[usize::try_from(position).unwrap()]
}
