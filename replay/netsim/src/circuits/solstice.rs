//! Solstice (Liu and others: *Scheduling Techniques for Hybrid Circuit/Packet Networks*, CoNEXT 2015), without the packet
//! network beside the circuits.

use crate::units::DurationPs;

use super::demand_matrix::DemandMatrix;
use super::matching::Matching;
use super::{MatrixScheduler, Slot};

/// The longest of the shortest slices.
const MAX_SHORTEST: DurationPs = DurationPs::from_ms(100_000);

/// Stuffs the demand and slices it by halves: while there is a matching of demands that are all at least as long as the slice,
/// it is taken for that long; else the slice is halved.
#[derive(Clone, Copy, Debug)]
pub struct Solstice {
    /// The shortest slice: demands are rounded up to multiples of it. Without a packet network for what is left at the end,
    /// shorter slices would cost more than they carry. From 1 ps to 100 s.
    pub shortest: DurationPs,
}

impl MatrixScheduler for Solstice {
    fn slots(&mut self, demand: &DemandMatrix) -> Vec<Slot> {
        let shortest = self.shortest.ps().clamp(1, MAX_SHORTEST.ps());
        let mut left = demand.clone();
        left.round_up(shortest);
        left.stuff();
        let mut slice = shortest;
        while slice <= left.greatest() / 2 {
            slice *= 2;
        }
        let mut matching = Matching::new(left.size());
        let mut slots = Vec::new();
        while !left.is_zero() {
            if matching.complete(&left, slice) {
                let to: Vec<usize> = matching.to.iter().copied().flatten().collect();
                to.iter().enumerate().for_each(|(from, &to)| *left.cell(from, to) -= slice);
                matching.part(&left, slice);
                slots.push(Slot { to, duration: DurationPs(slice) });
            } else {
                // The sums are multiples of the shortest slice: at that there always is a matching.
                slice = (slice / 2).max(shortest);
            }
        }
        slots
    }
}
