//! `input-output-queued`, cycle by cycle and flit by flit, to be checked against `docs/input-output-queued.md`: in each cycle every virtual channel
//! of every switch is looked at, and every flit moves by itself.

use super::clocked::{Clock, Messages, Sizes, links, switches};
use super::counting::Counted;
use super::routing::{Labels, rule};
use super::separable::{Allocator, AllocatorMistake, Request};
use super::traffic::{Seen, Sending};
use netsim::fabric::input_output_queued::{InputOutputQueuedConfig, Requests};
use netsim::fabric::input_queued::SeparableAllocator;
use netsim::kernel::random::{below, draw};
use netsim::routing::{Hop, Routes, RoutingConfig};
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
    /// The allocator makes one.
    Allocator(AllocatorMistake),
    /// All packets that find no room in a cycle are lost.
    LosesAll,
    /// The first packet of a host is lost while the one before leaves, too.
    LosesWhileSending,
    /// A packet has left a queue with its first flit.
    GoneWithHead,
}

/// Packet and number of a flit.
type Flit = (usize, u32);
type Vc = (LinkId, u8);

/// A packet asks for a VC with which it may go on.
#[derive(Clone, Copy, Debug)]
struct VcRequest {
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
    clock: Clock,
    messages: Messages<'a>,
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
    allocator: Allocator,
    wires: BTreeMap<u64, Vec<(Vc, Flit)>>,
    credits_under_way: BTreeMap<u64, Vec<Vc>>,
    hosts: Vec<VecDeque<usize>>,
    /// What a host sends: packet, flits that have left, VC.
    sends: Vec<Option<(usize, u32, u8)>>,
    last_vc: Vec<u8>,
}

impl Model<'_> {
    fn wrong(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn delay(&self, link: LinkId) -> u64 {
        self.clock.delay(self.topology, link) + u64::from(self.config.latency.link)
    }

    fn to_host(&self, link: LinkId) -> bool {
        self.topology.is_host(self.topology.link(link).to)
    }

    fn flits(&self, packet: usize) -> u64 {
        self.messages.flits(packet).into()
    }

    /// The links, VCs and bubble of the packet that has come by `from`.
    fn ways(&self, from: Vc, id: usize) -> Vec<(LinkId, u8, bool)> {
        let packet = &self.messages.packets[id];
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
    fn asked(&mut self, switch: NodeId, now: u64) -> Vec<VcRequest> {
        let (ins, outs) = (links(self.topology, |_, to| to == switch), links(self.topology, |from, _| from == switch));
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
                            mine.push(VcRequest { input, output, from, to, from_host, packet });
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
    fn granted(&mut self, switch: NodeId, now: u64, asked: Vec<VcRequest>) -> Vec<VcRequest> {
        let number = u64::from(switch.0 - self.topology.hosts());
        let Some(allocator) = self.config.allocator else {
            let here = draw(self.config.seed, (1 << 61) + number, now);
            let mut asked = asked;
            let first = self.config.transit_priority && !self.wrong(Mistake::NoPriority);
            if !self.wrong(Mistake::GrantsInOrder) {
                let drawn = |a: &VcRequest| draw(here, 1, (u64::from(a.input) << 32) + u64::from(a.output));
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

    fn allocate(
        &mut self,
        config: &SeparableAllocator,
        switch: NodeId,
        now: u64,
        asked: &[VcRequest],
    ) -> Vec<VcRequest> {
        let number = u64::from(switch.0 - self.topology.hosts());
        let here = draw(self.config.seed, (1 << 61) + number * 2 + 1, now);
        let vcs = u32::from(self.config.vcs);
        let of = |ports: Vec<LinkId>| u32::try_from(ports.len()).unwrap() * vcs;
        let sizes =
            (of(links(self.topology, |_, to| to == switch)), of(links(self.topology, |from, _| from == switch)));
        let request = |asked: &VcRequest| {
            let packet = &self.messages.packets[asked.packet];
            Request { input: asked.input, output: asked.output, speculative: false, age: (packet.left, packet.key) }
        };
        let requests: Vec<Request> = asked.iter().map(request).collect();
        let drawn = |side: u64, r: &Request| draw(here, side, (u64::from(r.input) << 32) + u64::from(r.output));
        let granted = self.allocator.allocate(config, switch, &requests, sizes, drawn);
        asked.iter().filter(|asked| granted.contains(&(asked.input, asked.output))).copied().collect()
    }

    /// What moves from inputs to outputs of `switch`.
    fn moves(&mut self, switch: NodeId, now: u64) {
        let latency = if self.wrong(Mistake::CrossbarAtOnce) { 0 } else { u64::from(self.config.latency.crossbar) };
        for out in links(self.topology, |from, _| from == switch) {
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
                if if self.wrong(Mistake::GoneWithHead) { flit.1 == 0 } else { self.messages.is_tail(flit) } {
                    self.messages.counting.leaves(from, flit.0);
                }
                if self.messages.is_tail(flit) {
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
            self.messages.packets[flit.0].record.switches += 1;
        }
        if self.messages.is_tail(flit) {
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
                self.messages.leaves(packet, now);
            } else if self.messages.counting.loses_heads {
                let all = if self.wrong(Mistake::LosesAll) { self.hosts[host].len() } else { 1 };
                self.messages.counting.lost.extend(self.hosts[host].drain(..all));
            }
        } else if self.messages.counting.loses_heads
            && self.wrong(Mistake::LosesWhileSending)
            && let Some(packet) = self.hosts[host].front().copied()
            && (0..self.config.vcs).all(|vc| self.credits[&(link, vc)] < self.flits(packet))
        {
            self.hosts[host].pop_front();
            self.messages.counting.lost.push(packet);
        }
        if let Some((packet, sent, vc)) = self.sends[host] {
            let tail = self.messages.is_tail((packet, sent));
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
        for link in links(self.topology, |from, _| from == switch) {
            self.leaves(link, now);
        }
    }

    /// Credits come back and flits arrive at the begin of a cycle. Returns whether flits did.
    fn arrivals(&mut self, now: u64) -> bool {
        while let Some(entry) = self.credits_under_way.first_entry()
            && *entry.key() <= now
        {
            for vc in entry.remove() {
                *self.credits.get_mut(&vc).unwrap() += 1;
            }
        }
        let arrived = self.wires.remove(&now).unwrap_or_default();
        for (vc, flit) in &arrived {
            if !self.to_host(vc.0) {
                if flit.1 == 0 {
                    self.messages.counting.comes(*vc, flit.0);
                }
                let queue = self.inputs.get_mut(vc).unwrap();
                queue.push_back(*flit);
                assert!(self.mistake.is_some() || queue.len() <= self.config.buffer as usize, "more than fits");
                continue;
            }
            if self.wrong(Mistake::HostsHaveBuffers) {
                self.gives_credit(*vc, now + 2);
            }
            if self.messages.is_tail(*flit) {
                self.messages.arrives(flit.0, now);
            }
        }
        !arrived.is_empty()
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
    let hosts = topology.hosts() as usize;
    let sizes = Sizes { mtu: config.mtu, headers: config.headers, flit: config.flit };
    let allocator = match mistake {
        Some(Mistake::Allocator(mistake)) => Allocator { mistake: Some(mistake), ..Allocator::default() },
        _ => Allocator::default(),
    };
    let mut model = Model {
        config,
        topology,
        routes: Routes::new(&config.routing, topology, config.seed).unwrap(),
        mistake,
        clock: Clock::new(config.flit, topology),
        messages: Messages::new(topology, traffic, sizes, loses_heads),
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
        allocator,
        wires: BTreeMap::new(),
        credits_under_way: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
        sends: vec![None; hosts],
        last_vc: vec![config.vcs - 1; hosts],
    };
    for link in links(topology, |_, _| true) {
        for vc in 0..config.vcs {
            model.inputs.insert((link, vc), VecDeque::new());
            model.outputs.insert((link, vc), VecDeque::new());
            model.crossing.insert((link, vc), VecDeque::new());
            model.credits.insert((link, vc), config.buffer.into());
        }
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
        for host in 0..hosts {
            model.host(host, now);
        }
        model.messages.lose(now);
        for switch in switches(topology) {
            model.switch(switch, now);
        }
        now += 1;
        if still > 20_000 {
            break;
        }
    }
    let queues = model.messages.counting.queues(topology.links().len(), config.vcs);
    Counted { seen: model.messages.seen.sorted(), queues, crossed: Vec::new(), end: model.clock.begins(now) }
}
