//! What switches look at in a cycle is read ahead, for many at a time: as [`read_ahead`](crate::fabric::credit::read_ahead) does by events.

use super::ring::Back;
use super::{Clocked, Place, bits};
use crate::fabric::credit::packet::Packet;
use crate::fabric::ids::PacketId;
use crate::fabric::slab::Slab;
use std::hint::black_box;

/// Two lanes, or queues, share a line of a cache.
const OF_A_LINE: usize = 2;

impl Clocked {
    /// Reads what `switches` look at, a step at a time: what one step finds says where the next one looks.
    pub fn read_ahead(&self, packets: &Slab<PacketId, Packet>, switches: &[u32]) {
        let places = || switches.iter().map(|switch| &self.switches[*switch as usize]);
        black_box(places().fold(0, |sum, switch| sum ^ switch.ready));
        let near = places().fold(0, |sum, switch| {
            let place = &switch.place;
            let lanes = self.number.count(place.outputs as usize);
            let lanes = self.lanes[place.lane(0, 0)..].iter().take(lanes).step_by(OF_A_LINE);
            let sum = lanes.fold(sum, |sum, lane| sum ^ u64::from(lane.begin));
            let sum = heads(switch.heads).fold(sum, |sum, bit| sum ^ u64::from(self.first(place, bit).0));
            if switch.heads == 0 {
                return bits(switch.ready).fold(sum, |sum, bit| sum ^ self.outputs[place.output(bit) as usize].free_at);
            }
            // A head may ask for any of them.
            let outputs = self.outputs[place.output(0) as usize..].iter().take(place.outputs as usize);
            outputs.fold(sum, |sum, output| sum ^ output.free_at)
        });
        black_box(near);
        let far = places().fold(0, |sum, switch| {
            let place = &switch.place;
            let looked = heads(switch.heads & switch.undecided);
            let sum = looked
                .fold(sum, |sum, bit| sum ^ self.seeking.as_ref().map_or(0, |seeking| seeking.read(place.queue(bit))));
            let sum = heads(switch.heads).fold(sum, |sum, bit| sum ^ key(packets, self.first(place, bit)));
            self.starting(place, switch.ready).fold(sum, |sum, (head, behind)| {
                sum ^ u64::from(self.queues[behind as usize].last.0) ^ key(packets, self.queues[head as usize].first)
            })
        });
        black_box(far);
        let behind = places().fold(0, |sum, switch| {
            let place = &switch.place;
            let next = |queue: u32| match self.queues[queue as usize].first {
                PacketId::NONE => 0,
                first => key(packets, packets.get(first).next),
            };
            let sum = heads(switch.heads).fold(sum, |sum, bit| sum ^ next(place.queue(bit)));
            self.starting(place, switch.ready)
                .fold(sum, |sum, (head, behind)| sum ^ next(head) ^ key(packets, self.queues[behind as usize].last))
        });
        black_box(behind);
    }

    /// Reads the lanes to which credits come back, and what is looked at if heads wait for room there.
    pub fn read_lanes_ahead(&self, backs: &[Back]) {
        let sought = |back: &&Back| self.lanes[back.lane as usize].is_sought;
        black_box(backs.iter().filter(sought).count());
        let Some(seeking) = &self.seeking else { return };
        let seekers = || backs.iter().filter(sought).map(|back| &seeking.seekers[back.lane as usize]);
        black_box(seekers().fold(0, |sum, seekers| sum ^ seekers.need));
        black_box(seekers().fold(0, |sum, seekers| sum ^ self.switches[seekers.switch as usize].ready));
    }

    /// The first packet of a switch's queue.
    fn first(&self, place: &Place, bit: u32) -> PacketId {
        self.queues[place.queue(bit) as usize].first
    }

    /// Of a switch's outputs that may start a packet, a bit each: a queue whose head may, and the queue where it goes.
    fn starting(&self, place: &Place, ready: u64) -> impl Iterator<Item = (u32, u32)> {
        let place = *place;
        bits(ready).filter_map(move |bit| {
            let output = &self.outputs[place.output(bit) as usize];
            let vl = output.asking.trailing_zeros();
            let mask = if output.asking == 0 { 0 } else { self.lanes[place.lane(bit, vl)].mask };
            let head = super::deciding::queue_of(self.number, self.classes, &place, vl, mask.trailing_zeros());
            let behind = if output.to_host { head } else { output.first_queue.wrapping_add(vl) };
            (mask != 0).then_some((head, behind))
        })
    }
}

/// The set bits of `mask`.
fn heads(mask: u128) -> impl Iterator<Item = u32> {
    let (lower, upper) = (mask as u64, (mask >> u64::BITS) as u64);
    bits(lower).chain(bits(upper).map(|bit| bit + u64::BITS))
}

/// What is looked at of a packet.
fn key(packets: &Slab<PacketId, Packet>, id: PacketId) -> u64 {
    if id == PacketId::NONE { 0 } else { packets.get(id).key }
}
