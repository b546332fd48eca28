//! Hosts: messages are cut into packets as these leave, and packets arrive.

use super::Credit;
use super::packet::Packet;
use super::strategies::Strategies;
use crate::fabric::ids::PacketId;
use crate::fabric::messages::{NUMBER, key};
use crate::fabric::packet::{Observer, PacketRecord};
use crate::kernel::random::draw;
use crate::network::Delivery;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// How many credits the packet must find that host `node` sends next on VL `vl`.
    #[inline]
    pub(super) fn host_need(&self, node: u32, vl: u32) -> u32 {
        let next = self.messages.peek(self.number.queue(NodeId(node), vl));
        next.map_or(u32::MAX, |(bytes, _)| self.sizes.of(bytes).1.into())
    }

    /// The class on which the next packet of a host's queue starts that needs `need` credits: the one with the most room, if any has
    /// enough; a draw among equals.
    pub(super) fn class_at_host(&mut self, link: LinkId, vl: u32, need: u32, now: SimTime) -> Option<u32> {
        let node = self.links[link].inputs;
        let key = self.messages.next_key(self.number.queue(NodeId(node), vl))?;
        let lanes = (0..self.classes_at_hosts).map(|class| self.number.lane(link, vl + class));
        let room: Vec<i64> = lanes.map(|lane| self.lanes.unclaimed(lane, now)).collect();
        let most = room.iter().copied().max().filter(|most| *most >= i64::from(need))?;
        let equals: Vec<u32> = (0..).zip(room).filter(|(_, room)| *room == most).map(|(class, _)| class).collect();
        let position = draw(self.seed, node.into(), key) % equals.len() as u64;
        equals.get(usize::try_from(position).unwrap_or(0)).copied()
    }

    /// The first packet of a host's queue starts on class `class` of the host's link. Returns its flits and credits, and
    /// when its last flit has left.
    pub(super) fn leave_host(
        &mut self,
        link: LinkId,
        vl: u32,
        class: u32,
        now: SimTime,
    ) -> Option<(u16, u16, SimTime)> {
        let node = self.links[link].inputs;
        let queue = self.number.queue(NodeId(node), vl);
        let (id, flits, credits) = self.cut_packet(queue, vl, now)?;
        if self.messages.is_empty(queue) {
            self.links[link].asking &= !(1 << vl);
            self.lanes.ends[self.number.lane(link, vl)].sender.mask = 0;
        }
        let (_, ended) = self.start(id, link, vl + class, now);
        let state = &self.links[link];
        if state.asking != 0 && !state.parallel {
            self.wake(link, state.free_at);
        }
        Some((flits, credits, ended))
    }

    /// Takes the first packet out of a host's queue, that of VL `vl`, which it leaves at `now`. Returns its flits and credits with it.
    #[inline]
    pub(super) fn cut_packet(&mut self, queue: usize, vl: u32, now: SimTime) -> Option<(PacketId, u16, u16)> {
        let cut = self.messages.cut(queue)?;
        self.dequeued(queue, cut.bytes);
        let message = self.messages.get(cut.message);
        let (flits, credits) = self.sizes.of(cut.bytes);
        let packet = Packet {
            next: PacketId::NONE,
            message: cut.message,
            destination: self.topology.host_node(message.destination.0),
            flits,
            credits,
            first: SimTime::ZERO,
            last: SimTime::ZERO,
            left: now,
            key: key(message.source, cut.number),
            flow: message.flow,
            bytes: cut.bytes,
            switches: 0,
            // Queues of hosts are no lanes of a service level.
            base: if self.injectors.is_some() { 0 } else { u8::try_from(vl).unwrap_or(0) },
        };
        if let Some(log) = &mut self.log {
            log.begins(packet.key, now);
        }
        Some((self.packets.insert(packet), flits, credits))
    }

    /// The first packet on the lowest VL of a host is lost, as none finds room; the host's link is busy for a flit's time with that.
    pub(super) fn lose_head(&mut self, link: LinkId, now: SimTime) {
        let busy = self.lanes.timings[usize::from(self.lanes.wire_of[link])].first(0);
        let state = &mut self.links[link];
        (state.free_at, state.remainder) = (now + busy, 0);
        state.turns.rest();
        let vl = state.asking.trailing_zeros();
        let queue = self.number.queue(NodeId(state.inputs), vl);
        let lost = self.messages.lose_head(queue, now);
        lost.iter().for_each(|lost| self.observer.dropped(lost));
        let state = &mut self.links[link];
        if self.messages.is_empty(queue) {
            state.asking &= !(1 << vl);
            self.lanes.ends[self.number.lane(link, vl)].sender.mask = 0;
        }
        if state.asking != 0 {
            let free_at = state.free_at;
            self.wake(link, free_at);
        }
    }

    /// A packet has arrived at its host.
    pub(super) fn deliver(&mut self, id: PacketId, now: SimTime, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let message = self.messages.get(packet.message);
        let record = PacketRecord {
            handed_over: message.handed_over,
            left: packet.left,
            arrived: now,
            source: message.source,
            destination: message.destination,
            number: packet.key & NUMBER,
            bytes: packet.bytes,
            flits: packet.flits.into(),
            switches: packet.switches.into(),
            token: message.token,
        };
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: now });
        }
    }
}
