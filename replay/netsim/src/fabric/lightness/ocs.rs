//! The optical circuit switch and each ToR's control of it.
//!
//! A packet needs a circuit from its ToR to the other one: an input port at the one, an output port at the other, both
//! free. Requests of one instant are answered in turn. A granted circuit can be used after a fixed delay, which holds
//! all of the control plane's work, and stays until it was idle for long, or is given up for another request; a refused
//! request is repeated ([`super::refused`]). Two ToRs joined back to back are a circuit that is always up.

use super::config::Decision;
use super::state::ocs::{Circuit, CircuitSpan, MAX_SPANS, NO_SPAN, State};
use super::state::tor::Medium;
use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::network::CircuitTotals;
use crate::time::SimTime;
use std::collections::VecDeque;

impl Lightness {
    /// The number of the circuit between two racks.
    pub(super) fn circuit_between(&mut self, from: u32, to: u32) -> u32 {
        let racks = self.racks.len();
        let index = from as usize * racks + to as usize;
        if self.circuit_index[index] == u32::MAX {
            self.circuit_index[index] = crate::count::count(self.circuits.len());
            let fixed = self.config.decision == Decision::Direct;
            self.circuits.push(Circuit {
                from,
                to,
                state: if fixed { State::Fixed } else { State::Down },
                waiting: VecDeque::new(),
                sending: false,
                reserved: 0,
                wants: VecDeque::new(),
                wants_place: false,
                draining: 0,
                output_free: SimTime::ZERO,
                refused: None,
                asked: SimTime::ZERO,
                granted: SimTime::ZERO,
                closes: SimTime::MAX,
                span: NO_SPAN,
                idle_since: SimTime::ZERO,
                idle_event: false,
            });
        }
        self.circuit_index[index]
    }

    /// A ToR asks for a circuit, unless it has already, or a scheduler sees what waits.
    pub(super) fn ask_for_circuit(&mut self, now: SimTime, index: u32) {
        if self.control.is_some() {
            return;
        }
        let circuit = &mut self.circuits[index as usize];
        if circuit.state != State::Down {
            return;
        }
        circuit.state = State::Requested;
        circuit.asked = now;
        self.request(now, index);
    }

    /// A request leaves its ToR; what is on no cable is at the switch at once.
    fn request(&mut self, now: SimTime, index: u32) {
        self.counters.circuit_requests += 1;
        if self.cables.to_ocs == 0 {
            self.circuit_asked(now, index);
            return;
        }
        let at = now.plus_ps(self.cables.to_ocs);
        self.queue.schedule(at, Phase::Arrive, self.circuit_place(index), Event::CircuitAsked(index));
    }

    /// A request is at the circuit switch.
    pub(super) fn circuit_asked(&mut self, now: SimTime, index: u32) {
        self.count_repetitions(now, index);
        if self.ocs.requests.is_empty() {
            self.queue.schedule(now, Phase::Decide, self.ocs_place(), Event::OcsDecides);
        }
        self.ocs.requests.push(index);
    }

    /// All requests of an instant are there, and are answered in turn.
    pub(super) fn ocs_decides(&mut self, now: SimTime) {
        let requests = std::mem::take(&mut self.ocs.requests);
        self.ocs.deciding = requests.into_iter().map(|index| (self.rank(index), index)).collect();
        self.ocs.decided = Some(now);
        let mut granted = Vec::new();
        while let Some((rank, index)) = self.ocs.deciding.pop_first() {
            self.ocs.turn = Some(rank);
            if self.answer(now, index) {
                granted.push(index);
            }
        }
        self.ocs.turn = None;
        for index in granted {
            let Circuit { from, to, .. } = self.circuits[index as usize];
            self.ocs.last[to as usize] = from;
            self.ocs.last_output = to;
        }
    }

    /// Grants or refuses a request. Returns whether it was granted.
    fn answer(&mut self, now: SimTime, index: u32) -> bool {
        let Circuit { from, to, .. } = self.circuits[index as usize];
        let ports = (self.port_for(now, from, true), self.port_for(now, to, false));
        let (Some((input, of_input)), Some((output, of_output))) = ports else {
            self.refuse_circuit(now, index);
            return false;
        };
        let given_up = [of_input, of_output].into_iter().flatten();
        for circuit in given_up.clone() {
            self.counters.circuits_evicted += 1;
            self.release(now, circuit, true);
        }
        self.ocs.inputs[input as usize] = Some(index);
        self.ocs.outputs[output as usize] = Some(index);
        let asked = self.circuits[index as usize].asked;
        self.circuits[index as usize].granted = now;
        self.circuits[index as usize].span = self.begin_span(asked, now, input, output);
        self.counters.circuits += 1;
        self.circuits[index as usize].state = State::SettingUp(input, output);
        let up = now.plus_ps(self.config.ocs_first_message_delay.ps() + self.circuit_answer_ps());
        self.queue.schedule(up, Phase::Arrive, self.circuit_place(index), Event::CircuitUp(index));
        given_up.for_each(|circuit| self.ports_may_be_had(now, circuit));
        true
    }

    /// From an answer of the circuit switch until the ToR has dealt with it.
    pub(super) fn circuit_answer_ps(&self) -> u64 {
        self.config.ocs_ack_delay.ps() + self.cables.from_ocs + self.config.circuit_ack_ps()
    }

    /// A free port of `rack`; if there is none, one whose circuit can be given up, with that circuit.
    pub(super) fn port_for(&self, now: SimTime, rack: u32, input: bool) -> Option<(u32, Option<u32>)> {
        let mut ports = rack * self.tor_circuits..(rack + 1) * self.tor_circuits;
        let holders = if input { &self.ocs.inputs } else { &self.ocs.outputs };
        if let Some(port) = ports.clone().find(|port| holders[*port as usize].is_none()) {
            return Some((port, None));
        }
        let held = self.config.circuit_hold.ps();
        ports.find_map(|port| {
            let holder = holders[port as usize]?;
            let circuit = &self.circuits[holder as usize];
            match circuit.state {
                State::Up(_, _, since) if circuit.is_idle() && now.since_ps(since) >= held => {
                    Some((port, Some(holder)))
                }
                _ => None,
            }
        })
    }

    /// A circuit's span begins: its number, where there is room for it.
    pub(super) fn begin_span(&mut self, asked: SimTime, granted: SimTime, input: u32, output: u32) -> u32 {
        let spans = &mut self.ocs.spans;
        if spans.len() >= MAX_SPANS {
            return NO_SPAN;
        }
        let (up, last_used, released) = (None, None, None);
        let (evicted, packets, bytes) = (false, 0, 0);
        spans.push(CircuitSpan { input, output, asked, granted, up, last_used, released, evicted, packets, bytes });
        crate::count::count(spans.len() - 1)
    }

    fn span_of(&mut self, index: u32) -> Option<&mut CircuitSpan> {
        self.ocs.spans.get_mut(self.circuits[index as usize].span as usize)
    }

    pub(super) fn release(&mut self, now: SimTime, index: u32, evicted: bool) {
        if let State::Up(input, output, up) = self.circuits[index as usize].state {
            self.ocs.totals.released(self.circuits[index as usize].granted, up, now);
            self.ocs.inputs[input as usize] = None;
            self.ocs.outputs[output as usize] = None;
            self.circuits[index as usize].state = State::Down;
            if let Some(span) = self.span_of(index) {
                span.released = Some(now);
                span.evicted = evicted;
            }
            self.circuits[index as usize].span = NO_SPAN;
        }
    }

    /// A circuit can be used.
    pub(super) fn circuit_up(&mut self, now: SimTime, index: u32) {
        let circuit = &mut self.circuits[index as usize];
        circuit.idle_since = now;
        if let State::SettingUp(input, output) = circuit.state {
            circuit.state = State::Up(input, output, now);
            if self.control.is_none() {
                let held = now.plus_ps(self.config.circuit_hold.ps());
                self.queue.schedule(held, Phase::Arrive, self.circuit_place(index), Event::CircuitHeld(index));
            }
        }
        if let Some(span) = self.span_of(index) {
            span.up = Some(now);
        }
        self.use_circuit(now, index);
    }

    /// All circuits together; `None` where none was ever asked for or planned.
    pub(super) fn circuit_totals(&self) -> Option<CircuitTotals> {
        let counters = &self.counters;
        let mut totals = self.ocs.totals.clone();
        totals.ports = self.ocs.inputs.len() as u64;
        let uncounted = self.uncounted();
        totals.requests = counters.circuit_requests + uncounted.0;
        totals.granted = counters.circuits;
        totals.refused = counters.circuits_refused + uncounted.1;
        totals.idle = counters.circuits_released;
        totals.evicted = counters.circuits_evicted;
        for circuit in &self.circuits {
            match circuit.state {
                State::SettingUp(..) => totals.still_open(circuit.granted, None),
                State::Up(_, _, up) => totals.still_open(circuit.granted, Some(up)),
                State::Down | State::Requested | State::Fixed => {}
            }
        }
        (counters.circuit_requests > 0 || counters.circuits > 0).then_some(totals)
    }

    /// Sends the next packet that waits for a circuit, or asks for the circuit.
    ///
    /// A circuit has the smaller rate of the ToR's port and the switch's. With a buffer at the switch's output the ToR sends
    /// at its own rate as long as that has room, and the output at its.
    pub(super) fn use_circuit(&mut self, now: SimTime, index: u32) {
        self.ask_for_circuit(now, index);
        let (tor_rate, ocs_rate) = (self.config.circuit_tor_rate(), self.config.ocs_rate);
        let buffer = self.config.ocs_output_size;
        let fixed = self.circuits[index as usize].state == State::Fixed;
        let circuit = &mut self.circuits[index as usize];
        if !circuit.is_up() || circuit.sending || circuit.wants_place || (buffer > 0 && circuit.draining >= buffer) {
            return;
        }
        let (from, to) = (circuit.from, circuit.to);
        let Some(id) = circuit.waiting.front().copied() else {
            self.watch_idle(now, index);
            return;
        };
        let wire = u64::from(self.packets.get(id).wire);
        let rate = if buffer > 0 { tor_rate } else { tor_rate.min(ocs_rate) };
        let stream = rate.time_ps(wire).saturating_add(self.byte_delay.time_ps(wire));
        let head = now.plus_ps(self.config.tor_startup_delay.ps());
        let sent = head.plus_ps(stream);
        if sent > circuit.closes {
            return;
        }
        if !self.take_place(id) {
            self.circuits[index as usize].wants_place = true;
            self.outputs[to as usize].circuits.push_back(index);
            return;
        }
        self.circuit_not_wanted(from, to, wire);
        self.meters.ocs[from as usize].crossed(now, wire, self.config.interval.ps());
        self.counters.by_circuit += 1;
        if !fixed {
            self.ocs.totals.packets += 1;
            self.ocs.totals.bytes += wire;
        }
        if let Some(span) = self.span_of(index) {
            span.packets += 1;
            span.bytes += wire;
            span.last_used = Some(sent);
        }
        let place = self.circuit_place(index);
        let circuit = &mut self.circuits[index as usize];
        circuit.waiting.pop_front();
        circuit.sending = true;
        self.queue.schedule(sent, Phase::Arrive, place, Event::CircuitSent(index));
        let to_switch = self.cables.to_ocs + self.config.ocs_delay.ps();
        let out = if fixed {
            sent.plus_ps(self.cables.direct)
        } else if buffer == 0 {
            sent.plus_ps(to_switch + self.cables.from_ocs)
        } else {
            // The output begins with the head, and can not be through before the tail is there.
            let begins = head.plus_ps(to_switch).max(circuit.output_free);
            let through = begins.plus_ps(ocs_rate.time_ps(wire)).max(sent.plus_ps(to_switch));
            circuit.output_free = through;
            circuit.draining += 1;
            self.queue.schedule(through, Phase::Arrive, place, Event::CircuitDrained(index));
            through.plus_ps(self.cables.from_ocs)
        };
        self.queue.schedule(out, Phase::Arrive, place, Event::AtOutput(id));
    }

    /// A packet has left the buffer of a circuit's output.
    pub(super) fn circuit_drained(&mut self, now: SimTime, index: u32) {
        let circuit = &mut self.circuits[index as usize];
        circuit.draining -= 1;
        circuit.idle_since = now;
        self.use_circuit(now, index);
        self.may_be_given_up(now, index);
    }

    /// A circuit has sent a packet's last byte.
    pub(super) fn circuit_sent(&mut self, now: SimTime, index: u32) {
        let circuit = &mut self.circuits[index as usize];
        circuit.sending = false;
        let next = circuit.wants.pop_front();
        circuit.reserved -= u32::from(next.is_none());
        circuit.idle_since = now;
        self.use_circuit(now, index);
        if let Some(flow) = next {
            self.pass_on(now, flow, Medium::Circuit(index));
        }
        self.may_be_given_up(now, index);
    }

    /// A circuit has nothing to do: it will be looked at again when it may be released.
    fn watch_idle(&mut self, now: SimTime, index: u32) {
        if self.control.is_some() {
            return;
        }
        let place = self.circuit_place(index);
        let circuit = &mut self.circuits[index as usize];
        if matches!(circuit.state, State::Up(..)) && !circuit.idle_event {
            circuit.idle_event = true;
            let at = now.plus_ps(self.config.circuit_idle.ps());
            self.queue.schedule(at, Phase::Arrive, place, Event::CircuitIdle(index));
        }
    }

    /// Looks whether a circuit was idle for long enough to be released.
    pub(super) fn circuit_idle(&mut self, now: SimTime, index: u32) {
        let place = self.circuit_place(index);
        let limit = self.config.circuit_idle.ps();
        let circuit = &mut self.circuits[index as usize];
        circuit.idle_event = false;
        if !matches!(circuit.state, State::Up(..)) || !circuit.is_idle() {
            return;
        }
        let until = circuit.idle_since.plus_ps(limit);
        if until <= now {
            self.counters.circuits_released += 1;
            self.release(now, index, false);
            self.ports_may_be_had(now, index);
        } else {
            circuit.idle_event = true;
            self.queue.schedule(until, Phase::Arrive, place, Event::CircuitIdle(index));
        }
    }
}
