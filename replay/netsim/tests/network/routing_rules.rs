//! What each routing chooses, on networks small enough to tell.

use crate::common::{build, graph, nodes, walk};
use netsim::routing::{Choice, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::BTreeMap;

fn routes(topology: &Topology, config: RoutingConfig) -> Routes {
    Routes::new(&config, topology, 7).unwrap()
}

/// How often each link is used when every host sends to the host `shift` further on.
fn use_by_shift(topology: &Topology, routes: &Routes, shift: u32) -> BTreeMap<LinkId, u32> {
    let hosts = topology.hosts();
    let mut used = BTreeMap::new();
    for source in 0..hosts {
        for step in walk(topology, routes, (source, (source + shift) % hosts), (0, 0), |_| 0) {
            *used.entry(step.link).or_insert(0) += 1;
        }
    }
    used
}

#[test]
fn d_mod_k_and_s_mod_k_pass_every_shift_without_two_on_one_link() {
    for text in [
        "shape = \"k-ary-n-tree\"\nk = 4\nn = 3",
        "shape = \"m-port-n-tree\"\nm = 8\nn = 2",
        "shape = \"fat-tree\"\nnodes = 16\nracks = 4\ncores = 2\nfactor = 2",
        "shape = \"xgft\"\nm = [4, 2, 3]\nw = [1, 2, 4]\ncables = [1, 2, 1]",
    ] {
        let topology = build(text);
        for config in [RoutingConfig::DModK, RoutingConfig::SModK] {
            let routes = routes(&topology, config.clone());
            for shift in 1..topology.hosts() {
                let used = use_by_shift(&topology, &routes, shift);
                assert!(used.values().all(|times| *times == 1), "{config} by {shift} in {text}: {used:?}");
            }
        }
        // A hash does not do that.
        let hashed = routes(&topology, RoutingConfig::Ecmp);
        let most = (1..topology.hosts()).flat_map(|shift| use_by_shift(&topology, &hashed, shift).into_values()).max();
        assert!(most > Some(1), "{text}");
    }
}

#[test]
fn d_mod_k_has_one_way_down_to_each_host_and_s_mod_k_one_way_up_from_each() {
    let topology = build("shape = \"k-ary-n-tree\"\nk = 3\nn = 3");
    let (by_destination, by_source) =
        (routes(&topology, RoutingConfig::DModK), routes(&topology, RoutingConfig::SModK));
    for host in 0..27 {
        let far: Vec<u32> = (0..27).filter(|other| other / 9 != host / 9).collect();
        let tops = |ways: Vec<Vec<u32>>| {
            let mut tops: Vec<u32> = ways.iter().map(|way| way[2]).collect();
            tops.sort_unstable();
            tops.dedup();
            tops.len()
        };
        let to =
            far.iter().map(|other| nodes(&topology, &walk(&topology, &by_destination, (*other, host), (1, 1), |_| 0)));
        assert_eq!(tops(to.collect()), 1);
        let from =
            far.iter().map(|other| nodes(&topology, &walk(&topology, &by_source, (host, *other), (1, 1), |_| 0)));
        assert_eq!(tops(from.collect()), 1);
    }
    // Host 5 = 012 in base 3: at the first level by its last digit, 2, at the second by the one before, 1.
    let way = nodes(&topology, &walk(&topology, &by_destination, (26, 5), (0, 0), |_| 0));
    let names: Vec<&str> = way.iter().map(|node| topology.name(NodeId(*node))).collect();
    assert_eq!(names, ["s1.8", "s2.8", "s3.5", "s2.2", "s1.1", "h5"]);
}

#[test]
fn who_hashes_what() {
    let topology = build("shape = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts = 2");
    let leaf = NodeId(4);
    let choice = |config: &RoutingConfig, key: u64, flow: u64, source: u32, destination: u32| {
        Routes::new(config, &topology, 7).unwrap().choose(4, leaf, key, flow, NodeId(source), NodeId(destination))
    };
    let differs = |config: &RoutingConfig, by: &dyn Fn(u64) -> Choice| {
        let first = by(0);
        let all: Vec<Choice> = (0..50).map(by).collect();
        assert!(all.iter().all(|choice| matches!(choice, Choice::Index(0..4))), "{config}");
        all.iter().any(|choice| *choice != first)
    };
    for (config, by_key, by_flow) in [
        (RoutingConfig::Ecmp, false, true),
        (RoutingConfig::EcmpPacket, true, false),
        (RoutingConfig::Random, true, false),
        (RoutingConfig::DModK, false, false),
        (RoutingConfig::SModK, false, false),
        (RoutingConfig::Shortest, false, false),
        (RoutingConfig::UpDown, false, false),
    ] {
        assert_eq!(differs(&config, &|n| choice(&config, n, 5, 0, 2)), by_key, "{config} by packet");
        assert_eq!(differs(&config, &|n| choice(&config, 5, n, 0, 2)), by_flow, "{config} by flow");
        assert_eq!(config.keeps_flows(), !by_key);
    }
    assert_eq!(choice(&RoutingConfig::DModK, 0, 0, 0, 3), Choice::Index(3));
    assert_eq!(choice(&RoutingConfig::SModK, 0, 0, 1, 3), Choice::Index(1));
    assert_eq!(choice(&RoutingConfig::Shortest, 9, 9, 1, 3), Choice::Index(0));
    assert_eq!(choice(&RoutingConfig::Adaptive, 0, 0, 0, 2), Choice::ByCredits);
    // Where there is one link, there is nothing to choose.
    let adaptive = routes(&topology, RoutingConfig::Adaptive);
    assert_eq!(adaptive.choose(1, leaf, 0, 0, NodeId(0), NodeId(2)), Choice::Index(0));
}

#[test]
fn drawn_ways_are_even_and_differ_by_seed_and_switch() {
    let topology = build("shape = \"k-ary-n-tree\"\nk = 4\nn = 2");
    let draw = |seed, switch, key| {
        let routes = Routes::new(&RoutingConfig::Random, &topology, seed).unwrap();
        match routes.choose(4, NodeId(switch), key, 0, NodeId(0), NodeId(15)) {
            Choice::Index(index) => index,
            Choice::ByCredits => panic!("random knows no credits"),
        }
    };
    let mut counts = [0u32; 4];
    for key in 0..4_000 {
        counts[draw(1, 16, key)] += 1;
    }
    // 1,000 each expected, standard deviation 27.
    assert!(counts.iter().all(|count| (890..1_110).contains(count)), "{counts:?}");
    assert!((0..50).any(|key| draw(1, 16, key) != draw(2, 16, key)));
    assert!((0..50).any(|key| draw(1, 16, key) != draw(1, 17, key)));
}

#[test]
fn dimension_order_goes_dimension_by_dimension_and_the_shorter_way_around() {
    let torus = build("shape = \"torus\"\nsize = [5, 4]");
    let way = |source, destination| {
        let way = walk(&torus, &routes(&torus, RoutingConfig::Dor), (source, destination), (0, 0), |_| 0);
        nodes(&torus, &way).iter().map(|node| torus.name(NodeId(*node)).to_owned()).collect::<Vec<_>>().join(" ")
    };
    // From (4, 0) to (1, 1): over the end of the first dimension, then up the second.
    assert_eq!(way(4, 6), "r4.0 r0.0 r1.0 r1.1 h6");
    assert_eq!(way(0, 3), "r0.0 r4.0 r3.0 h3");
    // Two steps either way: even coordinates go forward, odd ones back.
    assert_eq!(way(0, 10), "r0.0 r0.1 r0.2 h10");
    assert_eq!(way(5, 15), "r0.1 r0.0 r0.3 h15");
    let mesh = build("shape = \"mesh\"\nsize = [5, 4]");
    let long = walk(&mesh, &routes(&mesh, RoutingConfig::Dor), (4, 15), (0, 0), |_| 0);
    assert_eq!(long.len(), 2 + 4 + 3);
}

#[test]
fn a_packet_has_class_1_until_it_has_passed_the_dateline() {
    let topology = build("shape = \"torus\"\nsize = [6]");
    let dor = routes(&topology, RoutingConfig::Dor);
    assert_eq!((dor.classes(), dor.packets_of_room()), (2, 1));
    let classes = |source, destination| {
        walk(&topology, &dor, (source, destination), (0, 0), |_| 0).iter().map(|step| step.class).collect::<Vec<_>>()
    };
    // From 4 over 5 and the dateline to 0 and 1; the links of the hosts are of class 0.
    assert_eq!(classes(4, 1), [0, 1, 1, 0, 0]);
    assert_eq!(classes(1, 5), [0, 1, 1, 0]);
    assert_eq!(classes(0, 2), [0, 0, 0, 0]);
    assert_eq!(classes(5, 0), [0, 1, 0]);
    for other in ["shape = \"mesh\"\nsize = [6]", "shape = \"torus\"\nsize = [2, 2]"] {
        assert_eq!(routes(&build(other), RoutingConfig::Dor).classes(), 1, "{other}");
    }
}

#[test]
fn a_bubble_is_asked_for_where_a_ring_is_entered() {
    let topology = build("shape = \"torus\"\nsize = [5, 5]");
    let bubble = routes(&topology, RoutingConfig::Bubble);
    assert_eq!((bubble.classes(), bubble.packets_of_room()), (1, 2));
    let enters = |source, destination| {
        let way = walk(&topology, &bubble, (source, destination), (0, 0), |_| 0);
        way.iter().map(|step| step.enters_ring).collect::<Vec<_>>()
    };
    // Two steps in each dimension: in at the first of each; the links of the hosts are no rings.
    assert_eq!(enters(0, 12), [false, true, false, true, false, false]);
    assert_eq!(enters(0, 5), [false, true, false]);
    let mesh = build("shape = \"mesh\"\nsize = [5, 5]");
    let routes = routes(&mesh, RoutingConfig::Bubble);
    assert_eq!(routes.packets_of_room(), 1);
    assert!(walk(&mesh, &routes, (0, 12), (0, 0), |_| 0).iter().all(|step| !step.enters_ring));
}

#[test]
fn up_down_takes_a_longer_way_where_the_shortest_goes_up_after_down() {
    // A ring of five with a host each: from the root, 0, two go down each way, and the two at the bottom are joined.
    let ring: Vec<(usize, usize)> = (0..5).map(|switch| (switch, (switch + 1) % 5)).collect();
    let with_center: Vec<(usize, usize)> = ring.iter().copied().chain((0..5).map(|switch| (5, switch))).collect();
    let star = graph(6, &with_center, &[0, 1, 2, 3, 4]);
    let way = |topology: &Topology, source, destination| {
        let way = walk(topology, &routes(topology, RoutingConfig::UpDown), (source, destination), (0, 0), |_| 0);
        nodes(topology, &way).iter().map(|node| topology.name(NodeId(*node)).to_owned()).collect::<Vec<_>>().join(" ")
    };
    // The center is the root; neighbours on the ring are one step apart, and the lower number is up.
    assert_eq!(way(&star, 0, 1), "s0 s1 h1");
    // By s4, s3 would be reached by going down, then up.
    assert_eq!(way(&star, 0, 3), "s0 s5 s3 h3");
    // A path 0 - 1 - 2 - 3 - 4 - 5 - 0 of six without a center: all switches are as near, none alone is the root; ways must
    // still be legal, so some are longer than the shortest.
    let six: Vec<(usize, usize)> = (0..6).map(|switch| (switch, (switch + 1) % 6)).collect();
    let plain = graph(6, &six, &[0, 1, 2, 3, 4, 5]);
    let total = |config: RoutingConfig| {
        let routes = routes(&plain, config);
        let pairs = (0..6u32).flat_map(|a| (0..6u32).filter(move |b| *b != a).map(move |b| (a, b)));
        pairs.map(|ends| walk(&plain, &routes, ends, (0, 0), |_| 0).len()).sum::<usize>()
    };
    assert!(total(RoutingConfig::UpDown) > total(RoutingConfig::Shortest));
}

#[test]
fn up_down_uses_all_tops_of_a_tree_that_comes_as_a_graph() {
    // Two tops, three leaves: both tops are roots.
    let cables = [(2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)];
    let topology = graph(5, &cables, &[2, 2, 3, 3, 4, 4]);
    let routes = routes(&topology, RoutingConfig::UpDown);
    let over = |destination| {
        topology.name(NodeId(nodes(&topology, &walk(&topology, &routes, (0, destination), (0, 0), |_| 0))[1]))
    };
    assert_eq!([over(2), over(3)], ["s0", "s1"]);
}

#[test]
fn a_routing_that_does_not_fit_says_what_would() {
    for (shape, config, parts) in [
        ("shape = \"k-ary-n-tree\"", RoutingConfig::Dor, ["dor", "mesh", "a tree", "d-mod-k"]),
        ("shape = \"fat-tree\"\nnodes = 4", RoutingConfig::Bubble, ["bubble", "torus", "a tree", "up-down"]),
        ("shape = \"torus\"", RoutingConfig::DModK, ["d-mod-k", "up and down", "a torus", "dor"]),
        ("shape = \"mesh\"", RoutingConfig::SModK, ["s-mod-k", "up and down", "a mesh", "dor"]),
        ("shape = \"torus\"", RoutingConfig::Adaptive, ["adaptive", "up and down", "a torus", "bubble"]),
        ("shape = \"mesh\"", RoutingConfig::Random, ["random", "up and down", "a mesh", "ecmp"]),
    ] {
        let error = Routes::new(&config, &build(shape), 1).unwrap_err().to_string();
        assert!(error.starts_with("fabric.routing = "), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error} does not say {parts:?}");
    }
    let ring = graph(3, &[(0, 1), (1, 2), (2, 0)], &[0, 1, 2]);
    let error = Routes::new(&RoutingConfig::Dor, &ring, 1).unwrap_err().to_string();
    assert!(error.contains("a graph"), "{error}");
}
