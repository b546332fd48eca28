//! `spinnaker`, cycle by cycle, to be checked against `docs/spinnaker.md`: in each cycle every engine and every output is looked at.

use super::counting::{Counted, Counting};
use super::cut;
use super::routing::{Labels, rule};
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::packet::PacketRecord;
use netsim::fabric::spinnaker::SpinnakerRouterConfig;
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
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
}

struct Packet {
    record: PacketRecord,
    destination: NodeId,
    key: u64,
    flow: u64,
}

struct Model<'a> {
    config: &'a SpinnakerRouterConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    bits: u128,
    bps: u128,
    packets: Vec<Packet>,
    /// What each switch routes: the packet, the link by which it came, that by which it goes on, and since when.
    engines: BTreeMap<NodeId, Vec<(usize, LinkId, LinkId, u64)>>,
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
    numbers: Vec<u64>,
    counting: Counting,
}

impl Model<'_> {
    fn wrong(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn begins(&self, cycle: u64) -> SimTime {
        SimTime(u64::try_from(u128::from(cycle) * self.bits / self.bps).unwrap())
    }

    fn cycle_from(&self, time: u64) -> u64 {
        let mut cycle = u64::try_from(u128::from(time) * self.bps / self.bits).unwrap().saturating_sub(2);
        while self.begins(cycle).0 < time {
            cycle += 1;
        }
        cycle
    }

    fn delay(&self, link: LinkId) -> u64 {
        self.cycle_from(self.topology.link(link).delay_ps) + u64::from(self.config.link_cycles)
    }

    fn links(&self, keep: impl Fn(NodeId, NodeId) -> bool) -> Vec<LinkId> {
        let links = (0..).zip(self.topology.links());
        links.filter(|(_, link)| !link.absent && keep(link.from, link.to)).map(|(id, _)| LinkId(id)).collect()
    }

    fn way(&self, link: LinkId, id: usize) -> LinkId {
        let packet = &self.packets[id];
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
            let taken = self.outputs.contains_key(&to) || self.taken_until.get(&to).is_some_and(|until| *until > now);
            if now < since + routing {
                left.push((packet, from, to, since));
                continue;
            }
            if !taken {
                self.outputs.insert(to, packet);
            } else if now >= since + routing + waited {
                self.counting.lost.push(packet);
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
        let inputs = self.links(|_, to| to == switch);
        let turn = if self.wrong(Mistake::FirstInput) { 0 } else { self.turns.get(&switch).copied().unwrap_or(0) };
        let order = (0..inputs.len()).map(|step| (turn + step) % inputs.len());
        let Some(input) = order.into_iter().find(|input| !self.queues[&inputs[*input]].is_empty()) else { return };
        let link = inputs[input];
        let packet = self.queues.get_mut(&link).unwrap().pop_front().unwrap();
        self.counting.leaves((link, 0), packet);
        self.turns.insert(switch, (input + 1) % inputs.len());
        if !self.wrong(Mistake::RoomAtPass) {
            self.gives_room(link, now);
        }
        let way = self.way(link, packet);
        self.engines.get_mut(&switch).unwrap().push((packet, link, way, now));
    }

    fn leaves(&mut self, link: LinkId, now: u64) {
        let (from, to) = (self.topology.link(link).from, self.topology.link(link).to);
        let to_host = self.topology.is_host(to);
        if self.free_at.get(&link).is_some_and(|free| *free > now) || (!to_host && self.room[&link] == 0) {
            return;
        }
        let packet = if self.topology.is_host(from) {
            let Some(packet) = self.hosts[from.0 as usize].pop_front() else { return };
            self.packets[packet].record.left = self.begins(now);
            packet
        } else {
            let Some(packet) = self.outputs.remove(&link) else { return };
            self.packets[packet].record.switches += 1;
            packet
        };
        let flits = u64::from(self.packets[packet].record.flits);
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
    let mut model = Model {
        config,
        topology,
        routes: Routes::new(&config.routing, topology, config.seed).unwrap(),
        mistake,
        bits: super::bits(config.flit.get()),
        bps: super::bps(topology.links()[0].rate),
        packets: Vec::new(),
        engines: BTreeMap::new(),
        turns: BTreeMap::new(),
        queues: BTreeMap::new(),
        outputs: BTreeMap::new(),
        taken_until: BTreeMap::new(),
        free_at: BTreeMap::new(),
        room: BTreeMap::new(),
        rooms: BTreeMap::new(),
        wires: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
        numbers: vec![0; hosts],
        counting: Counting::default(),
    };
    for link in model.links(|_, _| true) {
        model.queues.insert(link, VecDeque::new());
        model.room.insert(link, config.buffer);
    }
    let mut pending: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, sending) in traffic.iter().enumerate() {
        if let When::At(time) = sending.when {
            pending.entry(time).or_default().push(number);
        }
    }
    let mut seen = Seen::default();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut now, mut still) = (0u64, 0u32);
    while !model.idle() || !pending.is_empty() {
        if model.idle() {
            let next = pending.keys().next().map(|time| model.cycle_from(*time)).unwrap();
            now = now.max(next);
        }
        while let Some(entry) = model.rooms.first_entry()
            && *entry.key() <= now
        {
            for link in entry.remove() {
                *model.room.get_mut(&link).unwrap() += 1;
            }
        }
        let mut delivered = Vec::new();
        let arrived = model.wires.remove(&now).unwrap_or_default();
        still = if arrived.is_empty() { still + 1 } else { 0 };
        for (link, packet) in arrived {
            if !topology.is_host(topology.link(link).to) {
                model.counting.comes((link, 0), packet);
                model.queues.get_mut(&link).unwrap().push_back(packet);
                continue;
            }
            let at = model.begins(now);
            model.packets[packet].record.arrived = at;
            let record = model.packets[packet].record;
            seen.packets.push(record);
            let left = open.get_mut(&record.token.0).unwrap();
            *left -= 1;
            if *left == 0 && model.counting.is_whole(record.token.0) {
                delivered.push((record.token, at));
            }
        }
        delivered.sort();
        for (token, at) in delivered {
            seen.deliveries.push(Delivery { token, at });
            for (answer, think) in answers(traffic, usize::try_from(token.0).unwrap()) {
                pending.entry(at.0 + think).or_default().push(answer);
            }
        }
        while let Some(entry) = pending.first_entry()
            && model.cycle_from(*entry.key()) <= now
        {
            let (time, numbers) = entry.remove_entry();
            for number in numbers {
                hand_over(&mut model, &mut open, time, number, &traffic[number]);
            }
        }
        model.counting.look();
        for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
            model.engine(switch, now);
        }
        for packet in std::mem::take(&mut model.counting.lost) {
            let (record, at) = (model.packets[packet].record, model.begins(now));
            model.counting.loses(&record, at, &mut open, &mut seen);
        }
        for link in model.links(|_, _| true) {
            model.leaves(link, now);
        }
        now += 1;
        if still > 20_000 {
            break;
        }
    }
    let queues = model.counting.queues(topology.links().len(), 1);
    Counted { seen: seen.sorted(), queues, crossed: Vec::new(), end: model.begins(now) }
}

/// Message `number` is handed over at `time`.
fn hand_over(model: &mut Model<'_>, open: &mut BTreeMap<u64, u64>, time: u64, number: usize, sending: &Sending) {
    let (source, destination) = (HostIndex(sending.source), HostIndex(sending.destination));
    let config = model.config;
    let lengths = cut(sending.bytes, config.mtu.get(), config.headers.get());
    open.insert(number as u64, lengths.len() as u64);
    for bytes in lengths {
        let node = model.topology.host_node(source.0).0 as usize;
        let count = model.numbers[node];
        model.numbers[node] += 1;
        let record = PacketRecord {
            handed_over: SimTime(time),
            left: SimTime::ZERO,
            arrived: SimTime::ZERO,
            source,
            destination,
            number: count,
            bytes,
            flits: u32::try_from(u64::from(bytes).div_ceil(config.flit.get())).unwrap(),
            switches: 0,
            token: Token(number as u64),
        };
        model.hosts[node].push_back(model.packets.len());
        model.packets.push(Packet {
            record,
            destination: model.topology.host_node(destination.0),
            key: (u64::from(source.0) << 40) + count,
            flow: sending.flow,
        });
    }
}
