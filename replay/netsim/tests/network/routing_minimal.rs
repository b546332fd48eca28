//! `minimal-adaptive`: all shortest ways, and an escape that gets a packet to its destination from anywhere.

use crate::common::{any_graph, any_grid, any_tree, build, distances};
use netsim::routing::{DeadlockFreedom, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId, Topology};
use proptest::prelude::*;

fn routes(topology: &Topology) -> Routes {
    Routes::new(&RoutingConfig::MinimalAdaptive, topology, 1).unwrap()
}

/// What is offered first are the links that lead nearer, all of them and no others, on classes that are no escape's.
fn offers_all_shortest_ways(topology: &Topology) {
    let routes = routes(topology);
    for to in (0..topology.hosts()).map(NodeId) {
        // Links have two directions, so distances from the host are those to it.
        let distances = distances(topology, to.0);
        for at in (topology.hosts()..topology.nodes()).map(NodeId) {
            let next = routes.next(at, LinkId(u32::MAX), to);
            let mut offered = next.links.to_vec();
            offered.sort_unstable();
            let here = distances[at.0 as usize];
            let leads = |link: &LinkId| distances[topology.link(*link).to.0 as usize] < here;
            let ends = |link: &LinkId| !topology.is_host(topology.link(*link).to) || topology.link(*link).to == to;
            let mut nearer: Vec<LinkId> =
                topology.out(at).iter().copied().filter(|link| leads(link) && ends(link)).collect();
            nearer.sort_unstable();
            assert_eq!(offered, nearer, "{} to {}", topology.name(at), topology.name(to));
            let last = topology.link(offered[0]).to == to;
            assert!(last || next.class >= routes.escape_classes() && next.class < routes.classes());
        }
    }
}

/// From every switch the escape leads to every host, whatever of its links is taken.
fn escapes_from_everywhere(topology: &Topology) {
    let routes = routes(topology);
    for to in (0..topology.hosts()).map(NodeId) {
        for from in (topology.hosts()..topology.nodes()).map(NodeId) {
            let (mut at, mut input_link, mut on_escape) = (from, LinkId(u32::MAX), false);
            let mut steps = 0;
            while let Some(escape) = routes.escape(at, input_link, on_escape, to) {
                assert!(escape.class + escape.classes <= routes.escape_classes());
                let link = escape.links[steps % escape.links.len()];
                (at, input_link, on_escape) = (topology.link(link).to, link, true);
                steps += 1;
                assert!(steps <= topology.links().len(), "{} to {} goes round", topology.name(from), topology.name(to));
            }
            let next = routes.next(at, input_link, to);
            let there = next.links.iter().all(|link| topology.link(*link).to == to);
            assert!(there || routes.escape_classes() == 0, "{} is not {}", topology.name(at), topology.name(to));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn shortest_ways_come_first_and_the_escape_always_leads_there(
        topology in prop_oneof![any_grid(), any_graph(), any_tree()],
    ) {
        offers_all_shortest_ways(&topology);
        escapes_from_everywhere(&topology);
        prop_assert_eq!(routes(&topology).cycle(&topology), None);
        prop_assert!(routes(&topology).deadlock_freedom(&topology).is_ok());
    }
}

#[test]
fn the_escape_is_what_is_checked_for_deadlock() {
    for (text, classes) in [
        ("shape = \"torus\"\nsize = [5, 4]", 3),
        ("shape = \"mesh\"\nsize = [5, 4]", 2),
        ("shape = \"k-ary-n-tree\"\nk = 2\nn = 3", 1),
    ] {
        let topology = build(text);
        let routes = routes(&topology);
        assert_eq!(routes.classes(), classes, "{text}");
        let freedom = routes.deadlock_freedom(&topology).unwrap();
        match classes {
            1 => assert_eq!(freedom, DeadlockFreedom::UpThenDown),
            _ => assert!(matches!(freedom, DeadlockFreedom::Escape { waits, .. } if waits > 0), "{freedom}"),
        }
    }
    // The same shortest ways without an escape wait for each other.
    let ring = build("shape = \"torus\"\nsize = [5]");
    assert!(Routes::new(&RoutingConfig::EcmpPacket, &ring, 1).unwrap().deadlock_freedom(&ring).is_err());
}
