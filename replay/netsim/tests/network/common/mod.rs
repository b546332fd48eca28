//! What the tests of routing share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use netsim::routing::{Choice, Routes, RoutingConfig};
use netsim::topology::{Graph, GraphConfig, GraphEdge, LinkId, LinkText, NodeId, Topology, TopologyConfig};
use proptest::prelude::*;

/// The topology of these keys, without a workload.
pub fn build(text: &str) -> Topology {
    text.parse::<TopologyConfig>().unwrap().build(&[]).unwrap()
}

/// One step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub link: LinkId,
    pub class: u8,
    pub enters_ring: bool,
}

/// A packet's way from host to host. `credits` chooses where the routing leaves it to credits.
pub fn walk(
    topology: &Topology,
    routes: &Routes,
    (source, destination): (u32, u32),
    (key, flow): (u64, u64),
    credits: impl Fn(usize) -> usize,
) -> Vec<Step> {
    let (source, destination) = (NodeId(source), NodeId(destination));
    let (mut at, mut input_link) = (source, LinkId(u32::MAX));
    let mut way = Vec::new();
    while at != destination {
        assert!(way.len() <= topology.links().len(), "{source:?} to {destination:?} goes round: {way:?}");
        let next = routes.next(at, input_link, destination);
        assert!(!next.links.is_empty(), "no way from {source:?} to {destination:?} at {}", topology.name(at));
        assert!(next.class < routes.classes());
        let index = match routes.choose(next.links.len(), at, key, flow, source, destination) {
            Choice::Index(index) => index,
            Choice::ByCredits => credits(next.links.len()),
        };
        let link = next.links[index];
        assert_eq!(topology.link(link).from, at);
        way.push(Step { link, class: next.class, enters_ring: next.enters_ring });
        (at, input_link) = (topology.link(link).to, link);
    }
    way
}

/// The nodes of a way, the first left out.
pub fn nodes(topology: &Topology, way: &[Step]) -> Vec<u32> {
    way.iter().map(|step| topology.link(step.link).to.0).collect()
}

/// Links between all nodes and `source` on shortest ways; hosts are not passed.
pub fn distances(topology: &Topology, source: u32) -> Vec<usize> {
    let mut distances = vec![usize::MAX; topology.nodes() as usize];
    distances[source as usize] = 0;
    let mut reached = std::collections::VecDeque::from([NodeId(source)]);
    while let Some(node) = reached.pop_front() {
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if distances[to.0 as usize] == usize::MAX {
                distances[to.0 as usize] = distances[node.0 as usize] + 1;
                reached.push_back(to);
            }
        }
    }
    distances
}

/// A topology from cables between switches and the switch of each host.
pub fn graph(switches: usize, cables: &[(usize, usize)], hosts: &[usize]) -> Topology {
    let names = (0..hosts.len()).map(|host| (format!("h{host}"), true));
    let nodes: Vec<(String, bool)> = names.chain((0..switches).map(|switch| (format!("s{switch}"), false))).collect();
    let edge = |ends| GraphEdge { ends, class: None, cables: 1, link: LinkText::default(), line: 0 };
    let first = hosts.len();
    let of_hosts = hosts.iter().enumerate().map(|(host, switch)| edge((host, first + switch)));
    let between = cables.iter().map(|(a, b)| edge((first + a, first + b)));
    let edges = of_hosts.chain(between).collect();
    let graph = Graph { nodes, edges, ..Graph::default() };
    GraphConfig::default().topology(&graph, "the test's graph", &[]).unwrap()
}

/// Any connected graph: a random tree of switches, more cables, some of them parallel, and hosts somewhere.
pub fn any_graph() -> impl Strategy<Value = Topology> {
    (2usize..9).prop_flat_map(|switches| {
        let tree = prop::collection::vec(any::<prop::sample::Index>(), switches - 1);
        let more = prop::collection::vec((0..switches, 0..switches), 0..12);
        let hosts = prop::collection::vec(0..switches, 2..8);
        (tree, more, hosts).prop_map(move |(tree, more, hosts)| {
            let tree = tree.iter().enumerate().map(|(switch, below)| (switch + 1, below.index(switch + 1)));
            let cables: Vec<_> = tree.chain(more.into_iter().filter(|(a, b)| a != b)).collect();
            graph(switches, &cables, &hosts)
        })
    })
}

/// Any tree, as keys.
pub fn any_tree() -> impl Strategy<Value = Topology> {
    prop::collection::vec((1u32..4, 1u32..4, 1u32..3), 1..4).prop_map(|form| {
        let m: Vec<u32> = form.iter().map(|(m, _, _)| *m).collect();
        let mut w: Vec<u32> = form.iter().map(|(_, w, _)| *w).collect();
        let mut cables: Vec<u32> = form.iter().map(|(_, _, cables)| *cables).collect();
        (w[0], cables[0]) = (1, 1);
        build(&format!("shape = \"xgft\"\nm = {m:?}\nw = {w:?}\ncables = {cables:?}"))
    })
}

/// Any mesh or torus.
pub fn any_grid() -> impl Strategy<Value = Topology> {
    let sizes =
        prop::collection::vec(1u32..7, 1..4).prop_filter("small enough", |sizes| sizes.iter().product::<u32>() <= 80);
    (sizes, any::<bool>(), 1u32..3).prop_map(|(size, wraps, concentration)| {
        let shape = if wraps { "torus" } else { "mesh" };
        build(&format!("shape = \"{shape}\"\nsize = {size:?}\nconcentration = {concentration}"))
    })
}

/// Any small lattice, as keys: twisted, one way, midimew, SpiNNaker, or a plain torus.
pub fn any_lattice() -> impl Strategy<Value = String> {
    let twisted = (2u32..7, 2u32..5, 0u32..7, prop::option::of((2u32..4, 0u32..7))).prop_map(|(x, y, over_y, more)| {
        let twist = |by: u32| by % x;
        match more {
            None => format!("shape = \"torus\"\nsize = [{x}, {y}]\ntwist = {{ y = {{ x = {} }} }}", twist(over_y)),
            Some((z, over_z)) => format!(
                "shape = \"torus\"\nsize = [{x}, {y}, {z}]\ntwist = {{ y = {{ x = {} }}, z = {{ x = {} }} }}",
                twist(over_y),
                twist(over_z)
            ),
        }
    });
    let plain = prop::collection::vec(1u32..6, 1..4).prop_map(|size| format!("shape = \"torus\"\nsize = {size:?}"));
    let midimew = (5u32..50).prop_map(|routers| format!("shape = \"midimew\"\nrouters = {routers}"));
    let triangles = (3u32..7, 3u32..7).prop_map(|(x, y)| format!("shape = \"spinnaker\"\nsize = [{x}, {y}]"));
    let shape = prop_oneof![2 => twisted, 1 => plain, 1 => midimew, 1 => triangles];
    (shape, 1u32..3, 1u8..3)
        .prop_map(|(shape, concentration, ways)| format!("{shape}\nconcentration = {concentration}\nways = {ways}"))
}

/// The routings that need no certain form.
pub const ANYWHERE: [RoutingConfig; 4] =
    [RoutingConfig::Ecmp, RoutingConfig::EcmpPacket, RoutingConfig::Shortest, RoutingConfig::UpDown];

/// The routings of trees and graphs.
pub const UPWARDS: [RoutingConfig; 4] =
    [RoutingConfig::DModK, RoutingConfig::SModK, RoutingConfig::Random, RoutingConfig::Adaptive];
