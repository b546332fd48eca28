//! Heads ask for virtual channels, and are given them.

use super::InputQueued;
use super::state::{ActiveInputs, Offer, Owner, PortVc, State, Switch, behind, bits, next};
use crate::fabric::clocked::matching::{Instant, Request, Stage, Turns};
use crate::fabric::clocked::ports::NONE;
use crate::fabric::clocked::separable::Arbiter;
use crate::fabric::packet::Observer;

impl<O: Observer> InputQueued<O> {
    /// The VCs of an output that a packet of `class` may be given, a bit each.
    #[inline]
    fn vcs_of(&self, output: u32, class: u8) -> u16 {
        let (all, of_class) = self.vcs_of_classes;
        if self.outputs[output as usize].to_host {
            return all;
        }
        // There are 16 VCs at most.
        of_class << (u32::from(class).wrapping_mul(self.vcs_of_class.into()) & 15)
    }

    /// Those that are nobody's and have room for so many flits.
    #[inline]
    fn free_vcs(&mut self, output: u32, class: u8, room: u32, now: u64) -> u16 {
        let mut free = self.outputs[output as usize].free & self.vcs_of(output, class);
        if room > 0 {
            for vc in bits(free) {
                if self.count_credits(PortVc::new(output, vc), now) < room {
                    free &= !(1 << vc);
                }
            }
        }
        free
    }

    /// For so many flits of the packet whose head is in a VC there has to be room.
    fn room_for(&self, index: usize) -> u32 {
        if self.cut_through { self.input_vcs[index].left } else { 0 }
    }

    /// The outputs by which the head in `at` may go on, in order.
    fn outputs_of(&self, switch: &Switch, at: PortVc, outputs: &mut Vec<u32>) {
        outputs.clear();
        let index = self.index(at);
        let output = self.input_vcs[index].output;
        if output != NONE {
            outputs.push(switch.outputs.0 + output);
            return;
        }
        let link = self.inputs[at.port() as usize].link;
        let packet = self.packet_of(index);
        let next = self.routes.next(self.node_of(at.port()), link, packet.destination);
        outputs.extend(next.links.iter().map(|link| self.ports.output_of(*link)));
    }

    /// The outputs by which a head may go on of which a VC that it may be given is nobody's and has a credit: what it may ask for by speculation.
    pub(super) fn speculated_outputs(&mut self, switch: &Switch, at: PortVc, outputs: &mut Vec<u32>, now: u64) {
        self.outputs_of(switch, at, outputs);
        let class = self.input_vcs[self.index(at)].class;
        outputs.retain(|output| self.free_vcs(*output, class, 1, now) != 0);
    }

    /// A head that found no VC waits until one of `outputs` may have one.
    fn wait_for_vc(&mut self, at: PortVc, outputs: &[u32]) {
        self.asks_no_more(at);
        for output in outputs {
            let waiting = &mut self.waiting[*output as usize];
            if !waiting.contains(&at) {
                waiting.push(at);
            }
        }
    }

    /// Heads ask for VCs, and are given them; whose VC counts at the end of this cycle is noted in `given`.
    #[inline(never)]
    pub(super) fn allocate_vcs(&mut self, switch: &Switch, now: u64) {
        if self.plain_vcs {
            return match self.only_head(switch) {
                Some(at) => self.give_only(switch, at, now),
                None => self.match_vcs(switch, now),
            };
        }
        let mut requests = std::mem::take(&mut self.requests);
        let mut outputs = std::mem::take(&mut self.candidates);
        requests.clear();
        self.asking.clear();
        self.asked.clear();
        let latency = u64::from(self.config.latency.vc_allocation);
        for input in switch.inputs() {
            for vc in bits(self.inputs[input as usize].heads) {
                let at = PortVc::new(input, vc);
                let index = self.index(at);
                let state = self.input_vcs[index];
                match state.state {
                    State::Granted if state.vc_at == now => {
                        let (given, room) = (state.given, self.room_for(index));
                        if self.free_vcs(given.port(), state.class, room, now) & given.bit() != 0 {
                            self.given.push(at);
                        } else {
                            // Somebody else was given it in between.
                            let state = &mut self.input_vcs[index];
                            (state.state, state.vc_at) = (State::Asking, now + 1);
                        }
                    }
                    State::Asking if state.vc_at <= now => {
                        self.outputs_of(switch, at, &mut outputs);
                        let before = requests.len();
                        self.ask_for_vcs(switch, at, &outputs, &mut requests, now);
                        self.input_vcs[index].vc_at = now + latency;
                        if requests.len() == before && !self.config.speculative {
                            self.wait_for_vc(at, &outputs);
                        }
                    }
                    _ => {}
                }
            }
        }
        if !requests.is_empty() {
            let range = |(first, ports): (u32, u32)| {
                let first = (first * self.vcs) as usize;
                first..first + (ports * self.vcs) as usize
            };
            let (inputs, outputs) = (range(switch.inputs), range(switch.outputs));
            let mut turns = Turns { inputs: &mut self.vc_turns[inputs], outputs: &mut self.given_turns[outputs] };
            let instant =
                Instant { seed: self.config.seed, switch: switch.number, cycle: now, stage: Stage::VcAllocation };
            self.matcher.allocate(&self.config.vc_allocator, &mut requests, &mut turns, &instant);
            for index in (0..requests.len()).filter(|index| requests[*index].granted) {
                let (at, to) = (self.asking[index], self.asked[index]);
                let place = self.index(at);
                let state = &mut self.input_vcs[place];
                (state.state, state.given, state.vc_at) = (State::Granted, to, now + latency - 1);
                if latency == 1 {
                    self.given.push(at);
                }
            }
        }
        (self.requests, self.candidates) = (requests, outputs);
    }

    /// The head in `at` asks for all VCs of `outputs` that are free for it.
    fn ask_for_vcs(&mut self, switch: &Switch, at: PortVc, outputs: &[u32], requests: &mut Vec<Request>, now: u64) {
        let index = self.index(at);
        let (class, room) = (self.input_vcs[index].class, self.room_for(index));
        let age = if self.config.vc_allocator.arbiter == Arbiter::Age { self.age_of(index) } else { (0, 0) };
        let input = Switch::number_of(at, switch.inputs.0, self.vcs);
        for output in outputs {
            for vc in bits(self.free_vcs(*output, class, room, now)) {
                let to = PortVc::new(*output, vc);
                let output = Switch::number_of(to, switch.outputs.0, self.vcs);
                requests.push(Request { input, output, speculative: false, age, granted: false });
                self.asking.push(at);
                self.asked.push(to);
            }
        }
    }

    /// The only VC of the inputs of a switch in which a head asks for a VC, if it is the only one.
    #[inline]
    fn only_head(&self, switch: &Switch) -> Option<PortVc> {
        let [ActiveInputs { heads, .. }] = self.marks[switch.words()] else { return None };
        let input = switch.inputs.0.wrapping_add(heads.trailing_zeros());
        let asking = self.inputs.get(input as usize)?.heads;
        (heads.is_power_of_two() && asking.is_power_of_two()).then(|| PortVc::new(input, asking.trailing_zeros()))
    }

    /// Which VC the head in `at`, which lies at `index`, asks for: of those that are free for it, the first at its turn or behind it. `of`: VCs of outputs
    /// of the switch. If none is free, it waits.
    #[inline(always)]
    fn choose_vc(&mut self, switch: &Switch, (at, index): (PortVc, usize), of: u32, now: u64) -> Option<PortVc> {
        let state = &self.input_vcs[index];
        if state.output == NONE {
            return self.choose_vc_of_several(switch, at, of, now);
        }
        // No port and VC has a number of more than 32 bits.
        let (output, begin) = (switch.outputs.0.wrapping_add(state.output), state.output.wrapping_mul(self.vcs));
        let free = self.free_vcs(output, state.class, self.room_for(index), now);
        if free == 0 {
            self.wait_for_vc(at, &[output]);
            return None;
        }
        Some(PortVc::new(output, first_from(free, self.vc_turns[index], begin, self.vcs)))
    }

    /// The same of a head that may go on by several outputs.
    fn choose_vc_of_several(&mut self, switch: &Switch, at: PortVc, of: u32, now: u64) -> Option<PortVc> {
        let mut outputs = std::mem::take(&mut self.candidates);
        self.outputs_of(switch, at, &mut outputs);
        let to = self.first_free(switch, at, &outputs, of, now);
        if to.is_none() {
            self.wait_for_vc(at, &outputs);
        }
        self.candidates = outputs;
        to
    }

    /// The same as [`Self::match_vcs`] of the only head that asks, in `at`.
    fn give_only(&mut self, switch: &Switch, at: PortVc, now: u64) {
        let index = self.index(at);
        if self.input_vcs[index].vc_at > now {
            return;
        }
        let (inputs, of) = (switch.inputs.1.wrapping_mul(self.vcs), switch.outputs.1.wrapping_mul(self.vcs));
        if let Some(to) = self.choose_vc(switch, (at, index), of, now) {
            self.gives((at, index), (to, Switch::number_of(to, switch.outputs.0, self.vcs)), switch, (inputs, of), now);
        }
    }

    /// The head in `at`, which lies at `index`, is given the VC `to`, the `number`th of its switch, with `inputs` VCs of inputs and `of` such VCs.
    #[inline]
    fn gives(
        &mut self,
        (at, index): (PortVc, usize),
        (to, number): (PortVc, u32),
        switch: &Switch,
        (inputs, of): (u32, u32),
        now: u64,
    ) {
        let place = self.index(to);
        self.vc_turns[index] = next(number, of);
        self.given_turns[place] = next(Switch::number_of(at, switch.inputs.0, self.vcs), inputs);
        let state = &mut self.input_vcs[index];
        (state.state, state.given, state.vc_at) = (State::Granted, to, now);
        self.given.push(at);
    }

    /// The same as [`Self::allocate_vcs`] where heads choose first, once, by round robin, and are given it at the end of the same cycle.
    #[inline(never)]
    fn match_vcs(&mut self, switch: &Switch, now: u64) {
        let mut offers = std::mem::take(&mut self.offers);
        let mut offered = std::mem::take(&mut self.offered);
        let (inputs, of) = (switch.inputs.1.wrapping_mul(self.vcs), switch.outputs.1.wrapping_mul(self.vcs));
        for word in switch.words() {
            let lowest = switch.lowest(word);
            for input in bits(self.marks[word].heads).map(|bit| lowest.wrapping_add(bit)) {
                for vc in bits(self.inputs[input as usize].heads) {
                    let at = PortVc::new(input, vc);
                    let index = self.index(at);
                    if self.input_vcs[index].vc_at > now {
                        continue;
                    }
                    let Some(to) = self.choose_vc(switch, (at, index), of, now) else { continue };
                    let number = Switch::number_of(to, switch.outputs.0, self.vcs);
                    let turn = self.given_turns[self.index(to)];
                    let rank = behind(Switch::number_of(at, switch.inputs.0, self.vcs), turn, inputs);
                    let offer = &mut offers[number as usize];
                    if offer.rank == u32::MAX {
                        offered.push(number);
                    }
                    if rank < offer.rank {
                        *offer = Offer { rank, from: at, to };
                    }
                }
            }
        }
        for number in offered.drain(..) {
            let Offer { from, to, .. } = std::mem::replace(&mut offers[number as usize], Offer::NONE);
            self.gives((from, self.index(from)), (to, number), switch, (inputs, of), now);
        }
        (self.offers, self.offered) = (offers, offered);
    }

    /// Of the VCs of `outputs` that are free for the head in `at`, the first at its turn or behind it.
    fn first_free(&mut self, switch: &Switch, at: PortVc, outputs: &[u32], of: u32, now: u64) -> Option<PortVc> {
        let index = self.index(at);
        let (class, room, turn) = (self.input_vcs[index].class, self.room_for(index), self.vc_turns[index]);
        let mut first: Option<(u32, PortVc)> = None;
        for output in outputs {
            let free = self.free_vcs(*output, class, room, now);
            if free == 0 {
                continue;
            }
            let begin = (output - switch.outputs.0) * self.vcs;
            let vc = first_from(free, turn, begin, self.vcs);
            let rank = behind(begin + vc, turn, of);
            if first.is_none_or(|(least, _)| rank < least) {
                first = Some((rank, PortVc::new(*output, vc)));
            }
        }
        first.map(|(_, to)| to)
    }

    /// VCs that were given become their packets'.
    pub(super) fn given_vcs_count(&mut self, now: u64) {
        if self.given.is_empty() {
            return;
        }
        let mut given = std::mem::take(&mut self.given);
        for at in given.drain(..) {
            let index = self.index(at);
            let state = &mut self.input_vcs[index];
            state.state = State::Active;
            let (to, crosses) = (state.given, state.crosses);
            if !self.plain_crossbar && !self.config.speculative {
                self.crossbars[index].at = now + 1;
            }
            let place = self.index(to);
            self.outputs[to.port() as usize].free &= !to.bit();
            self.output_vcs[place].owner = Owner::input(at);
            let is_ready = crosses || self.output_vcs[place].credits > 0 || self.count_credits(to, now + 1) > 0;
            // Its switch works now, and looks for itself whether there is more.
            let input = &mut self.inputs[at.port() as usize];
            let (word, mark) = input.mark();
            let marks = &mut self.marks[word];
            input.heads &= !at.bit();
            // Whether others ask is left to chance, and nothing branches by it.
            marks.heads &= !(mark & u64::from(input.heads == 0).wrapping_neg());
            if is_ready {
                self.ready[at.port() as usize] |= at.bit();
                marks.ready |= mark;
                let switch = input.switch;
                self.steady[switch as usize] = NONE;
                if self.plain_crossbar {
                    self.ask_plainly(at, to, switch);
                }
            } else {
                self.is_not_ready(at);
                self.want_credit(to, now + 1);
            }
        }
        self.given = given;
    }
}

/// Of the `vcs` VCs of an output, which are numbered from `begin` on, the first of those that are `free` at `turn` or behind it.
#[inline]
const fn first_from(free: u16, turn: u32, begin: u32, vcs: u32) -> u32 {
    let place = turn.wrapping_sub(begin);
    // There are 16 VCs at most.
    let later = if place < vcs { free & (u16::MAX << (place & 15)) } else { 0 };
    if later != 0 { later.trailing_zeros() } else { free.trailing_zeros() }
}
