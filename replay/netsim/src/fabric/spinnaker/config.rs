//! The keys of a `spinnaker` fabric, and what they may be.

use crate::fabric::FabricError;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::routing::{Routes, RoutingConfig};
use crate::topology::{LinkConfig, SpinnakerConfig, TopologyConfig};
use crate::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

/// The largest packet, headers included.
const MAX_BYTES: u64 = 1 << 20;
const MAX_PACKETS: u32 = 1 << 20;
const MAX_CYCLES: u32 = 1 << 20;

/// Where a router sends the packets of a source on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// The router, by its name.
    pub router: String,
    /// The host from which they come.
    pub source: String,
    /// Neighbours, routers or hosts, each of which gets a copy.
    pub to: Vec<String>,
}

/// The keys of a `spinnaker` fabric; what they mean exactly is in `docs/spinnaker.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpinnakerRouterConfig {
    /// Hosts, switches and links, which all have one rate: a cycle is a flit's time on them. Default: SpiNNaker's triangles of 8 x 8 routers,
    /// with links of 250 Mbit/s.
    pub topology: TopologyConfig,
    /// How packets choose among several links. Default: `shortest`.
    pub routing: RoutingConfig,
    /// Routing tables by the source of packets, for the sources that they name. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableEntry>,
    /// Decides what is drawn. Default: 1.
    pub seed: u64,
    /// Payload of a packet at most. Default: `4B`.
    pub mtu: Bytes,
    /// Headers of a packet. Default: `5B` (SpiNNaker's packets of 72 bits).
    pub headers: Bytes,
    /// A flit. Default: `1B`.
    pub flit: Bytes,
    /// Packets that the queue at an input has room for. Default: 4 (ours).
    pub buffer: u32,
    /// Cycles that the routing engine takes for a packet, 1 at least. Default: 1 (ours).
    pub routing_cycles: u32,
    /// Cycles that a packet waits in the engine for its output before it is lost. Default: 240 (ours).
    pub wait: u32,
    /// Cycles that a link takes, beside those in which a packet is sent and its own propagation delay. Default: 0.
    pub link_cycles: u32,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for SpinnakerRouterConfig {
    fn default() -> Self {
        let link = LinkConfig { rate: Rate::from_bps(250_000_000), ..LinkConfig::default() };
        let topology = SpinnakerConfig { host_link: link, link, ..SpinnakerConfig::default() };
        Self {
            topology: TopologyConfig::Spinnaker(topology),
            routing: RoutingConfig::Shortest,
            tables: Vec::new(),
            seed: 1,
            mtu: Bytes(4),
            headers: Bytes(5),
            flit: Bytes(1),
            buffer: 4,
            routing_cycles: 1,
            wait: 240,
            link_cycles: 0,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl SpinnakerRouterConfig {
    /// Flits of the largest packet.
    #[must_use]
    pub const fn largest_flits(&self) -> u64 {
        (self.mtu.get() + self.headers.get()).div_ceil(self.flit.get())
    }

    /// Refuses what makes no sense whatever the topology.
    pub(super) fn check(&self) -> Result<(), FabricError> {
        if self.mtu.get() == 0 || self.mtu.get() > MAX_BYTES {
            return Err(wrong("mtu", self.mtu, "from 1B to 1MiB"));
        }
        if self.headers.get() > MAX_BYTES {
            return Err(wrong("headers", self.headers, "at most 1MiB"));
        }
        if self.flit.get() == 0 || self.flit.get() > MAX_BYTES {
            return Err(wrong("flit", self.flit, "from 1B to 1MiB"));
        }
        if self.buffer == 0 || self.buffer > MAX_PACKETS {
            return Err(wrong("buffer", self.buffer, "from 1 to 1048576 packets"));
        }
        if self.routing_cycles == 0 {
            return Err(wrong("routing_cycles", self.routing_cycles, "at least 1 cycle"));
        }
        let cycles = [("routing_cycles", self.routing_cycles), ("wait", self.wait), ("link_cycles", self.link_cycles)];
        for (key, cycles) in cycles {
            if cycles > MAX_CYCLES {
                return Err(wrong(key, cycles, "at most 1048576 cycles"));
            }
        }
        Ok(())
    }

    /// Refuses a routing that needs virtual channels or room to choose by.
    pub(super) fn check_routes(&self, routes: &Routes) -> Result<(), FabricError> {
        if routes.chooses_by_room() || routes.looks_at_packets() || routes.packets_of_room() > 1 {
            let allowed = "a routing without ranks of lanes, bubbles or credits: shortest, ecmp, ecmp-packet, random, d-mod-k, s-mod-k, up-down, dor";
            return Err(wrong("routing", routes.config(), allowed));
        }
        Ok(())
    }
}
