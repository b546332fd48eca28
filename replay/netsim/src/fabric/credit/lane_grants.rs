//! Lanes that one packet has at a time are given away: heads that ask for the same one in one instant are rivals.

use super::Credit;
use super::allocation::ListContest;
use super::arbitration::Heads;
use super::input_arbiter::{Contender, InputArbiter as _};
use super::lane_asks::{Ask, Grants, LaneBits, Seeker};
use super::strategies::Strategies;
use crate::fabric::ids::LaneId;
use crate::fabric::packet::Observer;
use crate::routing::Lane as Offered;
use crate::time::SimTime;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The `heads` of an instant ask for lanes, those of one switch after those of another.
    pub(super) fn give_lanes(&mut self, heads: &mut Vec<LaneId>, now: SimTime) {
        let number = self.number;
        heads.sort_unstable_by_key(|queue| (self.links[number.link(*queue)].to, *queue));
        heads.dedup();
        let mut grants = std::mem::take(&mut self.grants);
        let mut rest = heads.as_slice();
        while let Some(first) = rest.first() {
            let switch = self.links[number.link(*first)].to;
            let end = rest.iter().position(|queue| self.links[number.link(*queue)].to != switch);
            let (of_switch, others) = rest.split_at(end.unwrap_or(rest.len()));
            rest = others;
            if let [alone] = of_switch {
                self.choose_with_room(*alone, now);
            } else {
                let seeker =
                    |queue: &LaneId| Seeker { queue: *queue, offered: None, looked: LaneBits::default(), known: false };
                grants.heads.extend(of_switch.iter().map(seeker));
                self.give_lanes_of_switch(&mut grants, now);
            }
        }
        heads.clear();
        self.grants = grants;
    }

    /// Each lane takes one of the heads that ask for it, as often as one is given away. Heads that are left wait.
    fn give_lanes_of_switch(&mut self, Grants { heads, asks }: &mut Grants, now: SimTime) {
        // Lanes that were given away since all heads have looked.
        let mut given = LaneBits::default();
        loop {
            asks.clear();
            for head in heads.iter_mut() {
                if !head.known || !head.looked.is_apart(given) {
                    (head.offered, head.looked) = self.lane_for(head.queue, now);
                    head.known = true;
                }
                asks.extend(head.offered.map(|offered| self.ask_of(head, offered)));
            }
            if asks.is_empty() {
                break;
            }
            asks.sort_unstable_by_key(|ask| (ask.place, ask.position));
            given = LaneBits::default();
            for rivals in asks.chunk_by(|one, other| one.lane == other.lane) {
                let Some(ask) = self.taken_of(rivals, now) else { continue };
                // Another lane, given away before this one, may have taken its room.
                if ask.looked.is_apart(given) || self.lane_for(ask.queue, now).0 == Some(ask.offered) {
                    self.commit(ask.queue, ask.offered, now);
                    given.add(ask.lane);
                    heads.retain(|head| head.queue != ask.queue);
                }
            }
        }
        for head in heads.drain(..) {
            self.wait_for_lanes(head.queue, now);
        }
    }

    fn ask_of(&self, head: &Seeker, offered: Offered) -> Ask {
        let queue = head.queue;
        let base = u32::from(self.packets.get(self.lanes.ends[queue].buffer.first).base);
        let lane = self.offered(offered, base);
        let link = self.link_numbers.global(self.number.link(lane));
        Ask {
            queue,
            offered,
            lane,
            looked: head.looked,
            place: (link.0, self.number.vl(lane)),
            position: self.bit_of(queue),
        }
    }

    /// The one of `rivals`, in order of queues, that their lane takes.
    fn taken_of(&self, rivals: &[Ask], now: SimTime) -> Option<Ask> {
        let [first, _, ..] = rivals else { return rivals.first().copied() };
        let lane = first.lane;
        let begin = u32::from(self.lanes.ends[lane].sender.begin);
        let from_host = |ask: &Ask| self.links[self.number.link(ask.queue)].from_host;
        let passed_by = self.transit_priority > 0.0 && !rivals.iter().all(from_host) && self.transit_first(lane, now);
        let behind = rivals.iter().position(|ask| ask.position >= begin).unwrap_or(0);
        let in_turn = rivals[behind..].iter().chain(&rivals[..behind]).filter(|ask| !passed_by || !from_host(ask));
        let heads = Heads {
            lanes: &self.lanes,
            packets: &self.packets,
            number: self.number,
            links: &self.link_numbers,
            seed: self.seed,
            now,
        };
        let contenders = in_turn.map(|ask| Contender { position: ask.position, queue: ask.queue.0 });
        let taken = self.input_arbiter.take(&mut ListContest { heads, contenders })?;
        rivals.iter().find(|ask| ask.queue.0 == taken.queue).copied()
    }
}
