//! Ways through lattices, axis by axis, and the places of routers in their rings.

use super::Candidates;
pub(super) use super::lattice_way::LatticeStep;
use super::lattice_way::StepTable;
use super::records::{MAX_AXES, Record, Records, directions_of};
use super::vcs::{Order, Ties};
use super::{RoutingConfig, RoutingError};
use crate::kernel::random::draw;
use crate::topology::{Lattice, LinkId, NodeId, Topology};

/// The place of draws of patterns.
const PATTERN: u64 = 0x7469_6573;

/// Draws for a lane at a router are behind those for links, which have the router's number.
const LANES: u64 = 1 << 40;

/// So many steps may it take to look whether all routers are reached in spite of faults.
const MAX_STEPS: u64 = 300_000_000;

/// So many pairs without a way are named.
const NAMED: usize = 6;

/// A link that is not between routers.
const NO_DIRECTION: u8 = u8::MAX;

/// The number of the direction of a link.
fn number_of(direction: Option<(usize, bool)>) -> u8 {
    let number = direction.and_then(|(axis, forward)| u8::try_from(2 * axis + usize::from(!forward)).ok());
    number.unwrap_or(NO_DIRECTION)
}

/// Shortest ways through a lattice, along one axis after the other.
#[derive(Clone, Debug)]
pub(super) struct LatticeWays {
    lattice: Lattice,
    records: Records,
    hosts: u32,
    order: Order,
    pub(super) ties: Ties,
    pub(super) seed: u64,
    /// Of each router: its coordinates.
    coordinates: Vec<i32>,
    /// Of each link between routers: 2 x its axis forward, 1 more back; else [`NO_DIRECTION`].
    directions: Vec<u8>,
    /// Routers of a ring of each axis; 1 or 2 where it is none.
    rings: Vec<u32>,
    /// Of each router and axis: its place in its ring, and the first router there.
    places: Vec<(u32, u32)>,
    /// The link of each host to its router, and back.
    up: Vec<LinkId>,
    down: Vec<LinkId>,
    known: StepTable,
}

impl LatticeWays {
    /// The ways of `topology`, if it is a lattice.
    pub(super) fn of(
        topology: &Topology,
        config: &RoutingConfig,
        order: Order,
        ties: Ties,
        seed: u64,
    ) -> Result<Option<Self>, RoutingError> {
        let Some(lattice) = topology.lattice() else { return Ok(None) };
        let records = Records::of(&lattice).map_err(|entries| RoutingError::TooLarge {
            routing: config.to_string(),
            entries,
            most: crate::topology::MAX_ENTRIES,
        })?;
        let coordinates = (0..lattice.routers()).flat_map(|router| lattice.coordinates(router));
        let up: Vec<LinkId> = (0..topology.hosts()).map(|host| topology.uplink(NodeId(host))).collect();
        let mut ways = Self {
            records,
            hosts: topology.hosts(),
            order,
            ties,
            seed,
            coordinates: coordinates.map(|at| i32::try_from(at).unwrap_or(i32::MAX)).collect(),
            directions: lattice.directions(topology.links().len()).into_iter().map(number_of).collect(),
            rings: (0..lattice.axes()).map(|axis| lattice.ring(axis)).collect(),
            places: places(&lattice),
            down: up.iter().map(|link| link.back()).collect(),
            up,
            lattice,
            known: StepTable::default(),
        };
        ways.known =
            StepTable::new(ways.routers(), ways.axes(), |from, to, pattern| ways.reckon_way(from, to, pattern));
        ways.check_reached(topology, config)?;
        Ok(Some(ways))
    }

    pub(super) fn router(&self, at: NodeId) -> u32 {
        at.0 - self.hosts
    }

    /// The router of host `to`.
    pub(super) fn target(&self, to: NodeId) -> u32 {
        to.0 / self.lattice.concentration
    }

    fn at(&self, router: u32) -> &[i32] {
        let dimensions = self.lattice.size.len();
        &self.coordinates[router as usize * dimensions..][..dimensions]
    }

    pub(super) const fn axes(&self) -> usize {
        self.lattice.axes()
    }

    pub(super) fn routers(&self) -> u32 {
        self.lattice.routers()
    }

    /// Whether the lattice looks the same from all routers: it closes in itself, and no link is missing.
    pub(super) fn is_uniform(&self) -> bool {
        let has = |router, axis, forward| self.port(router, axis, forward).is_some();
        let is_as_first = |router: u32| {
            (0..self.axes())
                .all(|axis| [false, true].into_iter().all(|way| has(router, axis, way) == has(0, axis, way)))
        };
        self.lattice.wraps && (1..self.routers()).all(is_as_first)
    }

    pub(super) fn has_rings(&self) -> bool {
        (0..self.axes()).any(|axis| self.is_ring(axis))
    }

    pub(super) fn is_ring(&self, axis: usize) -> bool {
        self.rings[axis] > 2
    }

    /// The last link, if host `to` is at the router `at`; its own link, if `at` is a host.
    pub(super) fn end(&self, at: NodeId, to: NodeId) -> Option<&LinkId> {
        if at.0 < self.hosts {
            return Some(&self.up[at.0 as usize]);
        }
        (self.router(at) == self.target(to)).then(|| &self.down[to.0 as usize])
    }

    /// The link of a router along an axis.
    pub(super) fn port(&self, router: u32, axis: usize, forward: bool) -> Option<&LinkId> {
        self.lattice.port(router, axis, forward || self.rings[axis] == 2)
    }

    /// By which axis and direction a packet came.
    pub(super) fn direction_of(&self, input_link: LinkId) -> Option<(usize, bool)> {
        let direction = *self.directions.get(usize::from(input_link))?;
        (direction != NO_DIRECTION).then_some((usize::from(direction / 2), direction % 2 == 0))
    }

    /// The pattern of a packet, which decides among its shortest records.
    pub(super) fn pattern(&self, to: NodeId, key: u64) -> u32 {
        let bits = match self.ties {
            Ties::Draw => draw(self.seed, PATTERN, key),
            Ties::Destination => self.target(to).into(),
        };
        u32::try_from(bits & ((1 << MAX_AXES) - 1)).unwrap_or(0)
    }

    /// All patterns that packets to `to` may have.
    pub(super) fn patterns(&self, to: NodeId) -> std::ops::Range<u32> {
        match self.ties {
            Ties::Draw => 0..1 << self.axes(),
            Ties::Destination => {
                let pattern = self.pattern(to, 0);
                pattern..pattern + 1
            }
        }
    }

    /// How many that are.
    pub(super) fn patterns_count(&self) -> u64 {
        if self.ties == Ties::Draw { 1 << self.axes() } else { 1 }
    }

    /// The next step of a packet's way to another router.
    #[inline]
    pub(super) fn way(&self, router: u32, target: u32, pattern: u32) -> Option<LatticeStep> {
        let known = self.known.way(router, target, pattern);
        known.unwrap_or_else(|| self.reckon_way(router, target, pattern))
    }

    fn reckon_way(&self, router: u32, target: u32, pattern: u32) -> Option<LatticeStep> {
        let record = self.records.record(&self.lattice, self.at(router), self.at(target), pattern);
        let mut axes = record.iter().enumerate();
        let (axis, steps) = match self.order {
            Order::Dim => axes.find(|(_, steps)| **steps != 0),
            Order::Dir => axes.clone().find(|(_, steps)| **steps > 0).or_else(|| axes.find(|(_, steps)| **steps < 0)),
        }?;
        Some(LatticeStep { axis, forward: *steps > 0, left: steps.unsigned_abs() })
    }

    /// The direction of the first step from host `from` to host `to`: 2 x axis forward, 1 more back.
    pub(super) fn first_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        let way = self.way(self.target(from), self.target(to), self.pattern(to, key))?;
        Some(2 * way.axis + usize::from(!way.forward))
    }

    /// The direction of the last step on that way.
    pub(super) fn last_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        let record = self.record_of(from, to, key);
        let mut axes = record.iter().enumerate().rev();
        let (axis, steps) = match self.order {
            Order::Dim => axes.find(|(_, steps)| **steps != 0),
            Order::Dir => axes.clone().find(|(_, steps)| **steps < 0).or_else(|| axes.find(|(_, steps)| **steps > 0)),
        }?;
        Some(2 * axis + usize::from(*steps < 0))
    }

    /// The directions of that way, a bit each.
    pub(super) fn way_directions(&self, from: NodeId, to: NodeId, key: u64) -> u32 {
        directions_of(&self.record_of(from, to, key))
    }

    /// The steps of packet `key` from host `from` to host `to`.
    fn record_of(&self, from: NodeId, to: NodeId, key: u64) -> Record {
        let (router, target) = (self.target(from), self.target(to));
        self.records.record(&self.lattice, self.at(router), self.at(target), self.pattern(to, key))
    }

    /// The direction with most steps on that way: of several the first.
    pub(super) fn longest_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        let record = self.record_of(from, to, key);
        let most = record.iter().map(|steps| steps.unsigned_abs()).max().filter(|most| *most > 0)?;
        let axis = record.iter().position(|steps| steps.unsigned_abs() == most)?;
        Some(2 * axis + usize::from(record[axis] < 0))
    }

    /// All directions that lead nearer, a bit each.
    pub(super) fn nearer_directions(&self, from: NodeId, to: NodeId) -> u32 {
        self.directions_to(self.target(from), self.target(to))
    }

    /// The directions of the record of packet `key` from router `at` to host `to`, a bit each.
    pub(super) fn directions_of_record(&self, at: NodeId, to: NodeId, key: u64) -> u32 {
        let (from, target) = (self.at(self.router(at)), self.at(self.target(to)));
        directions_of(&self.records.record(&self.lattice, from, target, self.pattern(to, key)))
    }

    /// In which directions packet `key` for host `to` gets nearer at `router` or, with `keeps_record`, goes on by its record, a bit each; and in
    /// which it goes axis by axis.
    #[inline]
    pub(super) fn first_of(&self, router: u32, to: NodeId, key: u64, keeps_record: bool) -> (u32, Option<usize>) {
        let places = (self.at(router), self.at(self.target(to)));
        self.records.first_of(&self.lattice, places, || self.pattern(to, key), keeps_record)
    }

    /// All directions that lead nearer from one router to another, a bit each.
    pub(super) fn directions_to(&self, router: u32, target: u32) -> u32 {
        self.records.nearer(&self.lattice, self.at(router), self.at(target))
    }

    /// Those of `directions` (a bit each) that are there at `router`, with their links.
    pub(super) fn ports(&self, router: u32, directions: u32) -> impl Iterator<Item = (usize, bool, LinkId)> {
        (0..2 * self.axes()).filter(move |bit| directions >> bit & 1 == 1).filter_map(move |bit| {
            let (axis, forward) = (bit / 2, bit % 2 == 0);
            self.port(router, axis, forward).map(|link| (axis, forward, *link))
        })
    }

    /// Whether a packet on `way` has the end of its ring before it: the cable between the last router and the first.
    pub(super) fn wraps_ahead(&self, router: u32, way: LatticeStep) -> bool {
        let place = self.place(router, way.axis);
        let ring = self.rings[way.axis];
        self.is_ring(way.axis) && if way.forward { place + way.left >= ring } else { way.left > place }
    }

    /// A router's place in its ring.
    pub(super) fn place(&self, router: u32, axis: usize) -> u32 {
        self.places[router as usize * self.axes() + axis].0
    }

    /// The link by which the ring leads to `router` on which it leads on along `axis`.
    pub(super) fn behind(&self, router: u32, axis: usize, forward: bool) -> Option<LinkId> {
        let before = self.lattice.step(router, axis, !forward)?;
        self.port(before, axis, forward).copied()
    }

    /// The ring of a link between routers, as a number; links out of rings have none.
    pub(super) fn ring_of(&self, topology: &Topology, link: LinkId) -> Option<u64> {
        let (axis, forward) = self.direction_of(link).filter(|(axis, _)| self.is_ring(*axis))?;
        let router = self.router(topology.link(link).from);
        let first = self.places[router as usize * self.axes() + axis].1;
        Some((u64::from(first) * self.axes() as u64 + axis as u64) * 2 + u64::from(forward))
    }

    /// A number drawn for a packet at a router.
    pub(super) fn draw(&self, at: NodeId, key: u64) -> u64 {
        draw(self.seed, LANES + u64::from(at.0), key)
    }

    /// Where a packet for `to` goes on that stands at `at`: the link alone.
    pub(super) fn link(&self, at: NodeId, to: NodeId, pattern: u32) -> Option<(&LinkId, Option<LatticeStep>)> {
        if let Some(link) = self.end(at, to) {
            return Some((link, None));
        }
        let router = self.router(at);
        let way = self.way(router, self.target(to), pattern)?;
        Some((self.port(router, way.axis, way.forward)?, Some(way)))
    }

    /// Ways axis by axis lead from every router to every other one; else some pairs between which they do not are named.
    fn check_reached(&self, topology: &Topology, config: &RoutingConfig) -> Result<(), RoutingError> {
        let routers = self.lattice.routers();
        let missing = (0..routers).any(|router| {
            (0..self.axes())
                .any(|axis| self.lattice.step(router, axis, true).is_some() && self.port(router, axis, true).is_none())
        });
        if !missing {
            return Ok(());
        }
        let steps = u64::from(routers) * u64::from(routers) * self.patterns_count();
        if steps > MAX_STEPS {
            return Err(RoutingError::Unchecked { routing: config.to_string(), steps, most: MAX_STEPS });
        }
        let (mut pairs, mut named) = (0u64, Vec::new());
        for target in 0..routers {
            let mut lost = vec![false; routers as usize];
            let host = NodeId(target * self.lattice.concentration);
            for pattern in self.patterns(host) {
                self.note_lost(target, pattern, &mut lost);
            }
            for router in (0..routers).filter(|router| lost[*router as usize]) {
                pairs += 1;
                if named.len() < NAMED {
                    let name = |router: u32| topology.name(NodeId(self.hosts + router));
                    named.push(format!("{} to {}", name(router), name(target)));
                }
            }
        }
        if pairs == 0 {
            return Ok(());
        }
        let more = if pairs > named.len() as u64 {
            format!(" and {} more", pairs - named.len() as u64)
        } else {
            String::new()
        };
        Err(RoutingError::Faulty { routing: config.to_string(), pairs: named.join(", ") + &more })
    }

    /// Notes the routers from which the way to `target` meets a link that is missing.
    fn note_lost(&self, target: u32, pattern: u32, lost: &mut [bool]) {
        // 0: not known, 1: reached, 2: lost.
        let mut fate = vec![0u8; lost.len()];
        fate[target as usize] = 1;
        let mut met = Vec::new();
        for start in 0..crate::count::count(lost.len()) {
            let mut at = start;
            while fate[at as usize] == 0 {
                met.push(at);
                let way = self.way(at, target, pattern);
                let there = way.filter(|way| self.port(at, way.axis, way.forward).is_some());
                match there.and_then(|way| self.lattice.step(at, way.axis, way.forward)) {
                    Some(next) => at = next,
                    None => fate[at as usize] = 2,
                }
            }
            let end = fate[at as usize];
            for router in met.drain(..) {
                fate[router as usize] = end;
                lost[router as usize] |= end == 2;
            }
        }
    }

    /// As [`Candidates`] of one link.
    pub(super) fn candidates<'a>(link: Option<&'a LinkId>, class: u8, enters_ring: bool) -> Candidates<'a> {
        Candidates { links: link.map_or(&[], std::slice::from_ref), class, classes: 1, enters_ring }
    }
}

/// Of each router and axis: its place in its ring, which begins at its router of the lowest number, and that router.
fn places(lattice: &Lattice) -> Vec<(u32, u32)> {
    let axes = lattice.axes();
    let mut places = vec![(0, u32::MAX); lattice.routers() as usize * axes];
    for axis in 0..axes {
        for first in 0..lattice.routers() {
            let (mut at, mut place) = (first, 0);
            while places[at as usize * axes + axis].1 == u32::MAX {
                places[at as usize * axes + axis] = (place, first);
                match lattice.step(at, axis, true) {
                    Some(next) => at = next,
                    None => break,
                }
                place += 1;
            }
        }
    }
    places
}
