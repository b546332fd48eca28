//! How packets go through a switch whose packets have one flit: into the queue at an output, or, where no other one waits, past it.

use super::{Bits, MAX_VCS, OneFlit, Switch, bit_of, place_of};
use crate::fabric::ids::PacketId;

impl OneFlit {
    /// Packets of a switch are granted in the cycle `now` what they asked for, `granted` VCs of outputs: their credits go back. A packet passes the
    /// queue at its output if no other one is there or joins it, and leaves at once if it finds a credit. What changes at the switch is noted in
    /// `state`. Returns how many have left.
    #[inline(always)]
    pub fn grant<const WIDE: bool>(&mut self, state: &mut Switch, mut granted: Bits, now: u64) -> u64 {
        let mut left = 0u64;
        while let Some(out_vc) = granted.least::<WIDE>() {
            let (output, vc) = self.places[(out_vc % MAX_VCS) as usize];
            let first = out_vc.wrapping_sub(vc.into());
            let mut of_output = granted.take_run::<WIDE>(first, self.of_output);
            let bit = bit_of(output.into());
            if of_output & of_output.wrapping_sub(1) | state.waiting & bit == 0 {
                let packet = self.take_head::<WIDE>(state, self.taker(out_vc), now);
                let place = (out_vc, output.into(), vc.into());
                left = left.wrapping_add(self.passes::<WIDE>(state, place, packet, now).into());
                continue;
            }
            while of_output != 0 {
                let out_vc = first.wrapping_add(of_output.trailing_zeros());
                let packet = self.take_head::<WIDE>(state, self.taker(out_vc), now);
                self.enqueue::<WIDE>(state, out_vc, packet);
                of_output &= of_output.wrapping_sub(1);
            }
            state.ready |= bit;
        }
        left
    }

    /// Takes out the first packet of a VC of an input of a switch. Its credit goes back.
    #[inline(always)]
    fn take_head<const WIDE: bool>(&mut self, state: &mut Switch, in_vc: u32, now: u64) -> PacketId {
        let queue = &mut self.in_queues[state.first_in_vc.wrapping_add(in_vc) as usize];
        let (packet, is_empty) = queue.pop(&mut self.packets);
        state.asking.remove_if::<WIDE>(in_vc, is_empty);
        let (input, vc) = self.places[(in_vc % MAX_VCS) as usize];
        let input = &self.inputs[state.first_input.wrapping_add(input.into()) as usize];
        let (sender_vc, told_after) = input.sender(vc.into());
        if told_after == 1 {
            self.arriving.credits.push(sender_vc);
        } else {
            self.credits.put(now.wrapping_add(told_after.into()), sender_vc);
        }
        packet
    }

    /// `packet` joins the queue of a VC of an output of a switch.
    #[inline]
    fn enqueue<const WIDE: bool>(&mut self, state: &mut Switch, out_vc: u32, packet: PacketId) {
        let (output, vc) = self.places[(out_vc % MAX_VCS) as usize];
        let number = state.first_out_vc.wrapping_add(out_vc) as usize;
        let held = &mut self.out_vcs[number].held;
        *held = held.wrapping_add(1);
        if *held >= self.room {
            state.open.remove::<WIDE>(out_vc);
        }
        self.out_queues[number].push(&mut self.packets, packet);
        // There are 16 VCs at most.
        self.outs[state.first_output.wrapping_add(output.into()) as usize].waiting |= 1 << (vc & 15);
        state.waiting |= bit_of(output.into());
    }

    /// `packet` leaves in the cycle `now` by `out_vc`, a `vc` of a switch's `output`, if that has a credit, else it joins the queue, which is empty.
    /// What changes at the switch is noted in `state`. Returns whether it has left.
    #[inline(always)]
    fn passes<const WIDE: bool>(
        &mut self,
        state: &mut Switch,
        (out_vc, output, vc): (u32, u32, u32),
        packet: PacketId,
        now: u64,
    ) -> bool {
        let output = state.first_output.wrapping_add(output);
        let out = &self.outs[output as usize];
        let queue = &mut self.out_vcs[state.first_out_vc.wrapping_add(out_vc) as usize];
        if queue.credits == 0 {
            self.enqueue::<WIDE>(state, out_vc, packet);
            return false;
        }
        if queue.sends(out.takes()) {
            self.overflows[state.first_out_vc.wrapping_add(out_vc) as usize] += 1;
        }
        self.leaves::<WIDE>((output, vc), packet, now);
        true
    }

    /// A packet leaves in the cycle `now` by a switch's output with the bit `bit`: of those in queues with a credit the one whose turn it is. What
    /// changes at the switch is noted in `state`. Returns whether one has left.
    #[inline]
    pub fn output_sends<const WIDE: bool>(&mut self, state: &mut Switch, bit: u32, now: u64) -> bool {
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
            if queue.credits > 0 {
                break Some((vc, queue));
            }
        };
        let Some((vc, queue)) = found else {
            state.ready &= !bit_of(bit);
            return false;
        };
        queue.held = queue.held.wrapping_sub(1);
        if queue.sends(out.takes()) {
            self.overflows[first.wrapping_add(vc) as usize] += 1;
        }
        state.open.put::<WIDE>(first.wrapping_add(vc).wrapping_sub(state.first_out_vc));
        let queue = &mut self.out_queues[first.wrapping_add(vc) as usize];
        let (packet, is_empty) = queue.pop(&mut self.packets);
        out.waiting &= !(u16::from(is_empty) << (vc & 15));
        let is_idle = u64::from(out.waiting == 0) << (bit & 63);
        state.ready &= !is_idle;
        state.waiting &= !is_idle;
        self.leaves::<WIDE>((output, vc), packet, now);
        true
    }

    /// A packet leaves in the cycle `now` by a VC of `output`, whose turn is over.
    #[inline(always)]
    fn leaves<const WIDE: bool>(&mut self, (output, vc): (u32, u32), id: PacketId, now: u64) {
        let out = &mut self.outs[output as usize];
        out.turn = if vc.wrapping_add(1) < self.vcs { (vc as u8).wrapping_add(1) } else { 0 };
        let packet = &mut self.packets[place_of(id)];
        packet.switches = packet.switches.wrapping_add(1);
        out.bytes = out.bytes.wrapping_add(packet.bytes.into());
        out.packets = out.packets.wrapping_add(1);
        let (to_host, ahead, input) = (out.to_host, out.ahead, out.input);
        if !to_host {
            self.sends::<WIDE>((input, vc), id, now, ahead);
        } else if ahead == 1 {
            self.arriving.delivered.push(id);
        } else {
            self.delivered.put(now.wrapping_add(ahead.into()), id);
        }
    }
}
