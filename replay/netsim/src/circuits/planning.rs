//! The seam between a switch of circuits and who decides about its circuits.

use crate::time::SimTime;
use crate::units::DurationPs;

use super::DemandMatrix;

/// What a scheduler of circuits knows when it plans.
#[derive(Clone, Copy, Debug)]
pub struct PlanningInput<'a> {
    /// When the circuits that it plans may begin.
    pub now: SimTime,
    /// For how long each pair of ports would have to be connected.
    pub demand: &'a DemandMatrix,
    /// By sender and receiver, row by row: since when something waits, or when the last circuit for it ended.
    pub since: &'a [SimTime],
    /// Until when each input port, and each output port, is taken.
    pub inputs: &'a [SimTime],
    /// As `inputs`.
    pub outputs: &'a [SimTime],
    /// What a circuit carries nothing in: its set-up, and what is kept clear at its ends.
    pub set_up: DurationPs,
}

/// A circuit that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCircuit {
    /// The input port.
    pub from: usize,
    /// The output port.
    pub to: usize,
    /// When its set-up begins.
    pub begin: SimTime,
    /// When its ports are free again.
    pub end: SimTime,
}

/// Decides which circuits there are, from what waits.
pub trait CircuitScheduler {
    /// Circuits from `input.now` on, in the order of their begins for each input port. None is longer than an hour, and no port is
    /// taken twice at a time.
    fn plan(&mut self, input: &PlanningInput) -> Vec<PlannedCircuit>;

    /// Whether it plans again at the end of each circuit, for the ports that are free then; else when all circuits are over.
    fn is_one_by_one(&self) -> bool {
        false
    }
}
