//! A slow, plain model of the fabric `ethernet`, to be read beside the head of `src/fabric/ethernet/mod.rs`.
//!
//! All segments that a flow ever sent are kept, and what is asked of them is counted anew each time; what waits in a queue is counted
//! from all that the queue ever took; timers are times at which something is due, and no events. With the fast fabric it shares the
//! configuration, the topology, the ways of flows, and CUBIC's arithmetic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod link;
mod receiver;
mod sender;

use link::Link;
use netsim::fabric::ethernet::EthernetConfig;
use netsim::kernel::{Place, tie};
use netsim::network::{Delivery, FlowId, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token};
use netsim::routing::Router;
use netsim::time::SimTime;
use netsim::topology::{HostPlace, LinkId, Topology};
use receiver::{Ack, Receiver};
use sender::Sender;

/// A mistake that the model may make, to see that a comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The ACKs' blocks say nothing.
    BlocksForgotten,
    /// A delayed ACK echoes the last segment that it acknowledges, not the first.
    EchoOfLast,
    /// The round trip of the handshake is not known.
    HandshakeForgotten,
    /// What was sent before something that has arrived is lost at once.
    LostAtOnce,
    /// Data carry no ACKs.
    NothingCarried,
    /// The window does not shrink in a pause.
    PauseForgotten,
    /// The tail is not probed.
    ProbeForgotten,
    /// After a pause ACKs are as delayed as before.
    QuickAcksNeverAgain,
    /// A flow may fill its host's queue.
    SmallQueuesForgotten,
    /// The receive window stays as it was at first.
    WindowFixed,
}

impl Mistake {
    pub const ALL: [Self; 10] = [
        Self::BlocksForgotten,
        Self::EchoOfLast,
        Self::HandshakeForgotten,
        Self::LostAtOnce,
        Self::NothingCarried,
        Self::PauseForgotten,
        Self::ProbeForgotten,
        Self::QuickAcksNeverAgain,
        Self::SmallQueuesForgotten,
        Self::WindowFixed,
    ];
}

/// Bytes of one flow.
#[derive(Clone, Copy)]
struct Data {
    flow: usize,
    start: u64,
    len: u64,
    /// What its sender took for the round trip.
    round_trip: u64,
    push: bool,
}

#[derive(Clone, Copy)]
struct Packet {
    wire: u32,
    sent_at: SimTime,
    data: Option<Data>,
    /// The flow that it acknowledges.
    ack: Option<(usize, Ack)>,
    /// Links behind it.
    hops: usize,
}

enum What {
    /// A packet is at the end of its present link.
    Arrives(Packet),
    /// A segment of a flow that waited for it has left its host's queue.
    LeftHost(usize),
    /// A message is through the loopback.
    Looped(Token),
}

struct Noted {
    at: SimTime,
    place: u32,
    number: u64,
    what: What,
}

/// What is next.
#[derive(Clone, Copy)]
enum Next {
    Noted(usize),
    Timer(usize),
    DelayedAck(usize),
}

struct Flow {
    path: Vec<usize>,
    ack_path: Vec<usize>,
    peer: Option<usize>,
    /// When the loopback falls free, of a host's traffic to itself.
    loopback: Option<SimTime>,
    sender: Sender,
    receiver: Receiver,
}

#[derive(Default)]
struct Counters {
    resent: u64,
    recoveries: u64,
    timeouts: u64,
    probes: u64,
    delayed_acks: u64,
    looped_bytes: u64,
    refused_segments: u64,
    refused_acks: u64,
}

/// The model.
pub struct PlainEthernet {
    config: EthernetConfig,
    mistake: Option<Mistake>,
    topology: Topology,
    router: Router,
    links: Vec<Link>,
    flows: Vec<Flow>,
    noted: Vec<Noted>,
    numbers: u64,
    counters: Counters,
}

impl PlainEthernet {
    pub fn new(config: &EthernetConfig, hosts: &[HostPlace], mistake: Option<Mistake>) -> Self {
        let topology = config.topology.build(hosts).unwrap();
        Self {
            router: Router::of(&config.routing, &topology, config.seed).unwrap(),
            links: topology.links().iter().map(|link| Link::new(config, &topology, &link)).collect(),
            config: config.clone(),
            mistake,
            topology,
            flows: Vec::new(),
            noted: Vec::new(),
            numbers: 0,
            counters: Counters::default(),
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn segment_bytes(&self) -> u64 {
        self.config.mtu.get() - self.config.headers.get()
    }

    /// Bytes on the wire of `len` bytes of data.
    fn wire(&self, len: u64) -> u32 {
        u32::try_from(len + self.config.headers.get() + self.config.framing.get()).unwrap()
    }

    fn flow_place(&self, flow: usize) -> u32 {
        u32::try_from(self.links.len() + flow).unwrap()
    }

    fn note(&mut self, at: SimTime, place: u32, what: What) {
        self.noted.push(Noted { at, place, number: self.numbers, what });
        self.numbers += 1;
    }

    fn way(&mut self, source: HostIndex, destination: HostIndex, flow: usize) -> Vec<usize> {
        let (from, to) = (self.topology.host_node(source.0), self.topology.host_node(destination.0));
        let mut way: Vec<LinkId> = Vec::new();
        self.router.way(&self.topology, from, to, flow as u64, &mut way);
        way.iter().map(|link| link.0 as usize).collect()
    }

    fn add_flow(&mut self, source: HostIndex, destination: HostIndex) -> usize {
        let flow = self.flows.len();
        let loops = source == destination;
        let path = if loops { Vec::new() } else { self.way(source, destination, flow) };
        self.flows.push(Flow {
            path,
            ack_path: Vec::new(),
            peer: None,
            loopback: loops.then_some(SimTime::ZERO),
            sender: Sender::new(&self.config, !self.makes(Mistake::ProbeForgotten)),
            receiver: Receiver::new(&self.config),
        });
        flow
    }

    /// The links of a packet: those of its data, or of ACKs of the flow that it acknowledges.
    fn path(&self, packet: &Packet) -> &[usize] {
        match (packet.data, packet.ack) {
            (Some(data), _) => &self.flows[data.flow].path,
            (None, Some((flow, _))) => &self.flows[flow].ack_path,
            (None, None) => &[],
        }
    }

    /// Puts a packet into its host's queue. Returns when it leaves; `None` if there is no room.
    fn launch(&mut self, now: SimTime, packet: Packet) -> Option<SimTime> {
        let link = self.path(&packet)[0];
        if !self.links[link].has_room(now, packet.wire) {
            return None;
        }
        let (sent, arrives) = self.links[link].take(now, packet.wire);
        self.note(arrives, u32::try_from(link).unwrap(), What::Arrives(packet));
        Some(sent)
    }

    fn arrives(&mut self, now: SimTime, mut packet: Packet, deliveries: &mut Vec<Delivery>) {
        packet.hops += 1;
        if let Some(link) = self.path(&packet).get(packet.hops).copied() {
            if self.links[link].has_room(now, packet.wire) {
                let (_, arrives) = self.links[link].take(now, packet.wire);
                self.note(arrives, u32::try_from(link).unwrap(), What::Arrives(packet));
            } else {
                self.links[link].drops += 1;
            }
            return;
        }
        if let Some((flow, ack)) = packet.ack {
            self.acknowledged(now, flow, &ack);
        }
        if let Some(data) = packet.data {
            self.take_data(now, packet.sent_at, &data, deliveries);
        }
    }

    /// What is next, and when: the first by time, by the rank of its place then, and by when it was noted.
    fn next(&self) -> Option<(SimTime, Next)> {
        let rank = |at: SimTime, place: u32, number: u64| (at, tie(at, Place(place)), number);
        let noted = self.noted.iter().enumerate();
        let noted = noted.map(|(index, noted)| (rank(noted.at, noted.place, noted.number), Next::Noted(index)));
        let due = self.flows.iter().enumerate().flat_map(|(flow, state)| {
            let timer = state.sender.due().map(|at| (at, Next::Timer(flow)));
            let delayed = state.receiver.ack_by.map(|at| (at, Next::DelayedAck(flow)));
            let ranked = move |(at, next)| (rank(at, self.flow_place(flow), u64::MAX), next);
            timer.into_iter().chain(delayed).map(ranked)
        });
        noted.chain(due).min_by_key(|(rank, _)| *rank).map(|((at, ..), next)| (at, next))
    }

    fn happens(&mut self, now: SimTime, next: Next, deliveries: &mut Vec<Delivery>) {
        match next {
            Next::Timer(flow) => self.timer(now, flow),
            Next::DelayedAck(flow) => self.delayed_ack(now, flow),
            Next::Noted(index) => match self.noted.swap_remove(index).what {
                What::Arrives(packet) => self.arrives(now, packet, deliveries),
                What::LeftHost(flow) => {
                    self.flows[flow].sender.waits_for_host = false;
                    self.try_send(now, flow);
                }
                What::Looped(token) => deliveries.push(Delivery { token, at: now }),
            },
        }
    }
}

impl Simulation for PlainEthernet {
    fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.next().map(|(at, _)| at)
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        let mut until = until;
        while let Some((at, next)) = self.next().filter(|(at, _)| *at <= until) {
            self.happens(at, next, deliveries);
            if deliveries.len() > before {
                until = at;
            }
        }
        deliveries[before..].sort_by_key(|delivery| delivery.token.0);
        until
    }

    fn figures(&self) -> NetworkFigures {
        let Counters {
            resent,
            recoveries,
            timeouts,
            probes,
            delayed_acks,
            looped_bytes,
            refused_segments,
            refused_acks,
        } = self.counters;
        let counters = [
            ("recoveries", recoveries),
            ("time-outs", timeouts),
            ("tail loss probes", probes),
            ("delayed ACKs", delayed_acks),
            ("loopback bytes", looped_bytes),
            ("segments that waited for room at their host", refused_segments),
            ("ACKs dropped at their host", refused_acks),
        ];
        let links: Vec<LinkFigures> = self.links.iter().map(Link::figures).collect();
        NetworkFigures {
            drops: links.iter().map(|link| link.drops).sum(),
            retransmissions: resent,
            counters: counters.map(|(name, number)| (name.to_owned(), number)).into(),
            links,
            ..NetworkFigures::default()
        }
    }
}

impl Network for PlainEthernet {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let flow = self.add_flow(source, destination);
        if source != destination {
            self.flows[flow].ack_path = self.way(destination, source, flow);
        }
        FlowId(u32::try_from(flow).unwrap())
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        let (there, back) = (self.add_flow(client, server), self.add_flow(server, client));
        for (flow, peer) in [(there, back), (back, there)] {
            self.flows[flow].ack_path = self.flows[peer].path.clone();
            self.flows[flow].peer = Some(peer);
        }
        (FlowId(u32::try_from(there).unwrap()), FlowId(u32::try_from(back).unwrap()))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        let flow = flow.0 as usize;
        if let Some(free) = self.flows[flow].loopback {
            let through = free.max(now).plus_ps(self.config.loopback.rate.time_ps(bytes));
            self.flows[flow].loopback = Some(through);
            self.counters.looped_bytes += bytes;
            let place = self.flow_place(flow);
            self.note(through.plus_ps(self.config.loopback.latency.ps()), place, What::Looped(token));
            return;
        }
        let Flow { path, ack_path, sender, receiver, .. } = &mut self.flows[flow];
        let was_open = bytes > 0 && sender.written == 0 && self.mistake != Some(Mistake::HandshakeForgotten);
        sender.written += bytes.max(1);
        receiver.marks.push((sender.written, token));
        if was_open {
            let headers = u32::try_from(self.config.headers.get() + self.config.framing.get()).unwrap();
            let handshake: u64 = path.iter().chain(&*ack_path).map(|link| self.links[*link].idle_ps(headers)).sum();
            sender.measure(handshake.max(1));
        }
        self.try_send(now, flow);
    }
}
