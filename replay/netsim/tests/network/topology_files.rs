//! Graphs from files: what is understood, what is refused, and that everything that is written is read back.

use crate::common::{any_graph, any_grid, any_tree, build};
use netsim::routing::Routes;
use netsim::topology::{Format, Graph, GraphConfig, HostPlace, LinkId, NodeId, Topology, TopologyConfig, figures};
use netsim::units::Buffer;
use proptest::prelude::*;

/// The topology of a text, by the configuration `keys`.
fn read(text: &str, format: Format, keys: &str) -> Result<Topology, String> {
    let TopologyConfig::Graph(config) = format!("shape = \"graph\"\n{keys}").parse().unwrap() else {
        panic!("no graph")
    };
    let graph = Graph::parse(text, format, "net").map_err(|error| error.to_string())?;
    config.topology(&graph, "net", &[]).map_err(|error| error.to_string())
}

fn names(topology: &Topology) -> Vec<&str> {
    (0..topology.nodes()).map(|node| topology.name(NodeId(node))).collect()
}

const EDGES: &str = r#"
# Two switches.
host: a b "c d"
switch: s0
class: fast rate=100Gbps length=10m
a s0
s1 b
"c d" s1 rate=1Gbps latency=1us   # a slow one
s0 s1 fast x2 buffer="64 packets"
s1 s0 spine
"#;

#[test]
fn an_edge_list_says_nodes_classes_and_cables() {
    let keys = "host_link = { rate = \"25Gbps\" }\nlinks.spine = { rate = \"40Gbps\", delay = \"7ns\" }";
    let topology = read(EDGES, Format::Edges, keys).unwrap();
    assert_eq!(names(&topology), ["a", "b", "c d", "s0", "s1"]);
    assert_eq!((topology.hosts(), topology.links().len()), (3, 12));
    let links: Vec<_> = topology.links().iter().step_by(2).collect();
    let rates: Vec<u64> = links.iter().map(|link| link.rate.bps().unwrap() / 1_000_000_000).collect();
    assert_eq!(rates, [25, 25, 1, 100, 100, 40]);
    let delays: Vec<u64> = links.iter().map(|link| link.delay_ps).collect();
    assert_eq!(delays, [0, 0, 1_000_000, 50_000, 50_000, 7_000]);
    assert_eq!((links[3].buffer, links[5].buffer), (Buffer::Packets(64), Buffer::Packets(170)));
    // What the configuration says of a class goes before what the file says.
    let slower = read(EDGES, Format::Edges, &format!("{keys}\nlinks.fast = {{ rate = \"2Gbps\" }}")).unwrap();
    assert_eq!(slower.link(LinkId(6)).rate.bps(), Some(2_000_000_000));
    assert_eq!(slower.link(LinkId(6)).delay_ps, 0);
}

#[test]
fn without_declarations_names_with_h_are_hosts() {
    let topology = read("H1 leaf\nhost2 leaf\nleaf spine\nspine x", Format::Edges, "").unwrap();
    assert_eq!(names(&topology), ["H1", "host2", "leaf", "spine", "x"]);
    assert_eq!(topology.hosts(), 2);
}

#[test]
fn dot_graphs_say_the_same() {
    let text = r#"
        /* A network. */ graph "my net" { // with everything
        rankdir = LR; node [shape=box]; edge [rate="40Gbps"]
        # hosts
        subgraph cluster_a { node [type=host, color=red]; a; b }
        "c \"d\"" [type=host; label=<<b>C</b>>];
        a:e -- s0 -- s1:p1:n [cables=2, delay="5ns"]
        b -- s1 [rate="1Gbps", class=host_link]; "c \"d\"" -- s1
        s0 [type=switch] {  }
    }"#;
    // The chain gives both of its edges two cables: too many for a host.
    let error = read(text, Format::Dot, "").unwrap_err();
    assert!(error.contains("host a has 2 cables"), "{error}");
    let topology = read(&text.replace("a:e -- s0 -- s1", "a:e -- s0 s0 -- s1"), Format::Dot, "").unwrap();
    assert_eq!(names(&topology), ["a", "b", "c \"d\"", "s0", "s1"]);
    let rates: Vec<_> =
        topology.links().iter().step_by(2).map(|link| link.rate.bps().unwrap() / 1_000_000_000).collect();
    assert_eq!(rates, [40, 40, 40, 1, 40]);
    assert_eq!((topology.link(LinkId(2)).delay_ps, topology.link(LinkId(0)).delay_ps), (5_000, 0));
}

#[test]
fn a_digraph_is_cables_there_and_back() {
    // As tools for InfiniBand write it: hosts begin with H, both directions of each cable are there.
    let cables = "H1 -> S1; S1 -> H1;\n H2 -> S2; S2 -> H2;\n S1 -> S2; S1 -> S2; S2 -> S1; S2 -> S1;";
    let topology = read(&format!("digraph {{\n {cables} }}"), Format::Dot, "").unwrap();
    assert_eq!(names(&topology), ["H1", "H2", "S1", "S2"]);
    assert_eq!(topology.links().len() / 2, 2 + 2);
    let strict = read(&format!("strict digraph {{\n {cables} }}"), Format::Dot, "").unwrap();
    assert_eq!(strict.links().len() / 2, 2 + 1);
    // A way there without one back is no cable.
    for (more, parts) in
        [("\n\nS2 -> S3", ["net:6:", "S2 -> S3", "S3 -> S2"].as_slice()), ("\nS1 -> S2", &["net:5:", "S1 -> S2"])]
    {
        let error = read(&format!("digraph {{\n {cables}{more} }}"), Format::Dot, "").unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let strict = read("strict graph { h1 -- s; s -- h2; h2 -- s; h1 -- s }", Format::Dot, "").unwrap();
    assert_eq!(strict.links().len() / 2, 2);
}

#[test]
fn both_directions_of_a_cable_say_the_same_link() {
    let pair = |there: &str, back: &str| {
        let text = format!("digraph {{\n H1 -> S1 {there};\n H2 -> S1;\n S1 -> H1 {back};\n S1 -> H2 }}");
        read(&text, Format::Dot, "").map(|topology| topology.links().len() / 2)
    };
    let fast = "[rate=\"100Gbps\"]";
    assert_eq!(pair(fast, fast), Ok(2));
    assert_eq!(pair(fast, ""), Ok(2));
    for (there, back) in [(fast, "[rate=\"10Gbps\"]"), ("", fast), (fast, "[cables=2]"), ("", "[class=\"a\"]")] {
        let error = pair(there, back).unwrap_err();
        assert!(error.contains("the edge back of line 2"), "{error}");
    }
    // Parallel cables are matched in order of appearance.
    let text = "digraph { h1 -> s; s -> h1; h2 -> s; s -> h2; h3 -> t; t -> h3; s -> t [rate=\"1Gbps\"]; \
                s -> t [rate=\"2Gbps\"]; t -> s [rate=\"1Gbps\"]; t -> s [rate=\"2Gbps\"] }";
    assert_eq!(read(text, Format::Dot, "").unwrap().links().len() / 2, 3 + 2);
}

#[test]
fn hosts_of_a_workload_stand_where_they_are_named() {
    let place = |name: &str| HostPlace { name: name.to_owned(), rack: String::new() };
    let graph = Graph::parse("h0 s\nh1 s\nh2 s\nh3 s", Format::Edges, "net").unwrap();
    let config = GraphConfig::default();
    let topology = config.topology(&graph, "net", &[place("w"), place("h0"), place("h2")]).unwrap();
    assert_eq!(names(&topology), ["h0", "w", "h2", "h3", "s"]);
    let nodes: Vec<u32> = (0..4).map(|host| topology.host_node(host).0).collect();
    assert_eq!(nodes, [1, 0, 2, 3]);
    let five: Vec<HostPlace> = ["1", "2", "3", "4", "5"].map(place).to_vec();
    let error = config.topology(&graph, "net", &five).unwrap_err().to_string();
    assert!(error.contains("5 hosts") && error.contains("places for 4"), "{error}");
}

#[test]
fn each_mistake_of_an_edge_list_is_named() {
    for (text, parts) in [
        ("", ["net", "no hosts"].as_slice()),
        ("s0 s1", &["no hosts", "begin"]),
        ("h0", &["net:1:", "\"h0\" alone"]),
        ("h0 s0\nh1 s0 rate=fast", &["net:2:", "rate", "\"fast\"", "10Gbps"]),
        ("h0 s0\nh1 s0 rate=5", &["net:2:", "no unit"]),
        ("h0 s0\nh1 s0 speed=5Gbps", &["net:2:", "\"speed\"", "rate, delay"]),
        ("h0 s0\nh1 s0 a b", &["net:2:", "\"b\" is a second class"]),
        ("h0 s0\nh1 s0 x0", &["net:2:", "\"x0\"", "x1"]),
        ("h0 s0\nh1 s0 x99999999999", &["net:2:", "x99999999999"]),
        ("h0 s0\nh1 s0 gold", &["net:2:", "\"gold\"", "fabric.topology.links.gold", "none"]),
        ("class: a rate=1Gbps\nclass: a rate=2Gbps\nh0 s0", &["net:2:", "twice"]),
        ("class:", &["net:1:", "name"]),
        ("class: a fast", &["net:1:", "\"fast\"", "key=value"]),
        ("host: a\nswitch: a\na s", &["net:2:", "a is said to be a host and a switch"]),
        ("\"h0 s0", &["net:1:", "quote"]),
        ("h0 s0\nh1 s0\nh0 h1", &["net:3:", "h0 - h1", "two switches"]),
        ("h0 s0\ns0 s0", &["net:2:", "s0 - s0"]),
        ("h0 s0\nh0 s1\ns0 s1", &["h0 has 2 cables", "exactly one"]),
        ("h0 s0 x2", &["h0 has 2 cables"]),
        ("host: h0 h1\nh0 s0", &["h1 has 0 cables"]),
        ("h0 s0\nh1 s1", &["no way from h0", "h1"]),
        ("h0 s0 x4294967295\nh1 s0 x4294967295", &["8589934590 cables", "4194304"]),
        ("h0 s0 burst=1KiB rate=unlimited", &["net:1:", "burst", "unlimited"]),
    ] {
        let error = read(text, Format::Edges, "").unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?} gives {error}, without {parts:?}");
    }
}

#[test]
fn each_mistake_of_a_dot_file_is_named() {
    let deep = format!("graph {{ {} }}", "{".repeat(200));
    for (text, parts) in [
        ("", ["net:1:", "digraph {"].as_slice()),
        ("tree { }", &["net:1:", "digraph {"]),
        ("graph {\n h0 -- s0", &["net:2:", "the end"]),
        ("graph {\n h0 -> s0 }", &["net:2:", "--"]),
        ("digraph {\n h0 -- s0 }", &["net:2:", "->"]),
        ("graph {\n h0 -- { s0 s1 } }", &["net:2:", "whole subgraph"]),
        ("graph { { h0 h1 } -- s0 }", &["whole subgraph"]),
        ("graph {\n\n h0 -- s0 [rate=fast] }", &["net:3:", "rate", "fast"]),
        ("graph { h0 -- s0 [cables=0] }", &["cables", "\"0\"", "from 1"]),
        ("graph { h0 [type=router]; h0 -- s0 }", &["\"router\"", "host or switch"]),
        ("graph { h0 [type=host]; h0 [type=switch]; }", &["h0", "host and a switch"]),
        ("graph { h0 -- s0 [rate=\"1Gbps\" }", &["\"}\""]),
        ("graph { h0 -- s0 } graph { }", &["follow", "\"graph\""]),
        ("graph { \"h0 }", &["quote"]),
        ("graph { h0 -- <s0 }", &["\"<\"", "closed"]),
        ("graph { /* h0 }", &["comment"]),
        ("graph { h0 - s0 }", &["\"-\""]),
        ("graph { h0 ! s0 }", &["\"!\""]),
        (&deep, &["100", "deep"]),
    ] {
        let error = read(text, Format::Dot, "").unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?} gives {error}, without {parts:?}");
    }
}

#[test]
fn files_are_found_and_their_kind_is_known_by_their_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("net.dot"), "graph { h0 -- s -- h1 }").unwrap();
    std::fs::write(folder.path().join("net.txt"), "h0 s\nh1 s").unwrap();
    for (file, format) in [("net.dot", ""), ("net.txt", ""), ("net.txt", "format = \"edges\"")] {
        let text = format!("shape = \"graph\"\nfile = \"{file}\"\n{format}");
        let mut config: TopologyConfig = text.parse().unwrap();
        config.relative_to(folder.path());
        assert_eq!(config.build(&[]).unwrap().hosts(), 2);
        assert_eq!(config.places(), (Some(2), None));
    }
    let mut config: TopologyConfig = "shape = \"graph\"\nfile = \"none.txt\"".parse().unwrap();
    config.relative_to(folder.path());
    let error = config.build(&[]).unwrap_err().to_string();
    assert!(error.starts_with("fabric.topology.file = ") && error.contains("none.txt"), "{error}");
}

/// Written in either way and read again, a topology has the same nodes and links.
fn check_round_trip(topology: &Topology) {
    let graph = Graph::of(topology);
    for format in [Format::Edges, Format::Dot] {
        let text = graph.write(format).unwrap();
        let again = read(&text, format, "").unwrap();
        assert_eq!(names(&again), names(topology), "{text}");
        assert_eq!(again.links(), topology.links(), "{text}");
        assert_eq!(again.hosts(), topology.hosts());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        one in any_graph(), two in any_tree(), three in any_grid(),
        rate in 1u64..1_000_000_000_000, delay in 0u64..1_000_000_000, packets in any::<u32>(),
    ) {
        for topology in [one, two, three] {
            check_round_trip(&topology);
        }
        check_round_trip(&build(&format!(
            "shape = \"leaf-spine\"\nhost_link = {{ rate = \"{rate}bps\", delay = \"{delay}ps\", \
             buffer = \"{packets} packets\", burst = \"7B\" }}\nuplink = {{ rate = \"unlimited\", buffer = \"unlimited\" }}"
        )));
    }

    #[test]
    fn names_of_any_letters_are_read_back(names in prop::collection::btree_set("\\PC{0,8}|[x \"=#\\\\\n:]{0,6}", 2..6)) {
        let place = |name: &String| HostPlace { name: name.clone(), rack: String::new() };
        let hosts: Vec<HostPlace> = names.iter().map(place).collect();
        let config: TopologyConfig = "shape = \"single-switch\"".parse().unwrap();
        // A host may have any name but the switch's.
        prop_assume!(!names.contains("switch"));
        check_round_trip(&config.build(&hosts).unwrap());
    }

    #[test]
    fn garbage_is_read_or_refused(
        text in "\\PC{0,60}|([hs][0-3]|host:|switch:|class:|x2|rate=|1Gbps| |\n|\"|#|=){0,40}",
        dot in "(strict|digraph|graph|node|edge|subgraph|[hs][0-3]|type=host|rate=|[{}\\[\\];,:=<>\"/*#-]|--|->| |\n){0,60}",
    ) {
        for format in [Format::Edges, Format::Dot] {
            for text in [&text, &dot, &format!("graph {{ {dot} }}"), &format!("digraph {{ {dot} }}")] {
                if let Ok(topology) = read(text, format, "") {
                    // What is taken can be reckoned and routed.
                    let _ = figures(&topology);
                    let _ = Routes::shortest(&topology);
                }
            }
        }
    }
}
