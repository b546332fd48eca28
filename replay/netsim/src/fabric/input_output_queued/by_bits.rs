//! Routers all of whose packets have one flit: their packets. What they know of queues and links is [`OneFlit`].

use super::InputOutputQueued;
use super::config::Requests;
use super::one_flit::{InVc, OneFlit, Wish};
use super::state::InputPort;
use crate::fabric::ids::PacketId;
use crate::fabric::packet::Observer;
use crate::kernel::random::{below, draw};
use crate::topology::{LinkId, NodeId};

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
        let in_vc = |(number, input): (u32, &InputPort)| {
            let switch = input.at.0 - hosts;
            let first = ports.inputs_of(switch).0;
            let (link, from_host, sender, told) = (input.link, input.from_host, input.sender_vc, input.told_after);
            (0..vcs).map(move |vc| {
                InVc::new(link, vc, from_host, (switch, (number - first) * vcs + vc), (sender + vc, told))
            })
        };
        let in_vcs = (0..).zip(&self.inputs).flat_map(in_vc).collect();
        let out = |link: &LinkId| {
            let ends = topology.link(*link);
            let from_host = topology.is_host(ends.from);
            let from = if from_host { ends.from.0 } else { ends.from.0 - hosts };
            (*link, from, from_host, topology.is_host(ends.to))
        };
        let switches = (0..topology.switches()).map(|switch| (ports.inputs_of(switch), ports.outputs_of(switch)));
        let buffers = (self.config.buffer, self.config.output_buffer);
        self.one_flit = OneFlit::new(vcs, buffers, in_vcs, ports.outputs().iter().map(out), switches).map(Box::new);
    }

    /// Hosts and switches work in the cycle `now`.
    pub(super) fn work_by_bits(&mut self, now: u64) {
        let Some(mut one) = self.one_flit.take() else { return };
        let mut sending = std::mem::take(&mut one.sending);
        sending.retain(|output| {
            let stays = self.host_sends(&mut one, *output, now);
            one.host_stays(*output, stays)
        });
        one.sending = sending;
        let mut working = std::mem::take(&mut one.working);
        working.retain(|switch| self.switch_works_by_bits(&mut one, *switch, now));
        one.working = working;
        self.one_flit = Some(one);
    }

    /// The next packet of a host leaves by the lowest VC with a credit. Returns whether there is another one, for the next cycle.
    fn host_sends(&mut self, one: &mut OneFlit, output: u32, now: u64) -> bool {
        let (host, link) = (NodeId(one.outs[output as usize].from), one.outs[output as usize].link);
        if self.messages.is_empty(host.0 as usize) {
            return false;
        }
        let Some(vc) = one.take_credit(output) else { return false };
        if let Some(packet) = self.next_packet(host, 1, now) {
            self.begins_to_cross((link, vc), false, packet, 1, now);
        }
        !self.messages.is_empty(host.0 as usize)
    }

    /// Packets of a switch ask, are granted what they asked for, and leave. Returns whether there is something to do in the next cycle.
    #[inline(always)]
    fn switch_works_by_bits(&mut self, one: &mut OneFlit, switch: u32, now: u64) -> bool {
        let (asking, first_in_vc, first_out_vc) = one.asking(switch);
        if asking != 0 {
            let mut wishes = std::mem::take(&mut one.wishes);
            self.all_ask(one, (switch, asking), (first_in_vc, first_out_vc), &mut wishes, now);
            if wishes.len() > 1 {
                wishes.sort_unstable_by_key(|wish| (wish.rank, wish.in_vc));
            }
            let mut granted = 0u128;
            for wish in wishes.drain(..) {
                let bit = 1 << (wish.output * self.vcs + wish.vc - first_out_vc);
                if granted & bit == 0 {
                    granted |= bit;
                    self.grant_by_bits(one, &wish, now);
                }
            }
            one.wishes = wishes;
        }
        let (mut ready, first_output) = one.waiting(switch);
        while ready != 0 {
            let output = first_output + ready.trailing_zeros();
            ready &= ready - 1;
            self.link_by_bits(one, switch, output, now);
        }
        one.stays(switch)
    }

    /// The first packets of VCs of inputs of a switch, a bit each, ask.
    #[inline(always)]
    fn all_ask(
        &self,
        one: &OneFlit,
        (switch, mut asking): (u32, u128),
        (first_in_vc, first_out_vc): (u32, u32),
        wishes: &mut Vec<Wish>,
        now: u64,
    ) {
        let node = NodeId(self.topology.hosts() + switch);
        // What all draws of this cycle come from.
        let drawn = draw(self.config.seed, (1 << 61) + u64::from(switch), now);
        while asking != 0 {
            let local = asking.trailing_zeros();
            asking &= asking - 1;
            let in_vc = first_in_vc + local;
            let Some((output, vc)) = self.one_of_open(one, node, (in_vc, local), drawn) else { continue };
            let place = (u64::from(local) << 32) + u64::from(output * self.vcs + vc - first_out_vc);
            let later = self.config.transit_priority && one.in_vcs[in_vc as usize].from_host;
            wishes.push(Wish { rank: (later, draw(drawn, 1, place)), in_vc, output, vc });
        }
    }

    /// One of the VCs with room that the first packet of a VC of an input may take, number `local` at its switch `node`: output and VC.
    #[inline(always)]
    fn one_of_open(&self, one: &OneFlit, node: NodeId, (in_vc, local): (u32, u32), drawn: u64) -> Option<(u32, u32)> {
        let InVc { first, link, vc, .. } = one.in_vcs[in_vc as usize];
        let mut single = [link];
        let ways = self.ways(node, link, vc, self.packets.get(first), &mut single);
        let of_class = ((1u32 << self.vcs_of_class) - 1) << (u32::from(ways.class) * self.vcs_of_class);
        let open = |link: &LinkId| {
            let output = self.ports.output_of(*link);
            let out = &one.outs[output as usize];
            (output, out.open & if out.to_host { u32::MAX } else { of_class })
        };
        let number = |vcs: u32| if vcs == of_class { self.vcs_of_class } else { vcs.count_ones() };
        let all: u32 = ways.links.iter().map(|link| number(open(link).1)).sum();
        let mut before = match all {
            0 => return None,
            1 => 0,
            _ => u32::try_from(below(draw(drawn, 0, local.into()), all.into())).unwrap_or(0),
        };
        for link in ways.links {
            let (output, mut vcs) = open(link);
            let here = number(vcs);
            if before < here {
                (0..before).for_each(|_| vcs &= vcs - 1);
                return Some((output, vcs.trailing_zeros()));
            }
            before -= here;
        }
        None
    }

    /// A packet moves into the queue of what it asked for, and its credit goes back.
    #[inline(always)]
    fn grant_by_bits(&mut self, one: &mut OneFlit, wish: &Wish, now: u64) {
        let InVc { first, sender_vc, told_after, .. } = one.in_vcs[wish.in_vc as usize];
        let next = std::mem::replace(&mut self.packets.get_mut(first).next, PacketId::NONE);
        if let Some(before) = one.grant(wish, next) {
            self.packets.get_mut(before).next = first;
        }
        self.credits_go_back(sender_vc, 1, now + u64::from(told_after));
    }

    /// A packet leaves by an output, if one finds a credit.
    #[inline(always)]
    fn link_by_bits(&mut self, one: &mut OneFlit, switch: u32, output: u32, now: u64) {
        let Some((vc, id)) = one.turn(switch, output) else { return };
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let next = std::mem::replace(&mut packet.next, PacketId::NONE);
        one.leaves(switch, (output, vc), next);
        let out = &one.outs[output as usize];
        self.begins_to_cross((out.link, vc), out.to_host, id, 1, now);
    }
}
