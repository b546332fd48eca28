//! The links of paths through trees, from numbers of hosts alone: no switch is looked up on the way.
//!
//! The path of a pair goes up to the level where both are below one switch, and down again. Routings whose links depend on one
//! end only, its destination (D-mod-k) or its source (S-mod-k), take at each level the cable of the same number among those of
//! the subtree that the end of the cable is in: so two numbers for each host and level say it, and are read off one path.

use crate::CongestionError;
use netsim::topology::{LinkId, NodeId, Topology, Tree};

/// Which end of a path decides on its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// Its source.
    Source,
    /// Its destination.
    Destination,
}

/// A host's numbers at one level.
#[derive(Clone, Copy, Debug, Default)]
struct LevelCables {
    /// The first cable that leads up from the roots of its subtree.
    begin: u32,
    /// The cable that paths take up that it decides on, counted from their source's first one.
    up: u32,
    /// The cable that paths take down that it decides on, counted from their destination's first one.
    down: u32,
}

/// The links of paths through a tree. Cable `c` is link 2c up and 2c + 1 down; these are numbers of this table.
#[derive(Clone, Debug)]
pub(crate) struct TreeLinks {
    height: usize,
    decided_by: DecidedBy,
    /// Of each host, level by level from its own cable on.
    places: Vec<LevelCables>,
    /// The topology's links.
    links: Vec<LinkId>,
}

/// Links that lead up.
struct Cables {
    /// The number of the cable to which each of the topology's links belongs.
    numbers: Vec<u32>,
    links: Vec<LinkId>,
    /// For each level, its first cable, and how many lead up from a subtree.
    levels: Vec<(u32, u32)>,
}

impl Cables {
    /// Numbers the cables level by level, subtree by subtree.
    fn of(topology: &Topology, tree: &Tree) -> Self {
        let mut cables = Self { numbers: vec![0; topology.links().len()], links: Vec::new(), levels: Vec::new() };
        let (mut node, mut number) = (0, 0);
        for level in 0..tree.height() {
            cables.levels.push((number, tree.copies(level) * tree.parents(level) * tree.cables(level)));
            for _ in 0..tree.nodes(level) {
                let up = topology.out(NodeId(node)).iter().filter(|link| topology.link(**link).to.0 > node);
                for link in up {
                    cables.links.extend([*link, link.back()]);
                    cables.numbers[link.0 as usize] = number;
                    cables.numbers[link.back().0 as usize] = number;
                    number += 1;
                }
                node += 1;
            }
        }
        cables
    }
}

impl TreeLinks {
    /// The links that `walk` appends for pairs of hosts; it must follow one of the routings above.
    pub(crate) fn new(
        topology: &Topology,
        tree: &Tree,
        decided_by: DecidedBy,
        mut walk: impl FnMut(NodeId, NodeId, &mut Vec<LinkId>) -> Result<(), CongestionError>,
    ) -> Result<Self, CongestionError> {
        let (height, hosts) = (tree.height(), topology.hosts());
        let cables = Cables::of(topology, tree);
        let mut places = vec![LevelCables::default(); hosts as usize * height];
        let begin = |host: u32, level: usize| {
            let (first, of_subtree) = cables.levels[level];
            first + host / tree.below(level) * of_subtree
        };
        let apart =
            |one: u32, other: u32| (0..height).take_while(|l| one / tree.below(*l) != other / tree.below(*l)).count();
        let mut path = Vec::new();
        for host in 0..hosts {
            // One of the two is as far away as any host.
            let other = if apart(host, 0) > apart(host, hosts - 1) { 0 } else { hosts - 1 };
            let (from, to) = if decided_by == DecidedBy::Source { (host, other) } else { (other, host) };
            path.clear();
            walk(NodeId(from), NodeId(to), &mut path)?;
            let number = |link: &LinkId| cables.numbers[link.0 as usize];
            let of_host = &mut places[host as usize * height..][..height];
            for (level, place) in of_host.iter_mut().enumerate() {
                place.begin = begin(host, level);
            }
            for (level, place) in of_host.iter_mut().enumerate().take(path.len() / 2) {
                place.up = number(&path[level]) - begin(from, level);
                place.down = number(&path[path.len() - 1 - level]) - begin(to, level);
            }
        }
        Ok(Self { height, decided_by, places, links: cables.links })
    }

    /// How many links a path may have.
    pub(crate) const fn longest(&self) -> usize {
        2 * self.height
    }

    /// The topology's links by their numbers here.
    pub(crate) fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// Writes the links from host `from` to host `to` into the front of `path`, in no order, and says how many they are.
    #[inline]
    pub(crate) fn write(&self, from: NodeId, to: NodeId, path: &mut [u32]) -> usize {
        let of = |host: NodeId| &self.places[host.0 as usize * self.height..][..self.height];
        let (source, destination) = (of(from), of(to));
        let decides = if self.decided_by == DecidedBy::Source { source } else { destination };
        let mut count = 0;
        let levels = source.iter().zip(destination).zip(decides).zip(path.chunks_exact_mut(2));
        for (((source, destination), decides), links) in levels {
            if source.begin == destination.begin {
                break;
            }
            links[0] = 2 * (source.begin + decides.up);
            links[1] = 2 * (destination.begin + decides.down) + 1;
            count += 2;
        }
        count
    }
}
