//! Routes in the comments of a DOT digraph.

use crate::common::{any_graph, nodes, walk};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{Format, Graph, GraphConfig, LinkId, NodeId, Topology};
use proptest::prelude::*;

fn read(text: &str) -> Result<Topology, String> {
    let graph = Graph::parse(text, Format::Dot, "net").map_err(|error| error.to_string())?;
    GraphConfig::default().topology(&graph, "net", &[]).map_err(|error| error.to_string())
}

fn routes(text: &str) -> Result<Routes, String> {
    Routes::new(&RoutingConfig::File, &read(text)?, 1).map_err(|error| error.to_string())
}

/// Two hosts at each of two switches, two cables between these.
const PARALLEL: &str = r#"digraph {
    H1 -> S1 [comment="*"]; S1 -> H1 [comment="H1"];
    H2 -> S1 [comment="*"]; S1 -> H2 [comment=" H2 "];
    H3 -> S2; S2 -> H3 [comment="H3"];
    H4 -> S2; S2 -> H4 [comment="H4,"];
    S1 -> S2 [comment="H4"]; S1 -> S2 [comment="*"];
    S2 -> S1 [comment="H1"]; S2 -> S1 [comment="H2"];
}"#;

#[test]
fn routes_are_followed_cable_by_cable() {
    let topology = read(PARALLEL).unwrap();
    let routes = Routes::new(&RoutingConfig::File, &topology, 1).unwrap();
    let middle = |from, to| walk(&topology, &routes, (from, to), (0, 0), |_| 0)[1].link;
    let between: Vec<LinkId> =
        topology.out(NodeId(4)).iter().copied().filter(|link| topology.link(*link).to.0 == 5).collect();
    assert_eq!((middle(0, 3), middle(1, 3)), (between[0], between[0]));
    // What no other edge names.
    assert_eq!((middle(0, 2), middle(1, 2)), (between[1], between[1]));
    assert_eq!((middle(2, 0), middle(3, 1)), (between[0].back(), between[1].back()));
    assert_eq!(topology.warnings(), [] as [String; 0]);
    assert!(routes.deadlock_freedom(&topology).is_ok());
}

#[test]
fn another_routing_needs_a_word() {
    let topology = read(PARALLEL).unwrap();
    let error = Routes::new(&RoutingConfig::Ecmp, &topology, 1).unwrap_err().to_string();
    assert!(error.contains("\"file\"") && error.contains("routes = false"), "{error}");
    assert!(Routes::ignoring_file(&RoutingConfig::Ecmp, &topology, 1).is_ok());
    let graph = Graph::parse(PARALLEL, Format::Dot, "net").unwrap();
    let config = GraphConfig { routes: false, ..GraphConfig::default() };
    let without = config.topology(&graph, "net", &[]).unwrap();
    assert!(Routes::new(&RoutingConfig::Ecmp, &without, 1).is_ok());
    let error = Routes::new(&RoutingConfig::File, &without, 1).unwrap_err().to_string();
    assert!(error.contains("file") && error.contains("comment"), "{error}");
}

#[test]
fn each_mistake_of_routes_is_named() {
    for (from, to, parts) in [
        ("[comment=\"H4,\"]", "[comment=\"H3\"]", ["net:5:", "at S2", "H3", "two edges"].as_slice()),
        ("S2 [comment=\"H4\"]", "S2 [comment=\"*\"]", &["net:6:", "at S1", "*", "two edges"]),
        ("S2 [comment=\"H4\"]", "S2 [comment=\"H4\", cables=2]", &["net:6:", "cables = 2"]),
        ("digraph", "strict digraph", &["net:6:", "strict", "parallel"]),
        ("[comment=\"H4,\"]", "", &["file", "no way from S2 to H4"]),
        ("S1 [comment=\"H1\"]", "S1", &["file", "no way from S2 to H1"]),
        ("S1 -> H1 [comment=\"H1\"]", "S1 -> H1", &["packets from S1 to H1 go round: S1 -> S2 -> S1"]),
    ] {
        assert!(PARALLEL.contains(from), "{from}");
        let error = routes(&PARALLEL.replace(from, to)).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{to:?} gives {error}, without {parts:?}");
    }
    let cables =
        "digraph { h1 -> s; s -> h1; h2 -> s [comment=\"*\"]; s -> h2; s -> t [comment=\"h1\", cables=2]; t -> s }";
    let error = routes(cables).unwrap_err();
    assert!(error.contains("net:1:") && error.contains("cables = 2"), "{error}");
}

#[test]
fn a_circle_of_waits_is_shown() {
    // A ring of four switches, all packets forward.
    let mut text = String::from("digraph {\n");
    for at in 0..4 {
        let next = (at + 1) % 4;
        text += &format!(
            "H{at} -> S{at}; S{at} -> H{at} [comment=H{at}];\nS{at} -> S{next} [comment=\"*\"]; S{next} -> S{at};\n"
        );
    }
    let topology = read(&(text + "}")).unwrap();
    let routes = Routes::new(&RoutingConfig::File, &topology, 1).unwrap();
    let error = routes.deadlock_freedom(&topology).unwrap_err().to_string();
    assert!(error.contains("S0->S1") && error.contains("S3->S0"), "{error}");
}

#[test]
fn names_that_are_no_hosts_are_told_once() {
    let topology =
        read(&PARALLEL.replace("\"H4\"]; S1", "\"H4,H9,S2\"]; S1").replace("\"H2\"];\n}", "\"H2,H9\"];\n}")).unwrap();
    assert_eq!(topology.warnings().len(), 2);
    for (warning, name) in topology.warnings().iter().zip(["\"H9\"", "\"S2\""]) {
        assert!(warning.starts_with("net:6: ") && warning.contains(name), "{warning}");
    }
    let many: Vec<String> = (0..100).map(|number| format!("X{number}")).collect();
    let topology = read(&PARALLEL.replace("\" H2 \"", &format!("\"H2,{}\"", many.join(",")))).unwrap();
    assert_eq!(topology.warnings().len(), 21);
}

#[test]
fn a_name_that_cannot_stand_in_a_comment_is_refused() {
    for name in ["a,b", "*", " a", ""] {
        let text = format!("graph {{ \"{name}\" [type=host]; h [type=host]; \"{name}\" -- s -- h }}");
        let topology = read(&text).unwrap();
        let error = Routes::new(&RoutingConfig::Shortest, &topology, 1).unwrap().to_dot(&topology).unwrap_err();
        assert!(error.to_string().contains(&format!("\"{name}\" cannot be written")), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_leads_the_same_ways(topology in any_graph(), d_mod_k in any::<bool>()) {
        let config = if d_mod_k { RoutingConfig::DModK } else { RoutingConfig::Shortest };
        let routes = Routes::new(&config, &topology, 1).unwrap();
        let again = read(&routes.to_dot(&topology).unwrap()).unwrap();
        prop_assert_eq!(again.links(), topology.links());
        let same = Routes::new(&RoutingConfig::File, &again, 1).unwrap();
        for from in 0..topology.hosts() {
            for to in (0..topology.hosts()).filter(|to| *to != from) {
                let way = |topology, routes| walk(topology, routes, (from, to), (0, 0), |_| 0);
                prop_assert_eq!(way(&topology, &routes), way(&again, &same));
                prop_assert!(!nodes(&again, &way(&again, &same)).is_empty());
            }
        }
        prop_assert_eq!(same.to_dot(&again).unwrap(), routes.to_dot(&topology).unwrap());
    }
}
