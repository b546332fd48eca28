//! Lattices beside figures of the literature and a plain search: twisted tori, midimews, SpiNNaker, one way, faults.

use crate::common::{any_lattice, build};
use netsim::routing::{Choice, Hop, Routes, RoutingConfig};
use netsim::topology::{Export, Format, Graph, LinkId, NodeId, Topology, TopologyConfig, figures};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// Links on a shortest way from a router to each other one, by a search of its own over all links that carry something.
fn distances_from(topology: &Topology, from: NodeId) -> Vec<u32> {
    let mut distances = vec![u32::MAX; topology.nodes() as usize];
    distances[from.0 as usize] = 0;
    let mut reached = VecDeque::from([from]);
    while let Some(node) = reached.pop_front() {
        for link in topology.links().iter().filter(|link| link.from == node && !link.absent) {
            if !topology.is_host(link.to) && distances[link.to.0 as usize] == u32::MAX {
                distances[link.to.0 as usize] = distances[node.0 as usize] + 1;
                reached.push_back(link.to);
            }
        }
    }
    distances
}

/// The links of a packet's way by its routing, one lane a packet.
fn way(topology: &Topology, routes: &Routes, from: u32, to: u32, key: u64) -> Vec<LinkId> {
    let (mut at, mut input_link, mut class) = (NodeId(from), LinkId(u32::MAX), 0);
    let mut way = Vec::new();
    while at != NodeId(to) {
        assert!(way.len() <= topology.links().len(), "h{from} to h{to} goes round");
        let hop = Hop { at, input_link, class, to: NodeId(to), key };
        let lane = if routes.looks_at_packets() && !topology.is_host(at) {
            routes.lane(&hop).map(|(lane, _)| (lane.link, lane.class))
        } else {
            let next = routes.next(at, input_link, NodeId(to));
            let Choice::Index(index) = routes.choose(next.links.len(), at, key, key, NodeId(from), NodeId(to)) else {
                panic!("a lattice's ways need no credits")
            };
            next.links.get(index).map(|link| (*link, next.class))
        };
        let (link, lane_class) =
            lane.unwrap_or_else(|| panic!("no way from h{from} to h{to} at {}", topology.name(at)));
        assert_eq!(topology.link(link).from, at);
        assert!(!topology.link(link).absent && lane_class < routes.classes());
        way.push(link);
        (at, input_link, class) = (topology.link(link).to, link, lane_class);
    }
    way
}

/// The record of every pair is as long as the shortest way, and ends at the destination.
fn records_are_shortest(topology: &Topology, config: &RoutingConfig) {
    let routes = Routes::new(config, topology, 3).unwrap();
    for from in 0..topology.hosts() {
        let distances = distances_from(topology, topology.switch_of(NodeId(from)));
        for to in (0..topology.hosts()).filter(|to| *to != from) {
            for key in [1, (u64::from(from) << 40) + u64::from(to), 77] {
                let links = way(topology, &routes, from, to, key).len();
                let distance = distances[topology.switch_of(NodeId(to)).0 as usize];
                assert_eq!(links, distance as usize + 2, "{config}: h{from} to h{to}");
            }
        }
    }
}

fn routing(text: &str) -> RoutingConfig {
    #[derive(serde::Deserialize)]
    struct Key {
        routing: RoutingConfig,
    }
    toml::from_str::<Key>(&format!("routing = {text}")).unwrap().routing
}

/// Nodes, diameter and mean distance in links between different routers: INSEE 2.1.1, and a search over the program's definition.
const PUBLISHED: [(&str, u32, u32, f64); 19] = [
    ("shape = \"midimew\"\nrouters = 13", 13, 2, 1.666_667),
    ("shape = \"midimew\"\nrouters = 25", 25, 3, 2.333_333),
    ("shape = \"midimew\"\nrouters = 41", 41, 4, 3.0),
    ("shape = \"midimew\"\nrouters = 61", 61, 5, 3.666_667),
    ("shape = \"torus\"\nsize = [4, 4]", 16, 4, 2.133_333),
    ("shape = \"torus\"\nsize = [4, 4]\ntwist = { y = { x = 2 } }", 16, 3, 2.0),
    ("shape = \"torus\"\nsize = [8, 4]", 32, 6, 3.096_774),
    ("shape = \"torus\"\nsize = [8, 4]\ntwist = { y = { x = 4 } }", 32, 4, 2.709_677),
    ("shape = \"torus\"\nsize = [16, 8]", 128, 12, 6.047_244),
    ("shape = \"torus\"\nsize = [16, 8]\ntwist = { y = { x = 8 } }", 128, 8, 5.354_331),
    ("shape = \"torus\"\nsize = [32, 16]", 512, 24, 12.023_483),
    ("shape = \"torus\"\nsize = [32, 16]\ntwist = { y = { x = 16 } }", 512, 16, 10.677_104),
    ("shape = \"torus\"\nsize = [8, 4, 4]", 128, 8, 4.031_496),
    ("shape = \"torus\"\nsize = [8, 4, 4]\ntwist = { y = { x = 4 }, z = { x = 4 } }", 128, 6, 3.464_567),
    ("shape = \"spinnaker\"\nsize = [4, 4]", 16, 2, 1.6),
    ("shape = \"spinnaker\"\nsize = [8, 8]", 64, 5, 3.142_857),
    ("shape = \"spinnaker\"\nsize = [12, 12]", 144, 8, 4.685_315),
    ("shape = \"spinnaker\"\nsize = [16, 16]", 256, 10, 6.235_294),
    ("shape = \"torus\"\nsize = [8, 8]", 64, 8, 4.063_492),
];

#[test]
fn distances_and_diameters_are_those_of_the_literature() {
    for (text, nodes, diameter, mean) in PUBLISHED {
        let topology = build(text);
        let routers = (topology.hosts()..topology.nodes()).map(NodeId);
        let all: Vec<u32> = routers
            .flat_map(|from| distances_from(&topology, from).into_iter().skip(topology.hosts() as usize))
            .filter(|distance| *distance > 0)
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let searched = f64::from(all.iter().sum::<u32>()) / all.len() as f64;
        assert_eq!((topology.hosts(), all.iter().max()), (nodes, Some(&diameter)), "{text}");
        assert!((searched - mean).abs() < 1e-6, "{text}: {searched}");
        let figures = figures(&topology);
        assert_eq!(figures.diameter_switches, Some(diameter + 1), "{text}");
        assert!((figures.mean_switches.unwrap() - 1.0 - mean).abs() < 1e-6, "{text}");
    }
}

#[test]
fn records_of_all_pairs_are_as_long_as_a_search_finds() {
    for (text, nodes, ..) in PUBLISHED {
        // All pairs of 512 routers take too long here; figures look at their distances.
        if nodes <= 256 {
            records_are_shortest(&build(text), &routing("\"dor\""));
            records_are_shortest(&build(text), &routing("{ dor = \"draw\" }"));
        }
    }
}

#[test]
fn a_midimew_has_the_distances_of_its_formula() {
    // Beivide's record: from s to d, m = |d - s| or n - m; q = m / b, r = m - q b; (q + r, -r) or (q + r - (b - 1), b - r).
    for n in (5u32..300).step_by(7) {
        let b = (1..).find(|b| 2 * b * b >= n).unwrap();
        let distance = |m: u32| {
            let m = m.min(n - m);
            let (q, r) = (i64::from(m / b), i64::from(m % b));
            let b = i64::from(b);
            ((q + r).abs() + r).min((q + r - (b - 1)).abs() + (b - r))
        };
        let figures = figures(&build(&format!("shape = \"midimew\"\nrouters = {n}")));
        let mut pairs = vec![0u64; figures.pairs_by_switches.len()];
        for m in 1..n {
            pairs[usize::try_from(distance(m)).unwrap() + 1] += u64::from(n);
        }
        assert_eq!(figures.pairs_by_switches, pairs, "{n}");
    }
}

#[test]
fn a_twisted_torus_is_wired_as_its_twist_says() {
    let topology = build("shape = \"torus\"\nsize = [8, 4]\ntwist = { y = { x = 4 } }");
    let name = |link: &LinkId| topology.name(topology.link(*link).to).to_owned();
    let router = |x: u32, y: u32| NodeId(32 + x + 8 * y);
    let ports: Vec<String> = topology.out(router(3, 3)).iter().map(name).collect();
    // Host, both ways along x, down in y, and over the end of y, shifted by 4.
    assert_eq!(ports, ["h27", "r2.3", "r4.3", "r3.2", "r7.0"]);
    let ports: Vec<String> = topology.out(router(1, 0)).iter().map(name).collect();
    assert_eq!(ports, ["h1", "r0.0", "r2.0", "r1.1", "r5.3"]);
}

#[test]
fn one_way_rings_lead_forward_only() {
    let ring = build("shape = \"torus\"\nsize = [7]\nways = 1");
    let figures_of_ring = figures(&ring);
    // 1 to 6 links, each as often.
    assert_eq!(figures_of_ring.pairs_by_switches, [0, 0, 7, 7, 7, 7, 7, 7]);
    assert_eq!((figures_of_ring.cables, figures_of_ring.bisection_cables), (14, Some(1)));
    assert!((7..14).map(NodeId).all(|router| ring.out(router).len() == 2));
    for text in ["shape = \"torus\"\nsize = [5, 4]\nways = 1", "shape = \"midimew\"\nrouters = 13\nways = 1"] {
        let topology = build(text);
        for config in ["\"dor\"", "{ dor = \"draw\" }", "{ dally = \"trc\" }", "\"ecmp\"", "\"shortest\""] {
            records_are_shortest(&topology, &routing(config));
        }
        let torus = text.contains("torus");
        let pairs = figures(&topology).pairs_by_switches;
        assert_eq!(pairs.len(), if torus { 4 + 3 + 2 } else { pairs.len() });
        for config in [RoutingConfig::UpDown, RoutingConfig::MinimalAdaptive] {
            let error = Routes::new(&config, &topology, 1).unwrap_err().to_string();
            assert!(error.contains("lead both ways") && error.contains("dor"), "{error}");
        }
        for format in [Format::Edges, Format::Dot, Format::Lst, Format::Ibnetdiscover] {
            let error = Graph::of(&topology).write(format).unwrap_err().to_string();
            assert!(error.contains("ways = 1") && error.contains("json"), "{error}");
        }
    }
    let written = toml::Value::try_from(Export(&ring)).unwrap();
    let cables = written["cables"].as_array().unwrap();
    let one_way: Vec<bool> = cables.iter().map(|cable| cable.get("one_way").is_some()).collect();
    assert_eq!(one_way, [[false; 7], [true; 7]].concat());
}

#[test]
fn faults_take_both_directions_of_the_cables_that_are_named() {
    let sound = build("shape = \"torus\"\nsize = [4, 4]");
    let torn = build("shape = \"torus\"\nsize = [4, 4]\nfaults = [[\"r0.0\", \"r1.0\"], [\"r3.3\", \"r3.0\"]]");
    let names = |topology: &Topology| -> BTreeSet<String> {
        (0..topology.links().len()).map(|link| topology.link_name(link.into()).into_string()).collect()
    };
    let lost: Vec<String> = names(&sound).difference(&names(&torn)).cloned().collect();
    assert_eq!(lost, ["r0.0->r1.0", "r1.0->r0.0", "r3.0->r3.3", "r3.3->r3.0"]);
    assert!(names(&torn).is_subset(&names(&sound)));
}

#[test]
fn as_many_faults_are_drawn_as_are_asked_for_and_by_seed() {
    let torn = |faults: u32, seed: u64| {
        build(&format!("shape = \"spinnaker\"\nsize = [5, 5]\nfaults = {faults}\nfault_seed = {seed}"))
    };
    let cables = |topology: &Topology| topology.links().len() / 2 - 25;
    for faults in [1, 5, 20] {
        assert_eq!(cables(&torn(faults, 1)), 75 - faults as usize);
        assert_eq!(torn(faults, 1), torn(faults, 1));
    }
    assert!((2..6).any(|seed| torn(5, seed) != torn(5, 1)));
    // Each cable is drawn about as often: 3 of 75 in 2,000 draws, 80 expected with a deviation of 8.8.
    let sound = build("shape = \"spinnaker\"\nsize = [5, 5]");
    let mut lost = vec![0u32; 75];
    for seed in 0..2_000 {
        let torn = torn(3, seed);
        let there: BTreeSet<_> = torn.links().iter().map(|link| (link.from, link.to)).collect();
        for (cable, link) in sound.links().iter().skip(50).step_by(2).enumerate() {
            lost[cable] += u32::from(!there.contains(&(link.from, link.to)));
        }
    }
    assert_eq!(lost.iter().sum::<u32>(), 6_000);
    assert!(lost.iter().all(|times| (40..125).contains(times)), "{lost:?}");
}

#[test]
fn no_faults_are_the_plain_network_bit_for_bit() {
    for text in ["shape = \"torus\"\nsize = [4, 3]", "shape = \"mesh\"\nsize = [3, 3]", "shape = \"midimew\""] {
        assert_eq!(build(&format!("{text}\nfaults = 0")), build(text));
        assert_eq!(build(&format!("{text}\nfaults = []")), build(text));
    }
}

#[test]
fn who_does_not_reach_whom_is_told() {
    let text = "shape = \"mesh\"\nsize = [3]\nfaults = [[\"r1\", \"r2\"]]";
    let error = text.parse::<TopologyConfig>().unwrap().build(&[]).unwrap_err().to_string();
    assert!(error.contains("faults") && error.contains("r0 to r2") && error.contains("r2 to r0"), "{error}");
    // Dimension by dimension there is no other way; by table and up*/down* there is.
    let torn = build("shape = \"mesh\"\nsize = [3, 3]\nfaults = [[\"r0.0\", \"r1.0\"]]");
    for config in ["\"dor\"", "\"bubble\"", "{ dally = \"improved\" }", "{ bubble = \"smart\" }"] {
        let error = Routes::new(&routing(config), &torn, 1).unwrap_err().to_string();
        for part in ["r0.0 to r1.0", "r1.0 to r0.0", "faults", "and 6 more", "up-down"] {
            assert!(error.contains(part), "{config}: {error} without {part}");
        }
    }
    for config in [RoutingConfig::UpDown, RoutingConfig::MinimalAdaptive] {
        let routes = Routes::new(&config, &torn, 1).unwrap();
        assert!(routes.deadlock_freedom(&torn).is_ok(), "{config}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_lattice_has_shortest_records_and_the_figures_of_a_search(text in any_lattice()) {
        let topology = build(&text);
        records_are_shortest(&topology, &routing("\"dor\""));
        records_are_shortest(&topology, &routing("{ dor = \"draw\" }"));
        records_are_shortest(&topology, &routing("{ dally = \"basic\", order = \"dir\" }"));
        records_are_shortest(&topology, &routing("{ bubble = \"oblivious\", ties = \"destination\" }"));
        let mut pairs = vec![0u64; 1];
        for from in 0..topology.hosts() {
            let distances = distances_from(&topology, topology.switch_of(NodeId(from)));
            for to in (0..topology.hosts()).filter(|to| *to != from) {
                let switches = distances[topology.switch_of(NodeId(to)).0 as usize] as usize + 1;
                pairs.resize(pairs.len().max(switches + 1), 0);
                pairs[switches] += 1;
            }
        }
        prop_assert_eq!(figures(&topology).pairs_by_switches, pairs);
        // Written and read, it is the same.
        let config: TopologyConfig = text.parse().unwrap();
        let again: TopologyConfig = config.to_string().parse().unwrap();
        prop_assert_eq!(again, config);
    }

    /// Of a plain torus the lattice has the ways of its own arithmetic, but for ties.
    #[test]
    fn a_torus_as_a_lattice_has_the_same_ways(size in prop::collection::vec(1u32..6, 1..4), wraps in any::<bool>()) {
        prop_assume!(size.iter().all(|size| size % 2 == 1 || *size == 2 || !wraps));
        let shape = if wraps { "torus" } else { "mesh" };
        let topology = build(&format!("shape = \"{shape}\"\nsize = {size:?}"));
        let plain = Routes::new(&RoutingConfig::Dor, &topology, 1).unwrap();
        let drawn = Routes::new(&routing("{ dor = \"draw\" }"), &topology, 1).unwrap();
        prop_assert_eq!(plain.classes(), drawn.classes());
        for from in 0..topology.hosts() {
            for to in (0..topology.hosts()).filter(|to| *to != from) {
                prop_assert_eq!(way(&topology, &plain, from, to, 9), way(&topology, &drawn, from, to, 9));
            }
        }
    }
}
