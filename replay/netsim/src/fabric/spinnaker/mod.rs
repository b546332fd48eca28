//! `spinnaker`: routers that route one packet at a time, as SpiNNaker's do; defined in `docs/spinnaker.md`.
//!
//! They are clocked. In each cycle first what arrives is seen, then engines work (`engine`) and outputs and hosts look whether a packet may leave
//! (`leaves`), each by what it knows itself: whatever passes between switches takes a cycle at least.

mod config;
mod tables;

pub use config::{SpinnakerRouterConfig, TableEntry};

use super::FabricError;
use super::clocked::calendar::Calendar;
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
use super::packet::{LinkTime, Loss, LostPacket, Message, Observer};
use super::slab::Slab;
use crate::count::count;
use crate::network::Delivery;
use crate::routing::{Choice, Routes};
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use std::collections::{BTreeMap, HashMap, VecDeque};
use tables::{Outputs, Tables};
use typed_index_collections::TiVec;

/// What a switch routes.
#[derive(Clone, Copy)]
struct Engine {
    /// The packet that it has, [`PacketId::NONE`] without one; where it goes on.
    packet: PacketId,
    outputs: Outputs,
    /// When that may pass, and when it is lost if it has not.
    ready: u64,
    lost: u64,
    /// The input at which the choice of the next one begins, as its switch counts them.
    turn: u32,
    /// Whether it is in the list of those that work in this cycle.
    listed: bool,
}

const IDLE: Engine =
    Engine { packet: PacketId::NONE, outputs: Outputs::one(0), ready: 0, lost: 0, turn: 0, listed: false };

/// The copies of a packet that went to several outputs.
#[derive(Clone, Copy)]
struct Copies {
    /// Those under way.
    left: u32,
    /// Whether one has come to the destination, and whether one was lost.
    arrived: bool,
    lost: bool,
}

/// A link, at its sender.
#[derive(Clone, Copy)]
struct Output {
    /// The packet that waits there, of a switch.
    packet: PacketId,
    free_at: u64,
    /// Packets for which there is room at its end.
    room: u32,
    listed: bool,
}

/// What happens in a cycle, before switches and hosts work.
#[derive(Clone, Copy)]
enum Event {
    /// A packet has arrived at a switch, at the end of a link.
    Arrives { link: LinkId, packet: PacketId },
    /// A packet has arrived at a host.
    Delivered { link: LinkId, packet: PacketId },
    /// The queue at the end of an output's link has room for one packet more.
    BufferFree { output: u32 },
    /// A switch looks after the packet in its engine.
    Engine { switch: u32 },
    /// An output looks whether a packet may leave.
    Try { output: u32 },
}

/// A network of routers that route one packet at a time.
pub struct Spinnaker<O> {
    observer: O,
    config: SpinnakerRouterConfig,
    topology: Topology,
    routes: Routes,
    tables: Tables,
    ports: Ports,
    clock: LinkTime,
    /// Cycles that a link takes, beside those in which a packet is sent.
    delays: TiVec<LinkId, u32>,
    engines: Vec<Engine>,
    /// By input.
    queues: Vec<VecDeque<PacketId>>,
    outputs: Vec<Output>,
    routing: Vec<u32>,
    trying: Vec<u32>,
    packets: Slab<PacketId, Packet>,
    /// By key, of packets of which there are several.
    copies: HashMap<u64, Copies>,
    messages: Messages,
    /// Packets that were lost and are sent again before those of messages, by host; `None` if lost ones stay so.
    again: Option<Vec<VecDeque<PacketId>>>,
    calendar: Calendar<Event>,
    /// Hosts that have something to send from a cycle on.
    wakes: BTreeMap<u64, Vec<u32>>,
    /// The first cycle that has not been worked off.
    now: u64,
    /// Whether its arrivals have been seen.
    open: bool,
    meters: TiVec<LinkId, LinkMeter>,
    lane_bytes: Vec<u64>,
    delivered: u64,
    moved: u64,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
}

impl<O: Observer> Spinnaker<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &SpinnakerRouterConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        config.check()?;
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        config.check_routes(&routes)?;
        let clock = clock(config.flit, config.mtu, config.headers, &topology)?;
        let delays = delays(config.link_cycles, &topology, &clock)?;
        let slowest = delays.iter().copied().max().unwrap_or(0);
        let within = u64::from(config.routing_cycles) + u64::from(config.wait);
        let ahead = check_ahead(u64::from(slowest) + config.largest_flits() + within + 2)?;
        let ports = Ports::new(&topology);
        let tables = Tables::new(&config.tables, &topology, &ports)?;
        let (hosts, links) = (topology.hosts() as usize, topology.links().len());
        let output = Output { packet: PacketId::NONE, free_at: 0, room: config.buffer, listed: false };
        Ok(Self {
            observer,
            routes,
            tables,
            clock,
            delays,
            engines: vec![IDLE; topology.switches() as usize],
            queues: vec![VecDeque::new(); ports.inputs().len()],
            outputs: vec![output; ports.outputs().len()],
            routing: Vec::new(),
            trying: Vec::new(),
            packets: Slab::default(),
            copies: HashMap::new(),
            messages: Messages::new(topology.hosts(), hosts, config.mtu, config.headers),
            again: None,
            calendar: Calendar::new(ahead),
            wakes: BTreeMap::new(),
            now: 0,
            open: false,
            meters: vec![LinkMeter::default(); links].into(),
            lane_bytes: vec![0; links],
            delivered: 0,
            moved: 0,
            occupancy: None,
            log: None,
            ports,
            config: config.clone(),
            topology,
        })
    }

    /// The same, but a packet that is lost is offered to its source's link again at once, before all that waits there. Without that a message of
    /// which a packet is lost is never complete, and a replayed job would wait for it for ever.
    #[must_use]
    pub fn resending(mut self) -> Self {
        self.again = Some(vec![VecDeque::new(); self.topology.hosts() as usize]);
        self
    }

    /// What it is built of.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Has `switch` look after its engine in the present cycle.
    fn wake_engine(&mut self, switch: u32) {
        let engine = &mut self.engines[switch as usize];
        if !std::mem::replace(&mut engine.listed, true) {
            self.routing.push(switch);
        }
    }

    /// Has `output` look in the present cycle whether a packet may leave.
    fn wake_output(&mut self, output: u32) {
        let state = &mut self.outputs[output as usize];
        if !std::mem::replace(&mut state.listed, true) {
            self.trying.push(output);
        }
    }

    fn wake_host(&mut self, host: u32) {
        self.wake_output(self.ports.output_of(self.topology.uplink(NodeId(host))));
    }

    /// The engine of `switch` gives up its packet, if it may, and takes the next one.
    fn engine(&mut self, switch: u32, now: u64) {
        self.engines[switch as usize].listed = false;
        let Engine { packet, outputs, ready, lost, .. } = self.engines[switch as usize];
        if packet != PacketId::NONE {
            if now < ready {
                return;
            }
            let taken = |output: &&u32| self.outputs[**output as usize].packet != PacketId::NONE;
            match self.tables.list(outputs).iter().find(taken).copied() {
                None => self.pass(packet, outputs),
                Some(output) if now >= lost => self.lose(packet, output, now),
                Some(_) => {
                    if now == ready {
                        self.calendar.put(lost, Event::Engine { switch });
                    }
                    return;
                }
            }
            self.engines[switch as usize].packet = PacketId::NONE;
        }
        self.take_next(switch, now);
    }

    /// A packet passes to `outputs`, at none of which another one waits: a copy to each.
    fn pass(&mut self, id: PacketId, outputs: Outputs) {
        if let [output] = *self.tables.list(outputs) {
            self.outputs[output as usize].packet = id;
            self.wake_output(output);
            return;
        }
        let list = self.tables.list(outputs).to_vec();
        let packet = *self.packets.get(id);
        let one = Copies { left: 1, arrived: false, lost: false };
        self.copies.entry(packet.key).or_insert(one).left += count(list.len() - 1);
        for (place, output) in list.into_iter().enumerate() {
            let copy = if place == 0 { id } else { self.packets.insert(packet) };
            self.outputs[output as usize].packet = copy;
            self.wake_output(output);
        }
    }

    /// The engine of `switch`, which is free, takes the first packet of the next input that has one.
    fn take_next(&mut self, switch: u32, now: u64) {
        let (first, inputs) = self.ports.inputs_of(switch);
        let turn = self.engines[switch as usize].turn;
        let next = (turn..inputs).chain(0..turn).find(|input| !self.queues[(first + input) as usize].is_empty());
        let Some(input) = next else { return };
        let Some(id) = self.queues[(first + input) as usize].pop_front() else { return };
        let link = self.ports.inputs()[(first + input) as usize];
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.leaves(link.into(), now, now + 1);
        }
        let sender = self.ports.output_of(link);
        self.calendar.put(now + 1 + u64::from(self.delays[link.back()]), Event::BufferFree { output: sender });
        let outputs = self.way(NodeId(self.topology.hosts() + switch), link, id);
        let ready = now + u64::from(self.config.routing_cycles);
        let lost = ready + u64::from(self.config.wait);
        let turn = if input + 1 == inputs { 0 } else { input + 1 };
        self.engines[switch as usize] = Engine { packet: id, outputs, ready, lost, turn, listed: false };
        self.calendar.put(ready, Event::Engine { switch });
    }

    /// The outputs by which a packet goes on.
    fn way(&self, node: NodeId, link: LinkId, id: PacketId) -> Outputs {
        let packet = self.packets.get(id);
        let source = self.topology.host_node(u32::try_from(packet.key >> 40).unwrap_or(0));
        if let Some(outputs) = self.tables.of(node, link, source) {
            return outputs;
        }
        let next = self.routes.next(node, link, packet.destination);
        let choice = self.routes.choose(next.links.len(), node, packet.key, packet.flow, source, packet.destination);
        // Routings that choose by credits are refused.
        let index = if let Choice::Index(index) = choice { index } else { 0 };
        Outputs::one(next.links.get(index).map_or(0, |link| self.ports.output_of(*link)))
    }

    /// A packet has waited long enough for `output`.
    fn lose(&mut self, id: PacketId, output: u32, now: u64) {
        let at = Cycle(now).begins(&self.clock);
        self.meters[self.ports.outputs()[output as usize]].dropped(at, self.config.interval.ps());
        if let Some(log) = &mut self.log {
            log.lost(self.packets.get(id).key, self.ports.outputs()[output as usize], at);
        }
        self.copy_ends(id, now, true);
    }

    /// A packet has come to its end, but not to its destination: it was lost, or came to another host. If no copy of it is left and none has come there, its message has lost it.
    fn copy_ends(&mut self, id: PacketId, now: u64, lost: bool) {
        let Packet { message, key, .. } = *self.packets.get(id);
        let mut copies = Copies { left: 0, arrived: false, lost };
        if let Some(known) = self.copies.get_mut(&key) {
            known.left -= 1;
            known.lost |= lost;
            copies = *known;
        }
        if copies.left > 0 || copies.arrived {
            self.packets.remove(id);
            if copies.left == 0 {
                self.copies.remove(&key);
            }
            return;
        }
        self.copies.remove(&key);
        let at = Cycle(now).begins(&self.clock);
        let open = self.messages.get(message);
        let (handed_over, source, token) = (open.handed_over, open.source, open.token);
        let number = key & super::messages::NUMBER;
        self.observer.dropped(&LostPacket { at, handed_over, source, number, token, reason: Loss::InNetwork });
        if let Some(again) = self.again.as_mut().filter(|_| copies.lost) {
            let host = self.topology.host_node(source.0).0;
            self.packets.get_mut(id).switches = 0;
            again[host as usize].push_back(id);
            self.wakes.entry(now + 1).or_default().push(host);
            return;
        }
        self.packets.remove(id);
        self.messages.lost(message);
    }

    /// A packet leaves by `output`, if one waits there and may.
    fn leaves(&mut self, output: u32, now: u64) {
        self.outputs[output as usize].listed = false;
        let link = self.ports.outputs()[output as usize];
        let (from, to) = (self.topology.link(link).from, self.topology.link(link).to);
        let Output { free_at, room, .. } = self.outputs[output as usize];
        let (from_host, to_host) = (self.topology.is_host(from), self.topology.is_host(to));
        if free_at > now || (!to_host && room == 0) {
            return;
        }
        let next = if from_host { self.next_of_host(from, now) } else { self.next_of_switch(from, output, now) };
        let Some(id) = next else { return };
        let Packet { flits, bytes, key, .. } = *self.packets.get(id);
        let state = &mut self.outputs[output as usize];
        state.free_at = now + u64::from(flits);
        if !to_host {
            state.room -= 1;
        }
        self.calendar.put(now + u64::from(flits), Event::Try { output });
        self.moved += u64::from(flits);
        self.lane_bytes[usize::from(link)] += u64::from(flits) * self.config.flit.get();
        self.meters[link].crossed(Cycle(now).begins(&self.clock), bytes.into(), self.config.interval.ps());
        let arrives = now + u64::from(flits) + u64::from(self.delays[link]);
        if let Some(log) = &mut self.log {
            let (clock, first) = (&self.clock, now + 1 + u64::from(self.delays[link]));
            let begins = |cycle: u64, flit: u32| Cycle(cycle + u64::from(flit)).begins(clock);
            let times = |flit| (begins(now, flit), begins(first, flit));
            if from_host {
                log.begins(key, Cycle(now).begins(clock));
            }
            log.packet_crosses(key, (link, 0), (flits, true), times);
        }
        if to_host {
            self.calendar.put(arrives, Event::Delivered { link, packet: id });
        } else {
            if let Some(occupancy) = &mut self.occupancy {
                occupancy.enters(link.into(), now, arrives);
            }
            self.calendar.put(arrives, Event::Arrives { link, packet: id });
        }
    }

    /// The packet that waits at an output of `switch`, whose engine may have one for it.
    fn next_of_switch(&mut self, switch: NodeId, output: u32, now: u64) -> Option<PacketId> {
        let waiting = std::mem::replace(&mut self.outputs[output as usize].packet, PacketId::NONE);
        if waiting == PacketId::NONE {
            return None;
        }
        self.packets.get_mut(waiting).switches += 1;
        let switch = switch.0 - self.topology.hosts();
        let Engine { packet, outputs, ready, .. } = self.engines[switch as usize];
        if packet != PacketId::NONE && ready <= now && self.tables.list(outputs).contains(&output) {
            self.calendar.put(now + 1, Event::Engine { switch });
        }
        Some(waiting)
    }

    /// The next packet of a host.
    fn next_of_host(&mut self, host: NodeId, now: u64) -> Option<PacketId> {
        if let Some(id) = self.again.as_mut().and_then(|again| again[host.0 as usize].pop_front()) {
            return Some(id);
        }
        let cut = self.messages.cut(host.0 as usize)?;
        let message = self.messages.get(cut.message);
        let destination = self.topology.host_node(message.destination.0);
        let flits = u64::from(cut.bytes).div_ceil(self.config.flit.get());
        let flits = u32::try_from(flits).unwrap_or(u32::MAX);
        Some(self.packets.insert(Packet::new(cut, message, destination, flits, now)))
    }

    /// A packet, or a copy of it, has come to `host`.
    fn deliver(&mut self, id: PacketId, host: NodeId, now: u64, deliveries: &mut Vec<Delivery>) {
        if self.packets.get(id).destination != host {
            self.copy_ends(id, now, false);
            return;
        }
        let packet = self.packets.remove(id);
        if let Some(copies) = self.copies.get_mut(&packet.key) {
            copies.left -= 1;
            copies.arrived = true;
            if copies.left == 0 {
                self.copies.remove(&packet.key);
            }
        }
        let [left, arrived] = [packet.left, now].map(|cycle| Cycle(cycle).begins(&self.clock));
        let record = packet.record(self.messages.get(packet.message), left, arrived);
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: record.arrived });
        }
    }
}

impl<O: Observer> ClockedNetwork for Spinnaker<O> {
    type Observer = O;

    fn parts(&self) -> Parts<'_> {
        Parts {
            topology: &self.topology,
            clock: &self.clock,
            messages: &self.messages,
            queues: 1,
            lanes: 1,
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
        if self.open {
            return Some(self.now);
        }
        let woken = self.wakes.keys().next().copied();
        [woken, self.calendar.next(self.now)].into_iter().flatten().min()
    }

    fn open_cycle(&self) -> Option<u64> {
        self.open.then_some(self.now)
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let now = self.next_cycle().filter(|cycle| *cycle <= until)?;
        if std::mem::replace(&mut self.open, true) {
            return Some(now);
        }
        self.now = now;
        let events = self.calendar.take(now);
        for event in &events {
            match *event {
                Event::Arrives { link, packet } => {
                    self.queues[self.ports.input_of(link) as usize].push_back(packet);
                    self.wake_engine(self.topology.link(link).to.0 - self.topology.hosts());
                }
                Event::Delivered { link, packet } => {
                    self.deliver(packet, self.topology.link(link).to, now, deliveries);
                }
                Event::BufferFree { output } => {
                    self.outputs[output as usize].room += 1;
                    self.wake_output(output);
                }
                Event::Engine { switch } => self.wake_engine(switch),
                Event::Try { output } => self.wake_output(output),
            }
        }
        self.calendar.keep(now, events);
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
        let mut routing = std::mem::take(&mut self.routing);
        routing.drain(..).for_each(|switch| self.engine(switch, now));
        self.routing = routing;
        let mut trying = std::mem::take(&mut self.trying);
        trying.drain(..).for_each(|output| self.leaves(output, now));
        self.trying = trying;
        self.now += 1;
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64) {
        self.messages.hand_over(now, message, host.0 as usize);
        if self.open {
            self.wake_host(host.0);
        } else {
            self.wakes.entry(cycle.max(self.now)).or_default().push(host.0);
        }
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

impl super::FabricKind for SpinnakerRouterConfig {
    type Flows = super::flows::Flows<Spinnaker<()>>;
    type Packets<O: Observer> = Spinnaker<O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Self::Flows, FabricError> {
        Ok(super::flows::Flows::new(Spinnaker::new(self, hosts, ())?.resending(), self.loopback))
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Spinnaker<O>, FabricError> {
        Spinnaker::new(self, hosts, observer)
    }

    super::kinds::network_keys! {}
}
