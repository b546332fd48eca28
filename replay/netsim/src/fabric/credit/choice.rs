//! Heads of queues choose where they go on.

use super::strategies::Strategies;
use super::{Credit, Event};
use crate::fabric::ids::LaneId;
use crate::fabric::packet::Observer;
use crate::kernel::random::draw;
use crate::routing::{Candidates, Choice};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The head of `queue` goes on: a link is chosen.
    pub(super) fn head(&mut self, queue: LaneId, now: SimTime) {
        if self.adaptive {
            if let Some(undecided) = &mut self.undecided {
                undecided.begin(queue);
            }
            self.choosing.push(queue);
            return;
        }
        let input_link = self.number.link(queue);
        let at = self.links[input_link].to;
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let destination = packet.destination;
        let next = self.routes.next(at, input_link, destination);
        let mut position = 0;
        if next.links.len() > 1 {
            let source = self.topology.host_node((packet.key >> 40) as u32);
            match self.routes.choose(next.links.len(), at, packet.key, packet.flow, source, destination) {
                Choice::Index(index) => position = index,
                // Only `adaptive` leaves it to the switch.
                Choice::ByCredits => {}
            }
        }
        let Some(link) = next.links.get(position).copied() else { return };
        let (class, enters_ring) = (next.class, next.enters_ring);
        self.chosen(queue, link, class, enters_ring, now);
    }

    /// The heads of an instant choose, those of a switch one after the other.
    pub(super) fn choose_all(&mut self, now: SimTime) {
        let mut choosing = std::mem::take(&mut self.choosing);
        choosing.sort_by_cached_key(|queue| self.place_in_choice(*queue, now));
        choosing.dedup();
        for queue in choosing.drain(..) {
            if self.undecided.is_some() { self.choose_with_room(queue, now) } else { self.choose(queue, now) }
        }
        self.choosing = choosing;
    }

    /// A switch, and a queue's place in the order in which its heads choose at `now`.
    fn place_in_choice(&self, queue: LaneId, now: SimTime) -> (u32, u64) {
        let (input_link, vl) = (self.number.link(queue), self.number.vl(queue));
        let at = self.links[input_link].to;
        // A switch has as many links that end as links that begin.
        let queues = self.topology.out(at).len() as u64 * u64::from(self.vls);
        let number = u64::from(self.links[input_link].slot * self.vls + vl);
        let start = draw(self.seed, u64::from(at.0), (1 << 63) + now.0) % queues;
        (at.0, (number + queues - start - 1) % queues)
    }

    /// The head of `queue` chooses the link with the most credits that nobody has in mind.
    fn choose(&mut self, queue: LaneId, now: SimTime) {
        let input_link = self.number.link(queue);
        let at = self.links[input_link].to;
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let next = self.routes.next(at, input_link, packet.destination);
        let vl = u32::from(packet.base) + u32::from(next.class);
        let mut most = i64::MIN;
        let mut several = 0u64;
        for link in next.links {
            let free = self.lanes.unclaimed(self.number.lane(*link, vl), now);
            if free > most {
                (most, several) = (free, 1);
            } else if free == most {
                several += 1;
            }
        }
        let Some(first) = next.links.first() else { return };
        let mut link = *first;
        if next.links.len() > 1 {
            let mut position = 0;
            if several > 1 {
                position = draw(self.seed, u64::from(at.0), packet.key) % several;
            }
            for candidate in next.links {
                if self.lanes.unclaimed(self.number.lane(*candidate, vl), now) == most {
                    if position == 0 {
                        link = *candidate;
                        break;
                    }
                    position -= 1;
                }
            }
        }
        let (class, enters_ring, credits) = (next.class, next.enters_ring, u32::from(packet.credits));
        self.lanes.claim(self.number.lane(link, vl), credits);
        self.chosen(queue, link, class, enters_ring, now);
    }

    /// The head of `queue` has chosen `link`: it asks for it when it is ready.
    pub(super) fn chosen(&mut self, queue: LaneId, link: LinkId, class: u8, enters_ring: bool, now: SimTime) {
        let input_link = self.number.link(queue);
        let state = &mut self.lanes.ends[queue].buffer;
        let packet = self.packets.get(state.first);
        state.chosen = self.number.lane(link, u32::from(packet.base) + u32::from(class));
        state.need = if enters_ring { 2 * u32::from(self.sizes.largest.1) } else { packet.credits.into() };
        let wire_of = &self.lanes.wire_of;
        let (timing, came_by) = (wire_of[link], wire_of[input_link]);
        let faster = timing != came_by
            && self.lanes.timings[usize::from(timing)].faster_than(&self.lanes.timings[usize::from(came_by)]);
        if self.whole || faster {
            let ready = packet.last + self.switch_delay;
            if ready > now {
                self.events.schedule(ready, Event::Ask(queue));
                return;
            }
        }
        self.ask(queue, now);
    }

    /// The head of `queue` commits itself to the lane with most room among those that its routing prefers, to the escape's if
    /// none of them has room, or waits for room.
    pub(super) fn choose_with_room(&mut self, queue: LaneId, now: SimTime) {
        let (input_link, vl) = (self.number.link(queue), self.number.vl(queue));
        let at = self.links[input_link].to;
        let packet = *self.packets.get(self.lanes.ends[queue].buffer.first);
        let to = packet.destination;
        let on_escape = vl % self.classes < u32::from(self.routes.escape_classes());
        let preferred = self.routes.next(at, input_link, to);
        let escape = self.routes.escape(at, input_link, on_escape, to);
        let (base, need, key) = (u32::from(packet.base), u32::from(packet.credits), packet.key);
        let number = self.number;
        let lanes = |candidates: Candidates| -> Vec<LaneId> {
            let first = base + u32::from(candidates.class);
            let of_link =
                |link: &LinkId| (0..candidates.classes).map(|class| (*link, u32::from(class))).collect::<Vec<_>>();
            let pairs = candidates.links.iter().flat_map(of_link);
            pairs.map(|(link, class)| number.lane(link, first + class)).collect()
        };
        let ranks: Vec<Vec<LaneId>> = [Some(preferred), escape].into_iter().flatten().map(lanes).collect();
        let chosen = ranks.iter().find_map(|lanes| self.most_room(lanes, need, now, at, key));
        if let Some(lane) = chosen {
            if let Some(undecided) = &mut self.undecided {
                undecided.end(queue);
            }
            self.lanes.claim(lane, need);
            let class = u8::try_from(self.number.vl(lane) - base).unwrap_or(0);
            self.chosen(queue, self.number.link(lane), class, false, now);
            return;
        }
        for lane in ranks.into_iter().flatten() {
            let link = self.number.link(lane);
            if let Some(undecided) = &mut self.undecided {
                undecided.wait(queue, link);
            }
            self.wait_for_room(lane, need);
        }
    }

    /// Has the heads that wait for room on `lane` look again when `need` credits that nobody has in mind will be there, or
    /// when that is decided.
    pub(super) fn wait_for_room(&mut self, lane: LaneId, need: u32) {
        if let Some(at) = self.lanes.when_unclaimed(lane, need) {
            self.wake(self.number.link(lane), at);
        }
    }

    /// The lane with most unclaimed credits among those of `lanes` that have `need` of them; a draw among equals.
    fn most_room(&mut self, lanes: &[LaneId], need: u32, now: SimTime, at: NodeId, key: u64) -> Option<LaneId> {
        let room: Vec<i64> = lanes.iter().map(|lane| self.lanes.unclaimed(*lane, now)).collect();
        let most = room.iter().copied().max().filter(|most| *most >= i64::from(need))?;
        let equals: Vec<LaneId> =
            lanes.iter().zip(room).filter(|(_, room)| *room == most).map(|(lane, _)| *lane).collect();
        let position = if equals.len() > 1 { draw(self.seed, u64::from(at.0), key) % equals.len() as u64 } else { 0 };
        equals.get(usize::try_from(position).unwrap_or(0)).copied()
    }
}
