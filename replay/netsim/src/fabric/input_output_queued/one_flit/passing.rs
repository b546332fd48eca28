//! How packets go through a switch whose packets have one flit: into the queue at an output, or, where no other one waits, past it.

use super::{MAX_VCS, OneFlit, Packets, Switch, Wish, bit_of};
use crate::fabric::ids::PacketId;

impl OneFlit {
    /// The first packet of a VC of an input of a switch is granted in the cycle `now` what it asked for: its credit goes back. It passes, as `passing`
    /// notes by its output's bit, if no other one waits there, else it joins a queue. What changes at the switch is noted in `state`.
    #[inline(always)]
    pub fn grant<const WIDE: bool>(
        &mut self,
        packets: &mut Packets,
        (state, passing): (&mut Switch, &mut u64),
        wish: Wish,
        now: u64,
    ) {
        let Wish { in_vc, out_vc } = wish;
        let packet = self.take_head::<WIDE>(packets, state, in_vc, now);
        let (output, _) = self.places[(out_vc % MAX_VCS) as usize];
        let bit = bit_of(output.into());
        let place = usize::from(output) % self.passing.len();
        if (state.waiting | *passing) & bit == 0 {
            *passing |= bit;
            self.passing[place] = (packet, out_vc);
            return;
        }
        if *passing & bit != 0 {
            *passing &= !bit;
            let (before, before_vc) = self.passing[place];
            self.enqueue::<WIDE>(packets, state, before_vc, before);
            state.ready |= bit;
        }
        self.enqueue::<WIDE>(packets, state, out_vc, packet);
        state.ready |= bit;
    }

    /// Takes out the first packet of a VC of an input of a switch. Its credit goes back.
    #[inline(always)]
    fn take_head<const WIDE: bool>(
        &mut self,
        packets: &mut Packets,
        state: &mut Switch,
        in_vc: u32,
        now: u64,
    ) -> PacketId {
        let input = &mut self.in_vcs[state.first_in_vc.wrapping_add(in_vc) as usize];
        let packet = input.first;
        if packet == input.last {
            // Nothing is behind it.
            (input.first, input.last) = (PacketId::NONE, PacketId::NONE);
            state.asking.remove::<WIDE>(in_vc);
        } else {
            input.first = std::mem::replace(&mut packets.get_mut(packet).next, PacketId::NONE);
        }
        if input.told_after == 1 {
            self.soon.credits.push(input.sender_vc);
        } else {
            self.credits.put(now.wrapping_add(input.told_after.into()), input.sender_vc);
        }
        packet
    }

    /// `packet` joins the queue of a VC of an output of a switch.
    #[inline]
    fn enqueue<const WIDE: bool>(&mut self, packets: &mut Packets, state: &mut Switch, out_vc: u32, packet: PacketId) {
        let (output, vc) = self.places[(out_vc % MAX_VCS) as usize];
        let queue = &mut self.out_vcs[state.first_out_vc.wrapping_add(out_vc) as usize];
        queue.held = queue.held.wrapping_add(1);
        if queue.held >= self.room {
            state.open.remove::<WIDE>(out_vc);
        }
        let before = std::mem::replace(&mut queue.last, packet);
        if before == PacketId::NONE {
            queue.first = packet;
        } else {
            packets.get_mut(before).next = packet;
        }
        // There are 16 VCs at most.
        self.outs[state.first_output.wrapping_add(output.into()) as usize].waiting |= 1 << (vc & 15);
        state.waiting |= bit_of(output.into());
    }

    /// The packet that passes to a switch's output with the bit `bit` leaves by it in the cycle `now`, if it finds a credit, else it joins the queue,
    /// which is empty. What changes at the switch is noted in `state`. Returns whether it has left.
    #[inline(always)]
    pub fn passes<const WIDE: bool>(&mut self, packets: &mut Packets, state: &mut Switch, bit: u32, now: u64) -> bool {
        let (packet, out_vc) = self.passing[bit as usize % self.passing.len()];
        let out = &self.outs[state.first_output.wrapping_add(bit) as usize];
        let queue = &mut self.out_vcs[state.first_out_vc.wrapping_add(out_vc) as usize];
        if !out.to_host && queue.credits == 0 {
            self.enqueue::<WIDE>(packets, state, out_vc, packet);
            return false;
        }
        if queue.sends(u16::from(!out.to_host)) {
            self.overflows[state.first_out_vc.wrapping_add(out_vc) as usize] += 1;
        }
        let (_, vc) = self.places[(out_vc % MAX_VCS) as usize];
        self.leaves(packets, (state.first_output.wrapping_add(bit), vc.into()), packet, now);
        true
    }

    /// A packet leaves in the cycle `now` by a switch's output with the bit `bit`: of those in queues with a credit the one whose turn it is. What
    /// changes at the switch is noted in `state`. Returns whether one has left.
    #[inline]
    pub fn output_sends<const WIDE: bool>(
        &mut self,
        packets: &mut Packets,
        state: &mut Switch,
        bit: u32,
        now: u64,
    ) -> bool {
        let output = state.first_output.wrapping_add(bit);
        let out = &mut self.outs[output as usize];
        let first = output.wrapping_mul(self.vcs);
        // Turned so that the first VC is the lowest bit.
        let mut turned = out.waiting.rotate_right(out.turn.into());
        let found = loop {
            if turned == 0 {
                break None;
            }
            let vc = turned.trailing_zeros().wrapping_add(out.turn.into()) % u16::BITS;
            turned &= turned.wrapping_sub(1);
            let queue = &mut self.out_vcs[first.wrapping_add(vc) as usize];
            if out.to_host || queue.credits > 0 {
                break Some((vc, queue));
            }
        };
        let Some((vc, queue)) = found else {
            state.ready &= !bit_of(bit);
            return false;
        };
        let packet = queue.first;
        let next = std::mem::replace(&mut packets.get_mut(packet).next, PacketId::NONE);
        queue.held = queue.held.wrapping_sub(1);
        queue.first = next;
        if queue.sends(u16::from(!out.to_host)) {
            self.overflows[first.wrapping_add(vc) as usize] += 1;
        }
        state.open.put::<WIDE>(first.wrapping_add(vc).wrapping_sub(state.first_out_vc));
        if next == PacketId::NONE {
            queue.last = PacketId::NONE;
            out.waiting &= !(1 << (vc & 15));
            if out.waiting == 0 {
                state.ready &= !bit_of(bit);
                state.waiting &= !bit_of(bit);
            }
        }
        self.leaves(packets, (output, vc), packet, now);
        true
    }

    /// A packet leaves in the cycle `now` by a VC of `output`, whose turn is over.
    #[inline(always)]
    fn leaves(&mut self, packets: &mut Packets, (output, vc): (u32, u32), id: PacketId, now: u64) {
        let out = &mut self.outs[output as usize];
        out.turn = if vc.wrapping_add(1) < self.vcs { vc as u8 + 1 } else { 0 };
        let packet = packets.get_mut(id);
        packet.switches = packet.switches.wrapping_add(1);
        out.bytes = out.bytes.wrapping_add(packet.bytes.into());
        out.packets = out.packets.wrapping_add(1);
        let (to_host, ahead, in_vc) = (out.to_host, out.ahead, out.first_in_vc.wrapping_add(vc));
        if !to_host {
            self.sends((in_vc, id), now, ahead);
        } else if ahead == 1 {
            self.soon.delivered.push(id);
        } else {
            self.delivered.put(now.wrapping_add(ahead.into()), id);
        }
    }
}
