//! Schedulers of circuits by demand: matrices of what waits to slots of matchings.
//!
//! The fabrics `rotor` and `lightness` have a [`CircuitScheduler`] decide about their circuits; the ports of coflows (crate `coflow`) take slots from a
//! [`MatrixScheduler`].

mod all_stop;
mod birkhoff;
mod control;
mod demand_matrix;
mod matching;
mod max_weight;
mod one_by_one;
mod planning;
mod solstice;

pub use all_stop::AllStop;
pub use birkhoff::Birkhoff;
pub(crate) use control::{ByDemand, Control, ControlTimes};
pub use demand_matrix::DemandMatrix;
pub use max_weight::MaxWeight;
pub use one_by_one::OneByOne;
pub use planning::{CircuitScheduler, PlannedCircuit, PlanningInput};
pub use solstice::Solstice;

use crate::units::DurationPs;

/// How the ports are connected for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// To which port each sends: a permutation.
    pub to: Vec<usize>,
    /// How long, without the set-up before it.
    pub duration: DurationPs,
}

/// Turns demand into slots.
pub trait MatrixScheduler {
    /// Slots for a demand that is not zero, at least one of which carries some of it.
    fn slots(&mut self, demand: &DemandMatrix) -> Vec<Slot>;

    /// Whether slots take place and last as long as they say, whatever there is to be sent.
    fn is_oblivious(&self) -> bool {
        false
    }
}
