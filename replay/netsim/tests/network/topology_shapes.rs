//! Shapes of topologies against closed forms: counts, ports, distances, bisection, numbering.

use crate::common::distances;
use netsim::topology::{Figures, HostPlace, LinkId, NodeId, Structure, Topology, TopologyConfig, figures};
use netsim::units::Rate;
use proptest::prelude::*;

fn build(text: &str) -> Topology {
    text.parse::<TopologyConfig>().unwrap().build(&[]).unwrap()
}

fn reckoned(text: &str) -> Figures {
    figures(&build(text))
}

/// What holds for every topology.
fn check(topology: &Topology) {
    let links = topology.links();
    for (id, link) in (0..).map(LinkId).zip(links) {
        let back = topology.link(id.back());
        assert_eq!((link.from, link.to), (back.to, back.from), "{id:?} and {:?} are one cable", id.back());
        assert!(topology.out(link.from).contains(&id));
    }
    let nodes = (0..topology.nodes()).map(NodeId);
    let mut seen = 0;
    for node in nodes {
        let out = topology.out(node);
        assert!(out.is_sorted(), "ports of {node:?}");
        assert!(out.iter().all(|link| topology.link(*link).from == node));
        assert!(!topology.is_host(node) || out.len() == 1, "host {node:?} has {} links", out.len());
        seen += out.len();
    }
    assert_eq!(seen, links.len());
}

/// Switches between all pairs of different hosts, by plain search: how many pairs there are at each number.
fn pairs_by_search(topology: &Topology) -> Vec<u64> {
    let mut pairs = vec![0u64];
    for source in 0..topology.hosts() {
        let distances = distances(topology, source);
        for host in (0..topology.hosts()).filter(|host| *host != source) {
            let switches = distances[host as usize] - 1;
            pairs.resize(pairs.len().max(switches + 1), 0);
            pairs[switches] += 1;
        }
    }
    pairs
}

#[test]
fn mean_distances_are_those_of_the_literature() {
    for (text, mean) in [
        ("shape = \"k-ary-n-tree\"\nk = 4\nn = 3", 4.4286),
        ("shape = \"k-ary-n-tree\"\nk = 8\nn = 3", 4.7260),
        ("shape = \"k-ary-n-tree\"\nk = 4\nn = 5", 8.3431),
        ("shape = \"torus\"\nsize = [8, 8]", 5.0635),
        ("shape = \"mesh\"\nsize = [8, 8]", 6.3333),
    ] {
        let reckoned = reckoned(text).mean_switches.unwrap();
        assert!((reckoned - mean).abs() < 0.00005, "{text}: {reckoned} switches, not {mean}");
    }
}

#[test]
fn a_k_ary_n_tree_has_n_levels_of_k_to_the_n_minus_1_switches() {
    for (k, n) in [(2u32, 2u32), (2, 4), (3, 3), (4, 3), (4, 5)] {
        let figures = reckoned(&format!("shape = \"k-ary-n-tree\"\nk = {k}\nn = {n}\nnodes = {}", k.pow(n)));
        assert_eq!((figures.hosts, figures.switches), (k.pow(n), n * k.pow(n - 1)));
        assert_eq!(figures.cables, u64::from(n * k.pow(n)));
        assert_eq!(figures.ports_max, if n == 1 { k } else { 2 * k });
        assert_eq!(figures.diameter_switches, Some(2 * n - 1));
        assert_eq!(figures.bisection_cables, Some(u64::from(k.pow(n)) / 2));
        assert!(figures.levels.iter().rev().skip(1).all(|level| level.oversubscription == Some(1.0)));
    }
}

#[test]
fn a_thin_tree_has_k_up_to_the_level_times_k_to_the_rest_switches() {
    for (k, up, n) in [(4u32, 2u32, 3u32), (4, 3, 3), (3, 1, 4), (5, 2, 2)] {
        let figures = reckoned(&format!("shape = \"thin-tree\"\nk = {k}\nk_up = {up}\nn = {n}"));
        let switches: u32 = (1..=n).map(|level| k.pow(n - level) * up.pow(level - 1)).sum();
        assert_eq!((figures.hosts, figures.switches), (k.pow(n), switches));
        assert_eq!(figures.ports_max, k + up);
        assert_eq!(figures.levels[0].oversubscription, Some(f64::from(k) / f64::from(up)));
        assert_eq!(figures.bisection_cables, Some(u64::from(k * up.pow(n - 1)) / 2));
    }
    // As INSEE's 4:2-ary 3-thin-tree: 64 hosts, 16 + 8 + 4 switches.
    assert_eq!(reckoned("shape = \"thin-tree\"").switches, 28);
}

#[test]
fn an_m_port_n_tree_has_as_many_hosts_and_switches_as_fattreesim_says() {
    for (m, n) in [(4u32, 2u32), (4, 3), (8, 3), (6, 2), (8, 1), (64, 2)] {
        let figures = reckoned(&format!("shape = \"m-port-n-tree\"\nm = {m}\nn = {n}"));
        assert_eq!(figures.hosts, m * (m / 2).pow(n - 1));
        assert_eq!(figures.switches, (2 * n - 1) * (m / 2).pow(n - 1));
        assert_eq!(figures.ports_max, m);
        assert_eq!(figures.bisection_cables, Some(u64::from(figures.hosts) / 2));
    }
    // The figures that the paper names: 16 hosts below 8 edge and 4 core switches of 20; 128 hosts, 80 switches.
    let small = reckoned("shape = \"m-port-n-tree\"\nm = 4\nn = 3");
    assert_eq!((small.hosts, small.switches), (16, 20));
    assert_eq!((small.levels[0].switches, small.levels[2].switches), (8, 4));
    assert_eq!(reckoned("shape = \"m-port-n-tree\"\nm = 8\nn = 3").switches, 80);
}

#[test]
fn a_tree_of_65536_hosts_is_built_and_reckoned() {
    let topology = build("shape = \"m-port-n-tree\"\nm = 64\nn = 3");
    let figures = figures(&topology);
    assert_eq!((figures.hosts, figures.switches, topology.links().len()), (65_536, 5_120, 393_216));
    assert_eq!(figures.bisection_cables, Some(32_768));
    assert_eq!(topology.name(NodeId(65_535)), "h65535");
    assert_eq!(topology.name(NodeId(65_536 + 2_048)), "s2.0");
}

#[test]
fn a_single_switch_and_a_leaf_spine_network() {
    let one = reckoned("shape = \"single-switch\"\nnodes = 9");
    assert_eq!((one.hosts, one.switches, one.cables, one.ports_max), (9, 1, 9, 9));
    assert_eq!((one.mean_switches, one.bisection_cables), (Some(1.0), Some(4)));
    let two = reckoned("shape = \"leaf-spine\"\nleaves = 6\nspines = 3\nhosts = 8\ncables = 2");
    assert_eq!((two.hosts, two.switches, two.cables), (48, 9, 48 + 36));
    assert_eq!(two.levels[0].oversubscription, Some(8.0 / 6.0));
    assert_eq!(two.bisection_cables, Some(18));
    // 7 of 47 at the same leaf.
    assert!((two.mean_switches.unwrap() - (7.0 + 40.0 * 3.0) / 47.0).abs() < 1e-12);
}

#[test]
fn lightness_fat_tree_joins_each_rack_to_each_core() {
    let topology = build("shape = \"fat-tree\"\nnodes = 12\nracks = 3\ncores = 2\nfactor = 2");
    let figures = figures(&topology);
    assert_eq!((figures.hosts, figures.switches, figures.cables), (12, 5, 12 + 12));
    let names: Vec<&str> = (10..17).map(|node| topology.name(NodeId(node))).collect();
    assert_eq!(names, ["h10", "h11", "rack0", "rack1", "rack2", "core0", "core1"]);
    let ports = topology.out(NodeId(13)).iter().map(|link| topology.name(topology.link(*link).to));
    assert_eq!(ports.collect::<Vec<_>>(), ["h4", "h5", "h6", "h7", "core0", "core0", "core1", "core1"]);
}

#[test]
fn meshes_and_tori_have_the_cables_and_bisections_of_their_dimensions() {
    for (size, mesh, torus) in
        [("[8]", (7, 1), (8, 2)), ("[8, 8]", (112, 8), (128, 16)), ("[4, 4, 4]", (144, 16), (192, 32))]
    {
        let routers = size.trim_matches(['[', ']']).split(", ").map(|n| n.parse::<u64>().unwrap()).product::<u64>();
        for (shape, (cables, bisection)) in [("mesh", mesh), ("torus", torus)] {
            let figures = reckoned(&format!("shape = \"{shape}\"\nsize = {size}"));
            assert_eq!(figures.cables, cables + routers, "{shape} {size}");
            assert_eq!(figures.bisection_cables, Some(bisection), "{shape} {size}");
        }
    }
    // A hypercube: rings of two are one cable.
    let cube = reckoned("shape = \"torus\"\nsize = [2, 2, 2, 2]\nconcentration = 3");
    assert_eq!((cube.hosts, cube.switches, cube.cables, cube.ports_max), (48, 16, 48 + 32, 3 + 4));
    assert_eq!((cube.diameter_switches, cube.bisection_cables), (Some(5), Some(8)));
    // The longest dimension is cut: 4 x 2 of the 8 x 4 torus.
    assert_eq!(reckoned("shape = \"torus\"\nsize = [8, 4]").bisection_cables, Some(8));
    let names = build("shape = \"mesh\"\nsize = [3, 2]");
    assert_eq!(names.name(NodeId(6 + 5)), "r2.1");
}

#[test]
fn each_level_has_its_own_links() {
    let topology = build(
        "shape = \"k-ary-n-tree\"\nk = 2\nn = 3\nhost_link = { rate = \"1Gbps\", length = \"2m\" }\n\
         uplinks = [{ rate = \"10Gbps\", latency = \"50ns\" }, { rate = \"40Gbps\", buffer = \"64KiB\" }]",
    );
    let of = |node: u32| {
        let link = topology.link(*topology.out(NodeId(node)).last().unwrap());
        (link.rate, link.delay_ps)
    };
    assert_eq!(of(0), (Rate::from_bps(1_000_000_000), 10_000));
    assert_eq!(of(8), (Rate::from_bps(10_000_000_000), 50_000));
    assert_eq!(of(12), (Rate::from_bps(40_000_000_000), 0));
    let figures = figures(&topology);
    // Half the hosts' links carry least: 4 of 1 Gbit/s.
    assert_eq!(figures.bisection_bps, Some(4_000_000_000));
    assert_eq!(figures.levels[0].oversubscription, Some(0.1));
    let mesh = build(
        "shape = \"mesh\"\nsize = [2, 2]\nlinks = [{ rate = \"1Gbps\" }, { rate = \"2Gbps\" }]\nconcentration = 1",
    );
    let rates: Vec<u64> =
        mesh.out(NodeId(4)).iter().map(|link| mesh.link(*link).rate.bps().unwrap() / 1_000_000_000).collect();
    assert_eq!(rates, [10, 1, 2]);
}

#[test]
fn hosts_of_a_workload_stand_on_the_first_places_rack_by_rack() {
    let place = |name: &str, rack: &str| HostPlace { name: name.to_owned(), rack: rack.to_owned() };
    let hosts = [place("m", "/a"), place("w1", "/b"), place("w2", "/a")];
    for text in [
        "shape = \"k-ary-n-tree\"\nk = 2\nn = 2",
        "shape = \"torus\"\nsize = [4]",
        "shape = \"leaf-spine\"\nleaves = 2\nhosts = 2",
        "shape = \"single-switch\"\nnodes = 4",
        "shape = \"xgft\"\nm = [2, 2]\nw = [1, 1]",
    ] {
        let topology = text.parse::<TopologyConfig>().unwrap().build(&hosts).unwrap();
        let names: Vec<&str> = (0..4).map(|node| topology.name(NodeId(node))).collect();
        assert_eq!(names, ["m", "w2", "w1", "idle3"], "{text}");
        let nodes: Vec<u32> = (0..4).map(|host| topology.host_node(host).0).collect();
        assert_eq!(nodes, [0, 2, 1, 3], "{text}");
    }
    let sized = "shape = \"single-switch\"".parse::<TopologyConfig>().unwrap().build(&hosts).unwrap();
    assert_eq!((sized.hosts(), sized.nodes()), (3, 4));
}

#[test]
fn what_is_written_is_read_back() {
    for shape in [
        "racks",
        "fat-tree",
        "single-switch",
        "leaf-spine",
        "k-ary-n-tree",
        "thin-tree",
        "m-port-n-tree",
        "xgft",
        "mesh",
        "torus",
        "midimew",
        "spinnaker",
        "graph",
    ] {
        let config: TopologyConfig = format!("shape = \"{shape}\"").parse().unwrap();
        assert_eq!(config.shape(), shape);
        let written = config.to_string();
        assert_eq!(written.parse::<TopologyConfig>().unwrap(), config, "{written}");
    }
}

/// The least cut between the halves, by the generic way: the same links, nothing known of their form.
fn as_graph(topology: &Topology) -> Figures {
    let graph = netsim::topology::Graph::of(topology);
    let again = netsim::topology::GraphConfig::default().topology(&graph, "a graph", &[]).unwrap();
    assert_eq!(again.links(), topology.links());
    assert_eq!(*again.structure(), Structure::Any);
    figures(&again)
}

proptest! {
    #[test]
    fn trees_of_any_form_are_as_reckoned(
        form in prop::collection::vec((1u32..4, 1u32..4, 1u32..3), 1..4),
    ) {
        let m: Vec<u32> = form.iter().map(|(m, _, _)| *m).collect();
        let mut w: Vec<u32> = form.iter().map(|(_, w, _)| *w).collect();
        let mut cables: Vec<u32> = form.iter().map(|(_, _, cables)| *cables).collect();
        (w[0], cables[0]) = (1, 1);
        let topology = build(&format!("shape = \"xgft\"\nm = {m:?}\nw = {w:?}\ncables = {cables:?}"));
        check(&topology);
        let figures = figures(&topology);
        let levels = m.len();
        let nodes = |level: usize| w[..level].iter().product::<u32>() * m[level..].iter().product::<u32>();
        prop_assert_eq!(figures.hosts, nodes(0));
        prop_assert_eq!(figures.switches, (1..=levels).map(nodes).sum::<u32>());
        let cables_up = |level: usize| u64::from(nodes(level) * w[level] * cables[level]);
        prop_assert_eq!(figures.cables, (0..levels).map(cables_up).sum::<u64>());
        if figures.hosts > 1 {
            let mut reckoned = figures.pairs_by_switches.clone();
            reckoned.truncate(reckoned.iter().rposition(|pairs| *pairs > 0).unwrap() + 1);
            prop_assert_eq!(reckoned, pairs_by_search(&topology));
        }
        // Where the top falls into two halves, the least cut between them is the bisection.
        if m[levels - 1].is_multiple_of(2) {
            let graph = as_graph(&topology);
            prop_assert_eq!(graph.bisection_cables, figures.bisection_cables);
            prop_assert_eq!(graph.bisection_bps, figures.bisection_bps);
            prop_assert_eq!(graph.mean_switches, figures.mean_switches);
        }
    }

    #[test]
    fn grids_of_any_form_are_as_reckoned(
        size in prop::collection::vec(1u32..6, 1..4), wraps in any::<bool>(), concentration in 1u32..4,
    ) {
        let shape = if wraps { "torus" } else { "mesh" };
        let topology = build(&format!("shape = \"{shape}\"\nsize = {size:?}\nconcentration = {concentration}"));
        check(&topology);
        let figures = figures(&topology);
        let routers: u32 = size.iter().product();
        prop_assert_eq!((figures.hosts, figures.switches), (routers * concentration, routers));
        let lines = |size: u32| u64::from(routers / size);
        let in_line = |size: u32| u64::from(if wraps && size > 2 { size } else { size - 1 });
        let between: u64 = size.iter().map(|size| lines(*size) * in_line(*size)).sum();
        prop_assert_eq!(figures.cables, between + u64::from(figures.hosts));
        if figures.hosts > 1 {
            prop_assert_eq!(&figures.pairs_by_switches, &pairs_by_search(&topology));
        }
        // With enough hosts, and the last dimension the longest and even, the halves are those of the hosts.
        let last = *size.last().unwrap();
        if last % 2 == 0 && size.iter().all(|size| *size < last || *size == 1) {
            let most = figures.bisection_cables.unwrap().min(u64::from(figures.hosts / 2));
            prop_assert_eq!(as_graph(&topology).bisection_cables, Some(most));
        }
    }
}
