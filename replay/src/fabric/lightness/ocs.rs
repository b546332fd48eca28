//! The optical circuit switch and each ToR's control of it.
//!
//! A packet needs a circuit from its ToR to the other one: an input port at the one, an output port at the other, both
//! free. Requests of one instant are answered in turn. A granted circuit can be used after a fixed delay, which holds
//! all of the control plane's work, and stays until it was idle for long, or is given up for another request; a refused
//! request is repeated. Two ToRs joined back to back are a circuit that is always up.

use super::config::Decision;
use super::tor::Way;
use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::network::SimTime;
use std::collections::VecDeque;

/// How far a circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody asked for it.
    Down,
    /// Asked for and not yet answered, or refused and to be asked for again.
    Requested,
    /// Granted: it holds these ports (input, output) and will be up.
    SettingUp(u32, u32),
    /// Usable since then, over these ports.
    Up(u32, u32, SimTime),
    /// A fibre, not a circuit.
    Fixed,
}

/// The way from one ToR to another through the circuit switch.
pub struct Circuit {
    pub from: u32,
    pub to: u32,
    pub state: State,
    pub waiting: VecDeque<u32>,
    pub sending: bool,
    pub reserved: u32,
    /// Flows that wait for a place.
    pub wants: VecDeque<u32>,
    /// Since when it has nothing to do, and whether an event looks at that.
    pub idle_since: SimTime,
    pub idle_event: bool,
}

impl Circuit {
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up(..) | State::Fixed)
    }

    fn is_idle(&self) -> bool {
        !self.sending && self.reserved == 0
    }
}

/// The circuit switch.
#[derive(Default)]
pub struct Ocs {
    /// Which circuit holds each input port and each output port, by rack and wavelength.
    pub inputs: Vec<Option<u32>>,
    pub outputs: Vec<Option<u32>>,
    /// Requests of this instant.
    pub requests: Vec<u32>,
    /// The circuit that was granted last.
    pub last: u32,
}

impl Lightness {
    /// The number of the circuit between two racks.
    pub(super) fn circuit_between(&mut self, from: u32, to: u32) -> u32 {
        let racks = self.racks.len();
        let index = from as usize * racks + to as usize;
        if self.circuit_index[index] == u32::MAX {
            self.circuit_index[index] = crate::fabric::count(self.circuits.len());
            let fixed = self.config.decision == Decision::Direct;
            self.circuits.push(Circuit {
                from,
                to,
                state: if fixed { State::Fixed } else { State::Down },
                waiting: VecDeque::new(),
                sending: false,
                reserved: 0,
                wants: VecDeque::new(),
                idle_since: SimTime::ZERO,
                idle_event: false,
            });
        }
        self.circuit_index[index]
    }

    /// A ToR asks for a circuit, unless it has already.
    pub(super) fn ask_for_circuit(&mut self, now: SimTime, index: u32) {
        let circuit = &mut self.circuits[index as usize];
        if circuit.state != State::Down {
            return;
        }
        circuit.state = State::Requested;
        self.request(now, index);
    }

    fn request(&mut self, now: SimTime, index: u32) {
        self.counters.circuit_requests += 1;
        if self.ocs.requests.is_empty() {
            self.queue.schedule(now, Phase::Decide, self.ocs_place(), Event::OcsDecides);
        }
        self.ocs.requests.push(index);
    }

    /// A refused request is repeated.
    pub(super) fn retry_circuit(&mut self, now: SimTime, index: u32) {
        if self.circuits[index as usize].state == State::Requested {
            self.request(now, index);
        }
    }

    /// All requests of an instant are there: they are answered, beginning behind the one that was granted last.
    pub(super) fn ocs_decides(&mut self, now: SimTime) {
        let mut requests = std::mem::take(&mut self.ocs.requests);
        requests.sort_unstable();
        let behind = requests.partition_point(|index| *index <= self.ocs.last);
        requests.rotate_left(behind);
        for index in requests {
            self.answer(now, index);
        }
    }

    fn answer(&mut self, now: SimTime, index: u32) {
        let Circuit { from, to, .. } = self.circuits[index as usize];
        let input = self.free_port(now, from, true);
        let output = self.free_port(now, to, false);
        if let (Some(input), Some(output)) = (input, output) {
            self.ocs.inputs[input as usize] = Some(index);
            self.ocs.outputs[output as usize] = Some(index);
            self.ocs.last = index;
            self.counters.circuits += 1;
            self.circuits[index as usize].state = State::SettingUp(input, output);
            let up = now.plus_ps(self.config.ocs_first_message_delay.ps());
            self.queue.schedule(up, Phase::Arrive, self.circuit_place(index), Event::CircuitUp(index));
        } else {
            self.counters.circuits_refused += 1;
            let again = now.plus_ps(self.config.retry_request_delay.ps());
            self.queue.schedule(again, Phase::Arrive, self.circuit_place(index), Event::CircuitRetry(index));
        }
    }

    /// A free port of `rack`; if there is none, that of a circuit that can be given up.
    fn free_port(&mut self, now: SimTime, rack: u32, input: bool) -> Option<u32> {
        let ports = rack * self.config.wavelengths..(rack + 1) * self.config.wavelengths;
        let holders = if input { &self.ocs.inputs } else { &self.ocs.outputs };
        if let Some(port) = ports.clone().find(|port| holders[*port as usize].is_none()) {
            return Some(port);
        }
        let held = self.config.circuit_hold.ps();
        let given_up = ports.clone().find_map(|port| {
            let circuit = &self.circuits[holders[port as usize]? as usize];
            match circuit.state {
                State::Up(_, _, since) if circuit.is_idle() && now.since_ps(since) >= held => {
                    Some((port, holders[port as usize]?))
                }
                _ => None,
            }
        });
        let (port, circuit) = given_up?;
        self.counters.circuits_evicted += 1;
        self.release(circuit);
        Some(port)
    }

    fn release(&mut self, index: u32) {
        if let State::Up(input, output, _) = self.circuits[index as usize].state {
            self.ocs.inputs[input as usize] = None;
            self.ocs.outputs[output as usize] = None;
            self.circuits[index as usize].state = State::Down;
        }
    }

    /// A circuit can be used.
    pub(super) fn circuit_up(&mut self, now: SimTime, index: u32) {
        let circuit = &mut self.circuits[index as usize];
        if let State::SettingUp(input, output) = circuit.state {
            circuit.state = State::Up(input, output, now);
        }
        circuit.idle_since = now;
        self.use_circuit(now, index);
    }

    /// Sends the next packet that waits for a circuit, or asks for the circuit.
    pub(super) fn use_circuit(&mut self, now: SimTime, index: u32) {
        self.ask_for_circuit(now, index);
        let rate = self.config.tor_rate.min(self.config.ocs_rate);
        let fixed = self.circuits[index as usize].state == State::Fixed;
        let circuit = &mut self.circuits[index as usize];
        if !circuit.is_up() || circuit.sending {
            return;
        }
        let from = circuit.from;
        let Some(id) = circuit.waiting.pop_front() else {
            self.watch_idle(now, index);
            return;
        };
        circuit.sending = true;
        let wire = u64::from(self.packets.get(id).wire);
        let time = self.config.tor_startup_delay.ps() + rate.time_ps(wire) + self.byte_delay.time_ps(wire);
        let sent = now.plus_ps(time);
        self.meters.ocs[from as usize].crossed(now, wire, self.config.interval.ps());
        self.counters.by_circuit += 1;
        self.queue.schedule(sent, Phase::Arrive, self.circuit_place(index), Event::CircuitSent(index));
        let way = if fixed { self.cable_ps } else { 2 * self.cable_ps + self.config.ocs_delay.ps() };
        self.queue.schedule(sent.plus_ps(way), Phase::Arrive, self.circuit_place(index), Event::AtOutput(id));
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
            self.pass_on(now, flow, Way::Circuit(index));
        }
    }

    /// A circuit has nothing to do: it will be looked at again when it may be released.
    fn watch_idle(&mut self, now: SimTime, index: u32) {
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
            self.release(index);
        } else {
            circuit.idle_event = true;
            self.queue.schedule(until, Phase::Arrive, place, Event::CircuitIdle(index));
        }
    }
}
