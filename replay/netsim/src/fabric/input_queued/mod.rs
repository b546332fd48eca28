//! `input-queued`: routers with queues and virtual channels at their inputs, as `BookSim2`'s `iq_router` has them; defined in
//! `docs/input-queued.md`.
//!
//! They are clocked, and flits move one by one. In each cycle first all arrivals are seen; then hosts send (`hosts`) and switches with flits
//! work (`router`), each by what there was when the cycle began, so that their order does not matter: whatever passes between them takes a
//! cycle at least. Nothing happens at switches and hosts where nothing waits.

mod config;
mod hosts;
mod router;
mod state;

pub use super::clocked::separable::{Arbiter, Order, SeparableAllocator};
pub use config::{FlowControl, InputQueuedConfig, PipelineLatencies};

use super::FabricError;
use super::clocked::calendar::Calendar;
use super::clocked::matching::{Matcher, Request};
use super::clocked::network::{ClockedNetwork, Parts};
use super::clocked::packet::Packet;
use super::clocked::ports::{NONE, Ports};
use super::clocked::{check_ahead, clock, delays};
use super::figures::LinkMeter;
use super::ids::PacketId;
use super::messages::Messages;
use super::occupancy::Occupancy;
use super::packet::{LinkTime, Message, Observer};
use super::slab::Slab;
use crate::network::Delivery;
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use state::{Crossing, Flit, Host, InputVc, OutputVc};
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

/// A flit at the end of a link.
struct Arrival {
    link: LinkId,
    vc: u8,
    flit: Flit,
}

/// A network of input-queued routers.
pub struct InputQueued<O> {
    observer: O,
    config: InputQueuedConfig,
    topology: Topology,
    routes: Routes,
    /// Whether a packet's way depends on more than place and destination.
    by_packet: bool,
    ports: Ports,
    clock: LinkTime,
    /// Cycles that a link takes, beside that in which a flit is sent.
    delays: TiVec<LinkId, u32>,
    vcs: u32,
    vcs_of_class: u8,
    /// By input, then VC.
    input_vcs: Vec<InputVc>,
    /// Whether the packet that is first there has begun to leave.
    input_sent: Vec<bool>,
    /// Their flits, each a ring.
    queues: Vec<Flit>,
    /// By output, then VC.
    output_vcs: Vec<OutputVc>,
    /// When the next flit may leave by an output.
    leaves: Vec<u64>,
    /// Where round robins begin: of VCs of inputs, over VCs of outputs; of those, over VCs of inputs; of ways from inputs, over ways to outputs; of
    /// those, over ways from inputs; of ways from inputs, over VCs.
    vc_turns: Vec<u32>,
    given_turns: Vec<u32>,
    input_turns: Vec<u32>,
    way_turns: Vec<u32>,
    in_turn: Vec<u8>,
    /// By way from an input: the way to an output that it holds, and for which VC; by way to an output: by which one it is held.
    held_inputs: Vec<u32>,
    held_vcs: Vec<u8>,
    held_ways: Vec<u32>,
    /// Flits that wait at each switch, and whether it is in the list of those that work.
    waiting: Vec<u32>,
    listed: Vec<bool>,
    working: Vec<u32>,
    hosts: Vec<Host>,
    sending: Vec<u32>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    arrivals: Calendar<Arrival>,
    /// Credits of VCs of outputs.
    credits: Calendar<u32>,
    /// Hosts that have something to send from a cycle on.
    wakes: BTreeMap<u64, Vec<u32>>,
    /// The first cycle that has not been worked off.
    now: u64,
    /// Whether its arrivals have been seen.
    open: bool,
    matcher: Matcher,
    /// What is used within one cycle of one switch.
    busy: Vec<u32>,
    requests: Vec<Request>,
    asking: Vec<u32>,
    candidates: Vec<(u32, std::ops::Range<u32>)>,
    crossing: Vec<Crossing>,
    released: Vec<u32>,
    meters: TiVec<LinkId, LinkMeter>,
    lane_bytes: Vec<u64>,
    delivered: u64,
    /// Whether hosts lose the first packet of their queue where it finds no room.
    loses_heads: bool,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    moved: u64,
}

impl<O: Observer> InputQueued<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &InputQueuedConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        config.check()?;
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        Self::on(config, topology, routes, observer)
    }

    /// The network of `config` on a topology and a routing that were made elsewhere, in place of its own.
    ///
    /// # Errors
    /// When a value makes no sense, or packets may wait for each other for ever.
    pub fn on(
        config: &InputQueuedConfig,
        topology: Topology,
        routes: Routes,
        observer: O,
    ) -> Result<Self, FabricError> {
        config.check()?;
        config.check_routes(&routes)?;
        routes.deadlock_freedom(&topology)?;
        let clock = clock(config.flit, config.mtu, config.headers, &topology)?;
        let delays = delays(config.latency.link, &topology, &clock)?;
        let ahead = ahead(config, &delays)?;
        let ports = Ports::new(&topology);
        let (inputs, outputs, vcs) = (ports.inputs().len(), ports.outputs().len(), usize::from(config.vcs));
        let (input_ways, output_ways) =
            (inputs * usize::from(config.input_speedup), outputs * usize::from(config.output_speedup));
        let in_turn = (0..input_ways).map(|way| (way % usize::from(config.input_speedup)) as u8 % config.vcs);
        let idle = Host { flits: 0, packet: PacketId::NONE, vc: config.vcs - 1, listed: false };
        let (hosts, links) = (topology.hosts() as usize, topology.links().len());
        Ok(Self {
            observer,
            by_packet: routes.looks_at_packets(),
            vcs_of_class: config.vcs / routes.classes(),
            routes,
            clock,
            delays,
            vcs: config.vcs.into(),
            input_vcs: vec![InputVc::IDLE; inputs * vcs],
            input_sent: vec![false; inputs * vcs],
            queues: vec![Flit { packet: PacketId::NONE, tail: false }; inputs * vcs * config.buffer as usize],
            output_vcs: vec![OutputVc { credits: config.buffer, taken: false, tail_sent: false }; outputs * vcs],
            leaves: vec![0; outputs],
            vc_turns: vec![0; inputs * vcs],
            given_turns: vec![0; outputs * vcs],
            input_turns: vec![0; input_ways],
            way_turns: vec![0; output_ways],
            in_turn: in_turn.collect(),
            held_inputs: vec![NONE; input_ways],
            held_vcs: vec![0; input_ways],
            held_ways: vec![NONE; output_ways],
            waiting: vec![0; topology.switches() as usize],
            listed: vec![false; topology.switches() as usize],
            working: Vec::new(),
            hosts: vec![idle; hosts],
            sending: Vec::new(),
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), hosts, config.mtu, config.headers),
            arrivals: Calendar::new(ahead),
            credits: Calendar::new(ahead),
            wakes: BTreeMap::new(),
            now: 0,
            open: false,
            matcher: Matcher::default(),
            busy: Vec::new(),
            requests: Vec::new(),
            asking: Vec::new(),
            candidates: Vec::new(),
            crossing: Vec::new(),
            released: Vec::new(),
            meters: vec![LinkMeter::default(); links].into(),
            lane_bytes: vec![0; links * vcs],
            delivered: 0,
            loses_heads: false,
            occupancy: None,
            moved: 0,
            ports,
            config: config.clone(),
            topology,
        })
    }

    /// What it is built of.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A flit, the first of its packet if `head`, leaves over `link` in cycle `now`.
    fn sent(&mut self, link: LinkId, vc: u8, packet: PacketId, (head, tail): (bool, bool), now: u64) {
        self.moved += 1;
        let lane = self.lane(link, vc);
        self.lane_bytes[lane] += self.config.flit.get();
        let at = now + 1 + u64::from(self.delays[link]);
        if let Some(occupancy) = &mut self.occupancy
            && head
            && !self.topology.is_host(self.topology.link(link).to)
        {
            occupancy.enters(lane, self.now, at);
        }
        self.arrivals.put(at, Arrival { link, vc, flit: Flit { packet, tail } });
    }

    /// The number of a VC of a link among those of all.
    fn lane(&self, link: LinkId, vc: u8) -> usize {
        usize::from(link) * self.vcs as usize + usize::from(vc)
    }

    /// The credit of a flit that has left the end of `link` goes back to its sender.
    fn credit_back(&mut self, link: LinkId, vc: u8, now: u64) {
        let output = self.ports.output_of(link) * self.vcs + u32::from(vc);
        let from_host = self.topology.is_host(self.topology.link(link).from);
        let counts = if from_host { 0 } else { u64::from(self.config.latency.credit) };
        self.credits.put(now + 1 + u64::from(self.delays[LinkId(link.0 ^ 1)]) + counts, output);
    }

    fn deliver(&mut self, id: PacketId, now: u64, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let record = packet.record(self.messages.get(packet.message), now, &self.clock);
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: record.arrived });
        }
    }
}

/// How many cycles ahead something may be under way: over the slowest link, behind all that waits at its output.
fn ahead(config: &InputQueuedConfig, delays: &TiVec<LinkId, u32>) -> Result<usize, FabricError> {
    let slowest = delays.iter().copied().max().unwrap_or(0);
    let queued = u64::from(config.buffer) * u64::from(config.vcs);
    let ahead = u64::from(slowest) + u64::from(config.latency.crossbar.max(config.latency.credit)) + queued + 2;
    check_ahead(ahead)
}

impl<O: Observer> ClockedNetwork for InputQueued<O> {
    type Observer = O;

    fn parts(&self) -> Parts<'_> {
        Parts {
            topology: &self.topology,
            clock: &self.clock,
            messages: &self.messages,
            queues: 1,
            lanes: self.vcs,
            meters: &self.meters,
            lane_bytes: &self.lane_bytes,
            interval: self.config.interval,
            delivered: self.delivered,
            events: self.moved,
            occupancy: self.occupancy.as_deref(),
        }
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.open || !self.working.is_empty() || !self.sending.is_empty() {
            return Some(self.now);
        }
        let woken = self.wakes.keys().next().copied();
        [woken, self.arrivals.next(self.now), self.credits.next(self.now)].into_iter().flatten().min()
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let now = self.next_cycle().filter(|cycle| *cycle <= until)?;
        if std::mem::replace(&mut self.open, true) {
            return Some(now);
        }
        self.now = now;
        let arrivals = self.arrivals.take(now);
        for Arrival { link, vc, flit } in &arrivals {
            if self.topology.is_host(self.topology.link(*link).to) {
                self.credit_back(*link, *vc, now);
                if flit.tail {
                    self.deliver(flit.packet, now, deliveries);
                }
            } else {
                self.flit_arrives(*link, *vc, *flit, now);
            }
        }
        self.arrivals.keep(now, arrivals);
        let credits = self.credits.take(now);
        for vc in &credits {
            self.output_vcs[*vc as usize].credit(self.config.buffer);
        }
        self.credits.keep(now, credits);
        if let Some(hosts) = self.wakes.remove(&now) {
            hosts.into_iter().for_each(|host| self.wake_host(host));
        }
        Some(now)
    }

    fn work(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let now = self.now;
        let mut sending = std::mem::take(&mut self.sending);
        sending.retain(|host| {
            let more = self.host_sends(*host, now);
            self.hosts[*host as usize].listed = more;
            more
        });
        self.sending = sending;
        let mut working = std::mem::take(&mut self.working);
        working.retain(|switch| {
            let more = self.switch_works(*switch, now);
            self.listed[*switch as usize] = more;
            more
        });
        self.working = working;
        self.now += 1;
    }

    fn open_cycle(&self) -> Option<u64> {
        self.open.then_some(self.now)
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64) {
        self.messages.hand_over(now, message, host.0 as usize);
        if self.open {
            self.wake_host(host.0);
        } else {
            self.wakes.entry(cycle.max(self.now)).or_default().push(host.0);
        }
    }

    fn lose_heads(&mut self) -> bool {
        self.loses_heads = true;
        true
    }

    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        Some(&mut self.occupancy)
    }
}

super::kinds::packet_kind! { InputQueuedConfig => InputQueued }
