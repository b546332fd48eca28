//! Whether links may wait for each other for ever.
//!
//! A packet in the buffer behind a link waits for room behind the next one. If these waits can close a circle, a lossless
//! network may come to a standstill. The circle is looked for in the graph of all waits that the routing allows, whose
//! nodes are pairs of link and class of virtual lanes (the channel dependency graph of Dally and Seitz). A packet that
//! chose among several links waits for the chosen one alone, whatever else would be free: so `adaptive` gets no
//! credit for an escape, all links that it offers must be free of circles. With a routing whose packets wait for any of several
//! lanes (`minimal-adaptive`) the waits of its escape alone must be free of circles, from wherever packets may come to it: a
//! packet holds one buffer, so that what waits elsewhere does not tie two lanes of the escape (Duato's condition for
//! virtual cut-through).

use super::lattice_lanes::LatticeHops;
use super::minimal::MinimalHops;
use super::routes::NextHops;
use super::{Candidates, Lane, Routes, RoutingError};
use crate::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// Why a routing is free of deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlockFreedom {
    /// Packets go up, then down, and never up again.
    UpThenDown,
    /// Packets go dimension by dimension, and rings are cut by a dateline.
    DimensionOrder,
    /// As `DimensionOrder`, where nothing enters a ring but where two packets have room.
    Bubble,
    /// Packets wait for any of several lanes, and among those of the escape no circle was found (Duato).
    Escape {
        /// Pairs of link and class of the escape.
        channels: usize,
        /// Pairs of these of which one may wait for the other.
        waits: usize,
    },
    /// No circle was found among so many pairs of link and class and so many waits.
    Acyclic {
        /// Pairs of link and class that are used.
        channels: usize,
        /// Pairs of these of which one may wait for the other.
        waits: usize,
    },
}

impl fmt::Display for DeadlockFreedom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpThenDown => f.write_str("free of deadlock: packets go up, then down, and never up again"),
            Self::DimensionOrder => f.write_str("free of deadlock: dimension by dimension, rings cut by datelines"),
            Self::Bubble => f.write_str("free of deadlock where buffers hold two packets: no ring ever fills up"),
            Self::Escape { channels, waits } => {
                write!(
                    f,
                    "free of deadlock by its escape: no circle among {waits} waits of its {channels} links and classes"
                )
            }
            Self::Acyclic { channels, waits } => {
                write!(f, "free of deadlock: no circle among {waits} waits of {channels} links and classes")
            }
        }
    }
}

/// So many steps may be taken.
const MAX_STEPS: u64 = 300_000_000;

/// Who may wait for whom: of each link and class, those behind it.
struct Waits {
    classes: usize,
    next: Vec<Vec<u32>>,
    used: Vec<bool>,
}

impl Waits {
    /// Who holds `channel` may wait for `behind`.
    fn note(&mut self, channel: usize, behind: usize) {
        let known = &mut self.next[channel];
        let number = u32::try_from(behind).unwrap_or(u32::MAX);
        if !known.contains(&number) {
            known.push(number);
        }
    }

    /// Follows packets through a lattice, those of each pattern by themselves: from the hosts' `uplinks`, or, where there is an escape, from
    /// all routers, to which its other lanes may bring them.
    fn follow(&mut self, topology: &Topology, lattice: &LatticeHops, uplinks: &[LinkId], targets: &[NodeId]) {
        let classes = self.classes;
        let channel_of = |lane: &Lane| usize::from(lane.link) * classes + usize::from(lane.class);
        let mut seen = vec![u64::MAX; self.next.len()];
        let mut round = 0;
        for to in targets {
            for pattern in lattice.ways().patterns(*to) {
                let mut open: Vec<Lane> = Vec::new();
                if lattice.escape_classes() > 0 {
                    let routers = (topology.hosts()..topology.nodes()).map(NodeId);
                    open.extend(routers.flat_map(|at| lattice.waited(at, None, *to, pattern)));
                } else {
                    for link in uplinks {
                        let input_lane = Some(Lane { link: *link, class: 0 });
                        open.extend(lattice.waited(topology.link(*link).to, input_lane, *to, pattern));
                    }
                }
                let held: Vec<Lane> = open.iter().filter_map(|lane| lattice.held(lane)).collect();
                open.extend(held);
                while let Some(lane) = open.pop() {
                    let channel = channel_of(&lane);
                    if std::mem::replace(&mut seen[channel], round) == round {
                        continue;
                    }
                    self.used[channel] = true;
                    let at = topology.link(lane.link).to;
                    if topology.is_host(at) {
                        continue;
                    }
                    for behind in lattice.waited(at, Some(lane), *to, pattern) {
                        self.note(channel, channel_of(&behind));
                        open.extend([behind].into_iter().chain(lattice.held(&behind)));
                    }
                }
                round += 1;
            }
        }
    }
}

impl Waits {
    /// Who waits for whom at any router waits so at each, where a lattice is uniform: what packets to one router wait for stands for all.
    fn spread(&mut self, lattice: &LatticeHops) {
        let (ways, classes) = (lattice.ways(), self.classes);
        let lane_of = |channel: usize| Some((ways.direction_of(LinkId::from(channel / classes))?, channel % classes));
        let mut turns = BTreeSet::new();
        for (channel, behind) in self.next.iter().enumerate() {
            let from = lane_of(channel);
            turns.extend(behind.iter().filter_map(|to| Some((from?, lane_of(*to as usize)?))));
        }
        for router in 0..ways.routers() {
            for (((axis, forward), class), ((next_axis, next_forward), next_class)) in &turns {
                let from = ways.behind(router, *axis, *forward);
                let to = ways.port(router, *next_axis, *next_forward);
                let (Some(from), Some(to)) = (from, to) else { continue };
                let (channel, behind) = (usize::from(from) * classes + class, usize::from(*to) * classes + next_class);
                self.note(channel, behind);
                (self.used[channel], self.used[behind]) = (true, true);
            }
        }
    }
}

impl Routes {
    /// Whether the routing is free of deadlock in a network without losses, and why.
    ///
    /// # Errors
    /// With the links that wait for each other, or if that cannot be found out in reasonable time.
    pub fn deadlock_freedom(&self, topology: &Topology) -> Result<DeadlockFreedom, RoutingError> {
        match &self.next_hops {
            NextHops::Tree(_) | NextHops::Minimal(MinimalHops::Tree(_)) => return Ok(DeadlockFreedom::UpThenDown),
            NextHops::Graph(sets) if sets.is_up_down() => return Ok(DeadlockFreedom::UpThenDown),
            NextHops::Grid(grid) if grid.needs_bubbles() => return Ok(DeadlockFreedom::Bubble),
            NextHops::Lattice(lattice) if lattice.needs_bubbles() && self.steps(topology) > MAX_STEPS => {
                return Ok(DeadlockFreedom::Bubble);
            }
            NextHops::Grid(_) | NextHops::Lattice(_) | NextHops::Minimal(MinimalHops::Grid(_))
                if self.steps(topology) > MAX_STEPS =>
            {
                return Ok(DeadlockFreedom::DimensionOrder);
            }
            NextHops::Minimal(MinimalHops::Graph { .. }) if self.steps(topology) > MAX_STEPS => {
                return Ok(DeadlockFreedom::UpThenDown);
            }
            _ => {}
        }
        let steps = self.steps(topology);
        if steps > MAX_STEPS {
            return Err(RoutingError::Unchecked { routing: self.config().to_string(), steps, most: MAX_STEPS });
        }
        let waits = self.waits(topology);
        if let Some(cycle) = self.cycle_in(topology, &waits) {
            return Err(RoutingError::Deadlock {
                routing: self.config().to_string(),
                cycle: self.shown(topology, &cycle),
                advice: "up-down is free of deadlock everywhere, dor and bubble on meshes and tori",
            });
        }
        if matches!(&self.next_hops, NextHops::Lattice(lattice) if lattice.needs_bubbles()) {
            return Ok(DeadlockFreedom::Bubble);
        }
        let channels = waits.used.iter().filter(|used| **used).count();
        let waits = waits.next.iter().map(Vec::len).sum();
        Ok(match self.escape_classes() {
            0 => DeadlockFreedom::Acyclic { channels, waits },
            _ => DeadlockFreedom::Escape { channels, waits },
        })
    }

    /// A circle of waits, as links with their classes, the first again at the end; looked for even where the form of the
    /// routing rules it out. Waits inside a ring that keeps a bubble do not count.
    #[must_use]
    pub fn cycle(&self, topology: &Topology) -> Option<Vec<(LinkId, u8)>> {
        self.cycle_in(topology, &self.waits(topology))
    }

    /// How many steps it takes to find all waits.
    fn steps(&self, topology: &Topology) -> u64 {
        let targets = match &self.next_hops {
            NextHops::Table(_) => u64::from(topology.hosts()),
            NextHops::Lattice(lattice) if lattice.is_uniform() => 1,
            _ => u64::from(topology.switches().min(topology.hosts())),
        };
        let patterns = match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().patterns_count(),
            _ => 1,
        };
        targets.saturating_mul(topology.links().len() as u64).saturating_mul(patterns)
    }

    /// Follows packets from all hosts to all hosts, and notes which link they wait for behind which.
    fn waits(&self, topology: &Topology) -> Waits {
        let classes = usize::from(self.classes());
        let channels = topology.links().len() * classes;
        let mut waits = Waits { classes, next: vec![Vec::new(); channels], used: vec![false; channels] };
        // One host of each switch stands for all, but for tables, which know every host apart.
        let mut first_at = vec![None; topology.nodes() as usize];
        for host in (0..topology.hosts()).map(NodeId) {
            first_at[topology.switch_of(host).0 as usize].get_or_insert(host);
        }
        let sources: Vec<NodeId> = first_at.into_iter().flatten().collect();
        let targets: Vec<NodeId> = match &self.next_hops {
            NextHops::Table(_) => (0..topology.hosts()).map(NodeId).collect(),
            _ => sources.clone(),
        };
        if let NextHops::Lattice(lattice) = &self.next_hops {
            let uplinks = sources.iter().map(|source| topology.uplink(*source)).collect::<Vec<_>>();
            if lattice.is_uniform() {
                waits.follow(topology, lattice, &uplinks, &targets[..1]);
                waits.spread(lattice);
            } else {
                waits.follow(topology, lattice, &uplinks, &targets);
            }
            return waits;
        }
        let mut seen = vec![u32::MAX; channels];
        let mut open = Vec::new();
        for to in targets {
            if self.escape_classes() > 0 {
                // The shortest ways may bring a packet to any switch, from which it takes the escape.
                for at in (topology.hosts()..topology.nodes()).map(NodeId) {
                    let next = self.escape(at, LinkId(u32::MAX), false, to);
                    open.extend(next.iter().flat_map(|next| channels_of(next, classes)));
                }
            } else {
                for source in &sources {
                    let input_link = topology.uplink(*source);
                    open.extend(channels_of(&self.next(topology.link(input_link).to, input_link, to), classes));
                }
            }
            while let Some(channel) = open.pop() {
                if std::mem::replace(&mut seen[channel], to.0) == to.0 {
                    continue;
                }
                waits.used[channel] = true;
                let link = LinkId(u32::try_from(channel / classes).unwrap_or(u32::MAX));
                let at = topology.link(link).to;
                if topology.is_host(at) {
                    continue;
                }
                // Whoever waits for an escape, waits for that: all else that it may take is one way more.
                let next = match self.escape_classes() {
                    0 => Some(self.next(at, link, to)),
                    _ => self.escape(at, link, true, to),
                };
                for behind in next.iter().flat_map(|next| channels_of(next, classes)) {
                    waits.note(channel, behind);
                    open.push(behind);
                }
            }
        }
        waits
    }

    fn cycle_in(&self, topology: &Topology, waits: &Waits) -> Option<Vec<(LinkId, u8)>> {
        let classes = waits.classes;
        let link_of = |channel: usize| LinkId(u32::try_from(channel / classes).unwrap_or(u32::MAX));
        let ring_of = |channel: usize| match &self.next_hops {
            NextHops::Grid(grid) if grid.needs_bubbles() => grid.ring_of(topology, link_of(channel)),
            NextHops::Lattice(lattice) if lattice.needs_bubbles() => lattice.ways().ring_of(topology, link_of(channel)),
            _ => None,
        };
        let cycle = match self.packets_of_room() {
            2.. => {
                // A ring with a bubble moves on as a whole: its links are taken for one.
                let mut group: Vec<usize> = (0..waits.next.len()).collect();
                let mut first = std::collections::BTreeMap::new();
                for (channel, group) in group.iter_mut().enumerate() {
                    if let Some(ring) = ring_of(channel) {
                        *group = *first.entry((ring, channel % classes)).or_insert(channel);
                    }
                }
                let mut next = vec![Vec::new(); waits.next.len()];
                for (channel, behind) in waits.next.iter().enumerate() {
                    let here = group[channel];
                    let others = behind.iter().map(|next| group[*next as usize]).filter(|next| *next != here);
                    next[here].extend(others.map(|next| u32::try_from(next).unwrap_or(u32::MAX)));
                }
                circle(&next)
            }
            _ => circle(&waits.next),
        }?;
        let class = |channel: usize| u8::try_from(channel % classes).unwrap_or(0);
        Some(cycle.into_iter().map(|channel| (link_of(channel), class(channel))).collect())
    }

    /// A circle in words.
    fn shown(&self, topology: &Topology, cycle: &[(LinkId, u8)]) -> String {
        let name = |(link, class): &(LinkId, u8)| match self.classes() {
            1 => topology.link_name(*link).into_string(),
            _ => format!("{} (class {class})", topology.link_name(*link)),
        };
        cycle.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

/// The pairs of link and class that a packet may take.
fn channels_of<'a>(next: &Candidates<'a>, classes: usize) -> impl Iterator<Item = usize> + use<'a> {
    let range = usize::from(next.class)..usize::from(next.class) + usize::from(next.classes);
    next.links.iter().flat_map(move |link| range.clone().map(move |class| link.0 as usize * classes + class))
}

/// A circle in a graph, the first again at the end.
fn circle(next: &[Vec<u32>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; next.len()];
    for start in 0..next.len() {
        if states[start] != State::New {
            continue;
        }
        // The way from the start, with how many of each one's successors were looked at.
        let mut way = vec![(start, 0)];
        states[start] = State::Open;
        while let Some((here, looked)) = way.last_mut() {
            let Some(behind) = next[*here].get(*looked) else {
                states[*here] = State::Done;
                way.pop();
                continue;
            };
            *looked += 1;
            let behind = *behind as usize;
            match states[behind] {
                State::New => {
                    states[behind] = State::Open;
                    way.push((behind, 0));
                }
                State::Open => {
                    let begin = way.iter().position(|(channel, _)| *channel == behind).unwrap_or(0);
                    let cycle = way[begin..].iter().map(|(channel, _)| *channel);
                    return cycle.map(|channel| shortest_circle(next, channel)).min_by_key(Vec::len);
                }
                State::Done => {}
            }
        }
    }
    None
}

/// The shortest circle through `start`, which is known to lie on one.
fn shortest_circle(next: &[Vec<u32>], start: usize) -> Vec<usize> {
    let mut before = vec![usize::MAX; next.len()];
    let mut reached = VecDeque::from([start]);
    while let Some(here) = reached.pop_front() {
        for behind in next[here].iter().map(|behind| *behind as usize) {
            if behind == start {
                let mut cycle = vec![start, here];
                while let Some(last) = cycle.last().filter(|last| **last != start) {
                    cycle.push(before[*last]);
                }
                cycle.reverse();
                return cycle;
            }
            if before[behind] == usize::MAX {
                before[behind] = here;
                reached.push_back(behind);
            }
        }
    }
    vec![start]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::routing::RoutingConfig;
    use crate::topology::TopologyConfig;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Keys {
        routing: RoutingConfig,
        topology: TopologyConfig,
    }

    /// The waits between routers, found by following packets to all of them or, `once`, to the first one.
    fn waits_between_routers(topology: &Topology, lattice: &LatticeHops, once: bool) -> Vec<Vec<u32>> {
        let classes = usize::from(lattice.classes());
        let channels = topology.links().len() * classes;
        let mut waits = Waits { classes, next: vec![Vec::new(); channels], used: vec![false; channels] };
        let hosts: Vec<NodeId> = (0..topology.hosts()).map(NodeId).collect();
        let uplinks: Vec<LinkId> = hosts.iter().map(|host| topology.uplink(*host)).collect();
        waits.follow(topology, lattice, &uplinks, if once { &hosts[..1] } else { &hosts });
        if once {
            waits.spread(lattice);
        }
        let is_inner = |channel: usize| lattice.ways().direction_of(LinkId::from(channel / classes)).is_some();
        let sorted = |(channel, mut behind): (usize, Vec<u32>)| {
            behind.retain(|behind| is_inner(channel) && is_inner(*behind as usize));
            behind.sort_unstable();
            behind
        };
        waits.next.into_iter().enumerate().map(sorted).collect()
    }

    #[test]
    fn on_a_uniform_lattice_one_destination_stands_for_all() {
        for shape in [
            "shape = \"torus\"\nsize = [4, 5]",
            "shape = \"torus\"\nsize = [2, 3, 4]",
            "shape = \"torus\"\nsize = [5]",
            "shape = \"torus\"\nsize = [4, 4]\nways = 1",
            "shape = \"torus\"\nsize = [6, 3]\ntwist = { y = { x = 3 } }",
            "shape = \"midimew\"\nrouters = 13",
            "shape = \"spinnaker\"\nsize = [4, 4]",
        ] {
            for mode in ["oblivious", "random", "smart"] {
                let text = format!("routing = {{ bubble = \"{mode}\", vcs = 2 }}\n[topology]\n{shape}");
                let Keys { routing, topology } =
                    toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                let topology = topology.build(&[]).unwrap();
                let routes = Routes::new(&routing, &topology, 1).unwrap();
                let NextHops::Lattice(lattice) = &routes.next_hops else { panic!("{shape} is no lattice") };
                assert!(lattice.is_uniform(), "{shape}");
                let all = waits_between_routers(&topology, lattice, false);
                assert!(all.iter().any(|behind| !behind.is_empty()), "{shape}");
                assert_eq!(waits_between_routers(&topology, lattice, true), all, "{shape}, {mode}");
            }
        }
    }
}
