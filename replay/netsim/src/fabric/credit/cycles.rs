//! A network in cycles: its packets. What it knows of lanes, queues and links is [`Clocked`].

use super::Credit;
use super::clocked::{Clocked, Head, Sizes};
use super::input_arbiter::InputArbiter as _;
use super::most_room::most_room;
use super::strategies::Strategies;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::kernel::random::draw;
use crate::network::Delivery;
use crate::routing::Choice;
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
            };
            let timing = |link: LinkId| self.lanes.timing(link);
            self.clocked = Clocked::new(&self.topology, timing, self.number, &sizes).map(Box::new);
        }
        if self.clocked.is_some() {
            (self.lanes.ends, self.lanes.overflows) = (TiVec::new(), TiVec::new());
        }
    }

    /// Whether heads, links and hosts do nothing that needs more than [`Clocked`] knows.
    fn goes_in_cycles(&self) -> bool {
        let is_empty = self.open.is_none() && self.events.next_time().is_none();
        let is_alone = self.border.is_none() && self.log.is_none() && self.occupancy.is_none() && !self.loses_heads;
        let has_no_gaps = !self.whole && self.packet_gap.ps() == 0;
        let is_simple = self.injectors.is_none() && self.switches.is_none() && self.transit_priority <= 0.0;
        let takes_turns = self.tables.are_plain() && self.input_arbiter.takes_the_first();
        let commits_at_once = self.undecided.is_none() && !self.by_packet && self.classes_at_hosts == 1;
        let is_parallel = self.links.iter().any(|link| link.parallel);
        let is_plain = is_simple && takes_turns && commits_at_once && !is_parallel && self.lanes.are_plain();
        is_empty && is_alone && has_no_gaps && is_plain
    }

    /// What [`Credit::arrivals`] is by events.
    pub(super) fn arrivals_of_cycle(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> Option<SimTime> {
        let clocked = self.clocked.as_mut()?;
        let at = self.open.or_else(|| clocked.next_time())?;
        if at > until {
            return None;
        }
        let mut due = clocked.begin(at);
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
        let Some(mut clocked) = self.clocked.take() else { return };
        let now = Now { cycle: clocked.cycle(at), at };
        let mut sending = std::mem::take(&mut clocked.sending);
        sending.retain(|link| self.host_sends(&mut clocked, *link, now));
        clocked.sending = sending;
        let mut working = std::mem::take(&mut clocked.working);
        working.retain(|switch| self.switch_works(&mut clocked, *switch, now));
        clocked.working = working;
        clocked.end(now.cycle);
        self.clocked = Some(clocked);
    }

    /// The host of `link` sends a packet, if it finds its credits. Returns whether it may have one to send in the next cycle.
    fn host_sends(&mut self, clocked: &mut Clocked, link: LinkId, now: Now) -> bool {
        let host = clocked.ports[link].from;
        let Some(vl) = clocked.host_turn(link, now.cycle, |vl| self.host_need(host, vl)) else { return false };
        let queue = self.number.queue(NodeId(host), vl);
        let Some((id, flits, credits)) = self.cut_packet(queue, vl, now.at) else { return false };
        if self.messages.is_empty(queue) {
            clocked.host_asks_no_more(link, vl);
        }
        self.crosses(clocked, (link, vl), (id, flits, credits), now);
        clocked.host_stays(link, now.cycle, flits)
    }

    /// The heads of `switch` choose, and its links start packets. Returns whether it may have more to start in the next cycle.
    #[inline(always)]
    fn switch_works(&mut self, clocked: &mut Clocked, switch: u32, now: Now) -> bool {
        let heads = clocked.take_heads(switch);
        if heads != 0 {
            self.heads_choose(clocked, (switch, heads), now);
        }
        let mut ready = clocked.ready(switch);
        while ready != 0 {
            let bit = ready.trailing_zeros();
            ready &= ready - 1;
            self.link_starts(clocked, (switch, bit), now);
        }
        clocked.stays(switch)
    }

    /// The heads of a switch, a bit each, choose: where they look at room, one after the other from a drawn queue on.
    #[inline(always)]
    fn heads_choose(&self, clocked: &mut Clocked, (switch, heads): (u32, u128), now: Now) {
        let node = NodeId(self.topology.hosts() + switch);
        let mut later = heads;
        if self.adaptive && heads & (heads - 1) != 0 {
            let (start, _) = self.turn_of_choice(node, now.at);
            later &= u128::MAX << self.number.bit(start / self.vls, start % self.vls) << 1;
        }
        for mut queues in [later, heads & !later] {
            while queues != 0 {
                let bit = queues.trailing_zeros();
                queues &= queues - 1;
                self.head_chooses(clocked, Head { switch, bit }, node, now);
            }
        }
    }

    #[inline(always)]
    fn head_chooses(&self, clocked: &mut Clocked, head: Head, at: NodeId, now: Now) {
        let queue = clocked.queue(head.switch, head.bit);
        let packet = self.packets.get(clocked.ends[queue].queue.first);
        let next = self.routes.next(at, self.number.link(queue), packet.destination);
        let vl = u32::from(packet.base) + u32::from(next.class);
        let position = match next.links {
            [_] => 0,
            links if self.adaptive => {
                let room = |link: LinkId| clocked.unclaimed(link, vl, now.cycle);
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
        if let Some(link) = next.links.get(position) {
            let largest = u32::from(self.sizes.largest.1);
            let need = if next.enters_ring { 2 * largest } else { packet.credits.into() };
            clocked.ask((head, queue), (*link, vl), (packet.credits, need), now.cycle);
        }
    }

    /// The link of a switch with a bit starts one of the packets that ask for it, if one finds its credits.
    #[inline(always)]
    fn link_starts(&mut self, clocked: &mut Clocked, (switch, bit): (u32, u32), now: Now) {
        let link = clocked.output(switch, bit);
        let Some(taken) = clocked.turn(switch, link, now.cycle) else { return };
        let id = clocked.ends[taken.queue].queue.first;
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (flits, credits) = (packet.flits, packet.credits);
        let next = std::mem::replace(&mut packet.next, PacketId::NONE);
        let comes = if next == PacketId::NONE { 0 } else { self.packets.get(next).first.0 };
        clocked.leaves(switch, link, taken, (flits, credits), now.cycle);
        clocked.gives(taken.queue, (flits, credits), (next, comes), now.cycle);
        self.crosses(clocked, (link, taken.vl), (id, flits, credits), now);
    }

    /// A packet of so many flits and credits starts on a VL of a link.
    #[inline(always)]
    fn crosses(
        &mut self,
        clocked: &mut Clocked,
        (link, vl): (LinkId, u32),
        (id, flits, credits): (PacketId, u16, u16),
        now: Now,
    ) {
        let lane = self.number.lane(link, vl);
        let packet = self.packets.get_mut(id);
        self.traffic[link].crossed(now.at, packet.bytes, self.interval, &mut self.meters, link);
        if clocked.ports[link].to_host {
            return clocked.starts_to_host(lane, id, (flits, credits), now.cycle);
        }
        let (comes, before) = clocked.starts_to_switch(lane, id, (flits, credits), now.cycle);
        packet.first = SimTime(comes);
        if let Some(before) = before {
            self.packets.get_mut(before).next = id;
        }
    }
}
