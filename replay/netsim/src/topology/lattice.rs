//! The form of lattices: routers at the points of a box, each joined along some axes to those a certain step away.
//!
//! | lattice | box | steps of its axes |
//! |---|---|---|
//! | mesh, torus, twisted torus | its size | 1 in each dimension |
//! | midimew | one line of n points | b, b - 1 |
//! | SpiNNaker | N x M | (1, 0), (0, 1), (1, 1) |

use super::grid::Grid;
use super::ids::LinkId;

/// The form of a lattice. Router (c0, c1, ...) has number c0 + size0 (c1 + size1 (c2 + ...)), and hosts number x concentration
/// and following.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// What it is called: "a midimew".
    pub name: &'static str,
    /// Points in each dimension.
    pub size: Vec<u32>,
    /// Whether steps over the end come in again at the beginning.
    pub wraps: bool,
    /// For each dimension, how far a step over its end shifts each other one.
    pub twist: Vec<Vec<u32>>,
    /// The step of each axis.
    pub steps: Vec<Vec<u32>>,
    /// Whether rings lead forward only.
    pub one_way: bool,
    /// Hosts at each router.
    pub concentration: u32,
    /// Of each router and axis: the link forward, and back; [`Lattice::NONE`] where there is none, or where it is the same as
    /// forward.
    pub(super) ports: Vec<LinkId>,
}

impl Lattice {
    /// No such link.
    pub const NONE: LinkId = LinkId(u32::MAX);

    /// The lattice of a mesh or torus whose cables between routers begin with link `first`.
    pub(super) fn joined(grid: &Grid, first: u32) -> Self {
        let mut lattice = Self::of_grid(grid);
        let cables = lattice.cables();
        lattice.join(cables.iter().zip(0u32..).map(|(cable, number)| (*cable, LinkId(first + 2 * number))));
        lattice
    }

    /// The lattice of a mesh or torus, without its links.
    pub(crate) fn of_grid(grid: &Grid) -> Self {
        let dimensions = grid.size.len();
        let unit = |axis: usize| (0..dimensions).map(|other| u32::from(other == axis)).collect();
        Self {
            name: if grid.wraps { "a torus" } else { "a mesh" },
            size: grid.size.clone(),
            wraps: grid.wraps,
            twist: vec![vec![0; dimensions]; dimensions],
            steps: (0..dimensions).map(unit).collect(),
            one_way: false,
            concentration: grid.concentration,
            ports: Vec::new(),
        }
    }

    /// How many routers there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.size.iter().product()
    }

    /// How many axes there are.
    #[must_use]
    pub const fn axes(&self) -> usize {
        self.steps.len()
    }

    /// The coordinates of a router.
    #[must_use]
    pub fn coordinates(&self, router: u32) -> Vec<i64> {
        let mut rest = router;
        let coordinate = |size: &u32| {
            let here = rest % size;
            rest /= size;
            i64::from(here)
        };
        self.size.iter().map(coordinate).collect()
    }

    /// The router at a point, which is brought into the box; `None` outside of a box without wraps.
    #[must_use]
    pub fn router(&self, point: &mut [i64]) -> Option<u32> {
        // Dimensions whose wraps shift others come first: those are shifted, but shift none.
        for shifting in [true, false] {
            for dimension in 0..self.size.len() {
                if self.twist[dimension].iter().any(|shift| *shift > 0) != shifting {
                    continue;
                }
                let turns = point[dimension].div_euclid(self.size[dimension].into());
                if turns != 0 && !self.wraps {
                    return None;
                }
                point[dimension] -= turns * i64::from(self.size[dimension]);
                for (other, shift) in self.twist[dimension].iter().enumerate().filter(|_| turns != 0) {
                    point[other] += turns * i64::from(*shift);
                }
            }
        }
        let number = point.iter().zip(&self.size).rev().fold(0i64, |number, (at, size)| number * i64::from(*size) + at);
        u32::try_from(number).ok()
    }

    /// The router a step along `axis` from `router`; `None` over the end of a mesh, or if that is the router itself.
    #[must_use]
    pub fn step(&self, router: u32, axis: usize, forward: bool) -> Option<u32> {
        let sign = if forward { 1 } else { -1 };
        let step = self.steps[axis].iter().map(|step| sign * i64::from(*step));
        let mut point: Vec<i64> = self.coordinates(router).into_iter().zip(step).map(|(at, step)| at + step).collect();
        self.router(&mut point).filter(|next| *next != router)
    }

    /// How many steps along `axis` lead round a ring; 1 without wraps, or where a step leads nowhere.
    #[must_use]
    pub fn ring(&self, axis: usize) -> u32 {
        let mut length = 1;
        let mut at = 0;
        while self.wraps
            && let Some(next) = self.step(at, axis, true)
        {
            if next == 0 {
                return length;
            }
            at = next;
            length += 1;
        }
        1
    }

    /// Whether `axis` is a ring that a packet can go round: of two routers there is one cable, no ring.
    #[must_use]
    pub fn is_ring(&self, axis: usize) -> bool {
        self.ring(axis) > 2
    }

    /// All cables in order: axis by axis, router by router, each from a router one step forward.
    pub(super) fn cables(&self) -> Vec<LatticeCable> {
        let mut cables = Vec::new();
        for axis in 0..self.axes() {
            let pairs = self.ring(axis) == 2;
            for from in 0..self.routers() {
                let Some(to) = self.step(from, axis, true) else { continue };
                if !pairs || from < to {
                    cables.push(LatticeCable { axis, from, to, pair: pairs });
                }
            }
        }
        cables
    }

    /// Notes the first link of each cable.
    pub(super) fn join(&mut self, cables: impl Iterator<Item = (LatticeCable, LinkId)>) {
        let axes = self.axes();
        let mut ports = vec![Self::NONE; self.routers() as usize * axes * 2];
        let place =
            |router: u32, axis: usize, forward: bool| (router as usize * axes + axis) * 2 + usize::from(!forward);
        let rings: Vec<bool> = (0..axes).map(|axis| self.is_ring(axis)).collect();
        for (LatticeCable { axis, from, to, pair }, link) in cables {
            ports[place(from, axis, true)] = link;
            if pair {
                ports[place(to, axis, true)] = link.back();
            } else if !(self.one_way && rings[axis]) {
                ports[place(to, axis, false)] = link.back();
            }
        }
        self.ports = ports;
    }

    /// The link of `router` forward or back along `axis`; a ring of two leads forward both ways.
    #[must_use]
    pub fn port(&self, router: u32, axis: usize, forward: bool) -> Option<&LinkId> {
        let port = &self.ports[(router as usize * self.axes() + axis) * 2 + usize::from(!forward)];
        (*port != Self::NONE).then_some(port)
    }

    /// The axis and direction of each of the topology's `links` links that it has.
    pub(crate) fn directions(&self, links: usize) -> Vec<Option<(usize, bool)>> {
        let mut directions = vec![None; links];
        for (place, link) in self.ports.iter().enumerate().filter(|(_, link)| **link != Self::NONE) {
            directions[usize::from(*link)] = Some((place / 2 % self.axes(), place % 2 == 0));
        }
        directions
    }
}

/// A cable between routers, one step forward along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatticeCable {
    pub(super) axis: usize,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Whether it leads back to where it came from by another step forward.
    pub(super) pair: bool,
}
