//! Routers all of whose packets have one flit: their packets. What they know of queues and links is [`OneFlit`].

use super::InputOutputQueued;
use super::bits::Bits;
use super::config::Requests;
use super::one_flit::{Input, OneFlit, Out, Sender, Switch, VcRun};
use super::state::InputPort;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ways::Ways;
use crate::fabric::packet::Observer;
use crate::kernel::random::{below, draw};
use crate::network::Delivery;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use strength_reduce::StrengthReducedU32;

/// A switch in a cycle.
struct SwitchCycle {
    number: u32,
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
        let input = |(number, input): (u32, &InputPort)| {
            let switch = input.at.0 - hosts;
            // Switches with more VCs than bits are refused.
            let first_bit = u8::try_from((number - ports.inputs_of(switch).0) * vcs).unwrap_or(u8::MAX);
            let told = told_after(input).unwrap_or(u16::MAX);
            Input::new((switch, first_bit), (input.sender_vc, told))
        };
        let inputs = (0..).zip(&self.inputs).map(input).collect();
        let sender = |link: &LinkId| {
            let from = topology.link(*link).from;
            let is_host = topology.is_host(from);
            Sender::new(*link, (if is_host { from.0 } else { from.0 - hosts }, is_host))
        };
        let senders = ports.outputs().iter().map(sender).collect();
        let out = |link: &LinkId| {
            let ends_at = topology.link(*link).to;
            Out::new((!topology.is_host(ends_at)).then(|| ports.input_of(*link)), 1 + self.delays[*link])
        };
        let outs = ports.outputs().iter().map(out).collect();
        let switches = (0..topology.switches()).map(|switch| (ports.inputs_of(switch), ports.outputs_of(switch)));
        let buffers = (self.config.buffer, self.config.output_buffer);
        let has_one_class = self.vcs_of_class == vcs;
        let ways = if has_one_class { Ways::new(&self.routes, topology) } else { Ways::none(hosts) };
        let sizes = (vcs, self.calendar.ahead());
        let ways = (&ways, self.takes_all);
        self.one_flit = OneFlit::new(sizes, buffers, ways, (inputs, outs, senders), switches).map(Box::new);
    }

    /// What happens in the cycle `now` that begins.
    pub(super) fn see_by_bits(&mut self, one: &mut OneFlit, now: u64, deliveries: &mut Vec<Delivery>) {
        let arrivals = one.arrivals.take(now);
        for (place, packet) in &arrivals {
            if one.is_wide {
                one.arrives::<true>(*place, *packet);
            } else {
                one.arrives::<false>(*place, *packet);
            }
        }
        one.arrivals.keep(now, arrivals);
        one.see_coming();
        let credits = one.credits.take(now);
        credits.iter().for_each(|out_vc| one.credit_returns(*out_vc, |out_vc| out_vc / self.by_vcs));
        one.credits.keep(now, credits);
        let delivered = one.delivered.take(now);
        for packet in &delivered {
            self.packets.get_mut(*packet).switches = one.switches_left(*packet);
            self.deliver(*packet, deliveries);
        }
        one.delivered.keep(now, delivered);
    }

    /// Hosts and switches work in the cycle `now`.
    pub(super) fn work_by_bits(&mut self, now: u64) {
        let Some(mut one) = self.one_flit.take() else { return };
        if self.begins >= one.interval_end {
            self.turn_interval(&mut one);
        }
        one.begin_work(now);
        if one.is_wide {
            self.work_as_wide::<true>(&mut one, now);
        } else {
            self.work_as_wide::<false>(&mut one, now);
        }
        one.end_work(now);
        self.one_flit = Some(one);
    }

    /// Those of them that are listed. What has something to do in the next cycle stays listed.
    #[inline(always)]
    fn work_as_wide<const WIDE: bool>(&mut self, one: &mut OneFlit, now: u64) {
        let (mut sending, mut left) = (std::mem::take(&mut one.sending), 0);
        for place in 0..sending.len() {
            let output = sending[place];
            let stays = self.host_sends::<WIDE>(one, output, now);
            sending[left] = output;
            left += usize::from(one.host_stays(output, stays));
        }
        sending.truncate(left);
        one.sending = sending;
        // Of switches no list is looked at while they work.
        let (mut working, mut switches) = (std::mem::take(&mut one.working), std::mem::take(&mut one.switches));
        let mut left = 0;
        for place in 0..working.len() {
            let number = working[place];
            let state = &mut switches[number as usize];
            self.switch_works_by_bits::<WIDE>(one, (number, state), now);
            state.is_listed = !state.asking.is_empty::<WIDE>() || state.ready != 0;
            working[left] = number;
            left += usize::from(state.is_listed);
        }
        working.truncate(left);
        (one.working, one.switches) = (working, switches);
    }

    /// Outputs count in the interval of the present cycle; what they have counted goes to the meters of their links.
    #[inline(never)]
    fn turn_interval(&mut self, one: &mut OneFlit) {
        let interval_ps = self.config.interval.ps();
        for output in 0..one.outs.len() {
            one.add_unmetered(&one.outs[output], &mut self.meters[one.senders[output].link], interval_ps);
            (one.outs[output].bytes, one.outs[output].packets) = (0, 0);
        }
        one.interval_end = SimTime((self.begins.0 / interval_ps + 1).saturating_mul(interval_ps));
    }

    /// The next packet of a host leaves by the lowest VC with a credit. Returns whether there is another one, for the next cycle.
    #[inline(always)]
    fn host_sends<const WIDE: bool>(&mut self, one: &mut OneFlit, output: u32, now: u64) -> bool {
        let host = NodeId(one.senders[output as usize].from);
        if self.messages.is_empty(host.0 as usize) {
            return false;
        }
        let Some(vc) = one.take_credit(output) else { return false };
        if let Some(packet) = self.next_packet(host, 1, now) {
            self.moved += 1;
            one.host_sends::<WIDE>((output, vc), (packet, self.packets.get(packet)), now);
        }
        !self.messages.is_empty(host.0 as usize)
    }

    /// Packets of a switch ask, are granted what they asked for, and leave.
    #[inline(always)]
    fn switch_works_by_bits<const WIDE: bool>(
        &mut self,
        one: &mut OneFlit,
        (number, state): (u32, &mut Switch),
        now: u64,
    ) {
        let mut sent = 0;
        if !state.asking.is_empty::<WIDE>() {
            let drawn = draw(self.config.seed, (1 << 61) + u64::from(number), now);
            let granted = self.all_ask::<WIDE>(one, &SwitchCycle { number, drawn }, state);
            sent = one.grant::<WIDE>(state, granted, now);
        }
        // No output is among these by which one has left.
        let mut ready = state.ready;
        while ready != 0 {
            let bit = ready.trailing_zeros();
            sent = sent.wrapping_add(one.output_sends::<WIDE>(state, bit, now).into());
            ready &= ready.wrapping_sub(1);
        }
        self.moved += sent;
    }

    /// The first packets of VCs of inputs of a switch ask. Returns the VCs of outputs that they are granted; `takers` says to which.
    #[inline(always)]
    fn all_ask<const WIDE: bool>(&self, one: &mut OneFlit, here: &SwitchCycle, state: &Switch) -> Bits {
        let (mut asking, mut granted, open) = (state.asking, Bits::NONE, state.open);
        // Looked up once for all of them.
        let asked = one.asked(here.number, state);
        while let Some(in_vc) = asking.take_least::<WIDE>() {
            let (packet, run) = asked.first(in_vc);
            let out_vc = match run.count {
                0 => self.one_of_ways::<WIDE>(here, state, in_vc, self.packets.get(packet)),
                _ => one_of_run::<WIDE>(run, open, here, in_vc),
            };
            let Some(out_vc) = out_vc else { continue };
            let place = out_vc as usize % asked.takers.len();
            let is_first = granted.put_new::<WIDE>(out_vc);
            if is_first || self.prevails(here, state, (in_vc, asked.takers[place].into()), out_vc) {
                // There are 128 VCs at most.
                asked.takers[place] = in_vc as u8;
            }
        }
        granted
    }

    /// Whether the packet of `in_vc` is to have `out_vc`, and not that of `other`: those that hosts sent come last, then it is the one with the
    /// least number drawn.
    #[inline(never)]
    fn prevails(&self, here: &SwitchCycle, state: &Switch, (in_vc, other): (u32, u32), out_vc: u32) -> bool {
        let rank = |in_vc: u32| {
            let from_host = || self.inputs[((state.first_in_vc + in_vc) / self.by_vcs) as usize].from_host;
            let later = self.config.transit_priority && from_host();
            let place = (u64::from(in_vc) << 32) + u64::from(out_vc);
            (later, draw(here.drawn, 1, place), in_vc)
        };
        rank(in_vc) < rank(other)
    }

    /// The same where its ways are reckoned.
    fn one_of_ways<const WIDE: bool>(
        &self,
        here: &SwitchCycle,
        state: &Switch,
        in_vc: u32,
        packet: &Packet,
    ) -> Option<u32> {
        let (input, vc) = StrengthReducedU32::div_rem(state.first_in_vc + in_vc, self.by_vcs);
        let link = self.inputs[input as usize].link;
        let mut single = [link];
        let node = NodeId(self.topology.hosts() + here.number);
        let ways = self.ways(node, link, vc, packet, &mut single);
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

/// One of the VCs of `run` with room, as `open` has them, for the first packet of `in_vc`.
#[inline(always)]
fn one_of_run<const WIDE: bool>(run: VcRun, open: Bits, here: &SwitchCycle, in_vc: u32) -> Option<u32> {
    let (first, width) = (u32::from(run.first), u32::from(run.count));
    let of_run = u64::MAX >> (u64::BITS.wrapping_sub(width) & 63);
    let mut mask = open.from::<WIDE>(first) & of_run;
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
