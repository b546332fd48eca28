//! Hosts, switches and links.

use super::grid::Grid;
use super::ids::{LinkId, NodeId};
use super::lattice::Lattice;
use super::links::{Cables, Link, Links};
use super::tree::Tree;
use crate::count::count;
use crate::csr::Csr;
use crate::units::Rate;
use compact_str::CompactString;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is known of a topology's form; routing can reckon with it in place of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Structure {
    /// Nothing: any graph.
    #[default]
    Any,
    /// A generalised fat tree.
    Tree(Tree),
    /// A mesh or a torus.
    Grid(Grid),
    /// Another lattice: a torus with a twist, one way or out of order in places, a midimew, SpiNNaker's network.
    Lattice(Lattice),
}

/// Hosts, switches and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// All names, one behind the other; `name_ends` has where each ends.
    pub(super) names: String,
    pub(super) name_ends: Vec<u32>,
    pub(super) hosts: u32,
    pub(super) host_nodes: Vec<NodeId>,
    pub(super) cables: Cables,
    /// The links that begin at each node.
    pub(super) out: Csr<LinkId>,
    pub(super) structure: Structure,
    /// By switch, then host: the link that the topology's file says, `u32::MAX` for none. Empty: it says no routes.
    pub(super) routes: Arc<[LinkId]>,
    pub(super) warnings: Vec<String>,
}

impl Topology {
    /// How many nodes are hosts: those numbered below.
    #[must_use]
    #[inline]
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        count(self.name_ends.len())
    }

    /// How many nodes are switches: those behind the hosts.
    #[must_use]
    pub fn switches(&self) -> u32 {
        self.nodes() - self.hosts
    }

    /// The node of the workload's host `index`; idle hosts follow behind the workload's.
    #[must_use]
    #[inline]
    pub fn host_node(&self, index: u32) -> NodeId {
        self.host_nodes[index as usize]
    }

    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        let node = node.0 as usize;
        let begin = if node == 0 { 0 } else { self.name_ends[node - 1] };
        &self.names[begin as usize..self.name_ends[node] as usize]
    }

    /// A link's name: "w1->rack1".
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> CompactString {
        let link = self.link(link);
        let mut name = CompactString::from(self.name(link.from));
        name.push_str("->");
        name.push_str(self.name(link.to));
        name
    }

    /// All links, in order of their ids.
    #[must_use]
    pub const fn links(&self) -> Links<'_> {
        self.cables.links()
    }

    /// One link.
    #[must_use]
    #[inline]
    pub fn link(&self, link: LinkId) -> Link {
        self.cables.link(link)
    }

    /// The links that begin at `node`, in order of their ids: its ports, from 0 on.
    #[must_use]
    #[inline]
    pub fn out(&self, node: NodeId) -> &[LinkId] {
        self.out.row(node.0 as usize)
    }

    /// Gives all links the rate `rate`.
    pub fn set_rates(&mut self, rate: Rate) {
        self.cables.set_rates(rate);
    }

    /// What is known of its form.
    #[must_use]
    pub const fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The form of a lattice; meshes and tori are some.
    #[must_use]
    pub fn lattice(&self) -> Option<Lattice> {
        match &self.structure {
            Structure::Lattice(lattice) => Some(lattice.clone()),
            // Hosts' cables come first.
            Structure::Grid(grid) => Some(Lattice::joined(grid, self.hosts * 2)),
            Structure::Any | Structure::Tree(_) => None,
        }
    }

    /// Whether a node is a host.
    #[must_use]
    #[inline]
    pub const fn is_host(&self, node: NodeId) -> bool {
        node.0 < self.hosts
    }

    /// The switch at which a host hangs.
    #[must_use]
    pub fn switch_of(&self, host: NodeId) -> NodeId {
        self.link(self.uplink(host)).to
    }

    /// A host's one link.
    #[must_use]
    pub fn uplink(&self, host: NodeId) -> LinkId {
        self.out.row(host.0 as usize)[0]
    }

    /// Whether its file says routes.
    #[must_use]
    pub fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    /// The link by which, as its file says, a packet for host `to` goes on that stands at switch `at`.
    #[must_use]
    pub fn route(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        let switch = at.0.checked_sub(self.hosts)? as usize;
        let link = self.routes.get(switch * self.hosts as usize + to.0 as usize)?;
        (link.0 != u32::MAX).then_some(*link)
    }

    /// What its file says that was left out, with file and line.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Hashes its hosts, names, links, and the routes of its file.
    pub(crate) fn hash_into(&self, state: &mut impl Hasher) {
        (&self.names, &self.host_nodes, &self.cables, &self.routes).hash(state);
    }

    /// The links that begin at each node, one behind the other.
    pub(crate) const fn ports(&self) -> &Csr<LinkId> {
        &self.out
    }
}
