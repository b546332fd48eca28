//! Links: which packet each takes next, of a host or of an output.

use super::OmniPath;
use super::state::{Event, Packet, Sender};
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::PacketId;
use crate::fabric::messages::key;
use crate::fabric::packet::Observer;
use crate::topology::{LinkId, NodeId};

impl<O: Observer> OmniPath<O> {
    /// Has `link` look at `at`, when it is free, unless it does so earlier.
    pub(super) fn wake(&mut self, link: LinkId, at: Cycle) {
        let state = &mut self.senders[link];
        let at = at.max(state.free_at);
        if at < state.wake {
            state.wake = at;
            self.schedule(at, Event::Look(link));
        }
    }

    /// The event for which `link` waited, unless it has found out since that it should wait for another one.
    pub(super) fn look_woken(&mut self, link: LinkId, now: Cycle) {
        let state = &mut self.senders[link];
        if state.wake == now {
            state.wake = Cycle::NEVER;
            self.look(link);
        }
    }

    /// Has `link` look for a packet once all arrivals of the cycle are seen.
    pub(super) fn look(&mut self, link: LinkId) {
        let state = &mut self.senders[link];
        if !state.listed {
            state.listed = true;
            self.looking.push(link);
        }
    }

    /// The buffer of the output in front of `link` holds more from now on.
    pub(super) fn queued(&mut self, link: LinkId, now: Cycle) {
        let credit = u64::from(self.config.flits_per_credit) * self.config.flit.get();
        let bytes = u64::from(self.output_spaces.held(link.into())) * credit;
        self.meters[link].queued(now.begins(&self.clock), bytes, self.config.interval.ps());
    }

    /// `link` takes the next packet, if there is one that may leave.
    pub(super) fn take_packet(&mut self, link: LinkId, now: Cycle) {
        self.senders[link].listed = false;
        let Sender { free_at, turn, .. } = self.senders[link];
        if free_at > now {
            return self.wake(link, free_at);
        }
        let from = self.topology.link(link).from;
        let host = self.topology.is_host(from).then_some(from);
        let mut later = Cycle::NEVER;
        for step in 0..self.config.vls {
            let vl = (turn + step) % self.config.vls;
            let Some((ready, credits)) = self.waits(link, host, vl, now) else { continue };
            if ready > now {
                later = later.min(ready);
            } else if self.input_spaces.has_room(link.into(), vl, credits) {
                self.senders[link].turn = (vl + 1) % self.config.vls;
                return self.send_from(link, host, vl, now);
            }
        }
        if later < Cycle::NEVER {
            self.wake(link, later);
        } else if let Some(host) = host.filter(|_| self.loses_heads) {
            self.lose_head(host, link, now);
        }
    }

    /// The first packet on the lowest VL of `host` is lost, as none finds room.
    fn lose_head(&mut self, host: NodeId, link: LinkId, now: Cycle) {
        let first = host.0 as usize * self.vls;
        let queues = first..first + self.vls;
        let Some(queue) = queues.clone().find(|queue| !self.messages.is_empty(*queue)) else { return };
        let lost = self.messages.lose_head(queue, now.begins(&self.clock));
        lost.iter().for_each(|lost| self.observer.dropped(lost));
        if queues.into_iter().any(|queue| !self.messages.is_empty(queue)) {
            self.wake(link, now.plus(1));
        }
    }

    /// When the head of VL `vl` in front of `link` may leave, and its credits.
    fn waits(&self, link: LinkId, host: Option<NodeId>, vl: u8, now: Cycle) -> Option<(Cycle, u32)> {
        if let Some(host) = host {
            let (bytes, _) = self.messages.peek(host.0 as usize * self.vls + usize::from(vl))?;
            return Some((now, self.credits(self.flits(bytes))));
        }
        let first = self.outputs[usize::from(link) * self.vls + usize::from(vl)].first;
        (first != PacketId::NONE).then(|| {
            let packet = self.packets.get(first);
            (packet.ready, packet.credits)
        })
    }

    fn flits(&self, bytes: u32) -> u32 {
        u32::try_from(u64::from(bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX)
    }

    fn credits(&self, flits: u32) -> u32 {
        flits.div_ceil(self.config.flits_per_credit)
    }

    /// The head of VL `vl` leaves over `link`.
    fn send_from(&mut self, link: LinkId, host: Option<NodeId>, vl: u8, now: Cycle) {
        let id = match host {
            Some(host) => match self.cut(host, vl, now) {
                Some(id) => id,
                None => return,
            },
            None => self.outputs[usize::from(link) * self.vls + usize::from(vl)].pop(&self.packets),
        };
        let packet = self.packets.get_mut(id);
        packet.vl = vl;
        let Packet { flits, credits, bytes, key, .. } = *packet;
        let until = now.plus(flits);
        self.senders[link].free_at = until;
        self.input_spaces.take(link.into(), vl, credits);
        if host.is_none() {
            self.schedule(until, Event::FromOutput(link, vl, credits));
        }
        let arrives = now.plus(self.delays[link]);
        let to_host = self.topology.is_host(self.topology.link(link).to);
        if let Some(log) = &mut self.log {
            if host.is_some() {
                log.begins(key, now.begins(&self.clock));
            }
            let clock = &self.clock;
            let times = |flit| (now.plus(flit).begins(clock), arrives.plus(flit).plus(1).begins(clock));
            log.packet_crosses(key, (link, vl.into()), (flits, to_host), times);
        }
        if to_host {
            self.schedule(arrives.plus(flits), Event::Deliver(id, link));
        } else {
            self.schedule(arrives, Event::Header(id, link));
        }
        self.meters[link].crossed(now.begins(&self.clock), bytes.into(), self.config.interval.ps());
        self.lane_bytes[usize::from(link) * self.vls + usize::from(vl)] += u64::from(flits) * self.config.flit.get();
        self.wake(link, until);
    }

    /// Takes the next packet of VL `vl` out of the queue of `host`.
    fn cut(&mut self, host: NodeId, vl: u8, now: Cycle) -> Option<PacketId> {
        let cut = self.messages.cut(host.0 as usize * self.vls + usize::from(vl))?;
        let message = self.messages.get(cut.message);
        let flits = self.flits(cut.bytes);
        Some(self.packets.insert(Packet {
            next: PacketId::NONE,
            message: cut.message,
            destination: self.topology.host_node(message.destination.0),
            out: LinkId(u32::MAX),
            vl,
            out_vl: vl,
            base: vl,
            ready: now,
            left: now,
            key: key(message.source, cut.number),
            flow: message.flow,
            bytes: cut.bytes,
            flits,
            credits: self.credits(flits),
            switches: 0,
        }))
    }
}
