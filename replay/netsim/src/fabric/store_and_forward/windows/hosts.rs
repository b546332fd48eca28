//! Hosts: their messages, cut into packets as their link takes them.

use std::collections::VecDeque;
use std::ops::Range;

use super::calendar::Calendar;
use super::hop::Hop;
use super::port::{OutPort, Ports};
use super::shared::Shared;
use crate::fabric::messages::{key, packets_of};
use crate::fabric::packet::Message;
use crate::fabric::windows::{HostMessages, PartObserver};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;
use crate::topology::NodeId;

/// A message of which packets are still to be sent.
#[derive(Clone, Copy)]
struct Waiting {
    handed_over: SimTime,
    message: Message,
    /// Payload that is in no packet yet.
    rest: u64,
    begun: bool,
}

/// What a host has still to send.
#[derive(Clone, Default)]
#[repr(align(64))]
struct HostState {
    queue: VecDeque<Waiting>,
    /// How many packets it has cut.
    packets: u64,
}

/// The hosts of one part.
pub(super) struct Hosts<M> {
    nodes: Range<u32>,
    messages: M,
    pub ports: Ports,
    states: Vec<HostState>,
    /// The windows in which hosts have something to do.
    due: Calendar<u32>,
    order: Vec<u32>,
    /// Packets that waited for their link: an event each.
    pub waited: u64,
}

/// What hosts do in a window goes here.
pub(super) trait HostOutput {
    /// A packet has begun to leave; it `arrives` at the other end of the port's link.
    fn leaves(&mut self, shared: &Shared, port: &OutPort, arrives: SimTime, hop: Hop);

    /// A message of several packets is under way.
    fn opened(&mut self, shared: &Shared, destination: NodeId, token: Token, packets: u64);
}

impl<M: HostMessages> Hosts<M> {
    pub fn new(shared: &Shared, nodes: Range<u32>, messages: M) -> Self {
        let hosts = nodes.len();
        let ports = Ports::new(shared, nodes.clone().map(|node| shared.topology.uplink(NodeId(node))));
        let mut made = Self {
            messages,
            ports,
            states: vec![HostState::default(); hosts],
            due: Calendar::new(1),
            order: Vec::new(),
            waited: 0,
            nodes,
        };
        for node in made.nodes.clone() {
            if let Some(at) = made.messages.next_time(shared.host_of(NodeId(node))) {
                made.due.push(shared.window_of(at).0, 0, node);
            }
        }
        made
    }

    /// Forgets what hosts have still to send.
    pub fn forget_messages(&mut self) {
        self.states = Vec::new();
        self.due = Calendar::new(0);
    }

    /// The first window from `from` on in which a host has something to do.
    pub fn next_window(&self, from: u64) -> Option<u64> {
        self.due.next_window(from)
    }

    /// What the hosts do from the begin of `window` until `end`.
    pub fn run<O: PartObserver>(
        &mut self,
        shared: &Shared,
        window: u64,
        end: SimTime,
        observer: &mut O,
        output: &mut impl HostOutput,
    ) {
        self.due.turn_to(window);
        let due = self.due.take(window, 0);
        // One behind the other in memory.
        self.order.clear();
        self.order.extend(due.iter().copied());
        self.due.recycle(due);
        self.order.sort_unstable();
        let places = || self.order.iter().map(|node| (node - self.nodes.start) as usize);
        self.ports.prefetch(places());
        std::hint::black_box(places().fold(0, |sum: u64, place| sum.wrapping_add(self.states[place].packets)));
        let nexts = self.order.iter().map(|node| self.messages.next_time(shared.host_of(NodeId(*node))));
        std::hint::black_box(nexts.flatten().fold(0, |sum, at| sum ^ at.0));
        let order = std::mem::take(&mut self.order);
        for node in &order {
            self.run_host(shared, NodeId(*node), end, observer, output);
        }
        self.order = order;
    }

    fn run_host<O: PartObserver>(
        &mut self,
        shared: &Shared,
        node: NodeId,
        end: SimTime,
        observer: &mut O,
        output: &mut impl HostOutput,
    ) {
        let host = shared.host_of(node);
        let place = (node.0 - self.nodes.start) as usize;
        let mut next_packet = None;
        while let Some(first) = self.states[place].queue.front().copied() {
            let mut first = first;
            next_packet = self.send(shared, place, host, &mut first, end, output);
            if next_packet.is_some() {
                self.states[place].queue[0] = first;
                break;
            }
            self.states[place].queue.pop_front();
        }
        let next_message = loop {
            let next = self.messages.next_time(host);
            let Some(at) = next.filter(|at| *at < end) else { break next };
            let Some(message) = self.messages.take(host) else { continue };
            observer.handed_over(at, &message);
            let packets = packets_of(message.bytes, shared.mtu);
            if packets > 1 {
                output.opened(shared, shared.node_of(message.destination), message.token, packets);
            }
            let mut waiting = Waiting { handed_over: at, rest: message.bytes, message, begun: false };
            if next_packet.is_none() {
                next_packet = self.send(shared, place, host, &mut waiting, end, output);
            }
            if next_packet.is_some() {
                self.states[place].queue.push_back(waiting);
            }
        };
        if let Some(next) = next_message.into_iter().chain(next_packet).min() {
            self.due.push(shared.window_of(next).0, 0, node.0);
        }
    }

    /// Cuts the packets of a message that begin to leave before `end`. Returns when the next one does; `None`: there are no more.
    fn send(
        &mut self,
        shared: &Shared,
        place: usize,
        host: HostIndex,
        message: &mut Waiting,
        end: SimTime,
        output: &mut impl HostOutput,
    ) -> Option<SimTime> {
        loop {
            let free = self.ports.free(place);
            let start = free.max(message.handed_over);
            if start >= end {
                return Some(start);
            }
            self.waited += u64::from(message.begun || free > message.handed_over);
            let bytes = shared.packet_bytes(message.rest);
            let passage = self.ports.send(place, start, bytes);
            let port = self.ports.get(place);
            let state = &mut self.states[place];
            let hop = Hop {
                offset: 0,
                node: port.to,
                link: port.link,
                destination: shared.node_of(message.message.destination),
                bytes,
                switches: 0,
                flow: message.message.flow,
                handed_over: message.handed_over,
                left: passage.started,
                key: key(host, state.packets),
                token: message.message.token,
            };
            state.packets += 1;
            message.begun = true;
            message.rest -= message.rest.min(shared.mtu);
            output.leaves(shared, port, passage.arrives, hop);
            if message.rest == 0 {
                return None;
            }
        }
    }
}
