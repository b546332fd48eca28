//! `lightness`: servers below ToR switches, joined by an optical packet switch (OPS) and an optical circuit switch (OCS).
//!
//! ```text
//!   server --+                                              +-- server
//!   server --+-- rack's switch -- ToR == OPS, OCS == ToR ---+-- server
//! ```
//!
//! A message is cut into photonic packets. Within a rack they stay electrical. To other racks they wait in their ToR
//! for a channel to the packet switch (start-up, serialisation, conversion; ACK or NACK; retransmission) or for a
//! circuit (set-up, then no contention). The parameters are those of LIGHTNESS' deliverable, under its own names too.
//!
//! What is left out: the receiving ToR's buffer does not fill; the links below the ToR carry whole packets and not
//! flits of virtual lanes; requests, ACKs and NACKs have a channel of their own and take their fixed delays.

mod config;
mod ocs;
mod ops;
mod server;
mod tor;

pub use config::{Arbiter, DecidedAt, Decision, LightnessConfig};

use super::figures::LinkMeter;
use super::pipe::Pipe;
use super::slab::Slab;
use super::{FabricError, HostPlace, collect_instant, count};
use crate::kernel::random::{below, draw};
use crate::kernel::{EventQueue, Place};
use crate::network::{Delivery, FlowId, HostIndex, LinkFigures, Network, NetworkFigures, SimTime, Token};
use crate::topology::TopologyError;
use crate::units::{PerByte, Rate};
use ocs::{Circuit, Ocs};
use ops::Ops;
use server::{Flow, Nic, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tor::{Channel, Way};

#[derive(Clone, Copy)]
enum Event {
    /// A server's link is free.
    NicSent(u32),
    /// A packet is whole in the ToR's Input.
    AtTor(u32),
    /// A channel to the packet switch has sent a packet.
    ChannelSent(u32),
    /// The packet switch has routed a packet.
    AtOps(u32),
    /// The end of a slot of the packet switch.
    OpsDecides,
    /// A ToR has dealt with an ACK for a channel.
    Acked(u32),
    /// A ToR has dealt with the NACK of a packet.
    Nacked(u32),
    /// A packet is whole in its destination's rack switch.
    AtOutput(u32),
    /// A packet is whole at its server.
    Received(u32),
    /// The circuit switch has seen all requests of the instant.
    OcsDecides,
    /// A circuit can be used.
    CircuitUp(u32),
    /// A refused circuit is asked for again.
    CircuitRetry(u32),
    /// A circuit has sent a packet.
    CircuitSent(u32),
    /// A circuit may have been idle for long.
    CircuitIdle(u32),
    /// A message is through the loopback.
    Looped(Token),
}

struct Rack {
    name: String,
}

#[derive(Default)]
struct Meters {
    up: Vec<LinkMeter>,
    down: Vec<LinkMeter>,
    ops_in: Vec<LinkMeter>,
    ops_out: Vec<LinkMeter>,
    ocs: Vec<LinkMeter>,
}

#[derive(Default)]
struct Counters {
    electrical: u64,
    by_ops: u64,
    by_circuit: u64,
    acks: u64,
    nacks: u64,
    resent: u64,
    reordered: u64,
    circuit_requests: u64,
    circuits: u64,
    circuits_refused: u64,
    circuits_released: u64,
    circuits_evicted: u64,
    looped_bytes: u64,
}

/// A LIGHTNESS network.
pub struct Lightness {
    config: LightnessConfig,
    byte_delay: PerByte,
    cable_ps: u64,
    names: Vec<String>,
    racks: Vec<Rack>,
    rack_of: Vec<u32>,
    /// Whether a host, or its rack, is one of `circuit_destinations`.
    circuit_hosts: Vec<bool>,
    nics: Vec<Nic>,
    down_free: Vec<SimTime>,
    flows: Vec<Flow>,
    packets: Slab<Packet>,
    channels: Vec<Channel>,
    ops: Ops,
    ocs: Ocs,
    circuits: Vec<Circuit>,
    /// By source and destination rack; `u32::MAX` where none was ever asked for.
    circuit_index: Vec<u32>,
    queue: EventQueue<Event>,
    meters: Meters,
    counters: Counters,
}

impl Lightness {
    /// The network of `config` for `hosts`.
    ///
    /// # Errors
    /// When a value makes no sense or does not fit the number of racks, or a host is named twice.
    pub fn new(config: &LightnessConfig, hosts: &[HostPlace]) -> Result<Self, FabricError> {
        if hosts.is_empty() {
            return Err(FabricError::NoHosts);
        }
        let (racks, rack_of) = racks_of(hosts)?;
        config.check(racks.len())?;
        let circuit_hosts = circuit_hosts(config, hosts)?;
        let ports = Self::channel_count(racks.len(), config.wavelengths);
        let meters = |number: usize| vec![LinkMeter::default(); number];
        let largest = config.photonic_packet_max.get();
        let horizon = config.server_rate.time_ps(largest).max(config.tor_rate.time_ps(largest)).saturating_mul(64);
        Ok(Self {
            byte_delay: config.byte_delay(),
            cable_ps: config.cable_ps(),
            names: hosts.iter().map(|host| host.name.clone()).collect(),
            circuit_index: vec![u32::MAX; racks.len() * racks.len()],
            nics: hosts.iter().map(|_| Nic::default()).collect(),
            down_free: vec![SimTime::ZERO; hosts.len()],
            flows: Vec::new(),
            packets: Slab::default(),
            channels: (0..ports).map(|_| Channel::default()).collect(),
            ops: Ops { busy_until: vec![SimTime::ZERO; ports], passed_last: vec![0; ports], ..Ops::default() },
            ocs: Ocs { inputs: vec![None; ports], outputs: vec![None; ports], ..Ocs::default() },
            circuits: Vec::new(),
            queue: EventQueue::new(horizon.clamp(1 << 24, 1 << 36)),
            meters: Meters {
                up: meters(hosts.len()),
                down: meters(hosts.len()),
                ops_in: meters(ports),
                ops_out: meters(ports),
                ocs: meters(racks.len()),
            },
            counters: Counters::default(),
            config: config.clone(),
            racks,
            rack_of,
            circuit_hosts,
        })
    }

    fn nic_place(&self, host: u32) -> Place {
        Place(host)
    }

    fn down_place(&self, host: u32) -> Place {
        Place(count(self.nics.len()) + host)
    }

    fn channel_place(&self, channel: u32) -> Place {
        Place(2 * count(self.nics.len()) + channel)
    }

    fn ops_place(&self) -> Place {
        Place(2 * count(self.nics.len()) + count(self.channels.len()))
    }

    fn ocs_place(&self) -> Place {
        Place(self.ops_place().0 + 1)
    }

    /// Circuits and flows share the numbers behind: even for the ones, odd for the others.
    fn circuit_place(&self, circuit: u32) -> Place {
        Place(self.ops_place().0 + 2 + 2 * circuit)
    }

    fn flow_place(&self, flow: u32) -> Place {
        Place((self.ops_place().0 + 3).wrapping_add(flow.wrapping_mul(2)))
    }

    fn process(&mut self, now: SimTime, event: Event, deliveries: &mut Vec<Delivery>) {
        match event {
            Event::NicSent(host) => {
                self.nics[host as usize].busy = false;
                self.try_nic(now, host);
            }
            Event::AtTor(id) => self.at_tor(now, id),
            Event::ChannelSent(channel) => self.channel_sent(now, channel),
            Event::AtOps(id) => self.at_ops(now, id),
            Event::OpsDecides => self.ops_decides(now),
            Event::Acked(channel) => self.acked(now, channel),
            Event::Nacked(id) => self.nacked(now, id),
            Event::AtOutput(id) => self.send_down(now, id),
            Event::Received(id) => self.received(now, id, deliveries),
            Event::OcsDecides => self.ocs_decides(now),
            Event::CircuitUp(circuit) => self.circuit_up(now, circuit),
            Event::CircuitRetry(circuit) => self.retry_circuit(now, circuit),
            Event::CircuitSent(circuit) => self.circuit_sent(now, circuit),
            Event::CircuitIdle(circuit) => self.circuit_idle(now, circuit),
            Event::Looped(token) => deliveries.push(Delivery { token, at: now }),
        }
    }

    fn links(&self) -> Vec<LinkFigures> {
        let server = self.config.server_rate;
        let circuit = self.config.tor_rate.min(self.config.ocs_rate);
        let mut links = Vec::new();
        for (host, name) in self.names.iter().enumerate() {
            let rack = &self.racks[self.rack_of[host] as usize].name;
            links.push(self.meters.up[host].figures(&format!("{name}->{rack}"), server));
            links.push(self.meters.down[host].figures(&format!("{rack}->{name}"), server));
        }
        let port = |meters: &[LinkMeter], index: usize, name: String, rate: Rate| meters[index].figures(&name, rate);
        let wavelengths = self.config.wavelengths as usize;
        for (rack, entry) in self.racks.iter().enumerate() {
            for wavelength in 0..wavelengths {
                let index = rack * wavelengths + wavelength;
                let name = &entry.name;
                let (to, from) = (format!("{name}->OPS.{wavelength}"), format!("OPS.{wavelength}->{name}"));
                links.push(port(&self.meters.ops_in, index, to, self.config.tor_rate));
                links.push(port(&self.meters.ops_out, index, from, self.config.ops_rate));
            }
            links.push(port(&self.meters.ocs, rack, format!("{}->OCS", entry.name), circuit));
        }
        links
    }
}

/// For each host whether it, or its rack, is one of `circuit_destinations`.
fn circuit_hosts(config: &LightnessConfig, hosts: &[HostPlace]) -> Result<Vec<bool>, FabricError> {
    let named = |name: &String| hosts.iter().any(|host| host.name == *name || host.rack == *name);
    if let Some(unknown) = config.circuit_destinations.iter().find(|name| !named(name)) {
        return Err(FabricError::Value {
            key: "circuit_destinations",
            value: unknown.clone(),
            allowed: "names of hosts and racks that are there",
        });
    }
    let wanted: BTreeSet<&str> = config.circuit_destinations.iter().map(String::as_str).collect();
    let is_wanted = |host: &HostPlace| wanted.contains(host.name.as_str()) || wanted.contains(host.rack.as_str());
    Ok(hosts.iter().map(is_wanted).collect())
}

/// The racks in the order in which they first appear, and each host's.
fn racks_of(hosts: &[HostPlace]) -> Result<(Vec<Rack>, Vec<u32>), TopologyError> {
    let mut names = BTreeSet::new();
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut racks: Vec<Rack> = Vec::new();
    let mut rack_of = Vec::new();
    for host in hosts {
        if !names.insert(&host.name) {
            return Err(TopologyError::HostTwice { name: host.name.clone() });
        }
        let number = *numbers.entry(&host.rack).or_insert_with(|| {
            racks.push(Rack { name: host.rack.clone() });
            count(racks.len() - 1)
        });
        rack_of.push(number);
    }
    Ok((racks, rack_of))
}

impl Network for Lightness {
    fn hosts(&self) -> u32 {
        count(self.names.len())
    }

    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let id = count(self.flows.len());
        let wavelength = below(draw(self.config.seed, 0, id.into()), self.config.wavelengths.into());
        self.flows.push(Flow {
            source: source.0,
            destination: destination.0,
            loopback: (source == destination).then(Pipe::default),
            wavelength: u32::try_from(wavelength).unwrap_or(0),
            outgoing: VecDeque::new(),
            granted: None,
            planned: 0,
            sent: 0,
            sent_bytes: 0,
            to_circuit: self.circuit_hosts[destination.0 as usize],
            received: 0,
            early: BTreeSet::new(),
            marks: VecDeque::new(),
        });
        FlowId(id)
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        self.hand_over(now, flow.0, bytes, token);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        collect_instant(self, until, deliveries, |network| &mut network.queue, Self::process)
    }

    fn figures(&self) -> NetworkFigures {
        let counters = &self.counters;
        let named = [
            ("packets within racks", counters.electrical),
            ("packets by OPS", counters.by_ops),
            ("packets by circuit", counters.by_circuit),
            ("ACKs", counters.acks),
            ("NACKs", counters.nacks),
            ("reordered packets", counters.reordered),
            ("circuit requests", counters.circuit_requests),
            ("circuits set up", counters.circuits),
            ("circuits refused", counters.circuits_refused),
            ("circuits released", counters.circuits_released),
            ("circuits evicted", counters.circuits_evicted),
            ("loopback bytes", counters.looped_bytes),
        ];
        let links = self.links();
        NetworkFigures {
            events: self.queue.processed(),
            drops: links.iter().map(|link| link.drops).sum(),
            retransmissions: counters.resent,
            interval_ps: self.config.interval.ps(),
            links,
            counters: named.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        }
    }
}
