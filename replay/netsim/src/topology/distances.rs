//! How many switches lie between hosts at the least.

use super::{NodeId, Topology};
use std::collections::VecDeque;

/// Switches with hosts, at most: what is between any two of them takes 32 MiB then.
const MAX_SWITCHES: usize = 4_096;

/// Switches on the shortest way from any host to any other, along links in their direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDistances {
    /// By host: the number of its switch among those with hosts.
    switch_of: Vec<u32>,
    /// By these numbers, from and to: switches on the way, both ends included; 0 where there is none.
    switches: Vec<u16>,
    edges: usize,
}

impl HostDistances {
    /// Looks for the shortest ways of `topology`.
    ///
    /// # Errors
    /// How many switches have hosts, if those are too many (4,096).
    pub fn new(topology: &Topology) -> Result<Self, usize> {
        let mut number = vec![u32::MAX; topology.nodes() as usize];
        let mut edges: Vec<NodeId> = Vec::new();
        let mut switch_of = Vec::new();
        for host in 0..topology.hosts() {
            let switch = topology.switch_of(topology.host_node(host));
            let known = &mut number[switch.0 as usize];
            if *known == u32::MAX {
                *known = crate::count::count(edges.len());
                edges.push(switch);
            }
            switch_of.push(*known);
        }
        if edges.len() > MAX_SWITCHES {
            return Err(edges.len());
        }
        let mut switches = vec![0; edges.len() * edges.len()];
        for (from, row) in edges.iter().zip(switches.chunks_mut(edges.len().max(1))) {
            from_switch(topology, *from, &number, row);
        }
        Ok(Self { switch_of, switches, edges: edges.len() })
    }

    /// Switches on the shortest way from one host to another (or to itself, by its switch and back).
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> u64 {
        let number = |host: u32| self.switch_of[host as usize] as usize;
        self.switches[number(from) * self.edges + number(to)].into()
    }
}

/// Fills `row` with the switches on the way from `start`; `number` are those that switches with hosts have there.
fn from_switch(topology: &Topology, start: NodeId, number: &[u32], row: &mut [u16]) {
    let mut seen = vec![0u16; number.len()];
    seen[start.0 as usize] = 1;
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        let here = seen[at.0 as usize];
        if let Some(known) = row.get_mut(number[at.0 as usize] as usize) {
            *known = here;
        }
        for link in topology.out(at) {
            let to = topology.link(*link).to;
            if !topology.is_host(to) && seen[to.0 as usize] == 0 {
                seen[to.0 as usize] = here.saturating_add(1);
                next.push_back(to);
            }
        }
    }
}
