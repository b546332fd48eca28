//! Routers: what a switch does in a cycle. All of it is decided by what there was when the cycle began.

use super::InputQueued;
use super::config::FlowControl;
use super::state::{Crossing, Flit, InputVc, State};
use crate::fabric::clocked::matching::{Instant, Rank, Request, Stage, Turns};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ports::NONE;
use crate::fabric::clocked::separable::Arbiter;
use crate::fabric::cycle::Cycle;
use crate::fabric::packet::Observer;
use crate::routing::{Choice, Hop};
use crate::topology::{LinkId, NodeId};

/// A switch, and where what it has begins.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    number: u32,
    node: NodeId,
    /// Its first input and output, and how many there are.
    inputs: (u32, u32),
    outputs: (u32, u32),
    /// The first VC of its inputs and outputs.
    first: usize,
    first_given: u32,
}

impl<O: Observer> InputQueued<O> {
    fn switch(&self, number: u32) -> Switch {
        let (inputs, outputs) = (self.ports.inputs_of(number), self.ports.outputs_of(number));
        Switch {
            number,
            node: NodeId(self.topology.hosts() + number),
            inputs,
            outputs,
            first: inputs.0 as usize * self.vcs as usize,
            first_given: outputs.0 * self.vcs,
        }
    }

    /// A flit has come to the end of a link at a switch.
    pub(super) fn flit_arrives(&mut self, link: LinkId, vc: u8, flit: Flit, now: u64) {
        let input = self.ports.input_of(link);
        let index = input as usize * self.vcs as usize + usize::from(vc);
        let buffer = self.config.buffer;
        let state = &mut self.input_vcs[index];
        let place = state.first + state.flits;
        let place = if place >= buffer { place - buffer } else { place };
        state.flits += 1;
        self.queues[index * buffer as usize + place as usize] = flit;
        let switch = self.topology.link(link).to.0 - self.topology.hosts();
        match state.state {
            State::Idle => self.head_comes(index, link, vc, now),
            State::Active if state.flits == 1 => state.crossbar_at = state.crossbar_at.max(now),
            _ => {}
        }
        self.waiting[switch as usize] += 1;
        if self.waiting[switch as usize] == 1 && !std::mem::replace(&mut self.listed[switch as usize], true) {
            self.working.push(switch);
        }
    }

    /// The head of a packet is first in VC `vc` of `link` from the cycle `at` on.
    fn head_comes(&mut self, index: usize, link: LinkId, vc: u8, at: u64) {
        let id = self.queues[index * self.config.buffer as usize + self.input_vcs[index].first as usize].packet;
        let packet = self.packets.get(id);
        let node = self.topology.link(link).to;
        let (output, class) = self.route(node, link, vc, packet);
        let state = &mut self.input_vcs[index];
        state.state = State::Asking;
        state.vc_at = at + u64::from(self.config.latency.routing);
        state.crossbar_at = state.vc_at;
        (state.output, state.class) = (output, class);
    }

    /// The output by which a packet goes on, [`NONE`] if there are several to choose from, and its class of VCs.
    fn route(&self, node: NodeId, link: LinkId, vc: u8, packet: &Packet) -> (u32, u8) {
        if self.by_packet {
            let class = vc / self.vcs_of_class;
            let hop = Hop { at: node, input_link: link, class, to: packet.destination, key: packet.key };
            return self.routes.lane(&hop).map_or((NONE, 0), |(lane, _)| (self.ports.position(lane.link), lane.class));
        }
        let next = self.routes.next(node, link, packet.destination);
        let source = self.topology.host_node((packet.key >> 40) as u32);
        match self.routes.choose(next.links.len(), node, packet.key, packet.flow, source, packet.destination) {
            Choice::Index(index) => {
                next.links.get(index).map_or((NONE, 0), |link| (self.ports.position(*link), next.class))
            }
            Choice::ByCredits => (NONE, next.class),
        }
    }

    /// All VCs that the head in `vc` of `switch` may be given, from those of the first output on, output by output.
    fn candidates(&self, switch: &Switch, vc: u32, packet: &Packet, candidates: &mut Vec<(u32, std::ops::Range<u32>)>) {
        candidates.clear();
        let state = &self.input_vcs[switch.first + vc as usize];
        let range = |output: u32| {
            let link = self.ports.outputs()[(switch.outputs.0 + output) as usize];
            let first = output * self.vcs;
            if self.topology.is_host(self.topology.link(link).to) {
                return (output, first..first + self.vcs);
            }
            let own = u32::from(self.vcs_of_class);
            let first = first + u32::from(state.class) * own;
            (output, first..first + own)
        };
        if state.output != NONE {
            candidates.push(range(state.output));
            return;
        }
        let input = self.ports.inputs()[switch.inputs.0 as usize + (vc / self.vcs) as usize];
        let next = self.routes.next(switch.node, input, packet.destination);
        candidates.extend(next.links.iter().map(|link| range(self.ports.position(*link))));
    }

    /// What switch `number` does in cycle `now`. Returns whether flits wait at it.
    pub(super) fn switch_works(&mut self, number: u32, now: u64) -> bool {
        let switch = self.switch(number);
        let mut busy = std::mem::take(&mut self.busy);
        busy.clear();
        let vcs = switch.inputs.1 * self.vcs;
        busy.extend((0..vcs).filter(|vc| self.input_vcs[switch.first + *vc as usize].flits > 0));
        self.allocate_vcs(&switch, &busy, now);
        let mut crossing = std::mem::take(&mut self.crossing);
        crossing.clear();
        if self.config.hold_switch {
            self.held_cross(&switch, &mut crossing, now);
        }
        self.allocate_crossbar(&switch, &busy, now);
        self.given_vcs_count(&switch, &busy, now);
        self.given_crossbar_counts(&switch, &busy, &mut crossing, now);
        for way in self.released.drain(..) {
            let held = &mut self.held_ways[way as usize];
            self.held_inputs[*held as usize] = NONE;
            *held = NONE;
        }
        crossing.sort_unstable();
        for crossing in &crossing {
            self.cross(&switch, *crossing, now);
        }
        (self.busy, self.crossing) = (busy, crossing);
        self.waiting[number as usize] > 0
    }

    fn packet_of(&self, index: usize) -> &Packet {
        let state = &self.input_vcs[index];
        self.packets.get(self.queues[index * self.config.buffer as usize + state.first as usize].packet)
    }

    /// Heads ask for VCs, and are given them.
    fn allocate_vcs(&mut self, switch: &Switch, busy: &[u32], now: u64) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut candidates = std::mem::take(&mut self.candidates);
        requests.clear();
        let latency = u64::from(self.config.latency.vc_allocation);
        let cut_through = self.config.flow_control == FlowControl::VirtualCutThrough;
        for vc in busy {
            let index = switch.first + *vc as usize;
            let state = &self.input_vcs[index];
            if state.state != State::Asking || state.vc_at > now {
                continue;
            }
            let packet = self.packet_of(index);
            let room = cut_through.then_some(packet.flits);
            let age = (packet.left, packet.key);
            self.candidates(switch, *vc, packet, &mut candidates);
            for (_, range) in &candidates {
                for output in range.clone() {
                    if self.output_vcs[(switch.first_given + output) as usize].is_free_for(room) {
                        requests.push(Request { input: *vc, output, speculative: false, age, granted: false });
                    }
                }
            }
            self.input_vcs[index].vc_at = now + latency;
        }
        if !requests.is_empty() {
            let first = switch.first_given as usize;
            let mut turns = Turns {
                inputs: &mut self.vc_turns[switch.first..switch.first + (switch.inputs.1 * self.vcs) as usize],
                outputs: &mut self.given_turns[first..first + (switch.outputs.1 * self.vcs) as usize],
            };
            let instant =
                Instant { seed: self.config.seed, switch: switch.number, cycle: now, stage: Stage::VcAllocation };
            self.matcher.allocate(&self.config.vc_allocator, &mut requests, &mut turns, &instant);
            for request in requests.iter().filter(|request| request.granted) {
                let state = &mut self.input_vcs[switch.first + request.input as usize];
                (state.state, state.given) = (State::Granted, switch.first_given + request.output);
                state.vc_at = now + latency - 1;
            }
        }
        if latency > 1 {
            for vc in busy {
                let index = switch.first + *vc as usize;
                let state = &self.input_vcs[index];
                if state.state == State::Granted && state.vc_at == now {
                    let room = cut_through.then(|| self.packet_of(index).flits);
                    if !self.output_vcs[state.given as usize].is_free_for(room) {
                        // Somebody else was given it in between.
                        let state = &mut self.input_vcs[index];
                        (state.state, state.vc_at) = (State::Asking, now + 1);
                    }
                }
            }
        }
        (self.requests, self.candidates) = (requests, candidates);
    }

    /// Packets that hold their way go on, or give it up.
    fn held_cross(&mut self, switch: &Switch, crossing: &mut Vec<Crossing>, now: u64) {
        let speedup = u32::from(self.config.input_speedup);
        let first = switch.inputs.0 * speedup;
        for input in first..first + switch.inputs.1 * speedup {
            let way = self.held_inputs[input as usize];
            if way == NONE {
                continue;
            }
            let vc = (input - first) / speedup * self.vcs + u32::from(self.held_vcs[input as usize]);
            let state = &mut self.input_vcs[switch.first + vc as usize];
            if self.output_vcs[state.given as usize].credits > 0 {
                crossing.push(Crossing { vc, way, held: true });
            } else {
                state.crossbar_at = now + 1;
                self.released.push(way);
            }
        }
    }

    /// First flits ask for the crossbar, and are given it.
    fn allocate_crossbar(&mut self, switch: &Switch, busy: &[u32], now: u64) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut asking = std::mem::take(&mut self.asking);
        let mut candidates = std::mem::take(&mut self.candidates);
        requests.clear();
        asking.clear();
        let latency = u64::from(self.config.latency.switch_allocation);
        for vc in busy {
            let index = switch.first + *vc as usize;
            let state = self.input_vcs[index];
            if state.crosses || state.crossbar_at > now || self.holds(switch, *vc) {
                continue;
            }
            match state.state {
                State::Active => {
                    self.input_vcs[index].crossbar_at = now + latency;
                    if self.output_vcs[state.given as usize].credits > 0 {
                        let output = (state.given - switch.first_given) / self.vcs;
                        self.ask(switch, *vc, output, false, now, &mut requests, &mut asking);
                    }
                }
                State::Asking | State::Granted if self.config.speculative => {
                    self.input_vcs[index].crossbar_at = now + latency;
                    self.candidates(switch, *vc, self.packet_of(index), &mut candidates);
                    for (output, range) in &candidates {
                        let mut vcs = range.clone().map(|vc| &self.output_vcs[(switch.first_given + vc) as usize]);
                        if vcs.any(|vc| !vc.taken && vc.credits > 0) {
                            self.ask(switch, *vc, *output, true, now, &mut requests, &mut asking);
                        }
                    }
                }
                _ => {}
            }
        }
        if !requests.is_empty() {
            let (inputs, outputs) = (self.config.input_speedup, self.config.output_speedup);
            let range = |(first, ports): (u32, u32), speedup: u8| {
                let first = first as usize * usize::from(speedup);
                first..first + ports as usize * usize::from(speedup)
            };
            let mut turns = Turns {
                inputs: &mut self.input_turns[range(switch.inputs, inputs)],
                outputs: &mut self.way_turns[range(switch.outputs, outputs)],
            };
            let instant =
                Instant { seed: self.config.seed, switch: switch.number, cycle: now, stage: Stage::SwitchAllocation };
            self.matcher.allocate(&self.config.switch_allocator, &mut requests, &mut turns, &instant);
            for (request, vc) in requests.iter().zip(&asking).filter(|(request, _)| request.granted) {
                let state = &mut self.input_vcs[switch.first + *vc as usize];
                state.crosses = true;
                state.crossbar_at = now + latency - 1;
                state.way = switch.outputs.0 * u32::from(outputs) + request.output;
                let input = switch.inputs.0 * u32::from(inputs) + request.input;
                self.in_turn[input as usize] =
                    u8::try_from((*vc % self.vcs + u32::from(inputs)) % self.vcs).unwrap_or(0);
            }
        }
        (self.requests, self.asking, self.candidates) = (requests, asking, candidates);
    }

    /// Whether `vc` holds its way for its packet.
    fn holds(&self, switch: &Switch, vc: u32) -> bool {
        if !self.config.hold_switch {
            return false;
        }
        let input = self.input_way(switch, vc);
        self.held_inputs[input as usize] != NONE && u32::from(self.held_vcs[input as usize]) == vc % self.vcs
    }

    /// The way from an input into the crossbar that `vc` of `switch` takes.
    fn input_way(&self, switch: &Switch, vc: u32) -> u32 {
        let speedup = u32::from(self.config.input_speedup);
        (switch.inputs.0 + vc / self.vcs) * speedup + vc % self.vcs % speedup
    }

    /// `vc` asks for `output`: of several VCs of an input that ask for one way to it, one does.
    #[expect(clippy::too_many_arguments, reason = "what is asked for, and two lists that go together")]
    fn ask(
        &self,
        switch: &Switch,
        vc: u32,
        output: u32,
        speculative: bool,
        now: u64,
        requests: &mut Vec<Request>,
        asking: &mut Vec<u32>,
    ) {
        let port = vc / self.vcs;
        let from = self.input_way(switch, vc);
        let speedup = u32::from(self.config.output_speedup);
        let way = (switch.outputs.0 + output) * speedup + port % speedup;
        if self.config.hold_switch && (self.held_inputs[from as usize] != NONE || self.held_ways[way as usize] != NONE)
        {
            return;
        }
        let packet = self.packet_of(switch.first + vc as usize);
        let request = Request {
            input: from - switch.inputs.0 * u32::from(self.config.input_speedup),
            output: way - switch.outputs.0 * speedup,
            speculative,
            age: (packet.left, packet.key),
            granted: false,
        };
        let same = |other: &Request| (other.input, other.output) == (request.input, request.output);
        let earlier =
            requests.iter().zip(&*asking).rposition(|(other, other_vc)| *other_vc / self.vcs == port && same(other));
        let Some(earlier) = earlier else {
            requests.push(request);
            asking.push(vc);
            return;
        };
        let rank = |request: &Request, vc: u32| self.rank_among_vcs(switch, request, from, vc, now);
        if rank(&request, vc) < rank(&requests[earlier], asking[earlier]) {
            (requests[earlier], asking[earlier]) = (request, vc);
        }
    }

    /// The rank of `vc` among those of its input that ask for one way; the least one wins.
    fn rank_among_vcs(&self, switch: &Switch, request: &Request, from: u32, vc: u32, now: u64) -> Rank {
        let turn = u32::from(self.in_turn[from as usize]);
        let behind = (vc % self.vcs + self.vcs - turn) % self.vcs;
        match self.config.switch_allocator.arbiter {
            Arbiter::RoundRobin => (request.speculative, behind.into(), 0, 0),
            Arbiter::Age => (request.speculative, request.age.0, request.age.1, 0),
            Arbiter::Random => {
                let instant = Instant {
                    seed: self.config.seed,
                    switch: switch.number,
                    cycle: now,
                    stage: Stage::SwitchAllocation,
                };
                (request.speculative, instant.draw(2, vc, request.output), 0, 0)
            }
        }
    }

    /// VCs that were given become their packets'.
    fn given_vcs_count(&mut self, switch: &Switch, busy: &[u32], now: u64) {
        for vc in busy {
            let state = &mut self.input_vcs[switch.first + *vc as usize];
            if state.state == State::Granted && state.vc_at == now {
                state.state = State::Active;
                self.output_vcs[state.given as usize].taken = true;
                if !self.config.speculative {
                    state.crossbar_at = now + 1;
                }
            }
        }
    }

    /// Flits cross that were given the crossbar, if they still can.
    fn given_crossbar_counts(&mut self, switch: &Switch, busy: &[u32], crossing: &mut Vec<Crossing>, now: u64) {
        let speedup = u32::from(self.config.output_speedup);
        for vc in busy {
            let state = self.input_vcs[switch.first + *vc as usize];
            if !state.crosses || state.crossbar_at != now {
                continue;
            }
            let held = self.config.hold_switch && {
                let from = self.input_way(switch, *vc);
                self.held_inputs[from as usize] != NONE || self.held_ways[state.way as usize] != NONE
            };
            // A head may have been given the crossbar without a VC, or with one of another output.
            let ready = state.state == State::Active
                && state.given / self.vcs == state.way / speedup
                && self.output_vcs[state.given as usize].credits > 0;
            if ready && !held {
                crossing.push(Crossing { vc: *vc, way: state.way, held: false });
            } else {
                let state = &mut self.input_vcs[switch.first + *vc as usize];
                (state.crosses, state.crossbar_at) = (false, now + 1);
            }
        }
    }

    /// The first flit of a VC crosses the crossbar, and leaves by the output's link.
    fn cross(&mut self, switch: &Switch, crossing: Crossing, now: u64) {
        let Crossing { vc, way, held } = crossing;
        let index = switch.first + vc as usize;
        let buffer = self.config.buffer;
        let InputVc { first, given, .. } = self.input_vcs[index];
        let flit = self.queues[index * buffer as usize + first as usize];
        let was_head = !self.input_sent[index];
        self.input_sent[index] = !flit.tail;
        let state = &mut self.input_vcs[index];
        state.crosses = false;
        state.first = if first + 1 == buffer { 0 } else { first + 1 };
        state.flits -= 1;
        state.crossbar_at = now + 1;
        let left = state.flits;
        self.waiting[switch.number as usize] -= 1;
        self.output_vcs[given as usize].send(flit.tail, self.config.wait_for_tail_credit);
        let input_link = self.ports.inputs()[switch.inputs.0 as usize + (vc / self.vcs) as usize];
        let input_vc = u8::try_from(vc % self.vcs).unwrap_or(0);
        self.credit_back(input_link, input_vc, now);
        if flit.tail {
            let lane = self.lane(input_link, input_vc);
            if let Some(occupancy) = &mut self.occupancy {
                occupancy.leaves(lane, now, now + 1);
            }
        }

        // The output: as many flits a cycle come as it has ways, and one leaves.
        let output = given / self.vcs;
        let next = &mut self.leaves[output as usize];
        let leaves = (now + u64::from(self.config.latency.crossbar)).max(*next);
        *next = leaves + 1;
        let link = self.ports.outputs()[output as usize];
        let output_vc = u8::try_from(given % self.vcs).unwrap_or(0);
        if was_head {
            let packet = self.packets.get_mut(flit.packet);
            packet.switches += 1;
            let at = Cycle(leaves).begins(&self.clock);
            self.meters[link].crossed(at, packet.bytes.into(), self.config.interval.ps());
        }
        self.sent(link, output_vc, flit.packet, (was_head, flit.tail), leaves);

        if self.config.hold_switch {
            let from = self.input_way(switch, vc) as usize;
            let keeps = !flit.tail && left > 0;
            if keeps {
                (self.held_inputs[from], self.held_vcs[from]) = (way, input_vc);
                self.held_ways[way as usize] = u32::try_from(from).unwrap_or(NONE);
            } else if held {
                (self.held_inputs[from], self.held_ways[way as usize]) = (NONE, NONE);
            }
        }
        if flit.tail {
            self.input_vcs[index].state = State::Idle;
            if left > 0 {
                self.head_comes(index, input_link, input_vc, now + 1);
            }
        }
    }
}
