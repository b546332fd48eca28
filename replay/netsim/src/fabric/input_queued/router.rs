//! Routers: what a switch does in a cycle. All of it is decided by what there was when the cycle began.

use super::InputQueued;
use super::state::{Arrival, Crossing, PortVc, State, Switch};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ports::NONE;
use crate::fabric::cycle::Cycle;
use crate::fabric::packet::Observer;
use crate::topology::LinkId;

impl<O: Observer> InputQueued<O> {
    /// What switch `number` does in cycle `now`. Returns whether there is something that it can do in the next one, as far as is known.
    pub(super) fn switch_works(&mut self, number: u32, now: u64) -> bool {
        let (inputs, outputs) = (self.ports.inputs_of(number), self.ports.outputs_of(number));
        let switch = Switch { number, inputs, outputs };
        self.allocate_vcs(&switch, now);
        let mut crossing = std::mem::take(&mut self.crossing);
        crossing.clear();
        if self.plain_crossbar {
            self.match_crossbar(&switch, &mut crossing);
            self.given_vcs_count(now);
        } else {
            if self.config.hold_switch {
                self.held_cross(&switch, &mut crossing, now);
            }
            self.allocate_crossbar(&switch, now);
            self.given_vcs_count(now);
            self.given_crossbar_counts(&switch, &mut crossing, now);
            self.release();
        }
        crossing.sort_unstable();
        for crossing in &crossing {
            self.cross(*crossing, now);
        }
        self.crossing = crossing;
        let ends = inputs.0 as usize..(inputs.0 + inputs.1) as usize;
        self.ends[ends].iter().any(|end| end.heads | end.ready != 0)
            || (self.config.hold_switch && self.has_held_ways(&switch))
    }

    /// Whether packets hold ways of the crossbar.
    fn has_held_ways(&self, switch: &Switch) -> bool {
        let speedup = usize::from(self.config.input_speedup);
        let (first, inputs) = (switch.inputs.0 as usize, switch.inputs.1 as usize);
        self.held_inputs[first * speedup..(first + inputs) * speedup].iter().any(|way| *way != NONE)
    }

    pub(super) fn packet_of(&self, index: usize) -> &Packet {
        let state = &self.input_vcs[index];
        self.packets.get(self.queues[index * self.config.buffer as usize + state.first as usize].packet())
    }

    /// When the packet that is first in a VC left its host, and its key.
    pub(super) fn age_of(&self, index: usize) -> (u64, u64) {
        let packet = self.packet_of(index);
        (packet.left, packet.key)
    }

    /// The first flit of a VC crosses the crossbar, and leaves by the output's link.
    fn cross(&mut self, crossing: Crossing, now: u64) {
        let at = crossing.at;
        let index = self.index(at);
        let buffer = self.config.buffer;
        let state = &mut self.input_vcs[index];
        let flit = self.queues[index * buffer as usize + state.first as usize];
        let (head, tail) = (!state.begun, flit.is_tail());
        (state.begun, state.crosses) = (!tail, false);
        state.first = if state.first + 1 == buffer { 0 } else { state.first + 1 };
        state.flits -= 1;
        state.crossbar_at = now + 1;
        if tail {
            state.state = State::Idle;
        }
        let (left, to) = (state.flits, state.given);
        let place = self.index(to);
        let vc = &mut self.output_vcs[place];
        vc.credits -= 1;
        vc.sent += 1;
        if tail || left == 0 || vc.credits == 0 {
            self.ends[at.port() as usize].ready &= !at.bit();
        }
        self.credit_back(at, now);

        // The output: as many flits a cycle come as it has ways, and one leaves.
        let output = &mut self.outputs[to.port() as usize];
        let leaves = (now + u64::from(self.config.latency.crossbar)).max(output.leaves);
        output.leaves = leaves + 1;
        let (link, arrives, end, to_host) = (output.link, leaves + output.delay, output.end, output.to_host);
        self.moved += 1;
        self.arrivals.put(arrives, Arrival { at: PortVc::new(end, to.vc()), flit });
        if head {
            let begins = self.begins(leaves);
            let packet = self.packets.get_mut(flit.packet());
            packet.switches += 1;
            self.meters[link].crossed(begins, packet.bytes.into(), self.config.interval.ps());
        }
        if let Some(log) = &mut self.log {
            let times = (Cycle(leaves).begins(&self.clock), Cycle(arrives).begins(&self.clock));
            let key = self.packets.get(flit.packet()).key;
            log.flit_crosses(key, (link, to.vc()), (head, tail, to_host), times);
        }
        if let Some(occupancy) = &mut self.occupancy {
            let lane = |link: LinkId, vc: u32| usize::from(link) * self.vcs as usize + vc as usize;
            if tail {
                occupancy.leaves(lane(self.ends[at.port() as usize].link, at.vc()), now, now + 1);
            }
            if head && !to_host {
                occupancy.enters(lane(link, to.vc()), now, arrives);
            }
        }
        if self.config.hold_switch {
            self.hold(crossing, !tail && left > 0);
        }
        if tail {
            self.tail_sent(to, now + 1);
            if left > 0 {
                self.head_comes(at, now + 1);
            }
        }
    }
}
