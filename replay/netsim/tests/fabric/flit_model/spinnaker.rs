//! `spinnaker`, cycle by cycle, to be checked against `docs/spinnaker.md`: in each cycle every engine and every output is looked at.

use super::clocked::{Clock, Messages, Sizes, links, switches};
use super::counting::Counted;
use super::routing::{Labels, rule};
use super::traffic::Sending;
use netsim::fabric::spinnaker::SpinnakerRouterConfig;
use netsim::routing::Routes;
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, VecDeque};

/// A mistake of this model, to show that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A packet whose output is taken is lost at once.
    NoWait,
    /// A packet waits a cycle longer before it is lost.
    WaitsLonger,
    /// A packet never is.
    WaitsForEver,
    /// The engine begins with the first input each time.
    FirstInput,
    /// A packet that waits lets others pass.
    OthersPass,
    /// A queue has room again when its packet passes the engine.
    RoomAtPass,
    /// The engine takes the next packet in the cycle behind that in which one passes.
    EngineLater,
    /// An output has room again when its packet has left as a whole.
    OutputUntilLeft,
    /// The engine takes a packet as soon as its first flit is there.
    CutThrough,
    /// A packet passes to those of its outputs that are free, and the other copies are lost.
    FreeOutputsOnly,
    /// Tables look at destinations alone.
    TablesForgotten,
    /// Without an entry a packet goes by the routing.
    NotStraight,
}

/// Copies of a packet: those under way, and whether one has come to the destination.
#[derive(Clone, Copy, Debug)]
struct Copies {
    left: u32,
    arrived: bool,
}

/// What a switch routes: the packet, the link by which it came, those by which it goes on, and since when.
type Routed = (usize, LinkId, Vec<LinkId>, u64);

struct Model<'a> {
    config: &'a SpinnakerRouterConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    clock: Clock,
    messages: Messages<'a>,
    engines: BTreeMap<NodeId, Vec<Routed>>,
    /// By key.
    copies: BTreeMap<u64, Copies>,
    turns: BTreeMap<NodeId, usize>,
    /// At the end of each link.
    queues: BTreeMap<LinkId, VecDeque<usize>>,
    /// At the begin of each link of a switch, and until when that is taken by what has left.
    outputs: BTreeMap<LinkId, usize>,
    taken_until: BTreeMap<LinkId, u64>,
    free_at: BTreeMap<LinkId, u64>,
    room: BTreeMap<LinkId, u32>,
    rooms: BTreeMap<u64, Vec<LinkId>>,
    wires: BTreeMap<u64, Vec<(LinkId, usize)>>,
    hosts: Vec<VecDeque<usize>>,
}

impl Model<'_> {
    fn wrong(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn delay(&self, link: LinkId) -> u64 {
        self.clock.delay(self.topology, link) + u64::from(self.config.link_cycles)
    }

    /// The outputs by the tables, if they name the source of a packet.
    fn by_tables(&self, link: LinkId, id: usize) -> Option<Vec<LinkId>> {
        let host = self.topology.host_node(self.messages.packets[id].record.source.0);
        let (source, at) = (self.topology.name(host), self.topology.link(link).to);
        let of_source = || self.config.tables.iter().filter(|entry| entry.source == source);
        of_source().next().filter(|_| !self.wrong(Mistake::TablesForgotten))?;
        if let Some(entry) = of_source().find(|entry| entry.router == self.topology.name(at)) {
            let out = self.topology.out(at);
            let to = |name: &String| {
                *out.iter().find(|out| self.topology.name(self.topology.link(**out).to) == name).unwrap()
            };
            return Some(entry.to.iter().map(to).collect());
        }
        if self.wrong(Mistake::NotStraight) {
            return None;
        }
        let lattice = self.topology.lattice().expect("straight on is in a lattice");
        for axis in 0..lattice.axes() {
            for forward in [true, false] {
                let before = self.topology.link(link).from.0 - self.topology.hosts();
                if lattice.port(before, axis, forward) == Some(&link) {
                    let on = lattice.port(at.0 - self.topology.hosts(), axis, forward);
                    return Some(vec![*on.expect("tables lead on")]);
                }
            }
        }
        panic!("a packet from a host has an entry");
    }

    fn ways(&self, link: LinkId, id: usize) -> Vec<LinkId> {
        self.by_tables(link, id).unwrap_or_else(|| vec![self.way(link, id)])
    }

    /// A copy ends without having come to its destination.
    fn ends(&mut self, id: usize) {
        let key = self.messages.packets[id].key;
        let copies = self.copies.entry(key).or_insert(Copies { left: 1, arrived: false });
        copies.left -= 1;
        if copies.left == 0 && !copies.arrived {
            self.messages.counting.lost.push(id);
        }
    }

    fn way(&self, link: LinkId, id: usize) -> LinkId {
        let packet = &self.messages.packets[id];
        let at = self.topology.link(link).to;
        let next = self.routes.next(at, link, packet.destination);
        if next.links.len() == 1 {
            return next.links[0];
        }
        let labels = Labels {
            key: packet.key,
            flow: packet.flow,
            source: self.topology.host_node(packet.record.source.0),
            destination: packet.destination,
        };
        rule(&self.config.routing, &self.routes, self.config.seed, at, next.links, &labels)
    }

    fn gives_room(&mut self, link: LinkId, now: u64) {
        let at = now + 1 + self.delay(LinkId(link.0 ^ 1));
        self.rooms.entry(at).or_default().push(link);
    }

    fn engine(&mut self, switch: NodeId, now: u64) {
        let (routing, wait) = (u64::from(self.config.routing_cycles), u64::from(self.config.wait));
        let mut left = Vec::new();
        let mut passed = false;
        for (packet, from, to, since) in std::mem::take(self.engines.entry(switch).or_default()) {
            let waited = match self.mistake {
                Some(Mistake::NoWait) => 0,
                Some(Mistake::WaitsLonger) => wait + 1,
                Some(Mistake::WaitsForEver) => u64::MAX / 2,
                _ => wait,
            };
            let is_taken = |to: &LinkId| {
                self.outputs.contains_key(to) || self.taken_until.get(to).is_some_and(|until| *until > now)
            };
            if now < since + routing {
                left.push((packet, from, to, since));
                continue;
            }
            let free: Vec<LinkId> = to.iter().copied().filter(|to| !is_taken(to)).collect();
            let some_do = self.wrong(Mistake::FreeOutputsOnly) && !free.is_empty();
            if free.len() == to.len() || some_do {
                let key = self.messages.packets[packet].key;
                let copies = self.copies.entry(key).or_insert(Copies { left: 1, arrived: false });
                copies.left += u32::try_from(free.len()).unwrap() - 1;
                for (place, to) in free.into_iter().enumerate() {
                    let copy = if place == 0 { packet } else { self.messages.copied(packet) };
                    self.outputs.insert(to, copy);
                }
            } else if now >= since + routing + waited {
                self.ends(packet);
            } else {
                left.push((packet, from, to, since));
                continue;
            }
            passed = true;
            if self.wrong(Mistake::RoomAtPass) {
                self.gives_room(from, now);
            }
        }
        let waits = left.iter().all(|(.., since)| now >= since + routing);
        let free = left.is_empty() || (self.wrong(Mistake::OthersPass) && waits);
        self.engines.insert(switch, left);
        if !free || (passed && self.wrong(Mistake::EngineLater)) {
            return;
        }
        let inputs = links(self.topology, |_, to| to == switch);
        let turn = if self.wrong(Mistake::FirstInput) { 0 } else { self.turns.get(&switch).copied().unwrap_or(0) };
        let order = (0..inputs.len()).map(|step| (turn + step) % inputs.len());
        let Some(input) = order.into_iter().find(|input| !self.queues[&inputs[*input]].is_empty()) else { return };
        let link = inputs[input];
        let packet = self.queues.get_mut(&link).unwrap().pop_front().unwrap();
        self.messages.counting.leaves((link, 0), packet);
        self.turns.insert(switch, (input + 1) % inputs.len());
        if !self.wrong(Mistake::RoomAtPass) {
            self.gives_room(link, now);
        }
        let ways = self.ways(link, packet);
        self.engines.get_mut(&switch).unwrap().push((packet, link, ways, now));
    }

    fn leaves(&mut self, link: LinkId, now: u64) {
        let (from, to) = (self.topology.link(link).from, self.topology.link(link).to);
        let to_host = self.topology.is_host(to);
        if self.free_at.get(&link).is_some_and(|free| *free > now) || (!to_host && self.room[&link] == 0) {
            return;
        }
        let packet = if self.topology.is_host(from) {
            let Some(packet) = self.hosts[from.0 as usize].pop_front() else { return };
            self.messages.leaves(packet, now);
            packet
        } else {
            let Some(packet) = self.outputs.remove(&link) else { return };
            self.messages.packets[packet].record.switches += 1;
            packet
        };
        let flits = u64::from(self.messages.flits(packet));
        self.free_at.insert(link, now + flits);
        if self.wrong(Mistake::OutputUntilLeft) {
            self.taken_until.insert(link, now + flits);
        }
        if !to_host {
            *self.room.get_mut(&link).unwrap() -= 1;
        }
        let whole = if self.wrong(Mistake::CutThrough) && !to_host { 1 } else { flits };
        self.wires.entry(now + whole + self.delay(link)).or_default().push((link, packet));
    }

    /// Room comes back and packets arrive at the begin of a cycle. Returns whether packets did.
    fn arrivals(&mut self, now: u64) -> bool {
        while let Some(entry) = self.rooms.first_entry()
            && *entry.key() <= now
        {
            for link in entry.remove() {
                *self.room.get_mut(&link).unwrap() += 1;
            }
        }
        let arrived = self.wires.remove(&now).unwrap_or_default();
        for (link, packet) in &arrived {
            let to = self.topology.link(*link).to;
            if to == self.messages.packets[*packet].destination {
                let key = self.messages.packets[*packet].key;
                let copies = self.copies.entry(key).or_insert(Copies { left: 1, arrived: false });
                copies.left -= 1;
                copies.arrived = true;
                self.messages.arrives(*packet, now);
            } else if self.topology.is_host(to) {
                self.ends(*packet);
            } else {
                self.messages.counting.comes((*link, 0), *packet);
                self.queues.get_mut(link).unwrap().push_back(*packet);
            }
        }
        !arrived.is_empty()
    }

    fn idle(&self) -> bool {
        self.wires.is_empty()
            && self.outputs.is_empty()
            && self.hosts.iter().all(VecDeque::is_empty)
            && self.queues.values().all(VecDeque::is_empty)
            && self.engines.values().all(Vec::is_empty)
    }
}

/// What happens to `traffic` in the network of `config` on `topology`, and what lies in its queues.
pub fn play(
    config: &SpinnakerRouterConfig,
    topology: &Topology,
    traffic: &[Sending],
    mistake: Option<Mistake>,
) -> Counted {
    let hosts = topology.hosts() as usize;
    let sizes = Sizes { mtu: config.mtu, headers: config.headers, flit: config.flit };
    let mut model = Model {
        config,
        topology,
        routes: Routes::new(&config.routing, topology, config.seed).unwrap(),
        mistake,
        clock: Clock::new(config.flit, topology),
        messages: Messages::new(topology, traffic, sizes, false),
        engines: BTreeMap::new(),
        copies: BTreeMap::new(),
        turns: BTreeMap::new(),
        queues: BTreeMap::new(),
        outputs: BTreeMap::new(),
        taken_until: BTreeMap::new(),
        free_at: BTreeMap::new(),
        room: BTreeMap::new(),
        rooms: BTreeMap::new(),
        wires: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
    };
    let all = links(topology, |_, _| true);
    for link in &all {
        model.queues.insert(*link, VecDeque::new());
        model.room.insert(*link, config.buffer);
    }
    let (mut now, mut still) = (0u64, 0u32);
    while !model.idle() || model.messages.next_cycle().is_some() {
        if model.idle() {
            now = now.max(model.messages.next_cycle().unwrap());
        }
        let arrived = model.arrivals(now);
        still = if arrived { 0 } else { still + 1 };
        for (host, packet) in model.messages.hand_over(now) {
            model.hosts[host].push_back(packet);
        }
        model.messages.counting.look();
        for switch in switches(topology) {
            model.engine(switch, now);
        }
        model.messages.lose(now);
        for link in &all {
            model.leaves(*link, now);
        }
        now += 1;
        if still > 20_000 {
            break;
        }
    }
    let queues = model.messages.counting.queues(topology.links().len(), 1);
    Counted { seen: model.messages.seen.sorted(), queues, crossed: Vec::new(), end: model.clock.begins(now) }
}
