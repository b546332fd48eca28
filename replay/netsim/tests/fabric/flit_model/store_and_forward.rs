//! The fabric `store-and-forward`, packet by packet.

use super::fault::Fault;
use super::routing::{Labels, rule};
use super::timeline::Timeline;
use super::traffic::{Dropped, Seen, Sending, When, answers};
use super::{bits, bps, cut, t};
use netsim::fabric::packet::{Observer, PacketRecord};
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::kernel::{Place, tie};
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use netsim::units::Buffer;
use std::collections::VecDeque;

/// The steps of an instant: links go on before packets are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Packets that are offered too early, by a fault.
    TooEarly,
    /// Links become free and go on with what waits.
    Free,
    /// Messages that are handed over at a time.
    HandOver,
    /// Packets arrive.
    Arrive,
    /// Packets that were noted to be offered are put into their order, and offered.
    Offer,
    /// Messages of which all packets were delivered in this instant, and the answers to them.
    Deliver,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A message is handed over to its source host.
    HandOver { message: usize },
    /// The packet on a link has left.
    Left { link: usize },
    /// A packet has arrived at the end of a link.
    Arrives { link: usize, packet: usize },
    /// A packet that came by a link is to be offered to its output.
    Wants { link: usize, packet: usize },
    /// All packets of this instant are offered.
    Offer,
    /// Messages were delivered.
    Deliver,
}

struct Packet {
    message: usize,
    source: u32,
    destination: u32,
    number: u64,
    flow: u64,
    bytes: u32,
    handed_over: SimTime,
    left: SimTime,
    switches: u32,
}

/// A link with the queue in front of it.
struct Link {
    on_link: Option<usize>,
    free_since: Option<SimTime>,
    remainder: u128,
    waiting: VecDeque<usize>,
}

struct Model<'a> {
    config: &'a StoreAndForwardConfig,
    topology: &'a Topology,
    routes: Routes,
    traffic: &'a [Sending],
    fault: Option<Fault>,
    now: SimTime,
    timeline: Timeline<Step, Happening>,
    links: Vec<Link>,
    packets: Vec<Packet>,
    /// Each host's number of packets so far.
    numbers: Vec<u64>,
    /// Each message's packets that have not arrived.
    missing: Vec<u64>,
    /// Messages of which all packets arrived in this instant.
    complete: Vec<usize>,
    /// What is offered in this instant: the link by which it came, and the packet.
    offered: Vec<(usize, usize)>,
    seen: Seen,
}

/// What happens to `traffic`.
pub fn play(config: &StoreAndForwardConfig, topology: &Topology, traffic: &[Sending], fault: Option<Fault>) -> Seen {
    let link = || Link { on_link: None, free_since: None, remainder: 0, waiting: VecDeque::new() };
    let mut model = Model {
        config,
        topology,
        routes: Routes::new(&config.routing, topology, config.seed).expect("the routing fits"),
        traffic,
        fault,
        now: SimTime::ZERO,
        timeline: Timeline::new(),
        links: topology.links().iter().map(|_| link()).collect(),
        packets: Vec::new(),
        numbers: vec![0; topology.hosts() as usize],
        missing: vec![0; traffic.len()],
        complete: Vec::new(),
        offered: Vec::new(),
        seen: Seen::default(),
    };
    for (message, sending) in traffic.iter().enumerate() {
        if let When::At(time) = sending.when {
            model.note(SimTime(time), Step::HandOver, Happening::HandOver { message });
        }
    }
    while let Some(now) = model.timeline.next_instant() {
        model.now = now;
        while let Some(happening) = model.timeline.take(now) {
            model.happen(happening);
        }
    }
    model.seen.sorted()
}

impl Model<'_> {
    fn note(&mut self, time: SimTime, step: Step, happening: Happening) {
        self.timeline.note(time, step, happening);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::HandOver { message } => self.hand_over(message),
            Happening::Left { link } => self.left(link),
            Happening::Arrives { link, packet } => self.arrives(link, packet),
            Happening::Wants { link, packet } => {
                self.offered.push((link, packet));
                let early = self.fault == Some(Fault::OfferedBeforeLinksGoOn);
                self.note(self.now, if early { Step::TooEarly } else { Step::Offer }, Happening::Offer);
            }
            Happening::Offer => self.offer_all(),
            Happening::Deliver => self.deliver(),
        }
    }

    // Hosts

    fn hand_over(&mut self, message: usize) {
        let sending = self.traffic[message];
        let node = self.topology.host_node(sending.source);
        let link = self.topology.out(node)[0].0 as usize;
        let lengths = cut(sending.bytes, self.config.mtu.get(), self.config.headers.get());
        self.missing[message] = lengths.len() as u64;
        for bytes in lengths {
            let number = &mut self.numbers[sending.source as usize];
            self.packets.push(Packet {
                message,
                source: sending.source,
                destination: sending.destination,
                number: *number,
                flow: sending.flow,
                bytes,
                handed_over: self.now,
                left: SimTime::ZERO,
                switches: 0,
            });
            *number += 1;
            // A host's queue is unlimited.
            self.offer(link, self.packets.len() - 1, Buffer::Unlimited);
        }
    }

    fn packet_delivered(&mut self, packet: usize) {
        let delivered = &self.packets[packet];
        let flits = u64::from(delivered.bytes).div_ceil(self.config.flit.get());
        self.seen.delivered(&PacketRecord {
            handed_over: delivered.handed_over,
            left: delivered.left,
            arrived: self.now,
            source: HostIndex(delivered.source),
            destination: HostIndex(delivered.destination),
            number: delivered.number,
            bytes: delivered.bytes,
            flits: u32::try_from(flits).unwrap(),
            switches: delivered.switches,
            token: Token(delivered.message as u64),
        });
        let message = delivered.message;
        self.missing[message] -= 1;
        if self.missing[message] == 0 {
            self.complete.push(message);
            self.note(self.now, Step::Deliver, Happening::Deliver);
        }
    }

    /// The messages of an instant, in the order of their tokens, and what is handed over because of them.
    fn deliver(&mut self) {
        self.complete.sort_unstable();
        for message in std::mem::take(&mut self.complete) {
            self.seen.deliveries.push(Delivery { token: Token(message as u64), at: self.now });
            for (answer, think) in answers(self.traffic, message) {
                let step = if think == 0 { Step::Deliver } else { Step::HandOver };
                self.note(self.now.plus_ps(think), step, Happening::HandOver { message: answer });
            }
        }
    }

    // Switches

    fn arrives(&mut self, link: usize, packet: usize) {
        let node = self.topology.link(LinkId::from(link)).to;
        if node.0 < self.topology.hosts() {
            self.packet_delivered(packet);
            return;
        }
        self.packets[packet].switches += 1;
        let delay = if self.fault == Some(Fault::SwitchDelayForgotten) { 0 } else { self.config.switch_delay.ps() };
        let early = self.fault == Some(Fault::OfferedBeforeLinksGoOn);
        let step = if early { Step::TooEarly } else { Step::Arrive };
        self.note(self.now.plus_ps(delay), step, Happening::Wants { link, packet });
    }

    /// Offers what is offered in this instant, in the order of `tie(time, link it input_link by)`.
    fn offer_all(&mut self) {
        let mut offered = std::mem::take(&mut self.offered);
        let number = |link: usize| u32::try_from(link).unwrap();
        if self.fault == Some(Fault::TiesByLink) {
            offered.sort_by_key(|(input_link, _)| *input_link);
        } else {
            offered.sort_by_key(|(input_link, _)| tie(self.now, Place(number(*input_link))));
        }
        for (input_link, packet) in offered {
            let node = self.topology.link(LinkId::from(input_link)).to;
            let link = self.way(node, LinkId(number(input_link)), packet);
            self.offer(link, packet, self.topology.link(LinkId::from(link)).buffer);
        }
    }

    /// The link by which a packet goes on at a switch.
    fn way(&self, node: NodeId, input_link: LinkId, packet: usize) -> usize {
        let packet = &self.packets[packet];
        let destination = self.topology.host_node(packet.destination);
        let links = self.routes.next(node, input_link, destination).links;
        let labels = Labels {
            key: (u64::from(packet.source) << 40) + packet.number,
            flow: packet.flow,
            source: self.topology.host_node(packet.source),
            destination,
        };
        rule(&self.config.routing, &self.routes, self.config.seed, node, links, &labels).0 as usize
    }

    // Queues and links

    fn offer(&mut self, link: usize, packet: usize, buffer: Buffer) {
        if self.links[link].on_link.is_none() && self.links[link].waiting.is_empty() {
            self.start(link, packet);
        } else if self.has_room(link, packet, buffer) {
            self.links[link].waiting.push_back(packet);
        } else {
            let Packet { source, number, message, .. } = self.packets[packet];
            let lost = Dropped { source: HostIndex(source), number, at: self.now, token: message as u64 };
            self.seen.dropped.push(lost);
        }
    }

    /// Whether a packet may wait for `link`; the packet on the link is not counted.
    fn has_room(&self, link: usize, packet: usize, buffer: Buffer) -> bool {
        let bytes = |packet: &usize| u64::from(self.packets[*packet].bytes);
        let link = &self.links[link];
        let counted = link.on_link.filter(|_| self.fault == Some(Fault::PacketOnLinkCounts));
        let one_more = u64::from(self.fault == Some(Fault::RoomForOneMore));
        let waiting = link.waiting.iter().copied().chain(counted).chain([packet]);
        match buffer {
            Buffer::Packets(most) => waiting.count() as u64 <= u64::from(most) + one_more,
            Buffer::Bytes(most) => waiting.map(|packet| bytes(&packet)).sum::<u64>() <= most + one_more,
            Buffer::Unlimited => true,
        }
    }

    fn start(&mut self, link: usize, packet: usize) {
        if self.topology.link(LinkId::from(link)).from.0 < self.topology.hosts() {
            self.packets[packet].left = self.now;
        }
        let rate = bps(self.topology.link(LinkId::from(link)).rate);
        let b = bits(self.packets[packet].bytes.into());
        let state = &mut self.links[link];
        // A link that starts at the very instant at which it becomes free goes on with its remainder.
        let goes_on = match self.fault {
            Some(Fault::RemainderDropped) => false,
            Some(Fault::RemainderKept) => true,
            _ => state.free_since == Some(self.now),
        };
        let remainder = if goes_on { state.remainder } else { 0 };
        let after = t(1, b, remainder, rate, 0);
        state.remainder = (b + remainder) % rate;
        state.on_link = Some(packet);
        self.note(self.now.plus_ps(after), Step::Free, Happening::Left { link });
    }

    fn left(&mut self, link: usize) {
        let state = &mut self.links[link];
        let packet = state.on_link.take().expect("a packet was on the link");
        state.free_since = Some(self.now);
        let next = state.waiting.pop_front();
        let delay = self.topology.link(LinkId::from(link)).delay_ps;
        self.note(self.now.plus_ps(delay), Step::Arrive, Happening::Arrives { link, packet });
        if let Some(next) = next {
            self.start(link, next);
        }
    }
}
