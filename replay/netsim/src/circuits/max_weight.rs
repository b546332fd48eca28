//! The matching with the most demand, again and again.

use crate::units::DurationPs;

use super::demand_matrix::DemandMatrix;
use super::matching::heaviest;
use super::{MatrixScheduler, Slot};

/// Connects the ports so that the sum of what is waiting is greatest, for one slot.
#[derive(Clone, Copy, Debug)]
pub struct MaxWeight {
    /// How long a matching is held.
    pub slot: DurationPs,
}

impl MatrixScheduler for MaxWeight {
    fn slots(&mut self, demand: &DemandMatrix) -> Vec<Slot> {
        vec![Slot { to: heaviest(demand), duration: DurationPs(self.slot.ps().max(1)) }]
    }
}
