//! `store-and-forward`: whole packets, queued at their outputs, dropped where these are full; defined in `docs/fabric.md`.
//!
//! A packet's departure is certain as soon as it is accepted, for nothing overtakes it. So a packet costs one event a
//! link: when it is offered to its next output, or has arrived. A host cuts a packet when its link takes it: at once, or by one
//! event more where the link is busy.

mod config;
pub mod windows;

pub use config::StoreAndForwardConfig;

use super::flows::Flows;
use super::ids::{MessageId, PacketId};
use super::messages::{Messages, NUMBER, key};
use super::packet::{
    HostLinksDiffer, LinkTime, Loss, LostPacket, Message, Observer, PacketFabric, PacketRecord, host_rate,
};
use super::port::Port;
use super::slab::Slab;
use super::windowed::{Windowed, Windowing};
use super::windows::WindowsWanted;
use super::{FabricError, FabricKind};
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, NetworkFigures, Simulation};
use crate::routing::{Choice, Routes, RoutingConfig};
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use crate::units::{Bytes, Rate};
use typed_index_collections::TiVec;

/// The largest packet, headers included, and the longest delay in picoseconds: a second.
const MAX_BYTES: u64 = 1 << 20;
const MAX_DELAY: u64 = 1_000_000_000_000;
/// The rate above which a byte would take no time.
const FASTEST: Rate = Rate::from_bps(8_000_000_000_000);

/// What happens, and where.
#[derive(Clone, Copy)]
enum Event {
    /// A packet has arrived at the end of a link, and a switch has dealt with it.
    Arrived(PacketId, LinkId),
    /// The link of a host is free for the next packet that waits there.
    Free(NodeId),
}

/// A packet on its way.
#[derive(Clone, Copy)]
struct Packet {
    message: MessageId,
    destination: NodeId,
    bytes: u32,
    switches: u32,
    left: SimTime,
    /// Source host x 2^40 + number.
    key: u64,
    flow: u64,
}

/// A network of switches that store and forward.
pub struct StoreAndForward<O> {
    observer: O,
    topology: Topology,
    routes: Routes,
    flit: u64,
    mtu: Bytes,
    headers: Bytes,
    interval_ps: u64,
    ports: TiVec<LinkId, Port>,
    /// For each host, whether packets wait for its link, and an event for them.
    waits: Vec<bool>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    events: EventQueue<Event>,
    delivered: u64,
    dropped: u64,
    /// Whether a packet that was dropped is sent again, and how many were.
    resends: bool,
    resent: u64,
}

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl StoreAndForwardConfig {
    fn check(&self, topology: &Topology, routing: &RoutingConfig) -> Result<(), FabricError> {
        if self.mtu.get() == 0 || self.mtu.get() > MAX_BYTES {
            return Err(wrong("mtu", self.mtu, "from 1B to 1MiB"));
        }
        if self.headers.get() > MAX_BYTES {
            return Err(wrong("headers", self.headers, "at most 1MiB"));
        }
        if self.flit.get() == 0 {
            return Err(wrong("flit", self.flit, "at least 1B; what statistics count as a flit"));
        }
        if routing.needs_credits() {
            let allowed =
                "a routing that needs no credits: ecmp, ecmp-packet, random, d-mod-k, s-mod-k, shortest, up-down, dor";
            return Err(wrong("routing", routing, allowed));
        }
        if self.switch_delay.ps() > MAX_DELAY {
            return Err(wrong("switch_delay", self.switch_delay, "at most 1s"));
        }
        for link in topology.links() {
            if link.rate > FASTEST {
                return Err(wrong("topology", format!("a rate of {}", link.rate), "rates of at most 8000Gbps"));
            }
            if link.delay_ps > MAX_DELAY {
                return Err(wrong("topology", format!("a delay of {}ps", link.delay_ps), "delays of at most 1s"));
            }
            if link.burst_bytes > 0 {
                let value = format!("a burst of {}B", link.burst_bytes);
                return Err(wrong("topology", value, "wires: token buckets (burst) are for the fabric ethernet"));
            }
        }
        for host in (0..topology.hosts()).map(NodeId) {
            if topology.out(host).is_empty() {
                let value = format!("host {} without a link", topology.name(host));
                return Err(wrong("topology", value, "hosts that are joined to a switch"));
            }
        }
        Ok(())
    }
}

impl<O: Observer> StoreAndForward<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &StoreAndForwardConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        Self::on(config, topology, routes, observer)
    }

    /// The network of `config` on a topology and a routing that were made elsewhere, in place of its own.
    ///
    /// # Errors
    /// When a value makes no sense.
    pub fn on(
        config: &StoreAndForwardConfig,
        topology: Topology,
        routes: Routes,
        observer: O,
    ) -> Result<Self, FabricError> {
        config.check(&topology, routes.config())?;
        let to_switch = |to: NodeId| to.0 >= topology.hosts();
        let extra = |to: NodeId| if to_switch(to) { config.switch_delay.ps() } else { 0 };
        let ports: TiVec<LinkId, Port> =
            topology.links().iter().map(|link| Port::strict(link, extra(link.to))).collect();
        let largest = config.mtu.get() + config.headers.get();
        let slowest = topology.links().iter().map(|link| link.rate.time_ps(largest) + link.delay_ps).max();
        // Arrivals are scheduled when a packet is queued, behind some that wait.
        let horizon = slowest.unwrap_or(0).saturating_mul(16).max(config.switch_delay.ps());
        Ok(Self {
            observer,
            routes,
            flit: config.flit.get(),
            mtu: config.mtu,
            headers: config.headers,
            interval_ps: config.interval.ps(),
            ports,
            waits: vec![false; topology.hosts() as usize],
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), topology.hosts() as usize, config.mtu, config.headers),
            events: EventQueue::new(horizon),
            delivered: 0,
            dropped: 0,
            resends: false,
            resent: 0,
            topology,
        })
    }

    /// What it is built of.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// From now on, a packet that is dropped is offered to its source's link again, at the same instant: as if its source
    /// were told at once. Without that a message of which a packet is dropped is never complete, and a replayed job
    /// would wait for it for ever.
    #[must_use]
    pub fn resending(mut self) -> Self {
        self.resends = true;
        self
    }

    /// Has host `node` send its next packet, if its link is free; else there is an event for when it is.
    fn cut(&mut self, node: NodeId, now: SimTime) {
        let Some(link) = self.topology.out(node).first().copied() else { return };
        let free = self.ports[link].free();
        if free <= now
            && let Some(cut) = self.messages.cut(node.0 as usize)
        {
            let passage = self.ports[link].send(now, cut.bytes, self.interval_ps);
            let message = self.messages.get(cut.message);
            let packet = self.packets.insert(Packet {
                message: cut.message,
                destination: self.topology.host_node(message.destination.0),
                bytes: cut.bytes,
                switches: 0,
                left: passage.started,
                key: key(message.source, cut.number),
                flow: message.flow,
            });
            self.schedule(passage.arrives, link, packet);
        }
        let waits = !self.messages.is_empty(node.0 as usize);
        self.waits[node.0 as usize] = waits;
        if waits {
            self.events.schedule(self.ports[link].free(), Phase::Arrive, Place(link.0), Event::Free(node));
        }
    }

    fn schedule(&mut self, at: SimTime, link: LinkId, packet: PacketId) {
        self.events.schedule(at, Phase::Arrive, Place(link.0), Event::Arrived(packet, link));
    }

    fn happen(&mut self, now: SimTime, event: Event, deliveries: &mut Vec<Delivery>) {
        match event {
            Event::Arrived(packet, link) => self.arrived(now, packet, link, deliveries),
            Event::Free(node) => self.cut(node, now),
        }
    }

    fn arrived(&mut self, now: SimTime, id: PacketId, link: LinkId, deliveries: &mut Vec<Delivery>) {
        let at = self.topology.link(link).to;
        if at.0 < self.topology.hosts() {
            self.deliver(now, id, deliveries);
            return;
        }
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (bytes, destination) = (packet.bytes, packet.destination);
        let next = self.routes.next(at, link, destination);
        let mut position = 0;
        if next.links.len() > 1 {
            let source = self.topology.host_node((packet.key >> 40) as u32);
            let choice = self.routes.choose(next.links.len(), at, packet.key, packet.flow, source, destination);
            if let Choice::Index(index) = choice {
                position = index;
            }
        }
        let Some(out) = next.links.get(position).copied() else { return };
        match self.ports[out].offer(now, bytes, self.interval_ps) {
            Some(passage) => self.schedule(passage.arrives, out, id),
            None => self.drop(now, id),
        }
    }

    fn drop(&mut self, now: SimTime, id: PacketId) {
        let packet = *self.packets.get(id);
        let message = self.messages.get(packet.message);
        let (source, token, handed_over) = (message.source, message.token, message.handed_over);
        self.dropped += 1;
        let number = packet.key & NUMBER;
        self.observer.dropped(&LostPacket { at: now, handed_over, source, number, token, reason: Loss::InNetwork });
        let link = self.topology.out(self.topology.host_node(source.0)).first().copied();
        if let (true, Some(link)) = (self.resends, link) {
            let passage = self.ports[link].send(now, packet.bytes, self.interval_ps);
            self.packets.get_mut(id).switches = 0;
            self.resent += 1;
            self.schedule(passage.arrives, link, id);
            return;
        }
        self.packets.remove(id);
        self.messages.lost(packet.message);
    }

    fn deliver(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let message = self.messages.get(packet.message);
        let record = PacketRecord {
            handed_over: message.handed_over,
            left: packet.left,
            arrived: now,
            source: message.source,
            destination: message.destination,
            number: packet.key & NUMBER,
            bytes: packet.bytes,
            flits: u32::try_from(u64::from(packet.bytes).div_ceil(self.flit)).unwrap_or(u32::MAX),
            switches: packet.switches,
            token: message.token,
        };
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: now });
        }
    }
}

impl<O: Observer> Simulation for StoreAndForward<O> {
    fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.events.next_time()
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        let mut deliveries = Vec::new();
        while let Some((now, event)) = self.events.pop_until(SimTime(last)) {
            self.happen(now, event, &mut deliveries);
            deliveries.clear();
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        super::instant::collect_instant(self, until, deliveries, |network| &mut network.events, Self::happen)
    }

    fn events(&self) -> u64 {
        self.events.processed()
    }

    fn figures(&self) -> NetworkFigures {
        let ports = self.ports.iter().zip(self.topology.links()).enumerate();
        let links = ports
            .map(|(id, (port, link))| port.meter.figures(&self.topology.link_name(LinkId(count(id))), link.used_rate()))
            .collect();
        NetworkFigures {
            circuits: Vec::new(),
            circuit_totals: None,
            events: self.events.processed(),
            drops: self.dropped,
            retransmissions: self.resent,
            interval_ps: self.interval_ps,
            links,
            counters: vec![("packets delivered".to_owned(), self.delivered)],
        }
    }
}

impl<O: Observer> PacketFabric<O> for StoreAndForward<O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        let node = self.topology.host_node(message.source.0);
        self.messages.hand_over(now, message, node.0 as usize);
        if !self.waits[node.0 as usize] {
            self.cut(node, now);
        }
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        Ok(LinkTime::new(host_rate(&self.topology)?, Bytes(self.flit), self.mtu, self.headers))
    }

    fn lane_bytes(&self, now: SimTime) -> Vec<u64> {
        self.ports.iter().map(|port| port.begun_bytes(now)).collect()
    }
}

impl FabricKind for StoreAndForwardConfig {
    type Flows = Flows<StoreAndForward<()>>;
    type Packets<O: Observer> = StoreAndForward<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError> {
        Ok(Flows::new(StoreAndForward::new(self, hosts, ())?.resending(), self.loopback))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<StoreAndForward<O>, FabricError> {
        StoreAndForward::new(self, hosts, observer)
    }

    fn windowed(&self, hosts: &[HostPlace], wanted: WindowsWanted) -> Result<Windowing, FabricError> {
        if let Some(reason) = wanted.by_events() {
            return Ok(Windowing::Events(Some(reason)));
        }
        Ok(Windowing::Windows(Windowed::StoreAndForward(Box::new(windows::Windowed::new(self, hosts)?))))
    }

    super::kinds::network_keys! {}
}
