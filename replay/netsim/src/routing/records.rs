//! Routing records: how many steps along each axis of a lattice lead from one router to another on a shortest way.
//!
//! Of several, a packet follows the least by the order of its pattern (a bit for each axis: its steps count negative): the one
//! with the least steps along the first axis, of these the least along the second, and so on. That order is the same
//! wherever the packet stands. So what is left of the way is, at the next router, the least there, and the packet needs
//! to carry nothing: dimension order holds from the first router to the last.
//!
//! In a box whose wraps shift nothing each axis is a ring by itself, and steps are reckoned. Elsewhere all records are kept, by where the
//! destination lies as seen from the source.

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
    /// Whether wraps shift nothing: then each dimension can be reckoned by itself.
    is_straight: bool,
    /// Of a box with wraps whose axes are not its dimensions, by the router that lies from the first one as the destination from the source; else empty.
    begins: Vec<u32>,
    steps: Vec<i32>,
    /// By the same: the directions of all records, bit 2 x axis for forward, the next one for back.
    directions: Vec<u32>,
}

impl Records {
    /// Those of `lattice`; else how many entries there would be.
    pub(super) fn of(lattice: &Lattice) -> Result<Self, u64> {
        let axes = lattice.axes();
        let is_unit = |(axis, step): (usize, &Vec<u32>)| {
            let along = |(dimension, steps): (usize, &u32)| *steps == u32::from(dimension == axis);
            step.len() == axes && step.iter().enumerate().all(along)
        };
        let is_straight = lattice.twist.iter().flatten().all(|shift| *shift == 0);
        let mut records = Self { axes, is_straight, begins: vec![0], steps: Vec::new(), directions: Vec::new() };
        if !lattice.wraps || is_straight && lattice.steps.iter().enumerate().all(is_unit) {
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
    #[inline]
    pub(super) fn record(&self, lattice: &Lattice, from: &[i32], to: &[i32], pattern: u32) -> Record {
        let mut record = [0; MAX_AXES];
        let Some(difference) = self.difference(lattice, from, to) else {
            let places = from.iter().zip(to).zip(&lattice.size);
            for (axis, (steps, ((from, to), size))) in record.iter_mut().zip(places).enumerate() {
                *steps = steps_along(lattice, *size, (*from, *to), pattern >> axis & 1 == 1);
            }
            return record;
        };
        let all = &self.steps[self.begins[difference] as usize..self.begins[difference + 1] as usize];
        // Mostly there is one.
        if all.len() == self.axes {
            record[..self.axes].copy_from_slice(all);
        } else if let Some(least) = all.chunks(self.axes).min_by(|one, other| compare(one, other, pattern)) {
            record[..self.axes].copy_from_slice(least);
        }
        record
    }

    /// The directions that lead nearer: bit 2 x axis for forward, the next one for back.
    #[inline]
    pub(super) fn nearer(&self, lattice: &Lattice, from: &[i32], to: &[i32]) -> u32 {
        if let Some(difference) = self.difference(lattice, from, to) {
            return self.directions[difference];
        }
        self.first_of(lattice, (from, to), || 0, false).0
    }

    /// The directions that lead nearer, as [`Self::nearer`], or those of the record that a packet of `pattern` follows, and the first one of that
    /// record axis by axis.
    #[inline]
    pub(super) fn first_of(
        &self,
        lattice: &Lattice,
        (from, to): (&[i32], &[i32]),
        pattern: impl Fn() -> u32,
        keeps_record: bool,
    ) -> (u32, Option<usize>) {
        if !self.directions.is_empty() {
            let record = self.record(lattice, from, to, pattern());
            let first = record.iter().position(|steps| *steps != 0);
            let directions = if keeps_record { directions_of(&record) } else { self.nearer(lattice, from, to) };
            return (directions, first.map(|axis| 2 * axis + usize::from(record[axis] < 0)));
        }
        let (mut directions, mut first) = (0, None);
        for (axis, ((from, to), size)) in from.iter().zip(to).zip(&lattice.size).enumerate() {
            let (forward, back) = ways_along(lattice, *size, (*from, *to));
            let both = forward && back;
            let takes_back = if both && (keeps_record || first.is_none()) { pattern() >> axis & 1 == 0 } else { back };
            if first.is_none() && (forward || back) {
                first = Some(2 * axis + usize::from(takes_back));
            }
            let taken = if both && keeps_record { (!takes_back, takes_back) } else { (forward, back) };
            directions |= (u32::from(taken.0) | u32::from(taken.1) << 1) << (2 * axis);
        }
        (directions, first)
    }

    /// Where a destination lies as seen from a source, where records are kept by that.
    #[inline]
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

/// Whether shortest ways along an axis of `size` routers lead forward, and back: both half-way round a ring.
#[inline]
fn ways_along(lattice: &Lattice, size: u32, (from, to): (i32, i32)) -> (bool, bool) {
    let steps = to - from;
    if !lattice.wraps {
        return (steps > 0, steps < 0);
    }
    // Of two routers there is one cable, which leads forward.
    if lattice.one_way || size <= 2 {
        return (steps != 0, false);
    }
    // No box has more routers than their numbers can say.
    let size = size as i32;
    let twice = 2 * if steps < 0 { steps + size } else { steps };
    (steps != 0 && twice <= size, twice >= size)
}

/// The steps along an axis of `size` routers: half-way round a ring `forward` or back.
#[inline]
fn steps_along(lattice: &Lattice, size: u32, (from, to): (i32, i32), forward: bool) -> i32 {
    let steps = to - from;
    let goes_back = match ways_along(lattice, size, (from, to)) {
        (true, true) => !forward,
        (_, goes_back) => goes_back,
    };
    match (lattice.wraps, goes_back) {
        (true, true) if steps > 0 => steps - size as i32,
        (true, false) if steps < 0 => steps + size as i32,
        _ => steps,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::topology::Grid;
    use proptest::prelude::*;

    proptest! {
        /// What is reckoned of a torus is what a search from router to router finds.
        #[test]
        fn steps_of_tori_are_those_that_a_search_finds(
            size in prop::collection::vec(1u32..7, 1..4),
            one_way: bool,
            pattern: u32,
            ends: (prop::sample::Index, prop::sample::Index),
        ) {
            let mut lattice = Lattice::of_grid(&Grid { size: size.clone(), wraps: true, concentration: 1 });
            lattice.one_way = one_way;
            let routers = lattice.routers() as usize;
            let at = |end: prop::sample::Index| -> Vec<i32> {
                let number = end.index(routers) as u32;
                lattice.coordinates(number).into_iter().map(|at| i32::try_from(at).unwrap()).collect()
            };
            let (from, to) = (at(ends.0), at(ends.1));
            let mut difference: Vec<i64> = to.iter().zip(&from).map(|(to, from)| i64::from(to - from)).collect();
            let found = by_distance(&lattice).0.swap_remove(lattice.router(&mut difference).unwrap() as usize);
            let least = found.iter().min_by(|one, other| compare(&one[..], &other[..], pattern)).unwrap();
            let records = Records::of(&lattice).unwrap();
            prop_assert!(records.directions.is_empty());
            prop_assert_eq!(&records.record(&lattice, &from, &to, pattern), least);
            let directions = found.iter().fold(0, |all, record| all | directions_of(record));
            prop_assert_eq!(records.nearer(&lattice, &from, &to), directions);
            let first = least.iter().position(|steps| *steps != 0).map(|axis| 2 * axis + usize::from(least[axis] < 0));
            let first_of = |keeps_record| records.first_of(&lattice, (&from, &to), || pattern, keeps_record);
            prop_assert_eq!(first_of(false), (directions, first));
            prop_assert_eq!(first_of(true), (directions_of(least), first));
        }
    }
}
