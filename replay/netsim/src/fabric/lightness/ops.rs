//! The optical packet switch: no buffers, one packet at a time through an output port, what collides is refused.
//!
//! An output port is a wavelength of a fibre. Requests are gathered for a slot and decided at its end. Of those that
//! want one free port one passes; the arbiter says which. A request for a port that is in use is refused, and so is one
//! that comes from the fibre from which a packet passes to the same fibre.

use super::config::{Arbiter, DecidedAt};
use super::state::ops::{Passage, Refusal};
use super::state::tor::Medium;
use super::{Event, Lightness};
use crate::fabric::ids::PacketId;
use crate::kernel::Phase;
use crate::kernel::random::draw;
use crate::time::SimTime;

impl Lightness {
    /// A packet has been routed: it will be decided about at the end of the slot, which is strictly later.
    pub(super) fn at_ops(&mut self, now: SimTime, id: PacketId) {
        let end = self.slot_end(now);
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
        let due: Vec<(SimTime, PacketId)> = self.ops.requests.drain(..due).collect();
        for (_, id) in due {
            let Medium::Ops(channel) = self.packets.get(id).way else { continue };
            let port = self.port_for_packet(channel, id);
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
            match self.output_for(now, id, port) {
                Ok(output) => {
                    if let Medium::Ops(channel) = self.packets.get(id).way {
                        self.ops.passed_last[port as usize] = channel;
                    }
                    self.pass(now, id, output);
                }
                Err(reason) => {
                    self.counters.refused.count(reason);
                    self.refuse(now, id, port);
                }
            }
        }
        self.ops.ranked = ranked;
    }

    /// The output port for which a packet from `channel` asks: its fibre and wavelength at the other ToR.
    fn port_for_packet(&self, channel: u32, id: PacketId) -> u32 {
        self.destination_rack(id) * self.tor_channels + channel % self.tor_channels
    }

    /// The output by which a packet that asks for `port` passes, or why it is refused.
    fn output_for(&mut self, now: SimTime, id: PacketId, port: u32) -> Result<u32, Refusal> {
        let Medium::Ops(channel) = self.packets.get(id).way else { return Ok(port) };
        if self.config.drop.contains(&self.ops.decided) {
            return Err(Refusal::Fault);
        }
        let in_use = |port: u32| self.ops.busy_until[port as usize] > now;
        let fibre = |port: u32| port / self.config.wavelengths;
        let from_same = |port: u32| fibre(self.ops.used_by[port as usize]) == fibre(channel);
        let free: Vec<u32> = self.outputs_for(port).filter(|output| !in_use(*output)).collect();
        let same_fibre = |output: u32| self.of_fibre(output).any(|port| in_use(port) && from_same(port));
        let may_pass = |output: &&u32| !(self.config.ops_one_per_fibre && same_fibre(**output));
        let Some(output) = free.iter().find(may_pass).copied() else {
            let own = |port: u32| self.ops.used_by[port as usize] / self.tor_channels == channel / self.tor_channels;
            return Err(match free.is_empty() {
                false => Refusal::SameFibre,
                true if self.outputs_for(port).all(own) => Refusal::Own,
                true => Refusal::Others,
            });
        };
        if self.take_place(id) { Ok(output) } else { Err(Refusal::NoPlace) }
    }

    /// The ports of a port's fibre.
    fn of_fibre(&self, port: u32) -> std::ops::Range<u32> {
        let first = port / self.config.wavelengths * self.config.wavelengths;
        first..first + self.config.wavelengths
    }

    /// The ports that serve what asks for `port`, that one first: its wavelength on any fibre of the ToR, or with
    /// conversion any wavelength.
    fn outputs_for(&self, port: u32) -> impl Iterator<Item = u32> + use<> {
        let all = self.tor_channels;
        let step = if self.config.wavelength_conversion { 1 } else { self.config.wavelengths };
        let (first, offset) = (port / all * all, port % all);
        (0..all / step).map(move |number| first + (offset + number * step) % all)
    }

    /// How long a packet of `wire` bytes keeps its output in use.
    fn occupied_ps(&self, wire: u64) -> u64 {
        match self.config.ops_decision {
            DecidedAt::Head => self.stream_ps(wire),
            DecidedAt::Tail => {
                self.config.ops_rate.time_ps(wire).saturating_add(self.config.ops_byte_delay.time_ps(wire))
            }
        }
    }

    /// When a packet that starts at `start` will have been routed.
    pub(super) fn routed_at(&self, start: SimTime, startup: u64, wire: u64) -> SimTime {
        let seen = match self.config.ops_decision {
            DecidedAt::Tail => start.plus_ps(startup).plus_ps(self.stream_ps(wire)),
            DecidedAt::Head => start.plus_ps(startup),
        };
        seen.plus_ps(self.cables.to_ops).plus_ps(self.config.ops_delay.ps())
    }

    /// The end of the slot in which what is routed at `routed` is decided about.
    fn slot_end(&self, routed: SimTime) -> SimTime {
        let slot = self.config.ops_slot.ps();
        SimTime((routed.0 / slot).saturating_add(1).saturating_mul(slot))
    }

    /// When a channel's packet may start, `now` or later, so that it meets no packet of its own ToR: at its output, or
    /// from its fibre to the same one. What is reckoned with is that those before it pass.
    pub(super) fn clear_start(&mut self, now: SimTime, channel: u32, id: PacketId, startup: u64) -> SimTime {
        let rack = (channel / self.tor_channels) as usize;
        self.ops.passages[rack].retain(|passage| passage.until > now);
        if self.ops.passages[rack].is_empty() {
            return now;
        }
        let port = self.port_for_packet(channel, id);
        let wire = u64::from(self.packets.get(id).wire);
        let routed = self.routed_at(now, startup, wire);
        let (soonest, occupied) = (self.slot_end(routed), self.occupied_ps(wire));
        let in_way: Vec<Passage> = self.passages_in_way(rack, port).collect();
        let most = self.own_at_once(port);
        let fits = |at: SimTime| {
            let end = at.plus_ps(occupied);
            let begins = in_way.iter().map(|other| other.from).filter(|from| *from > at && *from < end);
            [at].into_iter()
                .chain(begins)
                .all(|moment| in_way.iter().filter(|other| other.from <= moment && moment < other.until).count() < most)
        };
        let mut ends: Vec<SimTime> = in_way.iter().map(|other| other.until).filter(|until| *until > soonest).collect();
        ends.sort_unstable();
        let decided = [soonest].into_iter().chain(ends).find(|at| fits(*at)).unwrap_or(soonest);
        if decided == soonest {
            return now;
        }
        // The latest slot that begins before it is decided there.
        let slot = self.config.ops_slot.ps();
        let routed_then = SimTime((decided.0.div_ceil(slot) - 1) * slot);
        now.plus_ps(routed_then.since_ps(routed))
    }

    /// The passages of a ToR's packets that can be in the way of one that asks for `port`.
    fn passages_in_way(&self, rack: usize, port: u32) -> impl Iterator<Item = Passage> + '_ {
        let (all, wavelengths) = (self.tor_channels, self.config.wavelengths);
        let any = self.config.wavelength_conversion || self.config.ops_one_per_fibre;
        let meets = move |other: u32| other / all == port / all && (any || other % wavelengths == port % wavelengths);
        self.ops.passages[rack].iter().copied().filter(move |passage| meets(passage.port))
    }

    /// So many packets of one ToR that ask for `port` can pass at once.
    fn own_at_once(&self, port: u32) -> usize {
        let fibres = self.tor_channels / self.config.wavelengths;
        if self.config.ops_one_per_fibre { fibres as usize } else { self.outputs_for(port).count() }
    }

    /// A packet starts: when it will pass.
    pub(super) fn plan_passage(&mut self, now: SimTime, channel: u32, id: PacketId, startup: u64) {
        let wire = u64::from(self.packets.get(id).wire);
        let from = self.slot_end(self.routed_at(now, startup, wire));
        let (port, until) = (self.port_for_packet(channel, id), from.plus_ps(self.occupied_ps(wire)));
        self.ops.passages[(channel / self.tor_channels) as usize].push(Passage { id, port, from, until });
    }

    /// A packet did not pass: nobody need keep clear of it.
    pub(super) fn forget_passage(&mut self, channel: u32, id: PacketId) {
        let passages = &mut self.ops.passages[(channel / self.tor_channels) as usize];
        // Numbers of packets are used again: the last one is this.
        if let Some(index) = passages.iter().rposition(|passage| passage.id == id) {
            passages.remove(index);
        }
    }

    /// From a decision until the ToR has dealt with its ACK or NACK.
    fn answer_ps(&self) -> u64 {
        self.config.ops_ack_delay.ps() + self.cables.from_ops + self.config.packet_ack_ps()
    }

    fn pass(&mut self, now: SimTime, id: PacketId, port: u32) {
        let packet = *self.packets.get(id);
        let Medium::Ops(channel) = packet.way else { return };
        let wire = u64::from(packet.wire);
        let occupied = self.occupied_ps(wire);
        let through = match self.config.ops_decision {
            DecidedAt::Tail if !self.config.serialises_again() => 0,
            _ => occupied,
        };
        self.ops.busy_until[port as usize] = now.plus_ps(occupied);
        self.ops.used_by[port as usize] = channel;
        self.meters.ops_out[port as usize].crossed(now, wire, self.config.interval.ps());
        self.counters.by_ops += 1;
        let answered = now.plus_ps(self.answer_ps());
        self.queue.schedule(answered, Phase::Arrive, self.ops_place(), Event::Acked(channel));
        let at = now.plus_ps(through).plus_ps(self.cables.from_ops);
        self.queue.schedule(at, Phase::Arrive, self.ops_place(), Event::AtOutput(id));
    }

    fn refuse(&mut self, now: SimTime, id: PacketId, port: u32) {
        self.meters.ops_out[port as usize].dropped(now, self.config.interval.ps());
        let answered = now.plus_ps(self.answer_ps());
        self.queue.schedule(answered, Phase::Arrive, self.ops_place(), Event::Nacked(id));
    }
}
