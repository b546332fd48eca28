//! Hosts: each sends a flit a cycle, as far as it has credits.

use super::InputQueued;
use super::config::FlowControl;
use super::state::Host;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::topology::NodeId;

impl<O: Observer> InputQueued<O> {
    /// Has `host` try to send from the present cycle on.
    pub(super) fn wake_host(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        if !state.listed {
            state.listed = true;
            self.sending.push(host);
        }
    }

    /// A flit of `host` leaves, if one may. Returns whether more wait.
    pub(super) fn host_sends(&mut self, host: u32, now: u64) -> bool {
        let Host { flits, .. } = self.hosts[host as usize];
        if flits == 0 && !self.begin_packet(host, now) {
            return !self.messages.is_empty(host as usize);
        }
        let link = self.topology.uplink(NodeId(host));
        let first = self.ports.output_of(link) as usize * self.vcs as usize;
        let state = &mut self.hosts[host as usize];
        let output = &mut self.output_vcs[first + usize::from(state.vc)];
        if output.credits > 0 {
            let head = state.flits == self.packets.get(state.packet).flits;
            state.flits -= 1;
            let (packet, tail, vc) = (state.packet, state.flits == 0, state.vc);
            output.send(tail, self.config.wait_for_tail_credit);
            self.sent(link, vc, packet, (head, tail), now);
        }
        self.hosts[host as usize].flits > 0 || !self.messages.is_empty(host as usize)
    }

    /// Gives the next packet of `host` a VC. Returns whether there are both.
    fn begin_packet(&mut self, host: u32, now: u64) -> bool {
        let Some((bytes, _)) = self.messages.peek(host as usize) else { return false };
        let flits = self.flits(bytes);
        let room = (self.config.flow_control == FlowControl::VirtualCutThrough).then_some(flits);
        let first = self.ports.output_of(self.topology.uplink(NodeId(host))) * self.vcs;
        let last = u32::from(self.hosts[host as usize].vc);
        let may = |vc: &u32| {
            let output = &self.output_vcs[(first + vc) as usize];
            output.credits > 0 && output.is_free_for(room)
        };
        let Some(vc) = (1..=self.vcs).map(|step| (last + step) % self.vcs).find(may) else {
            if self.loses_heads {
                let lost = self.messages.lose_head(host as usize, Cycle(now).begins(&self.clock));
                lost.iter().for_each(|lost| self.observer.dropped(lost));
            }
            return false;
        };
        let Some(cut) = self.messages.cut(host as usize) else { return false };
        let message = self.messages.get(cut.message);
        let destination = self.topology.host_node(message.destination.0);
        let packet: PacketId = self.packets.insert(Packet::new(cut, message, destination, flits, now));
        self.output_vcs[(first + vc) as usize].taken = true;
        let state = &mut self.hosts[host as usize];
        (state.flits, state.packet) = (flits, packet);
        state.vc = u8::try_from(vc).unwrap_or(0);
        let at = Cycle(now).begins(&self.clock);
        self.meters[self.topology.uplink(NodeId(host))].crossed(at, bytes.into(), self.config.interval.ps());
        true
    }

    fn flits(&self, bytes: u32) -> u32 {
        u32::try_from(u64::from(bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX)
    }
}
