//! The ToR: which way a packet takes, and the channels to the packet switch with their retransmissions.
//!
//! Its Input submodule waits until a packet is whole. Control OPS sends a channel's packets one after the other: a
//! packet takes the start-up, its bytes at the port's rate and the conversion's delay of each byte, and occupies the
//! channel for all of it. Up to `window` packets are unacknowledged. An ACK deletes a packet; after a NACK it is sent
//! again when the channel is free, before new ones, in the order in which packets first went, without the start-up.

use super::config::{DecidedAt, Decision};
use super::{Event, Lightness};
use crate::fabric::count;
use crate::kernel::Phase;
use crate::network::SimTime;
use std::collections::VecDeque;

/// How a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Within the rack.
    Electrical,
    /// On a channel to the packet switch.
    Ops(u32),
    /// On the circuit (or the direct fibre) of a pair of racks.
    Circuit(u32),
}

/// A ToR's channel to the packet switch: one wavelength of its fibre.
#[derive(Default)]
pub struct Channel {
    pub waiting: VecDeque<u32>,
    /// Packets to be sent again, by the order in which they first went.
    pub again: Vec<u32>,
    pub sending: bool,
    pub unacknowledged: u32,
    /// Places in its buffer that are taken or promised.
    pub reserved: u32,
    /// Flows that wait for a place.
    pub wants: VecDeque<u32>,
    pub order: u64,
}

impl Lightness {
    /// Decides about the way of the next packet of `flow` and takes a place for it; while there is none, the flow queues
    /// up for one.
    pub(super) fn reserve(&mut self, now: SimTime, flow: u32) -> Option<Way> {
        if let Some(way) = self.flows[flow as usize].granted.take() {
            return Some(way);
        }
        let entry = &self.flows[flow as usize];
        let (from, to) = (self.rack_of[entry.source as usize], self.rack_of[entry.destination as usize]);
        if from == to {
            return Some(Way::Electrical);
        }
        let channel = from * self.config.wavelengths + entry.wavelength;
        let size = entry.outgoing.front().map_or(0, |message| message.total);
        let by_circuit = match self.config.decision {
            Decision::Ops => false,
            Decision::Ocs | Decision::Direct => true,
            Decision::ByDestination => entry.to_circuit,
            Decision::BySize => size >= self.config.decision_threshold.get(),
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
            (Way::Circuit(index), most_circuit, &mut circuit.reserved, &mut circuit.wants)
        } else {
            let entry = &mut self.channels[channel as usize];
            (Way::Ops(channel), most_ops, &mut entry.reserved, &mut entry.wants)
        };
        if *reserved >= most {
            wants.push_back(flow);
            return None;
        }
        *reserved += 1;
        Some(way)
    }

    /// A packet is whole in the ToR's Input.
    pub(super) fn at_tor(&mut self, now: SimTime, id: u32) {
        match self.packets.get(id).way {
            Way::Electrical => {
                self.counters.electrical += 1;
                let at = now.plus_ps(self.config.switch_delay.ps());
                let source = self.flows[self.packets.get(id).flow as usize].source;
                self.queue.schedule(at, Phase::Arrive, self.nic_place(source), Event::AtOutput(id));
            }
            Way::Ops(channel) => {
                self.channels[channel as usize].waiting.push_back(id);
                self.try_channel(now, channel);
            }
            Way::Circuit(circuit) => {
                self.circuits[circuit as usize].waiting.push_back(id);
                self.use_circuit(now, circuit);
            }
        }
    }

    /// Sends a channel's next packet, if it is free and the window allows.
    pub(super) fn try_channel(&mut self, now: SimTime, index: u32) {
        let channel = &self.channels[index as usize];
        if channel.sending {
            return;
        }
        if channel.again.is_empty() && channel.unacknowledged < self.config.window {
            let Some(id) = channel.waiting.front() else { return };
            let to = self.rack_of[self.flows[self.packets.get(*id).flow as usize].destination as usize];
            if !self.is_joined(now, index, to) {
                return;
            }
            self.use_join(index / self.config.wavelengths, true);
            self.use_join(to, true);
        }
        let channel = &mut self.channels[index as usize];
        let (id, startup) = if channel.again.is_empty() {
            if channel.unacknowledged >= self.config.window {
                return;
            }
            let Some(id) = channel.waiting.pop_front() else { return };
            channel.unacknowledged += 1;
            self.packets.get_mut(id).order = channel.order;
            channel.order += 1;
            (id, self.config.tor_startup_delay.ps())
        } else {
            self.counters.resent += 1;
            (channel.again.remove(0), 0)
        };
        channel.sending = true;
        let wire = u64::from(self.packets.get(id).wire);
        let head = now.plus_ps(startup);
        let tail = head.plus_ps(self.stream_ps(wire));
        self.meters.ops_in[index as usize].crossed(head, wire, self.config.interval.ps());
        self.queue.schedule(tail, Phase::Arrive, self.channel_place(index), Event::ChannelSent(index));
        let seen = match self.config.ops_decision {
            DecidedAt::Tail => tail,
            DecidedAt::Head => head,
        };
        let at = seen.plus_ps(self.cables.to_ops + self.config.ops_delay.ps());
        self.queue.schedule(at, Phase::Arrive, self.channel_place(index), Event::AtOps(id));
    }

    /// The time in which `wire` bytes pass out of a ToR towards the packet switch.
    pub(super) fn stream_ps(&self, wire: u64) -> u64 {
        self.config.tor_rate.time_ps(wire) + self.byte_delay.time_ps(wire)
    }

    /// A channel has sent a packet's last byte.
    pub(super) fn channel_sent(&mut self, now: SimTime, index: u32) {
        self.channels[index as usize].sending = false;
        self.try_channel(now, index);
    }

    /// An ACK: the packet is deleted, its place is free.
    pub(super) fn acked(&mut self, now: SimTime, index: u32) {
        self.counters.acks += 1;
        self.use_join(index / self.config.wavelengths, false);
        let channel = &mut self.channels[index as usize];
        channel.unacknowledged -= 1;
        let next = channel.wants.pop_front();
        channel.reserved -= u32::from(next.is_none());
        self.try_channel(now, index);
        if let Some(flow) = next {
            self.pass_on(now, flow, Way::Ops(index));
        }
    }

    /// A NACK: the packet waits to be sent again.
    pub(super) fn nacked(&mut self, now: SimTime, id: u32) {
        self.counters.nacks += 1;
        let packet = *self.packets.get(id);
        let Way::Ops(index) = packet.way else { return };
        let again = &mut self.channels[index as usize].again;
        let packets = &self.packets;
        let place = again.partition_point(|other| packets.get(*other).order < packet.order);
        again.insert(place, id);
        self.try_channel(now, index);
    }

    /// How many channels there are.
    pub(super) fn channel_count(racks: usize, wavelengths: u32) -> usize {
        (count(racks) * wavelengths) as usize
    }
}
