//! Topologies against closed forms: how many of what, numbered how, how far from each other.

use crate::common::lab;
use netsim::routing::{Router, RoutingConfig};
use netsim::topology::{FatTreeConfig, HostPlace, LinkId, NodeId, RacksConfig, Topology, TopologyConfig};
use proptest::prelude::*;

fn fat_tree(nodes: u32, racks: u32, cores: u32, factor: u32) -> Topology {
    let config = FatTreeConfig { nodes: Some(nodes), racks: Some(racks), cores, factor, ..FatTreeConfig::default() };
    TopologyConfig::FatTree(config).build(&[]).unwrap()
}

fn names(topology: &Topology) -> Vec<&str> {
    (0..topology.nodes()).map(|node| topology.name(NodeId(node))).collect()
}

#[test]
fn the_labs_network_is_two_racks_and_a_cable() {
    let hosts: Vec<HostPlace> = [("m1", "/r1"), ("w1", "/r1"), ("w2", "/r2"), ("w3", "/r1")]
        .map(|(name, rack)| HostPlace { name: name.to_owned(), rack: rack.to_owned() })
        .to_vec();
    let topology = TopologyConfig::Racks(RacksConfig::default()).build(&hosts).unwrap();
    assert_eq!(names(&topology), ["m1", "w1", "w3", "w2", "/r1", "/r2"]);
    assert_eq!(topology.links().len(), 2 * (4 + 1));
    // The workload's third host is the fourth node.
    assert_eq!(topology.host_node(2), NodeId(3));
    let mut path = Vec::new();
    Router::new(RoutingConfig::Ecmp, 1).way(&topology, NodeId(0), NodeId(3), 0, &mut path);
    let ways: Vec<String> = path.iter().map(|link| topology.link_name(*link).into_string()).collect();
    assert_eq!(ways, ["m1->/r1", "/r1->/r2", "/r2->w2"]);
}

#[test]
fn racks_of_a_fat_tree_are_filled_up_with_idle_hosts() {
    let mut hosts = lab(2, 2);
    hosts.push(HostPlace { name: "m".to_owned(), rack: "rack0".to_owned() });
    let topology = TopologyConfig::FatTree(FatTreeConfig::default()).build(&hosts).unwrap();
    assert_eq!(names(&topology), ["w0", "w1", "m", "w2", "w3", "idle5", "rack0", "rack1", "core0", "core1"]);
    assert_eq!(topology.hosts(), 6);
    assert_eq!(topology.host_node(4), NodeId(2));
    assert_eq!(topology.host_node(5), NodeId(5), "idle hosts are numbered behind the workload's");
}

proptest! {
    #[test]
    fn a_fat_tree_has_an_uplink_from_each_rack_to_each_core(
        racks in 1u32..8, places in 1u32..6, cores in 1u32..5, factor in 1u32..4,
    ) {
        let topology = fat_tree(racks * places, racks, cores, factor);
        prop_assert_eq!(topology.nodes(), racks * places + racks + cores);
        prop_assert_eq!(topology.links().len() as u32, 2 * (racks * places + racks * cores * factor));
        for rack in 0..racks {
            let out = topology.out(NodeId(racks * places + rack));
            prop_assert_eq!(out.len() as u32, places + cores * factor);
        }
    }

    #[test]
    fn ways_are_the_shortest_and_lead_there(
        racks in 1u32..6, places in 1u32..5, cores in 1u32..4, factor in 1u32..3, flow in any::<u64>(), ecmp in any::<bool>(),
    ) {
        let topology = fat_tree(racks * places, racks, cores, factor);
        let routing = if ecmp { RoutingConfig::Ecmp } else { RoutingConfig::DModK };
        let mut router = Router::new(routing, 7);
        for source in 0..racks * places {
            for destination in (0..racks * places).filter(|host| *host != source) {
                let mut path: Vec<LinkId> = Vec::new();
                router.way(&topology, NodeId(source), NodeId(destination), flow, &mut path);
                let links = if source / places == destination / places { 2 } else { 4 };
                prop_assert_eq!(path.len(), links);
                prop_assert_eq!(topology.link(path[0]).from, NodeId(source));
                prop_assert_eq!(topology.link(path[links - 1]).to, NodeId(destination));
                prop_assert!(path.windows(2).all(|two| topology.link(two[0]).to == topology.link(two[1]).from));
            }
        }
    }
}

#[test]
fn ecmp_spreads_flows_evenly_over_uplinks_and_d_mod_k_spreads_destinations() {
    let topology = fat_tree(64, 4, 4, 2);
    let first_uplink = |routing, flows: u64, destinations: u32| {
        let mut used = std::collections::BTreeMap::new();
        let mut router = Router::new(routing, 3);
        for flow in 0..flows {
            for destination in 64 - destinations..64 {
                let mut path = Vec::new();
                router.way(&topology, NodeId(0), NodeId(destination), flow, &mut path);
                *used.entry(path[1]).or_insert(0u32) += 1;
            }
        }
        used
    };
    let by_flow = first_uplink(RoutingConfig::Ecmp, 8_000, 1);
    // 1,000 each expected, standard deviation 30.
    assert_eq!(by_flow.len(), 8);
    assert!(by_flow.values().all(|flows| (880..1_120).contains(flows)), "{by_flow:?}");
    let by_destination = first_uplink(RoutingConfig::DModK, 1, 16);
    assert!(by_destination.len() == 8 && by_destination.values().all(|used| *used == 2), "{by_destination:?}");
}
