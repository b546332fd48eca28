//! The network below the ToRs, packet by packet and flit by flit: another fabric, to which each ToR is a host more.
//!
//! Without it servers have links of their own that carry whole packets. With it (`[fabric.rack]`) whatever leaves a server
//! crosses that fabric's links and rack switch: to another server of the rack, or to the ToR, which has a photonic packet
//! when its last flit is there. The other way the ToR sends each packet as a message to its server. Racks are
//! never joined by it.

use super::Lightness;
use super::server::Packet;
use crate::count::count;
use crate::fabric::{self, Fabric, FabricConfig, FabricError};
use crate::network::{Delivery, FlowId, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use crate::topology::{HostPlace, TopologyConfig};
use crate::units::DurationPs;
use std::collections::{BTreeMap, BTreeSet};

/// What is under way there.
#[derive(Clone, Copy)]
enum InFlight {
    /// A message within a rack.
    Message(Token),
    /// A packet to its ToR.
    Up(u32),
    /// A packet from its destination's ToR.
    Down(u32),
}

/// A flow's ways below the ToRs.
#[derive(Clone, Copy)]
pub struct RackFlow {
    /// To the other server of the rack, or to the ToR.
    first: FlowId,
    /// From the other ToR to the server.
    last: Option<FlowId>,
}

/// The networks of all racks, which are one fabric without ways from one rack to another.
pub struct RackNetwork {
    network: Box<Fabric>,
    servers: u32,
    names: BTreeSet<String>,
    /// By token; tokens follow the order of sending, in which things of one instant are delivered.
    in_flight: BTreeMap<u64, InFlight>,
    sent: u64,
}

impl RackNetwork {
    /// Builds the fabric for the servers and a ToR in each of `racks`.
    pub fn new(
        config: &FabricConfig,
        interval: DurationPs,
        hosts: &[HostPlace],
        racks: &[&str],
    ) -> Result<Self, FabricError> {
        let wrong = |value: &str, allowed| Err(FabricError::Value { key: "rack", value: value.to_owned(), allowed });
        let mut config = config.clone();
        if matches!(config, FabricConfig::Lightness(_)) {
            return wrong("lightness", "another kind: the network below the ToRs");
        }
        if config.network().is_some_and(|(topology, _, _)| !matches!(topology, TopologyConfig::Racks(_))) {
            return wrong("topology", "shape = \"racks\": each rack has one switch");
        }
        *config.interval_mut() = interval;
        let mut places = hosts.to_vec();
        let tor = |rack: &&str| HostPlace { name: format!("{rack}.tor"), rack: (*rack).to_owned() };
        places.extend(racks.iter().map(tor));
        let names = places.iter().map(|place| place.name.clone()).collect();
        let network = fabric::build(&config, &places).map_err(|error| FabricError::Rack(Box::new(error)))?;
        Ok(Self { network: Box::new(network), servers: count(hosts.len()), names, in_flight: BTreeMap::new(), sent: 0 })
    }

    pub fn next_event(&self) -> Option<SimTime> {
        self.network.next_event()
    }

    /// Opens the ways of a flow from `source` to `destination`, which stand in the racks `from` and `to`.
    pub fn open(&mut self, source: u32, destination: u32, from: u32, to: u32) -> RackFlow {
        let tor = |rack: u32| HostIndex(self.servers + rack);
        let (up, down) = (tor(from), tor(to));
        if from == to {
            return RackFlow { first: self.network.open_flow(HostIndex(source), HostIndex(destination)), last: None };
        }
        let first = self.network.open_flow(HostIndex(source), up);
        RackFlow { first, last: Some(self.network.open_flow(down, HostIndex(destination))) }
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, thing: InFlight) {
        self.in_flight.insert(self.sent, thing);
        self.network.send(now, flow, bytes, Token(self.sent));
        self.sent += 1;
    }

    /// The figures of links at servers and ToRs: the ways between racks, which nothing takes, are no links of the network.
    pub fn figures(&self) -> NetworkFigures {
        let mut figures = self.network.figures();
        let is_end = |name: &str| self.names.contains(name);
        let here = |link: &LinkFigures| link.name.split_once("->").is_some_and(|(from, to)| is_end(from) || is_end(to));
        figures.links.retain(here);
        figures
    }
}

impl Lightness {
    /// A message to another server of the rack leaves.
    pub(super) fn send_within(&mut self, now: SimTime, below: RackFlow, bytes: u64, token: Token) {
        if let Some(rack) = &mut self.rack_network {
            rack.send(now, below.first, bytes, InFlight::Message(token));
        }
    }

    /// A packet leaves its server for the ToR.
    pub(super) fn send_up(&mut self, now: SimTime, below: RackFlow, id: u32) {
        let bytes = self.packets.get(id).payload;
        if let Some(rack) = &mut self.rack_network {
            rack.send(now, below.first, bytes.into(), InFlight::Up(id));
        }
    }

    /// A packet leaves its destination's ToR, if there is such a network. Returns whether there is.
    pub(super) fn send_below(&mut self, now: SimTime, id: u32) -> bool {
        let Packet { flow, payload, .. } = *self.packets.get(id);
        let last = self.flows[flow as usize].below.and_then(|below| below.last);
        let (Some(rack), Some(last)) = (&mut self.rack_network, last) else { return false };
        rack.send(now, last, payload.into(), InFlight::Down(id));
        true
    }

    /// Lets the networks below the ToRs go on up to `now`.
    pub(super) fn advance_racks(&mut self, now: SimTime, deliveries: &mut Vec<Delivery>) {
        let mut arrived = Vec::new();
        loop {
            let Some(rack) = &mut self.rack_network else { return };
            if rack.network.next_event().is_none_or(|at| at > now) {
                return;
            }
            rack.network.advance(now, &mut arrived);
            let things: Vec<InFlight> =
                arrived.drain(..).filter_map(|delivery| rack.in_flight.remove(&delivery.token.0)).collect();
            for thing in things {
                match thing {
                    InFlight::Message(token) => deliveries.push(Delivery { token, at: now }),
                    InFlight::Up(id) => self.at_tor(now, id),
                    InFlight::Down(id) => self.received(now, id, deliveries),
                }
            }
        }
    }
}
