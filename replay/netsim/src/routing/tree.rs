//! Ways through trees, reckoned from the numbers of switches and hosts.

use std::ops::Range;

use crate::kernel::Divisor;
use crate::topology::{LinkId, NodeId, Structure, Topology, Tree};

/// What is the same for all nodes of a level.
#[derive(Clone, Copy, Debug)]
struct LevelForm {
    /// M(level): hosts below a node.
    below: u32,
    /// M(level - 1): hosts below a child.
    below_child: Divisor,
    /// Cables to each child.
    cables: u32,
    /// W(level).
    copies: u32,
    /// Parents of a node, and cables to each.
    parents: u32,
    cables_up: u32,
}

/// A switch.
#[derive(Clone, Copy, Debug)]
struct Switch {
    /// The first host below it.
    first_host: u32,
    /// From 0 on.
    level: u8,
    /// Where its links begin, where those that lead up begin, and where they end.
    begin: u32,
    up: u32,
    end: u32,
}

/// All shortest ways of a tree: up to a common root, then down.
#[derive(Clone, Debug)]
pub(super) struct TreeHops {
    hosts: u32,
    levels: Vec<LevelForm>,
    switches: Vec<Switch>,
    out: Vec<LinkId>,
}

impl TreeHops {
    /// The ways of `topology`, if it is a tree.
    pub(super) fn of(topology: &Topology) -> Option<Self> {
        let Structure::Tree(tree) = topology.structure() else { return None };
        let ports = topology.ports();
        let mut switches = Vec::with_capacity(topology.switches() as usize);
        let mut node = topology.hosts() as usize;
        for level in 1..=tree.height() {
            let down = tree.children(level) * tree.cables(level - 1);
            for index in 0..tree.nodes(level) {
                let begin = ports.begin(node);
                let first_host = index / tree.copies(level) * tree.below(level);
                let level = u8::try_from(level - 1).unwrap_or(u8::MAX);
                switches.push(Switch { first_host, level, begin, up: begin + down, end: ports.begin(node + 1) });
                node += 1;
            }
        }
        let levels = (1..=tree.height()).map(|level| form(tree, level)).collect();
        Some(Self { hosts: topology.hosts(), levels, switches, out: ports.items().to_vec() })
    }

    /// The links by which a packet for host `to` may go on that stands at `at`.
    #[inline]
    pub(super) fn next(&self, at: NodeId, to: NodeId) -> &[LinkId] {
        if at.0 < self.hosts {
            // A host has one link, so theirs are in their order.
            return std::slice::from_ref(&self.out[at.0 as usize]);
        }
        let positions = self.positions(at, to);
        &self.out[positions.start as usize..positions.end as usize]
    }

    /// Where these links lie among all links by the nodes at which they begin; `at` is a switch.
    #[inline]
    pub(super) fn positions(&self, at: NodeId, to: NodeId) -> Range<u32> {
        let switch = &self.switches[(at.0 - self.hosts) as usize];
        let level = &self.levels[switch.level as usize];
        let below = to.0.wrapping_sub(switch.first_host);
        if below < level.below {
            let child = level.below_child.quotient(below.into()) as u32;
            let begin = switch.begin.wrapping_add(child.wrapping_mul(level.cables));
            return begin..begin.wrapping_add(level.cables);
        }
        switch.up..switch.end
    }

    /// Which of the links that lead towards `to` at switch `at` is for `host`, whose packets take one way: by the digit
    /// host / W(level), one parent after the other, then the next cable to each (Zahavi's order, which lets all shifts pass).
    pub(super) fn port(&self, at: NodeId, to: NodeId, host: NodeId) -> usize {
        let Some(switch) = at.0.checked_sub(self.hosts).map(|switch| &self.switches[switch as usize]) else { return 0 };
        let level = &self.levels[switch.level as usize];
        let digit = host.0 / level.copies;
        let port = if to.0.wrapping_sub(switch.first_host) < level.below {
            digit % level.cables
        } else {
            digit % level.parents * level.cables_up + digit / level.parents % level.cables_up
        };
        port as usize
    }
}

fn form(tree: &Tree, level: usize) -> LevelForm {
    LevelForm {
        below: tree.below(level),
        below_child: Divisor::new(tree.below(level - 1).into()),
        cables: tree.cables(level - 1),
        copies: tree.copies(level),
        parents: tree.parents(level),
        cables_up: tree.cables(level),
    }
}
