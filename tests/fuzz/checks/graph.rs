//! Any text is read as a graph, in either language, or refused; what is taken can be built, reckoned, routed and written
//! again as it was; never a panic.
use netsim::routing::Routes;
use netsim::topology::{Format, Graph, GraphConfig, figures};

/// What must hold for any input.
pub fn check(text: &str) {
    for format in [Format::Edges, Format::Dot] {
        let Ok(graph) = Graph::parse(text, format, "fuzz") else { continue };
        // Cables by the million are no mistake, but slow.
        if graph.edges.iter().map(|edge| u64::from(edge.cables)).sum::<u64>() > 10_000 {
            continue;
        }
        let Ok(topology) = GraphConfig::default().topology(&graph, "fuzz", &[]) else { continue };
        let _ = figures(&topology);
        let routes = Routes::shortest(&topology);
        let _ = routes.deadlock_freedom(&topology);
        for format in [Format::Edges, Format::Dot] {
            let text = Graph::of(&topology).write(format).expect("these have a place for any name");
            let again = Graph::parse(&text, format, "again").expect("what was written can be read");
            let again = GraphConfig::default().topology(&again, "again", &[]).expect("what was written can be built");
            assert_eq!(again.links(), topology.links());
        }
    }
}
