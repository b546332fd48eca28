//! Random small networks of routers that route one packet at a time.

use super::Case;
use super::input_queued::{link, topology};
use super::networks::{drafts, sendings};
use netsim::fabric::spinnaker::{Spinnaker, SpinnakerRouterConfig, TableEntry};
use netsim::routing::RoutingConfig;
use netsim::topology::{HostPlace, LinkId, NodeId, SpinnakerConfig, Topology, TopologyConfig};
use netsim::units::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// The entries of a tree of shortest ways from host `source` to those of `ends`; those that lead straight on are left out where `straight` says so.
fn tree(topology: &Topology, source: u32, ends: &[u32], straight: bool) -> Vec<TableEntry> {
    let (mut before, mut open) = (BTreeMap::new(), VecDeque::from([NodeId(source)]));
    while let Some(at) = open.pop_front() {
        let out = topology.out(at).iter().filter(|link| !topology.link(**link).absent);
        for link in out {
            let to = topology.link(*link).to;
            if to != NodeId(source) && !before.contains_key(&to) {
                before.insert(to, *link);
                open.push_back(to);
            }
        }
    }
    let mut links = BTreeMap::new();
    for end in ends.iter().filter(|end| **end != source) {
        let mut at = NodeId(*end);
        while let Some(link) = before.get(&at) {
            links.entry(topology.link(*link).from).or_insert_with(BTreeSet::new).insert(*link);
            at = topology.link(*link).from;
        }
    }
    let lattice = topology.lattice();
    let goes_straight = |router: &NodeId, out: &BTreeSet<LinkId>| {
        let (Some(lattice), Some(came)) = (&lattice, before.get(router)) else { return false };
        let from = topology.link(*came).from;
        let axes = (0..lattice.axes()).flat_map(|axis| [(axis, true), (axis, false)]);
        !topology.is_host(from)
            && out.len() == 1
            && axes
                .into_iter()
                .find(|(axis, way)| lattice.port(from.0 - topology.hosts(), *axis, *way) == Some(came))
                .is_some_and(|(axis, way)| lattice.port(router.0 - topology.hosts(), axis, way) == out.first())
    };
    let named = |node: NodeId| topology.name(node).to_owned();
    let kept =
        links.iter().filter(|(router, out)| !(topology.is_host(**router) || straight && goes_straight(router, out)));
    kept.map(|(router, out)| TableEntry {
        router: named(*router),
        source: named(NodeId(source)),
        to: out.iter().map(|link| named(topology.link(*link).to)).collect(),
    })
    .collect()
}

/// Networks on which packets, queues and waits differ, some of whose hosts send by tables.
pub fn spinnaker_networks() -> impl Strategy<Value = Case<SpinnakerRouterConfig>> {
    let trees = vec((0..9u32, vec(0..9u32, 1..5), any::<bool>()), 0..4);
    (routed_networks(), trees).prop_map(|(mut case, trees)| {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let mut sources = BTreeSet::new();
        for (source, ends, straight) in trees {
            let hosts = topology.hosts();
            let (source, ends): (u32, Vec<u32>) = (source % hosts, ends.iter().map(|end| end % hosts).collect());
            if ends.iter().any(|end| *end != source) && sources.insert(source) {
                case.config.tables.extend(tree(&topology, source, &ends, straight));
            }
        }
        // Where two links lead to one neighbour, straight on may be by the other one.
        if Spinnaker::new(&case.config, &case.hosts, ()).is_err() {
            case.config.tables.clear();
        }
        case
    })
}

/// The same without tables.
pub fn routed_networks() -> impl Strategy<Value = Case<SpinnakerRouterConfig>> {
    let triangles = link().prop_map(|link| {
        let torus = SpinnakerConfig { size: vec![3, 3], host_link: link, link, ..SpinnakerConfig::default() };
        (TopologyConfig::Spinnaker(torus), RoutingConfig::Shortest)
    });
    let base = prop_oneof![2 => link().prop_flat_map(topology), 1 => triangles];
    let sizes = (1..9u32, prop_oneof![2 => Just(64u64), 1 => 1..100u64], 1..4u32);
    let router = (1..4u32, prop_oneof![1 => Just(0u32), 2 => 1..40u32], 0..3u32, any::<u64>());
    (base, sizes, router, drafts(50), select(vec![0u64, 3])).prop_map(|(base, sizes, router, drafts, headers)| {
        let ((topology, routing), (flits, flit, buffer)) = (base, sizes);
        let (routing_cycles, wait, link_cycles, seed) = router;
        // Classes and credits mean nothing here.
        let routing = match &topology {
            TopologyConfig::Torus(_) | TopologyConfig::Mesh(_) => RoutingConfig::Dor,
            _ if routing == RoutingConfig::Adaptive => RoutingConfig::Random,
            _ => routing,
        };
        let headers = headers.min(u64::from(flits) * flit - 1);
        let mtu = u64::from(flits) * flit - headers;
        let config = SpinnakerRouterConfig {
            topology: topology.clone(),
            routing,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            buffer,
            routing_cycles,
            wait,
            link_cycles,
            ..SpinnakerRouterConfig::default()
        };
        let idle = topology.build(&[]).unwrap().hosts() as usize;
        let hosts: Vec<_> = (0..idle.min(MAX_HOSTS))
            .map(|host| HostPlace { name: format!("w{host}"), rack: "rack0".to_owned() })
            .collect();
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
