//! `input-output-queued`: routers with queues at their inputs and outputs, as CAMINOS' `Basic` and `InputOutput` have them; defined in
//! `docs/input-output-queued.md`.
//!
//! They are clocked. A packet moves, leaves and arrives flit by flit, but as it only begins to where there is room for all of it, its flits follow
//! each other in every cycle: here it is enough to know when its first one does. In each cycle first what arrives is seen; then switches at which
//! packets ask grant VCs of outputs (`crossbar`), then outputs and hosts that have something to send look whether they may (`links`).

mod bits;
mod by_bits;
mod config;
mod crossbar;
mod links;
mod one_flit;
mod state;

pub use config::{InputOutputQueuedConfig, Requests, RouterLatencies};

use super::FabricError;
use super::clocked::calendar::Calendar;
use super::clocked::matching::{Matcher, Request};
use super::clocked::network::{ClockedNetwork, Parts};
use super::clocked::packet::Packet;
use super::clocked::ports::Ports;
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
use crate::routing::{Routes, RoutingConfig};
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use one_flit::OneFlit;
use state::{Candidate, Event, Fill, InputPort, InputVc, Output, OutputVc, VcRequest};
use std::collections::BTreeMap;
use strength_reduce::StrengthReducedU32;
use typed_index_collections::TiVec;

/// A network of input-output-queued routers.
pub struct InputOutputQueued<O> {
    observer: O,
    config: InputOutputQueuedConfig,
    topology: Topology,
    routes: Routes,
    /// Whether a packet's way depends on more than place and destination.
    by_packet: bool,
    /// Whether it may take all links that its routing names.
    takes_all: bool,
    keeps_bubbles: bool,
    largest_flits: u32,
    ports: Ports,
    clock: LinkTime,
    /// A cycle, if it is a whole number of picoseconds: dividing takes long.
    whole_cycle_ps: Option<u64>,
    /// Cycles that a link takes, beside that in which a flit is sent.
    delays: TiVec<LinkId, u32>,
    vcs: u32,
    /// The same, to divide by.
    by_vcs: StrengthReducedU32,
    vcs_of_class: u32,
    /// By input, then VC.
    input_vcs: Vec<InputVc>,
    /// By output, then VC; those of hosts have credits only.
    output_vcs: Vec<OutputVc>,
    fills: Vec<Fill>,
    inputs: Vec<InputPort>,
    outputs: Vec<Output>,
    /// Where round robins of a separable allocator begin: by VC of an input, and of an output.
    input_turns: Vec<u32>,
    output_turns: Vec<u32>,
    /// By switch: VCs of inputs whose first packet asks. Switches where there are some.
    asking: Vec<Vec<u32>>,
    working: Vec<u32>,
    /// Outputs that look in this cycle whether a packet may leave.
    trying: Vec<u32>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    calendar: Calendar<Event>,
    /// Hosts that have something to send from a cycle on: of one cycle, which mostly are all, and of others.
    woken: (u64, Vec<u32>),
    wakes: BTreeMap<u64, Vec<u32>>,
    /// The first cycle that has not been worked off, and when it begins, while it is open.
    now: u64,
    begins: SimTime,
    /// A time, and the first cycle that does not begin before it: what was asked last.
    cycle_from: (SimTime, u64),
    /// Whether its arrivals have been seen.
    open: bool,
    matcher: Matcher,
    /// What routers know of queues and links, if all packets have one flit: nothing of that is elsewhere then.
    one_flit: Option<Box<OneFlit>>,
    /// Whether a message was handed over.
    has_begun: bool,
    /// What is used within one cycle of one switch.
    asked: Vec<VcRequest>,
    found: Vec<Candidate>,
    requests: Vec<Request>,
    meters: TiVec<LinkId, LinkMeter>,
    lane_bytes: Vec<u64>,
    delivered: u64,
    /// Whether hosts lose the first packet of their queue where it finds no room.
    loses_heads: bool,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
    moved: u64,
}

impl<O: Observer> InputOutputQueued<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &InputOutputQueuedConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
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
        config: &InputOutputQueuedConfig,
        topology: Topology,
        routes: Routes,
        observer: O,
    ) -> Result<Self, FabricError> {
        config.check()?;
        config.check_routes(&routes)?;
        routes.deadlock_freedom(&topology)?;
        let clock = clock(config.flit, config.mtu, config.headers, &topology)?;
        let delays = delays(config.latency.link, &topology, &clock)?;
        let slowest = delays.iter().copied().max().unwrap_or(0);
        let ahead = check_ahead(u64::from(slowest) + u64::from(config.latency.crossbar) + config.largest_flits() + 2)?;
        let ports = Ports::new(&topology);
        let (inputs, outputs, vcs) = (ports.inputs().len(), ports.outputs().len(), usize::from(config.vcs));
        let is_host = |node: NodeId| topology.is_host(node);
        let input = |link: &LinkId| InputPort {
            link: *link,
            at: topology.link(*link).to,
            from_host: is_host(topology.link(*link).from),
            sender_vc: ports.output_of(*link) * u32::from(config.vcs),
            told_after: 1 + delays[link.back()],
        };
        let output = |link: &LinkId| Output::new(is_host(topology.link(*link).from), is_host(topology.link(*link).to));
        let (hosts, links) = (topology.hosts() as usize, topology.links().len());
        Ok(Self {
            observer,
            by_packet: routes.looks_at_packets(),
            keeps_bubbles: routes.packets_of_room() > 1,
            largest_flits: u32::try_from(config.largest_flits()).unwrap_or(u32::MAX),
            vcs_of_class: (config.vcs / routes.classes()).into(),
            takes_all: config.routing == RoutingConfig::Adaptive,
            routes,
            whole_cycle_ps: clock.whole_cycle_ps(),
            clock,
            vcs: config.vcs.into(),
            by_vcs: StrengthReducedU32::new(config.vcs.into()),
            input_vcs: vec![InputVc::default(); inputs * vcs],
            output_vcs: vec![OutputVc::new(config.buffer); outputs * vcs],
            fills: vec![Fill::default(); outputs * vcs],
            inputs: ports.inputs().iter().map(input).collect(),
            outputs: ports.outputs().iter().map(output).collect(),
            input_turns: vec![0; inputs * vcs],
            output_turns: vec![0; outputs * vcs],
            asking: vec![Vec::new(); topology.switches() as usize],
            working: Vec::new(),
            trying: Vec::new(),
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), hosts, config.mtu, config.headers),
            calendar: Calendar::new(ahead),
            woken: (0, Vec::new()),
            wakes: BTreeMap::new(),
            now: 0,
            begins: SimTime::ZERO,
            cycle_from: (SimTime::ZERO, 0),
            open: false,
            matcher: Matcher::default(),
            one_flit: None,
            has_begun: false,
            asked: Vec::new(),
            found: Vec::new(),
            requests: Vec::new(),
            meters: vec![LinkMeter::default(); links].into(),
            lane_bytes: vec![0; links * vcs],
            delivered: 0,
            loses_heads: false,
            occupancy: None,
            log: None,
            moved: 0,
            delays,
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

    /// Has `host` try to send from the present cycle on.
    fn wake_host(&mut self, host: u32) {
        if let Some(one) = &mut self.one_flit {
            return one.host_wakes(host);
        }
        let output = self.ports.output_of(self.topology.uplink(NodeId(host)));
        let free = self.outputs[output as usize].free_from();
        self.try_output(output, free.max(self.now), self.now);
    }

    fn deliver(&mut self, id: PacketId, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        // What arrives does so in the cycle that has begun.
        let left =
            self.whole_cycle_ps.map_or_else(|| Cycle(packet.left).begins(&self.clock), |ps| SimTime(packet.left * ps));
        let record = packet.record(self.messages.get(packet.message), left, self.begins);
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: record.arrived });
        }
    }

    /// What happens in the cycle that begins.
    fn see(&mut self, events: &[Event], deliveries: &mut Vec<Delivery>) {
        let now = self.now;
        for event in events {
            match *event {
                Event::Arrives { input_vc, packet } => {
                    let state = &mut self.input_vcs[input_vc as usize];
                    state.waiting.push_back(packet);
                    if state.waiting.len() == 1 {
                        if state.moves_until <= now {
                            self.asks(input_vc);
                        } else {
                            let moved = state.moves_until;
                            self.calendar.put(moved, Event::Moved { input_vc });
                        }
                    }
                }
                Event::Delivered { packet } => self.deliver(packet, deliveries),
                Event::Credits { output_vc, flits } => {
                    self.output_vcs[output_vc as usize].credits_return(now, flits);
                    let output = output_vc / self.by_vcs;
                    let state = &self.outputs[output as usize];
                    // What comes later to wait looks by itself.
                    if state.waiting != 0 || state.from_host {
                        self.try_output(output, state.free_from().max(now), now);
                    }
                }
                Event::Moved { input_vc } => self.asks(input_vc),
                Event::Try { output } => self.trying.push(output),
            }
        }
    }
}

impl<O: Observer> ClockedNetwork for InputOutputQueued<O> {
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
        if self.open || !self.working.is_empty() {
            return Some(self.now);
        }
        let woken = (!self.woken.1.is_empty()).then_some(self.woken.0);
        let later = self.wakes.keys().next().copied();
        let comes = match &self.one_flit {
            Some(one) => one.next_cycle(self.now),
            None => self.calendar.next(self.now),
        };
        [woken, later, comes].into_iter().flatten().min()
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let now = self.next_cycle().filter(|cycle| *cycle <= until)?;
        if std::mem::replace(&mut self.open, true) {
            return Some(now);
        }
        (self.now, self.begins) = (now, Cycle(now).begins(&self.clock));
        if let Some(mut one) = self.one_flit.take() {
            self.see_by_bits(&mut one, now, deliveries);
            self.one_flit = Some(one);
        } else {
            let events = self.calendar.take(now);
            self.see(&events, deliveries);
            self.calendar.keep(now, events);
        }
        if self.woken.0 == now && !self.woken.1.is_empty() {
            let mut hosts = std::mem::take(&mut self.woken.1);
            hosts.drain(..).for_each(|host| self.wake_host(host));
            self.woken.1 = hosts;
        }
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
        if self.one_flit.is_some() {
            self.work_by_bits(now);
            self.now += 1;
            return;
        }
        let mut working = std::mem::take(&mut self.working);
        working.retain(|switch| self.switch_works(*switch, now));
        self.working = working;
        let mut trying = std::mem::take(&mut self.trying);
        trying.drain(..).for_each(|output| self.output_tries(output, now));
        self.trying = trying;
        self.now += 1;
    }

    fn open_cycle(&self) -> Option<u64> {
        self.open.then_some(self.now)
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin_by_bits();
        }
        self.messages.hand_over(now, message, host.0 as usize);
        if self.open {
            self.wake_host(host.0);
            return;
        }
        let cycle = cycle.max(self.now);
        if self.woken.1.is_empty() {
            self.woken.0 = cycle;
        }
        if self.woken.0 == cycle {
            self.woken.1.push(host.0);
        } else {
            self.wakes.entry(cycle).or_default().push(host.0);
        }
    }

    fn cycle_from(&mut self, time: SimTime) -> u64 {
        if time != self.cycle_from.0 {
            self.cycle_from = (time, Cycle::from(time, &self.clock).0);
        }
        self.cycle_from.1
    }

    fn add_unmetered(&self, link: LinkId, meter: &mut LinkMeter) {
        if let Some(one) = &self.one_flit
            && let Some(out) = one.outs.get(self.ports.output_of(link) as usize)
        {
            one.add_unmetered(out, meter, self.config.interval.ps());
        }
    }

    fn lose_heads(&mut self) -> bool {
        self.loses_heads = true;
        true
    }

    fn bytes_of_lanes(&self) -> Vec<u64> {
        let Some(one) = &self.one_flit else { return self.lane_bytes.clone() };
        let outputs = (0..count(self.topology.links().len())).map(|link| self.ports.output_of(LinkId(link)));
        one.sent(outputs).map(|packets| packets * self.config.flit.get()).collect()
    }

    fn hop_log_slot(&mut self) -> Option<&mut Option<Box<HopLog>>> {
        Some(&mut self.log)
    }

    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        Some(&mut self.occupancy)
    }
}

super::kinds::packet_kind! { InputOutputQueuedConfig => InputOutputQueued }
