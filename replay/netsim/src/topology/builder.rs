//! Putting topologies together.

use super::ids::{LinkId, NodeId};
use super::link::Cable;
use super::placing::Placing;
use super::structure::{Structure, Topology};
use super::tree::Tree;
use super::{HostPlace, TopologyError};
use crate::count::count;
use crate::csr::Csr;
use std::fmt::Write as _;

/// Puts a topology together: all hosts first, then switches, then cables.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) topology: Topology,
}

impl Builder {
    /// A builder that has `places` hosts, `hosts` of the workload on the first of them: rack by rack, in the order in
    /// which racks first appear. The others are idle, named "h0", "h1", ..., or "idle3" beside hosts with names.
    pub(super) fn with_hosts(
        hosts: &[HostPlace],
        places: u32,
        what: &dyn Fn() -> String,
    ) -> Result<Self, TopologyError> {
        let placing = Placing::of(hosts)?;
        if hosts.len() > places as usize {
            return Err(TopologyError::TooFewPlaces { hosts: hosts.len(), what: what(), places });
        }
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        order.sort_by_key(|host| placing.rack(*host));
        let mut builder = Self::default();
        builder.topology.host_nodes = vec![NodeId(0); hosts.len()];
        for host in order {
            builder.topology.host_nodes[host] = builder.add_node(&hosts[host].name);
        }
        builder.add_idle(places, !hosts.is_empty());
        builder.hosts_end();
        Ok(builder)
    }

    /// Adds idle hosts up to `places` nodes.
    pub(super) fn add_idle(&mut self, places: u32, beside_others: bool) {
        let prefix = if beside_others { "idle" } else { "h" };
        for node in self.topology.nodes()..places {
            let host = self.add_numbered(prefix, &[node]);
            self.topology.host_nodes.push(host);
        }
    }

    /// All nodes so far are hosts, and no other ones.
    pub(super) fn hosts_end(&mut self) {
        self.topology.hosts = self.topology.nodes();
    }

    pub(super) fn add_node(&mut self, name: &str) -> NodeId {
        self.topology.names.push_str(name);
        self.end_name()
    }

    /// A node named by a word and numbers, joined by dots.
    pub(super) fn add_numbered(&mut self, prefix: &str, numbers: &[u32]) -> NodeId {
        self.topology.names.push_str(prefix);
        for (index, value) in numbers.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            // Writing to a String does not fail.
            let _ = write!(self.topology.names, "{dot}{value}");
        }
        self.end_name()
    }

    fn end_name(&mut self) -> NodeId {
        let id = NodeId(self.topology.nodes());
        self.topology.name_ends.push(count(self.topology.names.len()));
        id
    }

    /// Joins two nodes: two links.
    pub(super) fn join(&mut self, a: NodeId, b: NodeId, cable: &Cable) {
        self.join_by(a, b, cable, false);
    }

    /// Joins two nodes, `one_way` if only from `a` to `b`: two links, of which the first is returned.
    pub(super) fn join_by(&mut self, a: NodeId, b: NodeId, cable: &Cable, one_way: bool) -> LinkId {
        self.topology.cables.push(a, b, *cable, one_way)
    }

    /// The topology, whose form is `structure`.
    pub(super) fn finish(self, structure: Structure) -> Topology {
        let mut topology = self.topology;
        let links = (0..).map(LinkId).zip(topology.links()).filter(|(_, link)| !link.absent);
        let out = links.map(|(id, link)| (link.from.0 as usize, id));
        topology.out = Csr::grouped(topology.name_ends.len(), out);
        topology.structure = structure;
        topology
    }

    /// Adds a tree's switches, named by `name` from their level and number, and its cables to the hosts: the topology.
    pub(super) fn into_tree(
        mut self,
        tree: Tree,
        cables: &[Cable],
        mut name: impl FnMut(&mut Self, usize, u32) -> NodeId,
    ) -> Topology {
        let mut firsts = vec![NodeId(0)];
        for level in 1..=tree.height() {
            firsts.push(NodeId(self.topology.nodes()));
            for index in 0..tree.nodes(level) {
                name(&mut self, level, index);
            }
        }
        let cables_above = |level| {
            [tree.nodes(level), tree.parents(level), tree.cables(level)]
                .into_iter()
                .map(|n| n as usize)
                .product::<usize>()
        };
        self.topology.cables.reserve_exact((0..tree.height()).map(cables_above).sum());
        for level in 0..tree.height() {
            let (below, above) = (firsts[level].0, firsts[level + 1].0);
            let (copies, copies_above) = (tree.copies(level), tree.copies(level + 1));
            for index in 0..tree.nodes(level) {
                let subtree = index / copies / tree.children(level + 1);
                for parent in 0..tree.parents(level) {
                    let to = above + subtree * copies_above + parent * copies + index % copies;
                    for _ in 0..tree.cables(level) {
                        self.join(NodeId(below + index), NodeId(to), &cables[level]);
                    }
                }
            }
        }
        self.finish(Structure::Tree(tree))
    }
}
