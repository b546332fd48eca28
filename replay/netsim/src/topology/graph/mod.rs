//! Topologies from files: edge lists, DOT, and those of InfiniBand's tools.

mod comments;
mod dot;
mod edges;
mod infiniband;
mod subnet;
mod text;

pub use subnet::Subnet;
pub use text::{Graph, GraphEdge, LinkText, NO_ROUTE};

use super::builder::Builder;
use super::ids::MAX_CABLES;
use super::link::Cable;
use super::placing::Placing;
use super::{HostPlace, LinkConfig, LinkId, MAX_ENTRIES, NodeId, Structure, Topology, TopologyError};
use crate::count::count;
use crate::files;
use crate::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// One cable a line.
    Edges,
    /// Graphviz' language.
    Dot,
    /// As `ibnetdiscover` prints a subnet of InfiniBand, and ibsim reads it.
    Ibnetdiscover,
    /// As ibdiagnet writes it (`ibdiagnet.lst`).
    Lst,
}

/// How forwarding tables of a subnet of InfiniBand are written; either is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// As OpenSM dumps them (`opensm-lfts.dump`).
    Lfts,
    /// As ibdiagnet does (`ibdiagnet.fdbs`).
    Fdbs,
}

/// The most bytes of a file; a graph of as many cables as are possible has fewer.
const MAX_FILE: u64 = 1 << 28;

/// A topology that a file describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GraphConfig {
    /// The file, relative to the experiment's. It has to be given.
    pub file: PathBuf,
    /// How it is written. Default: `dot` where its name ends in .dot or .gv, `ibnetdiscover` for .topo, `lst` for .lst, else
    /// `edges`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Cables of hosts for which the file says nothing else.
    pub host_link: LinkConfig,
    /// Cables between switches for which the file says nothing else.
    pub uplink: LinkConfig,
    /// Cables by the class that the file gives them, in place of what the file says of that class. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, LinkConfig>,
    /// Whether the routes count that the file says, which routing `file` follows. Default: true.
    #[serde(skip_serializing_if = "is_true")]
    pub routes: bool,
    /// Whether what would be left out with a warning is an error. Default: false.
    #[serde(skip_serializing_if = "is_false")]
    pub strict: bool,
    /// Forwarding tables of a subnet of InfiniBand, relative to the experiment's file: an LFT dump of OpenSM or `ibroute`, or
    /// `ibdiagnet.fdbs`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lfts: Option<PathBuf>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way of asking")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way of asking")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self {
            file: PathBuf::new(),
            format: None,
            host_link: LinkConfig::default(),
            uplink: LinkConfig::default(),
            links: BTreeMap::new(),
            routes: true,
            strict: false,
            lfts: None,
        }
    }
}

impl Graph {
    /// Reads a text, which errors call `file`.
    ///
    /// # Errors
    /// With file, line, what is wrong and what is allowed.
    pub fn parse(text: &str, format: Format, file: &str) -> Result<Self, TopologyError> {
        let parsed = match format {
            Format::Edges => edges::parse(text),
            Format::Dot => dot::parse(text, file),
            Format::Ibnetdiscover => infiniband::parse_discover(text),
            Format::Lst => infiniband::parse_lst(text),
        };
        parsed.map_err(|wrong| wrong.in_file(file))
    }

    /// Takes its routes from forwarding tables, which errors call `file`: an LFT dump or `ibdiagnet.fdbs`.
    ///
    /// # Errors
    /// With file, line, what is wrong and what is allowed; when the graph is not from a subnet's file, or would have too many
    /// routes.
    pub fn read_lfts(&mut self, lines: impl BufRead, file: &str) -> Result<(), TopologyError> {
        let Some(subnet) = self.subnet.take() else {
            let allowed = "forwarding tables know LIDs and ports, which only format = \"ibnetdiscover\" or \"lst\" has";
            return Err(TopologyError::value("lfts", format!("\"{file}\""), allowed));
        };
        let hosts = self.hosts() as u64;
        let entries = hosts * (self.nodes.len() as u64 - hosts);
        if entries > MAX_ENTRIES {
            return Err(TopologyError::TooManyRoutes { entries, most: MAX_ENTRIES });
        }
        let read = infiniband::read_tables(self, &subnet, lines, file);
        self.subnet = Some(subnet);
        read.map_err(|wrong| wrong.in_file(file))
    }

    /// A topology as a graph, without routes: parsed again, it is the same nodes, names and links.
    #[must_use]
    pub fn of(topology: &Topology) -> Self {
        Self::with_cables(topology, true)
    }

    /// A topology as a graph with routes: `next` says the link by which a packet for a host goes on that stands at a switch.
    ///
    /// # Errors
    /// When there are too many routes.
    pub fn routed(topology: &Topology, next: impl Fn(NodeId, NodeId) -> Option<LinkId>) -> Result<Self, TopologyError> {
        let entries = u64::from(topology.switches()) * u64::from(topology.hosts());
        if entries > MAX_ENTRIES {
            return Err(TopologyError::TooManyRoutes { entries, most: MAX_ENTRIES });
        }
        let mut graph = Self::with_cables(topology, false);
        for at in (topology.hosts()..topology.nodes()).map(NodeId) {
            // Each cable is an edge, in the same order.
            let links = (0..topology.hosts()).map(|to| next(at, NodeId(to)).map_or(NO_ROUTE, |link| link.0));
            graph.routes.extend(links);
        }
        Ok(graph)
    }

    /// Nodes and cables; parallel ones together if `folded`.
    fn with_cables(topology: &Topology, folded: bool) -> Self {
        let nodes = (0..topology.nodes()).map(NodeId);
        let nodes = nodes.map(|node| (topology.name(node).to_owned(), topology.is_host(node))).collect();
        let one_way = topology.links().iter().any(|link| link.absent);
        let mut graph = Self { nodes, one_way, ..Self::default() };
        let mut classes: HashMap<Cable, String> = HashMap::new();
        for link in topology.links().iter().step_by(2) {
            let cable =
                Cable { rate: link.rate, delay_ps: link.delay_ps, buffer: link.buffer, burst_bytes: link.burst_bytes };
            let number = classes.len();
            let class = classes.entry(cable).or_insert_with(|| {
                let name = format!("class{number}");
                let text = LinkText {
                    rate: Some(cable.rate),
                    delay: Some(DurationPs(cable.delay_ps)),
                    buffer: Some(cable.buffer),
                    burst: Some(Bytes(cable.burst_bytes)),
                };
                graph.classes.insert(name.clone(), text);
                name
            });
            let ends = (link.from.0 as usize, link.to.0 as usize);
            match graph.edges.last_mut() {
                Some(last) if folded && last.ends == ends && last.class.as_ref() == Some(class) => last.cables += 1,
                _ => graph.edges.push(GraphEdge {
                    ends,
                    class: Some(class.clone()),
                    cables: 1,
                    link: LinkText::default(),
                    line: 0,
                }),
            }
        }
        graph
    }

    /// The graph as text. Only `dot` has a place for routes; those of InfiniBand have none for links' keys.
    ///
    /// # Errors
    /// When a subnet of InfiniBand has not so many LIDs or ports, or a name cannot stand in the file.
    pub fn write(&self, format: Format) -> Result<String, TopologyError> {
        if self.one_way {
            return Err(TopologyError::OneWay);
        }
        match format {
            Format::Edges => Ok(edges::write(self)),
            Format::Dot => {
                if !self.routes.is_empty() {
                    self.nodes[..self.hosts()].iter().try_for_each(|(name, _)| comments::check_name(name))?;
                }
                Ok(dot::write(self))
            }
            Format::Ibnetdiscover => infiniband::write_discover(self),
            Format::Lst => infiniband::write_lst(self),
        }
    }

    /// The routes as forwarding tables, which go with [`Graph::write`]'s subnet.
    ///
    /// # Errors
    /// As [`Graph::write`].
    pub fn write_lfts(&self, tables: Tables) -> Result<String, TopologyError> {
        if self.one_way {
            return Err(TopologyError::OneWay);
        }
        match tables {
            Tables::Lfts => infiniband::write_lfts(self),
            Tables::Fdbs => infiniband::write_fdbs(self),
        }
    }
}

impl GraphConfig {
    /// How the file is written.
    fn format(&self) -> Format {
        self.format.unwrap_or_else(|| {
            let end = self.file.extension().and_then(|end| end.to_str()).unwrap_or_default();
            match end {
                "dot" | "gv" => Format::Dot,
                "topo" => Format::Ibnetdiscover,
                "lst" => Format::Lst,
                _ => Format::Edges,
            }
        })
    }

    pub(super) fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        let file = self.file.display().to_string();
        if file.is_empty() {
            let allowed =
                "the file with the edge list, DOT graph or subnet is needed, relative to the experiment's file";
            return Err(TopologyError::value("file", "\"\"", allowed));
        }
        let text = files::read_text(&self.file, MAX_FILE)
            .map_err(|error| TopologyError::file("file", &self.file, error.to_string()))?;
        let mut graph = Graph::parse(&text, self.format(), &file)?;
        if let Some(lfts) = self.lfts.as_ref().filter(|_| self.routes) {
            let opened = files::open(lfts).map_err(|error| TopologyError::file("lfts", lfts, error.to_string()))?;
            graph.read_lfts(BufReader::new(opened), &lfts.display().to_string())?;
        }
        self.topology(&graph, &file, hosts)
    }

    /// The topology that `graph` describes with the links of this configuration; errors call it `file`.
    ///
    /// # Errors
    /// When the graph is no network, or a class of links is not known.
    pub fn topology(&self, graph: &Graph, file: &str, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        let places = graph.nodes.iter().filter(|(_, host)| *host).count();
        let wrong = |reason: String| Err(TopologyError::Graph { file: file.to_owned(), reason });
        if places == 0 {
            return wrong("there are no hosts: declare them, or begin their names with H".to_owned());
        }
        let total = graph.edges.iter().fold(0u64, |sum, edge| sum.saturating_add(edge.cables.into()));
        if total > MAX_CABLES || graph.nodes.len() as u64 > 2 * MAX_CABLES {
            return Err(TopologyError::TooLarge { cables: total.max(graph.nodes.len() as u64), most: MAX_CABLES });
        }
        let mut cables = vec![0u64; places];
        for edge in &graph.edges {
            let name = |end: usize| &graph.nodes[end].0;
            let (a, b) = edge.ends;
            if a == b || (a < places && b < places) {
                let reason = format!("{} - {}: a cable joins a host and a switch, or two switches", name(a), name(b));
                return Err(TopologyError::Line { file: file.to_owned(), line: edge.line, reason });
            }
            for end in [a, b] {
                if let Some(count) = cables.get_mut(end) {
                    *count += u64::from(edge.cables);
                }
            }
        }
        if let Some((host, count)) = cables.iter().enumerate().find(|(_, count)| **count != 1) {
            return wrong(format!("host {} has {count} cables; a host has exactly one", graph.nodes[host].0));
        }
        let mut builder = self.nodes(graph, places, hosts, file)?;
        let mut known = HashMap::new();
        for edge in &graph.edges {
            let cable = self.cable(graph, edge, edge.ends.0.min(edge.ends.1) < places, &mut known, file)?;
            for _ in 0..edge.cables {
                builder.join(NodeId(count(edge.ends.0)), NodeId(count(edge.ends.1)), &cable);
            }
        }
        let mut topology = builder.finish(Structure::Any);
        if let Some(apart) = unreached(&topology) {
            let (first, apart) = (topology.name(NodeId(0)), topology.name(apart));
            return wrong(format!("there is no way from {first} to {apart}: all nodes must hang together"));
        }
        if self.routes {
            let mut first = Vec::with_capacity(graph.edges.len());
            let mut cables = 0;
            for edge in &graph.edges {
                first.push(2 * cables);
                cables += edge.cables;
            }
            let link = |route: &u32| first.get(*route as usize / 2).map_or(NO_ROUTE, |first| first + route % 2);
            topology.routes = graph.routes.iter().map(|route| LinkId(link(route))).collect();
            if let Some(warning) = graph.warnings.first().filter(|_| self.strict) {
                return Err(TopologyError::LeftOut { warning: warning.clone() });
            }
            topology.warnings.clone_from(&graph.warnings);
        }
        Ok(topology)
    }

    /// Nodes with their names. The workload's hosts stand where they are named, or on the first hosts that are left.
    fn nodes(&self, graph: &Graph, places: usize, hosts: &[HostPlace], file: &str) -> Result<Builder, TopologyError> {
        Placing::of(hosts)?;
        if hosts.len() > places {
            let (what, places) = (file.to_owned(), count(places));
            return Err(TopologyError::TooFewPlaces { hosts: hosts.len(), what, places });
        }
        let names: HashMap<&str, usize> =
            graph.nodes[..places].iter().enumerate().map(|(node, (name, _))| (name.as_str(), node)).collect();
        let mut taken = vec![None; places];
        let mut nodes: Vec<Option<usize>> = hosts.iter().map(|host| names.get(host.name.as_str()).copied()).collect();
        for (host, node) in nodes.iter().enumerate() {
            if let Some(node) = node {
                taken[*node] = Some(host);
            }
        }
        let free: Vec<usize> = (0..places).filter(|place| taken[*place].is_none()).collect();
        let mut free = free.into_iter();
        for (host, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.is_none()) {
            *node = free.next();
            if let Some(node) = *node {
                taken[node] = Some(host);
            }
        }
        let mut builder = Builder::default();
        for (node, (name, host)) in graph.nodes.iter().enumerate() {
            if *host {
                let workload = taken[node].map(|host| hosts[host].name.as_str());
                builder.add_node(workload.unwrap_or(name));
            } else {
                if node == places {
                    builder.hosts_end();
                }
                builder.add_node(name);
            }
        }
        if builder.topology.hosts == 0 {
            builder.hosts_end();
        }
        let idle = free.map(Some);
        let host_nodes = nodes.into_iter().chain(idle).flatten();
        builder.topology.host_nodes = host_nodes.map(|node| NodeId(count(node))).collect();
        Ok(builder)
    }

    /// The cable of an edge: its own keys over those of its class over `host_link` or `uplink`.
    fn cable<'g>(
        &self,
        graph: &'g Graph,
        edge: &'g GraphEdge,
        of_host: bool,
        known: &mut HashMap<(Option<&'g str>, bool), Cable>,
        file: &str,
    ) -> Result<Cable, TopologyError> {
        let key = (edge.class.as_deref(), of_host);
        let base = match known.get(&key) {
            Some(cable) => *cable,
            None => {
                let plain = if of_host { ("host_link", &self.host_link) } else { ("uplink", &self.uplink) };
                let cable = match key.0 {
                    None => plain.1.cable(plain.0)?,
                    Some("host_link") => self.host_link.cable("host_link")?,
                    Some("uplink") => self.uplink.cable("uplink")?,
                    Some(class) => match (self.links.get(class), graph.classes.get(class)) {
                        (Some(config), _) => config.cable(&format!("links.{class}"))?,
                        (None, Some(text)) => text.over(plain.1.cable(plain.0)?),
                        (None, None) => {
                            let known: Vec<&str> =
                                graph.classes.keys().chain(self.links.keys()).map(String::as_str).collect();
                            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                            let reason = format!(
                                "the class \"{class}\" of links is not known; fabric.topology.links.{class} would \
                                 define it; there are host_link, uplink, and: {known}"
                            );
                            return Err(TopologyError::Line { file: file.to_owned(), line: edge.line, reason });
                        }
                    },
                };
                known.insert(key, cable);
                cable
            }
        };
        let cable = edge.link.over(base);
        if cable.burst_bytes > 0 && cable.rate == Rate::UNLIMITED {
            let reason = format!("burst = \"{}\" needs a rate that is not \"unlimited\"", Bytes(cable.burst_bytes));
            return Err(TopologyError::Line { file: file.to_owned(), line: edge.line, reason });
        }
        Ok(cable)
    }
}

/// A node that the first one does not reach.
fn unreached(topology: &Topology) -> Option<NodeId> {
    let mut seen = vec![false; topology.nodes() as usize];
    let mut open = vec![NodeId(0)];
    seen[0] = true;
    while let Some(node) = open.pop() {
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if !std::mem::replace(&mut seen[to.0 as usize], true) {
                open.push(to);
            }
        }
    }
    seen.iter().position(|seen| !seen).map(|node| NodeId(count(node)))
}
