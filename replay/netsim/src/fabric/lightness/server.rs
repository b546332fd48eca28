//! Servers: their links to the rack's switch, the cutting of messages into packets, and putting them together again.
//!
//! A server's flows share its link packet by packet, in turn. A packet is only sent when the ToR has a place for it in
//! front of the channel that the packet will take (credits), so no packet blocks others that go elsewhere and none is
//! lost below the optics. Flows that find no place queue up for one.
//!
//! With a network of its own below the ToRs ([`super::rack`]), that network's links and switches take the place of the
//! links here; places in front of channels are still taken before a packet leaves its server.

use super::config::{Decision, Resequencer};
use super::state::predictor::Class;
use super::state::server::{Outgoing, Packet};
use super::state::tor::Medium;
use super::{Event, Lightness};
use crate::fabric::ids::PacketId;
use crate::kernel::Phase;
use crate::network::{Delivery, Token};
use crate::time::SimTime;

impl Lightness {
    /// Hands over `bytes`, a message or a part of one of `of_bytes`.
    pub(super) fn hand_over(&mut self, now: SimTime, flow: u32, bytes: u64, of_bytes: u64, token: Token) {
        let place = self.flow_place(flow);
        let entry = &mut self.flows[flow as usize];
        if let Some(pipe) = &mut entry.loopback {
            let at = pipe.hand_over(now, bytes, &self.config.loopback);
            self.counters.looped_bytes += bytes;
            self.queue.schedule(at, Phase::Arrive, place, Event::Looped(token));
            return;
        }
        if let Some(below) =
            entry.below.filter(|_| self.rack_of[entry.source as usize] == self.rack_of[entry.destination as usize])
        {
            self.counters.below += 1;
            self.send_within(now, below, bytes, token);
            return;
        }
        let of_bytes = self.taken_size(flow, bytes, of_bytes);
        self.circuits_wanted(now, flow, bytes, of_bytes);
        let largest = self.config.photonic_packet_max.get();
        let packets = bytes.div_ceil(largest).max(1);
        let entry = &mut self.flows[flow as usize];
        entry.planned += packets;
        entry.marks.push_back((entry.planned - 1, token));
        entry.outgoing.push_back(Outgoing { left: bytes, total: of_bytes });
        if entry.outgoing.len() == 1 {
            let source = entry.source;
            self.nics[source as usize].turn.push_back(flow);
            self.try_nic(now, source);
        }
    }

    /// The size for which the message of a part of `bytes` is taken: `of_bytes`, or what is predicted.
    fn taken_size(&mut self, flow: u32, bytes: u64, of_bytes: u64) -> u64 {
        let Some(predictor) = &mut self.predictor else { return of_bytes };
        let entry = &mut self.flows[flow as usize];
        let (from, to) = (self.rack_of[entry.source as usize], self.rack_of[entry.destination as usize]);
        if from == to {
            return of_bytes;
        }
        let class = Class { from, to, kind: entry.kind, by_server: entry.by_server };
        predictor.part(&mut entry.begun, class, bytes, of_bytes)
    }

    /// Sends a server's next packet, if its link is free and there is a place for one.
    pub(super) fn try_nic(&mut self, now: SimTime, host: u32) {
        if self.nics[host as usize].busy {
            return;
        }
        while let Some(flow) = self.nics[host as usize].turn.pop_front() {
            if let Some(way) = self.reserve(now, flow) {
                self.send_packet(now, host, flow, way);
                if self.rack_network.is_none() {
                    return;
                }
            }
        }
    }

    fn send_packet(&mut self, now: SimTime, host: u32, flow: u32, way: Medium) {
        let largest = self.config.photonic_packet_max.get();
        let entry = &mut self.flows[flow as usize];
        let Some(message) = entry.outgoing.front_mut() else { return };
        let payload = message.left.min(largest);
        message.left -= payload;
        if message.left == 0 {
            entry.outgoing.pop_front();
        }
        let number = entry.sent;
        entry.sent += 1;
        entry.sent_bytes += payload;
        let more = !entry.outgoing.is_empty();
        let (source, destination) = (entry.source, entry.destination);
        let below = entry.below;
        let wire = self.config.wire_bytes(payload);
        if self.config.decision == Decision::ByCircuit && matches!(way, Medium::Ops(_)) {
            self.circuit_not_wanted(self.rack_of[source as usize], self.rack_of[destination as usize], wire);
        }
        let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let packet = Packet {
            flow,
            number,
            payload: small(payload),
            wire: small(wire),
            way,
            placed: false,
            order: 0,
            refused: 0,
        };
        let id = self.packets.insert(packet);
        let nic = &mut self.nics[host as usize];
        if more {
            nic.turn.push_back(flow);
        }
        if let Some(below) = below {
            self.send_up(now, below, id);
            return;
        }
        nic.busy = true;
        let sent = now.plus_ps(self.config.server_rate.time_ps(wire));
        self.meters.up[host as usize].crossed(now, wire, self.config.interval.ps());
        self.queue.schedule(sent, Phase::Arrive, self.nic_place(host), Event::NicSent(host));
        let at_tor = sent.plus_ps(self.config.server_delay.ps());
        self.queue.schedule(at_tor, Phase::Arrive, self.nic_place(host), Event::AtTor(id));
    }

    /// A place on `way` has become free, and `flow` was the first to wait for it: it gets it and may send again.
    pub(super) fn pass_on(&mut self, now: SimTime, flow: u32, way: Medium) {
        let entry = &mut self.flows[flow as usize];
        entry.granted = Some(way);
        let source = entry.source;
        self.nics[source as usize].turn.push_back(flow);
        self.try_nic(now, source);
    }

    /// A packet is whole at its destination's rack switch: down to the server, in order if the ToR is to see to that.
    pub(super) fn at_output(&mut self, now: SimTime, id: PacketId) {
        let packet = *self.packets.get(id);
        if let Medium::Ops(_) = packet.way {
            let rack = self.rack_of[self.flows[packet.flow as usize].destination as usize];
            self.use_join(rack, false);
        }
        if self.config.resequencer == Resequencer::Server || packet.way == Medium::Electrical {
            self.send_down(now, id);
            return;
        }
        let flow = &mut self.flows[packet.flow as usize];
        if packet.number != flow.in_order {
            // It waits in the resequencer's own memory: what it waits for needs a place, too.
            flow.held.insert(packet.number, id);
            self.counters.resequenced += 1;
            self.give_place_back(now, id);
            return;
        }
        let mut next = Some(id);
        while let Some(id) = next {
            self.send_down(now, id);
            let flow = &mut self.flows[packet.flow as usize];
            flow.in_order += 1;
            next = flow.held.remove(&flow.in_order);
        }
    }

    /// Sends a packet from its destination's rack switch to its server.
    fn send_down(&mut self, now: SimTime, id: PacketId) {
        if self.send_below(now, id) {
            return;
        }
        let Packet { flow, wire, .. } = *self.packets.get(id);
        let host = self.flows[flow as usize].destination;
        let free = &mut self.down_free[host as usize];
        let start = (*free).max(now);
        *free = start.plus_ps(self.config.server_rate.time_ps(wire.into()));
        let at = free.plus_ps(self.config.server_delay.ps());
        let meter = &mut self.meters.down[host as usize];
        meter.crossed(start, wire.into(), self.config.interval.ps());
        let ahead = u128::from(start.since_ps(now)) * u128::from(self.config.server_rate.bps().unwrap_or(0));
        let bytes = u64::try_from(ahead / 8_000_000_000_000).unwrap_or(u64::MAX);
        meter.queued(now, bytes, self.config.interval.ps());
        self.queue.schedule(at, Phase::Arrive, self.down_place(host), Event::Received(id));
    }

    /// Whether the ToR at which a packet is to arrive has a place for it; if so, it takes that.
    pub(super) fn take_place(&mut self, id: PacketId) -> bool {
        let Some(most) = self.config.tor_output_buffer else { return true };
        let packet = self.packets.get_mut(id);
        let taken =
            &mut self.outputs[self.rack_of[self.flows[packet.flow as usize].destination as usize] as usize].taken;
        if *taken >= most {
            return false;
        }
        *taken += 1;
        packet.placed = true;
        true
    }

    /// A packet has left its destination's ToR: the circuits that waited for a place there go on, the next one where one is not up any more.
    fn give_place_back(&mut self, now: SimTime, id: PacketId) {
        let packet = self.packets.get_mut(id);
        if !std::mem::take(&mut packet.placed) {
            return;
        }
        let rack = self.rack_of[self.flows[packet.flow as usize].destination as usize] as usize;
        self.outputs[rack].taken -= 1;
        let most = self.config.tor_output_buffer.unwrap_or(u32::MAX);
        while self.outputs[rack].taken < most
            && let Some(circuit) = self.outputs[rack].circuits.pop_front()
        {
            self.circuits[circuit as usize].wants_place = false;
            self.use_circuit(now, circuit);
        }
    }

    /// A packet is at its server: what is complete and in order is delivered.
    pub(super) fn received(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        self.give_place_back(now, id);
        let packet = self.packets.remove(id);
        let flow = &mut self.flows[packet.flow as usize];
        if packet.number != flow.received {
            flow.early.insert(packet.number);
            self.counters.reordered += 1;
            return;
        }
        self.ended(now, packet.flow, deliveries);
    }

    /// A packet is lost: its message will not be delivered, and those behind it do not wait for it.
    pub(super) fn give_up(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        self.counters.lost += 1;
        let flow = &mut self.flows[packet.flow as usize];
        flow.lost.insert(packet.number);
        if packet.number == flow.received {
            self.ended(now, packet.flow, deliveries);
        } else {
            flow.early.insert(packet.number);
        }
    }

    /// The next packet of a flow has come to its end: messages whose packets all have are delivered, or lost.
    fn ended(&mut self, now: SimTime, flow: u32, deliveries: &mut Vec<Delivery>) {
        let flow = &mut self.flows[flow as usize];
        flow.received += 1;
        while flow.early.remove(&flow.received) {
            flow.received += 1;
        }
        while let Some((last, token)) = flow.marks.front().copied() {
            if last >= flow.received {
                break;
            }
            flow.marks.pop_front();
            if flow.lost.first().is_some_and(|lost| *lost <= last) {
                flow.lost = flow.lost.split_off(&(last + 1));
                self.lost.push((now, token));
            } else {
                deliveries.push(Delivery { token, at: now });
            }
        }
    }
}
