//! What comes over links: flits, which join queues, and credits. Whoever waits for that is told.

use super::InputQueued;
use super::state::{Flit, Owner, PortVc, State, not_before};
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ports::NONE;
use crate::fabric::packet::Observer;
use crate::routing::{Choice, Hop};
use crate::topology::{LinkId, NodeId};

impl<O: Observer> InputQueued<O> {
    /// A flit has come to the end of a link at a switch.
    pub(super) fn flit_arrives(&mut self, at: PortVc, flit: Flit, now: u64) {
        let index = self.index(at);
        let buffer = self.config.buffer;
        let state = &mut self.input_vcs[index];
        let place = state.first + state.flits;
        let place = if place >= buffer { place - buffer } else { place };
        state.flits += 1;
        self.queues[index * buffer as usize + place as usize] = flit;
        match state.state {
            State::Idle => self.head_comes(at, now),
            State::Active if state.flits == 1 => {
                state.crossbar_at = state.crossbar_at.max(now);
                let given = state.given;
                if self.output_vcs[self.index(given)].credits > 0 {
                    self.is_ready(at);
                }
            }
            _ => {}
        }
    }

    /// The first flit of a VC may ask for the crossbar.
    pub(super) fn is_ready(&mut self, at: PortVc) {
        let end = &mut self.ends[at.port() as usize];
        end.ready |= at.bit();
        let switch = end.switch;
        self.has_work(switch);
    }

    /// Has `switch` work in the cycle that is worked off next.
    fn has_work(&mut self, switch: u32) {
        if !std::mem::replace(&mut self.listed[switch as usize], true) {
            self.working.push(switch);
        }
    }

    /// The head of a packet is the first flit of a VC from the cycle `now` on.
    pub(super) fn head_comes(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let state = &self.input_vcs[index];
        let id = self.queues[index * self.config.buffer as usize + state.first as usize].packet();
        let packet = self.packets.get(id);
        let (output, class) = self.route(at, packet);
        let room = if self.cut_through { packet.flits } else { 0 };
        let state = &mut self.input_vcs[index];
        state.state = State::Asking;
        state.vc_at = now + u64::from(self.config.latency.routing);
        state.crossbar_at = state.vc_at;
        (state.output, state.class, state.room) = (output, class, room);
        let end = &mut self.ends[at.port() as usize];
        end.heads |= at.bit();
        if self.config.speculative {
            end.ready |= at.bit();
        }
        let switch = end.switch;
        self.has_work(switch);
    }

    /// The node of the switch of an input.
    pub(super) fn node_of(&self, input: u32) -> NodeId {
        NodeId(self.topology.hosts() + self.ends[input as usize].switch)
    }

    /// The output by which a packet goes on that is first in a VC, [`NONE`] if there are several to choose from, and its class of VCs.
    fn route(&self, at: PortVc, packet: &Packet) -> (u32, u8) {
        let (node, link) = (self.node_of(at.port()), self.ends[at.port() as usize].link);
        if self.by_packet {
            // There are 16 VCs at most.
            let class = at.vc() as u8 / self.vcs_of_class;
            let hop = Hop { at: node, input_link: link, class, to: packet.destination, key: packet.key };
            return self.routes.lane(&hop).map_or((NONE, 0), |(lane, _)| (self.ports.position(lane.link), lane.class));
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

    /// The credit of a flit that has left the end of a link goes back to its sender.
    pub(super) fn credit_back(&mut self, at: PortVc, now: u64) {
        let end = &self.ends[at.port() as usize];
        self.credits.put(now + end.credit_delay, PortVc::new(end.sender, at.vc()));
    }

    /// A credit of a VC of an output counts from now on.
    pub(super) fn credit_comes(&mut self, to: PortVc, now: u64) {
        let index = self.index(to);
        let vc = &mut self.output_vcs[index];
        vc.credits += 1;
        match vc.owner {
            Owner::Input(at) if vc.credits == 1 => self.has_credit(at, now),
            Owner::Input(_) => {}
            Owner::LastCredit if vc.credits == self.config.buffer => self.is_nobodys(to, now),
            Owner::LastCredit => {}
            Owner::Nobody | Owner::Host => {
                let host = self.outputs[to.port() as usize].host;
                if host == NONE {
                    // There may be room for a packet now.
                    if self.cut_through {
                        self.wake_heads(to.port(), now);
                    }
                } else if self.hosts[host as usize].waits {
                    self.wake_host(host);
                }
            }
        }
    }

    /// The packet that is first in a VC has a credit again.
    fn has_credit(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let state = &mut self.input_vcs[index];
        if state.flits > 0 && !state.crosses {
            state.crossbar_at = not_before(state.crossbar_at, now, self.config.latency.switch_allocation.into());
            self.is_ready(at);
        }
    }

    /// The last flit of a packet was sent by a VC, which is free from `from` on if its credits are not waited for.
    pub(super) fn tail_sent(&mut self, to: PortVc, from: u64) {
        if self.config.wait_for_tail_credit {
            let index = self.index(to);
            self.output_vcs[index].owner = Owner::LastCredit;
        } else {
            self.is_nobodys(to, from);
        }
    }

    /// A VC of an output is nobody's from `from` on.
    fn is_nobodys(&mut self, to: PortVc, from: u64) {
        let index = self.index(to);
        self.output_vcs[index].owner = Owner::Nobody;
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
                let end = &mut self.ends[at.port() as usize];
                end.heads |= at.bit();
                let switch = end.switch;
                self.has_work(switch);
            }
        }
        self.waiting[output as usize] = waiting;
    }
}
