//! Where packets go on, to be looked up in place of reckoned, where that depends on the switch and the destination alone.

use crate::routing::Routes;
use crate::topology::{NodeId, Topology};

/// More entries are not kept: they would push what else is needed out of the cache.
const MAX_ENTRIES: usize = 1 << 17;

/// Outputs of a switch that lie next to each other.
#[derive(Clone, Copy)]
pub(in crate::fabric) struct Run {
    /// The bit of the first one.
    pub first: u8,
    pub count: u8,
}

/// By switch, then destination; nothing where it is not known.
#[derive(Default)]
pub(in crate::fabric) struct Ways {
    hosts: usize,
    runs: Vec<Run>,
}

impl Ways {
    /// Those of `routes`, if all of them are runs of class 0 that look at no input.
    pub fn new(routes: &Routes, topology: &Topology) -> Self {
        let hosts = topology.hosts();
        let entries = hosts as usize * topology.switches() as usize;
        let run = |at: NodeId, to: NodeId| {
            let outputs = topology.out(at);
            let next = routes.next(at, *outputs.first()?, to);
            let first = outputs.binary_search(next.links.first()?).ok()?;
            let is_run = outputs[first..].starts_with(next.links) && next.class == 0 && !next.enters_ring;
            let [first, count] = [first, next.links.len()].map(|number| u8::try_from(number).ok());
            is_run.then_some(Run { first: first?, count: count? })
        };
        let switches = hosts..topology.nodes();
        let pairs = switches.flat_map(|at| (0..hosts).map(move |to| (NodeId(at), NodeId(to))));
        let is_known = entries <= MAX_ENTRIES && routes.ignores_inputs();
        let runs = if is_known { pairs.map(|(at, to)| run(at, to)).collect() } else { None };
        Self { hosts: hosts as usize, runs: runs.unwrap_or_default() }
    }

    /// Nothing is known, to so many hosts.
    pub const fn none(hosts: u32) -> Self {
        Self { hosts: hosts as usize, runs: Vec::new() }
    }

    /// By switch, then destination, of which there are [`Self::hosts`]; empty where they are not known.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub const fn hosts(&self) -> usize {
        self.hosts
    }

    /// Where packets to `to` go on at `switch`.
    #[inline]
    pub fn run(&self, switch: u32, to: NodeId) -> Option<Run> {
        self.runs.get(switch as usize * self.hosts + to.0 as usize).copied()
    }
}
