//! Topologies: hosts, switches and the links between them, as data.
//!
//! | `shape` | what it is |
//! |---|---|
//! | `racks` | each host at its rack's switch; two rack switches joined directly, or any number through one core switch |
//! | `fat-tree` | LIGHTNESS' full fat-tree: `nodes` hosts in `racks`, an uplink from each rack switch to each of `cores` |
//! | `single-switch`, `leaf-spine` | one switch; leaves, each joined to every spine |
//! | `k-ary-n-tree`, `thin-tree`, `m-port-n-tree`, `xgft` | trees of any height, the last with any widths |
//! | `mesh`, `torus` | routers in one to many dimensions, hosts at each of them |
//! | `graph` | whatever a file says: an edge list or DOT |
//!
//! All keys, the numbering and the formulae are in `docs/topologies.md`. Nodes are numbered hosts first, then switches;
//! trees level by level from below. Every cable is two links, one for each direction: link `i` and link `i ^ 1`. Each
//! host has exactly one cable.

mod cut;
mod error;
mod export;
mod figures;
mod graph;
mod grid;
mod host;
mod link;
mod shape;
mod tree;
mod trees;

pub use error::TopologyError;
pub use export::Export;
pub use figures::{Figures, Level, figures};
pub use graph::{Format, Graph, GraphConfig, GraphEdge, LinkText};
pub use grid::{Grid, GridConfig};
pub use host::HostPlace;
pub use link::LinkConfig;
pub use shape::{FatTreeConfig, Joined, RacksConfig, TopologyConfig};
pub use tree::Tree;
pub use trees::{KaryTreeConfig, LeafSpineConfig, PortTreeConfig, SingleSwitchConfig, ThinTreeConfig, XgftConfig};

use crate::units::{Buffer, Rate};
pub(crate) use link::Cable;
use std::fmt::Write as _;

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The other direction of the same cable.
    #[must_use]
    pub const fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// One direction of a cable, with what the switch model needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay in picoseconds.
    pub delay_ps: u64,
    /// What may wait in front of it.
    pub buffer: Buffer,
    /// The size of its token bucket in bytes; 0 for a wire.
    pub burst_bytes: u64,
}

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
}

/// Hosts, switches and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// All names, one behind the other; `name_ends` has where each ends.
    names: String,
    name_ends: Vec<u32>,
    hosts: u32,
    host_nodes: Vec<NodeId>,
    links: Vec<Link>,
    /// The links that begin at node 0, at node 1, ...; `out_begins` has where those of each node begin, and the end.
    out: Vec<LinkId>,
    out_begins: Vec<u32>,
    structure: Structure,
}

impl Topology {
    /// How many nodes are hosts: those numbered below.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        number(self.name_ends.len())
    }

    /// How many nodes are switches: those behind the hosts.
    #[must_use]
    pub fn switches(&self) -> u32 {
        self.nodes() - self.hosts
    }

    /// The node of the workload's host `index`; idle hosts follow behind the workload's.
    #[must_use]
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
    pub fn link_name(&self, link: LinkId) -> String {
        let link = self.link(link);
        format!("{}->{}", self.name(link.from), self.name(link.to))
    }

    /// All links, in order of their ids.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.0 as usize]
    }

    /// The links that begin at `node`, in order of their ids: its ports, from 0 on.
    #[must_use]
    pub fn out(&self, node: NodeId) -> &[LinkId] {
        let node = node.0 as usize;
        &self.out[self.out_begins[node] as usize..self.out_begins[node + 1] as usize]
    }

    /// Gives all links the rate `rate`.
    pub fn set_rates(&mut self, rate: Rate) {
        for link in &mut self.links {
            link.rate = rate;
        }
    }

    /// What is known of its form.
    #[must_use]
    pub const fn structure(&self) -> &Structure {
        &self.structure
    }

    /// Whether a node is a host.
    #[must_use]
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
        self.out[self.out_begins[host.0 as usize] as usize]
    }

    /// All links by their begins, and where those of each node begin.
    pub(crate) fn ports(&self) -> (&[LinkId], &[u32]) {
        (&self.out, &self.out_begins)
    }
}

/// Puts a topology together: all hosts first, then switches, then cables.
#[derive(Default)]
pub(super) struct Builder {
    topology: Topology,
}

impl Builder {
    /// A builder that has `places` hosts, `hosts` of the workload on the first of them: rack by rack, in the order in
    /// which racks first appear. The others are idle, named "h0", "h1", ..., or "idle3" beside hosts with names.
    fn with_hosts(hosts: &[HostPlace], places: u32, what: &dyn Fn() -> String) -> Result<Self, TopologyError> {
        let placing = shape::Placing::of(hosts)?;
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
    fn add_idle(&mut self, places: u32, beside_others: bool) {
        let prefix = if beside_others { "idle" } else { "h" };
        for node in self.topology.nodes()..places {
            let host = self.add_numbered(prefix, &[node]);
            self.topology.host_nodes.push(host);
        }
    }

    /// All nodes so far are hosts, and no other ones.
    fn hosts_end(&mut self) {
        self.topology.hosts = self.topology.nodes();
    }

    fn add_node(&mut self, name: &str) -> NodeId {
        self.topology.names.push_str(name);
        self.end_name()
    }

    /// A node named by a word and numbers, joined by dots.
    fn add_numbered(&mut self, prefix: &str, numbers: &[u32]) -> NodeId {
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
        self.topology.name_ends.push(number(self.topology.names.len()));
        id
    }

    /// Joins two nodes: two links.
    fn join(&mut self, a: NodeId, b: NodeId, cable: &Cable) {
        for (from, to) in [(a, b), (b, a)] {
            let Cable { rate, delay_ps, buffer, burst_bytes } = *cable;
            self.topology.links.push(Link { from, to, rate, delay_ps, buffer, burst_bytes });
        }
    }

    /// The topology, whose form is `structure`.
    fn finish(self, structure: Structure) -> Topology {
        let mut topology = self.topology;
        let mut begins = vec![0u32; topology.name_ends.len() + 1];
        for link in &topology.links {
            begins[link.from.0 as usize + 1] += 1;
        }
        for node in 1..begins.len() {
            begins[node] += begins[node - 1];
        }
        let mut next = begins.clone();
        topology.out = vec![LinkId(0); topology.links.len()];
        for (id, link) in (0..).map(LinkId).zip(&topology.links) {
            let place = &mut next[link.from.0 as usize];
            topology.out[*place as usize] = id;
            *place += 1;
        }
        topology.out_begins = begins;
        topology.structure = structure;
        topology
    }
}

/// A number of things that are numbered with 32 bits.
fn number(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
