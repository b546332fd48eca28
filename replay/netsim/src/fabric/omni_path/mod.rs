//! `omni-path`: Intel's Omni-Path as `OpaSim` models it; defined in `docs/omni-path.md`.
//!
//! Its routers are clocked: all happens in whole cycles, and a unit (an input or a central link) is looked at in the cycles
//! in which it asks, a link in those in which it may take a packet. In each cycle first all arrivals are seen, then all requests are
//! made and granted (`crossbars`), then links take packets (`sending`).

mod config;
mod crossbars;
mod layout;
mod sending;
mod space;
mod state;
mod waits;

pub use config::{CentralChoice, FlitBuffers, OmniPathConfig, Retry, StageLatencies};

use super::cycle::Cycle;
use super::figures::LinkMeter;
use super::flows::Flows;
use super::ids::{PacketId, UnitId};
use super::messages::{Messages, NUMBER};
use super::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric, PacketRecord, host_rate};
use super::slab::Slab;
use super::{FabricError, FabricKind};
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, HostIndex, NetworkFigures, Simulation};
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, Topology};
use crate::units::{DurationPs, Rate};
use layout::Layout;
use space::Spaces;
use state::{Event, Packet, Queue, Request, Sender, Unit, WritePort};
use typed_index_collections::TiVec;

/// A network of Omni-Path.
pub struct OmniPath<O> {
    observer: O,
    config: OmniPathConfig,
    topology: Topology,
    routes: Routes,
    layout: Layout,
    clock: LinkTime,
    /// Cycles that a link takes, its propagation delay included.
    delays: TiVec<LinkId, u32>,
    /// The VL of class 0 of each service level.
    bases: [u8; 16],
    vls: usize,
    units: TiVec<UnitId, Unit>,
    /// By unit, then VL.
    asking: Vec<Queue>,
    /// Of central links and of outputs, in front of a link: who writes into them.
    central_ports: TiVec<UnitId, WritePort>,
    output_ports: TiVec<LinkId, WritePort>,
    senders: TiVec<LinkId, Sender>,
    /// By link, then VL: what waits at an output.
    outputs: Vec<Queue>,
    central_spaces: Spaces,
    output_spaces: Spaces,
    /// What lies at the ends of links, as their senders know it.
    input_spaces: Spaces,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    events: EventQueue<Event>,
    /// The cycle whose arrivals have been seen, while decisions are still to be made.
    open: Option<Cycle>,
    asked: Vec<UnitId>,
    requests: Vec<Request>,
    looking: Vec<LinkId>,
    meters: TiVec<LinkId, LinkMeter>,
    lane_bytes: Vec<u64>,
    delivered: u64,
}

impl<O: Observer> OmniPath<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &OmniPathConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        config.check()?;
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        Self::on(config, topology, routes, observer)
    }

    /// The network of `config` on a topology and a routing that were made elsewhere, in place of its own.
    ///
    /// # Errors
    /// When a value makes no sense, or packets may wait for each other for ever.
    pub fn on(config: &OmniPathConfig, topology: Topology, routes: Routes, observer: O) -> Result<Self, FabricError> {
        config.check()?;
        let clock = clock(config, &topology)?;
        let delays = delays(config, &topology, &clock)?;
        let layout = Layout::new(config, &topology)?;
        waits::check(&routes, &topology, &layout)?;
        let bases = config.bases(routes.classes())?;
        let (vls, unit) = (config.vls, config.flits_per_credit);
        let (links, units) = (topology.links().len(), layout.units(topology.switches()));
        let hosts = topology.hosts() as usize * usize::from(vls);
        Ok(Self {
            observer,
            routes,
            clock,
            delays,
            bases,
            vls: vls.into(),
            units: vec![Unit::default(); units].into(),
            asking: vec![Queue::EMPTY; units * usize::from(vls)],
            central_ports: vec![WritePort::default(); units].into(),
            output_ports: vec![WritePort::default(); links].into(),
            senders: vec![Sender::default(); links].into(),
            outputs: vec![Queue::EMPTY; links * usize::from(vls)],
            central_spaces: Spaces::new(units, vls, config.central(), unit),
            output_spaces: Spaces::new(links, vls, config.buffers, unit),
            input_spaces: Spaces::new(links, vls, config.buffers, unit),
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), hosts, config.mtu, config.headers),
            // Most events lie a stage or a packet ahead.
            events: EventQueue::new(1 << 12),
            open: None,
            asked: Vec::new(),
            requests: Vec::new(),
            looking: Vec::new(),
            meters: vec![LinkMeter::default(); links].into(),
            lane_bytes: vec![0; links * usize::from(vls)],
            delivered: 0,
            config: config.clone(),
            layout,
            topology,
        })
    }

    /// What it is built of.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    fn schedule(&mut self, at: Cycle, event: Event) {
        // Cycles stand for times in the queue; within one, arrivals may be seen in any order.
        self.events.schedule(SimTime(at.0), Phase::Arrive, Place(0), event);
    }

    /// Works off the arrivals of the next cycle, if it is not later than `until`. Returns it.
    fn arrivals(&mut self, until: Cycle, deliveries: &mut Vec<Delivery>) -> Option<Cycle> {
        let at = self.next_cycle().filter(|at| *at <= until)?;
        while let Some((_, event)) = self.events.pop_until(SimTime(at.0)) {
            self.open = Some(at);
            match event {
                Event::Header(packet, link) => self.header(packet, link, at),
                Event::Deliver(packet, link) => self.deliver(packet, link, at, deliveries),
                Event::Ask(unit) => self.woken(unit, at),
                Event::Look(link) => self.look_woken(link, at),
                Event::Credits(link, vl, credits) => {
                    self.input_spaces.free(link.into(), vl, credits);
                    self.look(link);
                }
                Event::FromCentral(unit, vl, credits) => self.central_spaces.free(unit.into(), vl, credits),
                Event::FromOutput(link, vl, credits) => self.output_spaces.free(link.into(), vl, credits),
            }
        }
        Some(at)
    }

    /// Makes the decisions of the cycle whose arrivals have been seen.
    fn decide(&mut self) {
        let Some(at) = self.open.take() else { return };
        self.allocate(at);
        let mut looking = std::mem::take(&mut self.looking);
        for link in looking.drain(..) {
            self.take_packet(link, at);
        }
        self.looking = looking;
    }

    fn next_cycle(&self) -> Option<Cycle> {
        self.open.or_else(|| self.events.next_time().map(|time| Cycle(time.0)))
    }

    fn deliver(&mut self, id: PacketId, link: LinkId, now: Cycle, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let back = self.delays[LinkId(link.0 ^ 1)];
        self.schedule(now.plus(back), Event::Credits(link, packet.vl, packet.credits));
        let at = now.begins(&self.clock);
        let message = self.messages.get(packet.message);
        let record = PacketRecord {
            handed_over: message.handed_over,
            left: packet.left.begins(&self.clock),
            arrived: at,
            source: message.source,
            destination: message.destination,
            number: packet.key & NUMBER,
            bytes: packet.bytes,
            flits: packet.flits,
            switches: packet.switches,
            token: message.token,
        };
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at });
        }
    }
}

/// The clock of the switches: the links' flit time.
fn clock(config: &OmniPathConfig, topology: &Topology) -> Result<LinkTime, FabricError> {
    let wrong = |value: String, allowed| FabricError::Value { key: "topology", value, allowed };
    let rate = topology.links().first().map_or(Rate::UNLIMITED, |link| link.rate);
    if let Some(link) = topology.links().iter().find(|link| link.rate != rate) {
        let value = format!("rates of {rate} and {}", link.rate);
        return Err(wrong(value, "links of one rate: a flit's time on them is the cycle of the switches"));
    }
    if topology.links().iter().any(|link| link.burst_bytes > 0) {
        return Err(wrong("a burst".to_owned(), "wires: a link with credits has no token bucket (burst)"));
    }
    let clock = LinkTime::new(rate, config.flit, config.mtu, config.headers);
    if clock.cycle_ps(1) == 0 {
        return Err(wrong(format!("a rate of {rate}"), "rates at which a flit takes a picosecond at least"));
    }
    Ok(LinkTime { whole_flits: true, ..clock })
}

/// Whole cycles from a flit's begin on each link until it begins to arrive.
fn delays(config: &OmniPathConfig, topology: &Topology, clock: &LinkTime) -> Result<TiVec<LinkId, u32>, FabricError> {
    let delay = |delay_ps: u64| {
        let cycles = Cycle::from(SimTime(delay_ps), clock).0;
        u32::try_from(cycles).ok().and_then(|cycles| cycles.checked_add(config.latency.link))
    };
    let delays = topology.links().iter().map(|link| {
        delay(link.delay_ps).ok_or_else(|| FabricError::Value {
            key: "topology",
            value: format!("a delay of {}", DurationPs(link.delay_ps)),
            allowed: "delays of at most 4294967295 cycles",
        })
    });
    delays.collect()
}

impl<O: Observer> Simulation for OmniPath<O> {
    fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.next_cycle().map(|cycle| cycle.begins(&self.clock))
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        let last = Cycle::until(SimTime(last), &self.clock);
        let mut deliveries = Vec::new();
        while self.arrivals(last, &mut deliveries).is_some() {
            self.decide();
            deliveries.clear();
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        let last = Cycle::until(until, &self.clock);
        while let Some(at) = self.arrivals(last, deliveries) {
            if deliveries.len() > before {
                deliveries[before..].sort_by_key(|delivery| delivery.token.0);
                return at.begins(&self.clock);
            }
            self.decide();
        }
        until
    }

    fn events(&self) -> u64 {
        self.events.processed()
    }

    fn figures(&self) -> NetworkFigures {
        let links = self.topology.links().iter().zip(&self.meters).enumerate();
        let links =
            links.map(|(id, (link, meter))| meter.figures(&self.topology.link_name(LinkId(count(id))), link.rate));
        NetworkFigures {
            events: self.events.processed(),
            interval_ps: self.config.interval.ps(),
            links: links.collect(),
            counters: vec![("packets delivered".to_owned(), self.delivered)],
            ..NetworkFigures::default()
        }
    }
}

impl<O: Observer> PacketFabric<O> for OmniPath<O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        if self.open.is_some_and(|open| open.begins(&self.clock) < now) {
            self.decide();
        }
        let node = self.topology.host_node(message.source.0);
        let vl = self.bases[usize::from(message.level.0 & 15)];
        if self.messages.hand_over(now, message, node.0 as usize * self.vls + usize::from(vl)) {
            let at = Cycle::from(now, &self.clock);
            self.wake(self.topology.uplink(node), at);
        }
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        host_rate(&self.topology)?;
        Ok(self.clock)
    }

    fn waits_more_than(&self, host: HostIndex, most: u64) -> Option<bool> {
        let first = self.topology.host_node(host.0).0 as usize * self.vls;
        let waiting = (first..first + self.vls).map(|queue| self.messages.waiting(queue, most));
        Some(waiting.fold(0, u64::saturating_add) > most)
    }

    fn lanes(&self) -> u32 {
        self.config.vls.into()
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        self.lane_bytes.clone()
    }
}

impl FabricKind for OmniPathConfig {
    type Flows = Flows<OmniPath<()>>;
    type Packets<O: Observer> = OmniPath<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError> {
        Ok(Flows::new(OmniPath::new(self, hosts, ())?, self.loopback))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<OmniPath<O>, FabricError> {
        OmniPath::new(self, hosts, observer)
    }

    super::kinds::network_keys! {}
}
