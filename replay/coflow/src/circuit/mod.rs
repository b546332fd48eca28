//! An optical circuit switch: each port is connected to at most one other in each direction, and a new circuit carries nothing
//! for as long as it is set up.

mod all_stop;
mod rotor;
mod sunflow;

pub use all_stop::all_stop;
pub use netsim::circuits::{Birkhoff, DemandMatrix, MatrixScheduler, MaxWeight, Slot, Solstice};
pub use rotor::Rotor;
pub use sunflow::{Priority, sunflow};

use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};

use crate::demand::{PortId, Workload, time_of};

/// A circuit as it was: set up from `start` to `up`, open for bytes from `up` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// The sending port.
    pub from: PortId,
    /// The receiving port.
    pub to: PortId,
    /// When the ports were taken for it.
    pub start: SimTime,
    /// When it could carry the first byte.
    pub up: SimTime,
    /// When the ports were free again.
    pub end: SimTime,
    /// How long it carried bytes.
    pub busy: DurationPs,
}

/// What a coflow still has to send from one port to another.
#[derive(Clone, Copy, Debug)]
struct Demand {
    from: PortId,
    to: PortId,
    left: DurationPs,
}

/// The demands of each coflow, in the order of its flows; flows of one pair are one demand.
fn demands(workload: &Workload, rate: Rate) -> Vec<Vec<Demand>> {
    let of_coflow = |coflow: &crate::Coflow| {
        let mut demands: Vec<Demand> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        let mut bytes: Vec<f64> = Vec::new();
        for flow in &coflow.flows {
            let place = *places.entry((flow.from, flow.to)).or_insert(demands.len());
            if place == demands.len() {
                demands.push(Demand { from: flow.from, to: flow.to, left: DurationPs::ZERO });
                bytes.push(0.0);
            }
            bytes[place] += flow.bytes;
        }
        for (demand, bytes) in demands.iter_mut().zip(bytes) {
            demand.left = time_of(bytes, rate);
        }
        demands
    };
    workload.coflows().iter().map(of_coflow).collect()
}
