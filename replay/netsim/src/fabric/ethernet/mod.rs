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

mod cubic;
mod flow;
mod host_queue;
mod read_ahead;
mod receiver;
mod sender;

use super::flow_packets::{FlowFabric, FlowPackets};
use super::ids::{MessageId, PacketId};
use super::instant::collect_instant;
use super::packet::{HostLinksDiffer, LinkTime, Observer, host_rate};
use super::pipe::{Pipe, PipeConfig};
use super::port::Port;
use super::slab::Slab;
use super::{FabricError, FabricKind};
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use crate::routing::{Router, RoutingConfig};
use crate::time::SimTime;
use crate::topology::{HostPlace, Link, LinkId, Topology, TopologyConfig};
use crate::units::{Buffer, Bytes, DurationPs};
use flow::{NONE, Packet, Receiver, Refused, Sender, TcpFlow};
use serde::{Deserialize, Serialize};

/// What statistics count as a flit: the shortest Ethernet frame.
const FLIT: Bytes = Bytes(64);

/// The keys of an Ethernet fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EthernetConfig {
    /// Hosts, switches and links. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How flows choose among equal ways. Default: `ecmp`, as switches do.
    pub routing: RoutingConfig,
    /// Decides the hashes of `ecmp`. Default: 1.
    pub seed: u64,
    /// Largest IP packet. Default: `1500B`, Ethernet's.
    pub mtu: Bytes,
    /// IP and TCP headers of a segment. Default: `52B` (20 + 20 + 12 for time stamps, which Linux sends).
    pub headers: Bytes,
    /// What a frame adds to its IP packet. Default: `14B`, what Linux' queueing disciplines count (a frame of 1,514
    /// bytes, an ACK of 66); on a real wire it is 38 B (checksum, preamble and gap).
    pub framing: Bytes,
    /// What a switch needs to forward a frame, beyond receiving it. Default: `0ps`, as bridges in the lab; the
    /// LIGHTNESS deliverable has 200 ns for InfiniBand switches.
    pub switch_delay: DurationPs,
    /// What a host needs from a frame's arrival until TCP has dealt with it. Default: `12us`: half of the
    /// small messages between hosts of the lab took 10 to 22 us one way.
    pub host_delay: DurationPs,
    /// Congestion window of a new connection, in segments. Default: 10 (Linux).
    pub initial_window: u32,
    /// Whether a pause shrinks the window. Default: true (Linux).
    pub slow_start_after_idle: bool,
    /// How many segments of a connection are acknowledged at once before ACKs are delayed. Default: 16 (Linux).
    pub quick_acks: u32,
    /// Receive window of a new connection. Default: `64KiB` (Linux: half of a buffer of 131,072 B).
    pub receive_window: Bytes,
    /// Receive window at most. Default: `3MiB` (Linux: half of a buffer of 6 MB).
    pub receive_window_max: Bytes,
    /// The queue of a host's own network card, in place of its link's `buffer`, which is the switch's. Default:
    /// `1000 packets` (Linux: a device's `txqueuelen`, the limit of `pfifo_fast`).
    pub host_queue: Buffer,
    /// TCP small queues: what a flow may have in its host's queue at most. Default: `1MiB` (Linux).
    pub small_queue_max: Bytes,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for EthernetConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(1_500),
            headers: Bytes(52),
            framing: Bytes(14),
            switch_delay: DurationPs(0),
            host_delay: DurationPs::from_us(12),
            initial_window: 10,
            slow_start_after_idle: true,
            quick_acks: 16,
            receive_window: Bytes(65_536),
            receive_window_max: Bytes(3 << 20),
            host_queue: Buffer::Packets(1_000),
            small_queue_max: Bytes(1 << 20),
            loopback: PipeConfig::default(),
            interval: super::figures::DEFAULT_INTERVAL,
        }
    }
}

impl EthernetConfig {
    fn check(&self) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if self.mtu.get() > 65_535 || self.mtu.get() <= self.headers.get() {
            return wrong("mtu", self.mtu.to_string(), "more than headers, at most 65535B");
        }
        if self.framing.get() > 1_000 {
            return wrong("framing", self.framing.to_string(), "at most 1000B");
        }
        if self.initial_window == 0 {
            return wrong("initial_window", "0".to_owned(), "at least 1 segment");
        }
        if self.receive_window.get() < self.mtu.get() {
            return wrong("receive_window", self.receive_window.to_string(), "at least mtu");
        }
        if self.receive_window_max < self.receive_window {
            return wrong("receive_window_max", self.receive_window_max.to_string(), "at least receive_window");
        }
        Ok(())
    }
}

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

/// A switched Ethernet with TCP at its hosts.
pub struct Ethernet {
    config: EthernetConfig,
    topology: Topology,
    router: Router,
    segment_bytes: u64,
    ports: Vec<Port>,
    /// Paths of flows one after the other, as link numbers, each closed by [`NONE`].
    paths: Vec<u32>,
    flows: Vec<TcpFlow>,
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
}

impl Ethernet {
    /// The network of `config` for `hosts`.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &EthernetConfig, hosts: &[HostPlace]) -> Result<Self, FabricError> {
        config.check()?;
        if !config.routing.keeps_flows() {
            let allowed = "TCP keeps a flow on one way: ecmp, d-mod-k, s-mod-k, shortest, up-down, dor and { table = FILE } \
                           do that";
            return Err(FabricError::Value { key: "routing", value: config.routing.to_string(), allowed });
        }
        let topology = config.topology.build(hosts)?;
        let extra = |to: u32| {
            if to < topology.hosts() { config.host_delay.ps() } else { config.switch_delay.ps() }
        };
        let port = |link: &Link| {
            let own = link.from.0 < topology.hosts();
            let buffer = if own { config.host_queue } else { link.buffer };
            Port::new(&Link { buffer, ..*link }, extra(link.to.0))
        };
        let ports: Vec<Port> = topology.links().iter().map(port).collect();
        let frame = config.mtu.get() + config.framing.get();
        // Arrivals are scheduled when a packet is queued, so the wheel spans a full buffer of the slowest link.
        let slowest = topology.links().iter().map(|link| link.rate.time_ps(frame) + link.delay_ps).max();
        let horizon = slowest.unwrap_or(0).saturating_mul(256).max(config.host_delay.ps().saturating_mul(4));
        Ok(Self {
            router: Router::of(&config.routing, &topology, config.seed)?,
            segment_bytes: config.mtu.get() - config.headers.get(),
            topology,
            ports,
            paths: Vec::new(),
            flows: Vec::new(),
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
        })
    }

    /// Bytes on the wire of a segment with `len` bytes of data.
    fn wire_bytes(&self, len: u64) -> u32 {
        u32::try_from(len + self.config.headers.get() + self.config.framing.get()).unwrap_or(u32::MAX)
    }

    /// The place whose events are those of `flow`: flows are numbered behind the links.
    fn flow_place(&self, flow: u32) -> Place {
        Place(count(self.ports.len()).wrapping_add(flow))
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
        let entry = &self.flows[flow as usize];
        let links = [entry.path, entry.ack_path]
            .into_iter()
            .flat_map(|path| self.paths[path as usize..].iter().take_while(|link| **link != NONE));
        links.map(|link| self.ports[*link as usize].idle_ps(self.wire_bytes(0))).sum()
    }

    fn add_flow(&mut self, source: HostIndex, destination: HostIndex) -> u32 {
        let id = count(self.flows.len());
        let loops = source == destination;
        let path = if loops { 0 } else { self.add_path(source.0, destination.0, u64::from(id)) };
        let window = self.config.receive_window.get();
        self.flows.push(TcpFlow {
            path,
            ack_path: NONE,
            peer: NONE,
            loopback: loops.then(Pipe::default),
            sender: Sender::new(self.config.initial_window.into(), window),
            receiver: Receiver::new(window, self.config.quick_acks),
        });
        id
    }

    /// Puts a packet into its host's queue. Returns when it leaves; `None` if there is no room.
    fn launch(&mut self, now: SimTime, packet: Packet) -> Option<SimTime> {
        let link = self.paths[packet.at as usize];
        let port = &mut self.ports[link as usize];
        // Not offered without room: the link counts what the network loses.
        let passage =
            port.has_room(now, packet.wire).then(|| port.offer(now, packet.wire, self.config.interval.ps()))??;
        let id = self.packets.insert(packet);
        self.queue.schedule(passage.arrives, Phase::Arrive, Place(link), Event::Arrive(id));
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
        match self.ports[link as usize].offer(now, wire, self.config.interval.ps()) {
            Some(passage) => self.queue.schedule(passage.arrives, Phase::Arrive, Place(link), Event::Arrive(id)),
            None => {
                self.packets.remove(id);
            }
        }
    }

    fn process(&mut self, now: SimTime, event: Event, deliveries: &mut Vec<Delivery>) {
        self.read_ahead();
        match event {
            Event::Arrive(id) => self.arrive(now, id, deliveries),
            Event::NicSent(flow) => {
                self.flows[flow as usize].sender.nic_event = false;
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

    fn figures(&self) -> NetworkFigures {
        let links: Vec<_> = self
            .ports
            .iter()
            .zip(self.topology.links())
            .enumerate()
            .map(|(id, (port, link))| port.meter.figures(&self.topology.link_name(LinkId(count(id))), link.used_rate()))
            .collect();
        NetworkFigures {
            circuits: Vec::new(),
            circuit_totals: None,
            events: self.queue.processed(),
            drops: links.iter().map(|link| link.drops).sum(),
            retransmissions: self.resent,
            interval_ps: self.config.interval.ps(),
            links,
            counters: vec![
                ("recoveries".to_owned(), self.recoveries),
                ("time-outs".to_owned(), self.timeouts),
                ("tail loss probes".to_owned(), self.probes),
                ("delayed ACKs".to_owned(), self.delayed_acks),
                ("loopback bytes".to_owned(), self.looped_bytes),
                ("segments that waited for room at their host".to_owned(), self.refused.segments),
                ("ACKs dropped at their host".to_owned(), self.refused.acks),
            ],
        }
    }
}

impl Network for Ethernet {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let id = self.add_flow(source, destination);
        if source != destination {
            self.flows[id as usize].ack_path = self.add_path(destination.0, source.0, u64::from(id));
        }
        FlowId(id)
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        let (there, back) = (self.add_flow(client, server), self.add_flow(server, client));
        for (flow, peer) in [(there, back), (back, there)] {
            self.flows[flow as usize].ack_path = self.flows[peer as usize].path;
            self.flows[flow as usize].peer = peer;
        }
        (FlowId(there), FlowId(back))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        let flow = flow.0;
        let place = self.flow_place(flow);
        let entry = &mut self.flows[flow as usize];
        if let Some(pipe) = &mut entry.loopback {
            let at = pipe.hand_over(now, bytes, &self.config.loopback);
            self.looped_bytes += bytes;
            let id = self.looped.insert(token);
            self.queue.schedule(at, Phase::Arrive, place, Event::Looped(id));
            return;
        }
        let was_open = bytes > 0 && entry.sender.written == 0 && entry.sender.round_trip.smoothed == 0;
        // Like SYN and FIN, what carries no data takes one sequence number.
        entry.sender.written += bytes.max(1);
        entry.receiver.marks.push_back((entry.sender.written, token));
        if was_open {
            let sample = self.handshake_ps(flow).max(1);
            self.flows[flow as usize].sender.round_trip.measure(sample);
        }
        self.try_send(now, flow);
    }
}

impl FlowFabric for Ethernet {
    /// A message is cut into segments, each with its headers and framing; ACKs are not counted.
    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        let headers = Bytes(self.config.headers.get() + self.config.framing.get());
        let link = LinkTime::new(host_rate(&self.topology)?, FLIT, Bytes(self.segment_bytes), headers);
        Ok(LinkTime { whole_messages: true, ..link })
    }

    fn switches(&self, flow: FlowId) -> u32 {
        let path = &self.paths[self.flows[flow.0 as usize].path as usize..];
        count(path.iter().take_while(|link| **link != NONE).count().saturating_sub(1))
    }

    fn link_bytes(&self, now: SimTime) -> Vec<u64> {
        self.ports.iter().map(|port| port.begun_bytes(now)).collect()
    }
}

impl FabricKind for EthernetConfig {
    type Flows = Ethernet;
    type Packets<O: Observer> = FlowPackets<Ethernet, O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Ethernet, FabricError> {
        Ethernet::new(self, hosts)
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Self::Packets<O>, FabricError> {
        Ok(FlowPackets::new(Ethernet::new(self, hosts)?, observer))
    }

    super::kinds::network_keys! {}
}
