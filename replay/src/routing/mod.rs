//! Routing: which links a flow takes.
//!
//! All routings here go the shortest way; they differ in how they choose where there are several.

mod routes;

pub use routes::{Next, Routes};

use crate::kernel::random::draw;
use crate::topology::{LinkId, NodeId, Topology};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How a switch chooses among the links that lie on shortest ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingConfig {
    /// Equal-cost multi-path by a hash of the flow, as Ethernet switches do.
    #[default]
    Ecmp,
    /// The destination's number modulo the number of links: one way for each destination.
    DModK,
}

/// Finds ways through a topology; remembers the distances to switches that were asked for.
pub struct Router {
    config: RoutingConfig,
    seed: u64,
    /// To a switch at which hosts hang: every node's distance in links.
    distances: BTreeMap<NodeId, Vec<u32>>,
}

const UNREACHED: u32 = u32::MAX;

impl Router {
    /// A router with `config`; `seed` decides the hashes.
    #[must_use]
    pub const fn new(config: RoutingConfig, seed: u64) -> Self {
        Self { config, seed, distances: BTreeMap::new() }
    }

    /// Appends the links from `source` to `destination` for the flow with number `flow` to `path`; nothing if there is
    /// no way.
    pub fn way(&mut self, topology: &Topology, source: NodeId, destination: NodeId, flow: u64, path: &mut Vec<LinkId>) {
        let Some(last) = attachment(topology, destination) else { return };
        let target = topology.link(last).from;
        let distances = self.distances.entry(target).or_insert_with(|| distances_to(topology, target));
        let mut node = source;
        while node != target {
            let here = distances[node.0 as usize];
            if here == UNREACHED {
                path.clear();
                return;
            }
            let nearer = |link: &&LinkId| distances[topology.link(**link).to.0 as usize] < here;
            let ways = topology.out(node).iter().filter(nearer).count() as u64;
            let choice = match self.config {
                _ if ways == 1 => 0,
                RoutingConfig::Ecmp => draw(self.seed, u64::from(node.0), flow) % ways,
                RoutingConfig::DModK => u64::from(destination.0) % ways,
            };
            let chosen = topology.out(node).iter().filter(nearer).nth(usize::try_from(choice).unwrap_or(0));
            let Some(chosen) = chosen else { return };
            path.push(*chosen);
            node = topology.link(*chosen).to;
        }
        path.push(last);
    }
}

/// The link from a host's switch down to it.
fn attachment(topology: &Topology, host: NodeId) -> Option<LinkId> {
    let up = topology.link(*topology.out(host).first()?);
    topology.out(up.to).iter().copied().find(|link| topology.link(*link).to == host)
}

/// Every node's distance to `target`, by breadth-first search; hosts are not passed through.
fn distances_to(topology: &Topology, target: NodeId) -> Vec<u32> {
    let mut distances = vec![UNREACHED; topology.nodes() as usize];
    distances[target.0 as usize] = 0;
    let mut reached = VecDeque::from([target]);
    while let Some(node) = reached.pop_front() {
        let next = distances[node.0 as usize] + 1;
        if node.0 < topology.hosts() {
            continue;
        }
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if distances[to.0 as usize] == UNREACHED {
                distances[to.0 as usize] = next;
                reached.push_back(to);
            }
        }
    }
    distances
}
