//! What begins to leave: by the links of switches, and of hosts.

use super::InputOutputQueued;
use super::state::{Event, NEVER, Output};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::topology::{LinkId, NodeId};

impl<O: Observer> InputOutputQueued<O> {
    /// Has `output` look at `at` whether a packet may leave, unless it does so before; `at` is the cycle `now` that is worked off, or later.
    pub(super) fn try_output(&mut self, output: u32, at: u64, now: u64) {
        let state = &mut self.outputs[output as usize];
        if state.try_at <= at {
            return;
        }
        state.try_at = at;
        if at == now {
            self.trying.push(output);
        } else {
            self.calendar.put(at, Event::Try { output });
        }
    }

    /// Has the packet leave by `output` whose turn it is, if one may.
    pub(super) fn output_tries(&mut self, output: u32, now: u64) {
        if self.outputs[output as usize].try_at != now {
            return;
        }
        self.outputs[output as usize].try_at = NEVER;
        let link = self.ports.outputs()[output as usize];
        if self.outputs[output as usize].from_host {
            self.host_tries(self.topology.link(link).from, output, link, now);
        } else {
            self.link_tries(output, link, now);
        }
    }

    fn link_tries(&mut self, output: u32, link: LinkId, now: u64) {
        let Output { waiting, turn, to_host, .. } = self.outputs[output as usize];
        let first = (output * self.vcs) as usize;
        // When one may leave, as far as that is known.
        let mut later = NEVER;
        let mut found = None;
        for vc in (u32::from(turn)..self.vcs).chain(0..u32::from(turn)) {
            if waiting & (1 << vc) == 0 {
                continue;
            }
            let state = &self.output_vcs[first + vc as usize];
            let Some(queued) = state.queue.front() else { continue };
            if queued.ready_at > now {
                later = later.min(queued.ready_at);
            } else if to_host || state.credits(now) >= queued.needs {
                found = Some(vc);
                break;
            } else if let Some(at) = state.has_credits_at(queued.needs, now) {
                later = later.min(at);
            }
        }
        let Some(vc) = found else {
            if later != NEVER {
                self.try_output(output, later, now);
            }
            return;
        };
        self.leave_output_queue(output, vc, link, to_host, now);
    }

    /// The first packet of a VC's queue begins to leave.
    fn leave_output_queue(&mut self, output: u32, vc: u32, link: LinkId, to_host: bool, now: u64) {
        let index = (output * self.vcs + vc) as usize;
        let Output { flits: left, vc: left_vc, .. } = self.outputs[output as usize];
        self.fills[(output * self.vcs) as usize + usize::from(left_vc)].flits -= left;
        let state = &mut self.output_vcs[index];
        let Some(queued) = state.queue.pop_front() else { return };
        let empty = state.queue.is_empty();
        if !to_host {
            state.take_credits(now, queued.flits);
        }
        let next = &mut self.outputs[output as usize];
        (next.since, next.flits, next.vc) = (now, queued.flits, u8::try_from(vc).unwrap_or(0));
        next.turn = u8::try_from(if vc + 1 < self.vcs { vc + 1 } else { 0 }).unwrap_or(0);
        if empty {
            next.waiting &= !(1 << vc);
        }
        if next.waiting != 0 {
            let free = next.free_from();
            self.try_output(output, free, now);
        }
        self.packets.get_mut(queued.packet).switches += 1;
        self.begins_to_cross((link, vc), to_host, queued.packet, queued.flits, now);
    }

    /// The next packet of a host begins to leave, if there is one and credits for all its flits.
    fn host_tries(&mut self, host: NodeId, output: u32, link: LinkId, now: u64) {
        let Some((bytes, _)) = self.messages.peek(host.0 as usize) else { return };
        let flits = self.flits(bytes);
        let first = (output * self.vcs) as usize;
        let vcs = &self.output_vcs[first..first + self.vcs as usize];
        let Some(vc) = vcs.iter().position(|vc| vc.credits(now) >= flits) else {
            if self.loses_heads {
                let lost = self.messages.lose_head(host.0 as usize, Cycle(now).begins(&self.clock));
                lost.iter().for_each(|lost| self.observer.dropped(lost));
                if !self.messages.is_empty(host.0 as usize) {
                    self.try_output(output, now + 1, now);
                }
                return;
            }
            if let Some(at) = vcs.iter().filter_map(|vc| vc.has_credits_at(flits, now)).min() {
                self.try_output(output, at, now);
            }
            return;
        };
        let Some(packet) = self.next_packet(host, flits, now) else { return };
        self.output_vcs[first + vc].take_credits(now, flits);
        let state = &mut self.outputs[output as usize];
        (state.since, state.flits) = (now, flits);
        let free = state.free_from();
        self.begins_to_cross((link, u32::try_from(vc).unwrap_or(0)), false, packet, flits, now);
        if !self.messages.is_empty(host.0 as usize) {
            self.try_output(output, free, now);
        }
    }

    /// The next packet of a host, of `flits` flits, begins to leave in the cycle `now`.
    #[inline]
    pub(super) fn next_packet(&mut self, host: NodeId, flits: u32, now: u64) -> Option<PacketId> {
        let cut = self.messages.cut(host.0 as usize)?;
        let message = self.messages.get(cut.message);
        let destination = self.topology.host_node(message.destination.0);
        let packet = Packet::new(cut, message, destination, flits, now);
        if let Some(log) = &mut self.log {
            log.begins(packet.key, Cycle(now).begins(&self.clock));
        }
        Some(self.packets.insert(packet))
    }

    /// Credits of a VC of an output come back from the cycle `from` on, one a cycle.
    #[inline]
    pub(super) fn credits_go_back(&mut self, output_vc: u32, flits: u32, from: u64) {
        self.calendar.put(from, Event::Credits { output_vc, flits });
    }

    /// A packet begins to cross a VC of a link.
    #[inline]
    pub(super) fn begins_to_cross(
        &mut self,
        (link, vc): (LinkId, u32),
        to_host: bool,
        packet: PacketId,
        flits: u32,
        now: u64,
    ) {
        self.moved += u64::from(flits);
        let lane = usize::from(link) * self.vcs as usize + vc as usize;
        self.lane_bytes[lane] += u64::from(flits) * self.config.flit.get();
        let bytes = self.packets.get(packet).bytes;
        self.meters[link].crossed(self.begins, bytes.into(), self.config.interval.ps());
        let first = now + 1 + u64::from(self.delays[link]);
        if let Some(log) = &mut self.log {
            let clock = &self.clock;
            let begins = |cycle: u64, flit: u32| Cycle(cycle + u64::from(flit)).begins(clock);
            let times = |flit| (begins(now, flit), begins(first, flit));
            log.packet_crosses(self.packets.get(packet).key, (link, vc), (flits, to_host), times);
        }
        if to_host {
            self.calendar.put(first + u64::from(flits) - 1, Event::Delivered { packet });
        } else {
            if let Some(occupancy) = &mut self.occupancy {
                occupancy.enters(lane, now, first);
            }
            let input_vc = self.ports.input_of(link) * self.vcs + vc;
            self.calendar.put(first, Event::Arrives { input_vc, packet });
        }
    }

    fn flits(&self, bytes: u32) -> u32 {
        u32::try_from(u64::from(bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX)
    }
}
