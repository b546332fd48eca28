//! What jobs ask containers for, and how near to its data a map gets one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trace::ids::TaskId;

use crate::kernel::StepId;
use crate::world::{NodeId, World};

/// A map that wants a container.
#[derive(Debug)]
pub(super) struct MapRequest {
    pub(super) map: TaskId,
    /// The step by which the ResourceManager knows.
    pub(super) asked: StepId,
    /// Hosts that its split names.
    hosts: Vec<NodeId>,
}

/// How many maps ask for a container at a place (`LocalityAppPlacementAllocator`); places that none asks for are left out.
#[derive(Debug, Default)]
struct Asks {
    nodes: BTreeMap<NodeId, u32>,
    racks: BTreeMap<u32, u32>,
}

impl Asks {
    fn add(&mut self, hosts: &[NodeId], world: &World) {
        for node in hosts {
            *self.nodes.entry(*node).or_default() += 1;
        }
        for rack in racks(hosts, world) {
            *self.racks.entry(rack).or_default() += 1;
        }
    }

    fn take_back(&mut self, hosts: &[NodeId], world: &World) {
        for node in hosts {
            one_less(&mut self.nodes, *node);
        }
        for rack in racks(hosts, world) {
            one_less(&mut self.racks, rack);
        }
    }

    /// Nodes, racks, and anywhere (`getUniqueLocationAsks`).
    fn places(&self) -> usize {
        self.nodes.len() + self.racks.len() + 1
    }
}

fn racks(hosts: &[NodeId], world: &World) -> BTreeSet<u32> {
    hosts.iter().map(|node| world.rack(*node)).collect()
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// What a job still has no containers for.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) asked: Option<StepId>,
    /// The lists below have their numbers.
    requests: Vec<MapRequest>,
    by_node: BTreeMap<NodeId, VecDeque<u32>>,
    by_rack: BTreeMap<u32, VecDeque<u32>>,
    anywhere: VecDeque<u32>,
    is_taken: Vec<bool>,
    asks: Asks,
    /// Wishes that are not fulfilled.
    pub(super) maps: usize,
    pub(super) reduces: VecDeque<(TaskId, StepId)>,
    /// How often a node was looked at since a map got a container near its data.
    missed_opportunities: u64,
}

/// What decides how long maps wait for a place near their data.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalityDelay {
    /// Of the cluster.
    pub(super) nodes: u64,
    /// `yarn.scheduler.capacity.node-locality-delay`.
    pub(super) node_locality_delay: u64,
}

/// How far a map is from its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locality {
    NodeLocal,
    RackLocal,
    OffSwitch,
}

impl Pending {
    /// Whether the ResourceManager knows of the maps.
    pub(super) const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    pub(super) const fn maps_left(&self) -> usize {
        self.maps
    }

    /// A map wants a container, if possible on one of the hosts that its split names.
    pub(super) fn add_map(&mut self, map: TaskId, asked: StepId, hosts: &[NodeId], world: &World) {
        let number = self.requests.len() as u32;
        self.is_taken.push(false);
        self.maps += 1;
        for node in hosts {
            self.by_node.entry(*node).or_default().push_back(number);
        }
        for rack in racks(hosts, world) {
            self.by_rack.entry(rack).or_default().push_back(number);
        }
        self.anywhere.push_back(number);
        self.asks.add(hosts, world);
        self.requests.push(MapRequest { map, asked, hosts: hosts.to_vec() });
    }

    /// A task wants no further container.
    pub(super) fn withdraw(&mut self, task: TaskId, world: &World) {
        self.reduces.retain(|(reduce, _)| *reduce != task);
        for number in 0..self.requests.len() {
            if self.requests[number].map == task && !self.is_taken[number] {
                self.take(number, world);
            }
        }
    }

    /// The map that a node with room gets, as `RegularContainerAllocator.canAssign` has it, except that a map which got one asks nowhere else at once, and
    /// not when its master says so a heartbeat later.
    pub(super) fn choose_map(
        &mut self,
        node: NodeId,
        delay: LocalityDelay,
        world: &World,
        is_known: impl Fn(StepId) -> bool,
    ) -> Option<(&MapRequest, Locality)> {
        if self.maps == 0 {
            return None;
        }
        let opportunities = self.missed_opportunities + 1;
        let is_open =
            |number: u32| (!self.is_taken[number as usize]).then(|| is_known(self.requests[number as usize].asked));
        let mut chosen = first(self.by_node.get_mut(&node), is_open).map(|number| (number, Locality::NodeLocal));
        if chosen.is_none() && opportunities > delay.node_locality_delay.min(delay.nodes) {
            chosen =
                first(self.by_rack.get_mut(&world.rack(node)), is_open).map(|number| (number, Locality::RackLocal));
        }
        if chosen.is_none() && self.goes_off_switch(opportunities, delay.nodes) {
            chosen = first(Some(&mut self.anywhere), is_open).map(|number| (number, Locality::OffSwitch));
        }
        let is_near = chosen.is_some_and(|(_, locality)| locality != Locality::OffSwitch);
        self.missed_opportunities = if is_near { 0 } else { opportunities };
        let (number, locality) = chosen?;
        self.take(number as usize, world);
        Some((&self.requests[number as usize], locality))
    }

    /// A node was looked at that has too little room.
    pub(super) const fn miss(&mut self) {
        self.missed_opportunities += (self.maps > 0) as u64;
    }

    /// Whether so many opportunities are enough for a container anywhere: the fewer maps wait, and the fewer places they ask
    /// for, the fewer are needed (`getLocalityWaitFactor`).
    fn goes_off_switch(&self, opportunities: u64, nodes: u64) -> bool {
        let places = self.asks.places();
        let wait_factor = ((places - 1) as f64 / nodes as f64).min(1.0);
        places == 1 || (self.maps as f64 * wait_factor).min(nodes as f64) < opportunities as f64
    }

    fn take(&mut self, number: usize, world: &World) {
        self.is_taken[number] = true;
        self.maps -= 1;
        self.asks.take_back(&self.requests[number].hosts, world);
    }
}

/// The first request of a list that is open, told whether the ResourceManager knows of it; none if it does not.
fn first(list: Option<&mut VecDeque<u32>>, is_open: impl Fn(u32) -> Option<bool>) -> Option<u32> {
    let list = list?;
    while let Some(number) = list.front().copied() {
        match is_open(number) {
            Some(false) => return None,
            Some(true) => return list.pop_front(),
            None => drop(list.pop_front()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::JobFile;

    /// Four workers, two racks (of the even and the odd ones), and maps whose blocks have one copy each, at these workers.
    fn pending(blocks: &[u32]) -> (Pending, World) {
        let file = JobFile::parse("[cluster]\nnodes = 4\nracks = 2\n[[job]]\ninput = \"1GB\"\n").unwrap();
        let world = World::new(&file.cluster);
        let mut pending = Pending::default();
        for (map, node) in (0u32..).zip(blocks) {
            pending.add_map(TaskId(map), StepId(0), &[NodeId(*node)], &world);
        }
        (pending, world)
    }

    fn beats(pending: &mut Pending, world: &World, nodes: &[u32]) -> Vec<Option<Locality>> {
        let delay = LocalityDelay { nodes: 4, node_locality_delay: 40 };
        nodes.iter().map(|node| pending.choose_map(NodeId(*node), delay, world, |_| true).map(|(_, it)| it)).collect()
    }

    #[test]
    fn the_last_map_goes_to_the_first_node_with_room() {
        let (mut pending, world) = pending(&[0, 0, 1, 3]);
        let (near, far) = (Some(Locality::NodeLocal), Some(Locality::OffSwitch));
        // One map and two places of four nodes: half an opportunity.
        assert_eq!(beats(&mut pending, &world, &[1, 0, 3, 2, 2]), [near, near, near, far, None]);
    }

    #[test]
    fn many_maps_wait_for_as_many_opportunities_as_there_are_nodes() {
        let (mut pending, world) = pending(&[0; 10]);
        let far = Some(Locality::OffSwitch);
        // Ten maps and two places are five opportunities, and four are enough; those off switch do not set them back.
        assert_eq!(beats(&mut pending, &world, &[1, 3, 1, 3, 1, 3]), [None, None, None, None, far, far]);
        assert_eq!(beats(&mut pending, &world, &[2]), [Some(Locality::RackLocal)]);
        // A place in the rack does.
        assert_eq!(beats(&mut pending, &world, &[2, 1, 0, 1]), [None, None, Some(Locality::NodeLocal), None]);
    }

    #[test]
    fn maps_without_a_place_wait_for_none() {
        let (mut pending, world) = pending(&[]);
        pending.add_map(TaskId(0), StepId(0), &[], &world);
        assert_eq!(beats(&mut pending, &world, &[2]), [Some(Locality::OffSwitch)]);
    }
}
