//! Heads of queues choose where they go on.

use super::ahead::AHEAD;
use super::lane_asks::LaneBits;
use super::most_room::{most_room, remainder};
use super::strategies::Strategies;
use super::{Credit, Event};
use crate::count::count;
use crate::fabric::ids::LaneId;
use crate::fabric::packet::Observer;
use crate::kernel::random::draw;
use crate::routing::{BusyPolicy, Choice, CreditRequirement, Hop, Lane as Offered, Pick, Rank};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The head of `queue` goes on: a link is chosen.
    #[inline(always)]
    pub(super) fn head(&mut self, queue: LaneId, now: SimTime) {
        if self.adaptive {
            if let Some(undecided) = &mut self.undecided {
                undecided.begin(queue);
                self.lanes.ends[queue].buffer.since = now;
            }
            self.choosing.push(queue);
            return;
        }
        let input_link = self.number.link(queue);
        let at = self.links[input_link].to;
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let destination = packet.destination;
        if self.by_packet {
            let hop = self.hop(queue);
            if let Some((lane, enters_ring)) = self.routes.lane(&hop) {
                let link = self.link_numbers.output(lane.link);
                self.chosen(queue, link, lane.class, enters_ring, now);
            }
            return;
        }
        let next = self.routes.next(at, self.link_numbers.global(input_link), destination);
        let mut position = 0;
        if next.links.len() > 1 {
            let source = self.topology.host_node((packet.key >> 40) as u32);
            match self.routes.choose(next.links.len(), at, packet.key, packet.flow, source, destination) {
                Choice::Index(index) => position = index,
                // Only `adaptive` leaves it to the switch.
                Choice::ByCredits => {}
            }
        }
        let Some(link) = next.links.get(position).map(|link| self.link_numbers.output(*link)) else { return };
        let (class, enters_ring) = (next.class, next.enters_ring);
        self.chosen(queue, link, class, enters_ring, now);
    }

    /// The heads of an instant choose, those of a switch one after the other.
    pub(super) fn choose_all(&mut self, now: SimTime) {
        let mut choosing = std::mem::take(&mut self.choosing);
        if self.lanes.exclusive() {
            self.give_lanes(&mut choosing, now);
            self.choosing = choosing;
            return;
        }
        if choosing.len() > 1 {
            let mut choosers = std::mem::take(&mut self.choosers);
            for queue in choosing.drain(..) {
                let input = &self.links[self.number.link(queue)];
                choosers.add(input.to, input.slot * self.vls + self.number.vl(queue), queue);
            }
            // Who waits for a bubble looks at another switch's room.
            choosers.order(self.undecided.is_some(), |at| self.turn_of_choice(at, now), &mut choosing);
            self.choosers = choosers;
        }
        for queues in choosing.chunks(AHEAD) {
            if self.reads_ahead {
                self.read_heads(queues);
            }
            for queue in queues {
                if self.undecided.is_some() { self.choose_with_room(*queue, now) } else { self.choose(*queue, now) }
            }
        }
        choosing.clear();
        self.choosing = choosing;
    }

    /// Heads that wait for room on `link` choose again, those that may find it now.
    pub(super) fn look_again(&mut self, link: LinkId, now: SimTime) {
        let Some(mut undecided) = self.undecided.take() else { return };
        let mut vls = undecided.waited_for(link);
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            let lane = self.number.lane(link, vl);
            let room = self.lanes.unclaimed(lane, now);
            if let Some(need) = undecided.look_again((link, vl, lane), room, &mut self.choosing) {
                self.wait_for_room(lane, need);
            }
        }
        self.undecided = Some(undecided);
    }

    /// Behind which of a switch's queues its heads begin to choose at `now`, and how many queues it has.
    pub(super) fn turn_of_choice(&self, at: NodeId, now: SimTime) -> (u32, u32) {
        // A switch has as many links that end as links that begin.
        let queues = count(self.topology.out(at).len()) * self.vls;
        let start = remainder(draw(self.seed, u64::from(at.0), (1 << 63) + now.0), queues.into());
        (u32::try_from(start).unwrap_or(0), queues)
    }

    /// The head of `queue` chooses the link with the most credits that nobody has in mind.
    fn choose(&mut self, queue: LaneId, now: SimTime) {
        let input_link = self.number.link(queue);
        let at = self.links[input_link].to;
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let next = self.routes.next(at, self.link_numbers.global(input_link), packet.destination);
        let vl = u32::from(packet.base) + u32::from(next.class);
        let link = match next.links {
            [] => return,
            [only] => *only,
            links => {
                let room =
                    |link: LinkId| self.lanes.unclaimed(self.number.lane(self.link_numbers.output(link), vl), now);
                links[most_room(links, room, || draw(self.seed, u64::from(at.0), packet.key))]
            }
        };
        let link = self.link_numbers.output(link);
        let (class, enters_ring, credits) = (next.class, next.enters_ring, u32::from(packet.credits));
        self.lanes.claim(self.number.lane(link, vl), credits);
        self.chosen(queue, link, class, enters_ring, now);
    }

    /// The head of `queue` has chosen `link`: it asks for it when it is ready.
    #[inline(always)]
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

    /// What the routing has to know of the head of `queue`.
    fn hop(&self, queue: LaneId) -> Hop {
        let input_link = self.number.link(queue);
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        Hop {
            at: self.links[input_link].to,
            input_link: self.link_numbers.global(input_link),
            // Queues of hosts are no classes.
            class: match self.links[input_link].from_host && self.injectors.is_some() {
                true => 0,
                false => u8::try_from(self.number.vl(queue) % self.classes).unwrap_or(0),
            },
            to: packet.destination,
            key: packet.key,
        }
    }

    /// The head of `queue` commits itself to a lane with room of the first rank that has one, or waits for one.
    pub(super) fn choose_with_room(&mut self, queue: LaneId, now: SimTime) {
        match self.lane_for(queue, now).0 {
            Some(lane) => self.commit(queue, lane, now),
            None => self.wait_for_ranks(queue, now),
        }
    }

    /// The lane to which the head of `queue` would commit itself, and the [bits](LaneBits) of all lanes on which that depends.
    pub(super) fn lane_for(&mut self, queue: LaneId, now: SimTime) -> (Option<Offered>, LaneBits) {
        let hop = self.hop(queue);
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let (base, need) = (u32::from(packet.base), (u32::from(packet.credits), packet.flits));
        let mut ranks = std::mem::take(&mut self.ranks);
        self.routes.ranks(&hop, &mut ranks);
        let (mut chosen, mut looked) = (None, LaneBits::default());
        for rank in ranks.iter() {
            match self.with_room(&rank, base, need, &hop, (now, &mut looked)) {
                RankOutcome::Lane(lane) => chosen = Some(lane),
                RankOutcome::Busy if rank.when_busy == BusyPolicy::Wait => {}
                RankOutcome::Busy | RankOutcome::NoRoom => continue,
            }
            break;
        }
        self.ranks = ranks;
        (chosen, looked)
    }

    /// The head of `queue` commits itself to `lane`.
    pub(super) fn commit(&mut self, queue: LaneId, lane: Offered, now: SimTime) {
        if let Some(undecided) = &mut self.undecided {
            undecided.end(queue);
        }
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let (base, need) = (u32::from(packet.base), u32::from(packet.credits));
        self.lanes.claim(self.offered(lane, base), need);
        self.chosen(queue, self.link_numbers.output(lane.link), lane.class, false, now);
    }

    /// The head of `queue` looks again when it may find a lane.
    pub(super) fn wait_for_lanes(&mut self, queue: LaneId, now: SimTime) {
        let hop = self.hop(queue);
        self.routes.ranks(&hop, &mut self.ranks);
        self.wait_for_ranks(queue, now);
    }

    /// The same of the head whose ranks were found last.
    fn wait_for_ranks(&mut self, queue: LaneId, now: SimTime) {
        let input_link = self.link_numbers.global(self.number.link(queue));
        let packet = self.packets.get(self.lanes.ends[queue].buffer.first);
        let (base, need) = (u32::from(packet.base), u32::from(packet.credits));
        let ranks = std::mem::take(&mut self.ranks);
        for rank in ranks.iter() {
            let needed = self.needed(&rank, need, input_link);
            for lane in rank.lanes {
                let lane = self.offered(*lane, base);
                self.wait_where_missing(queue, lane, needed, now);
                if self.lanes.exclusive() {
                    self.wait_for_change(queue, lane, rank.pick, now);
                }
            }
            if let CreditRequirement::BubbleIn(lane) = rank.required {
                let lane = self.offered(lane, base);
                self.wait_where_missing(queue, lane, self.bubble(), now);
            }
        }
        self.ranks = ranks;
    }

    /// The lane that `offered` is here, of the service level whose VL of class 0 is `base`.
    pub(super) fn offered(&self, offered: Offered, base: u32) -> LaneId {
        self.number.lane(self.link_numbers.output(offered.link), base + u32::from(offered.class))
    }

    /// Credits of two of the largest packets.
    const fn bubble(&self) -> u32 {
        2 * self.sizes.largest.1 as u32
    }

    /// Credits that a packet that needs `need` and came by `input_link` must find in the lane of `rank` that it takes.
    fn needed(&self, rank: &Rank, need: u32, input_link: LinkId) -> u32 {
        match rank.required {
            CreditRequirement::Bubble => self.bubble(),
            CreditRequirement::BubbleIn(_) => need,
            CreditRequirement::Packet => need + self.reserve(rank, input_link),
        }
    }

    /// Credits that a packet that came by `input_link` leaves free in the lanes of `rank`.
    pub(super) fn reserve(&self, rank: &Rank, input_link: LinkId) -> u32 {
        if self.injection_reserve == 0 || !self.links[input_link].from_host {
            return 0;
        }
        let escape = self.routes.escape_classes();
        let reserved = |lane: &Offered| lane.class >= escape && !self.links[lane.link].to_host;
        if rank.lanes.first().is_some_and(reserved) { self.injection_reserve } else { 0 }
    }

    /// The head of `queue` looks again when `need` unclaimed credits are there on `lane`, if they are not now.
    fn wait_where_missing(&mut self, queue: LaneId, lane: LaneId, need: u32, now: SimTime) {
        if self.lanes.unclaimed(lane, now) >= i64::from(need) {
            return;
        }
        let place = (self.number.link(lane), self.number.vl(lane), lane);
        // Who waits for that already has seen to it.
        if self.undecided.as_mut().is_some_and(|undecided| undecided.wait(queue, place, need)) {
            self.wait_for_room(lane, need);
        }
    }

    /// The head of `queue` looks again when `lane`, which has one packet at a time, is nobody's; where the VLs of its link share a buffer,
    /// when a packet starts there; and, where `pick` compares lanes, when it has more room.
    fn wait_for_change(&mut self, queue: LaneId, lane: LaneId, pick: Pick, now: SimTime) {
        let place = (self.number.link(lane), self.number.vl(lane), lane);
        let is_held = self.lanes.is_held(lane, now);
        if is_held && let Some(until) = self.lanes.held_until(lane) {
            self.wake(place.0, until);
        }
        let by_flits = pick.by_flits();
        if pick.compares()
            && !by_flits
            && let Ok(room) = u32::try_from(self.lanes.unclaimed(lane, now))
        {
            self.wait_where_missing(queue, lane, room + 1, now);
        }
        // Whatever comes or goes may change which has most flits of room; whatever starts takes room of all VLs that share a buffer.
        let judges_at_any = is_held || by_flits || self.lanes.shared();
        if judges_at_any && let Some(undecided) = &mut self.undecided {
            undecided.wait(queue, place, 0);
        }
        if by_flits {
            self.look_at_flits(lane, now);
        }
    }

    /// Has the heads that wait for room on `lane` look again when `need` credits that nobody has in mind will be there, or
    /// when that is decided.
    pub(super) fn wait_for_room(&mut self, lane: LaneId, need: u32) {
        if let Some(at) = self.lanes.when_unclaimed(lane, need) {
            self.wake(self.number.link(lane), at);
        }
    }

    /// The lane of `rank` that a packet takes which needs so many credits, and has so many flits, at an instant; the lanes that are looked at
    /// are noted.
    fn with_room(
        &mut self,
        rank: &Rank,
        base: u32,
        (need, flits): (u32, u16),
        hop: &Hop,
        (now, looked): (SimTime, &mut LaneBits),
    ) -> RankOutcome {
        if let CreditRequirement::BubbleIn(lane) = rank.required {
            let lane = self.offered(lane, base);
            looked.add(lane);
            if self.lanes.unclaimed(lane, now) < i64::from(self.bubble()) {
                return RankOutcome::NoRoom;
            }
        }
        let needed = i64::from(self.needed(rank, need, hop.input_link));
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let by_flits = rank.pick.by_flits();
        let mut most = if by_flits { 0 } else { needed };
        for lane in rank.lanes {
            let offered = self.offered(*lane, base);
            looked.add(offered);
            let room = match by_flits {
                true => self.flits_of_room(offered, (needed, flits), now),
                false => self.lanes.unclaimed(offered, now),
            };
            if room < most {
                continue;
            }
            if rank.pick.compares() && room > most {
                found.clear();
                most = room;
            }
            found.push(*lane);
        }
        let taken = self.pick(&mut found, rank.pick, base, hop, now);
        self.found = found;
        taken
    }

    /// Flits that fit into the buffer at the end of `lane`; below 0 where a packet has no room there which needs `needed` credits, or, in a
    /// lane that another one has, is of `flits` flits.
    fn flits_of_room(&mut self, lane: LaneId, (needed, flits): (i64, u16), now: SimTime) -> i64 {
        let room = self.lanes.room_in_flits(lane, now);
        let is_enough = match self.lanes.is_held(lane, now) {
            true => room >= i64::from(flits),
            false => self.lanes.unclaimed(lane, now) >= needed,
        };
        if is_enough { room } else { -1 }
    }

    /// The lane that a packet takes of those `found` with room.
    fn pick(&self, found: &mut Vec<Offered>, pick: Pick, base: u32, hop: &Hop, now: SimTime) -> RankOutcome {
        if found.is_empty() {
            return RankOutcome::NoRoom;
        }
        if pick.takes_first() {
            found.truncate(1);
        }
        if self.lanes.exclusive() {
            found.retain(|lane| !self.lanes.is_held(self.offered(*lane, base), now));
        }
        let position = match found.len() {
            0 | 1 => 0,
            several => draw(self.seed, u64::from(hop.at.0), hop.key) % several as u64,
        };
        found.get(usize::try_from(position).unwrap_or(0)).map_or(RankOutcome::Busy, |lane| RankOutcome::Lane(*lane))
    }
}

/// What a packet finds in a rank.
enum RankOutcome {
    /// The lane that it takes.
    Lane(Offered),
    /// Lanes with room, all of which others have.
    Busy,
    /// No lane with room.
    NoRoom,
}
