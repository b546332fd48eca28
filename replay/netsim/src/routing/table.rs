//! LIGHTNESS' routing file: one line a switch, for each destination, by its number, the port that leads there; ports are
//! numbered from 0 in the order of the switch's cables, those to hosts first.

use super::RoutingError;
use crate::files;
use crate::topology::{LinkId, MAX_ENTRIES, NodeId, Topology};
use std::fmt::Write as _;
use std::path::Path;

/// The most bytes of a file: 67 million ports, each with up to six digits and a blank, and some comments.
pub const MAX_FILE: u64 = 1 << 29;

/// Where a destination is that a switch does not know.
const NONE: LinkId = LinkId(u32::MAX);

/// One link for each switch and destination.
#[derive(Clone, Debug, Hash)]
pub(super) struct Table {
    hosts: u32,
    up: Vec<LinkId>,
    /// By switch, then destination.
    links: Vec<LinkId>,
}

impl Table {
    /// A table that leads nowhere.
    pub(super) fn none(topology: &Topology) -> Self {
        let up = (0..topology.hosts()).map(|host| topology.uplink(NodeId(host))).collect();
        Self { hosts: topology.hosts(), up, links: Vec::new() }
    }

    /// The links that `next` names for each switch and destination.
    pub(super) fn of(
        topology: &Topology,
        name: &str,
        next: impl Fn(NodeId, NodeId) -> Option<LinkId>,
    ) -> Result<Self, RoutingError> {
        let entries = u64::from(topology.switches()) * u64::from(topology.hosts());
        if entries > MAX_ENTRIES {
            return Err(RoutingError::TooLarge { routing: name.to_owned(), entries, most: MAX_ENTRIES });
        }
        let mut table = Self::none(topology);
        for at in (topology.hosts()..topology.nodes()).map(NodeId) {
            let leaves = |link: &LinkId| topology.out(at).contains(link);
            let to_hosts = (0..topology.hosts()).map(|to| next(at, NodeId(to)).filter(leaves).unwrap_or(NONE));
            table.links.extend(to_hosts);
        }
        table.check(topology, name)?;
        Ok(table)
    }

    /// Reads a file.
    pub(super) fn read(file: &Path, topology: &Topology) -> Result<Self, RoutingError> {
        let name = file.display().to_string();
        match files::read_text(file, MAX_FILE) {
            Ok(text) => Self::parse(&text, &name, topology),
            Err(error) => Err(RoutingError::File { file: name, reason: error.to_string() }),
        }
    }

    /// Reads the text of a file, and looks whether every host reaches every other one.
    pub(super) fn parse(text: &str, file: &str, topology: &Topology) -> Result<Self, RoutingError> {
        let entries = u64::from(topology.switches()) * u64::from(topology.hosts());
        if entries > MAX_ENTRIES {
            return Err(RoutingError::TooLarge { routing: file.to_owned(), entries, most: MAX_ENTRIES });
        }
        let mut table = Self::none(topology);
        let mut switches = (topology.hosts()..topology.nodes()).map(NodeId);
        let mut last = 0;
        for (line, words) in (1..).zip(text.lines()) {
            let words = words.split('#').next().unwrap_or_default();
            if words.trim().is_empty() {
                continue;
            }
            last = line;
            let wrong = |reason| RoutingError::Line { file: file.to_owned(), line, reason };
            let Some(switch) = switches.next() else {
                return Err(wrong(format!("the topology has {} switches, one line each", topology.switches())));
            };
            table.line(topology, switch, words).map_err(wrong)?;
        }
        if let Some(switch) = switches.next() {
            let reason = format!(
                "the file ends before the line of {}: the topology has {} switches, one line each",
                topology.name(switch),
                topology.switches()
            );
            return Err(RoutingError::Line { file: file.to_owned(), line: last + 1, reason });
        }
        table.check(topology, file)?;
        Ok(table)
    }

    /// One switch's ports.
    fn line(&mut self, topology: &Topology, switch: NodeId, words: &str) -> Result<(), String> {
        let ports = topology.out(switch);
        let before = self.links.len();
        for word in words.split_whitespace() {
            let to = self.links.len() - before;
            if to == self.hosts as usize {
                return Err(format!("there are more than {} ports, one for each host", self.hosts));
            }
            let port = match word {
                "-" => None,
                word => Some(word.parse::<usize>().map_err(|_| {
                    format!("\"{word}\" is no number of a port; there are 0 to {}, and - for none", ports.len() - 1)
                })?),
            };
            let link = match port {
                None => NONE,
                Some(port) => *ports.get(port).ok_or_else(|| {
                    let name = topology.name(switch);
                    format!("{name} has ports 0 to {}, but host {to} is to be reached by port {port}", ports.len() - 1)
                })?,
            };
            self.links.push(link);
        }
        match self.links.len() - before {
            given if given < self.hosts as usize => {
                Err(format!("there are {given} ports, but {} hosts, one port for each", self.hosts))
            }
            _ => Ok(()),
        }
    }

    /// Every host reaches every other one.
    fn check(&self, topology: &Topology, file: &str) -> Result<(), RoutingError> {
        // For one destination: in which walk a switch was met first, counted over all.
        let mut met = vec![0u64; topology.switches() as usize];
        let mut walk = 0u64;
        let starts: std::collections::BTreeSet<NodeId> = self.up.iter().map(|up| topology.link(*up).to).collect();
        for to in (0..self.hosts).map(NodeId) {
            let of_destination = walk;
            for start in &starts {
                walk += 1;
                let mut at = *start;
                while at != to {
                    let name = |node: NodeId| topology.name(node).to_owned();
                    let no_way = |at| RoutingError::NoWay { routing: file.to_owned(), from: name(at), to: name(to) };
                    if topology.is_host(at) {
                        return Err(no_way(at));
                    }
                    let known = &mut met[(at.0 - self.hosts) as usize];
                    if *known == walk {
                        let round = self.round(topology, at, to);
                        return Err(RoutingError::Loop {
                            file: file.to_owned(),
                            from: name(*start),
                            to: name(to),
                            round,
                        });
                    }
                    if *known > of_destination {
                        break;
                    }
                    *known = walk;
                    at = match self.next(at, to).first() {
                        Some(link) => topology.link(*link).to,
                        None => return Err(no_way(at)),
                    };
                }
            }
        }
        Ok(())
    }

    /// The names along a loop.
    fn round(&self, topology: &Topology, from: NodeId, to: NodeId) -> String {
        let mut names = vec![topology.name(from)];
        let mut at = from;
        while let Some(link) = self.next(at, to).first() {
            at = topology.link(*link).to;
            names.push(topology.name(at));
            if at == from {
                break;
            }
        }
        names.join(" -> ")
    }

    /// The link by which a packet for host `to` goes on that stands at `at`.
    #[inline]
    pub(super) fn next(&self, at: NodeId, to: NodeId) -> &[LinkId] {
        if at.0 < self.hosts {
            return std::slice::from_ref(&self.up[at.0 as usize]);
        }
        let entry = (at.0 - self.hosts) as usize * self.hosts as usize + to.0 as usize;
        match self.links.get(entry) {
            Some(link) if *link != NONE => std::slice::from_ref(link),
            _ => &[],
        }
    }
}

/// The text of a routing file, where `link` knows the link of each switch and destination.
pub(super) fn write(topology: &Topology, link: impl Fn(NodeId, NodeId) -> Option<LinkId>) -> String {
    let mut text = String::new();
    let mut port_of = vec![0usize; topology.links().len()];
    for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
        for (port, link) in topology.out(switch).iter().enumerate() {
            port_of[link.0 as usize] = port;
        }
        for to in (0..topology.hosts()).map(NodeId) {
            let blank = if to.0 == 0 { "" } else { " " };
            // Writing to a String does not fail.
            let _ = match link(switch, to) {
                Some(link) => write!(text, "{blank}{}", port_of[link.0 as usize]),
                None => write!(text, "{blank}-"),
            };
        }
        text.push('\n');
    }
    text
}
