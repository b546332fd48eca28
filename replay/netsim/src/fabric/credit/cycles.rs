//! A network in cycles: its packets. What it knows of lanes, queues and links is [`Clocked`].

use super::Credit;
use super::ahead::AHEAD;
use super::clocked::{Clocked, Need, Offer, Place, Sizes};
use super::input_arbiter::InputArbiter as _;
use super::most_room::most_room;
use super::packet::Packet;
use super::strategies::Strategies;
use super::undecided::Undecided;
use crate::fabric::packet::Observer;
use crate::kernel::random::draw;
use crate::network::Delivery;
use crate::routing::{Choice, CreditRequirement, Hop};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use typed_index_collections::TiVec;

/// The present cycle, and when it begins.
#[derive(Clone, Copy)]
struct Now {
    cycle: u64,
    at: SimTime,
}

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// Runs in cycles from now on, where that is the same.
    pub(super) fn begin_cycles(&mut self) {
        if self.goes_in_cycles() {
            let sizes = Sizes {
                flit: self.flit,
                largest_flits: self.sizes.largest.0,
                credits: self.room,
                largest_credits: self.sizes.largest.1,
                switch_delay: self.switch_delay,
                classes: self.stride,
                seeks: self.undecided.is_some(),
            };
            let times = (|link: LinkId| self.lanes.timing(link), |link: LinkId| self.links[link].parallel);
            self.clocked = Clocked::new((&self.topology, &self.routes), times, self.number, &sizes).map(Box::new);
        }
        if self.clocked.is_some() {
            (self.lanes.ends, self.lanes.overflows) = (TiVec::new(), TiVec::new());
            if self.undecided.is_some() {
                self.undecided = Some(Undecided::new(0, 0));
            }
        }
    }

    /// Whether heads, links and hosts do nothing that needs more than [`Clocked`] knows.
    fn goes_in_cycles(&self) -> bool {
        let is_empty = self.open.is_none() && self.events.next_time().is_none();
        let is_alone = self.border.is_none() && self.log.is_none() && self.occupancy.is_none() && !self.loses_heads;
        let has_no_gaps = !self.whole && self.packet_gap.ps() == 0;
        let is_simple = self.injectors.is_none() && self.switches.is_none() && self.transit_priority <= 0.0;
        let takes_turns = self.tables.are_plain() && self.input_arbiter.takes_the_first();
        let has_own_room = !self.by_packet && !self.routes.looks_at_room_behind();
        let is_plain = is_simple && takes_turns && has_own_room && self.lanes.are_plain();
        is_empty && is_alone && has_no_gaps && is_plain
    }

    /// What [`Credit::arrivals`] is by events.
    pub(super) fn arrivals_of_cycle(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> Option<SimTime> {
        let clocked = self.clocked.as_mut()?;
        let at = self.open.or_else(|| clocked.next_time())?;
        if at > until {
            return None;
        }
        let mut due = if clocked.has_more {
            clocked.begin::<true>(at, self.reads_ahead)
        } else {
            clocked.begin::<false>(at, false)
        };
        self.open = clocked.has_work().then_some(at);
        for packet in due.arrived.drain(..) {
            self.deliver(packet, at, deliveries);
        }
        if let Some(clocked) = &mut self.clocked {
            clocked.ring.give_back(due);
        }
        Some(at)
    }

    /// What [`Credit::decide`] is by events: hosts and switches one after the other, none of which knows yet what another one does now.
    pub(super) fn decide_cycle(&mut self, at: SimTime) {
        let Some(clocked) = self.clocked.take() else { return };
        self.clocked = Some(if clocked.has_more {
            self.decide_in::<true>(clocked, at)
        } else {
            self.decide_in::<false>(clocked, at)
        });
    }

    /// The same; `MORE`: whether heads may seek room, or hosts take all at once.
    #[inline(never)]
    fn decide_in<const MORE: bool>(&mut self, mut clocked: Box<Clocked>, at: SimTime) -> Box<Clocked> {
        let now = Now { cycle: clocked.cycle(at), at };
        if at >= clocked.interval_end() {
            let interval_ps = self.interval.ps();
            let meters = &mut self.meters;
            clocked.turn_interval(at, interval_ps, |link, traffic| traffic.put_into(&mut meters[link], self.interval));
        }
        // Where heads do not seek room, switches look at so little in a cycle that it takes longer than it spares.
        let reads_ahead = MORE && self.reads_ahead;
        let mut working = std::mem::take(&mut clocked.spare);
        clocked.sending.take_into(&mut working);
        for output in &working {
            if self.host_sends::<MORE>(&mut clocked, *output, now) {
                clocked.sending.insert(*output);
            }
        }
        working.clear();
        clocked.working.take_into(&mut working);
        for switches in working.chunks(AHEAD) {
            if reads_ahead {
                clocked.read_ahead(&self.packets, switches);
            }
            for switch in switches {
                if self.switch_works::<MORE>(&mut clocked, *switch, now) {
                    clocked.working.insert(*switch);
                }
            }
        }
        working.clear();
        clocked.spare = working;
        clocked.end(now.cycle);
        clocked
    }

    /// The host of `output` sends a packet, if it finds its credits. Returns whether it may have one to send in the next cycle.
    fn host_sends<const MORE: bool>(&mut self, clocked: &mut Clocked, output: u32, now: Now) -> bool {
        let host = clocked.outputs[output as usize].from;
        let need = |vl| self.host_need(host, vl);
        let turn = match self.classes_at_hosts {
            classes if MORE && classes > 1 => clocked.host_turn_of_classes(output, now.cycle, classes, need, |vl| {
                let key = self.messages.next_key(self.number.queue(NodeId(host), vl)).unwrap_or_default();
                draw(self.seed, host.into(), key)
            }),
            _ => clocked.host_turn(output, now.cycle, need).map(|vl| (vl, 0)),
        };
        let Some((vl, class)) = turn else { return false };
        let queue = self.number.queue(NodeId(host), vl);
        let Some((id, flits, credits)) = self.cut_packet(queue, vl, now.at) else { return false };
        if self.messages.is_empty(queue) {
            clocked.host_asks_no_more(output, vl);
        }
        let lane = clocked.lane(output, vl + class);
        clocked.crosses::<MORE>(&mut self.packets, (output, vl + class, lane), (id, flits, credits), now.cycle);
        clocked.host_stays(output, now.cycle, flits)
    }

    /// The heads of `switch` choose, and its outputs start packets. Returns whether it may have more to start in the next cycle.
    #[inline(always)]
    fn switch_works<const MORE: bool>(&mut self, clocked: &mut Clocked, switch: u32, now: Now) -> bool {
        let (place, heads, mut ready) = clocked.begin_switch(switch);
        if heads != 0 {
            ready |= match self.undecided {
                Some(_) if MORE => self.heads_seek(clocked, &place, heads, now),
                _ => self.heads_choose(clocked, &place, heads, now),
            };
        }
        let mut left = ready;
        while left != 0 {
            let bit = left.trailing_zeros();
            let goes_on = clocked.output_starts::<MORE>(&mut self.packets, &place, bit, now.cycle);
            if MORE && goes_on && clocked.is_parallel(&place, bit) {
                continue;
            }
            if !goes_on {
                ready &= !(1 << bit);
            }
            left &= left.wrapping_sub(1);
        }
        clocked.end_switch(switch, ready)
    }

    /// The heads of a switch, a bit each, choose: where they look at room, one after the other from a drawn queue on. Returns the outputs that
    /// they ask for and that are free, a bit each.
    #[inline(always)]
    fn heads_choose(&self, clocked: &mut Clocked, place: &Place, heads: u128, now: Now) -> u64 {
        let at = NodeId(self.topology.hosts() + place.switch);
        let mut ready = 0;
        let begin = if self.adaptive { self.first_to_choose(at, heads, now) } else { 0 };
        // Turned so that the first head is the lowest bit.
        let mut turned = heads.rotate_right(begin);
        while turned != 0 {
            let bit = turned.trailing_zeros().wrapping_add(begin) % u128::BITS;
            turned &= turned.wrapping_sub(1);
            ready |= self.head_chooses(clocked, place, at, bit, now);
        }
        ready
    }

    /// The bit of the queue from which on the heads of a switch, a bit each, choose that look at room.
    #[inline(always)]
    fn first_to_choose(&self, at: NodeId, heads: u128, now: Now) -> u32 {
        if heads & heads.wrapping_sub(1) == 0 {
            return 0;
        }
        let (start, _) = self.turn_of_choice(at, now.at);
        1 + if self.vls.is_power_of_two() { start } else { self.number.bit(start / self.vls, start % self.vls) }
    }

    /// What [`Self::heads_choose`] is for heads that commit themselves to room alone.
    #[inline(never)]
    fn heads_seek(&self, clocked: &mut Clocked, place: &Place, heads: u128, now: Now) -> u64 {
        let at = NodeId(self.topology.hosts() + place.switch);
        let begin = self.first_to_choose(at, heads, now);
        let (mut ready, mut turned) = (0, heads.rotate_right(begin));
        while turned != 0 {
            let bit = turned.trailing_zeros().wrapping_add(begin) % u128::BITS;
            turned &= turned.wrapping_sub(1);
            let packet = self.packets.get(clocked.packet(place.queue(bit)));
            let (credits, drawn) = (packet.credits, || draw(self.seed, u64::from(at.0), packet.key));
            let taken = match self.routes.positions(at, packet.destination) {
                Some(run) => {
                    let outputs = (place.bit_of(run.start), run.end - run.start);
                    // A host has its own link, and every class of it.
                    let classes = (packet.base.into(), self.stride);
                    let need = (credits.into(), now.cycle);
                    let taken = clocked.roomy_of_run(place, outputs, classes, need, drawn);
                    if taken.is_none() {
                        clocked.seeks_in_run(place, bit, outputs, classes, need);
                    }
                    taken
                }
                None => self.seeks_offers(clocked, place, (at, bit), packet, now),
            };
            let Some(lane) = taken else { continue };
            if clocked.is_undecided(place, bit) {
                clocked.seeks_no_more(place, bit);
            }
            let is_free = clocked.ask(place, bit, lane, (credits, credits.into()), now.cycle);
            ready |= u64::from(is_free) << lane.0;
        }
        ready
    }

    /// The output, by its bit, and the VL that the head with the bit `bit` takes of those that the routing offers; without one it waits.
    fn seeks_offers(
        &self,
        clocked: &mut Clocked,
        place: &Place,
        (at, bit): (NodeId, u32),
        packet: &Packet,
        now: Now,
    ) -> Option<(u32, u32)> {
        let queue = place.queue(bit);
        let has_looked = clocked.is_undecided(place, bit);
        let mut offers = clocked.take_offers(queue, has_looked);
        if offers.is_empty() {
            let from = (clocked.direction(queue), self.class_of(queue));
            let case = self.routes.case(at, from, packet.destination, packet.key);
            let is_known = case.is_some_and(|case| clocked.offer_by_case(case, place.switch, packet.base, &mut offers));
            if !is_known {
                self.offer(clocked, at, queue, packet, &mut offers);
                if let Some(case) = case {
                    clocked.keep_by_case(case, place.switch, packet.base, &offers);
                }
            }
        }
        let need = u32::from(packet.credits);
        let needs = [need, need + self.injection_reserve, 2 * u32::from(self.sizes.largest.1)];
        let drawn = || draw(self.seed, u64::from(at.0), packet.key);
        let taken = clocked.roomy_of_offers(place, &offers, (needs, now.cycle), drawn);
        if taken.is_none() {
            clocked.seeks_in_offers(place, bit, &offers, (needs, now.cycle));
        }
        clocked.give_offers_back(offers);
        taken
    }

    /// The class of the packets of `queue`.
    #[inline]
    fn class_of(&self, queue: u32) -> u8 {
        (self.number.vl_of(queue) % self.classes) as u8
    }

    /// Fills `offers` with what the head of `queue` may take.
    fn offer(&self, clocked: &mut Clocked, at: NodeId, queue: u32, packet: &Packet, offers: &mut Vec<Offer>) {
        let input_link = clocked.link_of(queue);
        let class = self.class_of(queue);
        let hop = Hop { at, input_link, class, to: packet.destination, key: packet.key };
        let mut ranks = clocked.take_ranks();
        self.routes.ranks(&hop, &mut ranks);
        for (number, rank) in (0..).zip(ranks.iter()) {
            let need = match rank.required {
                CreditRequirement::Bubble => Need::Bubble,
                _ if self.reserve(&rank, input_link) > 0 => Need::Reserve,
                _ => Need::Packet,
            };
            offers.extend(rank.lanes.iter().map(|lane| Offer {
                output: clocked.outputs[clocked.output_of(lane.link) as usize].bit,
                vl: packet.base + lane.class,
                rank: number,
                pick: rank.pick,
                need,
            }));
        }
        clocked.give_ranks_back(ranks);
    }

    /// The head of a switch's queue with the bit `bit` chooses. Returns the output's bit, if that is free.
    #[inline(always)]
    fn head_chooses(&self, clocked: &mut Clocked, place: &Place, at: NodeId, bit: u32, now: Now) -> u64 {
        let packet = self.packets.get(clocked.packet(place.queue(bit)));
        let vl = u32::from(packet.base);
        let asked = match clocked.ways.run(place.switch, packet.destination) {
            Some(run) if run.count == 1 => Some(((u32::from(run.first), vl), packet.credits.into())),
            Some(run) if self.adaptive => {
                let drawn = || draw(self.seed, u64::from(at.0), packet.key);
                let behind = clocked.most_room(place, (run.first, run.count), vl, now.cycle, drawn);
                Some(((u32::from(run.first).wrapping_add(behind), vl), packet.credits.into()))
            }
            _ => self.way(clocked, at, place.queue(bit), packet, now),
        };
        let Some(((output, vl), need)) = asked else { return 0 };
        let is_free = clocked.ask(place, bit, (output, vl), (packet.credits, need), now.cycle);
        u64::from(is_free) << output
    }

    /// The output, by its bit, and the VL that the head of `queue` chooses, and the credits that it needs there, where that is reckoned.
    fn way(&self, clocked: &Clocked, at: NodeId, queue: u32, packet: &Packet, now: Now) -> Option<((u32, u32), u32)> {
        let next = self.routes.next(at, clocked.link_of(queue), packet.destination);
        let vl = u32::from(packet.base) + u32::from(next.class);
        let position = match next.links {
            [_] => 0,
            links if self.adaptive => {
                let room = |link: LinkId| clocked.unclaimed(clocked.output_of(link), vl, now.cycle);
                most_room(links, room, || draw(self.seed, u64::from(at.0), packet.key))
            }
            links => {
                let source = self.topology.host_node((packet.key >> 40) as u32);
                match self.routes.choose(links.len(), at, packet.key, packet.flow, source, packet.destination) {
                    Choice::Index(index) => index,
                    // Only `adaptive` leaves it to the switch.
                    Choice::ByCredits => 0,
                }
            }
        };
        let link = next.links.get(position)?;
        let largest = u32::from(self.sizes.largest.1);
        let need = if next.enters_ring { 2 * largest } else { packet.credits.into() };
        let output = clocked.outputs[clocked.output_of(*link) as usize].bit;
        Some(((output.into(), vl), need))
    }
}
