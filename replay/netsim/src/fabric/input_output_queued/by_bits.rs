//! Routers all of whose packets have one flit: their packets. What they know of queues and links is [`OneFlit`].

use super::InputOutputQueued;
use super::bits::Bits;
use super::config::Requests;
use super::one_flit::{InVc, OneFlit, Out, Switch, Wish};
use super::state::InputPort;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ways::Ways;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::kernel::random::{below, draw};
use crate::network::Delivery;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use strength_reduce::StrengthReducedU32;

/// A switch in a cycle.
struct Here {
    number: u32,
    node: NodeId,
    /// What all its draws of this cycle come from.
    drawn: u64,
}

impl<O: Observer> InputOutputQueued<O> {
    /// Runs by bits, where that is the same.
    pub(super) fn begin_by_bits(&mut self) {
        let is_simple = self.config.requests == Requests::One
            && self.config.allocator.is_none()
            && self.config.latency.crossbar == 0
            && !self.keeps_bubbles;
        let is_alone = !self.loses_heads && self.occupancy.is_none() && self.log.is_none();
        if self.config.largest_flits() != 1 || !is_simple || !is_alone {
            return;
        }
        let (ports, topology, vcs) = (&self.ports, &self.topology, self.vcs);
        let hosts = topology.hosts();
        let told_after = |input: &InputPort| u16::try_from(input.told_after).ok();
        if self.inputs.iter().any(|input| told_after(input).is_none()) {
            return;
        }
        let in_vc = |(number, input): (u32, &InputPort)| {
            let switch = input.at.0 - hosts;
            let first = ports.inputs_of(switch).0;
            let (from_host, sender, told) = (input.from_host, input.sender_vc, told_after(input).unwrap_or(u16::MAX));
            // Switches with more VCs than bits are refused.
            let bit = move |vc: u32| u8::try_from((number - first) * vcs + vc).unwrap_or(u8::MAX);
            (0..vcs).map(move |vc| InVc::new(from_host, (switch, bit(vc)), (sender + vc, told)))
        };
        let in_vcs = (0..).zip(&self.inputs).flat_map(in_vc).collect();
        let out = |link: &LinkId| {
            let ends = topology.link(*link);
            let from_host = topology.is_host(ends.from);
            let from = if from_host { ends.from.0 } else { ends.from.0 - hosts };
            let first_in_vc = (!topology.is_host(ends.to)).then(|| ports.input_of(*link) * vcs);
            Out::new(*link, (from, from_host), first_in_vc, 1 + self.delays[*link])
        };
        let outs = ports.outputs().iter().map(out).collect();
        let switches = (0..topology.switches()).map(|switch| (ports.inputs_of(switch), ports.outputs_of(switch)));
        let buffers = (self.config.buffer, self.config.output_buffer);
        let has_one_class = self.vcs_of_class == vcs;
        let ways = if has_one_class { Ways::new(&self.routes, topology) } else { Ways::none(hosts) };
        let sizes = (vcs, self.calendar.ahead());
        let ways = (&ways, self.takes_all);
        self.one_flit = OneFlit::new(sizes, buffers, ways, (in_vcs, outs), switches).map(Box::new);
    }

    /// What happens in the cycle `now` that begins.
    pub(super) fn see_by_bits(&mut self, one: &mut OneFlit, now: u64, deliveries: &mut Vec<Delivery>) {
        let arrivals = one.arrivals.take(now);
        if one.is_wide {
            self.see_arrivals::<true>(one, &arrivals);
        } else {
            self.see_arrivals::<false>(one, &arrivals);
        }
        one.arrivals.keep(now, arrivals);
        let credits = one.credits.take(now);
        credits.iter().for_each(|out_vc| one.credit_returns(*out_vc, *out_vc / self.by_vcs));
        one.credits.keep(now, credits);
        let delivered = one.delivered.take(now);
        delivered.iter().for_each(|packet| self.deliver(*packet, deliveries));
        one.delivered.keep(now, delivered);
    }

    /// Packets arrive in VCs of inputs.
    fn see_arrivals<const WIDE: bool>(&mut self, one: &mut OneFlit, arrivals: &[(u32, PacketId)]) {
        for (in_vc, packet) in arrivals {
            if let Some(before) = one.arrives::<WIDE>(*in_vc, *packet) {
                self.packets.get_mut(before).next = *packet;
            }
        }
    }

    /// Hosts and switches work in the cycle `now`.
    pub(super) fn work_by_bits(&mut self, now: u64) {
        let Some(mut one) = self.one_flit.take() else { return };
        if self.begins >= one.interval_end {
            self.turn_interval(&mut one);
        }
        one.begin_work(now);
        let mut sending = std::mem::take(&mut one.sending);
        sending.retain(|output| {
            let stays = self.host_sends(&mut one, *output, now);
            one.host_stays(*output, stays)
        });
        one.sending = sending;
        let mut working = std::mem::take(&mut one.working);
        if one.is_wide {
            working.retain(|switch| self.switch_works_by_bits::<true>(&mut one, *switch, now));
        } else {
            working.retain(|switch| self.switch_works_by_bits::<false>(&mut one, *switch, now));
        }
        one.working = working;
        one.end_work(now);
        self.one_flit = Some(one);
    }

    /// Outputs count in the interval of the present cycle; what they have counted goes to the meters of their links.
    #[inline(never)]
    fn turn_interval(&mut self, one: &mut OneFlit) {
        let interval_ps = self.config.interval.ps();
        for output in 0..one.outs.len() {
            let out = one.outs[output];
            one.add_unmetered(&out, &mut self.meters[out.link], interval_ps);
            (one.outs[output].bytes, one.outs[output].packets) = (0, 0);
        }
        one.interval_end = SimTime((self.begins.0 / interval_ps + 1).saturating_mul(interval_ps));
    }

    /// The next packet of a host leaves by the lowest VC with a credit. Returns whether there is another one, for the next cycle.
    #[inline(always)]
    fn host_sends(&mut self, one: &mut OneFlit, output: u32, now: u64) -> bool {
        let host = NodeId(one.outs[output as usize].from);
        if self.messages.is_empty(host.0 as usize) {
            return false;
        }
        let Some(vc) = one.take_credit(output) else { return false };
        if let Some(packet) = self.next_packet(host, 1, now) {
            self.moved += 1;
            one.host_sends((output, vc), (packet, self.packets.get(packet).bytes), now);
        }
        !self.messages.is_empty(host.0 as usize)
    }

    /// Packets of a switch ask, are granted what they asked for, and leave. Returns whether there is something to do in the next cycle.
    #[inline(always)]
    fn switch_works_by_bits<const WIDE: bool>(&mut self, one: &mut OneFlit, number: u32, now: u64) -> bool {
        let mut state = one.switches[number as usize];
        let mut passing = 0;
        if !state.asking.is_empty::<WIDE>() {
            let node = NodeId(self.topology.hosts() + number);
            let drawn = draw(self.config.seed, (1 << 61) + u64::from(number), now);
            self.all_ask::<WIDE>(one, &Here { number, node, drawn }, (&mut state, &mut passing), now);
        }
        let (mut left, mut sent) = (state.ready | passing, 0u64);
        while left != 0 {
            let bit = left.trailing_zeros();
            let sends = if passing >> bit & 1 == 1 {
                one.passes::<WIDE>(&mut self.packets, &mut state, bit, now)
            } else {
                one.output_sends::<WIDE>(&mut self.packets, &mut state, bit, now)
            };
            sent = sent.wrapping_add(sends.into());
            left &= left.wrapping_sub(1);
        }
        self.moved += sent;
        one.done::<WIDE>(number, state)
    }

    /// The first packets of VCs of inputs of a switch ask, and are granted what they asked for; `passing` notes which pass.
    #[inline(always)]
    fn all_ask<const WIDE: bool>(
        &mut self,
        one: &mut OneFlit,
        here: &Here,
        (state, passing): (&mut Switch, &mut u64),
        now: u64,
    ) {
        let (mut asking, mut wished, mut contested) = (state.asking, Bits::NONE, Bits::NONE);
        let mut wishes = 0;
        while let Some(in_vc) = asking.take_least::<WIDE>() {
            let Some(out_vc) = self.one_of_open::<WIDE>(one, here, state, in_vc) else { continue };
            wished.put_again::<WIDE>(out_vc, &mut contested);
            // Each VC of an input asks once.
            one.wishes[wishes % one.wishes.len()] = Wish { in_vc, out_vc };
            wishes += 1;
        }
        while let Some(out_vc) = contested.take_least::<WIDE>() {
            wishes = self.decide(one, here, state, out_vc, wishes);
        }
        for wish in 0..wishes {
            let wish = one.wishes[wish % one.wishes.len()];
            one.grant::<WIDE>(&mut self.packets, (state, passing), wish, now);
        }
    }

    /// Of the first `count` wishes, several of which are for one VC of an output, keeps of these the one that is granted: of those that hosts sent
    /// last, the one with the least number drawn. Returns how many are left.
    #[inline(never)]
    fn decide(&self, one: &mut OneFlit, here: &Here, state: &Switch, out_vc: u32, count: usize) -> usize {
        let rank = |wish: &Wish| {
            let from_host = || one.in_vcs[(state.first_in_vc + wish.in_vc) as usize].from_host;
            let later = self.config.transit_priority && from_host();
            let place = (u64::from(wish.in_vc) << 32) + u64::from(wish.out_vc);
            (later, draw(here.drawn, 1, place), wish.in_vc)
        };
        let granted = one.wishes[..count].iter().filter(|wish| wish.out_vc == out_vc).map(rank).min();
        let mut left = 0;
        for number in 0..count {
            let wish = one.wishes[number];
            if wish.out_vc != out_vc || granted.is_some_and(|(.., in_vc)| in_vc == wish.in_vc) {
                one.wishes[left] = wish;
                left += 1;
            }
        }
        left
    }

    /// One of the VCs of outputs with room that the first packet of a VC of an input may take.
    #[inline(always)]
    fn one_of_open<const WIDE: bool>(&self, one: &OneFlit, here: &Here, state: &Switch, in_vc: u32) -> Option<u32> {
        let packet = self.packets.get(one.in_vcs[state.first_in_vc.wrapping_add(in_vc) as usize].first);
        let run = one.run(here.number, packet.destination);
        if run.count == 0 {
            return self.one_of_ways::<WIDE>(here, state, in_vc, packet);
        }
        let (first, width) = (u32::from(run.first), u32::from(run.count));
        let of_run = u64::MAX >> (u64::BITS.wrapping_sub(width) & 63);
        let mut mask = state.open.from::<WIDE>(first) & of_run;
        let is_full = mask == of_run;
        let all = if is_full { width } else { mask.count_ones() };
        let place = match all {
            0 => return None,
            1 => 0,
            _ => below(draw(here.drawn, 0, in_vc.into()), all.into()) as u32,
        };
        if is_full {
            return Some(first.wrapping_add(place));
        }
        (0..place).for_each(|_| mask &= mask.wrapping_sub(1));
        Some(first.wrapping_add(mask.trailing_zeros()))
    }

    /// The same where its ways are reckoned.
    fn one_of_ways<const WIDE: bool>(&self, here: &Here, state: &Switch, in_vc: u32, packet: &Packet) -> Option<u32> {
        let (input, vc) = StrengthReducedU32::div_rem(state.first_in_vc + in_vc, self.by_vcs);
        let link = self.inputs[input as usize].link;
        let mut single = [link];
        let ways = self.ways(here.node, link, vc, packet, &mut single);
        let of_class = ((1u32 << self.vcs_of_class) - 1) << (u32::from(ways.class) * self.vcs_of_class);
        let of_output = (1u32 << self.vcs) - 1;
        let open = |link: &LinkId| {
            let output = self.ports.output_of(*link);
            let first = output * self.vcs - state.first_out_vc;
            let to_host = self.outputs[output as usize].to_host;
            (first, state.open.from::<WIDE>(first) as u32 & if to_host { of_output } else { of_class })
        };
        let all: u32 = ways.links.iter().map(|link| open(link).1.count_ones()).sum();
        let mut before = match all {
            0 => return None,
            1 => 0,
            _ => u32::try_from(below(draw(here.drawn, 0, in_vc.into()), all.into())).unwrap_or(0),
        };
        for link in ways.links {
            let (first, mut vcs) = open(link);
            let number = vcs.count_ones();
            if before < number {
                (0..before).for_each(|_| vcs &= vcs - 1);
                return Some(first + vcs.trailing_zeros());
            }
            before -= number;
        }
        None
    }
}
