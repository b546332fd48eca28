//! Circuits one by one, without stopping the others (Sunflow's rule within a coflow, Huang and others, CoNEXT 2016).

use super::planning::{CircuitScheduler, PlannedCircuit, PlanningInput};
use crate::units::DurationPs;

/// Each pair of ports that are both free gets a circuit for all that waits for it, whoever has waited longest first. No circuit is
/// taken away.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneByOne;

impl CircuitScheduler for OneByOne {
    fn plan(&mut self, input: &PlanningInput) -> Vec<PlannedCircuit> {
        let ports = input.demand.size();
        let mut free_in: Vec<bool> = input.inputs.iter().map(|until| *until <= input.now).collect();
        let mut free_out: Vec<bool> = input.outputs.iter().map(|until| *until <= input.now).collect();
        let pairs = (0..ports).flat_map(|from| (0..ports).map(move |to| (from, to)));
        let mut waiting: Vec<(usize, usize)> = pairs
            .filter(|(from, to)| from != to && free_in[*from] && free_out[*to] && input.demand.get(*from, *to) > 0)
            .collect();
        waiting.sort_by_key(|(from, to)| input.since[from * ports + to]);
        let mut circuits = Vec::new();
        for (from, to) in waiting {
            if free_in[from] && free_out[to] {
                (free_in[from], free_out[to]) = (false, false);
                let end = input.now + input.set_up + DurationPs(input.demand.get(from, to));
                circuits.push(PlannedCircuit { from, to, begin: input.now, end });
            }
        }
        circuits
    }

    fn is_one_by_one(&self) -> bool {
        true
    }
}
