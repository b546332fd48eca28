//! A switch that stops as a whole for each slot of a [`MatrixScheduler`].

use super::planning::{CircuitScheduler, PlannedCircuit, PlanningInput};
use super::{DemandMatrix, MatrixScheduler, Slot};
use crate::units::DurationPs;

/// Lets slots follow each other, each with a set-up before it. A slot ends when its last demand does, and does not take place without
/// any.
#[derive(Clone, Copy, Debug)]
pub struct AllStop<M>(pub M);

impl<M: MatrixScheduler> CircuitScheduler for AllStop<M> {
    fn plan(&mut self, input: &PlanningInput) -> Vec<PlannedCircuit> {
        let mut left = input.demand.clone();
        let mut begin = input.now;
        let mut circuits = Vec::new();
        for Slot { to, duration } in self.0.slots(input.demand) {
            let lasts = duration.ps().min(longest(&left, &to));
            if lasts == 0 {
                continue;
            }
            let end = begin + input.set_up + DurationPs(lasts);
            for (from, to) in to.into_iter().enumerate() {
                let cell = left.cell(from, to);
                *cell = cell.saturating_sub(lasts);
                if from != to {
                    circuits.push(PlannedCircuit { from, to, begin, end });
                }
            }
            begin = end;
        }
        circuits
    }
}

/// The greatest demand of the pairs of a slot.
fn longest(left: &DemandMatrix, to: &[usize]) -> u64 {
    to.iter().enumerate().map(|(from, &to)| left.get(from, to)).max().unwrap_or(0)
}
