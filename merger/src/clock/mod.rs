//! One clock for all hosts.
//!
//! For each pair of hosts, the packets that both saw bound how their clocks stand to each other: nothing arrives before
//! it left. A line below the delays of one direction and one above those of the other (taken negative) enclose the
//! truth; it is taken in their middle, which is right if the least delays of both directions are equal. All pairs are
//! then brought together by least squares, from the host that shares packets with most others. One offset and one rate
//! for each host, behind which what was done to its clock while it was recorded has been undone (`jumps`).

mod hull;
mod jumps;
mod map;
mod pairs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rayon::prelude::*;

pub use jumps::{Correction, Jump};
pub use map::ClockMap;
use pairs::Point;
pub(crate) use pairs::{BothSaw, PairFit, PairsSaw};

/// How the clocks of all hosts were aligned.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// Number of the host whose clock is the reference.
    pub reference: usize,
    /// What takes the jumps out of each host's clock.
    pub corrections: Vec<Correction>,
    /// The jumps, by time.
    pub jumps: Vec<Jump>,
    /// Packets seen at both ends that were left out, as their times contradict those of all others of the pair.
    pub contradicting: u64,
    /// From each host's clock, without its jumps, to the reference.
    pub maps: Vec<ClockMap>,
    /// How far off each may be, nanoseconds: half the least round trip on the way to the reference.
    pub uncertainty_ns: Vec<f64>,
    /// Hosts that share no packets with the reference, directly or over others: their clocks stay as they are.
    pub apart: Vec<usize>,
    /// Packets whose times were compared.
    pub compared: u64,
    /// Of these, packets that after alignment arrive before they left, by whatever little.
    pub early: u64,
    /// The earliest of these, nanoseconds too early.
    pub worst_ns: u64,
    /// Pairs of hosts whose packets are still to be compared ([`Alignment::too_early`]).
    pub(crate) to_compare: BTreeSet<(usize, usize)>,
}

/// What is less early than this is rounding, nanoseconds.
const EARLY_NS: f64 = 0.5;

/// Packets that after alignment arrive before they left: how many, and by how many nanoseconds at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TooEarly {
    pub count: u64,
    pub worst_ns: u64,
}

impl TooEarly {
    /// Those of both.
    pub fn plus(self, other: Self) -> Self {
        Self { count: self.count + other.count, worst_ns: self.worst_ns.max(other.worst_ns) }
    }
}

impl Alignment {
    /// A time of a host's clock on the reference; 0, which stands for "not seen", stays 0.
    #[must_use]
    pub fn apply(&self, host: usize, t_ns: u64) -> u64 {
        self.maps[host].apply(self.corrections[host].apply(t_ns))
    }

    /// Whether times of a host's clock are those of the reference already.
    pub(crate) fn is_still(&self, host: usize) -> bool {
        !self.is_corrected(host) && self.maps.get(host).is_none_or(|map| map.offset_ns == 0.0 && map.rate == 0.0)
    }

    /// Whether what was done to a host's clock had to be undone: its times may be out of order.
    pub(crate) fn is_corrected(&self, host: usize) -> bool {
        self.corrections.get(host).is_some_and(|correction| *correction != Correction::default())
    }

    /// Which packets between two hosts arrive before they left.
    pub(crate) fn too_early(&self, seen: &BothSaw) -> TooEarly {
        self.of_points(seen.a, seen.b, &seen.forward, &seen.backward)
    }

    fn of_points(&self, a: usize, b: usize, forward: &[Point], backward: &[Point]) -> TooEarly {
        let early = self.early_ns(a, b, forward, backward).filter(|early| *early > EARLY_NS);
        early.fold(TooEarly::default(), |all, early| all.plus(TooEarly { count: 1, worst_ns: early.ceil() as u64 }))
    }

    /// How much too early the earliest packet is on the edge of what two hosts saw of each other.
    fn earliest_ns(&self, fit: &PairFit) -> f64 {
        self.early_ns(fit.a, fit.b, &fit.forward.points, &fit.backward.points).fold(f64::NEG_INFINITY, f64::max)
    }

    /// By how much each packet arrives before it left; below 0 for all that arrive later.
    fn early_ns(&self, a: usize, b: usize, forward: &[Point], backward: &[Point]) -> impl Iterator<Item = f64> {
        let (a, b) = (self.maps[a], self.maps[b]);
        let aligned_difference = move |&(at_a, difference): &Point| {
            let at_b = at_a.saturating_add(difference);
            difference as f64 + b.delta_ns(at_b) - a.delta_ns(at_a)
        };
        let there = forward.iter().map(move |point| -aligned_difference(point));
        there.chain(backward.iter().map(aligned_difference))
    }
}

/// Aligns the clocks of so many hosts by what each two saw of each other. Edges of that are enough but where a clock was
/// stepped or slewed: then `whole` gives all that was seen, and it is compared at once.
///
/// # Errors
/// If `whole` fails.
pub(crate) fn align(
    hosts: usize,
    mut fits: Vec<PairFit>,
    whole: impl FnOnce() -> io::Result<Vec<PairFit>>,
) -> io::Result<Alignment> {
    let reference = choose_reference(hosts, &fits);
    let points = |fits: &[PairFit]| fits.iter().map(|fit| fit.forward.count + fit.backward.count).sum::<u64>();
    let seen = points(&fits);
    if fits.iter().all(jumps::is_straight) {
        let corrections = vec![Correction::default(); hosts];
        let mut alignment = Alignment { corrections, compared: seen, ..span(hosts, reference, &fits) };
        refine(&mut alignment, &fits);
        // Straight maps leave the earliest of all packets on the edge.
        let may_be_early = fits.iter().filter(|fit| alignment.earliest_ns(fit) > EARLY_NS / 2.0);
        alignment.to_compare = may_be_early.map(|fit| (fit.a, fit.b)).collect();
        return Ok(alignment);
    }
    fits = whole()?;
    let (corrections, jumps) = jumps::undo(hosts, reference, &mut fits);
    let contradicting = seen.saturating_sub(points(&fits));
    let mut alignment = Alignment { corrections, jumps, contradicting, ..span(hosts, reference, &fits) };
    refine(&mut alignment, &fits);
    alignment.compared = points(&fits);
    let early = fits.iter().map(|fit| alignment.of_points(fit.a, fit.b, &fit.forward.points, &fit.backward.points));
    let early = early.fold(TooEarly::default(), TooEarly::plus);
    (alignment.early, alignment.worst_ns) = (early.count, early.worst_ns);
    Ok(alignment)
}

/// The host that shares packets with most others; of several, the one with most packets, then the first.
fn choose_reference(hosts: usize, fits: &[PairFit]) -> usize {
    let mut worth = vec![(0u64, 0u64); hosts];
    for fit in fits {
        for host in [fit.a, fit.b] {
            worth[host].0 += 1;
            worth[host].1 += fit.weight();
        }
    }
    (0..hosts).rev().max_by_key(|&host| worth[host]).unwrap_or(0)
}

/// Follows the surest pairs from the reference to every host.
fn span(hosts: usize, reference: usize, fits: &[PairFit]) -> Alignment {
    let mut maps: Vec<Option<ClockMap>> = vec![None; hosts];
    let mut uncertainty_ns = vec![0.0; hosts];
    if let Some(map) = maps.get_mut(reference) {
        *map = Some(ClockMap::default());
    }
    let mut surest: Vec<&PairFit> = fits.iter().collect();
    surest.sort_by(|x, y| x.uncertainty_ns.total_cmp(&y.uncertainty_ns).then((x.a, x.b).cmp(&(y.a, y.b))));
    while let Some((known, new, fit)) = surest.iter().find_map(|fit| match (maps[fit.a], maps[fit.b]) {
        (Some(_), None) => Some((fit.a, fit.b, *fit)),
        (None, Some(_)) => Some((fit.b, fit.a, *fit)),
        _ => None,
    }) {
        let to_known = if known == fit.a { fit.map.inverse() } else { fit.map };
        maps[new] = maps[known].map(|map| map.after(&to_known));
        uncertainty_ns[new] = uncertainty_ns[known] + fit.uncertainty_ns;
    }
    let apart = (0..hosts).filter(|&host| maps[host].is_none()).collect();
    let maps = maps.into_iter().map(Option::unwrap_or_default).collect();
    Alignment { reference, maps, uncertainty_ns, apart, ..Alignment::default() }
}

/// Moves all clocks a little so that all pairs agree as well as can be: at the first and at the last packet that the two
/// share, each weighted by how sure its fit is there. So a pair that only met for a moment has no say in rates.
fn refine(alignment: &mut Alignment, fits: &[PairFit]) {
    let unknown: Vec<usize> = (0..alignment.maps.len())
        .filter(|host| *host != alignment.reference && !alignment.apart.contains(host))
        .collect();
    let place: BTreeMap<usize, usize> = unknown.iter().enumerate().map(|(at, &host)| (host, at)).collect();
    let joined: Vec<&PairFit> =
        fits.iter().filter(|fit| !alignment.apart.contains(&fit.a) && !alignment.apart.contains(&fit.b)).collect();
    let aligned = |host: usize, t: i64| t.saturating_add(alignment.maps[host].delta_ns(t).round() as i64);
    let Some(at_ns) = joined.iter().map(|fit| aligned(fit.a, fit.range_ns.0)).min() else { return };
    // Unknowns of each host: offset at `at_ns` in nanoseconds, then its growth in nanoseconds a second.
    let mut matrix = vec![vec![0.0; 2 * unknown.len() + 1]; 2 * unknown.len()];
    for fit in joined {
        let (a, b) = (&alignment.maps[fit.a], &alignment.maps[fit.b]);
        // From aligned a to aligned b: nothing, if all pairs agreed.
        let rest = b.after(&fit.map.after(&a.inverse()));
        for (t, room_ns) in [(fit.range_ns.0, fit.room_ns.0), (fit.range_ns.1, fit.room_ns.1)] {
            let x = aligned(fit.a, t);
            let seconds = x.saturating_sub(at_ns) as f64 / 1e9;
            let mut equation = vec![0.0; matrix.len() + 1];
            for (host, sign) in [(fit.a, -1.0), (fit.b, 1.0)] {
                if let Some(&at) = place.get(&host) {
                    equation[2 * at] = sign;
                    equation[2 * at + 1] = sign * seconds;
                }
            }
            equation[matrix.len()] = -rest.delta_ns(x);
            let weight = 1.0 / room_ns.max(MIN_ROOM_NS).powi(2);
            add_equation(&mut matrix, &equation, weight);
        }
    }
    let solution = eliminate(matrix);
    for (at, &host) in unknown.iter().enumerate() {
        let correction = ClockMap { at_ns, offset_ns: solution[2 * at], rate: solution[2 * at + 1] / 1e9 };
        alignment.maps[host] = correction.after(&alignment.maps[host]);
    }
}

/// No fit is taken to be surer than this.
const MIN_ROOM_NS: f64 = 100.0;

/// Adds an equation (coefficients, then the right side) to the normal equations of least squares.
fn add_equation(matrix: &mut [Vec<f64>], equation: &[f64], weight: f64) {
    for (row, &of_row) in matrix.iter_mut().zip(equation) {
        if of_row != 0.0 {
            row.iter_mut().zip(equation).for_each(|(cell, &of_column)| *cell += weight * of_row * of_column);
        }
    }
}

/// Weights are of the order of 1e-6 (1 / µs²); below this nothing determines an unknown.
const MIN_PIVOT: f64 = 1e-24;

/// Gauss' elimination with the largest pivot; unknowns that nothing determines become 0.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|&x, &y| matrix[x][column].abs().total_cmp(&matrix[y][column].abs()));
        let Some(pivot) = pivot.filter(|&row| matrix[row][column].abs() > MIN_PIVOT) else { continue };
        matrix.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        // In front of it all rows below hold nothing; those of hosts that share nothing hold nothing here either.
        let top = &above[column][column..];
        below.par_iter_mut().filter(|row| row[column] != 0.0).for_each(|row| {
            let factor = row[column] / top[0];
            row[column..].iter_mut().zip(top).for_each(|(cell, from)| *cell -= factor * from);
        });
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * solution[column]).sum();
        let diagonal = matrix[row][row];
        solution[row] = if diagonal.abs() > MIN_PIVOT { (matrix[row][size] - known) / diagonal } else { 0.0 };
    }
    solution
}
