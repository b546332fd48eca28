//! Hosts: each sends a flit a cycle, as far as it has credits.

use super::InputQueued;
use super::state::{Arrival, Flit, Host, Owner, PortVc};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;

impl<O: Observer> InputQueued<O> {
    /// Has `host` try to send from the present cycle on.
    pub(super) fn wake_host(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        state.waits = false;
        if !state.listed {
            state.listed = true;
            self.sending.push(host);
        }
    }

    /// A flit of `host` leaves, if one may. Returns whether it has more to send, and does not wait for a credit or a VC.
    pub(super) fn host_sends(&mut self, host: u32, now: u64) -> bool {
        let output = self.hosts[host as usize].output;
        if self.hosts[host as usize].flits == 0 && !self.begin_packet(host, output, now) {
            let more = !self.messages.is_empty(host as usize);
            self.hosts[host as usize].waits = more && !self.loses_heads;
            return more && self.loses_heads;
        }
        let Host { flits, packet, vc, .. } = self.hosts[host as usize];
        let to = PortVc::new(output, vc.into());
        let index = self.index(to);
        let output_vc = &mut self.output_vcs[index];
        if output_vc.credits == 0 {
            self.hosts[host as usize].waits = true;
            return false;
        }
        let (head, tail) = (flits == self.packets.get(packet).flits, flits == 1);
        output_vc.credits -= 1;
        output_vc.sent += 1;
        self.hosts[host as usize].flits -= 1;
        self.moved += 1;
        let state = &self.outputs[output as usize];
        let (link, at) = (state.link, now + state.delay);
        let to_host = state.to_host;
        let end = state.end;
        if let Some(log) = &mut self.log {
            let times = (Cycle(now).begins(&self.clock), Cycle(at).begins(&self.clock));
            log.flit_crosses(self.packets.get(packet).key, (link, vc.into()), (head, tail, to_host), times);
        }
        if let Some(occupancy) = &mut self.occupancy
            && head
            && !to_host
        {
            occupancy.enters(usize::from(link) * self.vcs as usize + usize::from(vc), self.now, at);
        }
        self.arrivals.put(at, Arrival { at: PortVc::new(end, vc.into()), flit: Flit::new(packet, tail) });
        if tail {
            self.tail_sent(to, now + 1);
        }
        !tail || !self.messages.is_empty(host as usize)
    }

    /// Gives the next packet of `host` a VC. Returns whether there are both.
    fn begin_packet(&mut self, host: u32, output: u32, now: u64) -> bool {
        let Some((bytes, _)) = self.messages.peek(host as usize) else { return false };
        let flits = u32::try_from(u64::from(bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX);
        let room = if self.cut_through { flits } else { 1 };
        let first = (output * self.vcs) as usize;
        let last = u32::from(self.hosts[host as usize].vc);
        let may = |vc: &u32| {
            let output = &self.output_vcs[first + *vc as usize];
            output.owner == Owner::Nobody && output.credits >= room
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
        self.output_vcs[first + vc as usize].owner = Owner::Host;
        let link = self.outputs[output as usize].link;
        let state = &mut self.hosts[host as usize];
        (state.flits, state.packet) = (flits, packet);
        state.vc = u8::try_from(vc).unwrap_or(0);
        let at = self.begins(now);
        if let Some(log) = &mut self.log {
            log.begins(self.packets.get(packet).key, at);
        }
        self.meters[link].crossed(at, bytes.into(), self.config.interval.ps());
        true
    }
}
