//! Switches whose inputs pass one packet at a time: what they know of their inputs, and when they allocate.

use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use crate::units::DurationPs;
use typed_index_collections::TiVec;

/// What switches know of their inputs, and when they allocate.
pub(super) struct Switches {
    pub cycle: DurationPs,
    /// For each node the earliest event that is on the way for it, and whether it is in the list of those that have to look.
    pub wakes: Vec<SimTime>,
    pub listed: Vec<bool>,
    pub looking: Vec<NodeId>,
    /// For each link, as the input where it ends: when it may pass the next packet, and the VL at which its round robin begins.
    pub free_at: TiVec<LinkId, SimTime>,
    pub turns: TiVec<LinkId, u32>,
}

impl Switches {
    /// Of a network of so many `nodes` and `links`, which allocate at multiples of `cycle`.
    pub fn new(cycle: DurationPs, nodes: usize, links: usize) -> Self {
        Self {
            cycle,
            wakes: vec![SimTime::MAX; nodes],
            listed: vec![false; nodes],
            looking: Vec::new(),
            free_at: vec![SimTime::ZERO; links].into(),
            turns: vec![0; links].into(),
        }
    }

    /// Whether a switch has to look.
    pub fn look(&self) -> bool {
        !self.looking.is_empty()
    }

    /// Has `switch` look, once all arrivals of the instant are seen.
    pub fn look_at(&mut self, switch: NodeId) {
        let listed = &mut self.listed[switch.0 as usize];
        if !*listed {
            *listed = true;
            self.looking.push(switch);
        }
    }

    /// The first instant from `at` on at which switches allocate.
    pub fn from(&self, at: SimTime) -> SimTime {
        let cycle = self.cycle.ps();
        if cycle == 0 { at } else { SimTime(at.0.div_ceil(cycle).saturating_mul(cycle)) }
    }
}
