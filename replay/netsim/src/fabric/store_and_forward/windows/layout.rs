//! Who simulates what: nodes in parts, one a thread, and in blocks that fit into a cache.

use std::ops::Range;

use crate::count::count;
use crate::fabric::windows::levels;
use crate::topology::{LinkId, NodeId, Topology};

/// Ports of a block at most, unless a single switch has more.
const BLOCK_PORTS: usize = 1_024;

/// Where a node is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodePlace {
    pub part: u16,
    pub block: u16,
}

/// What one part has.
#[derive(Clone, Debug, Default)]
pub(super) struct PartLayout {
    /// Its hosts, by node.
    pub hosts: Range<u32>,
    /// The links that begin at its switches: its ports.
    pub links: Vec<LinkId>,
    /// The ports of each of its blocks. One block more is that of its hosts.
    pub blocks: Vec<Range<u32>>,
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
        for node in switches.map(NodeId) {
            let PartLayout { links, blocks, .. } = &mut self.parts[part];
            let out = topology.out(node);
            let room = blocks.last().map_or(0, |block| BLOCK_PORTS.saturating_sub(block.len()));
            if blocks.is_empty() || (room < out.len() && blocks.len() < usize::from(u16::MAX - 1)) {
                blocks.push(count(links.len())..count(links.len()));
            }
            for link in out {
                self.ports[link.0 as usize] = count(links.len());
                links.push(*link);
            }
            if let Some(block) = blocks.last_mut() {
                block.end = count(links.len());
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
