//! What an instant looks at is read ahead, many at a time.
//!
//! In one instant things happen all over the network, and where that does not fit into a core's cache each of them waits for the memory
//! several times, one line after the other. Read one behind the other, with nothing to reckon between them, they come side by side.

use super::ahead::AHEAD;
use super::strategies::Strategies;
use super::undecided::Undecided;
use super::{Credit, Event, NO_MASKS};
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::packet::Observer;
use crate::topology::{LinkId, NodeId};
use std::hint::black_box;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// Reads what the next events of the present instant look at.
    pub(super) fn read_events(&self) {
        let of_event = |event: Event| match event {
            Event::Head(queue) | Event::HeadAndLink(queue) | Event::Ask(queue) => {
                let link = self.number.link(queue);
                let head = self.undecided.as_ref().map_or(0, |undecided| undecided.read_head(queue));
                head ^ self.lanes.ends[queue].buffer.since.0 ^ self.links[link].free_at.0
            }
            Event::Link(link) => {
                let waits = self.undecided.as_ref().map_or(0, |undecided| self.read_waiting(undecided, link));
                waits ^ self.links[link].wake.0
            }
            Event::Deliver(packet) => self.messages.get(self.packets.get(packet).message).token.0,
            Event::Switch(_) => 0,
        };
        black_box(self.events.next_few(AHEAD).fold(0, |sum, event| sum ^ of_event(event)));
    }

    /// What the heads that wait for `link` look at.
    fn read_waiting(&self, undecided: &Undecided, link: LinkId) -> u64 {
        let (mut vls, mut sum) = (undecided.waited_for(link), 0);
        while vls != 0 {
            let lane = self.number.lane(link, vls.trailing_zeros());
            vls &= vls - 1;
            sum ^= undecided.read_waiting(lane) ^ self.lanes.read(lane);
        }
        sum
    }

    /// Reads what the heads of `queues` look at when they choose.
    pub(super) fn read_heads(&self, queues: &[LaneId]) {
        let of_head = |queue: &LaneId| {
            let input = &self.links[self.number.link(*queue)];
            let first = self.lanes.ends[*queue].buffer.first;
            let outputs = self.topology.out(input.to).iter().map(|link| self.link_numbers.output(*link));
            let lanes = outputs.flat_map(|link| self.number.all(link, self.vls));
            self.packets.get(first).key ^ lanes.fold(0, |sum, lane| sum ^ self.lanes.read(lane))
        };
        black_box(queues.iter().fold(0, |sum, queue| sum ^ of_head(queue)));
    }

    /// Reads what `links` look at when they are arbitrated.
    pub(super) fn read_links(&self, links: &[LinkId]) {
        let packet = |id: PacketId| if id == PacketId::NONE { 0 } else { self.packets.get(id).key };
        let of_link = |link: &LinkId| {
            let state = &self.links[*link];
            if state.asking == 0 {
                return 0;
            }
            let vl = state.asking.trailing_zeros();
            let ends = &self.lanes.ends[self.number.lane(*link, vl)];
            let behind = packet(ends.buffer.last) ^ self.traffic[*link].bytes;
            if state.from_host {
                let waiting = self.messages.peek(self.number.queue(NodeId(state.inputs), vl));
                return behind ^ waiting.map_or(0, |(bytes, _)| bytes.into());
            }
            if state.masks != NO_MASKS || ends.sender.mask == 0 {
                return behind;
            }
            let queue = self.queue_of(state.inputs, vl, ends.sender.mask.trailing_zeros());
            behind ^ packet(self.lanes.ends[queue].buffer.first)
        };
        black_box(links.iter().fold(0, |sum, link| sum ^ of_link(link)));
    }
}
