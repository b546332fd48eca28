//! What switches decide in a cycle: which output a head asks for, which packet an output takes, and what that changes.

use super::output::Input;
use super::ring::{Back, Head};
use super::{Clocked, Passing, Place, bits, next_of};
use crate::fabric::credit::lanes::Numbering;
use crate::fabric::credit::most_room::remainder;
use crate::fabric::credit::packet::Packet;
use crate::fabric::ids::PacketId;
use crate::fabric::slab::Slab;
use crate::time::SimTime;

/// The packets of a network.
type Packets = Slab<PacketId, Packet>;

impl Clocked {
    /// Which of `count` outputs of a switch from its `first` one on, 64 at most, has the most credits on `vl` that nobody has in mind: so many
    /// behind `first`. Of several the one that `drawn` says, each as likely as the other.
    #[inline(always)]
    pub fn most_room(
        &self,
        place: &Place,
        (first, count): (u8, u8),
        vl: u32,
        now: u64,
        drawn: impl FnOnce() -> u64,
    ) -> u32 {
        let begin = place.lane(first.into(), vl);
        // Those with the most so far, a bit each. Nothing can be foreseen of them: no branches.
        let (mut most, mut places) = (i64::MIN, 0u64);
        for (place, lane) in self.lanes[begin..begin + usize::from(count)].iter().enumerate() {
            let room = lane.unclaimed(now, self.flit);
            places = if room > most { 0 } else { places };
            most = most.max(room);
            places |= u64::from(room == most) << place;
        }
        if places & places.wrapping_sub(1) != 0 {
            let position = remainder(drawn(), places.count_ones().into());
            for before in 0..MAX_FEW {
                places = if before < position { places & places.wrapping_sub(1) } else { places };
            }
            (MAX_FEW..position).for_each(|_| places &= places.wrapping_sub(1));
        }
        places.trailing_zeros()
    }

    /// The head of a switch's queue with the bit `bit`, of so many credits, asks for `vl` of its output with the bit `output` in the cycle
    /// `now`, and needs `need` credits there. Returns whether the output is free; else it will look when it is.
    #[inline(always)]
    pub fn ask(
        &mut self,
        place: &Place,
        bit: u32,
        (output, vl): (u32, u32),
        (credits, need): (u16, u32),
        now: u64,
    ) -> bool {
        self.queues[place.queue(bit) as usize].need = need;
        let (slot, from_vl) = self.number.of_bit(bit);
        let lane = &mut self.lanes[place.lane(output, vl)];
        lane.mask |= 1 << if self.classes == 1 { slot } else { slot * self.classes + from_vl % self.classes };
        lane.claim(credits);
        let state = &mut self.outputs[place.output(output) as usize];
        state.asking |= 1 << vl;
        let is_free = state.free_at <= now;
        if !is_free {
            let free_at = state.free_at;
            self.wake(place.output(output), free_at);
        }
        is_free
    }

    /// A switch's output with the bit `bit`, which is free, starts a packet in the cycle `now`: of the next VL with a head that finds its credits
    /// the next such head. Without one it waits. Returns whether it may have another one in the next cycle.
    #[inline(always)]
    pub fn output_starts<const MORE: bool>(
        &mut self,
        packets: &mut Packets,
        place: &Place,
        bit: u32,
        now: u64,
    ) -> bool {
        let (numbering, classes, flit) = (self.number, self.classes, self.flit);
        let output = &mut self.outputs[place.output(bit) as usize];
        let found = 'found: {
            for vl in output.asking_in_turn() {
                let lane = &mut self.lanes[place.lane(bit, vl)];
                let (free, begin) = (lane.free(now, flit), u32::from(lane.begin));
                // Turned so that the first queue is the lowest bit.
                let mut turned = lane.mask.rotate_right(begin);
                while turned != 0 {
                    let asking = turned.trailing_zeros().wrapping_add(begin) % u64::BITS;
                    turned &= turned.wrapping_sub(1);
                    let number = queue_of(numbering, classes, place, vl, asking);
                    let queue = &mut self.queues[number as usize];
                    if i64::from(queue.need) <= free {
                        break 'found Some((vl, lane, asking, number, queue));
                    }
                }
            }
            None
        };
        let Some((vl, lane, asking, number, queue)) = found else {
            self.wait(place, bit);
            return false;
        };
        let id = queue.first;
        let packet = packets.get_mut(id);
        packet.switches += 1;
        let (flits, credits) = (packet.flits, packet.credits);
        let next = std::mem::replace(&mut packet.next, PacketId::NONE);
        let ended = now + u64::from(flits);
        let is_parallel = MORE && output.is_parallel;

        lane.mask &= !(1 << asking);
        lane.begin = (asking.wrapping_add(1) % u64::BITS) as u8;
        lane.disclaim(credits);
        if lane.mask == 0 {
            output.asking &= !(1 << vl);
        }
        output.turn = next_of(vl);
        output.free_at = if is_parallel { 0 } else { ended };
        let asks = output.asking != 0;
        if asks && flits > 1 && !is_parallel {
            self.wake(place.output(bit), ended);
        }

        let queue = &mut self.queues[number as usize];
        queue.release(credits, ended, next);
        if next != PacketId::NONE {
            let at = packets.get(next).first.0.max(ended);
            let head = Head { switch: place.switch, bit: number.wrapping_sub(place.first_queue) };
            self.ring.at(at).heads.push(head);
        }
        let Input { first_lane, stride, back } = self.inputs[numbering.port(number) as usize];
        let from = first_lane.wrapping_add(numbering.vl_of(number).wrapping_mul(stride.into()));
        self.ring.at(now + 1 + u64::from(back)).backs.push(Back { lane: from, flits, credits });
        self.crosses::<MORE>(packets, (place.output(bit), vl, place.lane(bit, vl)), (id, flits, credits), now);
        asks && (flits == 1 || is_parallel)
    }

    /// A switch's output with the bit `bit` finds no credits for what asks for it, and waits for some.
    #[inline(never)]
    fn wait(&mut self, place: &Place, bit: u32) {
        for vl in bits(self.outputs[place.output(bit) as usize].asking.into()) {
            let mask = self.lanes[place.lane(bit, vl)].mask;
            let queue = |asking| queue_of(self.number, self.classes, place, vl, asking) as usize;
            let needs = bits(mask).map(|asking| self.queues[queue(asking)].need);
            if let Some(need) = needs.min() {
                self.await_credits(place.output(bit), vl, need);
            }
        }
    }

    /// A packet starts in the cycle `now` on `vl` of `output`, which is `lane`.
    #[inline(always)]
    pub fn crosses<const MORE: bool>(
        &mut self,
        packets: &mut Packets,
        (output, vl, lane): (u32, u32, usize),
        (id, flits, credits): Passing,
        now: u64,
    ) {
        let output = &mut self.outputs[output as usize];
        let is_parallel = MORE && output.is_parallel;
        let taken = if is_parallel { 0 } else { credits };
        if self.lanes[lane].start((flits, taken)) {
            self.overflows[lane] += 1;
        }
        let comes = now + u64::from(output.ahead);
        let packet = packets.get_mut(id);
        packet.first = SimTime(comes);
        output.bytes += u64::from(packet.bytes);
        output.packets += 1;
        if output.to_host {
            // It reads it as it arrives.
            let told = comes + 1 + u64::from(output.back);
            self.ring.at(comes + u64::from(flits)).arrived.push(id);
            if !is_parallel {
                self.ring.at(told).backs.push(Back { lane: lane as u32, flits, credits });
            }
            return;
        }
        let queue = &mut self.queues[output.first_queue.wrapping_add(vl) as usize];
        queue.reserve(credits, now);
        let before = std::mem::replace(&mut queue.last, id);
        if before != PacketId::NONE {
            packets.get_mut(before).next = id;
            return;
        }
        queue.first = id;
        let at = comes.max(queue.left_at);
        let head = Head { switch: output.to, bit: u32::from(output.first_bit).wrapping_add(vl) };
        self.ring.at(at).heads.push(head);
    }
}

/// The queue whose bit is `asking` in the masks of VL `vl` of the outputs of a switch.
#[inline(always)]
pub(super) fn queue_of(numbering: Numbering, classes: u32, place: &Place, vl: u32, asking: u32) -> u32 {
    if classes == 1 {
        return place.queue(numbering.at_port(asking, vl));
    }
    place.queue(numbering.at_port(asking / classes, vl / classes * classes + asking % classes))
}

/// So many steps are made whether they are wanted or not: which is not to be foreseen.
const MAX_FEW: u64 = 3;
