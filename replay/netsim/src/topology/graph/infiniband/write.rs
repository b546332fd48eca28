//! Graphs as files of InfiniBand's tools. LIDs are given from 1 on, hosts first; GUIDs are made up from nodes' numbers; the ports of
//! a node are its cables, from 1 on.

use super::super::super::TopologyError;
use super::super::subnet::{MAX_LID, MAX_PORT};
use super::super::text::{Graph, NO_ROUTE};
use std::fmt::Write as _;

/// The GUID of the first host; each has two, for itself and for its port.
const HOST_GUID: u64 = 0x10_0000;
/// The GUID of the first switch; there are fewer LIDs than numbers in between.
const SWITCH_GUID: u64 = 0x20_0000;

/// A graph with the numbers that InfiniBand gives its nodes.
struct Numbered<'g> {
    graph: &'g Graph,
    hosts: usize,
    /// By node and port: the node and port at the other end.
    ports: Vec<Vec<(usize, usize)>>,
    /// The port where each direction of each edge begins; that of the first of parallel cables.
    port_of: Vec<usize>,
}

impl<'g> Numbered<'g> {
    fn new(graph: &'g Graph, forbidden: &[char]) -> Result<Self, TopologyError> {
        let wrong = |name: &str, reason: String| Err(TopologyError::Name { name: name.to_owned(), reason });
        if graph.nodes.len() > usize::from(MAX_LID) {
            let nodes = graph.nodes.len();
            return wrong("LIDs", format!("{nodes} nodes need a LID each, but there are {MAX_LID} for unicast"));
        }
        for (name, _) in &graph.nodes {
            let bad = |letter: char| letter.is_control() || forbidden.contains(&letter);
            if name.trim().is_empty() || name.trim() != name || name.chars().any(bad) {
                let signs: String = forbidden.iter().collect();
                let reason =
                    format!("a description has no signs of control, none of {signs} and no blanks at its ends");
                return wrong(name, reason);
            }
        }
        let mut ports = vec![Vec::new(); graph.nodes.len()];
        let mut port_of = Vec::with_capacity(2 * graph.edges.len());
        for edge in &graph.edges {
            let (a, b) = edge.ends;
            port_of.extend([ports[a].len() + 1, ports[b].len() + 1]);
            for _ in 0..edge.cables {
                for node in [a, b] {
                    if ports[node].len() >= usize::from(MAX_PORT) {
                        let reason = format!("it has more cables than the {MAX_PORT} ports of a device of InfiniBand");
                        return wrong(&graph.nodes[node].0, reason);
                    }
                }
                let (at_a, at_b) = (ports[a].len() + 1, ports[b].len() + 1);
                ports[a].push((b, at_b));
                ports[b].push((a, at_a));
            }
        }
        Ok(Self { graph, hosts: graph.hosts(), ports, port_of })
    }

    fn name(&self, node: usize) -> &str {
        &self.graph.nodes[node].0
    }

    const fn is_host(&self, node: usize) -> bool {
        node < self.hosts
    }

    const fn guid(&self, node: usize) -> u64 {
        if self.is_host(node) { HOST_GUID + 2 * node as u64 } else { SWITCH_GUID + (node - self.hosts) as u64 }
    }

    /// Of a switch, its own.
    const fn port_guid(&self, node: usize) -> u64 {
        self.guid(node) + self.is_host(node) as u64
    }

    const fn lid(node: usize) -> usize {
        node + 1
    }

    /// The name by which files refer to a node.
    fn id(&self, node: usize) -> String {
        let kind = if self.is_host(node) { 'H' } else { 'S' };
        format!("{kind}-{:016x}", self.guid(node))
    }

    fn switches(&self) -> std::ops::Range<usize> {
        self.hosts..self.graph.nodes.len()
    }

    /// The port of `switch` to each host, in order of their LIDs.
    fn routes(&self, switch: usize) -> impl Iterator<Item = (usize, Option<usize>)> {
        let row = self.graph.routes.chunks(self.hosts.max(1)).nth(switch - self.hosts).unwrap_or_default();
        let port = |link: &u32| self.port_of.get(*link as usize).copied().filter(|_| *link != NO_ROUTE);
        row.iter().enumerate().map(move |(host, link)| (host, port(link)))
    }
}

/// As `ibnetdiscover` prints a topology.
pub(in super::super) fn discover(graph: &Graph) -> Result<String, TopologyError> {
    let numbered = Numbered::new(graph, &['"'])?;
    let mut text = String::new();
    // Writing to a String does not fail.
    for node in numbered.switches().chain(0..numbered.hosts) {
        let (guid, id, name, lid) = (numbered.guid(node), numbered.id(node), numbered.name(node), Numbered::lid(node));
        let ports = &numbered.ports[node];
        let _ = writeln!(text, "vendid=0x0\ndevid=0x0\nsysimgguid=0x{guid:x}");
        let _ = if numbered.is_host(node) {
            writeln!(text, "caguid=0x{guid:x}\nCa\t{} \"{id}\"\t\t# \"{name}\"", ports.len())
        } else {
            writeln!(text, "switchguid=0x{guid:x}({guid:x})").and_then(|()| {
                writeln!(text, "Switch\t{} \"{id}\"\t\t# \"{name}\" base port 0 lid {lid} lmc 0", ports.len())
            })
        };
        for (index, (other, at)) in ports.iter().enumerate() {
            let port = index + 1;
            let (to, lid_to, name_to) = (numbered.id(*other), Numbered::lid(*other), numbered.name(*other));
            let _ = if numbered.is_host(node) {
                let own = numbered.port_guid(node);
                writeln!(text, "[{port}]({own:x}) \t\"{to}\"[{at}]\t\t# lid {lid} lmc 0 \"{name_to}\" lid {lid_to} ")
            } else if numbered.is_host(*other) {
                let guid = numbered.port_guid(*other);
                writeln!(text, "[{port}]\t\"{to}\"[{at}]({guid:x}) \t\t# \"{name_to}\" lid {lid_to} ")
            } else {
                writeln!(text, "[{port}]\t\"{to}\"[{at}]\t\t# \"{name_to}\" lid {lid_to} ")
            };
        }
        text.push('\n');
    }
    Ok(text)
}

/// As ibdiagnet writes a topology (`ibdiagnet.lst`). Width and speed, which the format demands, are always the same.
pub(in super::super) fn lst(graph: &Graph) -> Result<String, TopologyError> {
    let numbered = Numbered::new(graph, &['{', '}'])?;
    let end = |node: usize, port: usize| {
        let kind = if numbered.is_host(node) { "CA" } else { "SW" };
        let (guid, port_guid, lid) = (numbered.guid(node), numbered.port_guid(node), Numbered::lid(node));
        format!(
            "{{ {kind} Ports:{:02x} SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{port_guid:016x} VenID:00000000 \
             DevID:0000 Rev:00000000 {{{}}} LID:{lid:04x} PN:{port:02x} }}",
            numbered.ports[node].len(),
            numbered.name(node)
        )
    };
    let mut text = String::new();
    for node in 0..graph.nodes.len() {
        for (index, (other, at)) in numbered.ports[node].iter().enumerate() {
            let _ = writeln!(text, "{} {} PHY=4x LOG=ACT SPD=10", end(node, index + 1), end(*other, *at));
        }
    }
    Ok(text)
}

/// As OpenSM dumps forwarding tables (`opensm-lfts.dump`). Of switches, each knows only itself.
pub(in super::super) fn lfts(graph: &Graph) -> Result<String, TopologyError> {
    let numbered = Numbered::new(graph, &['\''])?;
    let mut text = String::new();
    for switch in numbered.switches() {
        let (guid, lid, name) = (numbered.guid(switch), Numbered::lid(switch), numbered.name(switch));
        let most = graph.nodes.len();
        let _ = writeln!(text, "Unicast lids [0-{most}] of switch Lid {lid} guid 0x{guid:016x} ('{name}'):");
        for (host, port) in numbered.routes(switch) {
            if let Some(port) = port {
                let (to, guid, name) = (Numbered::lid(host), numbered.port_guid(host), numbered.name(host));
                let _ = writeln!(text, "0x{to:04x} {port:03} # Channel Adapter portguid 0x{guid:016x}: '{name}'");
            }
        }
        let _ = writeln!(text, "0x{lid:04x} 000 # Switch portguid 0x{guid:016x}: '{name}'\n{most} lids dumped\n");
    }
    Ok(text)
}

/// As ibdiagnet writes forwarding tables (`ibdiagnet.fdbs`). Hops are not reckoned.
pub(in super::super) fn fdbs(graph: &Graph) -> Result<String, TopologyError> {
    let numbered = Numbered::new(graph, &[])?;
    let mut text = String::new();
    for switch in numbered.switches() {
        let _ = writeln!(text, "osm_ucast_mgr_dump_ucast_routes: Switch 0x{:016x}", numbered.guid(switch));
        text.push_str("LID    : Port : Hops : Optimal\n");
        for (host, port) in numbered.routes(switch) {
            let to = Numbered::lid(host);
            let _ = match port {
                Some(port) => writeln!(text, "0x{to:04x} : {port:03}  : 00   : yes"),
                None => writeln!(text, "0x{to:04x} : UNREACHABLE"),
            };
        }
        text.push('\n');
    }
    Ok(text)
}
