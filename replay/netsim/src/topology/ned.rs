//! A topology in NED, the language of OMNeT++ and OMNEST.

use super::{Link, LinkId, NodeId, Topology, TopologyError};
use std::collections::BTreeSet;
use std::fmt;

/// A topology as a NED file: a network of hosts and switches, whose gates are numbered as ports are in routing files.
#[derive(Debug)]
pub struct Ned<'t>(&'t Topology);

impl<'t> Ned<'t> {
    /// That of `topology`.
    ///
    /// # Errors
    /// If cables lead one way only: their ends have no port for the way back.
    pub fn of(topology: &'t Topology) -> Result<Self, TopologyError> {
        if topology.links().iter().any(|link| link.absent) { Err(TopologyError::OneWay) } else { Ok(Self(topology)) }
    }
}

/// What names may not be.
const KEYWORDS: [&str; 22] = [
    "allowunconnected",
    "bool",
    "channel",
    "connections",
    "const",
    "default",
    "double",
    "extends",
    "for",
    "gates",
    "if",
    "import",
    "int",
    "like",
    "module",
    "network",
    "package",
    "parameters",
    "simple",
    "string",
    "submodules",
    "types",
];

/// For each node a name of letters, digits and `_` that no other one has.
fn names(topology: &Topology) -> Vec<String> {
    let mut taken: BTreeSet<String> = KEYWORDS.into_iter().map(str::to_owned).collect();
    let name = |node: u32| {
        let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = topology.name(NodeId(node)).chars().map(allowed).collect();
        if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
            name.insert(0, '_');
        }
        while !taken.insert(name.clone()) {
            name += &format!("_{node}");
        }
        name
    };
    (0..topology.nodes()).map(name).collect()
}

/// The channel of a cable: its delay, and its rate if it has one.
fn channel(link: &Link) -> String {
    match link.rate.bps() {
        Some(bps) => format!("ned.DatarateChannel {{ delay = {}ps; datarate = {bps}bps; }}", link.delay_ps),
        None => format!("ned.DelayChannel {{ delay = {}ps; }}", link.delay_ps),
    }
}

impl fmt::Display for Ned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = self.0;
        let names = names(topology);
        writeln!(f, "// {} hosts and {} switches.\n", topology.hosts(), topology.switches())?;
        writeln!(f, "simple Host\n{{\n    gates:\n        inout port[];\n}}\n")?;
        writeln!(f, "simple Switch\n{{\n    gates:\n        inout port[];\n}}\n")?;
        writeln!(f, "network Topology\n{{\n    submodules:")?;
        for (node, name) in (0..topology.nodes()).zip(&names) {
            let kind = if node < topology.hosts() { "Host" } else { "Switch" };
            let ports = topology.out(NodeId(node)).len();
            writeln!(f, "        {name}: {kind} {{ gates: port[{ports}]; }}")?;
        }
        writeln!(f, "    connections:")?;
        let end = |node: NodeId, link: usize| {
            let wanted = LinkId(crate::count::count(link));
            let port = topology.out(node).iter().position(|out| *out == wanted).unwrap_or(0);
            (&names[node.0 as usize], port)
        };
        for (index, [link, _]) in topology.links().cables().enumerate() {
            let ((from, port), (to, other)) = (end(link.from, 2 * index), end(link.to, 2 * index + 1));
            let channel = channel(&link);
            writeln!(f, "        {from}.port[{port}] <--> {channel} <--> {to}.port[{other}];")?;
        }
        writeln!(f, "}}")
    }
}
