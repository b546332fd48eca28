//! Shortest ways over the circuits of a slice.

use super::schedule::{Rack, Schedule};
use crate::kernel::random::{below, draw};
use std::collections::VecDeque;

const FAR: u32 = u32::MAX;
/// What draws are for.
const CHOICE: u64 = 1 << 33;

/// The distances between racks in each slice of a cycle, each made when it is first asked for.
pub(super) struct Paths {
    racks: u32,
    seed: u64,
    slices: Vec<Option<Vec<u32>>>,
}

impl Paths {
    /// For `racks` racks and a schedule that comes again after `cycle` slices.
    pub fn new(racks: u32, cycle: u64, seed: u64) -> Self {
        Self { racks, seed, slices: vec![None; usize::try_from(cycle).unwrap_or(1)] }
    }

    /// The switch by which a packet with the number `key` goes on from `from` to `to` in slice `slice`: one on a shortest way, drawn
    /// where there are several; none where no circuits lead there.
    pub fn next(&mut self, schedule: &Schedule, slice: u64, from: Rack, to: Rack, key: u64) -> Option<u32> {
        let racks = self.racks as usize;
        let index = usize::try_from(slice % self.slices.len() as u64).unwrap_or(0);
        let distances = self.slices[index].get_or_insert_with(|| distances(schedule, slice, racks));
        let distance = |rack: Rack| distances[to as usize * racks + rack as usize];
        let here = distance(from);
        if here == FAR {
            return None;
        }
        let nearer = || {
            let circuits = schedule.of_slice(slice).map(|(switch, matching)| (switch, matching[from as usize]));
            circuits.filter(|(_, other)| *other != from && distance(*other) < here).map(|(switch, _)| switch)
        };
        let ways = nearer().count() as u64;
        let chosen = below(draw(self.seed, CHOICE + u64::from(from), key), ways.max(1));
        nearer().nth(usize::try_from(chosen).unwrap_or(0))
    }
}

/// Circuits from each rack (inner) to each rack (outer) in slice `slice`.
fn distances(schedule: &Schedule, slice: u64, racks: usize) -> Vec<u32> {
    let mut all = vec![FAR; racks * racks];
    let circuits: Vec<&[Rack]> = schedule.of_slice(slice).map(|(_, matching)| matching).collect();
    let mut open = VecDeque::new();
    for to in 0..racks {
        let distance = &mut all[to * racks..(to + 1) * racks];
        distance[to] = 0;
        open.push_back(to);
        while let Some(rack) = open.pop_front() {
            for matching in &circuits {
                let other = matching[rack] as usize;
                if distance[other] == FAR {
                    distance[other] = distance[rack] + 1;
                    open.push_back(other);
                }
            }
        }
    }
    all
}
