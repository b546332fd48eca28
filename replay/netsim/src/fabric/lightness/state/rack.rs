//! The networks below the ToRs, as a fabric of their own.

use crate::count::count;
use crate::fabric::credit::CreditConfig;
use crate::fabric::ethernet::EthernetConfig;
use crate::fabric::ideal::IdealConfig;
use crate::fabric::ids::PacketId;
use crate::fabric::store_and_forward::StoreAndForwardConfig;
use crate::fabric::{FabricError, FabricKind};
use crate::network::{FlowId, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use crate::topology::{HostPlace, TopologyConfig};
use crate::units::DurationPs;
use std::collections::{BTreeMap, BTreeSet};

/// What is under way there.
#[derive(Clone, Copy)]
pub enum InFlight {
    /// A message within a rack.
    Message(Token),
    /// A packet to its ToR.
    Up(PacketId),
    /// A packet from its destination's ToR.
    Down(PacketId),
}

/// A flow's ways below the ToRs.
#[derive(Clone, Copy)]
pub struct RackFlow {
    /// To the other server of the rack, or to the ToR.
    pub first: FlowId,
    /// From the other ToR to the server.
    pub last: Option<FlowId>,
}

crate::fabric::kinds::fabric_kinds! {
    /// What may lie below the ToRs: the table `[fabric.rack]`.
    config RackConfig,
    /// It, ready to carry flows.
    flows RackFabric,
    /// It, ready to carry synthetic traffic.
    packets RackPackets,
    kinds {
        /// Every flow alone.
        "ideal" => Ideal(IdealConfig),
        /// Switched Ethernet with TCP.
        "ethernet" => Ethernet(EthernetConfig),
        /// InfiniBand.
        "credit" => Credit(CreditConfig),
        /// Whole packets, queued at their outputs; what is dropped is sent again.
        "store-and-forward" => StoreAndForward(StoreAndForwardConfig),
    }
}

/// The networks of all racks, which are one fabric without ways from one rack to another.
pub struct RackNetwork {
    pub network: Box<RackFabric>,
    pub servers: u32,
    pub names: BTreeSet<String>,
    /// By token; tokens follow the order of sending, in which things of one instant are delivered.
    pub in_flight: BTreeMap<u64, InFlight>,
    pub sent: u64,
}

impl RackNetwork {
    /// Builds the fabric for the servers and a ToR in each of `racks`.
    pub fn new(
        config: &RackConfig,
        interval: DurationPs,
        hosts: &[HostPlace],
        racks: &[&str],
    ) -> Result<Self, FabricError> {
        let mut config = config.clone();
        if let Some((topology, ..)) = config.network()
            && !matches!(topology, TopologyConfig::Racks(_))
        {
            let value = format!("\"{}\"", topology.shape());
            return Err(FabricError::Value {
                key: "rack.topology.shape",
                value,
                allowed: "\"racks\": one switch a rack",
            });
        }
        config.set_interval(interval);
        let mut places = hosts.to_vec();
        let tor = |rack: &&str| HostPlace { name: format!("{rack}.tor"), rack: (*rack).to_owned() };
        places.extend(racks.iter().map(tor));
        let names = places.iter().map(|place| place.name.clone()).collect();
        let network = config.flows(&places).map_err(|error| FabricError::Rack(Box::new(error)))?;
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

    pub fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, thing: InFlight) {
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
