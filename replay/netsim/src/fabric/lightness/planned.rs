//! Circuits that a scheduler plans from what waits, in place of those that ToRs ask for.
//!
//! A controller learns for how long each pair of racks would have to be joined for all that is to go over circuits, at servers and ToRs, and plans
//! from that. Each pair of racks has one of the ports of its ToRs, dealt in turn, so that it has one circuit at a time. A circuit takes its
//! set-up, until the ToR knows of it, and the time that was planned; a ToR sends what is through the switch before it ends.

use super::config::{Decision, LightnessConfig, OcsScheduler};
use super::state::ocs::{Planned, State};
use super::{Event, Lightness};
use crate::circuits::{ByDemand, Control, ControlTimes};
use crate::count::count;
use crate::kernel::Phase;
use crate::time::SimTime;
use crate::units::DurationPs;

const SLICE: DurationPs = DurationPs::from_ms(10);
const DEMAND_LIMIT: DurationPs = DurationPs::from_ms(1_000);

impl LightnessConfig {
    /// For how long two racks are joined at most in a plan.
    pub(super) fn demand_limit(&self) -> DurationPs {
        self.demand_limit.unwrap_or(DEMAND_LIMIT)
    }

    /// The time of a packet over a circuit, the ToR's start-up included, in picoseconds; one at least, for what takes none waits too.
    pub(super) fn circuit_packet_ps(&self, wire: u64) -> u64 {
        let rate = self.circuit_tor_rate().min(self.ocs_rate);
        let stream = rate.time_ps(wire).saturating_add(self.byte_delay().time_ps(wire));
        stream.saturating_add(self.tor_startup_delay.ps()).max(1)
    }

    /// That of the largest packet.
    pub(super) fn largest_circuit_packet_ps(&self) -> u64 {
        self.circuit_packet_ps(self.wire_bytes(self.photonic_packet_max.get()))
    }

    /// The controller for so many ports of the circuit switch; none where ToRs ask for circuits.
    pub(super) fn control(&self, ports: usize) -> Option<Control> {
        let by_demand = match self.scheduler {
            OcsScheduler::OnDemand => return None,
            OcsScheduler::MaxWeight => ByDemand::MaxWeight,
            OcsScheduler::Birkhoff => ByDemand::Birkhoff,
            OcsScheduler::Solstice => ByDemand::Solstice,
            OcsScheduler::Sunflow => ByDemand::Sunflow,
        };
        let packet = self.largest_circuit_packet_ps();
        let slice = self.slice.unwrap_or(SLICE).ps().max(packet);
        let times = ControlTimes {
            age: self.demand_age.map_or(0, DurationPs::ps),
            limit: self.demand_limit().ps(),
            set_up: self.until_open_ps() + self.cables().to_ocs + self.ocs_delay.ps(),
            packet,
            retry: slice,
        };
        Some(Control::new(times, ports, by_demand.scheduler(DurationPs(slice))))
    }

    /// From the begin of a circuit until its ToR may send.
    fn until_open_ps(&self) -> u64 {
        let answer = self.ocs_ack_delay.ps() + self.cables().from_ocs + self.circuit_ack_ps();
        self.ocs_first_message_delay.ps() + answer
    }
}

impl Lightness {
    /// The ports of two racks over which a circuit joins them.
    fn ports_of(&self, from: u32, to: u32) -> (u32, u32) {
        let racks = count(self.racks.len());
        let apart = (to + racks - from) % racks;
        let port = (apart + self.tor_circuits - 1) % self.tor_circuits;
        (from * self.tor_circuits + port, to * self.tor_circuits + port)
    }

    /// How much of a message of a flow that has `before` bytes in front of it is to go over circuits, as its time over them.
    fn circuit_time(&self, flow: u32, bytes: u64, of_bytes: u64, before: u64) -> u128 {
        let largest = self.config.photonic_packet_max.get();
        let threshold = self.config.decision_threshold.get();
        let by_packets = match self.config.decision {
            Decision::Ops | Decision::Direct => return 0,
            Decision::Ocs | Decision::ByCircuit => 0,
            Decision::ByDestination if self.flows[flow as usize].to_circuit => 0,
            Decision::ByKind if self.flows[flow as usize].kind_to_circuit => 0,
            Decision::BySize | Decision::ByPrediction if of_bytes >= threshold => 0,
            Decision::ByDestination | Decision::ByKind | Decision::BySize | Decision::ByPrediction => return 0,
            // A packet goes over a circuit if its first byte is behind the threshold.
            Decision::ByFlow => threshold.saturating_sub(before).div_ceil(largest).saturating_mul(largest),
        };
        if by_packets > 0 && by_packets >= bytes {
            return 0;
        }
        let rest = bytes - by_packets;
        let whole = rest / largest;
        let time = |payload: u64| u128::from(self.config.circuit_packet_ps(self.config.wire_bytes(payload)));
        let last = if rest.is_multiple_of(largest) && rest > 0 { 0 } else { time(rest % largest) };
        u128::from(whole) * time(largest) + last
    }

    /// A message was handed over: what of it is to go over circuits waits for some.
    pub(super) fn circuits_wanted(&mut self, now: SimTime, flow: u32, bytes: u64, of_bytes: u64) {
        if self.control.is_none() {
            return;
        }
        let entry = &self.flows[flow as usize];
        let (from, to) = (self.rack_of[entry.source as usize], self.rack_of[entry.destination as usize]);
        let before = entry.handed_over;
        self.flows[flow as usize].handed_over += bytes;
        let time = self.circuit_time(flow, bytes, of_bytes, before);
        if from == to || time == 0 {
            return;
        }
        let (input, output) = self.ports_of(from, to);
        if let Some(at) = self.control.as_mut().and_then(|control| control.more(now, input, output, time)) {
            self.queue.schedule(at, Phase::Decide, self.ocs_place(), Event::OcsLooks);
        }
    }

    /// A packet of `wire` bytes that waited for a circuit goes over one, or through the packet switch.
    pub(super) fn circuit_not_wanted(&mut self, from: u32, to: u32, wire: u64) {
        let (input, output) = self.ports_of(from, to);
        let time = self.config.circuit_packet_ps(wire);
        if let Some(control) = &mut self.control {
            control.less(input, output, time.into());
        }
    }

    /// The controller learns what waits.
    pub(super) fn ocs_looks(&mut self, now: SimTime) {
        let Some(control) = &mut self.control else { return };
        let plans = control.look(now, |time| u64::try_from(time).unwrap_or(u64::MAX));
        self.queue.schedule(plans, Phase::Decide, self.ocs_place(), Event::OcsPlans);
    }

    /// It plans circuits from what it has learned.
    pub(super) fn ocs_plans(&mut self, now: SimTime) {
        let Some(control) = &mut self.control else { return };
        let (circuits, looks) = control.plan(now);
        for at in looks {
            self.queue.schedule(at, Phase::Decide, self.ocs_place(), Event::OcsLooks);
        }
        for (_, circuit) in circuits {
            let (input, output) = (count(circuit.from), count(circuit.to));
            let (from, to) = (input / self.tor_circuits, output / self.tor_circuits);
            // A matching joins all ports: a rack with itself, too, and pairs over ports that are not theirs.
            if from == to || self.ports_of(from, to) != (input, output) {
                continue;
            }
            let index = self.circuit_between(from, to);
            let (begin, end) = (circuit.begin, circuit.end);
            self.ocs.planned[input as usize].push_back(Planned { circuit: index, output, end });
            self.queue.schedule(begin, Phase::Decide, self.ocs_place(), Event::CircuitBegins(input));
        }
    }

    /// A planned circuit begins to be set up: the next one of its input port.
    pub(super) fn circuit_begins(&mut self, now: SimTime, input: u32) {
        let Some(planned) = self.ocs.planned[input as usize].front().copied() else { return };
        let Planned { circuit: index, output, end } = planned;
        self.ocs.inputs[input as usize] = Some(index);
        self.ocs.outputs[output as usize] = Some(index);
        let through = self.cables.to_ocs + self.config.ocs_delay.ps();
        let span = self.begin_span(now, now, input, output);
        let circuit = &mut self.circuits[index as usize];
        (circuit.asked, circuit.granted, circuit.span) = (now, now, span);
        circuit.state = State::SettingUp(input, output);
        circuit.closes = SimTime(end.0.saturating_sub(through));
        self.counters.circuits += 1;
        let up = now.plus_ps(self.config.until_open_ps());
        self.queue.schedule(up, Phase::Arrive, self.circuit_place(index), Event::CircuitUp(index));
        self.queue.schedule(end, Phase::Arrive, self.ocs_place(), Event::CircuitEnds(input));
    }

    /// It is over.
    pub(super) fn circuit_ends(&mut self, now: SimTime, input: u32) {
        if let Some(planned) = self.ocs.planned[input as usize].pop_front() {
            self.release(now, planned.circuit, false);
        }
    }
}
