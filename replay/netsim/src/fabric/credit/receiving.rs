//! What comes over links: packets to the end of a lane, credits to its beginning. Nothing else passes from one switch or host to
//! another.

use super::returns::Return;
use super::strategies::Strategies;
use super::{Credit, Event};
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::packet::Observer;
use crate::time::SimTime;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// A packet comes to the end of `lane`, whose head it can be from `head_at` on; it has started at `now`.
    #[inline]
    pub(super) fn receive_packet(
        &mut self,
        lane: LaneId,
        id: PacketId,
        credits: u16,
        (now, head_at): (SimTime, SimTime),
    ) {
        self.lanes.ends[lane].buffer.reserve(credits, now);
        self.queue_packet(lane, id, head_at);
    }

    /// A packet is in the queue at the end of `lane`, whose head it can be from `head_at` on.
    #[inline]
    pub(super) fn queue_packet(&mut self, lane: LaneId, id: PacketId, head_at: SimTime) {
        let buffer = &mut self.lanes.ends[lane].buffer;
        if buffer.first == PacketId::NONE {
            buffer.first = id;
            buffer.last = id;
            let at = head_at.max(buffer.since);
            self.events.schedule(at, Event::Head(lane));
        } else {
            let last = buffer.last;
            buffer.last = id;
            self.packets.get_mut(last).next = id;
        }
    }

    /// A packet comes to the host at the end of `lane`, the last flit at `end`, which reads it as its flits arrive: what its buffer
    /// gives back is `read`, if it took any credits.
    #[inline]
    pub(super) fn receive_at_host(
        &mut self,
        lane: LaneId,
        id: PacketId,
        read: Option<Return>,
        end: SimTime,
        now: SimTime,
    ) {
        self.events.schedule(end, Event::Deliver(id));
        if let Some(read) = read {
            self.receive_credits(lane, read, now);
        }
    }

    /// The receiver of `lane` tells its sender that a packet starts to leave the buffer there; whoever waits for its credits
    /// looks when they will be there.
    pub(super) fn receive_credits(&mut self, lane: LaneId, leaving: Return, now: SimTime) {
        self.lanes.give_back(lane, leaving);
        if self.lanes.counts_flits() {
            self.look_at_flits(lane, now);
        }
        if self.lanes.shared() {
            self.wait_for_shared(lane, &leaving, now);
            return;
        }
        let wanted = self.lanes.ends[lane].sender.wanted;
        if wanted > 0 {
            if self.undecided.is_some() {
                self.lanes.ends[lane].sender.wanted = 0;
                self.wait_for_room(lane, wanted);
                return;
            }
            // A link that is busy looks anyway when it is free.
            if self.links[self.number.link(lane)].free_at <= now {
                self.wait_for(lane, wanted);
            } else {
                self.lanes.ends[lane].sender.wanted = 0;
            }
        }
    }

    /// The credits of `leaving` may be what any of the VLs of the link waits for: it looks when the first of them comes.
    fn wait_for_shared(&mut self, lane: LaneId, leaving: &Return, now: SimTime) {
        let id = self.number.link(lane);
        let link = &self.links[id];
        let waits = link.asking != 0 && link.free_at <= now;
        if waits || self.undecided.as_ref().is_some_and(|undecided| undecided.any(id)) {
            let at = self.lanes.first_known(lane, leaving);
            self.wake(id, at);
        }
    }
}
