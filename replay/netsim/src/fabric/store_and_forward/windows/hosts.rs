//! Hosts: their messages, cut into packets as their link takes them.

use std::hint::{black_box, select_unpredictable};
use std::ops::Range;

use super::due::{Due, WORD};
use super::hop::Hop;
use super::port::{OutPort, Ports};
use super::shared::Shared;
use super::waits::Waits;
use crate::count::count;
use crate::fabric::messages::{key, packets_of};
use crate::fabric::packet::Message;
use crate::fabric::windows::{HostMessages, PartObserver};
use crate::kernel::take_lowest;
use crate::network::{HostIndex, Token};
use crate::time::SimTime;
use crate::topology::NodeId;

/// Hosts of which nothing is read ahead: what fewer need is in the cache anyway.
const HOSTS_OF_A_CACHE: usize = 1 << 12;

/// A message that is being cut into packets.
#[derive(Clone, Copy)]
struct Sending {
    handed_over: SimTime,
    message: Message,
    /// Whether there is a packet of it already.
    begun: bool,
}

/// A message of which packets are still to be sent.
#[derive(Clone, Copy)]
struct Waiting {
    of: Sending,
    /// Payload that is in no packet yet.
    rest: u64,
}

/// The hosts of one part.
pub(super) struct Hosts<M> {
    nodes: Range<u32>,
    messages: M,
    pub ports: Ports,
    /// The messages that wait for each host's link.
    waiting: Waits<Waiting>,
    /// The windows in which hosts have something to do.
    due: Due,
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
        let mut made = Self { messages, ports, waiting: Waits::new(hosts), due: Due::new(hosts), waited: 0, nodes };
        for (place, node) in (0..).zip(made.nodes.clone()) {
            if let Some(at) = made.messages.next_time(shared.host_of(NodeId(node))) {
                made.due.put(shared.window_of(at).0, place);
            }
        }
        made
    }

    /// Forgets what hosts have still to send.
    pub fn forget_messages(&mut self) {
        self.waiting = Waits::new(0);
        self.due = Due::new(0);
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
        let reads_ahead = self.nodes.len() > HOSTS_OF_A_CACHE;
        for word in 0..self.due.words() {
            let mut bits = self.due.take(window, word);
            if reads_ahead && bits & bits.wrapping_sub(1) != 0 {
                self.read_ahead(shared, word * WORD, bits);
            }
            while let Some(bit) = take_lowest(&mut bits) {
                self.run_host(shared, word * WORD + bit as usize, (window, end), observer, output);
            }
        }
    }

    /// Brings what the hosts of a word need into the cache, many at a time.
    #[inline]
    fn read_ahead(&self, shared: &Shared, first: usize, mut bits: u64) {
        let (mut free, mut next, mut rest) = (0, 0, 0);
        while let Some(bit) = take_lowest(&mut bits) {
            let place = first + bit as usize;
            free ^= self.ports.free(place).0;
            rest ^= self.waiting.first(place).map_or(0, |waiting| waiting.rest);
            next ^= self.messages.next_time(shared.host_of(self.node(place))).map_or(0, |at| at.0);
        }
        black_box((free, next, rest));
    }

    #[inline]
    fn node(&self, place: usize) -> NodeId {
        NodeId(self.nodes.start + count(place))
    }

    /// What the host at `place` does in a window until `end`.
    #[inline]
    fn run_host<O: PartObserver>(
        &mut self,
        shared: &Shared,
        place: usize,
        (window, end): (u64, SimTime),
        observer: &mut O,
        output: &mut impl HostOutput,
    ) {
        let host = shared.host_of(self.node(place));
        let mut next_packet = None;
        while let Some(first) = self.waiting.first(place).copied() {
            let mut first = first;
            next_packet = self.send(shared, place, host, &mut first, end, output);
            if next_packet.is_some() {
                self.waiting.set_first(place, first);
                break;
            }
            self.waiting.pop(place);
        }
        let next_message = loop {
            let next = self.messages.next_time(host);
            let Some(at) = next.filter(|at| *at < end) else { break next };
            let Some(message) = self.messages.take(host) else { continue };
            observer.handed_over(at, &message);
            let packets = packets_of(message.bytes, shared.mtu);
            let of = Sending { handed_over: at, message, begun: false };
            if packets == 1 && next_packet.is_none() && self.ports.free(place).max(at) < end {
                self.send_packet(shared, place, host, &of, message.bytes, output);
                continue;
            }
            if packets > 1 {
                output.opened(shared, shared.node_of(message.destination), message.token, packets);
            }
            let mut waiting = Waiting { of, rest: message.bytes };
            if next_packet.is_none() {
                next_packet = self.send(shared, place, host, &mut waiting, end, output);
            }
            if next_packet.is_some() {
                self.waiting.push(place, waiting);
            }
        };
        let [message, packet] = [next_message, next_packet].map(|next| next.unwrap_or(SimTime::MAX));
        let next = select_unpredictable(message < packet, message, packet);
        if next < SimTime::MAX {
            let (window, _) = shared.window_after(window, shared.begin(window), next);
            self.due.put(window, count(place));
        }
    }

    /// Cuts the packets of a message that begin to leave before `end`. Returns when the next one does; `None`: there are no more.
    fn send(
        &mut self,
        shared: &Shared,
        place: usize,
        host: HostIndex,
        waiting: &mut Waiting,
        end: SimTime,
        output: &mut impl HostOutput,
    ) -> Option<SimTime> {
        loop {
            let start = self.ports.free(place).max(waiting.of.handed_over);
            if start >= end {
                return Some(start);
            }
            self.send_packet(shared, place, host, &waiting.of, waiting.rest, output);
            waiting.of.begun = true;
            waiting.rest -= waiting.rest.min(shared.mtu);
            if waiting.rest == 0 {
                return None;
            }
        }
    }

    /// Cuts a packet off the `rest` bytes of a message, as soon as the link is free.
    #[inline(always)]
    fn send_packet(
        &mut self,
        shared: &Shared,
        place: usize,
        host: HostIndex,
        &Sending { handed_over, message, begun }: &Sending,
        rest: u64,
        output: &mut impl HostOutput,
    ) {
        let free = self.ports.free(place);
        self.waited += u64::from(begun || free > handed_over);
        let bytes = shared.packet_bytes(rest);
        let number = self.ports.packets(place);
        let passage = self.ports.send(place, free.max(handed_over), bytes);
        let port = self.ports.get(place);
        let hop = Hop {
            offset: 0,
            node: port.to,
            link: port.link,
            destination: shared.node_of(message.destination),
            bytes,
            switches: 0,
            flow: message.flow,
            handed_over,
            left: passage.started,
            key: key(host, number),
            token: message.token,
        };
        output.leaves(shared, port, passage.arrives, hop);
    }
}
