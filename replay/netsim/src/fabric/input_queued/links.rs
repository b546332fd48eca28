//! Links: the rings at their ends, in which flits lie, and the credits that come back. Nothing is told of a flit that comes behind another, nor of
//! a credit that nobody waits for: both are seen in the ring.

use super::InputQueued;
use super::slot::Slot;
use super::state::{Flit, PortVc, next};
use crate::fabric::packet::Observer;

impl<O: Observer> InputQueued<O> {
    /// What lies first at a VC of an input.
    #[inline]
    pub(super) fn first_slot(&self, index: usize) -> Slot {
        self.slots[self.ring(index) + self.input_vcs[index].first as usize]
    }

    /// A flit leaves by `to`, and comes to the end of the link in cycle `arrives`.
    #[inline(always)]
    pub(super) fn leaves(&mut self, to: PortVc, flit: Flit, arrives: u64) {
        let index = self.index(to);
        let buffer = self.config.buffer;
        let vc = &mut self.output_vcs[index];
        vc.credits = vc.credits.wrapping_sub(1);
        vc.sent = vc.sent.wrapping_add(1);
        let (ring, place) = (vc.ring, vc.next);
        vc.next = next(place, buffer);
        let last = flit.tail && self.config.wait_for_tail_credit;
        if ring >= self.rings_of_hosts {
            self.slots[ring + place as usize] = Slot::gone(arrives);
            if last || self.all_credits {
                let credit_delay = self.outputs[to.port() as usize].credit_delay;
                self.credits.put(arrives + u64::from(credit_delay), to);
            }
            if flit.tail {
                self.arriving.put(arrives, flit.packet);
            }
            return;
        }
        let before = if place == 0 { buffer } else { place }.wrapping_sub(1);
        let is_first = self.slots[ring.wrapping_add(before as usize)].is_gone();
        let slot = Slot::coming(arrives);
        let place = ring.wrapping_add(place as usize);
        self.slots[place] = if last { slot.wanted() } else { slot };
        if flit.head {
            self.heads[place] = flit.packet;
        }
        if is_first {
            let end = self.outputs[to.port() as usize].end;
            self.arrivals.put(arrives, PortVc::new(end, to.vc()));
        }
    }

    /// The first flit of a VC of an input goes on: its credit goes back to its sender. Returns what lies behind it.
    #[inline]
    pub(super) fn goes_on(&mut self, at: PortVc, now: u64) -> Slot {
        let index = self.index(at);
        let buffer = self.config.buffer;
        let ring = self.ring(index);
        let state = &mut self.input_vcs[index];
        let slot = &mut self.slots[ring + state.first as usize];
        let wanted = slot.is_wanted();
        *slot = Slot::gone(now);
        state.first = next(state.first, buffer);
        let behind = self.slots[ring + state.first as usize];
        if wanted || self.all_credits {
            let input = &self.inputs[at.port() as usize];
            self.credits.put(now + u64::from(input.credit_delay), PortVc::new(input.sender, at.vc()));
        }
        behind
    }

    /// The credits of a VC of an output that count until cycle `until`.
    pub(super) fn count_credits(&mut self, to: PortVc, until: u64) -> u32 {
        let index = self.index(to);
        let buffer = self.config.buffer;
        let until = until.wrapping_sub(self.outputs[to.port() as usize].credit_delay.into());
        let vc = &mut self.output_vcs[index];
        let ring = &self.slots[vc.ring..vc.ring.wrapping_add(buffer as usize)];
        let is_back = |slot: Slot| slot.is_gone() && slot.by(until);
        // Flits go on in order: mostly all have.
        if is_back(ring[if vc.next == 0 { buffer } else { vc.next }.wrapping_sub(1) as usize]) {
            vc.credits = buffer;
            return buffer;
        }
        let mut credits = vc.credits;
        while credits < buffer {
            let place = vc.next.wrapping_add(credits);
            let place = if place >= buffer { place.wrapping_sub(buffer) } else { place };
            if !is_back(ring[place as usize]) {
                break;
            }
            credits = credits.wrapping_add(1);
        }
        vc.credits = credits;
        credits
    }

    /// Has the next credit of a VC of an output told that has none, all that count in cycle `now` counted.
    pub(super) fn want_credit(&mut self, to: PortVc, now: u64) {
        let vc = &self.output_vcs[self.index(to)];
        let place = vc.ring + vc.next as usize;
        let slot = self.slots[place];
        if slot.is_gone() {
            let credit_delay = self.outputs[to.port() as usize].credit_delay;
            self.credits.put(slot.cycle(now) + u64::from(credit_delay), to);
        } else {
            self.slots[place] = slot.wanted();
        }
    }

    /// Brings the cycles of all places up to `now`; `before`: the last cycle in which anything happened.
    #[cold]
    pub(super) fn renew(&mut self, before: u64, now: u64) {
        self.slots.iter_mut().for_each(|slot| *slot = slot.renewed(before, now));
        self.renewed = now;
    }
}
