//! Routers: what a switch does in a cycle. All of it is decided by what there was when the cycle began.

use super::InputQueued;
use super::slot::Slot;
use super::state::{ActiveInputs, Crossing, Flit, Output, PortVc, State, Switch};
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
        if self.marks_of(number).heads != 0 {
            self.allocate_vcs(&switch, now);
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
        self.has_more(number) || (self.config.hold_switch && self.has_held_ways(&switch))
    }

    /// Marks of any of a switch's inputs.
    #[inline(always)]
    pub(super) fn marks_of(&self, switch: u32) -> ActiveInputs {
        if !self.is_wide {
            // Each switch has one word.
            return self.marks[switch as usize];
        }
        let words = self.switches[switch as usize].words();
        let either = |one: ActiveInputs, other: &ActiveInputs| ActiveInputs {
            heads: one.heads | other.heads,
            ready: one.ready | other.ready,
        };
        self.marks[words].iter().fold(ActiveInputs::default(), either)
    }

    /// Whether there is something that a switch can do with its inputs.
    #[inline(always)]
    pub(super) fn has_more(&self, switch: u32) -> bool {
        let marks = self.marks_of(switch);
        marks.heads | marks.ready != 0
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

    /// The head of a packet leaves by `to`, and arrives.
    pub(super) fn head_leaves(&mut self, to: PortVc, id: PacketId, arrives: u64) {
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
    pub(super) fn goes_behind(&mut self, at: PortVc, to: PortVc, was_tail: bool, behind: Slot, now: u64) {
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
