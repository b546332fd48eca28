//! Flits ask for the crossbar, are given it, and may hold it.

use super::InputQueued;
use super::state::{Crossbar, Crossing, PortVc, State, Switch, behind, bits};
use crate::fabric::clocked::matching::{Instant, Rank, Request, Stage, Turns};
use crate::fabric::clocked::ports::NONE;
use crate::fabric::clocked::separable::Arbiter;
use crate::fabric::packet::Observer;

impl<O: Observer> InputQueued<O> {
    /// First flits ask for the crossbar, and are given it.
    pub(super) fn allocate_crossbar(&mut self, switch: &Switch, now: u64) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut asking = std::mem::take(&mut self.asking);
        let mut outputs = std::mem::take(&mut self.candidates);
        requests.clear();
        asking.clear();
        let latency = u64::from(self.config.latency.switch_allocation);
        for input in switch.inputs() {
            for vc in bits(self.ready[input as usize]) {
                let at = PortVc::new(input, vc);
                let index = self.index(at);
                let state = self.input_vcs[index];
                if state.crosses || self.crossbars[index].at > now || self.holds(at) {
                    continue;
                }
                match state.state {
                    State::Active => {
                        self.crossbars[index].at = now + latency;
                        self.ask(switch, at, state.given.port(), false, now, &mut requests, &mut asking);
                    }
                    State::Asking | State::Granted if self.config.speculative => {
                        self.crossbars[index].at = now + latency;
                        self.speculated_outputs(switch, at, &mut outputs, now);
                        for output in &outputs {
                            self.ask(switch, at, *output, true, now, &mut requests, &mut asking);
                        }
                    }
                    _ => {}
                }
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
            for (request, at) in requests.iter().zip(&asking).filter(|(request, _)| request.granted) {
                let index = self.index(*at);
                self.input_vcs[index].crosses = true;
                let way = switch.outputs.0 * u32::from(outputs) + request.output;
                self.crossbars[index] = Crossbar { at: now + latency - 1, way };
                let input = switch.inputs.0 * u32::from(inputs) + request.input;
                self.in_turn[input as usize] = u8::try_from((at.vc() + u32::from(inputs)) % self.vcs).unwrap_or(0);
            }
        }
        (self.requests, self.asking, self.candidates) = (requests, asking, outputs);
    }

    /// Whether `at` holds its way for its packet.
    fn holds(&self, at: PortVc) -> bool {
        if !self.config.hold_switch {
            return false;
        }
        let input = self.input_way(at);
        self.held_inputs[input as usize] != NONE && u32::from(self.held_vcs[input as usize]) == at.vc()
    }

    /// The way from an input into the crossbar that `at` takes.
    fn input_way(&self, at: PortVc) -> u32 {
        let speedup = u32::from(self.config.input_speedup);
        at.port() * speedup + at.vc() % speedup
    }

    /// `at` asks for `output`: of several VCs of an input that ask for one way to it, one does.
    #[expect(clippy::too_many_arguments, reason = "what is asked for, and two lists that go together")]
    fn ask(
        &self,
        switch: &Switch,
        at: PortVc,
        output: u32,
        speculative: bool,
        now: u64,
        requests: &mut Vec<Request>,
        asking: &mut Vec<PortVc>,
    ) {
        let from = self.input_way(at);
        let speedup = u32::from(self.config.output_speedup);
        let way = output * speedup + (at.port() - switch.inputs.0) % speedup;
        if self.config.hold_switch && (self.held_inputs[from as usize] != NONE || self.held_ways[way as usize] != NONE)
        {
            return;
        }
        let is_old = self.config.switch_allocator.arbiter == Arbiter::Age;
        let request = Request {
            input: from - switch.inputs.0 * u32::from(self.config.input_speedup),
            output: way - switch.outputs.0 * speedup,
            speculative,
            age: if is_old { self.age_of(self.index(at)) } else { (0, 0) },
            granted: false,
        };
        let same = |other: &Request| (other.input, other.output) == (request.input, request.output);
        let mut of_port = (0..requests.len()).rev().take_while(|index| asking[*index].port() == at.port());
        let Some(earlier) = of_port.find(|index| same(&requests[*index])) else {
            requests.push(request);
            asking.push(at);
            return;
        };
        let rank = |request: &Request, at: PortVc| self.rank_among_vcs(switch, request, from, at, now);
        if rank(&request, at) < rank(&requests[earlier], asking[earlier]) {
            (requests[earlier], asking[earlier]) = (request, at);
        }
    }

    /// The rank of `at` among those of its input that ask for one way; the least one wins.
    fn rank_among_vcs(&self, switch: &Switch, request: &Request, from: u32, at: PortVc, now: u64) -> Rank {
        let turn = u32::from(self.in_turn[from as usize]);
        match self.config.switch_allocator.arbiter {
            Arbiter::RoundRobin => (request.speculative, behind(at.vc(), turn, self.vcs).into(), 0, 0),
            Arbiter::Age => (request.speculative, request.age.0, request.age.1, 0),
            Arbiter::Random => {
                let instant = Instant {
                    seed: self.config.seed,
                    switch: switch.number,
                    cycle: now,
                    stage: Stage::SwitchAllocation,
                };
                let number = Switch::number_of(at, switch.inputs.0, self.vcs);
                (request.speculative, instant.draw(2, number, request.output), 0, 0)
            }
        }
    }

    /// Packets that hold their way go on, or give it up.
    pub(super) fn held_cross(&mut self, switch: &Switch, crossing: &mut Vec<Crossing>, now: u64) {
        let speedup = u32::from(self.config.input_speedup);
        for from in switch.inputs.0 * speedup..(switch.inputs.0 + switch.inputs.1) * speedup {
            let way = self.held_inputs[from as usize];
            if way == NONE {
                continue;
            }
            let at = PortVc::new(from / speedup, self.held_vcs[from as usize].into());
            let index = self.index(at);
            if self.count_credits(self.input_vcs[index].given, now) > 0 {
                crossing.push(Crossing { at, way, held: true });
            } else {
                self.crossbars[index].at = now + 1;
                self.released.push(way);
            }
        }
    }

    /// Flits cross that were given the crossbar, if they still can.
    pub(super) fn given_crossbar_counts(&mut self, switch: &Switch, crossing: &mut Vec<Crossing>, now: u64) {
        let speedup = u32::from(self.config.output_speedup);
        for input in switch.inputs() {
            for vc in bits(self.ready[input as usize]) {
                let at = PortVc::new(input, vc);
                let index = self.index(at);
                let state = self.input_vcs[index];
                let Crossbar { at: counts, way } = self.crossbars[index];
                if !state.crosses || counts != now {
                    continue;
                }
                let held = self.config.hold_switch
                    && (self.held_inputs[self.input_way(at) as usize] != NONE || self.held_ways[way as usize] != NONE);
                // A head may have been given the crossbar without a VC, or with one of another output.
                let is_active = state.state == State::Active;
                let credits = if is_active { self.count_credits(state.given, now) } else { 0 };
                if credits > 0 && state.given.port() == way / speedup && !held {
                    crossing.push(Crossing { at, way, held: false });
                    continue;
                }
                self.input_vcs[index].crosses = false;
                self.crossbars[index].at = now + 1;
                if is_active && credits == 0 && self.count_credits(state.given, now + 1) == 0 {
                    self.is_not_ready(at);
                    self.want_credit(state.given, now + 1);
                }
            }
        }
    }

    /// Ways that are held no more.
    pub(super) fn release(&mut self) {
        for way in self.released.drain(..) {
            let held = &mut self.held_ways[way as usize];
            self.held_inputs[*held as usize] = NONE;
            *held = NONE;
        }
    }

    /// A flit has crossed by `way`: its packet holds it if the next one is there (`keeps`); else it does so no more, if it did.
    pub(super) fn hold(&mut self, crossing: Crossing, keeps: bool) {
        let Crossing { at, way, held } = crossing;
        let from = self.input_way(at) as usize;
        if keeps {
            // There are 16 VCs at most.
            (self.held_inputs[from], self.held_vcs[from]) = (way, at.vc() as u8);
            self.held_ways[way as usize] = u32::try_from(from).unwrap_or(NONE);
        } else if held {
            (self.held_inputs[from], self.held_ways[way as usize]) = (NONE, NONE);
        }
    }
}
