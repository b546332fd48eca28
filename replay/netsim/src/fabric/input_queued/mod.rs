//! `input-queued`: routers with queues and virtual channels at their inputs, as `BookSim2`'s `iq_router` has them; defined in
//! `docs/input-queued.md`.
//!
//! They are clocked, and flits move one by one. In each cycle first all arrivals are seen; then hosts send (`hosts`) and switches with flits
//! work (`router`), each by what there was when the cycle began, so that their order does not matter: whatever passes between them takes a
//! cycle at least. A switch looks only at what can go on: heads for which a VC may be free, first flits with a credit. Who waits for a VC or a credit is
//! told when it comes (`arrivals`).

mod arrivals;
mod config;
mod crossbar;
mod hosts;
mod router;
mod state;
mod vcs;

pub use super::clocked::separable::{Arbiter, Order, SeparableAllocator};
pub use config::{FlowControl, InputQueuedConfig, PipelineLatencies};

use super::FabricError;
use super::clocked::calendar::Calendar;
use super::clocked::matching::{Matcher, Request};
use super::clocked::network::{ClockedNetwork, Parts};
use super::clocked::packet::Packet;
use super::clocked::ports::{NONE, Ports};
use super::clocked::{check_ahead, clock, delays};
use super::cycle::Cycle;
use super::figures::LinkMeter;
use super::hop_log::HopLog;
use super::ids::PacketId;
use super::messages::Messages;
use super::occupancy::Occupancy;
use super::packet::{LinkTime, Message, Observer};
use super::slab::Slab;
use crate::count::count;
use crate::network::Delivery;
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use state::{Arrival, Crossing, End, Flit, Host, InputVc, MAX_PORTS, Offer, Output, OutputVc, Owner, PortVc};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use typed_index_collections::TiVec;

/// A network of input-queued routers.
pub struct InputQueued<O> {
    observer: O,
    config: InputQueuedConfig,
    topology: Topology,
    routes: Routes,
    /// Whether a packet's way depends on more than place and destination.
    by_packet: bool,
    /// Whether heads wait for VCs with room for their whole packet.
    cut_through: bool,
    /// Whether VCs, and the crossbar, are given by the shortest of all rules: inputs choose first, once, by round robin, in one cycle.
    plain_vcs: bool,
    plain_crossbar: bool,
    ports: Ports,
    clock: LinkTime,
    /// When a cycle begins: the one that was asked for last.
    begun: (u64, SimTime),
    vcs: u32,
    vcs_of_class: u8,
    /// The ends of links: the inputs of switches, so many, then those of hosts.
    ends: Vec<End>,
    inputs: u32,
    /// By input, then VC.
    input_vcs: Vec<InputVc>,
    /// Their flits, each a ring.
    queues: Vec<Flit>,
    outputs: Vec<Output>,
    /// By output, then VC.
    output_vcs: Vec<OutputVc>,
    /// By output: heads that wait for one of its VCs.
    waiting: Vec<Vec<PortVc>>,
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
    /// Switches that can do something in this cycle, as far as is known; by switch: whether it is among them.
    working: Vec<u32>,
    listed: Vec<bool>,
    hosts: Vec<Host>,
    sending: Vec<u32>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    arrivals: Calendar<Arrival>,
    /// Credits of VCs of outputs.
    credits: Calendar<PortVc>,
    /// Hosts that have something to send from a cycle on.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// The first cycle that has not been worked off.
    now: u64,
    /// Whether its arrivals have been seen.
    open: bool,
    matcher: Matcher,
    /// What is used within one cycle of one switch.
    requests: Vec<Request>,
    asking: Vec<PortVc>,
    asked: Vec<PortVc>,
    candidates: Vec<u32>,
    given: Vec<PortVc>,
    crossing: Vec<Crossing>,
    released: Vec<u32>,
    /// By number of an output, or of a VC of outputs, at its switch: nothing between two allocations; and those of this one.
    offers: Vec<Offer>,
    offered: Vec<u32>,
    meters: TiVec<LinkId, LinkMeter>,
    delivered: u64,
    /// Whether hosts lose the first packet of their queue where it finds no room.
    loses_heads: bool,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
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
        let (ends, outputs) = links(config, &topology, &ports, &delays)?;
        let inputs = ports.inputs().len();
        let vcs = usize::from(config.vcs);
        let (input_ways, output_ways) =
            (inputs * usize::from(config.input_speedup), outputs.len() * usize::from(config.output_speedup));
        let in_turn = (0..input_ways).map(|way| (way % usize::from(config.input_speedup)) as u8 % config.vcs);
        let uplinks = (0..topology.hosts()).map(|host| ports.output_of(topology.uplink(NodeId(host))));
        let idle =
            |output| Host { output, flits: 0, packet: PacketId::NONE, vc: config.vcs - 1, listed: false, waits: false };
        let hosts: Vec<Host> = uplinks.map(idle).collect();
        let most_outputs = (0..topology.switches()).map(|switch| ports.outputs_of(switch).1).max().unwrap_or(0);
        let is_plain = |allocator: &SeparableAllocator, latency: u32| {
            let plain = SeparableAllocator { order: Order::InputFirst, iterations: 1, arbiter: Arbiter::RoundRobin };
            *allocator == plain && latency == 1 && !config.speculative
        };
        let speedups = (config.input_speedup, config.output_speedup);
        let all = OutputVc { credits: config.buffer, owner: Owner::Nobody, sent: 0 };
        Ok(Self {
            observer,
            by_packet: routes.looks_at_packets(),
            cut_through: config.flow_control == FlowControl::VirtualCutThrough,
            plain_vcs: is_plain(&config.vc_allocator, config.latency.vc_allocation),
            plain_crossbar: is_plain(&config.switch_allocator, config.latency.switch_allocation)
                && speedups == (1, 1)
                && !config.hold_switch,
            vcs_of_class: config.vcs / routes.classes(),
            routes,
            clock,
            begun: (0, SimTime::ZERO),
            vcs: config.vcs.into(),
            inputs: count(inputs),
            input_vcs: vec![InputVc::IDLE; inputs * vcs],
            queues: vec![Flit::NONE; inputs * vcs * config.buffer as usize],
            output_vcs: vec![all; outputs.len() * vcs],
            waiting: vec![Vec::new(); outputs.len()],
            vc_turns: vec![0; inputs * vcs],
            given_turns: vec![0; outputs.len() * vcs],
            input_turns: vec![0; input_ways],
            way_turns: vec![0; output_ways],
            in_turn: in_turn.collect(),
            held_inputs: vec![NONE; input_ways],
            held_vcs: vec![0; input_ways],
            held_ways: vec![NONE; output_ways],
            working: Vec::new(),
            listed: vec![false; topology.switches() as usize],
            sending: Vec::new(),
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), hosts.len(), config.mtu, config.headers),
            hosts,
            arrivals: Calendar::new(ahead),
            credits: Calendar::new(ahead),
            wakes: BinaryHeap::new(),
            now: 0,
            open: false,
            matcher: Matcher::default(),
            requests: Vec::new(),
            asking: Vec::new(),
            asked: Vec::new(),
            candidates: Vec::new(),
            given: Vec::new(),
            crossing: Vec::new(),
            released: Vec::new(),
            offers: vec![Offer::NONE; most_outputs as usize * vcs],
            offered: Vec::new(),
            meters: vec![LinkMeter::default(); topology.links().len()].into(),
            delivered: 0,
            loses_heads: false,
            occupancy: None,
            log: None,
            moved: 0,
            ends,
            outputs,
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

    /// The place of a VC among those of all ends of links, or of all outputs.
    #[inline]
    const fn index(&self, vc: PortVc) -> usize {
        (vc.port() * self.vcs + vc.vc()) as usize
    }

    /// When `cycle` begins.
    fn begins(&mut self, cycle: u64) -> SimTime {
        if self.begun.0 != cycle {
            self.begun = (cycle, Cycle(cycle).begins(&self.clock));
        }
        self.begun.1
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

/// The ends of all links, those at switches first, and their begins.
fn links(
    config: &InputQueuedConfig,
    topology: &Topology,
    ports: &Ports,
    delays: &TiVec<LinkId, u32>,
) -> Result<(Vec<End>, Vec<Output>), FabricError> {
    if ports.outputs().len() >= MAX_PORTS {
        let value = format!("{} links", ports.outputs().len());
        return Err(FabricError::Value { key: "topology", value, allowed: "fewer than 268435456 links" });
    }
    let to_hosts = ports.outputs().iter().filter(|link| topology.is_host(topology.link(**link).to));
    let mut hosts_end_of = vec![NONE; topology.links().len()];
    let ends = ports.inputs().iter().chain(to_hosts).enumerate().map(|(number, id)| {
        let (link, from_host) = (topology.link(*id), topology.is_host(topology.link(*id).from));
        let to_host = topology.is_host(link.to);
        if to_host {
            hosts_end_of[usize::from(*id)] = count(number);
        }
        let counts = if from_host { 0 } else { config.latency.credit };
        End {
            heads: 0,
            ready: 0,
            switch: if to_host { NONE } else { link.to.0 - topology.hosts() },
            link: *id,
            sender: ports.output_of(*id),
            credit_delay: 1 + u64::from(delays[id.back()]) + u64::from(counts),
        }
    });
    let ends: Vec<End> = ends.collect();
    let outputs = ports.outputs().iter().map(|id| {
        let link = topology.link(*id);
        let to_host = topology.is_host(link.to);
        Output {
            leaves: 0,
            link: *id,
            end: if to_host { hosts_end_of[usize::from(*id)] } else { ports.input_of(*id) },
            delay: 1 + u64::from(delays[*id]),
            host: if topology.is_host(link.from) { link.from.0 } else { NONE },
            free: u16::MAX,
            to_host,
        }
    });
    Ok((ends, outputs.collect()))
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
        let woken = self.wakes.peek().map(|Reverse((cycle, _))| *cycle);
        [woken, self.arrivals.next(self.now), self.credits.next(self.now)].into_iter().flatten().min()
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let now = self.next_cycle().filter(|cycle| *cycle <= until)?;
        if std::mem::replace(&mut self.open, true) {
            return Some(now);
        }
        self.now = now;
        let arrivals = self.arrivals.take(now);
        for Arrival { at, flit } in &arrivals {
            if at.port() < self.inputs {
                self.flit_arrives(*at, *flit, now);
            } else {
                self.credit_back(*at, now);
                if flit.is_tail() {
                    self.deliver(flit.packet(), now, deliveries);
                }
            }
        }
        self.arrivals.keep(now, arrivals);
        let credits = self.credits.take(now);
        credits.iter().for_each(|vc| self.credit_comes(*vc, now));
        self.credits.keep(now, credits);
        while let Some(Reverse((cycle, host))) = self.wakes.peek().copied()
            && cycle <= now
        {
            self.wakes.pop();
            self.wake_host(host);
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
            self.wakes.push(Reverse((cycle.max(self.now), host.0)));
        }
    }

    fn lose_heads(&mut self) -> bool {
        self.loses_heads = true;
        true
    }

    fn bytes_of_lanes(&self) -> Vec<u64> {
        let mut bytes = Vec::with_capacity(self.topology.links().len() * self.vcs as usize);
        for link in 0..count(self.topology.links().len()) {
            let output = self.ports.output_of(LinkId(link));
            let sent = |vc| match output {
                NONE => 0,
                _ => self.output_vcs[self.index(PortVc::new(output, vc))].sent,
            };
            bytes.extend((0..self.vcs).map(sent).map(|flits| flits * self.config.flit.get()));
        }
        bytes
    }

    fn hop_log_slot(&mut self) -> Option<&mut Option<Box<HopLog>>> {
        Some(&mut self.log)
    }

    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        Some(&mut self.occupancy)
    }
}

super::kinds::packet_kind! { InputQueuedConfig => InputQueued }
