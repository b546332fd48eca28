//! What can be reckoned about a topology without simulating: counts, distances, bisection.

use super::{Grid, NodeId, Structure, Topology, Tree};
use crate::count::count;
use crate::units::Rate;
use serde::Serialize;
use std::collections::VecDeque;

/// One level of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Its number; switches with hosts are level 1.
    pub level: u32,
    /// Its switches.
    pub switches: u32,
    /// Ports of each that lead down.
    pub down: u32,
    /// Ports of each that lead up.
    pub up: u32,
    /// Bits a second that may come from below for each that may go on up; null at the top, and where a rate is
    /// unlimited.
    pub oversubscription: Option<f64>,
}

/// Counts, distances and bisection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Hosts, each with one cable.
    pub hosts: u32,
    /// Switches or routers.
    pub switches: u32,
    /// Cables; each is two links.
    pub cables: u64,
    /// Most ports of a switch.
    pub ports_max: u32,
    /// Most switches between two hosts.
    pub diameter_switches: Option<u32>,
    /// Switches between two hosts, the mean over all pairs of different ones; null with a single host, or where the
    /// graph is too large to look at all.
    pub mean_switches: Option<f64>,
    /// Pairs (ordered) of different hosts by the number of switches between them, from 0 on.
    pub pairs_by_switches: Vec<u64>,
    /// Cables that join two halves of the network; what the halves are is said in `docs/topologies.md`.
    pub bisection_cables: Option<u64>,
    /// The rate of these cables in one direction, in bit/s; null where one is unlimited.
    pub bisection_bps: Option<u64>,
    /// Levels of a tree, from below.
    pub levels: Vec<Level>,
}

/// So many steps may be taken to look at all distances of a graph.
const MAX_STEPS: u64 = 2_000_000_000;

/// Reckons the figures of a topology.
#[must_use]
pub fn figures(topology: &Topology) -> Figures {
    let ports = (topology.hosts()..topology.nodes()).map(|switch| topology.out(NodeId(switch)).len());
    let (pairs, bisection, levels) = match topology.structure() {
        Structure::Tree(tree) => (Some(tree_pairs(tree)), tree_bisection(topology, tree), tree_levels(topology, tree)),
        Structure::Grid(grid) => (Some(grid_pairs(grid)), grid_bisection(topology, grid), Vec::new()),
        Structure::Any | Structure::Lattice(_) => (any_pairs(topology), super::cut::halves(topology), Vec::new()),
    };
    let known = pairs.unwrap_or_default();
    let all: u64 = known.iter().sum();
    let total: u64 = (0..).zip(&known).map(|(switches, pairs)| switches * pairs).sum();
    Figures {
        hosts: topology.hosts(),
        switches: topology.switches(),
        cables: topology.links().len() as u64 / 2,
        ports_max: count(ports.max().unwrap_or(0)),
        diameter_switches: known.iter().rposition(|pairs| *pairs > 0).map(count),
        #[expect(clippy::cast_precision_loss, reason = "a mean of at most 2^53 pairs")]
        mean_switches: (all > 0).then(|| total as f64 / all as f64),
        pairs_by_switches: known,
        bisection_cables: bisection.map(|(cables, _)| cables),
        bisection_bps: bisection.and_then(|(_, rate)| rate),
        levels,
    }
}

/// Two hosts whose nearest common switch is of level `l` have 2 l - 1 switches between them.
fn tree_pairs(tree: &Tree) -> Vec<u64> {
    let mut pairs = vec![0; 2 * tree.height()];
    for level in 1..=tree.height() {
        let others = u64::from(tree.below(level) - tree.below(level - 1));
        pairs[2 * level - 1] = u64::from(tree.nodes(0)) * others;
    }
    pairs
}

/// A cable's rate, at each level: any one, for all are the same.
fn tree_rates(topology: &Topology, tree: &Tree) -> Vec<Rate> {
    let mut first = 0;
    (0..tree.height())
        .map(|level| {
            let up = topology.out(NodeId(first)).last().map(|link| topology.link(*link).rate);
            first += tree.nodes(level);
            up.unwrap_or(Rate::UNLIMITED)
        })
        .collect()
}

/// Half the subtrees below the top against the other half: at the level where the links up of a half are fewest.
fn tree_bisection(topology: &Topology, tree: &Tree) -> Option<(u64, Option<u64>)> {
    let across = |level: usize| {
        u64::from(tree.nodes(level)) * u64::from(tree.parents(level)) * u64::from(tree.cables(level)) / 2
    };
    let cables = (0..tree.height()).map(across).min()?;
    let rates = tree_rates(topology, tree);
    let bps = (0..tree.height()).filter_map(|level| rates[level].bps().map(|bps| bps.saturating_mul(across(level))));
    Some((cables, bps.min()))
}

fn tree_levels(topology: &Topology, tree: &Tree) -> Vec<Level> {
    let rates = tree_rates(topology, tree);
    let level = |level: usize| {
        let down = tree.children(level) * tree.cables(level - 1);
        let up = tree.parents(level) * tree.cables(level);
        let below = rates[level - 1].bps();
        let above = rates.get(level).and_then(|rate| rate.bps());
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let ratio = |below: u64, above: u64| below as f64 * f64::from(down) / (above as f64 * f64::from(up));
        Level {
            level: count(level),
            switches: tree.nodes(level),
            down,
            up,
            oversubscription: below.zip(above).map(|(below, above)| ratio(below, above)),
        }
    };
    (1..=tree.height()).map(level).collect()
}

/// The distances of each dimension, folded: the number of (ordered) pairs of routers at each distance.
fn grid_pairs(grid: &Grid) -> Vec<u64> {
    let mut routers = vec![1u64];
    for (dimension, size) in grid.size.iter().enumerate() {
        let mut here = vec![0u64; *size as usize];
        for distance in 0..*size {
            if grid.is_ring(dimension) {
                here[distance.min(size - distance) as usize] += u64::from(*size);
            } else {
                here[distance as usize] = u64::from(size - distance) * if distance == 0 { 1 } else { 2 };
            }
        }
        let mut folded = vec![0u64; routers.len() + here.len() - 1];
        for (a, pairs) in routers.iter().enumerate() {
            for (b, others) in here.iter().enumerate() {
                folded[a + b] += pairs * others;
            }
        }
        routers = folded;
    }
    let each = u64::from(grid.concentration);
    let mut pairs = vec![0];
    pairs.extend(routers.iter().map(|pairs| pairs * each * each));
    // A host with itself is no pair.
    pairs[1] -= u64::from(grid.routers()) * each;
    while pairs.last() == Some(&0) && pairs.len() > 1 {
        pairs.pop();
    }
    pairs
}

/// The longest dimension cut in the middle, and a ring opposite, too.
fn grid_bisection(topology: &Topology, grid: &Grid) -> Option<(u64, Option<u64>)> {
    let (dimension, size) =
        (0..).zip(&grid.size).max_by_key(|(dimension, size)| (**size, std::cmp::Reverse(*dimension)))?;
    if *size < 2 {
        return None;
    }
    let lines = u64::from(grid.routers() / size);
    let cables = lines * if grid.is_ring(dimension) { 2 } else { 1 };
    let first = topology.hosts();
    let neighbour = NodeId(first + grid.stride(dimension));
    let cable = topology.out(NodeId(first)).iter().find(|link| topology.link(**link).to == neighbour)?;
    Some((cables, topology.link(*cable).rate.bps().map(|bps| bps.saturating_mul(cables))))
}

/// Distances in any graph, by a search from each switch that has hosts.
fn any_pairs(topology: &Topology) -> Option<Vec<u64>> {
    let mut at = vec![0u64; topology.switches() as usize];
    for host in 0..topology.hosts() {
        at[(topology.switch_of(NodeId(host)).0 - topology.hosts()) as usize] += 1;
    }
    let sources = at.iter().filter(|hosts| **hosts > 0).count() as u64;
    if sources.saturating_mul(topology.links().len() as u64) > MAX_STEPS {
        return None;
    }
    let mut pairs = vec![0u64];
    for (source, hosts) in (topology.hosts()..).map(NodeId).zip(&at) {
        if *hosts == 0 {
            continue;
        }
        for (switch, distance) in (0usize..).zip(distances(topology, source)) {
            let Some(distance) = distance else { continue };
            let others = if distance == 0 { hosts - 1 } else { at[switch] };
            let switches = distance as usize + 1;
            if pairs.len() <= switches {
                pairs.resize(switches + 1, 0);
            }
            pairs[switches] += hosts * others;
        }
    }
    while pairs.last() == Some(&0) && pairs.len() > 1 {
        pairs.pop();
    }
    Some(pairs)
}

/// Each switch's distance from `source`, in links; hosts are not passed.
fn distances(topology: &Topology, source: NodeId) -> Vec<Option<u32>> {
    let hosts = topology.hosts();
    let mut distances = vec![None; topology.switches() as usize];
    distances[(source.0 - hosts) as usize] = Some(0);
    let mut reached = VecDeque::from([(source, 0)]);
    while let Some((node, here)) = reached.pop_front() {
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if to.0 >= hosts && distances[(to.0 - hosts) as usize].is_none() {
                distances[(to.0 - hosts) as usize] = Some(here + 1);
                reached.push_back((to, here + 1));
            }
        }
    }
    distances
}
