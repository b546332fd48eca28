//! The keys of an `input-output-queued` fabric, and what they may be.

use crate::fabric::FabricError;
use crate::fabric::clocked::separable::SeparableAllocator;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::routing::{Routes, RoutingConfig};
use crate::topology::TopologyConfig;
use crate::units::{Bytes, DurationPs};
use serde::{Deserialize, Serialize};

/// The largest packet, headers included, and most flits of a buffer.
const MAX_BYTES: u64 = 1 << 20;
const MAX_FLITS: u32 = 1 << 20;
const MAX_CYCLES: u32 = 1 << 16;
const MAX_ITERATIONS: u8 = 64;

/// For how many of the VCs that have room for it a packet asks in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requests {
    /// For one, drawn anew in each cycle.
    #[default]
    One,
    /// For all.
    All,
}

/// What passing a router takes, in cycles: `{ crossbar = 0, link = 0 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterLatencies {
    /// From an input to the queue at an output; 0: a flit may leave in the cycle in which it is moved. Default: 0.
    pub crossbar: u32,
    /// A link, beside the cycle in which a flit is sent, in front of its own propagation delay. Default: 0.
    pub link: u32,
}

/// The keys of an `input-output-queued` fabric; what they mean exactly is in `docs/input-output-queued.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputOutputQueuedConfig {
    /// Hosts, switches and links, which all have one rate: a cycle is a flit's time on them. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How packets choose among several links; with `adaptive` they ask for all of them. Default: `ecmp`.
    pub routing: RoutingConfig,
    /// Decides what is drawn. Default: 1.
    pub seed: u64,
    /// Payload of a packet at most. Default: `64B` (8 flits).
    pub mtu: Bytes,
    /// Headers of a packet. Default: none.
    pub headers: Bytes,
    /// A flit. Default: `8B`.
    pub flit: Bytes,
    /// Virtual channels of a link, 1 to 16, shared out among the classes of the routing. Default: 4.
    pub vcs: u8,
    /// Flits that a VC's queue at an input has room for. Default: 16.
    pub buffer: u32,
    /// Flits that a VC's queue at an output has room for. Default: 16.
    pub output_buffer: u32,
    /// What the crossbar and links take.
    pub latency: RouterLatencies,
    /// For what a packet asks. Default: `one`.
    pub requests: Requests,
    /// Who of those that ask for one VC is granted it: a separable allocator. Without it, one request after the other in a drawn order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocator: Option<SeparableAllocator>,
    /// Whether packets ask for VCs of an output into which another packet is moving. Default: true.
    pub busy_outputs: bool,
    /// Whether packets from other switches are granted before those of hosts. Default: false.
    pub transit_priority: bool,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for InputOutputQueuedConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(64),
            headers: Bytes(0),
            flit: Bytes(8),
            vcs: 4,
            buffer: 16,
            output_buffer: 16,
            latency: RouterLatencies::default(),
            requests: Requests::default(),
            allocator: None,
            busy_outputs: true,
            transit_priority: false,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl InputOutputQueuedConfig {
    /// Flits of the largest packet.
    #[must_use]
    pub const fn largest_flits(&self) -> u64 {
        (self.mtu.get() + self.headers.get()).div_ceil(self.flit.get())
    }

    /// Refuses what makes no sense whatever the topology.
    pub(super) fn check(&self) -> Result<(), FabricError> {
        if self.vcs == 0 || self.vcs > 16 {
            return Err(wrong("vcs", self.vcs, "from 1 to 16 virtual channels"));
        }
        if self.mtu.get() == 0 || self.mtu.get() > MAX_BYTES {
            return Err(wrong("mtu", self.mtu, "from 1B to 1MiB"));
        }
        if self.headers.get() > MAX_BYTES {
            return Err(wrong("headers", self.headers, "at most 1MiB"));
        }
        if self.flit.get() == 0 || self.flit.get() > MAX_BYTES {
            return Err(wrong("flit", self.flit, "from 1B to 1MiB"));
        }
        for (key, cycles) in [("latency.crossbar", self.latency.crossbar), ("latency.link", self.latency.link)] {
            if cycles > MAX_CYCLES {
                return Err(wrong(key, cycles, "at most 65536 cycles"));
            }
        }
        if let Some(allocator) = &self.allocator {
            if allocator.iterations == 0 || allocator.iterations > MAX_ITERATIONS {
                return Err(wrong("allocator.iterations", allocator.iterations, "from 1 to 64 iterations"));
            }
            if self.transit_priority {
                let allowed = "false with an allocator: only one request after the other in a drawn order knows it";
                return Err(wrong("transit_priority", self.transit_priority, allowed));
            }
        }
        Ok(())
    }

    /// Refuses a routing whose packets judge room by themselves, too few VCs, and buffers in which no packet fits.
    pub(super) fn check_routes(&self, routes: &Routes) -> Result<(), FabricError> {
        if routes.commits_to_room() {
            let allowed = "a routing without ranks of lanes: ecmp, ecmp-packet, random, adaptive, d-mod-k, s-mod-k, shortest, \
                           up-down, dor, bubble, { dally = \"entry\" }, { dally = \"basic\" } or { dally = \"trc\" }";
            return Err(wrong("routing", routes.config(), allowed));
        }
        let classes = routes.classes();
        if self.vcs < classes || !self.vcs.is_multiple_of(classes) {
            let value = format!("{} for {classes} classes of virtual channels", self.vcs);
            return Err(wrong("vcs", value, "as many for each class of the routing, one at least"));
        }
        let needed = self.largest_flits() * u64::from(routes.packets_of_room());
        for (key, flits) in [("buffer", self.buffer), ("output_buffer", self.output_buffer)] {
            if flits > MAX_FLITS {
                return Err(wrong(key, flits, "at most 1048576 flits"));
            }
            if flits == 0 && key == "output_buffer" {
                let allowed = "a packet of mtu and headers at least: a router without queues at its outputs (CAMINOS' output_buffer_size: 0) is \
                               not modelled; kind = \"input-queued\" has none";
                return Err(wrong(key, flits, allowed));
            }
            if u64::from(flits) < needed {
                let value = format!("{flits} flits, with packets of {}", self.largest_flits());
                let allowed = "a packet of mtu and headers at least, two with a routing that keeps bubbles";
                return Err(wrong(key, value, allowed));
            }
        }
        Ok(())
    }
}
