//! `input-queued`, cycle by cycle and flit by flit, to be checked against `docs/input-queued.md`: in each cycle every virtual channel of every
//! switch is looked at, and every arbiter goes through all that ask it.

use super::counting::{Counted, Counting, FlitMove};
use super::cut;
use super::routing::{Labels, rule};
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::input_queued::{Arbiter, FlowControl, InputQueuedConfig, Order, SeparableAllocator};
use netsim::fabric::packet::PacketRecord;
use netsim::kernel::random::draw;
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::{Hop, Routes, RoutingConfig};
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A mistake of this model, to show that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Round robins move by every iteration.
    TurnsAlwaysMove,
    /// Round robins move to what was granted, and not behind it.
    TurnStays,
    /// The other order.
    OtherOrder,
    /// One iteration only.
    OneIteration,
    /// A VC is free again with its last flit, whatever is waited for.
    NoTailCredit,
    /// A VC is given without room for the whole packet.
    NoRoomForPacket,
    /// Heads without a VC are as good as others.
    SpeculationEqual,
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

#[derive(Clone, Debug)]
struct Packet {
    record: PacketRecord,
    destination: NodeId,
    key: u64,
    flow: u64,
    /// The cycle in which it left.
    left: u64,
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

/// One asks for another; both by number, and the packet for which it does.
#[derive(Clone, Copy, Debug)]
struct Request {
    input: u32,
    output: u32,
    speculative: bool,
    packet: usize,
}

struct Model<'a> {
    config: &'a InputQueuedConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    bits: u128,
    bps: u128,
    packets: Vec<Packet>,
    inputs: BTreeMap<(LinkId, u8), InVc>,
    outputs: BTreeMap<(LinkId, u8), OutVc>,
    /// Where round robins begin: which (allocation, side), the switch, the number.
    turns: BTreeMap<(u8, u8, NodeId, u32), u32>,
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

    fn ends_at(&self, node: NodeId) -> Vec<LinkId> {
        let links = self.topology.links().iter().enumerate();
        links.filter(|(_, l)| !l.absent && l.to == node).map(|(id, _)| LinkId(u32::try_from(id).unwrap())).collect()
    }

    fn begins_at(&self, node: NodeId) -> Vec<LinkId> {
        let links = self.topology.links().iter().enumerate();
        links.filter(|(_, l)| !l.absent && l.from == node).map(|(id, _)| LinkId(u32::try_from(id).unwrap())).collect()
    }

    fn position(list: &[LinkId], link: LinkId) -> u32 {
        u32::try_from(list.iter().position(|other| *other == link).unwrap()).unwrap()
    }

    fn is_tail(&self, flit: (usize, u32)) -> bool {
        flit.1 + 1 == self.packets[flit.0].record.flits
    }

    /// Whether the VC may be given to `packet`.
    fn free(&self, vc: &OutVc, packet: usize) -> bool {
        let room = match self.config.flow_control {
            FlowControl::Wormhole => true,
            FlowControl::VirtualCutThrough => {
                self.wrong(Mistake::NoRoomForPacket) || vc.credits >= u64::from(self.packets[packet].record.flits)
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
        let packet = &self.packets[id];
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

    /// The request that an arbiter takes of `asking`: `number` is what its round robin goes by.
    fn arbiter(
        &self,
        kind: Arbiter,
        asking: &[Request],
        (turn, of): (u32, u32),
        number: impl Fn(&Request) -> u32,
        drawn: impl Fn(&Request) -> u64,
    ) -> Request {
        let certain: Vec<Request> = asking.iter().copied().filter(|request| !request.speculative).collect();
        let asking = if certain.is_empty() || self.wrong(Mistake::SpeculationEqual) { asking } else { &certain };
        let in_turn = |among: &[Request]| {
            let next = (0..of).map(|step| (turn + step) % of);
            let found = next.filter_map(|next| among.iter().find(|request| number(request) == next)).next();
            *found.unwrap()
        };
        match kind {
            Arbiter::RoundRobin => in_turn(asking),
            Arbiter::Random => *asking.iter().min_by_key(|request| drawn(request)).unwrap(),
            Arbiter::Age => {
                let age = |request: &Request| (self.packets[request.packet].left, self.packets[request.packet].key);
                let oldest = asking.iter().map(age).min().unwrap();
                let oldest: Vec<Request> = asking.iter().copied().filter(|request| age(request) == oldest).collect();
                in_turn(&oldest)
            }
        }
    }

    /// The (input, output) pairs that are granted. `allocation`: 0 VCs, 1 the crossbar.
    fn allocate(
        &mut self,
        allocation: u8,
        config: &SeparableAllocator,
        switch: NodeId,
        cycle: u64,
        requests: &[Request],
        (inputs, outputs): (u32, u32),
    ) -> Vec<(u32, u32)> {
        let mut granted: Vec<(u32, u32)> = Vec::new();
        let input_first = (config.order == Order::InputFirst) != self.wrong(Mistake::OtherOrder);
        let iterations = if self.wrong(Mistake::OneIteration) { 1 } else { config.iterations };
        for iteration in 0..iterations {
            let is_left = |r: &&Request| granted.iter().all(|(input, output)| *input != r.input && *output != r.output);
            let left: Vec<Request> = requests.iter().filter(is_left).copied().collect();
            let by_side = |asking: &[Request], side: u8| -> Vec<Request> {
                let own = |r: &Request| if side == 0 { r.input } else { r.output };
                let other = |r: &Request| if side == 0 { r.output } else { r.input };
                let places: BTreeSet<u32> = asking.iter().map(own).collect();
                let of = if side == 0 { outputs } else { inputs };
                let choose = |place: u32| {
                    let mine: Vec<Request> = asking.iter().copied().filter(|r| own(r) == place).collect();
                    let turn = self.turns.get(&(allocation, side, switch, place)).copied().unwrap_or(0);
                    self.arbiter(config.arbiter, &mine, (turn, of), other, |r| {
                        self.drawn(allocation, switch, cycle, side.into(), r.input, r.output)
                    })
                };
                places.into_iter().map(choose).collect()
            };
            let (first, second) = if input_first { (0, 1) } else { (1, 0) };
            let chosen = by_side(&by_side(&left, first), second);
            for request in chosen {
                granted.push((request.input, request.output));
                if iteration == 0 || self.wrong(Mistake::TurnsAlwaysMove) {
                    let behind = u32::from(!self.wrong(Mistake::TurnStays));
                    self.turns.insert((allocation, 0, switch, request.input), (request.output + behind) % outputs);
                    self.turns.insert((allocation, 1, switch, request.output), (request.input + behind) % inputs);
                }
            }
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
        let (ins, outs) = (self.ends_at(switch), self.begins_at(switch));
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
                            requests.push(Request { input, output, speculative: false, packet });
                        }
                    }
                }
            }
        }
        let config = self.config.vc_allocator;
        let sizes = (u32::try_from(ins.len()).unwrap() * vcs, u32::try_from(outs.len()).unwrap() * vcs);
        let granted = self.allocate(0, &config, switch, now, &requests, sizes);
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
        let (ins, outs) = (self.ends_at(switch), self.begins_at(switch));
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
                        Request { input, output, speculative: *speculative, packet: *packet }
                    })
                    .collect();
                let kind = self.config.switch_allocator.arbiter;
                let taken = self.arbiter(
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
        let config = self.config.switch_allocator;
        let sizes =
            (u32::try_from(ins.len()).unwrap() * input_speedup, u32::try_from(outs.len()).unwrap() * output_speedup);
        let granted = self.allocate(1, &config, switch, now, &requests, sizes);
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
        let tail = self.is_tail(flit);
        self.takes_credit(to, tail);
        let late = if self.wrong(Mistake::CreditsLate) { u64::from(self.config.latency.crossbar) } else { 0 };
        self.gives_credit(vc, now + late);
        if if self.wrong(Mistake::GoneWithHead) { flit.1 == 0 } else { tail } {
            self.counting.leaves(vc, flit.0);
        }
        let next = self.leaves.get(&to.0).copied().unwrap_or(0);
        let leaves = next.max(now + u64::from(self.config.latency.crossbar));
        self.leaves.insert(to.0, leaves + 1);
        self.crosses_link(to, flit, leaves);
        if flit.1 == 0 {
            self.packets[flit.0].record.switches += 1;
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
        self.counting.moves.push(FlitMove { packet: flit.0, flit: flit.1, vc, leaves, arrives });
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
                self.packets[packet].left = now;
                self.packets[packet].record.left = self.begins(now);
            } else if self.counting.loses_heads {
                let all = if self.wrong(Mistake::LosesAll) { self.hosts[host].len() } else { 1 };
                self.counting.lost.extend(self.hosts[host].drain(..all));
            }
        } else if self.counting.loses_heads
            && self.wrong(Mistake::LosesWhileSending)
            && let Some(packet) = self.hosts[host].front().copied()
            && (0..self.config.vcs).all(|vc| !self.free(&self.outputs[&(link, vc)], packet))
        {
            self.hosts[host].pop_front();
            self.counting.lost.push(packet);
        }
        if let Some((packet, sent, vc)) = self.sends[host]
            && self.outputs[&(link, vc)].credits > 0
        {
            let tail = self.is_tail((packet, sent));
            self.takes_credit((link, vc), tail);
            self.crosses_link((link, vc), (packet, sent), now);
            self.sends[host] = (!tail).then_some((packet, sent + 1, vc));
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
    let routes = Routes::new(&config.routing, topology, config.seed).unwrap();
    let hosts = topology.hosts() as usize;
    let rate = topology.links()[0].rate;
    let mut model = Model {
        config,
        topology,
        routes,
        mistake,
        bits: super::bits(config.flit.get()),
        bps: super::bps(rate),
        packets: Vec::new(),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        turns: BTreeMap::new(),
        vc_turns: BTreeMap::new(),
        held: BTreeMap::new(),
        leaves: BTreeMap::new(),
        wires: BTreeMap::new(),
        credits: BTreeMap::new(),
        hosts: vec![VecDeque::new(); hosts],
        sends: vec![None; hosts],
        last_vc: vec![config.vcs - 1; hosts],
        numbers: vec![0; hosts],
        counting: Counting::new(loses_heads),
    };
    for (id, link) in (0..).zip(topology.links()) {
        if link.absent {
            continue;
        }
        for vc in 0..config.vcs {
            let empty =
                InVc { flits: VecDeque::new(), state: State::Idle, ways: vec![], asks_crossbar: 0, crosses: None };
            model.inputs.insert((LinkId(id), vc), empty);
            let all = OutVc { credits: config.buffer.into(), taken: false, tail_out: false };
            model.outputs.insert((LinkId(id), vc), all);
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
        while let Some(entry) = model.credits.first_entry()
            && *entry.key() <= now
        {
            for vc in entry.remove() {
                let output = model.outputs.get_mut(&vc).unwrap();
                output.credits += 1;
                if output.tail_out && output.credits == u64::from(config.buffer) {
                    (output.taken, output.tail_out) = (false, false);
                }
            }
        }
        let mut delivered = Vec::new();
        let arrived = model.wires.remove(&now).unwrap_or_default();
        still = if arrived.is_empty() { still + 1 } else { 0 };
        for (link, vc, flit) in arrived {
            if topology.is_host(topology.link(link).to) {
                model.gives_credit((link, vc), now);
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
                continue;
            }
            if flit.1 == 0 {
                model.counting.comes((link, vc), flit.0);
            }
            let state = model.inputs.get_mut(&(link, vc)).unwrap();
            state.flits.push_back(flit);
            assert!(state.flits.len() <= config.buffer as usize, "more than fits");
            match state.state {
                State::Idle => model.head_comes(link, vc, now),
                _ if state.flits.len() == 1 => state.asks_crossbar = state.asks_crossbar.max(now),
                _ => {}
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
                let sending = &traffic[number];
                let (source, destination) = (HostIndex(sending.source), HostIndex(sending.destination));
                let lengths = cut(sending.bytes, config.mtu.get(), config.headers.get());
                open.insert(number as u64, lengths.len() as u64);
                for bytes in lengths {
                    let node = topology.host_node(source.0).0 as usize;
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
                        destination: topology.host_node(destination.0),
                        key: (u64::from(source.0) << 40) + count,
                        flow: sending.flow,
                        left: 0,
                    });
                }
            }
        }
        let before = model.outputs.clone();
        model.counting.look();
        for host in 0..hosts {
            model.host(host, now);
        }
        for packet in std::mem::take(&mut model.counting.lost) {
            let (record, at) = (model.packets[packet].record, model.begins(now));
            model.counting.loses(&record, at, &mut open, &mut seen);
        }
        for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
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
    let queues = model.counting.queues(topology.links().len(), config.vcs);
    let crossed = model.counting.moves.iter().map(|FlitMove { packet, flit, vc, leaves, arrives }| {
        let PacketRecord { source, number, .. } = model.packets[*packet].record;
        let times = (model.begins(*leaves).0, model.begins(*arrives).0);
        (source.0, number, *flit, vc.0.0, vc.1.into(), times.0, times.1)
    });
    let crossed = crossed.collect();
    Counted { seen: seen.sorted(), queues, crossed, end: model.begins(now) }
}
