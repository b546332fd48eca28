//! The flow of each rank to each rank to which it sends.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use netsim::network::FlowId;

use crate::builder::RankId;

/// Flows of a rank that are gone through one by one: they lie in a few lines of the cache. More are looked up.
const FEW: usize = 32;

/// Flows by the ranks between which they are.
#[derive(Debug)]
pub(crate) struct Connections {
    /// By rank: to whom, and by which flow.
    few: Vec<Vec<(RankId, FlowId)>>,
    many: HashMap<(RankId, RankId), FlowId, RandomState>,
}

impl Connections {
    /// No flows of `ranks` ranks.
    pub fn new(ranks: u32) -> Self {
        Self { few: vec![Vec::new(); ranks as usize], many: HashMap::default() }
    }

    /// The flow from a rank to another, or itself.
    pub fn get(&self, from: RankId, to: RankId) -> Option<FlowId> {
        let few = &self.few[from.0 as usize];
        match few.iter().find(|(rank, _)| *rank == to) {
            Some((_, flow)) => Some(*flow),
            None if few.len() < FEW => None,
            None => self.many.get(&(from, to)).copied(),
        }
    }

    /// There is a flow now where there was none.
    pub fn insert(&mut self, from: RankId, to: RankId, flow: FlowId) {
        let few = &mut self.few[from.0 as usize];
        if few.len() < FEW {
            few.push((to, flow));
        } else {
            self.many.insert((from, to), flow);
        }
    }
}
