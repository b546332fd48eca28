//! What files say: nodes, classes of links and cables, whatever the language.

use super::super::TopologyError;
use super::super::link::Cable;
use super::subnet::Subnet;
use crate::units::{Buffer, Bytes, DurationPs, Length, Rate, UnitError};
use std::collections::{BTreeMap, HashMap};

/// What a file says of a link; what it does not say comes from the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkText {
    /// `rate`.
    pub rate: Option<Rate>,
    /// `delay` (or `latency`), or the time that light takes for `length`.
    pub delay: Option<DurationPs>,
    /// `buffer`.
    pub buffer: Option<Buffer>,
    /// `burst`.
    pub burst: Option<Bytes>,
}

impl LinkText {
    /// Takes a key and its value; `false` if there is no such key.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let wrong = |error: UnitError| format!("{key}: {error}");
        match key {
            "rate" => self.rate = Some(value.parse().map_err(wrong)?),
            "delay" | "latency" => self.delay = Some(value.parse().map_err(wrong)?),
            "length" => self.delay = Some(value.parse::<Length>().map_err(wrong)?.light_time()),
            "buffer" => self.buffer = Some(value.parse().map_err(wrong)?),
            "burst" => self.burst = Some(value.parse().map_err(wrong)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The keys and their values.
    pub(super) fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = Vec::new();
        keys.extend(self.rate.map(|rate| ("rate", rate.to_string())));
        keys.extend(self.delay.map(|delay| ("delay", delay.to_string())));
        keys.extend(self.buffer.map(|buffer| ("buffer", buffer.to_string())));
        keys.extend(self.burst.map(|burst| ("burst", burst.to_string())));
        keys
    }

    pub(super) fn over(&self, below: Cable) -> Cable {
        Cable {
            rate: self.rate.unwrap_or(below.rate),
            delay_ps: self.delay.map_or(below.delay_ps, DurationPs::ps),
            buffer: self.buffer.unwrap_or(below.buffer),
            burst_bytes: self.burst.map_or(below.burst_bytes, Bytes::get),
        }
    }
}

/// One or more cables between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The nodes, as indices into [`Graph::nodes`].
    pub ends: (usize, usize),
    /// The class of the cables.
    pub class: Option<String>,
    /// How many there are.
    pub cables: u32,
    /// What the file says of these alone.
    pub link: LinkText,
    /// The line where it stands, from 1 on; 0 if it is from no file.
    pub line: usize,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Names of nodes, in the order in which they are numbered, and whether each is a host.
    pub nodes: Vec<(String, bool)>,
    /// Classes of links.
    pub classes: BTreeMap<String, LinkText>,
    /// Cables, in order.
    pub edges: Vec<GraphEdge>,
    /// By switch, then host: the cable by which packets for the host go on, as twice the number of its edge, 1 more if they go
    /// against its `ends`; [`NO_ROUTE`] for none. Empty: there are no routes.
    pub routes: Vec<u32>,
    /// Whether it stands for a network with cables that lead one way, for which no file has a place.
    pub one_way: bool,
    /// What was left out, with file and line.
    pub warnings: Vec<String>,
    /// What forwarding tables refer to; `None` where the file is not of a subnet of InfiniBand.
    pub subnet: Option<Subnet>,
}

/// Where [`Graph::routes`] leads nowhere.
pub const NO_ROUTE: u32 = u32::MAX;

/// More warnings than these are not kept.
const MAX_WARNINGS: usize = 20;

impl Graph {
    /// How many nodes are hosts: those before the switches.
    pub(super) fn hosts(&self) -> usize {
        self.nodes.partition_point(|(_, host)| *host)
    }

    /// The node where a direction of an edge begins, numbered as in [`Graph::routes`].
    pub(super) fn from(&self, link: u32) -> usize {
        let (a, b) = self.edges[link as usize / 2].ends;
        if link.is_multiple_of(2) { a } else { b }
    }

    /// The node where it ends.
    pub(super) fn to(&self, link: u32) -> usize {
        self.from(link ^ 1)
    }

    /// Notes what is left out.
    pub(super) fn warn(&mut self, file: &str, line: usize, reason: &str) {
        match self.warnings.len() {
            0..MAX_WARNINGS => self.warnings.push(format!("{file}:{line}: {reason}")),
            MAX_WARNINGS => self.warnings.push(format!("{file}:{line}: {reason}; there is more like it")),
            _ => {}
        }
    }
}

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Wrong {
    /// The error of a line of `file`.
    pub(super) fn in_file(self, file: &str) -> TopologyError {
        TopologyError::Line { file: file.to_owned(), line: self.line, reason: self.reason }
    }
}

/// Nodes while a file is read: numbered as they come, hosts known by what the file says, or by their names.
#[derive(Default)]
pub(super) struct Nodes {
    /// Names, and what the file says of each.
    nodes: Vec<(String, Option<bool>)>,
    known: HashMap<String, usize>,
}

impl Nodes {
    /// The node called `name`.
    pub(super) fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.known.get(name) {
            return *number;
        }
        self.nodes.push((name.to_owned(), None));
        self.known.insert(name.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// The name of a node.
    pub(super) fn name(&self, number: usize) -> &str {
        self.nodes.get(number).map_or("", |(name, _)| name)
    }

    /// Notes what a node is said to be.
    pub(super) fn declare(&mut self, name: &str, host: bool) -> Result<(), String> {
        let number = self.number(name);
        match self.nodes[number].1.replace(host) {
            Some(before) if before != host => Err(format!("{name} is said to be a host and a switch")),
            _ => Ok(()),
        }
    }

    /// The nodes, hosts first, and the edges with their new numbers. Where nothing says which nodes are hosts, it is those
    /// whose names begin with H or h.
    pub(super) fn finish(self, classes: BTreeMap<String, LinkText>, mut edges: Vec<GraphEdge>) -> Graph {
        let said = self.nodes.iter().any(|(_, host)| *host == Some(true));
        let nodes = self.nodes.into_iter().map(|(name, host)| {
            let host = host.unwrap_or(!said && name.starts_with(['H', 'h']));
            (name, host)
        });
        let mut order: Vec<(usize, (String, bool))> = nodes.enumerate().collect();
        order.sort_by_key(|(_, (_, host))| !*host);
        let mut numbers = vec![0; order.len()];
        for (new, (old, _)) in order.iter().enumerate() {
            numbers[*old] = new;
        }
        for edge in &mut edges {
            edge.ends = (numbers[edge.ends.0], numbers[edge.ends.1]);
        }
        Graph { nodes: order.into_iter().map(|(_, node)| node).collect(), classes, edges, ..Graph::default() }
    }
}
