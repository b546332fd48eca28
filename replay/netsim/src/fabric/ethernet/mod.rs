//! `ethernet`: store-and-forward switches with output queues and finite drop-tail buffers, and Linux' TCP at the hosts.
//!
//! A frame is received whole, queued at its output port if there is room and dropped if not, and sent on. The hosts'
//! TCP follows Linux 6: initial window 10, slow start with HyStart, CUBIC, selective acknowledgement with RACK's loss
//! detection and proportional rate reduction, tail loss probes, time-outs of at least 200 ms, delayed and quick ACKs,
//! ACKs carried by data of the other direction, slow start after idle, a receive window that grows with what comes, and
//! small queues (a flow keeps about a millisecond of data in its own host's queue). What a full host's queue refuses is
//! not lost in the network: `host_queue` says what becomes of it.
//!
//! A hand-over of 0 bytes takes one sequence number and crosses the network like TCP's SYN or FIN, so a workload can
//! model the handshake by it. A flow whose first hand-over is data was opened before, and knows the round trip that its
//! handshake took over the idle network: what is lost of its first window is repeated after about 200 ms, and after 1 s
//! a lost SYN.
//!
//! What is left out: spurious time-outs are not undone; a receiver's application reads at once; Nagle's algorithm is
//! off, as Hadoop turns it off.

mod border;
mod config;
mod crossing;
pub mod cubic;
mod flow;
mod host_queue;
mod kind;
mod numbered;
mod read_ahead;
mod receiver;
mod sender;
pub mod windows;

pub use config::EthernetConfig;

use super::FabricError;
use super::flow_packets::FlowFabric;
use super::ids::{MessageId, PacketId};
use super::instant::collect_instant;
use super::packet::{HostLinksDiffer, LinkTime, host_rate};
use super::pipe::Pipe;
use super::port::Port;
use super::slab::Slab;
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, FlowId, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token};
use crate::routing::Router;
use crate::time::SimTime;
use crate::topology::{HostPlace, Link, LinkId, NodeId, Topology};
use crate::units::Bytes;
use border::Border;
use flow::{NONE, Packet, Receiver, Refused, Sender, TcpFlow};
use numbered::Numbered;
use std::sync::Arc;

/// What statistics count as a flit: the shortest Ethernet frame.
const FLIT: Bytes = Bytes(64);
/// What is counted beside links, sent-again segments and events.
const COUNTERS: [&str; 7] = [
    "recoveries",
    "time-outs",
    "tail loss probes",
    "delayed ACKs",
    "loopback bytes",
    "segments that waited for room at their host",
    "ACKs dropped at their host",
];

#[derive(Clone, Copy)]
enum Event {
    /// A packet's last bit is at the end of its present link.
    Arrive(PacketId),
    /// A packet has left its sender's NIC, and the flow may have been waiting for that.
    NicSent(u32),
    /// A sender's timer.
    Timer(u32),
    /// A receiver's.
    DelayedAck(u32),
    /// A message is through the loopback.
    Looped(MessageId),
}

const _: () = assert!(size_of::<Event>() == 8, "events are small: a queue of many lies outside of the cache");

/// A switched Ethernet with TCP at its hosts, or a part of one.
pub struct Ethernet {
    config: EthernetConfig,
    topology: Arc<Topology>,
    router: Router,
    segment_bytes: u64,
    /// By link.
    ports: Numbered<Port>,
    /// Paths of flows one after the other, as link numbers, each closed by [`NONE`].
    paths: Vec<u32>,
    flows: Numbered<TcpFlow>,
    packets: Slab<PacketId, Packet>,
    /// Messages in the loopback.
    looped: Slab<MessageId, Token>,
    queue: EventQueue<Event>,
    /// Events until what further ones need is read.
    until_read: u32,
    resent: u64,
    timeouts: u64,
    probes: u64,
    recoveries: u64,
    delayed_acks: u64,
    looped_bytes: u64,
    refused: Refused,
    /// What is behind the edge of a part.
    border: Option<Border>,
}

/// The port in front of `link`.
fn port(config: &EthernetConfig, topology: &Topology, link: Link) -> Port {
    let is_host = |node: NodeId| node.0 < topology.hosts();
    let extra = if is_host(link.to) { config.host_delay } else { config.switch_delay };
    let buffer = if is_host(link.from) { config.host_queue } else { link.buffer };
    Port::new(Link { buffer, ..link }, extra.ps())
}

/// A message is cut into segments, each with its headers and framing; ACKs are not counted.
fn link_time(config: &EthernetConfig, topology: &Topology) -> Result<LinkTime, HostLinksDiffer> {
    let headers = Bytes(config.headers.get() + config.framing.get());
    let link = LinkTime::new(host_rate(topology)?, FLIT, Bytes(config.segment_bytes()), headers);
    Ok(LinkTime { whole_messages: true, ..link })
}

impl Ethernet {
    /// The network of `config` for `hosts`.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &EthernetConfig, hosts: &[HostPlace]) -> Result<Self, FabricError> {
        config.check()?;
        let topology = Arc::new(config.topology.build(hosts)?);
        let router = Router::of(&config.routing, &topology, config.seed)?;
        Ok(Self::on(config, topology, router, None))
    }

    /// The network of `config`, which was checked, or the part of it that has `border`.
    fn on(config: &EthernetConfig, topology: Arc<Topology>, router: Router, border: Option<Border>) -> Self {
        let numbered = (0u32..).zip(topology.links());
        let ports = match &border {
            None => Numbered::all(numbered.map(|(_, link)| port(config, &topology, link)).collect()),
            Some(border) => {
                let mut ports = Numbered::of_part();
                for (number, link) in numbered.filter(|(number, _)| border.begins_here(LinkId(*number).back().0)) {
                    ports.insert(number, port(config, &topology, link));
                }
                ports
            }
        };
        let frame = config.mtu.get() + config.framing.get();
        // Arrivals are scheduled when a packet is queued, so the wheel spans a full buffer of the slowest link.
        let slowest = topology.links().iter().map(|link| link.rate.time_ps(frame) + link.delay_ps).max();
        let horizon = slowest.unwrap_or(0).saturating_mul(256).max(config.host_delay.ps().saturating_mul(4));
        Self {
            segment_bytes: config.segment_bytes(),
            router,
            topology,
            ports,
            paths: Vec::new(),
            flows: if border.is_some() { Numbered::of_part() } else { Numbered::all(Vec::new()) },
            packets: Slab::default(),
            looped: Slab::default(),
            queue: EventQueue::new(horizon),
            until_read: 0,
            resent: 0,
            timeouts: 0,
            probes: 0,
            recoveries: 0,
            delayed_acks: 0,
            looped_bytes: 0,
            refused: Refused::default(),
            config: config.clone(),
            border,
        }
    }

    /// Bytes on the wire of a segment with `len` bytes of data.
    fn wire_bytes(&self, len: u64) -> u32 {
        self.config.wire_bytes(len)
    }

    /// The place whose events are those of `flow`: flows are numbered behind the links.
    fn flow_place(&self, flow: u32) -> Place {
        Place(count(self.topology.links().len()).wrapping_add(flow))
    }

    fn add_path(&mut self, source: u32, destination: u32, flow: u64) -> u32 {
        let start = count(self.paths.len());
        let (from, to) = (self.topology.host_node(source), self.topology.host_node(destination));
        let mut path: Vec<LinkId> = Vec::new();
        self.router.way(&self.topology, from, to, flow, &mut path);
        self.paths.extend(path.iter().map(|link| link.0));
        self.paths.push(NONE);
        start
    }

    /// What SYN and SYN-ACK of `flow` take when nothing else is under way.
    fn handshake_ps(&self, flow: u32) -> u64 {
        let entry = &self.flows[flow];
        let links = [entry.path, entry.ack_path]
            .into_iter()
            .flat_map(|path| self.paths[path as usize..].iter().take_while(|link| **link != NONE));
        links.map(|link| self.idle_ps(*link)).sum()
    }

    /// What a frame without data takes on a link when nothing else is under way.
    fn idle_ps(&self, link: u32) -> u64 {
        // Also of links that begin in another part.
        port(&self.config, &self.topology, self.topology.link(LinkId(link))).idle_ps(self.wire_bytes(0))
    }

    fn add_flow(&mut self, source: HostIndex, destination: HostIndex) -> u32 {
        let id = count(self.flows.len());
        let loops = source == destination;
        let path = if loops { 0 } else { self.add_path(source.0, destination.0, u64::from(id)) };
        let flow = self.new_flow(path, loops);
        self.flows.insert(id, flow);
        id
    }

    /// A flow whose path begins there in the table of paths.
    fn new_flow(&self, path: u32, loops: bool) -> TcpFlow {
        let window = self.config.receive_window.get();
        TcpFlow {
            path,
            ack_path: NONE,
            peer: NONE,
            loopback: loops.then(Pipe::default),
            sender: Sender::new(self.config.initial_window.into(), window),
            receiver: Receiver::new(window, self.config.quick_acks),
        }
    }

    /// Puts a packet into its host's queue. Returns when it leaves; `None` if there is no room.
    fn launch(&mut self, now: SimTime, packet: Packet) -> Option<SimTime> {
        let link = self.paths[packet.at as usize];
        let port = &mut self.ports[link];
        // Not offered without room: the link counts what the network loses.
        let passage =
            port.has_room(now, packet.wire).then(|| port.offer(now, packet.wire, self.config.interval.ps()))??;
        self.cross(link, passage.arrives, packet);
        Some(passage.sent)
    }

    /// A packet is at the end of a link: on to the next one, or in.
    fn arrive(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.get_mut(id);
        packet.at += 1;
        let link = self.paths[packet.at as usize];
        if link == NONE {
            let packet = self.packets.remove(id);
            self.arrived(now, &packet, deliveries);
            return;
        }
        let wire = packet.wire;
        match self.ports[link].offer(now, wire, self.config.interval.ps()) {
            Some(passage) if self.border.as_ref().is_some_and(|border| border.ends_elsewhere(link)) => {
                let packet = self.packets.remove(id);
                self.cross(link, passage.arrives, packet);
            }
            Some(passage) => self.queue.schedule(passage.arrives, Phase::Arrive, Place(link), Event::Arrive(id)),
            None => {
                self.packets.remove(id);
            }
        }
    }

    /// Bytes are handed over to be sent. Returns where they end in their flow.
    fn write(&mut self, flow: u32, bytes: u64) -> u64 {
        let sender = &mut self.flows[flow].sender;
        let was_open = bytes > 0 && sender.written == 0 && sender.round_trip.smoothed == 0;
        // Like SYN and FIN, what carries no data takes one sequence number.
        sender.written += bytes.max(1);
        let end = sender.written;
        if was_open {
            let sample = self.handshake_ps(flow).max(1);
            self.flows[flow].sender.round_trip.measure(sample);
        }
        end
    }

    fn process(&mut self, now: SimTime, event: Event, deliveries: &mut Vec<Delivery>) {
        self.read_ahead();
        match event {
            Event::Arrive(id) => self.arrive(now, id, deliveries),
            Event::NicSent(flow) => {
                self.flows[flow].sender.nic_event = false;
                self.try_send(now, flow);
            }
            Event::Timer(flow) => self.timer(now, flow),
            Event::DelayedAck(flow) => self.delayed_ack(now, flow),
            Event::Looped(id) => deliveries.push(Delivery { token: self.looped.remove(id), at: now }),
        }
    }
}

impl Simulation for Ethernet {
    fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        collect_instant(self, until, deliveries, |network| &mut network.queue, Self::process)
    }

    fn events(&self) -> u64 {
        self.queue.processed()
    }

    fn figures(&self) -> NetworkFigures {
        let numbers = 0..count(self.topology.links().len());
        NetworkFigures {
            events: self.queue.processed(),
            retransmissions: self.resent,
            ..self.figures_of(numbers.map(|link| self.link_figures(link)).collect(), self.counters())
        }
    }
}

impl Ethernet {
    /// Figures of such links and counters, but for what hosts sent again and for events.
    fn figures_of(&self, links: Vec<LinkFigures>, counters: [u64; COUNTERS.len()]) -> NetworkFigures {
        NetworkFigures {
            drops: links.iter().map(|link| link.drops).sum(),
            interval_ps: self.config.interval.ps(),
            links,
            counters: COUNTERS.into_iter().map(str::to_owned).zip(counters).collect(),
            ..NetworkFigures::default()
        }
    }

    /// Of a link that begins here.
    fn link_figures(&self, link: u32) -> LinkFigures {
        let id = LinkId(link);
        self.ports[link].meter.figures(&self.topology.link_name(id), self.topology.link(id).used_rate())
    }

    /// In the order of [`COUNTERS`].
    const fn counters(&self) -> [u64; COUNTERS.len()] {
        [
            self.recoveries,
            self.timeouts,
            self.probes,
            self.delayed_acks,
            self.looped_bytes,
            self.refused.segments,
            self.refused.acks,
        ]
    }
}

impl Network for Ethernet {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let id = self.add_flow(source, destination);
        if source != destination {
            self.flows[id].ack_path = self.add_path(destination.0, source.0, u64::from(id));
        }
        FlowId(id)
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        let (there, back) = (self.add_flow(client, server), self.add_flow(server, client));
        for (flow, peer) in [(there, back), (back, there)] {
            self.flows[flow].ack_path = self.flows[peer].path;
            self.flows[flow].peer = peer;
        }
        (FlowId(there), FlowId(back))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        let flow = flow.0;
        let place = self.flow_place(flow);
        let entry = &mut self.flows[flow];
        if let Some(pipe) = &mut entry.loopback {
            let at = pipe.hand_over(now, bytes, &self.config.loopback);
            self.looped_bytes += bytes;
            let id = self.looped.insert(token);
            self.queue.schedule(at, Phase::Arrive, place, Event::Looped(id));
            return;
        }
        let end = self.write(flow, bytes);
        self.flows[flow].receiver.marks.push_back((end, token));
        self.try_send(now, flow);
    }
}

impl FlowFabric for Ethernet {
    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        link_time(&self.config, &self.topology)
    }

    fn switches(&self, flow: FlowId) -> u32 {
        let path = &self.paths[self.flows[flow.0].path as usize..];
        count(path.iter().take_while(|link| **link != NONE).count().saturating_sub(1))
    }

    fn link_bytes(&self, now: SimTime) -> Vec<u64> {
        self.ports.iter().map(|port| port.begun_bytes(now)).collect()
    }
}
