//! Routers: what a switch does in a cycle. All of it is decided by what there was when the cycle began.

use super::InputQueued;
use super::slot::Slot;
use super::state::{Crossing, Flit, Output, PortVc, State, Switch, next};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ports::NONE;
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::topology::LinkId;

impl<O: Observer> InputQueued<O> {
    /// What switch `number` does in cycle `now`. Returns whether there is something that it can do in the next one, as far as is known.
    pub(super) fn switch_works(&mut self, number: u32, now: u64) -> bool {
        let switch = self.switches[number as usize];
        if self.marks[switch.words()].iter().any(|marks| marks.heads != 0) {
            self.allocate_vcs(&switch, now);
        }
        if self.plain_crossbar {
            let steady = self.steady[number as usize];
            let chosen = if steady == NONE { self.match_crossbar(&switch) } else { steady };
            if !self.given.is_empty() {
                self.given_vcs_count(now);
            }
            if steady == NONE {
                self.matched_cross(&switch, chosen, now);
            } else {
                self.chosen_cross_again(&switch, chosen, now);
            }
            return self.has_more(&switch);
        }
        let mut crossing = std::mem::take(&mut self.crossing);
        crossing.clear();
        if self.config.hold_switch {
            self.held_cross(&switch, &mut crossing, now);
        }
        self.allocate_crossbar(&switch, now);
        self.given_vcs_count(now);
        self.given_crossbar_counts(&switch, &mut crossing, now);
        self.release();
        crossing.sort_unstable();
        for crossing in &crossing {
            self.cross::<false>(*crossing, now);
        }
        self.crossing = crossing;
        self.has_more(&switch) || (self.config.hold_switch && self.has_held_ways(&switch))
    }

    /// Whether there is something that a switch can do with its inputs.
    fn has_more(&self, switch: &Switch) -> bool {
        self.marks[switch.words()].iter().any(|marks| marks.heads | marks.ready != 0)
    }

    /// Whether packets hold ways of the crossbar.
    fn has_held_ways(&self, switch: &Switch) -> bool {
        let speedup = usize::from(self.config.input_speedup);
        let (first, inputs) = (switch.inputs.0 as usize, switch.inputs.1 as usize);
        self.held_inputs[first * speedup..(first + inputs) * speedup].iter().any(|way| *way != NONE)
    }

    /// The packet that is first in a VC of an input.
    pub(super) fn packet_of(&self, index: usize) -> &Packet {
        self.packets.get(self.input_vcs[index].packet)
    }

    /// When the packet that is first in a VC left its host, and its key.
    pub(super) fn age_of(&self, index: usize) -> (u64, u64) {
        let packet = self.packet_of(index);
        (packet.left, packet.key)
    }

    /// The first flit of a VC crosses the crossbar: as [`Self::cross`] by the shortest of all rules, written out for what that mostly does.
    pub(super) fn crosses_plainly(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let buffer = self.config.buffer;
        let state = &mut self.input_vcs[index];
        let (first, to, packet, head) = (state.first, state.given, state.packet, !state.begun);
        let (second, left) = (next(first, buffer), state.left.wrapping_sub(1));
        let tail = left == 0;
        (state.first, state.left, state.begun) = (second, left, !tail);
        if tail {
            state.state = State::Idle;
        }
        let ring = index.wrapping_mul(buffer as usize);
        let here = &mut self.slots[ring.wrapping_add(first as usize)];
        let is_wanted = here.is_wanted();
        *here = Slot::gone(now);
        let behind = self.slots[ring.wrapping_add(second as usize)];

        let place = self.index(to);
        let vc = &mut self.output_vcs[place];
        let (ring, there, credits) = (vc.ring, vc.next, vc.credits.wrapping_sub(1));
        (vc.next, vc.credits, vc.sent) = (next(there, buffer), credits, vc.sent.wrapping_add(1));
        let arrives = now.wrapping_add(vc.arrives_in.into());
        self.moved = self.moved.wrapping_add(1);
        let there_place = ring.wrapping_add(there as usize);
        if ring >= self.rings_of_hosts {
            self.slots[there_place] = Slot::gone(arrives);
            if tail {
                self.arriving.put(arrives, packet);
            }
        } else {
            let before = if there == 0 { buffer } else { there }.wrapping_sub(1);
            let comes_first = self.slots[ring.wrapping_add(before as usize)].is_gone();
            self.slots[there_place] = Slot::coming(arrives);
            if head {
                self.heads[there_place] = packet;
            }
            if comes_first {
                let end = self.outputs[to.port() as usize].end;
                self.arrivals.put(arrives, PortVc::new(end, to.vc()));
            }
        }
        if is_wanted {
            let input = &self.inputs[at.port() as usize];
            self.credits.put(now.wrapping_add(input.credit_delay.into()), PortVc::new(input.sender, at.vc()));
        }
        if head {
            self.head_leaves(to, packet, arrives);
        }
        if tail || credits == 0 || behind.is_gone() || !behind.by(now.wrapping_add(1)) {
            self.goes_behind(at, to, tail, behind, now);
        }
    }

    /// The head of a packet leaves by `to`, and arrives.
    fn head_leaves(&mut self, to: PortVc, id: PacketId, arrives: u64) {
        let Output { link, delay, .. } = self.outputs[to.port() as usize];
        let begins = self.begins(arrives - u64::from(delay));
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        self.meters[link].crossed(begins, packet.bytes.into(), self.config.interval.ps());
    }

    /// The first flit of a VC crosses the crossbar, and leaves by the output's link. `PLAIN`: by the shortest of all rules.
    #[inline]
    pub(super) fn cross<const PLAIN: bool>(&mut self, crossing: Crossing, now: u64) {
        let at = crossing.at;
        let index = self.index(at);
        let behind = self.goes_on(at, now);
        let state = &mut self.input_vcs[index];
        state.left -= 1;
        let (packet, to) = (state.packet, state.given);
        let flit = Flit { packet, head: !state.begun, tail: state.left == 0 };
        state.begun = !flit.tail;
        if flit.tail {
            state.state = State::Idle;
        }
        let arrives = if PLAIN {
            // One flit a cycle comes to an output.
            now + u64::from(self.output_vcs[self.index(to)].arrives_in)
        } else {
            state.crosses = false;
            self.crossbars[index].at = now + 1;
            // As many flits a cycle come as the output has ways, and one leaves.
            let output = &mut self.outputs[to.port() as usize];
            let leaves = (now + u64::from(self.config.latency.crossbar)).max(output.leaves);
            output.leaves = leaves + 1;
            leaves + u64::from(output.delay)
        };
        self.moved += 1;
        self.leaves(to, flit, arrives);
        if flit.head {
            self.head_leaves(to, packet, arrives);
        }
        if self.log.is_some() || self.occupancy.is_some() {
            let leaves = arrives - u64::from(self.outputs[to.port() as usize].delay);
            self.is_watched(Some(at), to, flit, (now, leaves, arrives));
        }
        if !PLAIN && self.config.hold_switch {
            self.hold(crossing, !flit.tail && !behind.is_gone() && behind.by(now));
        }
        self.goes_behind(at, to, flit.tail, behind, now);
    }

    /// Notes, where that is wanted, that a flit goes on in cycle `now` from a VC of an input, or from its host, leaves by `to`, and arrives.
    #[cold]
    pub(super) fn is_watched(
        &mut self,
        from: Option<PortVc>,
        to: PortVc,
        flit: Flit,
        (now, leaves, arrives): (u64, u64, u64),
    ) {
        let Output { link, to_host, .. } = self.outputs[to.port() as usize];
        if let Some(log) = &mut self.log {
            let times = (Cycle(leaves).begins(&self.clock), Cycle(arrives).begins(&self.clock));
            let key = self.packets.get(flit.packet).key;
            log.flit_crosses(key, (link, to.vc()), (flit.head, flit.tail, to_host), times);
        }
        if let Some(occupancy) = &mut self.occupancy {
            let lane = |link: LinkId, vc: u32| usize::from(link) * self.vcs as usize + vc as usize;
            if flit.tail
                && let Some(at) = from
            {
                occupancy.leaves(lane(self.inputs[at.port() as usize].link, at.vc()), now, now + 1);
            }
            if flit.head && !to_host {
                occupancy.enters(lane(link, to.vc()), now, arrives);
            }
        }
    }

    /// What is behind the flit that has crossed from `at` to `to` goes on.
    fn goes_behind(&mut self, at: PortVc, to: PortVc, was_tail: bool, behind: Slot, now: u64) {
        let is_there = !behind.is_gone() && behind.by(now + 1);
        if !is_there && !behind.is_gone() {
            self.arrivals.put(behind.cycle(now), at);
        }
        if was_tail {
            self.is_not_ready(at);
            self.tail_sent(to, now + 1);
            if is_there {
                self.head_comes(at, now + 1);
            }
        } else if !is_there {
            self.is_not_ready(at);
        } else if self.output_vcs[self.index(to)].credits == 0 && self.count_credits(to, now + 1) == 0 {
            self.is_not_ready(at);
            self.want_credit(to, now + 1);
        }
    }
}
