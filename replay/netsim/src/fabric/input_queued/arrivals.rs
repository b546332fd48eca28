//! What is told of links: first flits of queues, and credits. Whoever waits for that goes on.

use super::InputQueued;
use super::state::{Owner, PortVc, State, not_before};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ports::NONE;
use crate::fabric::packet::Observer;
use crate::routing::{Choice, Hop};
use crate::topology::{LinkId, NodeId};

impl<O: Observer> InputQueued<O> {
    /// A flit has come to a VC of an input in which no other one lies.
    pub(super) fn first_comes(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let state = &self.input_vcs[index];
        match state.state {
            State::Idle => self.head_comes(at, now),
            State::Active => {
                let given = state.given;
                if !self.plain_crossbar {
                    let crossbar = &mut self.crossbars[index];
                    crossbar.at = crossbar.at.max(now);
                }
                if self.output_vcs[self.index(given)].credits > 0 || self.count_credits(given, now) > 0 {
                    self.is_ready(at);
                } else {
                    self.want_credit(given, now);
                }
            }
            State::Asking | State::Granted => {}
        }
    }

    /// The first flit of a VC may ask for the crossbar.
    pub(super) fn is_ready(&mut self, at: PortVc) {
        self.ready[at.port() as usize] |= at.bit();
        let input = &self.inputs[at.port() as usize];
        let (word, mark) = input.mark();
        self.marks[word].ready |= mark;
        let switch = input.switch;
        if self.plain_crossbar {
            self.ask_plainly(at, self.input_vcs[self.index(at)].given, switch);
        }
        self.steady[switch as usize] = NONE;
        self.has_work(switch);
    }

    /// It may not.
    #[inline]
    pub(super) fn is_not_ready(&mut self, at: PortVc) {
        let ready = &mut self.ready[at.port() as usize];
        *ready &= !at.bit();
        let is_last = *ready == 0;
        if self.plain_crossbar {
            self.ask_plainly_no_more(at);
        }
        let input = &self.inputs[at.port() as usize];
        self.steady[input.switch as usize] = NONE;
        let (word, mark) = input.mark();
        // Whether others are ready is left to chance, and nothing branches by it.
        self.marks[word].ready &= !(mark & u64::from(is_last).wrapping_neg());
    }

    /// The head in a VC asks for a VC.
    pub(super) fn asks(&mut self, at: PortVc) {
        let input = &mut self.inputs[at.port() as usize];
        input.heads |= at.bit();
        let (word, mark) = input.mark();
        self.marks[word].heads |= mark;
        let switch = input.switch;
        self.has_work(switch);
    }

    /// It does not, or no more.
    pub(super) fn asks_no_more(&mut self, at: PortVc) {
        let input = &mut self.inputs[at.port() as usize];
        input.heads &= !at.bit();
        let is_last = input.heads == 0;
        let (word, mark) = input.mark();
        self.marks[word].heads &= !(mark & u64::from(is_last).wrapping_neg());
    }

    /// Has `switch` work in the cycle that is worked off next.
    #[inline]
    fn has_work(&mut self, switch: u32) {
        if !std::mem::replace(&mut self.listed[switch as usize], true) {
            self.working.push(switch);
        }
    }

    /// The head of a packet is the first flit of a VC from the cycle `now` on.
    pub(super) fn head_comes(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let id = self.heads[self.ring(index) + self.input_vcs[index].first as usize];
        let packet = self.packets.get(id);
        let (output, class) = self.route(at, packet);
        let flits = packet.flits;
        let state = &mut self.input_vcs[index];
        state.state = State::Asking;
        let vc_at = now + u64::from(self.config.latency.routing);
        state.vc_at = vc_at;
        (state.output, state.class) = (output, class);
        (state.packet, state.left) = (id, flits);
        if !self.plain_crossbar {
            self.crossbars[index].at = vc_at;
        }
        if self.config.speculative {
            self.asks(at);
            self.is_ready(at);
        } else if self.config.latency.routing == 0 {
            self.asks(at);
        } else {
            self.routed.put(vc_at, at);
        }
    }

    /// The node of the switch of an input.
    pub(super) fn node_of(&self, input: u32) -> NodeId {
        NodeId(self.topology.hosts() + self.inputs[input as usize].switch)
    }

    /// The output by which a packet goes on that is first in a VC, [`NONE`] if there are several to choose from, and its class of VCs.
    fn route(&self, at: PortVc, packet: &Packet) -> (u32, u8) {
        let (node, link) = (self.node_of(at.port()), self.inputs[at.port() as usize].link);
        if self.by_packet {
            // There are 16 VCs at most.
            let class = at.vc() as u8 / self.vcs_of_class;
            let hop = Hop { at: node, input_link: link, class, to: packet.destination, key: packet.key };
            return self.routes.lane(&hop).map_or((NONE, 0), |(lane, _)| (self.ports.position(lane.link), lane.class));
        }
        let run = self.ways.run(self.inputs[at.port() as usize].switch, packet.destination);
        if let Some(run) = run.filter(|run| run.count == 1) {
            return (run.first.into(), 0);
        }
        let next = self.routes.next(node, link, packet.destination);
        let output = |link: &LinkId| self.ports.position(*link);
        if next.links.len() == 1 {
            return (output(&next.links[0]), next.class);
        }
        let source = self.topology.host_node((packet.key >> 40) as u32);
        match self.routes.choose(next.links.len(), node, packet.key, packet.flow, source, packet.destination) {
            Choice::Index(index) => next.links.get(index).map_or((NONE, 0), |link| (output(link), next.class)),
            Choice::ByCredits => (NONE, next.class),
        }
    }

    /// A credit of a VC of an output counts from now on.
    pub(super) fn credit_comes(&mut self, to: PortVc, now: u64) {
        let index = self.index(to);
        let had = self.output_vcs[index].credits;
        let has = self.count_credits(to, now);
        let owner = self.output_vcs[index].owner;
        if let Some(at) = owner.of_input() {
            if had == 0 && has > 0 {
                self.has_credit(at, now);
            }
        } else if owner == Owner::LAST_CREDIT {
            if has == self.config.buffer {
                self.is_nobodys(to, now);
            }
        } else {
            match self.outputs[to.port() as usize].host {
                // There may be room for a packet now.
                NONE if self.cut_through => self.wake_heads(to.port(), now),
                NONE => {}
                host if self.hosts[host as usize].waits => self.wake_host(host),
                _ => {}
            }
        }
    }

    /// The packet that is first in a VC has a credit again.
    fn has_credit(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let first = self.first_slot(index);
        if first.is_gone() || !first.by(now) || self.input_vcs[index].crosses {
            return;
        }
        if !self.plain_crossbar {
            let crossbar = &mut self.crossbars[index];
            crossbar.at = not_before(crossbar.at, now, self.config.latency.switch_allocation.into());
        }
        self.is_ready(at);
    }

    /// The last flit of a packet was sent by a VC, which is free from `from` on if its credits are not waited for.
    pub(super) fn tail_sent(&mut self, to: PortVc, from: u64) {
        if self.config.wait_for_tail_credit {
            let index = self.index(to);
            self.output_vcs[index].owner = Owner::LAST_CREDIT;
        } else {
            self.is_nobodys(to, from);
        }
    }

    /// A VC of an output is nobody's from `from` on.
    fn is_nobodys(&mut self, to: PortVc, from: u64) {
        let index = self.index(to);
        self.output_vcs[index].owner = Owner::NOBODY;
        let output = &mut self.outputs[to.port() as usize];
        output.free |= to.bit();
        match output.host {
            NONE => self.wake_heads(to.port(), from),
            host if self.hosts[host as usize].waits => self.wake_host(host),
            _ => {}
        }
    }

    /// Heads that wait for a VC of `output` ask again, at `from` at the earliest.
    fn wake_heads(&mut self, output: u32, from: u64) {
        if self.waiting[output as usize].is_empty() {
            return;
        }
        let latency = self.config.latency.vc_allocation.into();
        let mut waiting = std::mem::take(&mut self.waiting[output as usize]);
        for at in waiting.drain(..) {
            let index = self.index(at);
            let state = &mut self.input_vcs[index];
            // Where it waited for others, too, it may have been given one of them.
            if state.state == State::Asking {
                state.vc_at = not_before(state.vc_at, from, latency);
                self.asks(at);
            }
        }
        self.waiting[output as usize] = waiting;
    }
}
