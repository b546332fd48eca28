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
//! What is left out: without a network of their own below the ToRs (`rack`) servers' links carry whole packets and not
//! flits of virtual lanes; requests, ACKs and NACKs have a channel of their own and take their fixed delays.

mod aod;
mod check;
mod config;
mod names;
mod ocs;
mod ops;
mod planned;
mod rack;
mod refused;
mod server;
mod state;
mod tor;

pub use config::{Arbiter, DecidedAt, Decision, LightnessConfig, OcsScheduler, Resequencer, WavelengthAssignment};
pub use names::{PARAMETERS, Parameter};
pub use state::aod::AodConfig;
pub use state::ocs::CircuitSpan;
pub use state::rack::RackConfig;

use super::figures::LinkMeter;
use super::flow_packets::{FlowFabric, FlowPackets};
use super::ids::PacketId;
use super::instant::collect_instant;
use super::packet::{HostLinksDiffer, LinkTime, Observer};
use super::pipe::Pipe;
use super::slab::Slab;
use super::{FabricError, FabricKind, Places};
use crate::circuits::Control;
use crate::count::count;
use crate::kernel::random::{below, draw};
use crate::kernel::{EventQueue, Place};
use crate::network::{
    CircuitFigures, Delivery, FlowId, FlowKind, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token,
};
use crate::time::SimTime;
use crate::topology::{HostPlace, Placing, TopologyError};
use crate::units::{Bytes, PerByte, Rate};
use config::Cables;
use state::aod::Aod;
use state::ocs::{Circuit, Ocs, Refused};
use state::ops::{Ops, Refusals};
use state::predictor::Predictor;
use state::rack::RackNetwork;
use state::server::{Nic, OutputBuffer, Packet, ServerFlow};
use state::tor::Channel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

#[derive(Clone, Copy)]
enum Event {
    /// A server's link is free.
    NicSent(u32),
    /// A packet is whole in the ToR's Input.
    AtTor(PacketId),
    /// A channel to the packet switch has sent a packet.
    ChannelSent(u32),
    /// A channel that kept clear of its ToR's own packets may go on.
    ChannelClear(u32),
    /// The packet switch has routed a packet.
    AtOps(PacketId),
    /// The end of a slot of the packet switch.
    OpsDecides,
    /// A ToR has dealt with an ACK for a channel.
    Acked(u32),
    /// A ToR has dealt with the NACK of a packet.
    Nacked(PacketId),
    /// A packet is whole in its destination's rack switch.
    AtOutput(PacketId),
    /// A packet is whole at its server.
    Received(PacketId),
    /// A request for a circuit is at the circuit switch.
    CircuitAsked(u32),
    /// The circuit switch has seen all requests of the instant.
    OcsDecides,
    /// The controller of planned circuits learns what waits.
    OcsLooks,
    /// It plans circuits from what it has learned.
    OcsPlans,
    /// The next planned circuit of an input port begins to be set up.
    CircuitBegins(u32),
    /// It is over.
    CircuitEnds(u32),
    /// A circuit can be used.
    CircuitUp(u32),
    /// A circuit may be given up if it is idle.
    CircuitHeld(u32),
    /// A circuit has sent a packet.
    CircuitSent(u32),
    /// A circuit may have been idle for long.
    CircuitIdle(u32),
    /// A packet has left the buffer of a circuit's output.
    CircuitDrained(u32),
    /// The backplane's control plane has seen all requests of the instant, or asks again.
    AodDecides,
    /// A ToR is joined to the packet switch.
    AodJoined(u32),
    /// All joins of the instant are there.
    AodTry,
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
    below: u64,
    by_ops: u64,
    by_circuit: u64,
    acks: u64,
    nacks: u64,
    resent: u64,
    lost: u64,
    reordered: u64,
    circuit_requests: u64,
    circuits: u64,
    circuits_refused: u64,
    circuits_released: u64,
    circuits_evicted: u64,
    looped_bytes: u64,
    resequenced: u64,
    refused: Refusals,
    aod_requests: u64,
    aod_joins: u64,
    aod_refused: u64,
    aod_evicted: u64,
}

/// A LIGHTNESS network.
pub struct Lightness {
    config: LightnessConfig,
    /// A ToR's channels to the packet switch, and its ports at the circuit switch: all wavelengths of its fibres.
    tor_channels: u32,
    tor_circuits: u32,
    byte_delay: PerByte,
    cables: Cables,
    names: Vec<String>,
    racks: Vec<Rack>,
    rack_of: Vec<u32>,
    /// Whether a host, or its rack, is one of `circuit_destinations`.
    circuit_hosts: Vec<bool>,
    /// What was learned of messages' sizes, where that decides.
    predictor: Option<Predictor>,
    nics: Vec<Nic>,
    /// What lies below the ToRs, where it is a fabric of its own.
    rack_network: Option<RackNetwork>,
    /// The buffers of the ToRs' Outputs, by rack.
    outputs: Vec<OutputBuffer>,
    aod: Option<Aod>,
    down_free: Vec<SimTime>,
    flows: Vec<ServerFlow>,
    packets: Slab<PacketId, Packet>,
    channels: Vec<Channel>,
    ops: Ops,
    ocs: Ocs,
    refused: Refused,
    /// Up to when everything has happened.
    now: SimTime,
    /// Who plans circuits from what waits; none where ToRs ask for them.
    control: Option<Control>,
    circuits: Vec<Circuit>,
    /// By source and destination rack; `u32::MAX` where none was ever asked for.
    circuit_index: Vec<u32>,
    queue: EventQueue<Event>,
    meters: Meters,
    counters: Counters,
    /// Messages of which a packet was lost, with the time, that were not told yet.
    lost: Vec<(SimTime, Token)>,
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
        config.check(racks.len(), hosts.len())?;
        let circuit_hosts = circuit_hosts(config, hosts)?;
        let tor_channels = config.fibers_per_tor(racks.len()) * config.wavelengths;
        let tor_circuits = config.circuit_fibers_per_tor(racks.len()) * config.circuit_wavelengths();
        let ports = Self::channel_count(racks.len(), tor_channels);
        let circuit_ports = Self::channel_count(racks.len(), tor_circuits);
        let rack_names: Vec<&str> = racks.iter().map(|rack| rack.name.as_str()).collect();
        let rack_network = config.rack.as_ref().map(|rack| RackNetwork::new(rack, config.interval, hosts, &rack_names));
        let rack_network = rack_network.transpose()?;
        let meters = |number: usize| vec![LinkMeter::default(); number];
        let largest = config.photonic_packet_max.get();
        let horizon = config.server_rate.time_ps(largest).max(config.tor_rate.time_ps(largest)).saturating_mul(64);
        Ok(Self {
            tor_channels,
            tor_circuits,
            byte_delay: config.byte_delay(),
            cables: config.cables(),
            rack_network,
            outputs: racks.iter().map(|_| OutputBuffer::default()).collect(),
            aod: config.aod.as_ref().map(|aod| Aod::new(aod, racks.len())),
            names: hosts.iter().map(|host| host.name.clone()).collect(),
            circuit_index: vec![u32::MAX; racks.len() * racks.len()],
            nics: hosts.iter().map(|_| Nic::default()).collect(),
            down_free: vec![SimTime::ZERO; hosts.len()],
            flows: Vec::new(),
            packets: Slab::default(),
            channels: (0..ports).map(|_| Channel::default()).collect(),
            ops: Ops::new(racks.len(), ports),
            ocs: Ocs {
                inputs: vec![None; circuit_ports],
                outputs: vec![None; circuit_ports],
                last: vec![0; racks.len()],
                planned: vec![VecDeque::new(); circuit_ports],
                ..Ocs::default()
            },
            refused: Refused::new(racks.len()),
            now: SimTime::ZERO,
            control: config.control(circuit_ports),
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
            lost: Vec::new(),
            predictor: config.predictor(),
            config: config.clone(),
            racks,
            rack_of,
            circuit_hosts,
        })
    }

    /// The circuits that were set up so far, in the order of their grants; the first 65,536 of them.
    #[must_use]
    pub fn circuits(&self) -> &[CircuitSpan] {
        &self.ocs.spans
    }

    fn circuit_figures(&self, span: &CircuitSpan) -> CircuitFigures {
        let rack = |port: u32| self.racks[(port / self.tor_circuits) as usize].name.clone();
        CircuitFigures {
            from: rack(span.input),
            to: rack(span.output),
            input: span.input % self.tor_circuits,
            output: span.output % self.tor_circuits,
            wavelength: span.input % self.config.circuit_wavelengths(),
            asked: span.asked,
            granted: span.granted,
            up: span.up,
            last_used: span.last_used,
            released: span.released,
            evicted: span.evicted,
            scheduled: self.control.is_some(),
            packets: span.packets,
            bytes: span.bytes,
        }
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

    fn aod_place(&self) -> Place {
        Place(self.ops_place().0 + 2)
    }

    /// Circuits and flows share the numbers behind: even for the ones, odd for the others.
    fn circuit_place(&self, circuit: u32) -> Place {
        Place((self.ops_place().0 + 4).wrapping_add(circuit.wrapping_mul(2)))
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
            Event::ChannelClear(channel) => self.channel_clear(now, channel),
            Event::AtOps(id) => self.at_ops(now, id),
            Event::OpsDecides => self.ops_decides(now),
            Event::Acked(channel) => self.acked(now, channel),
            Event::Nacked(id) => self.nacked(now, id, deliveries),
            Event::AtOutput(id) => self.at_output(now, id),
            Event::Received(id) => self.received(now, id, deliveries),
            Event::CircuitAsked(circuit) => self.circuit_asked(now, circuit),
            Event::OcsDecides => self.ocs_decides(now),
            Event::OcsLooks => self.ocs_looks(now),
            Event::OcsPlans => self.ocs_plans(now),
            Event::CircuitBegins(input) => self.circuit_begins(now, input),
            Event::CircuitEnds(input) => self.circuit_ends(now, input),
            Event::CircuitUp(circuit) => self.circuit_up(now, circuit),
            Event::CircuitHeld(circuit) => self.may_be_given_up(now, circuit),
            Event::CircuitSent(circuit) => self.circuit_sent(now, circuit),
            Event::CircuitIdle(circuit) => self.circuit_idle(now, circuit),
            Event::CircuitDrained(circuit) => self.circuit_drained(now, circuit),
            Event::AodDecides => self.aod_decides(now),
            Event::AodJoined(rack) => self.aod_joined(now, rack),
            Event::AodTry => self.aod_try(now),
            Event::Looped(token) => deliveries.push(Delivery { token, at: now }),
        }
    }

    fn links(&self) -> Vec<LinkFigures> {
        let server = self.config.server_rate;
        let circuit = self.config.circuit_tor_rate().min(self.config.ocs_rate);
        let mut links = Vec::new();
        let simple = self.rack_network.is_none();
        for (host, name) in self.names.iter().enumerate().filter(|_| simple) {
            let rack = &self.racks[self.rack_of[host] as usize].name;
            links.push(self.meters.up[host].figures(&format!("{name}->{rack}"), server));
            links.push(self.meters.down[host].figures(&format!("{rack}->{name}"), server));
        }
        let port = |meters: &[LinkMeter], index: usize, name: String, rate: Rate| meters[index].figures(&name, rate);
        let channels = self.tor_channels as usize;
        for (rack, entry) in self.racks.iter().enumerate() {
            for wavelength in 0..channels {
                let index = rack * channels + wavelength;
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

/// An error lists fewer names.
const MAX_LISTED: usize = 9;

/// For each host whether it, or its rack, is one of `circuit_destinations`.
fn circuit_hosts(config: &LightnessConfig, hosts: &[HostPlace]) -> Result<Vec<bool>, FabricError> {
    let named = |name: &String| hosts.iter().any(|host| host.name == *name || host.rack == *name);
    if let Some(unknown) = config.circuit_destinations.iter().find(|name| !named(name)) {
        let racks: BTreeSet<&str> = hosts.iter().map(|host| host.rack.as_str()).collect();
        let listed = |names: Vec<&str>| match names.get(..MAX_LISTED) {
            Some(first) => format!("{} and so on", first.join(", ")),
            None => names.join(", "),
        };
        let racks = listed(racks.into_iter().collect());
        let known = format!(
            "the racks {racks}, and the hosts {}",
            listed(hosts.iter().map(|host| host.name.as_str()).collect())
        );
        return Err(FabricError::NoPlace { key: "circuit_destinations", name: unknown.clone(), known });
    }
    let wanted: BTreeSet<&str> = config.circuit_destinations.iter().map(String::as_str).collect();
    let is_wanted = |host: &HostPlace| wanted.contains(host.name.as_str()) || wanted.contains(host.rack.as_str());
    Ok(hosts.iter().map(is_wanted).collect())
}

/// The racks in the order in which they first appear, and each host's.
fn racks_of(hosts: &[HostPlace]) -> Result<(Vec<Rack>, Vec<u32>), TopologyError> {
    let placing = Placing::of(hosts)?;
    let rack_of = (0..hosts.len()).map(|host| count(placing.rack(host))).collect();
    let racks = placing.racks.into_iter().map(|name| Rack { name }).collect();
    Ok((racks, rack_of))
}

impl Simulation for Lightness {
    fn hosts(&self) -> u32 {
        count(self.names.len())
    }

    fn next_event(&self) -> Option<SimTime> {
        let below = self.rack_network.as_ref().and_then(RackNetwork::next_event);
        [self.queue.next_time(), below].into_iter().flatten().min()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        if self.rack_network.is_none() {
            self.now = collect_instant(self, until, deliveries, |network| &mut network.queue, Self::process);
            return self.now;
        }
        // An instant at a time: what happens below the ToRs first, then what hangs on it.
        let before = deliveries.len();
        let mut until = until;
        while let Some(now) = self.next_event().filter(|at| *at <= until) {
            self.advance_racks(now, deliveries);
            while let Some((at, event)) = self.queue.pop_until(now) {
                self.process(at, event, deliveries);
            }
            if deliveries.len() > before {
                until = now;
            }
        }
        deliveries[before..].sort_by_key(|delivery| delivery.token.0);
        self.now = until;
        until
    }

    fn figures(&self) -> NetworkFigures {
        let counters = &self.counters;
        let uncounted = self.uncounted();
        let below = self.rack_network.as_ref().map(RackNetwork::figures).unwrap_or_default();
        let named = [
            ("packets within racks", counters.electrical),
            ("messages below ToRs", counters.below),
            ("packets by OPS", counters.by_ops),
            ("packets by circuit", counters.by_circuit),
            ("ACKs", counters.acks),
            ("NACKs", counters.nacks),
            ("reordered packets", counters.reordered),
            ("packets put in order by ToRs", counters.resequenced),
            ("NACKs: the ToR's own packet in the way", counters.refused.own),
            ("NACKs: another ToR's packet in the way", counters.refused.others),
            ("NACKs: a packet of the same fibre in the way", counters.refused.same_fibre),
            ("NACKs: no place in the ToR's output", counters.refused.no_place),
            ("NACKs: faults", counters.refused.faults),
            ("circuit requests", counters.circuit_requests + uncounted.0),
            ("circuits set up", counters.circuits),
            ("circuits refused", counters.circuits_refused + uncounted.1),
            ("circuits released", counters.circuits_released),
            ("circuits evicted", counters.circuits_evicted),
            ("AoD requests", counters.aod_requests),
            ("AoD joins", counters.aod_joins),
            ("AoD refusals", counters.aod_refused),
            ("AoD evictions", counters.aod_evicted),
            ("loopback bytes", counters.looped_bytes),
        ];
        let mut links = self.links();
        let named = named.map(|(name, value)| (name.to_owned(), value)).into_iter();
        let lost = self.config.resends.map(|_| ("packets lost after their last resend".to_owned(), counters.lost));
        let predicted = self.predictor.iter().flat_map(|predictor| {
            let figures = [
                ("messages predicted", predictor.messages),
                ("elephants predicted to be mice", predictor.elephants_missed),
                ("mice predicted to be elephants", predictor.mice_mistaken),
            ];
            figures.map(|(name, value)| (name.to_owned(), value))
        });
        let of_racks = below.counters.into_iter().map(|(name, value)| (format!("below ToRs: {name}"), value));
        let own_drops: u64 = links.iter().map(|link| link.drops).sum();
        links.splice(0..0, below.links);
        NetworkFigures {
            events: self.queue.processed() + below.events,
            drops: own_drops + below.drops,
            retransmissions: counters.resent + below.retransmissions,
            interval_ps: self.config.interval.ps(),
            links,
            counters: named.chain(lost).chain(predicted).chain(of_racks).collect(),
            circuits: self.ocs.spans.iter().map(|span| self.circuit_figures(span)).collect(),
            circuit_totals: self.circuit_totals(),
        }
    }
}

impl Network for Lightness {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let id = count(self.flows.len());
        let (from, to) = (self.rack_of[source.0 as usize], self.rack_of[destination.0 as usize]);
        let looped = source == destination;
        let network = self.rack_network.as_mut().filter(|_| !looped);
        let ways = network.map(|network| network.open(source.0, destination.0, from, to));
        let wavelength = below(draw(self.config.seed, 0, id.into()), self.tor_channels.into());
        self.flows.push(ServerFlow {
            source: source.0,
            destination: destination.0,
            loopback: looped.then(Pipe::default),
            below: ways,
            wavelength: u32::try_from(wavelength).unwrap_or(0),
            outgoing: VecDeque::new(),
            granted: None,
            planned: 0,
            sent: 0,
            sent_bytes: 0,
            handed_over: 0,
            to_circuit: self.circuit_hosts[destination.0 as usize],
            kind_to_circuit: self.config.circuit_kinds.contains(&FlowKind::Other),
            kind: FlowKind::Other,
            by_server: false,
            begun: None,
            received: 0,
            early: BTreeSet::new(),
            lost: BTreeSet::new(),
            in_order: 0,
            held: BTreeMap::new(),
            marks: VecDeque::new(),
        });
        FlowId(id)
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        let (there, back) = (self.open_flow(client, server), self.open_flow(server, client));
        self.flows[back.0 as usize].by_server = true;
        (there, back)
    }

    fn describe(&mut self, flow: FlowId, kind: FlowKind) {
        let entry = &mut self.flows[flow.0 as usize];
        entry.kind = kind;
        entry.kind_to_circuit = self.config.circuit_kinds.contains(&kind);
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        self.hand_over(now, flow.0, bytes, bytes, token);
    }

    fn send_part(&mut self, now: SimTime, flow: FlowId, bytes: u64, of_bytes: u64, token: Token) {
        self.hand_over(now, flow.0, bytes, of_bytes, token);
    }
}

impl FlowFabric for Lightness {
    /// A message is cut into photonic packets.
    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        let config = &self.config;
        let link = LinkTime::new(config.server_rate, config.flit_size, config.photonic_packet_max, Bytes(0));
        Ok(LinkTime { whole_flits: config.round_to_flits, whole_messages: true, ..link })
    }

    /// Its rack's switch, or both ToRs with the optical switch between them where these are not back to back.
    fn switches(&self, flow: FlowId) -> u32 {
        let rack = |host: u32| self.rack_of[host as usize];
        let flow = &self.flows[flow.0 as usize];
        match self.config.decision {
            _ if rack(flow.source) == rack(flow.destination) => 1,
            Decision::Direct => 2,
            _ => 3,
        }
    }

    fn link_bytes(&self, _now: SimTime) -> Vec<u64> {
        self.figures().links.iter().map(|link| link.bytes).collect()
    }

    fn take_lost(&mut self) -> Vec<(SimTime, Token)> {
        std::mem::take(&mut self.lost)
    }
}

impl FabricKind for LightnessConfig {
    type Flows = Lightness;
    type Packets<O: Observer> = FlowPackets<Lightness, O>;

    fn flows(&self, hosts: &[HostPlace]) -> Result<Lightness, FabricError> {
        self.check_for_jobs()?;
        Lightness::new(self, hosts)
    }

    fn packets<O: Observer>(&self, hosts: &[HostPlace], observer: O) -> Result<Self::Packets<O>, FabricError> {
        Ok(FlowPackets::new(Lightness::new(self, hosts)?, observer))
    }

    super::kinds::interval_key! {}

    fn places(&self) -> Places {
        let racks = if self.decision == Decision::Direct { Some(2) } else { self.fibers };
        Places { hosts: None, racks, apart: true }
    }

    fn relative_to(&mut self, folder: &Path) {
        if let Some(rack) = &mut self.rack {
            rack.relative_to(folder);
        }
    }
}
