//! Ways through meshes and tori, dimension by dimension.

use super::Candidates;
use crate::topology::{LinkId, NodeId, Structure, Topology};

/// No such link: the end of a mesh.
const NONE: LinkId = LinkId(u32::MAX);

/// How a ring is kept from filling up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rings {
    /// Two classes of virtual lanes: 1 as long as the packet has the dateline before it, then 0.
    Dateline,
    /// Into the ring only where a packet's room remains.
    Bubble,
}

/// Dimension-order routing: the lowest dimension that is not right yet, the shorter way around.
#[derive(Clone, Debug)]
pub(super) struct GridHops {
    hosts: u32,
    concentration: u32,
    rings: Rings,
    /// Of each dimension: routers, and whether it is a ring.
    size: Vec<(u32, bool)>,
    /// Of each router: its coordinates.
    coordinates: Vec<u32>,
    /// Of each router and dimension: the link forward, and back.
    ports: Vec<LinkId>,
    /// The link of each host to its router; the one back is the cable's other direction.
    up: Vec<LinkId>,
    /// The link to each host.
    down: Vec<LinkId>,
}

impl GridHops {
    /// The ways of `topology`, if it is a mesh or torus.
    pub(super) fn of(topology: &Topology, rings: Rings) -> Option<Self> {
        let Structure::Grid(grid) = topology.structure() else { return None };
        let hosts = topology.hosts();
        let routers = grid.routers();
        let coordinates: Vec<u32> = (0..routers).flat_map(|router| grid.coordinates(router)).collect();
        let mut ports = Vec::with_capacity(coordinates.len() * 2);
        for router in 0..routers {
            let out = &topology.out(NodeId(hosts + router));
            let to = |neighbour: u32| {
                let wanted = NodeId(hosts + neighbour);
                out.iter().copied().find(|link| topology.link(*link).to == wanted).unwrap_or(NONE)
            };
            for (dimension, size) in grid.size.iter().enumerate() {
                let stride = grid.stride(dimension);
                let here = coordinates[router as usize * grid.size.len() + dimension];
                let ring = grid.is_ring(dimension);
                let first = router - here * stride;
                let forward = match here + 1 {
                    next if next < *size => to(router + stride),
                    _ if ring => to(first),
                    _ => NONE,
                };
                let back = match here {
                    0 if ring => to(first + (size - 1) * stride),
                    0 => NONE,
                    _ => to(router - stride),
                };
                ports.extend([forward, back]);
            }
        }
        let up: Vec<LinkId> = (0..hosts).map(|host| topology.uplink(NodeId(host))).collect();
        Some(Self {
            hosts,
            concentration: grid.concentration,
            rings,
            size: (0..).zip(&grid.size).map(|(dimension, size)| (*size, grid.is_ring(dimension))).collect(),
            coordinates,
            ports,
            down: up.iter().map(|link| link.back()).collect(),
            up,
        })
    }

    /// How many classes of virtual lanes it needs.
    pub(super) fn classes(&self) -> u8 {
        if self.rings == Rings::Dateline && self.size.iter().any(|(_, ring)| *ring) { 2 } else { 1 }
    }

    /// Whether rings are kept from filling up by bubbles.
    pub(super) fn needs_bubbles(&self) -> bool {
        self.rings == Rings::Bubble && self.size.iter().any(|(_, ring)| *ring)
    }

    pub(super) fn routers(&self) -> u32 {
        crate::count::count(self.coordinates.len() / self.dimensions().max(1))
    }

    pub(super) fn dimensions(&self) -> usize {
        self.size.len()
    }

    pub(super) fn router(&self, at: NodeId) -> u32 {
        at.0 - self.hosts
    }

    /// The link of `router` forward or back in `dimension`; none at the end of a mesh.
    pub(super) fn port(&self, router: u32, dimension: usize, forward: bool) -> Option<LinkId> {
        let port = self.ports[(router as usize * self.size.len() + dimension) * 2 + usize::from(!forward)];
        (port != NONE).then_some(port)
    }

    /// The last link, if host `to` is at the router `at`; its own link, if `at` is a host.
    pub(super) fn end(&self, at: NodeId, to: NodeId) -> Option<&LinkId> {
        if at.0 < self.hosts {
            return Some(&self.up[at.0 as usize]);
        }
        (self.router(at) == to.0 / self.concentration).then(|| &self.down[to.0 as usize])
    }

    /// For each dimension whether forward, and back, lead nearer to host `to`; both half-way round a ring.
    pub(super) fn nearer(&self, at: NodeId, to: NodeId) -> impl Iterator<Item = (bool, bool)> {
        let dimensions = self.size.len();
        let coordinates = |router: u32| &self.coordinates[router as usize * dimensions..][..dimensions];
        let ways = coordinates(self.router(at)).iter().zip(coordinates(to.0 / self.concentration)).zip(&self.size);
        ways.map(|((a, b), (size, ring))| {
            if a == b {
                return (false, false);
            }
            let ahead = if b > a { b - a } else { b + size - a };
            if *ring { (ahead * 2 <= *size, ahead * 2 >= *size) } else { (b > a, b < a) }
        })
    }

    /// Where a packet for `to` goes on that stands at `at`, having come by `input_link`.
    pub(super) fn next(&self, at: NodeId, input_link: LinkId, to: NodeId) -> Candidates<'_> {
        let straight =
            |link| Candidates { links: std::slice::from_ref(link), class: 0, classes: 1, enters_ring: false };
        if at.0 < self.hosts {
            return straight(&self.up[at.0 as usize]);
        }
        if let Some(link) = self.end(at, to) {
            return straight(link);
        }
        let (router, target) = (self.router(at) as usize, (to.0 / self.concentration) as usize);
        let dimensions = self.size.len();
        let here = &self.coordinates[router * dimensions..(router + 1) * dimensions];
        let there = &self.coordinates[target * dimensions..(target + 1) * dimensions];
        let dimension = here.iter().zip(there).position(|(a, b)| a != b).unwrap_or(0);
        let (a, b) = (here[dimension], there[dimension]);
        let (size, ring) = self.size[dimension];
        let forward = if ring {
            let ahead = if b > a { b - a } else { b + size - a };
            // Where both ways are equally long, every other router sends forward.
            ahead * 2 < size || (ahead * 2 == size && a.is_multiple_of(2))
        } else {
            b > a
        };
        let port = (router * dimensions + dimension) * 2;
        let link = &self.ports[port + usize::from(!forward)];
        // The dateline lies between the last router and the first.
        let dateline_ahead = ring && if forward { b < a } else { b > a };
        let class = u8::from(dateline_ahead && self.rings == Rings::Dateline);
        // A packet stays in a ring if it goes on as it came: straight on from behind.
        let behind = self.ports[port + usize::from(forward)];
        let stays = behind != NONE && input_link == behind.back();
        let enters_ring = ring && self.rings == Rings::Bubble && !stays;
        Candidates { links: std::slice::from_ref(link), class, classes: 1, enters_ring }
    }

    /// The ring of a link between routers, as a number; links out of rings have none.
    pub(super) fn ring_of(&self, topology: &Topology, link: LinkId) -> Option<u64> {
        let link_data = topology.link(link);
        let router = link_data.from.0.checked_sub(self.hosts)? as usize;
        let dimensions = self.size.len();
        let ports = &self.ports[router * dimensions * 2..(router + 1) * dimensions * 2];
        let port = ports.iter().position(|known| *known == link)?;
        let (dimension, direction) = (port / 2, port % 2);
        if !self.size[dimension].1 {
            return None;
        }
        // The ring's router with coordinate 0 in its dimension stands for it.
        let mut first = 0u64;
        let mut stride = 1u64;
        for (other, (size, _)) in self.size.iter().enumerate() {
            if other != dimension {
                first += stride * u64::from(self.coordinates[router * dimensions + other]);
            }
            stride *= u64::from(*size);
        }
        Some((first * dimensions as u64 + dimension as u64) * 2 + direction as u64)
    }
}
