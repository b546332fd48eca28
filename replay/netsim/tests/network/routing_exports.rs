//! Routings written for other programs, and read back.

use crate::common::{any_graph, any_tree, build};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{Format, Graph, GraphConfig, LinkId, NodeId, Tables, Topology};
use proptest::prelude::*;

fn topology(graph: &Graph) -> Topology {
    GraphConfig::default().topology(graph, "again", &[]).unwrap()
}

fn from_dot(text: &str) -> Topology {
    topology(&Graph::parse(text, Format::Dot, "dot").unwrap())
}

/// The links of a path, as the nodes that they lead to and which of parallel cables they are.
type Path = Vec<(String, usize)>;

fn path(topology: &Topology, routes: &Routes, from: &str, to: &str) -> Path {
    let node = |name| (0..topology.hosts()).map(NodeId).find(|node| topology.name(*node) == name).unwrap();
    let (mut at, to) = (node(from), node(to));
    let mut path = Vec::new();
    while at != to {
        assert!(path.len() <= topology.links().len(), "goes round");
        let next = routes.next(at, LinkId(u32::MAX), to).links;
        assert_eq!(next.len(), 1);
        let end = topology.link(next[0]).to;
        let parallel = topology.out(at).iter().filter(|link| topology.link(**link).to == end);
        path.push((topology.name(end).to_owned(), parallel.take_while(|link| **link != next[0]).count()));
        at = end;
    }
    path
}

/// The paths of all pairs.
fn paths(topology: &Topology) -> Vec<((String, String), Path)> {
    let routes = Routes::new(&RoutingConfig::File, topology, 1).unwrap();
    let mut names: Vec<&str> = (0..topology.hosts()).map(|host| topology.name(NodeId(host))).collect();
    names.sort_unstable();
    let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to))).filter(|(from, to)| from != to);
    pairs.map(|(from, to)| ((from.to_owned(), to.to_owned()), path(topology, &routes, from, to))).collect()
}

/// The same network and routing over both kinds of files.
fn over_files(topology: &Topology, format: Format, tables: Tables) -> Topology {
    let routes = Routes::new(&RoutingConfig::File, topology, 1).unwrap();
    let mut graph = Graph::parse(&Graph::of(topology).write(format).unwrap(), format, "subnet").unwrap();
    graph.read_lfts(routes.to_lfts(topology, tables).unwrap().as_bytes(), "tables").unwrap();
    let again = self::topology(&graph);
    assert_eq!(again.warnings(), [] as [String; 0]);
    again
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn the_paths_of_all_pairs_survive_every_format(network in prop_oneof![any_graph(), any_tree()], d_mod_k in any::<bool>()) {
        let config = if d_mod_k { RoutingConfig::DModK } else { RoutingConfig::Shortest };
        let dot = Routes::new(&config, &network, 1).unwrap().to_dot(&network).unwrap();
        let first = from_dot(&dot);
        for format in [Format::Ibnetdiscover, Format::Lst] {
            for tables in [Tables::Lfts, Tables::Fdbs] {
                let subnet = over_files(&first, format, tables);
                let routes = Routes::new(&RoutingConfig::File, &subnet, 1).unwrap();
                let last = from_dot(&routes.to_dot(&subnet).unwrap());
                prop_assert_eq!(paths(&last), paths(&first));
                let names = |topology: &Topology| -> Vec<String> {
                    (0..topology.hosts()).map(|node| topology.name(NodeId(node)).to_owned()).collect()
                };
                prop_assert_eq!(names(&last), names(&first));
                // What is written again is the same.
                prop_assert_eq!(paths(&over_files(&last, format, tables)), paths(&first));
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let wide = build("shape = \"single-switch\"\nnodes = 255");
    let many = build("shape = \"xgft\"\nm = [200, 250]\nw = [1, 1]");
    for (topology, parts) in [(&wide, ["more cables", "254 ports"]), (&many, ["50251 nodes", "49151"])] {
        for error in [Format::Ibnetdiscover, Format::Lst].map(|format| Graph::of(topology).write(format).unwrap_err()) {
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
        }
        let routes = Routes::new(&RoutingConfig::DModK, topology, 1).unwrap();
        let error = routes.to_lfts(topology, Tables::Fdbs).unwrap_err().to_string();
        assert!(error.contains("cannot be written") && parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let topology = build("shape = \"leaf-spine\"");
    for routing in [RoutingConfig::Ecmp, RoutingConfig::SModK] {
        let error = Routes::new(&routing, &topology, 1).unwrap().to_lfts(&topology, Tables::Lfts).unwrap_err();
        assert!(error.to_string().contains("one port"), "{error}");
    }
    let text = "graph { \"a}\" [type=host]; \"b\\\"\" [type=host]; \"a}\" -- s -- \"b\\\"\" }";
    let graph = Graph::of(&from_dot(text));
    for (format, name) in [(Format::Ibnetdiscover, "b\""), (Format::Lst, "a}")] {
        let error = graph.write(format).unwrap_err().to_string();
        assert!(error.contains(&format!("\"{name}\" cannot be written")), "{error}");
    }
}
