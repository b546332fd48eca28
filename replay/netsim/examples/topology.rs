//! A topology of one's own, and a routing for it: `cargo run --release -p netsim --example topology`.
//!
//! A ring of `SWITCHES` switches with a chord from each to the opposite one, a host at each. Packets take the chord first if it
//! brings them nearer, then go clockwise. The check for deadlock refuses it on lossless links, for packets can wait for each
//! other around the ring, and a run without losses is made with switches that queue packets at their outputs.

use std::io::{Write as _, stdout};

use netsim::fabric::FabricError;
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::packet::{Message, PacketFabric, PacketRecord, ServiceLevel};
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::network::{HostIndex, Simulation, Token};
use netsim::routing::{Routes, RoutingError};
use netsim::time::SimTime;
use netsim::topology::{Graph, GraphConfig, GraphEdge, LinkText, NodeId, Topology};

const SWITCHES: u32 = 8;

/// The topology: nodes are hosts first, then switches, as everywhere.
fn ring_with_chords() -> Result<Topology, Box<dyn std::error::Error>> {
    let names = |letter: char, host: bool| (0..SWITCHES).map(move |number| (format!("{letter}{number}"), host));
    let nodes = names('h', true).chain(names('s', false)).collect();
    let edge = |a: u32, b: u32| GraphEdge {
        ends: (a as usize, b as usize),
        class: None,
        cables: 1,
        link: LinkText::default(),
        line: 0,
    };
    let switch = |number: u32| SWITCHES + number % SWITCHES;
    let hosts = (0..SWITCHES).map(|number| edge(number, switch(number)));
    let ring = (0..SWITCHES).map(|number| edge(switch(number), switch(number + 1)));
    let chords = (0..SWITCHES / 2).map(|number| edge(switch(number), switch(number + SWITCHES / 2)));
    let graph = Graph { nodes, edges: hosts.chain(ring).chain(chords).collect(), ..Graph::default() };
    Ok(GraphConfig::default().topology(&graph, "ring with chords", &[])?)
}

/// The routing: at each switch, the link by which packets for a host go on.
fn chord_first(topology: &Topology) -> Result<Routes, RoutingError> {
    Routes::by(topology, "chord first", |at, to| {
        let clockwise = (to.0 + SWITCHES - (at.0 - SWITCHES)) % SWITCHES;
        let next = match clockwise {
            0 => to,
            ahead if ahead >= SWITCHES / 2 => NodeId(SWITCHES + (at.0 - SWITCHES + SWITCHES / 2) % SWITCHES),
            _ => NodeId(SWITCHES + (at.0 - SWITCHES + 1) % SWITCHES),
        };
        topology.out(at).iter().copied().find(|link| topology.link(*link).to == next)
    })
}

/// Builds it, shows what each host's packet to the one before it takes, and what the lossless fabric says.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = ring_with_chords()?;
    let routes = chord_first(&topology)?;

    let lossless = Credit::on(&CreditConfig::default(), topology.clone(), routes.clone(), ());
    let Err(FabricError::Routing(RoutingError::Deadlock { cycle, .. })) = lossless.map(drop) else {
        return Err("packets can wait for each other around the ring".into());
    };
    writeln!(stdout(), "on lossless links these could wait for each other: {cycle}")?;

    let config = StoreAndForwardConfig::default();
    let mut fabric = StoreAndForward::on(&config, topology, routes, Vec::<PacketRecord>::new())?;
    for source in 0..SWITCHES {
        let (source, destination) = (HostIndex(source), HostIndex((source + SWITCHES - 1) % SWITCHES));
        let (level, flow, token) = (ServiceLevel(0), u64::from(source.0), Token(source.0.into()));
        fabric.send(SimTime::ZERO, &Message { source, destination, bytes: 1_500, level, flow, token });
    }
    fabric.run_before(SimTime::LATEST);
    let packets = fabric.observer();
    // The chord, then three steps clockwise.
    assert!(packets.len() == SWITCHES as usize && packets.iter().all(|packet| packet.switches == 5));
    let last = packets.iter().map(|packet| packet.arrived).max().unwrap_or_default();
    writeln!(stdout(), "{} packets over 5 switches each, the last after {last}", packets.len())?;
    Ok(())
}
