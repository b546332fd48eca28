//! Birkhoff and von Neumann: a matrix whose ports all have the same sum is a sum of matchings.

use crate::units::DurationPs;

use super::demand_matrix::DemandMatrix;
use super::matching::Matching;
use super::{MatrixScheduler, Slot};

/// Stuffs the demand and takes one matching after the other, each for as long as its smallest demand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Birkhoff;

impl MatrixScheduler for Birkhoff {
    fn slots(&mut self, demand: &DemandMatrix) -> Vec<Slot> {
        let mut left = demand.clone();
        left.stuff();
        let mut matching = Matching::new(left.size());
        let mut slots = Vec::new();
        while !left.is_zero() && matching.complete(&left, 1) {
            let to: Vec<usize> = matching.to.iter().copied().flatten().collect();
            let duration = to.iter().enumerate().map(|(from, &to)| left.get(from, to)).min().unwrap_or(0);
            to.iter().enumerate().for_each(|(from, &to)| *left.cell(from, to) -= duration);
            matching.part(&left, 1);
            slots.push(Slot { to, duration: DurationPs(duration) });
        }
        slots
    }
}
