//! All ports in turn, whatever there is to be sent (RotorNet, Mellette and others, SIGCOMM 2017), without detours.

use netsim::circuits::{DemandMatrix, MatrixScheduler, Slot};
use netsim::units::DurationPs;

/// Connects each port with all others one after the other, and with itself where a port has something for itself.
#[derive(Clone, Copy, Debug)]
pub struct Rotor {
    /// How long a matching is held.
    pub slot: DurationPs,
}

impl MatrixScheduler for Rotor {
    fn slots(&mut self, demand: &DemandMatrix) -> Vec<Slot> {
        let size = demand.size();
        let has_own = (0..size).any(|port| demand.get(port, port) > 0);
        let shifts = usize::from(!has_own)..size;
        let slot = |shift| Slot {
            to: (0..size).map(|from| (from + shift) % size).collect(),
            duration: DurationPs(self.slot.ps().max(1)),
        };
        shifts.map(slot).collect()
    }

    fn is_oblivious(&self) -> bool {
        true
    }
}
