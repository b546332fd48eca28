//! `input-output-queued`, cycle by cycle and flit by flit, to be checked against `docs/input-output-queued.md`: in each cycle every virtual channel
//! of every switch is looked at, and every flit moves by itself.

use super::counting::{Counted, Counting};
use super::cut;
use super::routing::{Labels, rule};
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::input_output_queued::{InputOutputQueuedConfig, Requests};
use netsim::fabric::input_queued::{Arbiter, Order, SeparableAllocator};
use netsim::fabric::packet::PacketRecord;
use netsim::kernel::random::{below, draw};
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::{Hop, Routes, RoutingConfig};
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A mistake of this model, to show that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A packet is granted a VC that has room for its first flit.
    RoomForHead,
    /// A packet begins to leave with a credit for its first flit.
    CreditForHead,
    /// A packet asks for the first VC that it may.
    NothingDrawn,
    /// A packet asks for the VC that it drew first until it has it.
    DrawnOnce,
    /// Requests are granted in the order of inputs.
    GrantsInOrder,
    /// A packet that asks for all asks for one.
    AsksForOne,
    /// The turn of a link stays with the VC that left last.
    TurnStays,
    /// Packets take turns at a link flit by flit.
    FlitsTakeTurns,
    /// Nobody leaves a bubble.
    NoBubble,
    /// Nobody leaves a bubble on the way to a host.
    NoBubbleToHosts,
    /// A bubble is left in the queue of the output only.
    BubbleInOutputOnly,
    /// Outputs into which a packet moves are asked for whatever `busy_outputs` says.
    BusyAsked,
    /// Packets of hosts are granted as those from switches.
    NoPriority,
    /// The crossbar takes no time.
    CrossbarAtOnce,
    /// A flit may leave in the cycle behind that in which it moved only.
    LeavesLater,
    /// One VC of an output gets a flit in a cycle.
    OneMovesToOutput,
    /// A packet asks in the cycle in which the last flit before it moves.
    AsksEarly,
    /// Hosts take the VC behind the last one.
    HostsTakeTurns,
    /// Links to hosts have VCs of classes, too.
    ClassesAtHosts,
    /// Hosts give credits back.
    HostsHaveBuffers,
    /// The other order of an allocator.
    OtherOrder,
    /// One iteration of an allocator.
    OneIteration,
    /// All packets that find no room in a cycle are lost.
    LosesAll,
    /// The first packet of a host is lost while the one before leaves, too.
    LosesWhileSending,
    /// A packet has left a queue with its first flit.
    GoneWithHead,
}

#[derive(Clone, Debug)]
struct Packet {
    record: PacketRecord,
    destination: NodeId,
    key: u64,
    flow: u64,
    left: u64,
}

/// Packet and number of a flit.
type Flit = (usize, u32);
type Vc = (LinkId, u8);

/// A packet asks for a VC with which it may go on.
#[derive(Clone, Copy, Debug)]
struct Asked {
    input: u32,
    output: u32,
    from: Vc,
    to: Vc,
    from_host: bool,
    packet: usize,
}

struct Model<'a> {
    config: &'a InputOutputQueuedConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    bits: u128,
    bps: u128,
    packets: Vec<Packet>,
    /// At the end of each link.
    inputs: BTreeMap<Vc, VecDeque<Flit>>,
    /// At its begin, behind the crossbar: each flit, whether its packet needs a bubble.
    outputs: BTreeMap<Vc, VecDeque<Flit>>,
    /// Flits within the crossbar: when they are behind it.
    crossing: BTreeMap<Vc, VecDeque<(u64, Flit)>>,
    credits: BTreeMap<Vc, u64>,
    /// The VC to which the packet moves that is first there, and the other way round.
    given: BTreeMap<Vc, Vc>,
    taken: BTreeMap<Vc, Vc>,
    /// Packets that need a bubble where they are going.
    bubbles: BTreeSet<(usize, LinkId)>,
    drawn_once: BTreeMap<(usize, NodeId), (LinkId, u8)>,
    turns: BTreeMap<LinkId, u8>,
    /// The packet that leaves by a link.
    leaving: BTreeMap<LinkId, u8>,
    /// Where round robins of an allocator begin: the side, the switch, the number.
    allocator_turns: BTreeMap<(u8, NodeId, u32), u32>,
    wires: BTreeMap<u64, Vec<(Vc, Flit)>>,
    credits_under_way: BTreeMap<u64, Vec<Vc>>,
    hosts: Vec<VecDeque<usize>>,
    /// What a host sends: packet, flits that have left, VC.
    sends: Vec<Option<(usize, u32, u8)>>,
    last_vc: Vec<u8>,
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
        self.cycle_from(self.topology.link(link).delay_ps) + u64::from(self.config.latency.link)
    }

    fn links(&self, keep: impl Fn(NodeId, NodeId) -> bool) -> Vec<LinkId> {
        let links = (0..).zip(self.topology.links());
        links.filter(|(_, link)| !link.absent && keep(link.from, link.to)).map(|(id, _)| LinkId(id)).collect()
    }

    fn to_host(&self, link: LinkId) -> bool {
        self.topology.is_host(self.topology.link(link).to)
    }

    fn flits(&self, packet: usize) -> u64 {
        self.packets[packet].record.flits.into()
    }

    fn is_tail(&self, flit: Flit) -> bool {
        u64::from(flit.1) + 1 == self.flits(flit.0)
    }

    /// The links, VCs and bubble of the packet that has come by `from`.
    fn ways(&self, from: Vc, id: usize) -> Vec<(LinkId, u8, bool)> {
        let packet = &self.packets[id];
        let at = self.topology.link(from.0).to;
        if self.routes.looks_at_packets() {
            let class = from.1 / (self.config.vcs / self.routes.classes());
            let hop = Hop { at, input_link: from.0, class, to: packet.destination, key: packet.key };
            let (lane, enters) = self.routes.lane(&hop).unwrap();
            return vec![(lane.link, lane.class, enters)];
        }
        let next = self.routes.next(at, from.0, packet.destination);
        let all = next.links.iter().map(|link| (*link, next.class, next.enters_ring)).collect();
        if self.config.routing == RoutingConfig::Adaptive || next.links.len() == 1 {
            return all;
        }
        let labels = Labels {
            key: packet.key,
            flow: packet.flow,
            source: self.topology.host_node(packet.record.source.0),
            destination: packet.destination,
        };
        let link = rule(&self.config.routing, &self.routes, self.config.seed, at, next.links, &labels);
        vec![(link, next.class, next.enters_ring)]
    }

    fn room(&self, vc: Vc) -> u64 {
        let held = self.outputs[&vc].len() + self.crossing[&vc].len();
        u64::from(self.config.output_buffer).saturating_sub(held as u64)
    }

    /// What the packets of `switch` ask for.
    fn asked(&mut self, switch: NodeId, now: u64) -> Vec<Asked> {
        let (ins, outs) = (self.links(|_, to| to == switch), self.links(|from, _| from == switch));
        let vcs = self.config.vcs;
        let here = draw(self.config.seed, (1 << 61) + u64::from(switch.0 - self.topology.hosts()), now);
        let largest = self.config.largest_flits();
        let keeps = self.routes.packets_of_room() > 1;
        let mut asked = Vec::new();
        for (port, link) in (0..).zip(&ins) {
            for vc in 0..vcs {
                let from = (*link, vc);
                if self.given.contains_key(&from) {
                    continue;
                }
                let Some((packet, _)) = self.inputs[&from].front().copied() else { continue };
                let input = port * u32::from(vcs) + u32::from(vc);
                let mut mine = Vec::new();
                for (out, class, enters) in self.ways(from, packet) {
                    let to_host = self.to_host(out);
                    let turns = enters || (to_host && !self.wrong(Mistake::NoBubbleToHosts));
                    let bubble = keeps && turns && !self.wrong(Mistake::NoBubble);
                    if bubble {
                        self.bubbles.insert((packet, out));
                    }
                    let needs = if self.wrong(Mistake::RoomForHead) { 1 } else { self.flits(packet) }
                        + if bubble { largest } else { 0 };
                    let busy = (0..vcs).any(|vc| self.taken.contains_key(&(out, vc)));
                    if busy && !self.config.busy_outputs && !self.wrong(Mistake::BusyAsked) {
                        continue;
                    }
                    let own = vcs / self.routes.classes();
                    for out_vc in 0..vcs {
                        let classless = to_host && !self.wrong(Mistake::ClassesAtHosts);
                        let to = (out, out_vc);
                        let right = classless || out_vc / own == class;
                        if right && !self.taken.contains_key(&to) && self.room(to) >= needs {
                            let place = u32::try_from(outs.iter().position(|link| *link == out).unwrap()).unwrap();
                            let output = place * u32::from(vcs) + u32::from(out_vc);
                            let from_host = self.topology.is_host(self.topology.link(*link).from);
                            mine.push(Asked { input, output, from, to, from_host, packet });
                        }
                    }
                }
                if self.config.requests == Requests::One || self.wrong(Mistake::AsksForOne) {
                    let bits = draw(here, 0, input.into());
                    let number = below(bits, (mine.len() as u64).max(1));
                    let number = if self.wrong(Mistake::NothingDrawn) { 0 } else { usize::try_from(number).unwrap() };
                    mine = mine.into_iter().skip(number).take(1).collect();
                    if self.wrong(Mistake::DrawnOnce)
                        && let Some(one) = mine.first_mut()
                    {
                        let to = *self.drawn_once.entry((packet, switch)).or_insert(one.to);
                        if to != one.to {
                            mine.clear();
                        }
                    }
                }
                asked.extend(mine);
            }
        }
        asked
    }

    /// Which requests a switch grants.
    fn granted(&mut self, switch: NodeId, now: u64, asked: Vec<Asked>) -> Vec<Asked> {
        let number = u64::from(switch.0 - self.topology.hosts());
        let Some(allocator) = self.config.allocator else {
            let here = draw(self.config.seed, (1 << 61) + number, now);
            let mut asked = asked;
            let first = self.config.transit_priority && !self.wrong(Mistake::NoPriority);
            if !self.wrong(Mistake::GrantsInOrder) {
                let drawn = |a: &Asked| draw(here, 1, (u64::from(a.input) << 32) + u64::from(a.output));
                asked.sort_by_key(|a| (a.from_host && first, drawn(a)));
            }
            let (mut ins, mut outs, mut granted) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
            for one in asked {
                if !ins.contains(&one.input) && !outs.contains(&one.output) {
                    ins.insert(one.input);
                    outs.insert(one.output);
                    granted.push(one);
                }
            }
            return granted;
        };
        self.allocate(&allocator, switch, now, &asked)
    }

    fn allocate(&mut self, config: &SeparableAllocator, switch: NodeId, now: u64, asked: &[Asked]) -> Vec<Asked> {
        let number = u64::from(switch.0 - self.topology.hosts());
        let here = draw(self.config.seed, (1 << 61) + number * 2 + 1, now);
        let vcs = u32::from(self.config.vcs);
        let sizes = [
            u32::try_from(self.links(|_, to| to == switch).len()).unwrap() * vcs,
            u32::try_from(self.links(|from, _| from == switch).len()).unwrap() * vcs,
        ];
        let mut granted: Vec<Asked> = Vec::new();
        let input_first = (config.order == Order::InputFirst) != self.wrong(Mistake::OtherOrder);
        let iterations = if self.wrong(Mistake::OneIteration) { 1 } else { config.iterations };
        for iteration in 0..iterations {
            let free = |a: &&Asked| granted.iter().all(|g| g.input != a.input && g.output != a.output);
            let mut left: Vec<Asked> = asked.iter().filter(free).copied().collect();
            for side in if input_first { [0u8, 1] } else { [1, 0] } {
                let own = |a: &Asked| if side == 0 { a.input } else { a.output };
                let other = |a: &Asked| if side == 0 { a.output } else { a.input };
                let of = sizes[usize::from(1 - side)];
                let places: BTreeSet<u32> = left.iter().map(own).collect();
                let choose = |place: u32| {
                    let turn = self.allocator_turns.get(&(side, switch, place)).copied().unwrap_or(0);
                    let behind = |a: &Asked| (other(a) + of - turn) % of;
                    let mine = left.iter().copied().filter(|a| own(a) == place);
                    match config.arbiter {
                        Arbiter::RoundRobin => mine.min_by_key(behind),
                        Arbiter::Random => mine
                            .min_by_key(|a| draw(here, side.into(), (u64::from(a.input) << 32) + u64::from(a.output))),
                        Arbiter::Age => {
                            mine.min_by_key(|a| (self.packets[a.packet].left, self.packets[a.packet].key, behind(a)))
                        }
                    }
                    .unwrap()
                };
                left = places.into_iter().map(choose).collect();
            }
            for one in left {
                granted.push(one);
                if iteration == 0 {
                    self.allocator_turns.insert((0, switch, one.input), (one.output + 1) % sizes[1]);
                    self.allocator_turns.insert((1, switch, one.output), (one.input + 1) % sizes[0]);
                }
            }
        }
        granted
    }

    /// What moves from inputs to outputs of `switch`.
    fn moves(&mut self, switch: NodeId, now: u64) {
        let latency = if self.wrong(Mistake::CrossbarAtOnce) { 0 } else { u64::from(self.config.latency.crossbar) };
        for out in self.links(|from, _| from == switch) {
            for vc in 0..self.config.vcs {
                let to = (out, vc);
                let Some(from) = self.taken.get(&to).copied() else { continue };
                let flit = if self.room(to) > 0 { self.inputs.get_mut(&from).unwrap().pop_front() } else { None };
                let Some(flit) = flit else {
                    assert!(self.mistake.is_some(), "flits follow each other, and have room");
                    continue;
                };
                self.crossing.get_mut(&to).unwrap().push_back((now + latency, flit));
                self.gives_credit(from, now);
                if if self.wrong(Mistake::GoneWithHead) { flit.1 == 0 } else { self.is_tail(flit) } {
                    self.counting.leaves(from, flit.0);
                }
                if self.is_tail(flit) {
                    self.given.remove(&from);
                    self.taken.remove(&to);
                }
                if self.wrong(Mistake::OneMovesToOutput) {
                    break;
                }
            }
        }
    }

    /// What leaves by `link` of a switch.
    fn leaves(&mut self, link: LinkId, now: u64) {
        let vcs = self.config.vcs;
        for vc in 0..vcs {
            let crossing = self.crossing.get_mut(&(link, vc)).unwrap();
            let late = u64::from(self.mistake == Some(Mistake::LeavesLater));
            while let Some((at, flit)) = crossing.front().copied()
                && at + late <= now
            {
                crossing.pop_front();
                self.outputs.get_mut(&(link, vc)).unwrap().push_back(flit);
            }
        }
        let turn = self.turns.get(&link).copied().unwrap_or(0);
        let to_host = self.to_host(link) && !self.wrong(Mistake::HostsHaveBuffers);
        let may = |vc: &u8| {
            let Some((packet, number)) = self.outputs[&(link, *vc)].front().copied() else { return false };
            if let Some(leaving) = self.leaving.get(&link)
                && !self.wrong(Mistake::FlitsTakeTurns)
            {
                return leaving == vc && (to_host || self.credits[&(link, *vc)] > 0);
            }
            let bubble = self.bubbles.contains(&(packet, link)) && !self.wrong(Mistake::BubbleInOutputOnly);
            let largest = if bubble { self.config.largest_flits() } else { 0 };
            let needs = if number > 0 || self.wrong(Mistake::CreditForHead) { 1 } else { self.flits(packet) + largest };
            to_host || self.credits[&(link, *vc)] >= needs
        };
        let Some(vc) = (0..vcs).map(|step| (turn + step) % vcs).find(may) else {
            let stuck = self.leaving.contains_key(&link);
            assert!(!stuck || self.mistake.is_some(), "a packet that has begun to leave stops");
            return;
        };
        let flit = self.outputs.get_mut(&(link, vc)).unwrap().pop_front().unwrap();
        self.turns.insert(link, vc);
        if flit.1 == 0 {
            self.packets[flit.0].record.switches += 1;
        }
        if self.is_tail(flit) {
            self.leaving.remove(&link);
            let behind = u8::from(!self.wrong(Mistake::TurnStays));
            self.turns.insert(link, (vc + behind) % vcs);
        } else {
            self.leaving.insert(link, vc);
        }
        if self.wrong(Mistake::FlitsTakeTurns) {
            self.turns.insert(link, (vc + 1) % vcs);
        }
        if !to_host {
            *self.credits.get_mut(&(link, vc)).unwrap() -= 1;
        }
        self.wires.entry(now + 1 + self.delay(link)).or_default().push(((link, vc), flit));
    }

    /// A flit has left the end of `vc`.
    fn gives_credit(&mut self, vc: Vc, now: u64) {
        let at = now + 1 + self.delay(LinkId(vc.0.0 ^ 1));
        self.credits_under_way.entry(at).or_default().push(vc);
    }

    fn host(&mut self, host: usize, now: u64) {
        let link = self.topology.uplink(NodeId(u32::try_from(host).unwrap()));
        if self.sends[host].is_none()
            && let Some(packet) = self.hosts[host].front().copied()
        {
            let begin = if self.wrong(Mistake::HostsTakeTurns) { self.last_vc[host] + 1 } else { 0 };
            let next = (0..self.config.vcs).map(|step| (begin + step) % self.config.vcs);
            let may = |vc: &u8| self.credits[&(link, *vc)] >= self.flits(packet);
            if let Some(vc) = next.into_iter().find(may) {
                self.hosts[host].pop_front();
                self.sends[host] = Some((packet, 0, vc));
                self.last_vc[host] = vc;
                self.packets[packet].left = now;
                self.packets[packet].record.left = self.begins(now);
            } else if self.counting.loses_heads {
                let all = if self.wrong(Mistake::LosesAll) { self.hosts[host].len() } else { 1 };
                self.counting.lost.extend(self.hosts[host].drain(..all));
            }
        } else if self.counting.loses_heads
            && self.wrong(Mistake::LosesWhileSending)
            && let Some(packet) = self.hosts[host].front().copied()
            && (0..self.config.vcs).all(|vc| self.credits[&(link, vc)] < self.flits(packet))
        {
            self.hosts[host].pop_front();
            self.counting.lost.push(packet);
        }
        if let Some((packet, sent, vc)) = self.sends[host] {
            let tail = self.is_tail((packet, sent));
            *self.credits.get_mut(&(link, vc)).unwrap() -= 1;
            self.wires.entry(now + 1 + self.delay(link)).or_default().push(((link, vc), (packet, sent)));
            self.sends[host] = (!tail).then_some((packet, sent + 1, vc));
        }
    }

    fn switch(&mut self, switch: NodeId, now: u64) {
        if self.wrong(Mistake::AsksEarly) {
            self.moves(switch, now);
        }
        let asked = self.asked(switch, now);
        for one in self.granted(switch, now, asked) {
            self.given.insert(one.from, one.to);
            self.taken.insert(one.to, one.from);
        }
        if !self.wrong(Mistake::AsksEarly) {
            self.moves(switch, now);
        }
        for link in self.links(|from, _| from == switch) {
            self.leaves(link, now);
        }
    }

    fn idle(&self) -> bool {
        let still = |queues: &BTreeMap<Vc, VecDeque<Flit>>| queues.values().all(VecDeque::is_empty);
        self.wires.is_empty()
            && self.hosts.iter().all(VecDeque::is_empty)
            && self.sends.iter().all(Option::is_none)
            && still(&self.inputs)
            && still(&self.outputs)
            && self.crossing.values().all(VecDeque::is_empty)
    }
}

/// What happens to `traffic` in the network of `config` on `topology`. What is stuck is not delivered.
pub fn play(
    config: &InputOutputQueuedConfig,
    topology: &Topology,
    traffic: &[Sending],
    mistake: Option<Mistake>,
) -> Seen {
    count(config, topology, traffic, mistake, false).seen
}

/// The same, and what lies in queues; `loses_heads`: whether hosts lose what finds no room.
pub fn count(
    config: &InputOutputQueuedConfig,
    topology: &Topology,
    traffic: &[Sending],
    mistake: Option<Mistake>,
    loses_heads: bool,
) -> Counted {
    let routes = Routes::new(&config.routing, topology, config.seed).unwrap();
    let hosts = topology.hosts() as usize;
    let mut model = Model {
        config,
        topology,
        routes,
        mistake,
        bits: super::bits(config.flit.get()),
        bps: super::bps(topology.links()[0].rate),
        packets: Vec::new(),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        crossing: BTreeMap::new(),
        credits: BTreeMap::new(),
        given: BTreeMap::new(),
        taken: BTreeMap::new(),
        bubbles: BTreeSet::new(),
        drawn_once: BTreeMap::new(),
        turns: BTreeMap::new(),
        leaving: BTreeMap::new(),
        allocator_turns: BTreeMap::new(),
        wires: BTreeMap::new(),
        credits_under_way: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
        sends: vec![None; hosts],
        last_vc: vec![config.vcs - 1; hosts],
        numbers: vec![0; hosts],
        counting: Counting::new(loses_heads),
    };
    for link in model.links(|_, _| true) {
        for vc in 0..config.vcs {
            model.inputs.insert((link, vc), VecDeque::new());
            model.outputs.insert((link, vc), VecDeque::new());
            model.crossing.insert((link, vc), VecDeque::new());
            model.credits.insert((link, vc), config.buffer.into());
        }
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
        while let Some(entry) = model.credits_under_way.first_entry()
            && *entry.key() <= now
        {
            for vc in entry.remove() {
                *model.credits.get_mut(&vc).unwrap() += 1;
            }
        }
        let mut delivered = Vec::new();
        let arrived = model.wires.remove(&now).unwrap_or_default();
        still = if arrived.is_empty() { still + 1 } else { 0 };
        for (vc, flit) in arrived {
            if !topology.is_host(topology.link(vc.0).to) {
                if flit.1 == 0 {
                    model.counting.comes(vc, flit.0);
                }
                let queue = model.inputs.get_mut(&vc).unwrap();
                queue.push_back(flit);
                assert!(mistake.is_some() || queue.len() <= config.buffer as usize, "more than fits");
                continue;
            }
            if model.wrong(Mistake::HostsHaveBuffers) {
                model.gives_credit(vc, now + 2);
            }
            if model.is_tail(flit) {
                let at = model.begins(now);
                model.packets[flit.0].record.arrived = at;
                let record = model.packets[flit.0].record;
                seen.packets.push(record);
                let left = open.get_mut(&record.token.0).unwrap();
                *left -= 1;
                if *left == 0 && model.counting.is_whole(record.token.0) {
                    delivered.push((record.token, at));
                }
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
        for host in 0..hosts {
            model.host(host, now);
        }
        for packet in std::mem::take(&mut model.counting.lost) {
            let (record, at) = (model.packets[packet].record, model.begins(now));
            model.counting.loses(&record, at, &mut open, &mut seen);
        }
        for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
            model.switch(switch, now);
        }
        now += 1;
        if still > 20_000 {
            break;
        }
    }
    let queues = model.counting.queues(topology.links().len(), config.vcs);
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
            left: 0,
        });
    }
}
