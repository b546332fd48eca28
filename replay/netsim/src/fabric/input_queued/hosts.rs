//! Hosts: each sends a flit a cycle, as far as it has credits.

use super::InputQueued;
use super::state::{Flit, Host, OutputVc, Owner, PortVc};
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
        let state = &self.hosts[host as usize];
        let output = state.output;
        if state.flits == 0 && !self.begin_packet(host, output, now) {
            let more = !self.messages.is_empty(host as usize);
            self.hosts[host as usize].waits = more && !self.loses_heads;
            return more && self.loses_heads;
        }
        let Host { flits, packet, vc, begun, .. } = self.hosts[host as usize];
        let to = PortVc::new(output, vc.into());
        let OutputVc { credits, arrives_in, .. } = self.output_vcs[self.index(to)];
        if credits == 0 && self.count_credits(to, now) == 0 {
            self.want_credit(to, now);
            self.hosts[host as usize].waits = true;
            return false;
        }
        let flit = Flit { packet, head: !begun, tail: flits == 1 };
        let state = &mut self.hosts[host as usize];
        (state.flits, state.begun) = (flits.wrapping_sub(1), true);
        self.moved = self.moved.wrapping_add(1);
        let arrives = now.wrapping_add(arrives_in.into());
        if self.log.is_some() || self.occupancy.is_some() {
            self.is_watched(None, to, flit, (now, now, arrives));
        }
        self.leaves(to, flit, arrives);
        if flit.tail {
            self.tail_sent(to, now + 1);
            return !self.messages.is_empty(host as usize);
        }
        true
    }

    /// Gives the next packet of `host` a VC. Returns whether there are both.
    fn begin_packet(&mut self, host: u32, output: u32, now: u64) -> bool {
        let Some((bytes, _)) = self.messages.peek(host as usize) else { return false };
        let flits = self.flits(bytes);
        let room = if self.cut_through { flits } else { 1 };
        let (first, vcs) = ((output * self.vcs) as usize, self.vcs);
        let last = u32::from(self.hosts[host as usize].vc);
        let may = |vc: &u32| {
            let to = PortVc::new(output, *vc);
            let OutputVc { owner, credits, .. } = self.output_vcs[self.index(to)];
            owner == Owner::NOBODY && (credits >= room || self.count_credits(to, now) >= room)
        };
        let Some(vc) = (last + 1..vcs).chain(0..=last).find(may) else {
            if self.loses_heads {
                let lost = self.messages.lose_head(host as usize, Cycle(now).begins(&self.clock));
                lost.iter().for_each(|lost| self.observer.dropped(lost));
            } else {
                self.want_any_credit(output, now);
            }
            return false;
        };
        let Some(cut) = self.messages.cut(host as usize) else { return false };
        let message = self.messages.get(cut.message);
        let destination = self.topology.host_node(message.destination.0);
        let packet: PacketId = self.packets.insert(Packet::new(cut, message, destination, flits, now));
        self.output_vcs[first + vc as usize].owner = Owner::HOST;
        let link = self.outputs[output as usize].link;
        let state = &mut self.hosts[host as usize];
        (state.flits, state.packet, state.begun) = (flits, packet, false);
        state.vc = u8::try_from(vc).unwrap_or(0);
        let at = self.begins(now);
        if let Some(log) = &mut self.log {
            log.begins(self.packets.get(packet).key, at);
        }
        self.meters[link].crossed(at, bytes.into(), self.config.interval.ps());
        true
    }

    /// The flits of a packet of `bytes`, which mostly is one of the largest: dividing takes long.
    #[inline]
    fn flits(&self, bytes: u32) -> u32 {
        if bytes == self.largest.0 {
            return self.largest.1;
        }
        u32::try_from(u64::from(bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX)
    }

    /// Has a host told of the next credit of each VC of its link that is nobody's and has none.
    fn want_any_credit(&mut self, output: u32, now: u64) {
        for to in (0..self.vcs).map(|vc| PortVc::new(output, vc)) {
            let OutputVc { owner, credits, .. } = self.output_vcs[self.index(to)];
            if owner == Owner::NOBODY && credits == 0 {
                self.want_credit(to, now);
            }
        }
    }
}
