//! The ToR: which way a packet takes, and the channels to the packet switch with their retransmissions.
//!
//! Its Input submodule waits until a packet is whole. Control OPS sends a channel's packets one after the other: a
//! packet takes the start-up, its bytes at the port's rate and the conversion's delay of each byte, and occupies the
//! channel for all of it. It starts only when it will find no packet of its own ToR in its way (its output in use by the
//! one before it): the ToR knows when those that pass leave the packet switch. Up to `window` packets are unacknowledged. An ACK deletes a packet; after a NACK it is sent
//! again when the channel is free, before new ones, in the order in which packets first went, without the start-up.

use super::config::{Decision, WavelengthAssignment};
use super::state::tor::Medium;
use super::{Event, Lightness};
use crate::count::count;
use crate::fabric::ids::PacketId;
use crate::kernel::Phase;
use crate::network::Delivery;
use crate::time::SimTime;

impl Lightness {
    /// Decides about the way of the next packet of `flow` and takes a place for it; while there is none, the flow queues
    /// up for one.
    pub(super) fn reserve(&mut self, now: SimTime, flow: u32) -> Option<Medium> {
        if let Some(way) = self.flows[flow as usize].granted.take() {
            return Some(way);
        }
        let entry = &self.flows[flow as usize];
        let (from, to) = (self.rack_of[entry.source as usize], self.rack_of[entry.destination as usize]);
        if from == to {
            return Some(Medium::Electrical);
        }
        let channel = self.channel_for(from, entry.wavelength);
        let size = entry.outgoing.front().map_or(0, |message| message.total);
        let by_circuit = match self.config.decision {
            Decision::Ops => false,
            Decision::Ocs | Decision::Direct => true,
            Decision::ByDestination => entry.to_circuit,
            Decision::ByKind => entry.kind_to_circuit,
            Decision::BySize | Decision::ByPrediction => size >= self.config.decision_threshold.get(),
            Decision::ByFlow => entry.sent_bytes >= self.config.decision_threshold.get(),
            Decision::ByCircuit => {
                let circuit = self.circuit_between(from, to);
                let up = self.circuits[circuit as usize].is_up();
                if !up {
                    self.ask_for_circuit(now, circuit);
                }
                up
            }
        };
        let (most_ops, most_circuit) = (self.config.tor_max_messages, self.config.circuit_messages());
        let (way, most, reserved, wants) = if by_circuit {
            let index = self.circuit_between(from, to);
            let circuit = &mut self.circuits[index as usize];
            (Medium::Circuit(index), most_circuit, &mut circuit.reserved, &mut circuit.wants)
        } else {
            let entry = &mut self.channels[channel as usize];
            (Medium::Ops(channel), most_ops, &mut entry.reserved, &mut entry.wants)
        };
        if *reserved >= most {
            wants.push_back(flow);
            return None;
        }
        *reserved += 1;
        Some(way)
    }

    /// The channel of the ToR `rack` that the next packet of a flow takes whose own is `hashed`.
    fn channel_for(&self, rack: u32, hashed: u32) -> u32 {
        let own = rack * self.tor_channels..(rack + 1) * self.tor_channels;
        let load = |channel: &u32| {
            let channel = &self.channels[*channel as usize];
            channel.reserved as usize + channel.wants.len()
        };
        let idle = match self.config.wavelength_assignment {
            WavelengthAssignment::Hashed => return own.start + hashed,
            WavelengthAssignment::LeastLoaded => None,
            WavelengthAssignment::FirstFit => own.clone().find(|channel| load(channel) == 0),
        };
        idle.or_else(|| own.clone().min_by_key(load)).unwrap_or(own.start)
    }

    /// A packet is whole in the ToR's Input.
    pub(super) fn at_tor(&mut self, now: SimTime, id: PacketId) {
        match self.packets.get(id).way {
            Medium::Electrical => {
                self.counters.electrical += 1;
                let at = now.plus_ps(self.config.switch_delay.ps());
                let source = self.flows[self.packets.get(id).flow as usize].source;
                self.queue.schedule(at, Phase::Arrive, self.nic_place(source), Event::AtOutput(id));
            }
            Medium::Ops(channel) => {
                self.channels[channel as usize].waiting.push_back(id);
                self.try_channel(now, channel);
            }
            Medium::Circuit(circuit) => {
                self.circuits[circuit as usize].waiting.push_back(id);
                self.use_circuit(now, circuit);
            }
        }
    }

    /// Sends a channel's next packet, if it is free, the window allows, and the packet will meet none of its own ToR's:
    /// what was refused, before what is new.
    pub(super) fn try_channel(&mut self, now: SimTime, index: u32) {
        let channel = &self.channels[index as usize];
        if channel.sending {
            return;
        }
        let again = channel.again.first().copied();
        let fresh = channel.waiting.front().copied().filter(|_| channel.unacknowledged < self.config.window);
        let Some(id) = again.or(fresh) else { return };
        let to = self.destination_rack(id);
        if again.is_none() && !self.is_joined(now, index, to) {
            return;
        }
        let startup = if again.is_none() { self.config.tor_startup_delay.ps() } else { 0 };
        let start = self.clear_start(now, index, id, startup);
        if start > now {
            self.hold_channel(start, index);
            return;
        }
        let channel = &mut self.channels[index as usize];
        channel.sending = true;
        if again.is_some() {
            self.counters.resent += 1;
            channel.again.remove(0);
        } else {
            channel.waiting.pop_front();
            channel.unacknowledged += 1;
            self.packets.get_mut(id).order = channel.order;
            channel.order += 1;
            self.use_join(index / self.tor_channels, true);
            self.use_join(to, true);
        }
        self.send_to_ops(now, index, id, startup);
    }

    /// The rack to which a packet goes.
    pub(super) fn destination_rack(&self, id: PacketId) -> u32 {
        self.rack_of[self.flows[self.packets.get(id).flow as usize].destination as usize]
    }

    /// A channel waits until `start`, when the packet in its way will have left the packet switch.
    fn hold_channel(&mut self, start: SimTime, index: u32) {
        let channel = &mut self.channels[index as usize];
        if channel.held_until != start {
            channel.held_until = start;
            self.queue.schedule(start, Phase::Arrive, self.channel_place(index), Event::ChannelClear(index));
        }
    }

    /// A channel that kept clear of its ToR's own packets may go on.
    pub(super) fn channel_clear(&mut self, now: SimTime, index: u32) {
        self.try_channel(now, index);
    }

    /// A packet begins its way to the packet switch.
    fn send_to_ops(&mut self, now: SimTime, index: u32, id: PacketId, startup: u64) {
        self.plan_passage(now, index, id, startup);
        let wire = u64::from(self.packets.get(id).wire);
        let head = now.plus_ps(startup);
        let tail = head.plus_ps(self.stream_ps(wire));
        self.meters.ops_in[index as usize].crossed(head, wire, self.config.interval.ps());
        self.queue.schedule(tail, Phase::Arrive, self.channel_place(index), Event::ChannelSent(index));
        let at = self.routed_at(now, startup, wire);
        self.queue.schedule(at, Phase::Arrive, self.channel_place(index), Event::AtOps(id));
    }

    /// The time in which `wire` bytes pass out of a ToR towards the packet switch.
    pub(super) fn stream_ps(&self, wire: u64) -> u64 {
        self.config.tor_rate.time_ps(wire).saturating_add(self.byte_delay.time_ps(wire))
    }

    /// A channel has sent a packet's last byte.
    pub(super) fn channel_sent(&mut self, now: SimTime, index: u32) {
        self.channels[index as usize].sending = false;
        self.try_channel(now, index);
    }

    /// An ACK: the packet is deleted, its place is free.
    pub(super) fn acked(&mut self, now: SimTime, index: u32) {
        self.counters.acks += 1;
        self.answered(now, index);
    }

    /// A packet of a channel needs no more of it.
    fn answered(&mut self, now: SimTime, index: u32) {
        self.use_join(index / self.tor_channels, false);
        let channel = &mut self.channels[index as usize];
        channel.unacknowledged -= 1;
        let next = channel.wants.pop_front();
        channel.reserved -= u32::from(next.is_none());
        self.try_channel(now, index);
        if let Some(flow) = next {
            self.pass_on(now, flow, Medium::Ops(index));
        }
    }

    /// A NACK: the packet waits to be sent again, or is lost.
    pub(super) fn nacked(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        self.counters.nacks += 1;
        self.packets.get_mut(id).refused += 1;
        let packet = *self.packets.get(id);
        let Medium::Ops(index) = packet.way else { return };
        self.forget_passage(index, id);
        if self.config.resends.is_some_and(|most| packet.refused > most) {
            self.use_join(self.destination_rack(id), false);
            self.give_up(now, id, deliveries);
            self.answered(now, index);
            return;
        }
        let again = &mut self.channels[index as usize].again;
        let packets = &self.packets;
        let place = again.partition_point(|other| packets.get(*other).order < packet.order);
        again.insert(place, id);
        self.try_channel(now, index);
    }

    /// How many channels there are.
    pub(super) fn channel_count(racks: usize, of_each: u32) -> usize {
        (count(racks) * of_each) as usize
    }
}
