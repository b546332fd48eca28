//! The optical packet switch: no buffers, one packet at a time through an output port, what collides is refused.
//!
//! An output port is a wavelength of a fibre. Requests are gathered for a slot and decided at its end. Of those that
//! want one free port one passes; the arbiter says which. A request for a port that is in use is refused.

use super::config::{Arbiter, DecidedAt};
use super::tor::Way;
use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::kernel::random::draw;
use crate::network::SimTime;

/// The packet switch.
#[derive(Default)]
pub struct Ops {
    /// Until when each output port is in use, by rack and wavelength.
    pub busy_until: Vec<SimTime>,
    /// Packets that are to be decided about, each with the end of its slot.
    pub requests: Vec<(SimTime, u32)>,
    /// The last end of a slot for which there is an event.
    pub decides_at: SimTime,
    /// Room for a slot's requests: port, rank, packet.
    pub ranked: Vec<(u32, u64, u32)>,
    /// The channel that last passed at each output port.
    pub passed_last: Vec<u32>,
    /// Pairs of fibres between which a packet has passed in this slot; only kept where one may.
    pub passed_pairs: Vec<(u32, u32)>,
    /// How many packets were decided about.
    pub decided: u64,
}

impl Lightness {
    /// A packet has been routed: it will be decided about at the end of the slot, which is strictly later.
    pub(super) fn at_ops(&mut self, now: SimTime, id: u32) {
        let slot = self.config.ops_slot.ps();
        let end = SimTime((now.0 / slot + 1) * slot);
        self.ops.requests.push((end, id));
        if end > self.ops.decides_at {
            self.ops.decides_at = end;
            self.queue.schedule(end, Phase::Decide, self.ops_place(), Event::OpsDecides);
        }
    }

    /// The end of a slot.
    pub(super) fn ops_decides(&mut self, now: SimTime) {
        let channels = self.channels.len() as u64;
        let due = self.ops.requests.partition_point(|(end, _)| *end <= now);
        let mut ranked = std::mem::take(&mut self.ops.ranked);
        for (_, id) in self.ops.requests.drain(..due) {
            let Way::Ops(channel) = self.packets.get(id).way else { continue };
            let fibre = self.rack_of[self.flows[self.packets.get(id).flow as usize].destination as usize];
            let port = fibre * self.config.wavelengths + channel % self.config.wavelengths;
            let turn = match self.config.ops_arbiter {
                Arbiter::Random => draw(self.config.seed, port.into(), now.0) % channels,
                Arbiter::RoundRobin => (u64::from(self.ops.passed_last[port as usize]) + 1) % channels,
                Arbiter::Lowest => 0,
            };
            let distance = (u64::from(channel) + channels - turn) % channels;
            ranked.push((port, distance, id));
        }
        ranked.sort_unstable();
        for (port, _, id) in ranked.drain(..) {
            self.ops.decided += 1;
            let faulty = self.config.drop.contains(&self.ops.decided);
            match self.free_output(now, port).filter(|_| !faulty && self.may_pass(id, port)) {
                Some(output) => {
                    if let Way::Ops(channel) = self.packets.get(id).way {
                        self.ops.passed_last[port as usize] = channel;
                    }
                    self.pass(now, id, output);
                }
                None => self.refuse(now, id, port),
            }
        }
        self.ops.passed_pairs.clear();
        self.ops.ranked = ranked;
    }

    /// Whether a packet that has a free output may pass: its ToR has a place for it, and nothing has passed in this slot
    /// between its fibres, where only one may. What it takes is taken down.
    fn may_pass(&mut self, id: u32, port: u32) -> bool {
        let Way::Ops(channel) = self.packets.get(id).way else { return true };
        let pair = (channel / self.config.wavelengths, port / self.config.wavelengths);
        if self.config.ops_one_per_fibre && self.ops.passed_pairs.contains(&pair) {
            return false;
        }
        if !self.take_place(id) {
            self.counters.without_place += 1;
            return false;
        }
        if self.config.ops_one_per_fibre {
            self.ops.passed_pairs.push(pair);
        }
        true
    }

    /// A free port for what asks for `port`: that one, or with conversion another wavelength of the fibre.
    fn free_output(&self, now: SimTime, port: u32) -> Option<u32> {
        let free = |port: &u32| self.ops.busy_until[*port as usize] <= now;
        if !self.config.wavelength_conversion {
            return Some(port).filter(free);
        }
        let wavelengths = self.config.wavelengths;
        let (fibre, first) = (port / wavelengths * wavelengths, port % wavelengths);
        (0..wavelengths).map(|offset| fibre + (first + offset) % wavelengths).find(free)
    }

    /// From a decision until the ToR has dealt with its ACK or NACK.
    fn answer_ps(&self) -> u64 {
        self.config.ops_ack_delay.ps() + self.cables.from_ops + self.config.ack_delay.ps()
    }

    fn pass(&mut self, now: SimTime, id: u32, port: u32) {
        let packet = *self.packets.get(id);
        let Way::Ops(channel) = packet.way else { return };
        let wire = u64::from(packet.wire);
        let (occupied, through) = match self.config.ops_decision {
            DecidedAt::Head => (self.stream_ps(wire), self.stream_ps(wire)),
            DecidedAt::Tail => {
                let again = self.config.ops_rate.time_ps(wire) + self.config.ops_byte_delay.time_ps(wire);
                (again, if self.config.serialises_again() { again } else { 0 })
            }
        };
        self.ops.busy_until[port as usize] = now.plus_ps(occupied);
        self.meters.ops_out[port as usize].crossed(now, wire, self.config.interval.ps());
        self.counters.by_ops += 1;
        let answered = now.plus_ps(self.answer_ps());
        self.queue.schedule(answered, Phase::Arrive, self.ops_place(), Event::Acked(channel));
        let at = now.plus_ps(through + self.cables.from_ops);
        self.queue.schedule(at, Phase::Arrive, self.ops_place(), Event::AtOutput(id));
    }

    fn refuse(&mut self, now: SimTime, id: u32, port: u32) {
        self.meters.ops_out[port as usize].dropped();
        let answered = now.plus_ps(self.answer_ps());
        self.queue.schedule(answered, Phase::Arrive, self.ops_place(), Event::Nacked(id));
    }
}
