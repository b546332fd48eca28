//! `input-queued`, cycle by cycle and flit by flit, to be checked against `docs/input-queued.md`: in each cycle every virtual channel of every
//! switch is looked at, and every arbiter goes through all that ask it.

use super::clocked::{Clock, Messages, Sizes, links, switches};
use super::counting::{Counted, FlitMove};
use super::routing::{Labels, rule};
use super::separable::{Allocator, AllocatorMistake, Request};
use super::traffic::{Seen, Sending};
use netsim::fabric::input_queued::{FlowControl, InputQueuedConfig};
use netsim::fabric::packet::PacketRecord;
use netsim::kernel::random::draw;
use netsim::routing::{Hop, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, VecDeque};

/// A mistake of this model, to show that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Both allocators make one.
    Allocators(AllocatorMistake),
    /// A VC is free again with its last flit, whatever is waited for.
    NoTailCredit,
    /// A VC is given without room for the whole packet.
    NoRoomForPacket,
    /// A head whose VC is on another output crosses.
    OutputMismatch,
    /// Nobody holds anything.
    NoHold,
    /// A way that is held counts as held for its output only.
    HeldInputForgotten,
    /// An input has one way into the crossbar.
    NoInputSpeedup,
    /// An output has one way from the crossbar.
    NoOutputSpeedup,
    /// Credits count when they arrive.
    CreditsAtOnce,
    /// Credits go back when a flit has crossed.
    CreditsLate,
    /// A head that follows in a queue asks a cycle earlier.
    NextHeadAtOnce,
    /// Hosts take the lowest VC.
    LowestAtHost,
    /// Links to hosts have VCs of classes, too.
    ClassesAtHosts,
    /// A VC that was given counts at once.
    GivenAtOnce,
    /// All packets that find no room in a cycle are lost.
    LosesAll,
    /// The first packet of a host is lost while the one before leaves, too.
    LosesWhileSending,
    /// A packet has left a queue with its first flit.
    GoneWithHead,
}

/// What becomes of the packet that is first in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Asks for a VC, from a cycle on.
    Asks(u64),
    /// Has been given a VC that counts at the end of a cycle.
    Given(u64, (LinkId, u8)),
    Has((LinkId, u8)),
}

#[derive(Clone, Debug)]
struct InVc {
    /// Packet and number of each flit.
    flits: VecDeque<(usize, u32)>,
    state: State,
    /// Where it may go on.
    ways: Vec<(LinkId, u8)>,
    /// When its first flit asks for the crossbar.
    asks_crossbar: u64,
    /// When the crossbar that it has been given counts, and the way.
    crosses: Option<(u64, Way)>,
}

#[derive(Clone, Debug)]
struct OutVc {
    credits: u64,
    taken: bool,
    tail_out: bool,
}

/// The way `number` to an output.
type Way = (LinkId, u32);
/// The way `number` from an input.
type From = (LinkId, u32);
/// A flit on a link: its VC, its packet, its number there.
type FlitOnWire = (LinkId, u8, (usize, u32));
/// A VC that asks, whether by speculation, and for which packet.
type Rival = (u8, bool, usize);

struct Model<'a> {
    config: &'a InputQueuedConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    clock: Clock,
    messages: Messages<'a>,
    inputs: BTreeMap<(LinkId, u8), InVc>,
    outputs: BTreeMap<(LinkId, u8), OutVc>,
    vc_allocator: Allocator,
    switch_allocator: Allocator,
    vc_turns: BTreeMap<From, u32>,
    held: BTreeMap<From, (Way, u8)>,
    /// When the next flit may leave by a link.
    leaves: BTreeMap<LinkId, u64>,
    wires: BTreeMap<u64, Vec<FlitOnWire>>,
    credits: BTreeMap<u64, Vec<(LinkId, u8)>>,
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

    /// The links that end and that begin at a switch.
    fn ports(&self, switch: NodeId) -> (Vec<LinkId>, Vec<LinkId>) {
        (links(self.topology, |_, to| to == switch), links(self.topology, |from, _| from == switch))
    }

    fn position(list: &[LinkId], link: LinkId) -> u32 {
        u32::try_from(list.iter().position(|other| *other == link).unwrap()).unwrap()
    }

    /// Whether the VC may be given to `packet`.
    fn free(&self, vc: &OutVc, packet: usize) -> bool {
        let room = match self.config.flow_control {
            FlowControl::Wormhole => true,
            FlowControl::VirtualCutThrough => {
                self.wrong(Mistake::NoRoomForPacket) || vc.credits >= u64::from(self.messages.flits(packet))
            }
        };
        room && !vc.taken
    }

    /// The VCs of a link that a packet of `class` may be given.
    fn range(&self, link: LinkId, class: u8) -> Vec<u8> {
        let to_host = self.topology.is_host(self.topology.link(link).to) && !self.wrong(Mistake::ClassesAtHosts);
        let own = self.config.vcs / self.routes.classes();
        let all = 0..self.config.vcs;
        all.filter(|vc| to_host || vc / own == class).collect()
    }

    /// The ways on of the head that has come by `link` and `vc`.
    fn route(&self, link: LinkId, vc: u8, id: usize) -> Vec<(LinkId, u8)> {
        let packet = &self.messages.packets[id];
        let at = self.topology.link(link).to;
        if self.routes.looks_at_packets() {
            let class = vc / (self.config.vcs / self.routes.classes());
            let hop = Hop { at, input_link: link, class, to: packet.destination, key: packet.key };
            let (lane, _) = self.routes.lane(&hop).unwrap();
            return vec![(lane.link, lane.class)];
        }
        let next = self.routes.next(at, link, packet.destination);
        if self.config.routing == RoutingConfig::Adaptive || next.links.len() == 1 {
            return next.links.iter().map(|link| (*link, next.class)).collect();
        }
        let labels = Labels {
            key: packet.key,
            flow: packet.flow,
            source: self.topology.host_node(packet.record.source.0),
            destination: packet.destination,
        };
        vec![(rule(&self.config.routing, &self.routes, self.config.seed, at, next.links, &labels), next.class)]
    }

    fn head_comes(&mut self, link: LinkId, vc: u8, at: u64) {
        let id = self.inputs[&(link, vc)].flits[0].0;
        let ways = self.route(link, vc, id);
        let asks = at + u64::from(self.config.latency.routing);
        let state = self.inputs.get_mut(&(link, vc)).unwrap();
        (state.state, state.ways, state.asks_crossbar) = (State::Asks(asks), ways, asks);
    }

    fn drawn(&self, allocation: u8, switch: NodeId, cycle: u64, side: u64, input: u32, output: u32) -> u64 {
        let number = u64::from(switch.0 - self.topology.hosts());
        let here = draw(self.config.seed, (1 << 61) + number * 2 + u64::from(allocation), cycle);
        draw(here, side, (u64::from(input) << 32) + u64::from(output))
    }

    /// When a packet left, and its key.
    fn age(&self, packet: usize) -> (u64, u64) {
        (self.messages.packets[packet].left, self.messages.packets[packet].key)
    }

    /// The (input, output) pairs that are granted. `allocation`: 0 VCs, 1 the crossbar.
    fn allocate(
        &mut self,
        allocation: u8,
        switch: NodeId,
        cycle: u64,
        requests: &[Request],
        sizes: (u32, u32),
    ) -> Vec<(u32, u32)> {
        let (config, mut allocator) = match allocation {
            0 => (self.config.vc_allocator, std::mem::take(&mut self.vc_allocator)),
            _ => (self.config.switch_allocator, std::mem::take(&mut self.switch_allocator)),
        };
        let drawn = |side: u64, r: &Request| self.drawn(allocation, switch, cycle, side, r.input, r.output);
        let granted = allocator.allocate(&config, switch, requests, sizes, drawn);
        match allocation {
            0 => self.vc_allocator = allocator,
            _ => self.switch_allocator = allocator,
        }
        granted
    }

    fn input_speedup(&self) -> u32 {
        if self.wrong(Mistake::NoInputSpeedup) { 1 } else { self.config.input_speedup.into() }
    }

    fn output_speedup(&self) -> u32 {
        if self.wrong(Mistake::NoOutputSpeedup) { 1 } else { self.config.output_speedup.into() }
    }

    fn allocate_vcs(&mut self, switch: NodeId, now: u64, before: &BTreeMap<(LinkId, u8), OutVc>) {
        let (ins, outs) = self.ports(switch);
        let vcs = u32::from(self.config.vcs);
        let latency = u64::from(self.config.latency.vc_allocation);
        let mut requests = Vec::new();
        let mut asked = Vec::new();
        for link in &ins {
            for vc in 0..self.config.vcs {
                let state = &self.inputs[&(*link, vc)];
                let State::Asks(from) = state.state else { continue };
                if from > now {
                    continue;
                }
                let input = Self::position(&ins, *link) * vcs + u32::from(vc);
                let packet = state.flits[0].0;
                asked.push((*link, vc, input));
                for (out, class) in &state.ways {
                    for out_vc in self.range(*out, *class) {
                        if self.free(&before[&(*out, out_vc)], packet) {
                            let output = Self::position(&outs, *out) * vcs + u32::from(out_vc);
                            requests.push(Request { input, output, speculative: false, age: self.age(packet) });
                        }
                    }
                }
            }
        }
        let sizes = (u32::try_from(ins.len()).unwrap() * vcs, u32::try_from(outs.len()).unwrap() * vcs);
        let granted = self.allocate(0, switch, now, &requests, sizes);
        for (link, vc, input) in asked {
            let given = granted.iter().find(|(granted, _)| *granted == input);
            let state = match given {
                None => State::Asks(now + latency),
                Some((_, output)) => {
                    let to = (outs[(output / vcs) as usize], u8::try_from(output % vcs).unwrap());
                    State::Given(if self.wrong(Mistake::GivenAtOnce) { now } else { now + latency - 1 }, to)
                }
            };
            self.inputs.get_mut(&(link, vc)).unwrap().state = state;
        }
        if latency > 1 {
            for link in &ins {
                for vc in 0..self.config.vcs {
                    let state = &self.inputs[&(*link, vc)];
                    if let State::Given(at, to) = state.state
                        && at == now
                        && !self.free(&before[&to], state.flits[0].0)
                    {
                        self.inputs.get_mut(&(*link, vc)).unwrap().state = State::Asks(now + 1);
                    }
                }
            }
        }
    }

    /// What crosses in this cycle: the VC, its way, and whether the way was held.
    fn crossbar(
        &mut self,
        switch: NodeId,
        now: u64,
        before: &BTreeMap<(LinkId, u8), OutVc>,
    ) -> Vec<((LinkId, u8), Way, bool)> {
        let (ins, outs) = self.ports(switch);
        let (input_speedup, output_speedup) = (self.input_speedup(), self.output_speedup());
        let latency = u64::from(self.config.latency.switch_allocation);
        let held = self.held.clone();
        let way_is_held = |way: Way| held.values().any(|(held, _)| *held == way);
        let mut crossing = Vec::new();
        let mut released = Vec::new();
        for (from, (way, vc)) in &held {
            if !ins.contains(&from.0) {
                continue;
            }
            let state = self.inputs.get_mut(&(from.0, *vc)).unwrap();
            let State::Has(to) = state.state else { panic!("holds without a VC") };
            if before[&to].credits > 0 {
                crossing.push(((from.0, *vc), *way, true));
            } else {
                state.asks_crossbar = now + 1;
                released.push(*from);
            }
        }
        let mut requests: Vec<Request> = Vec::new();
        let mut asks: Vec<((LinkId, u8), From, Way)> = Vec::new();
        for link in &ins {
            let port = Self::position(&ins, *link);
            // By way from this input and way to an output: who asks.
            let mut rivals: BTreeMap<(From, Way), Vec<Rival>> = BTreeMap::new();
            for vc in 0..self.config.vcs {
                let from = (*link, u32::from(vc) % input_speedup);
                let state = &self.inputs[&(*link, vc)];
                let holds = held.get(&from).is_some_and(|(_, held)| *held == vc);
                if state.flits.is_empty() || state.crosses.is_some() || state.asks_crossbar > now || holds {
                    continue;
                }
                let mut wanted = Vec::new();
                let speculative = match state.state {
                    State::Idle => continue,
                    State::Has((out, out_vc)) => {
                        if before[&(out, out_vc)].credits > 0 {
                            wanted.push(out);
                        }
                        false
                    }
                    State::Asks(_) | State::Given(..) if !self.config.speculative => continue,
                    State::Asks(_) | State::Given(..) => {
                        for (out, class) in &state.ways {
                            let vcs = self.range(*out, *class);
                            if vcs.iter().any(|vc| !before[&(*out, *vc)].taken && before[&(*out, *vc)].credits > 0) {
                                wanted.push(*out);
                            }
                        }
                        true
                    }
                };
                let packet = state.flits[0].0;
                self.inputs.get_mut(&(*link, vc)).unwrap().asks_crossbar = now + latency;
                for out in wanted {
                    let way = (out, port % output_speedup);
                    let input_held = held.contains_key(&from) && !self.wrong(Mistake::HeldInputForgotten);
                    if !input_held && !way_is_held(way) {
                        rivals.entry((from, way)).or_default().push((vc, speculative, packet));
                    }
                }
            }
            for ((from, way), rivals) in rivals {
                let turn = self.vc_turns.get(&from).copied().unwrap_or(from.1 % u32::from(self.config.vcs));
                let input = port * input_speedup + from.1;
                let output = Self::position(&outs, way.0) * output_speedup + way.1;
                let of = u32::from(self.config.vcs);
                // Here the inputs are VCs, as their switch counts them.
                let asking: Vec<Request> = rivals
                    .iter()
                    .map(|(vc, speculative, packet)| {
                        let input = port * of + u32::from(*vc);
                        Request { input, output, speculative: *speculative, age: self.age(*packet) }
                    })
                    .collect();
                let kind = self.config.switch_allocator.arbiter;
                let taken = self.switch_allocator.arbiter(
                    kind,
                    &asking,
                    (turn, of),
                    |r| r.input % of,
                    |r| self.drawn(1, switch, now, 2, r.input, r.output),
                );
                let vc = u8::try_from(taken.input % of).unwrap();
                requests.push(Request { input, ..taken });
                asks.push(((*link, vc), from, way));
            }
        }
        let sizes =
            (u32::try_from(ins.len()).unwrap() * input_speedup, u32::try_from(outs.len()).unwrap() * output_speedup);
        let granted = self.allocate(1, switch, now, &requests, sizes);
        for (request, (vc, from, way)) in requests.iter().zip(&asks) {
            if granted.contains(&(request.input, request.output)) {
                self.inputs.get_mut(vc).unwrap().crosses = Some((now + latency - 1, *way));
                self.vc_turns.insert(*from, (u32::from(vc.1) + input_speedup) % u32::from(self.config.vcs));
            }
        }
        // VCs that were given count.
        for link in &ins {
            for vc in 0..self.config.vcs {
                let state = self.inputs.get_mut(&(*link, vc)).unwrap();
                if let State::Given(at, to) = state.state
                    && at == now
                {
                    state.state = State::Has(to);
                    if !self.config.speculative {
                        state.asks_crossbar = now + 1;
                    }
                    self.outputs.get_mut(&to).unwrap().taken = true;
                }
            }
        }
        // The crossbar that was given counts.
        for link in &ins {
            for vc in 0..self.config.vcs {
                let mismatch = self.wrong(Mistake::OutputMismatch);
                let state = self.inputs.get_mut(&(*link, vc)).unwrap();
                let Some((at, way)) = state.crosses else { continue };
                if at != now {
                    continue;
                }
                state.crosses = None;
                state.asks_crossbar = now + 1;
                let State::Has(to) = state.state else { continue };
                let from = (*link, u32::from(vc) % input_speedup);
                let free = !held.contains_key(&from) && !way_is_held(way);
                if (to.0 == way.0 || mismatch) && before[&to].credits > 0 && free {
                    crossing.push(((*link, vc), way, false));
                }
            }
        }
        for from in released {
            self.held.remove(&from);
        }
        crossing.sort_by_key(|((link, vc), ..)| (Self::position(&ins, *link), *vc));
        crossing
    }

    fn cross(&mut self, vc: (LinkId, u8), way: Way, was_held: bool, now: u64) {
        let from = (vc.0, u32::from(vc.1) % self.input_speedup());
        let state = self.inputs.get_mut(&vc).unwrap();
        let State::Has(to) = state.state else { panic!("crosses without a VC") };
        let flit = state.flits.pop_front().unwrap();
        state.asks_crossbar = now + 1;
        let empty = state.flits.is_empty();
        let tail = self.messages.is_tail(flit);
        self.takes_credit(to, tail);
        let late = if self.wrong(Mistake::CreditsLate) { u64::from(self.config.latency.crossbar) } else { 0 };
        self.gives_credit(vc, now + late);
        if if self.wrong(Mistake::GoneWithHead) { flit.1 == 0 } else { tail } {
            self.messages.counting.leaves(vc, flit.0);
        }
        let next = self.leaves.get(&to.0).copied().unwrap_or(0);
        let leaves = next.max(now + u64::from(self.config.latency.crossbar));
        self.leaves.insert(to.0, leaves + 1);
        self.crosses_link(to, flit, leaves);
        if flit.1 == 0 {
            self.messages.packets[flit.0].record.switches += 1;
        }
        if self.config.hold_switch && !self.wrong(Mistake::NoHold) && !tail && !empty {
            self.held.insert(from, (way, vc.1));
        } else if was_held {
            self.held.remove(&from);
        }
        if tail {
            self.inputs.get_mut(&vc).unwrap().state = State::Idle;
            if !empty {
                let at = if self.wrong(Mistake::NextHeadAtOnce) { now } else { now + 1 };
                self.head_comes(vc.0, vc.1, at);
            }
        }
    }

    /// A flit leaves over the link of `vc` in the cycle `leaves`.
    fn crosses_link(&mut self, vc: (LinkId, u8), flit: (usize, u32), leaves: u64) {
        let arrives = leaves + 1 + self.delay(vc.0);
        self.messages.counting.moves.push(FlitMove { packet: flit.0, flit: flit.1, vc, leaves, arrives });
        self.wires.entry(arrives).or_default().push((vc.0, vc.1, flit));
    }

    /// A flit is sent by `vc`.
    fn takes_credit(&mut self, vc: (LinkId, u8), tail: bool) {
        let wait = self.config.wait_for_tail_credit && !self.wrong(Mistake::NoTailCredit);
        let output = self.outputs.get_mut(&vc).unwrap();
        output.credits -= 1;
        if tail && wait {
            output.tail_out = true;
        } else if tail {
            output.taken = false;
        }
    }

    /// A flit has left the end of `vc`.
    fn gives_credit(&mut self, vc: (LinkId, u8), now: u64) {
        let to_host = self.topology.is_host(self.topology.link(vc.0).from);
        let counts = if to_host || self.wrong(Mistake::CreditsAtOnce) { 0 } else { self.config.latency.credit };
        let at = now + 1 + self.delay(LinkId(vc.0.0 ^ 1)) + u64::from(counts);
        self.credits.entry(at).or_default().push(vc);
    }

    fn host(&mut self, host: usize, now: u64) {
        let link = self.topology.uplink(NodeId(u32::try_from(host).unwrap()));
        if self.sends[host].is_none()
            && let Some(packet) = self.hosts[host].front().copied()
        {
            let last = self.last_vc[host];
            let mut next: Vec<u8> = (1..=self.config.vcs).map(|step| (last + step) % self.config.vcs).collect();
            if self.wrong(Mistake::LowestAtHost) {
                next.sort_unstable();
            }
            let may = |vc: &u8| {
                let output = &self.outputs[&(link, *vc)];
                output.credits > 0 && self.free(output, packet)
            };
            if let Some(vc) = next.into_iter().find(may) {
                self.hosts[host].pop_front();
                self.sends[host] = Some((packet, 0, vc));
                self.last_vc[host] = vc;
                self.outputs.get_mut(&(link, vc)).unwrap().taken = true;
                self.messages.leaves(packet, now);
            } else if self.messages.counting.loses_heads {
                let all = if self.wrong(Mistake::LosesAll) { self.hosts[host].len() } else { 1 };
                self.messages.counting.lost.extend(self.hosts[host].drain(..all));
            }
        } else if self.messages.counting.loses_heads
            && self.wrong(Mistake::LosesWhileSending)
            && let Some(packet) = self.hosts[host].front().copied()
            && (0..self.config.vcs).all(|vc| !self.free(&self.outputs[&(link, vc)], packet))
        {
            self.hosts[host].pop_front();
            self.messages.counting.lost.push(packet);
        }
        if let Some((packet, sent, vc)) = self.sends[host]
            && self.outputs[&(link, vc)].credits > 0
        {
            let tail = self.messages.is_tail((packet, sent));
            self.takes_credit((link, vc), tail);
            self.crosses_link((link, vc), (packet, sent), now);
            self.sends[host] = (!tail).then_some((packet, sent + 1, vc));
        }
    }

    /// Credits come back and flits arrive at the begin of a cycle. Returns whether flits did.
    fn arrivals(&mut self, now: u64) -> bool {
        while let Some(entry) = self.credits.first_entry()
            && *entry.key() <= now
        {
            for vc in entry.remove() {
                let output = self.outputs.get_mut(&vc).unwrap();
                output.credits += 1;
                if output.tail_out && output.credits == u64::from(self.config.buffer) {
                    (output.taken, output.tail_out) = (false, false);
                }
            }
        }
        let arrived = self.wires.remove(&now).unwrap_or_default();
        for (link, vc, flit) in &arrived {
            if self.topology.is_host(self.topology.link(*link).to) {
                self.gives_credit((*link, *vc), now);
                if self.messages.is_tail(*flit) {
                    self.messages.arrives(flit.0, now);
                }
                continue;
            }
            if flit.1 == 0 {
                self.messages.counting.comes((*link, *vc), flit.0);
            }
            let state = self.inputs.get_mut(&(*link, *vc)).unwrap();
            state.flits.push_back(*flit);
            assert!(state.flits.len() <= self.config.buffer as usize, "more than fits");
            match state.state {
                State::Idle => self.head_comes(*link, *vc, now),
                _ if state.flits.len() == 1 => state.asks_crossbar = state.asks_crossbar.max(now),
                _ => {}
            }
        }
        !arrived.is_empty()
    }

    /// All that was seen and counted until `now`.
    fn counted(self, now: u64) -> Counted {
        let crossed = |FlitMove { packet, flit, vc, leaves, arrives }: &FlitMove| {
            let PacketRecord { source, number, .. } = self.messages.packets[*packet].record;
            let times = (self.clock.begins(*leaves).0, self.clock.begins(*arrives).0);
            (source.0, number, *flit, vc.0.0, vc.1.into(), times.0, times.1)
        };
        Counted {
            queues: self.messages.counting.queues(self.topology.links().len(), self.config.vcs),
            crossed: self.messages.counting.moves.iter().map(crossed).collect(),
            end: self.clock.begins(now),
            seen: self.messages.seen.sorted(),
        }
    }

    fn idle(&self) -> bool {
        self.wires.is_empty()
            && self.hosts.iter().all(VecDeque::is_empty)
            && self.sends.iter().all(Option::is_none)
            && self.inputs.values().all(|vc| vc.flits.is_empty())
    }
}

/// What happens to `traffic` in the network of `config` on `topology`. What is stuck is not delivered.
pub fn play(config: &InputQueuedConfig, topology: &Topology, traffic: &[Sending], mistake: Option<Mistake>) -> Seen {
    count(config, topology, traffic, mistake, false).seen
}

/// The same, and what lies in queues; `loses_heads`: whether hosts lose what finds no room.
pub fn count(
    config: &InputQueuedConfig,
    topology: &Topology,
    traffic: &[Sending],
    mistake: Option<Mistake>,
    loses_heads: bool,
) -> Counted {
    let hosts = topology.hosts() as usize;
    let sizes = Sizes { mtu: config.mtu, headers: config.headers, flit: config.flit };
    let allocator = match mistake {
        Some(Mistake::Allocators(mistake)) => Allocator { mistake: Some(mistake), ..Allocator::default() },
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
        vc_allocator: allocator.clone(),
        switch_allocator: allocator,
        vc_turns: BTreeMap::new(),
        held: BTreeMap::new(),
        leaves: BTreeMap::new(),
        wires: BTreeMap::new(),
        credits: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
        sends: vec![None; hosts],
        last_vc: vec![config.vcs - 1; hosts],
    };
    for link in links(topology, |_, _| true) {
        for vc in 0..config.vcs {
            let empty =
                InVc { flits: VecDeque::new(), state: State::Idle, ways: vec![], asks_crossbar: 0, crosses: None };
            model.inputs.insert((link, vc), empty);
            let all = OutVc { credits: config.buffer.into(), taken: false, tail_out: false };
            model.outputs.insert((link, vc), all);
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
        let before = model.outputs.clone();
        model.messages.counting.look();
        for host in 0..hosts {
            model.host(host, now);
        }
        model.messages.lose(now);
        for switch in switches(topology) {
            model.allocate_vcs(switch, now, &before);
            let crossing = model.crossbar(switch, now, &before);
            for (vc, way, held) in crossing {
                model.cross(vc, way, held, now);
            }
        }
        now += 1;
        if still > 20_000 {
            break;
        }
    }
    model.counted(now)
}
