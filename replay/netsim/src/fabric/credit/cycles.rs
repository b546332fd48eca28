//! A network in cycles: its packets. What it knows of lanes, queues and links is [`Clocked`].

use super::Credit;
use super::clocked::{Clocked, Place, Sizes};
use super::input_arbiter::InputArbiter as _;
use super::most_room::most_room;
use super::packet::Packet;
use super::strategies::Strategies;
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
            self.clocked = Clocked::new((&self.topology, &self.routes), timing, self.number, &sizes).map(Box::new);
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
        if at >= clocked.interval_end() {
            let interval_ps = self.interval.ps();
            let meters = &mut self.meters;
            clocked.turn_interval(at, interval_ps, |link, traffic| traffic.put_into(&mut meters[link], self.interval));
        }
        let mut sending = std::mem::take(&mut clocked.sending);
        sending.retain(|output| self.host_sends(&mut clocked, *output, now));
        clocked.sending = sending;
        let mut working = std::mem::take(&mut clocked.working);
        working.retain(|switch| self.switch_works(&mut clocked, *switch, now));
        clocked.working = working;
        clocked.end(now.cycle);
        self.clocked = Some(clocked);
    }

    /// The host of `output` sends a packet, if it finds its credits. Returns whether it may have one to send in the next cycle.
    fn host_sends(&mut self, clocked: &mut Clocked, output: u32, now: Now) -> bool {
        let host = clocked.outputs[output as usize].from;
        let Some(vl) = clocked.host_turn(output, now.cycle, |vl| self.host_need(host, vl)) else { return false };
        let queue = self.number.queue(NodeId(host), vl);
        let Some((id, flits, credits)) = self.cut_packet(queue, vl, now.at) else { return false };
        if self.messages.is_empty(queue) {
            clocked.host_asks_no_more(output, vl);
        }
        let lane = clocked.lane(output, vl);
        clocked.crosses(&mut self.packets, (output, vl, lane), (id, flits, credits), now.cycle);
        clocked.host_stays(output, now.cycle, flits)
    }

    /// The heads of `switch` choose, and its outputs start packets. Returns whether it may have more to start in the next cycle.
    #[inline(always)]
    fn switch_works(&mut self, clocked: &mut Clocked, switch: u32, now: Now) -> bool {
        let (place, heads, mut ready) = clocked.begin_switch(switch);
        if heads != 0 {
            ready |= self.heads_choose(clocked, &place, heads, now);
        }
        let mut left = ready;
        while left != 0 {
            let bit = left.trailing_zeros();
            if !clocked.output_starts(&mut self.packets, &place, bit, now.cycle) {
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
        let (mut begin, mut ready) = (0, 0);
        if self.adaptive && heads & heads.wrapping_sub(1) != 0 {
            let (start, _) = self.turn_of_choice(at, now.at);
            let is_bit = self.vls.is_power_of_two();
            begin = 1 + if is_bit { start } else { self.number.bit(start / self.vls, start % self.vls) };
        }
        // Turned so that the first head is the lowest bit.
        let mut turned = heads.rotate_right(begin);
        while turned != 0 {
            let bit = turned.trailing_zeros().wrapping_add(begin) % u128::BITS;
            turned &= turned.wrapping_sub(1);
            ready |= self.head_chooses(clocked, place, at, bit, now);
        }
        ready
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
