//! Routing records: how many steps along each axis of a lattice lead from one router to another on a shortest way.
//!
//! Of several, a packet follows the least by the order of its pattern (a bit for each axis: its steps count negative): the one
//! with the least steps along the first axis, of these the least along the second, and so on. That order is the same
//! wherever the packet stands. So what is left of the way is, at the next router, the least there, and the packet needs
//! to carry nothing: dimension order holds from the first router to the last.

use crate::topology::{Lattice, MAX_ENTRIES};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Axes at most.
pub(super) const MAX_AXES: usize = 16;

/// Steps along each axis, negative ones back; those behind the lattice's axes are 0.
pub(super) type Record = [i32; MAX_AXES];

/// All shortest records between the routers of a lattice.
#[derive(Clone, Debug)]
pub(super) struct Records {
    axes: usize,
    /// Whether the box has wraps that shift nothing: then each dimension can be reckoned by itself.
    is_straight: bool,
    /// Of a box with wraps, by the router that lies from the first one as the destination from the source; else empty, for there the
    /// record is the difference.
    begins: Vec<u32>,
    steps: Vec<i32>,
    /// By the same: the directions of all records, bit 2 x axis for forward, the next one for back.
    directions: Vec<u32>,
}

impl Records {
    /// Those of `lattice`; else how many entries there would be.
    pub(super) fn of(lattice: &Lattice) -> Result<Self, u64> {
        let axes = lattice.axes();
        let is_straight = lattice.wraps && lattice.twist.iter().flatten().all(|shift| *shift == 0);
        let mut records = Self { axes, is_straight, begins: vec![0], steps: Vec::new(), directions: Vec::new() };
        if !lattice.wraps {
            return Ok(records);
        }
        let (all, entries) = by_distance(lattice);
        if entries > MAX_ENTRIES {
            return Err(entries);
        }
        for here in all {
            let mut directions = 0;
            for record in &here {
                directions |= directions_of(record);
                records.steps.extend(&record[..axes]);
            }
            records.directions.push(directions);
            records.begins.push(crate::count::count(records.steps.len()));
        }
        Ok(records)
    }

    /// The record from `from` to `to` that a packet of `pattern` follows.
    pub(super) fn record(&self, lattice: &Lattice, from: &[i32], to: &[i32], pattern: u32) -> Record {
        let Some(difference) = self.difference(lattice, from, to) else {
            let mut record = [0; MAX_AXES];
            for (steps, (from, to)) in record.iter_mut().zip(from.iter().zip(to)) {
                *steps = to - from;
            }
            return record;
        };
        let all = &self.steps[self.begins[difference] as usize..self.begins[difference + 1] as usize];
        let mut record = [0; MAX_AXES];
        // Mostly there is one.
        if all.len() == self.axes {
            record[..self.axes].copy_from_slice(all);
        } else if let Some(least) = all.chunks(self.axes).min_by(|one, other| compare(one, other, pattern)) {
            record[..self.axes].copy_from_slice(least);
        }
        record
    }

    /// The directions that lead nearer: bit 2 x axis for forward, the next one for back.
    pub(super) fn nearer(&self, lattice: &Lattice, from: &[i32], to: &[i32]) -> u32 {
        match self.difference(lattice, from, to) {
            Some(difference) => self.directions[difference],
            None => directions_of(&self.record(lattice, from, to, 0)),
        }
    }

    /// Where a destination lies as seen from a source, if there are wraps.
    fn difference(&self, lattice: &Lattice, from: &[i32], to: &[i32]) -> Option<usize> {
        if self.directions.is_empty() {
            return None;
        }
        if self.is_straight {
            let steps = from.iter().zip(to).zip(&lattice.size).rev();
            // Coordinates lie in the box.
            let number = steps.fold(0, |number, ((from, to), size)| {
                let steps = if to >= from { (to - from) as u32 } else { size - (from - to) as u32 };
                number * size + steps
            });
            return Some(number as usize);
        }
        let mut point = [0i64; MAX_AXES];
        for (at, (from, to)) in point.iter_mut().zip(from.iter().zip(to)) {
            *at = i64::from(to - from);
        }
        lattice.router(&mut point[..from.len()]).map(|router| router as usize)
    }
}

/// The order of two records for packets of `pattern`.
fn compare(one: &[i32], other: &[i32], pattern: u32) -> Ordering {
    let turned = |(axis, (one, other)): (usize, (&i32, &i32))| match pattern >> axis & 1 {
        1 => other.cmp(one),
        _ => one.cmp(other),
    };
    one.iter().zip(other).enumerate().map(turned).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Bit 2 x axis for steps forward, the next one for steps back.
pub(super) fn directions_of(record: &Record) -> u32 {
    let bits = record.iter().enumerate().map(|(axis, steps)| match steps {
        0 => 0,
        1.. => 1 << (2 * axis),
        _ => 2 << (2 * axis),
    });
    bits.fold(0, |all, bit| all | bit)
}

/// All shortest records from the first router to each, found from those one step nearer; and how many numbers they are.
fn by_distance(lattice: &Lattice) -> (Vec<Vec<Record>>, u64) {
    let routers = lattice.routers() as usize;
    let axes = lattice.axes();
    let ways: Vec<(usize, bool)> = (0..axes)
        .flat_map(|axis| match lattice.ring(axis) {
            1 => vec![],
            // Both ways are one cable.
            2 => vec![(axis, true)],
            _ if lattice.one_way => vec![(axis, true)],
            _ => vec![(axis, true), (axis, false)],
        })
        .collect();
    let mut distances = vec![u32::MAX; routers];
    distances[0] = 0;
    let mut records: Vec<Vec<Record>> = vec![Vec::new(); routers];
    records[0].push([0; MAX_AXES]);
    let mut entries = 0;
    let mut reached = VecDeque::from([0u32]);
    while let Some(router) = reached.pop_front() {
        let here = std::mem::take(&mut records[router as usize]);
        entries += here.len() as u64 * axes as u64;
        if entries > MAX_ENTRIES {
            return (records, entries);
        }
        for (axis, forward) in &ways {
            let Some(next) = lattice.step(router, *axis, *forward) else { continue };
            let distance = distances[router as usize] + 1;
            if distances[next as usize] == u32::MAX {
                distances[next as usize] = distance;
                reached.push_back(next);
            }
            if distances[next as usize] == distance {
                for record in &here {
                    let mut longer = *record;
                    longer[*axis] += if *forward { 1 } else { -1 };
                    if !records[next as usize].contains(&longer) {
                        records[next as usize].push(longer);
                    }
                }
            }
        }
        records[router as usize] = here;
    }
    (records, entries)
}
