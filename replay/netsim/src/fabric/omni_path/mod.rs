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

use super::FabricError;
use super::clocked::network::{ClockedNetwork, Parts};
use super::clocked::{clock, delays};
use super::cycle::Cycle;
use super::figures::LinkMeter;
use super::hop_log::HopLog;
use super::ids::{PacketId, UnitId};
use super::messages::{Messages, NUMBER};
use super::occupancy::Occupancy;
use super::packet::{LinkTime, Message, Observer, PacketRecord};
use super::slab::Slab;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::Delivery;
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
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
    /// Whether hosts lose the first packet of a queue where none finds room.
    loses_heads: bool,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
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
        let clock = clock(config.flit, config.mtu, config.headers, &topology)?;
        let delays = delays(config.latency.link, &topology, &clock)?;
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
            loses_heads: false,
            occupancy: None,
            log: None,
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

impl<O: Observer> ClockedNetwork for OmniPath<O> {
    type Observer = O;

    fn parts(&self) -> Parts<'_> {
        Parts {
            topology: &self.topology,
            clock: &self.clock,
            messages: &self.messages,
            queues: self.vls,
            lanes: self.config.vls.into(),
            meters: &self.meters,
            interval: self.config.interval,
            delivered: self.delivered,
            events: self.events.processed(),
            occupancy: self.occupancy.as_deref(),
        }
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn next_cycle(&self) -> Option<u64> {
        self.open_cycle().or_else(|| self.events.next_time().map(|time| time.0))
    }

    fn open_cycle(&self) -> Option<u64> {
        self.open.map(|cycle| cycle.0)
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let cycle = self.next_cycle().filter(|cycle| *cycle <= until)?;
        let at = Cycle(cycle);
        while let Some((_, event)) = self.events.pop_until(SimTime(cycle)) {
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
        Some(cycle)
    }

    fn work(&mut self) {
        let Some(at) = self.open.take() else { return };
        self.allocate(at);
        let mut looking = std::mem::take(&mut self.looking);
        for link in looking.drain(..) {
            self.take_packet(link, at);
        }
        self.looking = looking;
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64) {
        let vl = self.bases[usize::from(message.level.0 & 15)];
        if self.messages.hand_over(now, message, host.0 as usize * self.vls + usize::from(vl)) {
            self.wake(self.topology.uplink(host), Cycle(cycle));
        }
    }

    fn lose_heads(&mut self) -> bool {
        self.loses_heads = true;
        true
    }

    fn bytes_of_lanes(&self) -> Vec<u64> {
        self.lane_bytes.clone()
    }

    fn hop_log_slot(&mut self) -> Option<&mut Option<Box<HopLog>>> {
        Some(&mut self.log)
    }

    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        Some(&mut self.occupancy)
    }
}

super::kinds::packet_kind! { OmniPathConfig => OmniPath }
