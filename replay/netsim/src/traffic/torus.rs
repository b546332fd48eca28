//! Destinations by their distance, on a torus of hosts: `sides` hosts in each dimension, numbered with the first dimension fastest.

use std::path::Path;

use super::config::TrafficError;
use super::{Drawn, draw, unit};
use crate::files;
use crate::kernel::random::below;

/// The largest file of distances.
const MAX_BYTES: u64 = 16 << 20;

/// A torus of hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Torus {
    sides: Vec<u32>,
}

impl Torus {
    /// The torus of `sides`, of `hosts` hosts; one ring of all where they are not given.
    ///
    /// # Errors
    /// If a side is 0, or the sides do not make `hosts`.
    pub fn new(sides: Option<&[u32]>, hosts: u32) -> Result<Self, TrafficError> {
        let sides = sides.map_or_else(|| vec![hosts], <[u32]>::to_vec);
        let product = sides.iter().try_fold(1u64, |product, side| product.checked_mul((*side).into()));
        if sides.is_empty() || product != Some(hosts.into()) {
            let allowed = format!("the hosts in each dimension, whose product is the number of hosts, {hosts}");
            return Err(TrafficError::value("sides", format!("{sides:?}"), &allowed));
        }
        Ok(Self { sides })
    }

    /// Hosts in each dimension.
    #[must_use]
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// The host that is `deltas` steps forward of `source`, dimension by dimension.
    fn moved(&self, source: u32, deltas: impl Iterator<Item = u64>) -> u32 {
        let (mut rest, mut stride, mut to) = (u64::from(source), 1, 0);
        for (side, delta) in self.sides.iter().map(|side| u64::from(*side)).zip(deltas) {
            to += (rest % side + delta) % side * stride;
            rest /= side;
            stride *= side;
        }
        u32::try_from(to).unwrap_or(0)
    }

    /// The steps on a shortest way from a host to the one whose number is `offset` larger, coordinate by coordinate.
    fn distance(&self, offset: u32) -> u32 {
        let mut rest = offset;
        let mut steps = 0;
        for side in &self.sides {
            let forward = rest % side;
            rest /= side;
            steps += forward.min(side - forward);
        }
        steps
    }

    /// Half-way round the rings of `dimensions`, or `shift` hosts, for each host.
    ///
    /// # Errors
    /// If a dimension does not exist, or a ring is shorter than the shift.
    pub fn tornado(&self, dimensions: &[u32], shift: Option<u32>) -> Result<Vec<u32>, TrafficError> {
        let mut deltas = vec![0; self.sides.len()];
        for dimension in dimensions {
            let place = usize::try_from(*dimension).unwrap_or(usize::MAX);
            let Some(delta) = deltas.get_mut(place) else {
                let allowed = format!("dimensions from 0 to {}, those of traffic.sides", self.sides.len() - 1);
                return Err(TrafficError::value("dimensions", format!("{dimensions:?}"), &allowed));
            };
            let side = self.sides[place];
            let by = shift.unwrap_or(side / 2);
            if by == 0 || by >= side {
                let allowed = format!("1 to the side less 1, and dimension {dimension} has {side} hosts");
                return Err(TrafficError::value("shift", by, &allowed));
            }
            *delta = u64::from(by);
        }
        let hosts: u32 = self.sides.iter().product();
        Ok((0..hosts).map(|source| self.moved(source, deltas.iter().copied())).collect())
    }
}

/// Destinations near a host: INSEE's `local`.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    torus: Torus,
}

impl Local {
    /// The least side that it is defined for.
    const LEAST: u32 = 16;

    /// Those on `torus`.
    ///
    /// # Errors
    /// If a side is shorter than 16.
    pub fn new(torus: Torus) -> Result<Self, TrafficError> {
        if torus.sides.iter().any(|side| *side < Self::LEAST) {
            let allowed = "sides of 16 at least, as \"local\" goes 8 hosts and more away";
            return Err(TrafficError::value("sides", format!("{:?}", torus.sides), allowed));
        }
        Ok(Self { torus })
    }

    /// How far a message goes along a ring of `side` hosts.
    fn delta(bits: u64, side: u32) -> u64 {
        let side = u64::from(side);
        // A class by the upper half of the bits, a step in it by what is mixed from all.
        let within = |of: u64| below(crate::kernel::random::mix(bits), of);
        match unit(bits) {
            class if class < 0.5 => (side + within(3) - 1) % side,
            class if class < 0.75 => [side - 3, side - 2, 2, 3][usize::try_from(within(4)).unwrap_or(0)],
            class if class < 0.875 => {
                let step = within(8);
                if step < 4 { 4 + step } else { side - step }
            }
            // 8 to side - 8, forward.
            _ => 8 + within(side - 15),
        }
    }

    /// Where message `count` of `source` goes.
    pub(super) fn destination(&self, seed: u64, source: u32, count: u64) -> u32 {
        let drawn = draw(seed, Drawn::Destination, source, count);
        let mut attempt = 0;
        loop {
            let deltas = (0u64..).zip(&self.torus.sides);
            let deltas = deltas
                .map(|(dimension, side)| Self::delta(crate::kernel::random::draw(drawn, dimension, attempt), *side));
            let to = self.torus.moved(source, deltas);
            if to != source {
                return to;
            }
            attempt += 1;
        }
    }
}

/// Destinations at distances of which each has its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    torus: Torus,
    /// For each distance that is drawn the upper end of its share, and where its offsets end.
    ends: Vec<(f64, usize)>,
    /// Offsets (numbers of hosts as seen from host 0), distance by distance.
    offsets: Vec<u32>,
}

impl Distances {
    /// Those of the file `path` on `torus`: lines `DISTANCE WEIGHT`, or, of a population, `DISTANCE` alone, each as likely.
    ///
    /// # Errors
    /// If it cannot be read, a line is wrong, or no host is that far away.
    pub fn read(path: &Path, population: bool, torus: Torus) -> Result<Self, TrafficError> {
        let wrong = |value: &str, reason: String| TrafficError::value("distances", value, &reason);
        let name = path.display().to_string();
        let text = files::read_text(path, MAX_BYTES);
        let text = text.map_err(|error| wrong(&name, format!("it cannot be read: {error}")))?;
        let hosts: u32 = torus.sides.iter().product();
        let most = torus.sides.iter().map(|side| side / 2).sum::<u32>();
        let mut weights = vec![0.0; most as usize + 1];
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let at = format!("{name}:{number}");
            let (distance, weight) = weighted(line, population).map_err(|reason| wrong(&at, reason))?;
            match usize::try_from(distance).ok().and_then(|place| weights.get_mut(place)) {
                Some(sum) if distance > 0 => *sum += weight,
                _ => return Err(wrong(&at, format!("no host is {distance} away: 1 to {most} on {:?}", torus.sides))),
            }
        }
        let all: f64 = weights.iter().sum();
        if !(all > 0.0 && all.is_finite()) {
            return Err(wrong(&name, "it needs a distance with a weight above 0".to_owned()));
        }
        let mut by_distance = vec![Vec::new(); weights.len()];
        (1..hosts).for_each(|offset| by_distance[torus.distance(offset) as usize].push(offset));
        let (mut upper, mut ends, mut offsets) = (0.0, Vec::new(), Vec::new());
        for (weight, there) in weights.iter().zip(by_distance).filter(|(weight, _)| **weight > 0.0) {
            upper += weight / all;
            offsets.extend(there);
            ends.push((upper, offsets.len()));
        }
        Ok(Self { torus, ends, offsets })
    }

    /// Where message `count` of `source` goes.
    pub(super) fn destination(&self, seed: u64, source: u32, count: u64) -> u32 {
        let share = unit(draw(seed, Drawn::Share, source, count));
        let place = self.ends.iter().position(|(upper, _)| share < *upper).unwrap_or(self.ends.len() - 1);
        let begin = if place == 0 { 0 } else { self.ends[place - 1].1 };
        let there = &self.offsets[begin..self.ends[place].1];
        let drawn = below(draw(seed, Drawn::Destination, source, count), there.len() as u64);
        let offset = there[usize::try_from(drawn).unwrap_or(0)];
        let mut rest = offset;
        let deltas = self.torus.sides.iter().map(|side| {
            let delta = rest % side;
            rest /= side;
            u64::from(delta)
        });
        self.torus.moved(source, deltas)
    }
}

/// Distance and weight of a line.
fn weighted(line: &str, population: bool) -> Result<(u64, f64), String> {
    let mut words = line.split_whitespace();
    let distance = words.next().and_then(|word| word.parse().ok());
    let distance = distance.ok_or_else(|| format!("\"{line}\" does not begin with a distance, a whole number"))?;
    let weight = match (words.next(), population) {
        (None, true) => 1.0,
        (Some(word), false) => {
            let weight = word.parse::<f64>().ok().filter(|weight| *weight >= 0.0 && weight.is_finite());
            weight.ok_or_else(|| format!("weight \"{word}\": a number from 0 on"))?
        }
        (None, false) => return Err("a weight is missing behind the distance".to_owned()),
        (Some(word), true) => return Err(format!("\"{word}\" behind the distance: a population has distances alone")),
    };
    if let Some(word) = words.next() {
        return Err(format!("\"{word}\" behind the weight: a line is a distance and its weight"));
    }
    Ok((distance, weight))
}
