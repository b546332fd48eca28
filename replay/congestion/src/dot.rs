//! Loads of links as a graph.

use crate::metrics::float;
use netsim::topology::{NodeId, Topology};
use std::fmt::Write as _;

/// The topology in DOT, with the load of each link in `counts` (`get_cable_cong`): its part of the greatest as `label`, and a
/// colour from green (0) to red (1).
#[must_use]
pub fn coloured(topology: &Topology, counts: &[u64]) -> String {
    let most = float(counts.iter().copied().max().unwrap_or(0).max(1));
    let quoted = |node: NodeId| format!("\"{}\"", topology.name(node).replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = "digraph congestion {\n".to_owned();
    for (link, count) in topology.links().iter().zip(counts) {
        let part = float(*count) / most;
        let hue = 0.4 * (1.0 - part);
        let _ = writeln!(
            text,
            "  {} -> {} [label=\"{part:.6}\", color=\"{hue:.6} 0.9 0.9\"];",
            quoted(link.from),
            quoted(link.to)
        );
    }
    text + "}\n"
}
