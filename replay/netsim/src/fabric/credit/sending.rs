//! Packets leave: out of the buffers of switches, onto links. A sender writes its own state alone; what its receiver and the
//! sender before it have to know goes there as a packet or as credits, each with its times
//! (`receive_packet`, `receive_credits`).

use super::lanes::ELSEWHERE;
use super::returns::Return;
use super::strategies::Strategies;
use super::{Credit, Event, HERE, NO_MASKS};
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::packet::Observer;
use crate::time::SimTime;
use crate::topology::LinkId;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// Has `link` look again at `at`, unless it will earlier.
    pub(super) fn wake(&mut self, link: LinkId, at: SimTime) {
        let state = &mut self.links[link];
        if at < state.wake {
            state.wake = at;
            self.events.schedule(at, Event::Link(link));
        }
    }

    /// Has the link of `lane` look again when `need` credits will be there, or when that is decided.
    pub(super) fn wait_for(&mut self, lane: LaneId, need: u32) {
        let at = self.lanes.when(lane, need);
        self.lanes.ends[lane].sender.wanted = if at.is_some() { 0 } else { need };
        if let Some(at) = at {
            self.wake(self.number.link(lane), at);
        }
    }

    /// Heads that wait for lanes of the link of `lane`, and compare them by flits, look again at the next flit of it behind `now`.
    pub(super) fn look_at_flits(&mut self, lane: LaneId, now: SimTime) {
        let link = self.number.link(lane);
        if self.undecided.as_ref().is_some_and(|undecided| undecided.any(link))
            && let Some(at) = self.lanes.next_flit(lane, now)
        {
            self.wake(link, at);
        }
    }

    /// The head of a switch's queue, the one whose bit is `bit`, starts on `link`. Returns its flits and credits.
    #[inline(always)]
    pub(super) fn leave_queue(&mut self, link: LinkId, vl: u32, bit: u32, now: SimTime) -> Option<(u16, u16)> {
        let lane = self.number.lane(link, vl);
        let state = &mut self.links[link];
        let out = &mut self.lanes.ends[lane].sender;
        let words = u32::from(state.words);
        let nobody = if state.masks == NO_MASKS {
            out.mask &= !(1 << bit);
            out.begin = u16::try_from((bit + 1) % 64).unwrap_or(0);
            out.mask == 0
        } else {
            // One behind the last of all is no bit of the mask: the search then begins at the first.
            out.begin = if bit + 1 < words * 64 { u16::try_from(bit + 1).unwrap_or(0) } else { 0 };
            let base = (state.masks + vl * words) as usize;
            self.masks[base + bit as usize / 64] &= !(1 << (bit % 64));
            self.masks[base..base + words as usize].iter().all(|word| *word == 0)
        };
        if nobody {
            state.asking &= !(1 << vl);
        }
        let inputs = state.inputs;
        let queue = self.queue_of(inputs, vl, bit);
        let id = self.lanes.ends[queue].buffer.first;
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (next, flits, credits) = (packet.next, packet.flits, packet.credits);
        packet.next = PacketId::NONE;
        if self.adaptive {
            self.lanes.disclaim(lane, credits.into());
        }
        let (rest, ended) = self.start(id, link, vl, now);
        if self.lanes.exclusive() {
            self.lanes.hold(lane, ended);
            if self.undecided.as_ref().is_some_and(|undecided| undecided.any(link)) {
                // Room that it takes of other VLs may end what heads wait for at once.
                self.wake(link, if self.lanes.shared() { now } else { ended });
            }
        }

        if let Some(occupancy) = &mut self.occupancy {
            occupancy.leaves(queue.into(), now.0, ended.0);
        }
        self.lanes.ends[queue].buffer.release(credits, ended, next);
        let state = &mut self.links[link];
        // A link that takes a packet of each queue has taken them all.
        let asking = if state.parallel { 0 } else { state.asking };
        let free_at = state.free_at;
        if next == PacketId::NONE {
            if asking != 0 {
                self.wake(link, free_at);
            }
        } else {
            let at = self.head_at(next).max(ended);
            // One event is enough for both: the next packet is there already, and the link goes on at once.
            if asking != 0 && at == free_at && at < self.links[link].wake {
                self.links[link].wake = at;
                self.events.schedule(at, Event::HeadAndLink(queue));
            } else {
                self.events.schedule(at, Event::Head(queue));
                if asking != 0 {
                    self.wake(link, free_at);
                }
            }
        }
        let timing = self.lanes.wire_of[link];
        let leaving = Return::new(timing, now, ended, rest, flits, credits);
        if self.lanes.ends[queue].sender.free == ELSEWHERE {
            self.send_credits_away(queue, leaving);
        } else {
            self.receive_credits(queue, leaving, now);
        }
        Some((flits, credits))
    }

    /// The earliest instant at which a packet at the head of its queue goes on.
    fn head_at(&self, packet: PacketId) -> SimTime {
        let packet = self.packets.get(packet);
        let arrived = if self.whole && !self.adaptive { packet.last } else { packet.first };
        arrived + self.switch_delay
    }

    /// Packet `id` starts on `link` and `vl`. Returns the remainder with which the link started, and when its last flit
    /// will have left.
    pub(super) fn start(&mut self, id: PacketId, link: LinkId, vl: u32, now: SimTime) -> (u64, SimTime) {
        let lane = self.number.lane(link, vl);
        let number = self.lanes.wire_of[link];
        let timing = &self.lanes.timings[usize::from(number)];
        let state = &mut self.links[link];
        let parallel = state.parallel;
        // That of a parallel link stays 0.
        let rest = if state.free_at == now { state.remainder } else { 0 };
        let packet = self.packets.get_mut(id);
        let (flits, credits, bytes, key) = (packet.flits, packet.credits, packet.bytes, packet.key);
        let (time, remainder) = timing.packet(flits.into(), rest);
        let (ended, delay) = (now + time, timing.delay);
        packet.first = now + timing.first(rest) + delay;
        packet.last = ended + delay;
        let at = if self.whole && !self.adaptive { packet.last } else { packet.first } + self.switch_delay;
        if !parallel {
            state.free_at = ended + self.packet_gap;
            state.remainder = remainder;
        }
        let (to_host, to_part) = (state.to_host, state.to_part);
        if let Some(log) = &mut self.log {
            let times = |flit| (now + timing.begins(flit, rest), now + timing.time(flit + 1, rest) + delay);
            log.packet_crosses(key, (self.link_numbers.global(link), vl), (flits.into(), to_host), times);
        }
        self.traffic[link].crossed(now, bytes, self.interval, &mut self.meters, link);
        if self.lanes.counts_flits() {
            self.lanes.starts(lane, Return::new(number, now, ended, rest, flits, credits));
            self.look_at_flits(lane, now);
        }
        let queue = &mut self.lanes.ends[lane].sender;
        if !(parallel && to_host) {
            queue.free -= u32::from(credits);
        }
        let sum = queue.flits.overflowing_add(flits.into());
        queue.flits = sum.0;
        if sum.1 {
            self.lanes.overflows[lane] += 1;
        }
        if to_host {
            let read = Return::new(number, now + delay, ended + delay, rest, flits, credits);
            self.receive_at_host(lane, id, (!parallel).then_some(read), ended + delay, now);
        } else if to_part == HERE {
            if let Some(occupancy) = &mut self.occupancy {
                let comes = self.packets.get(id).first;
                occupancy.enters(lane.into(), now.0, comes.0);
            }
            self.receive_packet(lane, id, credits, (now, at));
        } else {
            self.send_packet_away(to_part, lane, id, (now, at));
        }
        (rest, ended)
    }
}
