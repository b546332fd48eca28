//! Who simulates what: nodes in parts, one a thread, and in blocks that fit into a cache.

use std::ops::Range;

use crate::count::count;
use crate::fabric::windows::levels;
use crate::topology::{LinkId, NodeId, Topology};

/// Ports of a block at most, unless a single switch has more.
const BLOCK_PORTS: usize = 2_048;

/// Blocks of a part at most, but for those that the last levels begin.
const MAX_BLOCKS: usize = 1 << 15;

/// Where a node is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodePlace {
    pub part: u16,
    pub block: u16,
}

/// Switches next to each other that fit into a cache together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its ports, by their numbers in the part.
    pub ports: Range<u32>,
    /// Where its first port lies among all links by the nodes at which they begin ([`Topology::ports`]); the others follow.
    pub position: u32,
}

/// What one part has.
#[derive(Clone, Debug, Default)]
pub(super) struct PartLayout {
    /// Its hosts, by node.
    pub hosts: Range<u32>,
    /// The links that begin at its switches: its ports.
    pub links: Vec<LinkId>,
    /// One block more is that of its hosts.
    pub blocks: Vec<Block>,
}

/// All nodes in their parts.
pub(super) struct Layout {
    pub places: Vec<NodePlace>,
    /// For each link that begins at a switch, its number among the ports of its part.
    pub ports: Vec<u32>,
    pub parts: Vec<PartLayout>,
}

impl Layout {
    /// `parts` parts of `topology`, fewer if it has fewer hosts or switches.
    pub fn new(topology: &Topology, parts: u16) -> Self {
        let parts = u32::from(parts).min(topology.hosts()).min(topology.switches()).max(1);
        let mut layout = Self {
            places: vec![NodePlace::default(); topology.nodes() as usize],
            ports: vec![u32::MAX; topology.links().len()],
            parts: vec![PartLayout::default(); parts as usize],
        };
        let groups = levels(topology);
        for part in 0..parts {
            let share = |group: &Range<u32>| {
                let at = |part: u32| {
                    let nodes = u64::from(part) * u64::from(group.end - group.start) / u64::from(parts);
                    group.start + u32::try_from(nodes).unwrap_or(0)
                };
                at(part)..at(part + 1)
            };
            layout.parts[part as usize].hosts = share(&(0..topology.hosts()));
            for group in &groups {
                layout.add_switches(topology, part as usize, share(group));
            }
            layout.end_part(part as usize);
        }
        layout
    }

    fn add_switches(&mut self, topology: &Topology, part: usize, switches: Range<u32>) {
        let first = switches.start;
        for node in switches.map(NodeId) {
            let PartLayout { links, blocks, .. } = &mut self.parts[part];
            let out = topology.out(node);
            let room = blocks.last().map_or(0, |block| BLOCK_PORTS.saturating_sub(block.ports.len()));
            // Switches that do not follow each other in the topology have no block in common.
            if node.0 == first || (room < out.len() && blocks.len() < MAX_BLOCKS) {
                let port = count(links.len());
                blocks.push(Block { ports: port..port, position: topology.ports().begin(node.0 as usize) });
            }
            for link in out {
                self.ports[link.0 as usize] = count(links.len());
                links.push(*link);
            }
            if let Some(block) = blocks.last_mut() {
                block.ports.end = count(links.len());
            }
            self.places[node.0 as usize] = place(part, blocks.len() - 1);
        }
    }

    /// The hosts of a part have the block behind its switches'.
    fn end_part(&mut self, part: usize) {
        let PartLayout { hosts, blocks, .. } = &self.parts[part];
        self.places[hosts.start as usize..hosts.end as usize].fill(place(part, blocks.len()));
    }
}

fn place(part: usize, block: usize) -> NodePlace {
    let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    NodePlace { part: number(part), block: number(block) }
}
