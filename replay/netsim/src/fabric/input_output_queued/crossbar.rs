//! The crossbars: which packets move from inputs to outputs.

use super::InputOutputQueued;
use super::config::Requests;
use super::state::{Candidate, Event, InputPort, Queued, VcRequest};
use crate::fabric::clocked::matching::{Instant, Request, Stage, Turns};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::packet::Observer;
use crate::kernel::random::{below, draw};
use crate::routing::{Choice, Hop, RoutingConfig};
use crate::topology::{LinkId, NodeId};
use strength_reduce::StrengthReducedU32;

/// Where a packet may go on: links, a class of their VCs, and whether it enters a ring that keeps a bubble.
pub(super) struct Ways<'a> {
    pub links: &'a [LinkId],
    pub class: u8,
    enters_ring: bool,
}

/// A switch in a cycle.
struct SwitchCycle {
    switch: u32,
    now: u64,
    /// The first VC of its inputs and of its outputs.
    first_input_vc: u32,
    first_output_vc: u32,
    /// What all its draws of this cycle come from.
    drawn: u64,
}

impl<O: Observer> InputOutputQueued<O> {
    /// A packet has become the first in a VC of an input that nothing moves out of.
    pub(super) fn asks(&mut self, input_vc: u32) {
        let switch = self.inputs[(input_vc / self.by_vcs) as usize].at.0 - self.topology.hosts();
        let asking = &mut self.asking[switch as usize];
        if asking.is_empty() {
            self.working.push(switch);
        }
        asking.push(input_vc);
    }

    /// Grants what can be granted at `switch` in the cycle `now`. Returns whether packets still ask.
    pub(super) fn switch_works(&mut self, switch: u32, now: u64) -> bool {
        let here = SwitchCycle {
            switch,
            now,
            first_input_vc: self.ports.inputs_of(switch).0 * self.vcs,
            first_output_vc: self.ports.outputs_of(switch).0 * self.vcs,
            drawn: draw(self.config.seed, (1 << 61) + u64::from(switch), now),
        };
        let mut asking = std::mem::take(&mut self.asking[switch as usize]);
        let (mut asked, mut found) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.found));
        for input_vc in &asking {
            self.ask(&here, *input_vc, &mut found, &mut asked);
        }
        self.found = found;
        if self.config.allocator.is_some() {
            self.match_asked(&here, &mut asked);
        } else if asked.len() > 1 {
            asked.sort_unstable_by_key(|asked| (asked.rank, asked.input_vc, asked.output_vc));
        }
        for VcRequest { input_vc, output_vc, needs, .. } in &asked {
            let granted = self.input_vcs[*input_vc as usize].moves_until > now;
            if !granted && !self.moves_into(*output_vc, now) {
                self.grant(*input_vc, *output_vc, *needs, now);
            }
        }
        if !asked.is_empty() {
            asking.retain(|input_vc| self.input_vcs[*input_vc as usize].moves_until <= now);
        }
        asked.clear();
        self.asked = asked;
        let more = !asking.is_empty();
        self.asking[switch as usize] = asking;
        more
    }

    /// Where the packet goes on that is first in a VC of `link`.
    #[inline]
    pub(super) fn ways<'a>(
        &'a self,
        node: NodeId,
        link: LinkId,
        vc: u32,
        packet: &Packet,
        one: &'a mut [LinkId; 1],
    ) -> Ways<'a> {
        if self.by_packet {
            let class = u8::try_from(vc / self.vcs_of_class).unwrap_or(0);
            let hop = Hop { at: node, input_link: link, class, to: packet.destination, key: packet.key };
            let Some((lane, enters_ring)) = self.routes.lane(&hop) else {
                return Ways { links: &[], class: 0, enters_ring: false };
            };
            one[0] = lane.link;
            return Ways { links: one, class: lane.class, enters_ring };
        }
        let next = self.routes.next(node, link, packet.destination);
        let all = Ways { links: next.links, class: next.class, enters_ring: next.enters_ring };
        if next.links.len() == 1 || *self.routes.config() == RoutingConfig::Adaptive {
            return all;
        }
        let source = self.topology.host_node(self.messages.get(packet.message).source.0);
        match self.routes.choose(next.links.len(), node, packet.key, packet.flow, source, packet.destination) {
            Choice::Index(index) => Ways { links: &next.links[index..=index], ..all },
            Choice::ByCredits => all,
        }
    }

    /// What the packet that is first in `input_vc` asks for; `found` is what it may ask for.
    fn ask(&self, here: &SwitchCycle, input_vc: u32, found: &mut Vec<Candidate>, asked: &mut Vec<VcRequest>) {
        let Some(id) = self.input_vcs[input_vc as usize].waiting.front() else { return };
        let packet = self.packets.get(*id);
        let (input, vc) = StrengthReducedU32::div_rem(input_vc, self.by_vcs);
        let InputPort { link, at, from_host, .. } = self.inputs[input as usize];
        let mut one = [link];
        let ways = self.ways(at, link, vc, packet, &mut one);
        found.clear();
        for link in ways.links {
            let output = self.ports.output_of(*link);
            let leaves = &self.outputs[output as usize];
            let to_host = leaves.to_host;
            // Who turns, into a ring or to a host, leaves room for another packet where rings keep bubbles.
            let bubble = self.keeps_bubbles && (ways.enters_ring || to_host);
            let needs = packet.flits + if bubble { self.largest_flits } else { 0 };
            let first = output * self.vcs;
            if !self.config.busy_outputs && (first..first + self.vcs).any(|vc| self.moves_into(vc, here.now)) {
                continue;
            }
            let left = leaves.left_by(here.now);
            let vcs = if to_host { 0..self.vcs } else { self.vcs_of(ways.class) };
            let fills = &self.fills[(first + vcs.start) as usize..(first + vcs.end) as usize];
            for (vc, fill) in vcs.zip(fills) {
                let held = fill.flits - if u32::from(leaves.vc) == vc { left } else { 0 };
                if fill.moves_until <= here.now && self.config.output_buffer - held >= needs {
                    found.push(Candidate { output_vc: first + vc, needs });
                }
            }
        }
        let local = input_vc - here.first_input_vc;
        let mut taken = found.as_slice();
        if self.config.requests == Requests::One && taken.len() > 1 {
            let number = below(draw(here.drawn, 0, local.into()), taken.len() as u64) as usize;
            taken = &taken[number..=number];
        }
        let later = from_host && self.config.transit_priority;
        asked.extend(taken.iter().map(|Candidate { output_vc, needs }| {
            let place = (u64::from(local) << 32) + u64::from(output_vc - here.first_output_vc);
            let rank = (later, draw(here.drawn, 1, place));
            VcRequest { rank, input_vc, output_vc: *output_vc, needs: *needs }
        }));
    }

    /// The VCs of a class.
    fn vcs_of(&self, class: u8) -> std::ops::Range<u32> {
        let first = u32::from(class) * self.vcs_of_class;
        first..first + self.vcs_of_class
    }

    /// Whether a packet moves into a VC of an output that was granted before `now`.
    fn moves_into(&self, output_vc: u32, now: u64) -> bool {
        self.fills[output_vc as usize].moves_until > now
    }

    /// Leaves of `asked` what the separable allocator grants.
    fn match_asked(&mut self, here: &SwitchCycle, asked: &mut Vec<VcRequest>) {
        let Some(allocator) = self.config.allocator else { return };
        asked.sort_unstable_by_key(|asked| (asked.input_vc, asked.output_vc));
        let (input_vcs, output_vcs) =
            (self.ports.inputs_of(here.switch).1 * self.vcs, self.ports.outputs_of(here.switch).1 * self.vcs);
        let requests = asked.iter().map(|asked| {
            let waiting = &self.input_vcs[asked.input_vc as usize].waiting;
            let age = waiting.front().map_or((0, 0), |id| (self.packets.get(*id).left, self.packets.get(*id).key));
            Request {
                input: asked.input_vc - here.first_input_vc,
                output: asked.output_vc - here.first_output_vc,
                speculative: false,
                age,
                granted: false,
            }
        });
        self.requests.extend(requests);
        let (inputs, outputs) = (here.first_input_vc as usize, here.first_output_vc as usize);
        let mut turns = Turns {
            inputs: &mut self.input_turns[inputs..inputs + input_vcs as usize],
            outputs: &mut self.output_turns[outputs..outputs + output_vcs as usize],
        };
        let instant =
            Instant { seed: self.config.seed, switch: here.switch, cycle: here.now, stage: Stage::SwitchAllocation };
        self.matcher.allocate(&allocator, &mut self.requests, &mut turns, &instant);
        let mut granted = self.requests.drain(..).map(|request| request.granted);
        asked.retain(|_| granted.next().unwrap_or(false));
    }

    /// The packet that is first in `input_vc` moves into `output_vc` from `now` on, a flit a cycle.
    fn grant(&mut self, input_vc: u32, output_vc: u32, needs: u32, now: u64) {
        let input = &mut self.input_vcs[input_vc as usize];
        let Some(id) = input.waiting.pop_front() else { return };
        let flits = self.packets.get(id).flits;
        let moved = now + u64::from(flits);
        input.moves_until = moved;
        if !input.waiting.is_empty() {
            self.calendar.put(moved, Event::Moved { input_vc });
        }
        let ready_at = now + u64::from(self.config.latency.crossbar);
        let fill = &mut self.fills[output_vc as usize];
        fill.moves_until = moved;
        fill.flits += flits;
        let (output, vc) = StrengthReducedU32::div_rem(output_vc, self.by_vcs);
        self.output_vcs[output_vc as usize].queue.push_back(Queued { packet: id, flits, ready_at, needs });
        self.outputs[output as usize].waiting |= 1 << vc;
        self.try_output(output, ready_at.max(self.outputs[output as usize].free_from()), now);

        // The credits of its flits go back as they move.
        let (input, input_lane) = StrengthReducedU32::div_rem(input_vc, self.by_vcs);
        let InputPort { link, sender_vc, told_after, .. } = self.inputs[input as usize];
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.leaves(usize::from(link) * self.vcs as usize + input_lane as usize, now, moved);
        }
        self.credits_go_back(sender_vc + input_lane, flits, now + u64::from(told_after));
    }
}
