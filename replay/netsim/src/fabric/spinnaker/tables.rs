//! Routing tables by the source of a packet, as SpiNNaker's routers have them: several outputs, and straight on where there is no entry.

use super::config::TableEntry;
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::clocked::ports::Ports;
use crate::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Outputs in a list: from which place on, and how many.
#[derive(Clone, Copy)]
pub(super) struct Outputs {
    first: u32,
    count: u32,
}

impl Outputs {
    /// One output by its number.
    pub const fn one(output: u32) -> Self {
        Self { first: output, count: 1 }
    }
}

/// Where packets go on by their source.
pub(super) struct Tables {
    /// All outputs in their order, so that each is a list of its own; then those of the entries.
    lists: Vec<u32>,
    /// By router and source host.
    entries: HashMap<(NodeId, NodeId), Outputs>,
    /// Hosts that the tables name as sources.
    sources: BTreeSet<NodeId>,
    /// By link, the output straight on at its end.
    straight: Vec<Option<u32>>,
}

fn wrong(value: String, allowed: &'static str) -> FabricError {
    FabricError::Value { key: "tables", value, allowed }
}

impl Tables {
    /// The tables of the routers of `topology`.
    ///
    /// # Errors
    /// If an entry names what is not there or stands twice, or packets of a source would come to a router a second time or to one without a way on.
    pub fn new(entries: &[TableEntry], topology: &Topology, ports: &Ports) -> Result<Self, FabricError> {
        let mut tables = Self {
            lists: (0..count(ports.outputs().len())).collect(),
            entries: HashMap::new(),
            sources: BTreeSet::new(),
            straight: Vec::new(),
        };
        if entries.is_empty() {
            return Ok(tables);
        }
        tables.straight = straight(topology, ports);
        let names: BTreeMap<&str, NodeId> =
            (0..topology.nodes()).map(NodeId).map(|node| (topology.name(node), node)).collect();
        let node = |name: &str, is_host: bool| {
            let found = names.get(name).copied().filter(|node| topology.is_host(*node) == is_host);
            let allowed = if is_host { "the name of a host as source" } else { "the name of a router" };
            found.ok_or_else(|| wrong(format!("{name:?}"), allowed))
        };
        for entry in entries {
            let (router, source) = (node(&entry.router, false)?, node(&entry.source, true)?);
            let first = count(tables.lists.len());
            for name in &entry.to {
                let to = |link: &&LinkId| topology.name(topology.link(**link).to) == name;
                let link = topology.out(router).iter().find(to);
                let link = link.ok_or_else(|| {
                    wrong(format!("{name:?} from {:?}", entry.router), "names of what the router has a link to")
                })?;
                let output = ports.output_of(*link);
                if tables.lists[first as usize..].contains(&output) {
                    return Err(wrong(format!("{name:?} from {:?}", entry.router), "each output once"));
                }
                tables.lists.push(output);
            }
            let outputs = Outputs { first, count: count(entry.to.len()) };
            if tables.entries.insert((router, source), outputs).is_some() {
                let value = format!("router {:?}, source {:?}", entry.router, entry.source);
                return Err(wrong(value, "one entry for each router and source"));
            }
            tables.sources.insert(source);
        }
        tables.check(topology, ports)?;
        Ok(tables)
    }

    /// Follows the packets of each source to their ends.
    fn check(&self, topology: &Topology, ports: &Ports) -> Result<(), FabricError> {
        for source in &self.sources {
            let (mut open, mut seen) = (vec![topology.uplink(*source)], BTreeSet::new());
            while let Some(link) = open.pop() {
                let at = topology.link(link).to;
                if topology.is_host(at) {
                    continue;
                }
                let place = || format!("packets of {:?} at {:?}", topology.name(*source), topology.name(at));
                if !seen.insert(at) {
                    return Err(wrong(place(), "each router once: entries that make a tree"));
                }
                match self.of(at, link, *source).map(|outputs| self.list(outputs)) {
                    None | Some([]) => {
                        return Err(wrong(
                            place(),
                            "an entry, or a link straight on, at each router to which packets come",
                        ));
                    }
                    Some(outputs) => open.extend(outputs.iter().map(|output| ports.outputs()[*output as usize])),
                }
            }
        }
        Ok(())
    }

    /// The outputs of a list.
    pub fn list(&self, outputs: Outputs) -> &[u32] {
        &self.lists[outputs.first as usize..][..outputs.count as usize]
    }

    /// Where a packet of `source` goes on that has come to `router` by `link`; `None` if the tables do not say.
    pub fn of(&self, router: NodeId, link: LinkId, source: NodeId) -> Option<Outputs> {
        if !self.sources.contains(&source) {
            return None;
        }
        let entry = self.entries.get(&(router, source)).copied();
        entry.or_else(|| self.straight[usize::from(link)].map(Outputs::one))
    }
}

/// By link, the output at its end that goes on along the same axis in the same direction.
fn straight(topology: &Topology, ports: &Ports) -> Vec<Option<u32>> {
    let links = topology.links().len();
    let Some(lattice) = topology.lattice() else { return vec![None; links] };
    let on = |(link, direction): (usize, Option<(usize, bool)>)| {
        let (axis, forward) = direction?;
        let router = topology.link(LinkId::from(link)).to.0.checked_sub(topology.hosts())?;
        let next = lattice.port(router, axis, forward)?;
        (!topology.link(*next).absent).then(|| ports.output_of(*next))
    };
    lattice.directions(links).into_iter().enumerate().map(on).collect()
}
