//! Any text is read as a subnet of InfiniBand and, behind a line `====`, its forwarding tables, or refused; what is taken can be
//! built and, if its names have a place there, written and read again with the same routes; never a panic.
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{Format, Graph, GraphConfig, NodeId, Tables};

/// What must hold for any input.
pub fn check(text: &str) {
    let (subnet, tables) = text.split_once("\n====\n").unwrap_or((text, ""));
    for (format, written) in [(Format::Ibnetdiscover, Tables::Lfts), (Format::Lst, Tables::Fdbs)] {
        let Ok(mut graph) = Graph::parse(subnet, format, "fuzz") else { continue };
        let routed = graph.read_lfts(tables.as_bytes(), "fuzz").is_ok();
        let Ok(topology) = GraphConfig::default().topology(&graph, "fuzz", &[]) else { continue };
        assert_eq!(topology.has_routes(), routed);
        let Ok(text) = Graph::of(&topology).write(format) else { continue };
        let mut again = Graph::parse(&text, format, "again").expect("what was written can be read");
        let Ok(routes) = Routes::new(&RoutingConfig::File, &topology, 1) else { continue };
        let Ok(tables) = routes.to_lfts(&topology, written) else { continue };
        again.read_lfts(tables.as_bytes(), "again").expect("what was written can be read");
        let again = GraphConfig::default().topology(&again, "again", &[]).expect("what was written can be built");
        let routes = Routes::new(&RoutingConfig::File, &again, 1).expect("the same routes");
        let survey = routes.survey(&again).expect("all pairs have a way");
        let hosts = u64::from(topology.hosts());
        assert_eq!((again.warnings().len(), survey.pairs), (0, hosts * (hosts - 1)));
        for (at, to) in
            (topology.hosts()..topology.nodes()).flat_map(|at| (0..topology.hosts()).map(move |to| (at, to)))
        {
            let [(before, one), (after, two)] = [&topology, &again].map(|of| (of, of.route(NodeId(at), NodeId(to))));
            assert_eq!(one.is_some(), two.is_some(), "{} and {}", before.name(NodeId(at)), after.name(NodeId(at)));
        }
    }
}
