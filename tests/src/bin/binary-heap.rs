//! The peer of `store-and-forward` in `make bench`: the same model, written down plainly over one binary heap of events, with lists of what
//! waits at the ports. It takes topology, routing, traffic and statistics from `netsim`, so that only the engine differs.
//!
//! Runs messages of one packet, drawn as `[traffic]` says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use netsim::fabric::FabricConfig;
use netsim::fabric::packet::{LinkTime, Loss, LostPacket, Message, Observer, PacketRecord, ServiceLevel};
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::kernel::{Place, tie};
use netsim::network::{HostIndex, Token};
use netsim::routing::{Choice, Routes};
use netsim::statistics::Meter;
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use netsim::traffic::{Destinations, Gaps, Plan, TrafficConfig};
use netsim::units::Buffer;
use serde_json::json;

#[derive(serde::Deserialize)]
struct Experiment {
    fabric: FabricConfig,
    traffic: TrafficConfig,
}

/// Time; rank among what happens then; link and packet that arrives there, or [`SEND`] and a host that hands over a packet.
type Entry = Reverse<(u64, u64, u32, u32)>;

/// In place of a link.
const SEND: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Packet {
    source: u32,
    destination: NodeId,
    number: u64,
    handed_over: u64,
    left: u64,
    switches: u32,
}

struct Port {
    /// When the packets begin to leave that wait.
    waiting: VecDeque<u64>,
    /// When all that it has taken has left.
    free_ps: u64,
    room: usize,
    time_ps: u64,
    delay_ps: u64,
    to: NodeId,
}

struct Model {
    plan: Plan,
    seed: u64,
    gaps: Gaps,
    destinations: Destinations,
    topology: Topology,
    routes: Routes,
    meter: Meter,
    ports: Vec<Port>,
    /// For each host: how many it has handed over, and when the last of them.
    sent: Vec<(u64, u64)>,
    packets: Vec<Packet>,
    free: Vec<u32>,
    heap: BinaryHeap<Entry>,
}

/// The packets of an experiment over store-and-forward in a plain model with a binary heap, which `benchmarks` runs beside ours.
///
/// Prints one JSON object: packet_hops, packet_latency_mean_ps, lost, cpu_s.
#[derive(Debug, Parser)]
struct Options {
    /// The experiment: a TOML file with a fabric of the kind store-and-forward, and traffic.
    experiment: PathBuf,
}

fn main() -> Result<()> {
    let Options { experiment } = Options::parse();
    let path = experiment.display();
    let text = fs::read_to_string(&experiment).with_context(|| format!("cannot read {path}"))?;
    let Experiment { fabric, traffic } = toml::from_str(&text).with_context(|| path.to_string())?;
    let FabricConfig::StoreAndForward(config) = fabric else { bail!("{path}: the fabric is no store-and-forward") };
    let mut model = Model::new(&config, &traffic)?;
    model.run();
    let cpu_s = cpu_s()?;
    let object = json!({
        "packet_hops": model.meter.packet_hops,
        "packet_latency_mean_ps": model.meter.packet().mean(),
        "lost": model.meter.lost,
        "cpu_s": cpu_s,
    });
    print!("{}", format_args!("{object}\n"));
    Ok(())
}

/// User time of this process.
fn cpu_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let ticks = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)).context("/proc/self/stat")?;
    Ok(ticks.parse::<f64>()? / 100.0)
}

impl Model {
    fn new(config: &StoreAndForwardConfig, traffic: &TrafficConfig) -> Result<Self> {
        let topology = config.topology.build(&[])?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        let seed = 1;
        let rate = topology.link(topology.uplink(NodeId(0))).rate;
        let link = LinkTime::new(rate, config.flit, config.mtu, config.headers);
        let plan = traffic.plan(link, topology.hosts(), None)?;
        ensure!(plan.packets == 1, "a message has {} packets; the plain model knows messages of one", plan.packets);
        let bytes = plan.bytes + config.headers.get();
        let port = |link: netsim::topology::Link| Port {
            waiting: VecDeque::new(),
            free_ps: 0,
            room: match link.buffer {
                Buffer::Packets(most) if !topology.is_host(link.from) => most as usize,
                _ => usize::MAX,
            },
            time_ps: link.rate.time_ps(bytes),
            delay_ps: link.delay_ps + if topology.is_host(link.to) { 0 } else { config.switch_delay.ps() },
            to: link.to,
        };
        let mut model = Self {
            gaps: Gaps::new(&plan, seed),
            destinations: Destinations::new(traffic, topology.hosts())?,
            meter: Meter::new(&plan, false),
            ports: topology.links().iter().map(port).collect(),
            sent: vec![(0, 0); topology.hosts() as usize],
            packets: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            seed,
            plan,
            routes,
            topology,
        };
        (0..model.topology.hosts()).for_each(|host| model.draw(host));
        Ok(model)
    }

    /// Until all that counts has arrived.
    fn run(&mut self) {
        while let Some(Reverse((now, _, link, id))) = self.heap.pop() {
            if now >= self.plan.end_ps || (now >= self.plan.until_ps && self.meter.outstanding() == 0) {
                return;
            }
            if link == SEND { self.send(id, now) } else { self.arrive(link, id, now) }
        }
    }

    /// Draws when `host` hands over its next packet.
    fn draw(&mut self, host: u32) {
        let (count, last) = self.sent[host as usize];
        let at = self.gaps.next(host, count, last);
        self.sent[host as usize].1 = at;
        if at < self.plan.end_ps {
            self.heap.push(Reverse((at, u64::from(host), SEND, host)));
        }
    }

    fn send(&mut self, host: u32, now: u64) {
        let number = self.sent[host as usize].0;
        self.sent[host as usize].0 += 1;
        self.draw(host);
        let Some(to) = self.destinations.destination(self.seed, host, number) else { return };
        let token = Token((u64::from(host) << 40) | number);
        let message = Message {
            source: HostIndex(host),
            destination: HostIndex(to),
            bytes: self.plan.bytes,
            level: ServiceLevel(0),
            flow: 0,
            token,
        };
        self.meter.handed_over(SimTime(now), &message);
        let destination = self.topology.host_node(to);
        let packet = Packet { source: host, destination, number, handed_over: now, left: 0, switches: 0 };
        let id = if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            id
        } else {
            self.packets.push(packet);
            u32::try_from(self.packets.len() - 1).unwrap_or(u32::MAX)
        };
        self.queue(self.topology.uplink(self.topology.host_node(host)), id, now);
    }

    /// Puts a packet behind those that wait for a link, or drops it. When it arrives is certain then: nothing overtakes it.
    fn queue(&mut self, link: LinkId, id: u32, now: u64) {
        let port = &mut self.ports[link.0 as usize];
        while port.waiting.front().is_some_and(|start| *start <= now) {
            port.waiting.pop_front();
        }
        let start = port.free_ps.max(now);
        if start == now || port.waiting.len() < port.room {
            if start > now && port.room != usize::MAX {
                port.waiting.push_back(start);
            }
            port.free_ps = start + port.time_ps;
            let arrives = port.free_ps + port.delay_ps;
            let packet = &mut self.packets[id as usize];
            if packet.switches == 0 {
                packet.left = start;
            }
            // What is handed over at an instant comes before what arrives then.
            let rank = (1 << 32) + tie(SimTime(arrives), Place(link.0));
            self.heap.push(Reverse((arrives, rank, link.0, id)));
        } else {
            let packet = self.packets[id as usize];
            self.meter.dropped(&LostPacket {
                at: SimTime(now),
                handed_over: SimTime(packet.handed_over),
                source: HostIndex(packet.source),
                number: packet.number,
                token: Token((u64::from(packet.source) << 40) | packet.number),
                reason: Loss::InNetwork,
            });
            self.free.push(id);
        }
    }

    fn arrive(&mut self, link: u32, id: u32, now: u64) {
        let at = self.ports[link as usize].to;
        if self.topology.is_host(at) {
            let packet = self.packets[id as usize];
            self.meter.delivered(&PacketRecord {
                handed_over: SimTime(packet.handed_over),
                left: SimTime(packet.left),
                arrived: SimTime(now),
                source: HostIndex(packet.source),
                destination: HostIndex(packet.destination.0),
                number: packet.number,
                bytes: u32::try_from(self.plan.wire_bytes).unwrap_or(u32::MAX),
                flits: 1,
                switches: packet.switches,
                token: Token((u64::from(packet.source) << 40) | packet.number),
            });
            self.free.push(id);
            return;
        }
        self.packets[id as usize].switches += 1;
        let packet = self.packets[id as usize];
        let next = self.routes.next(at, LinkId(link), packet.destination);
        let key = (u64::from(packet.source) << 40) | packet.number;
        let flow = (u64::from(packet.source) << 32) | u64::from(packet.destination.0);
        let source = self.topology.host_node(packet.source);
        let choice = self.routes.choose(next.links.len(), at, key, flow, source, packet.destination);
        let Choice::Index(index) = choice else { return };
        if let Some(out) = next.links.get(index).copied() {
            self.queue(out, id, now);
        }
    }
}
