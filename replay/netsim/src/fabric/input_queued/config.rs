//! The keys of an `input-queued` fabric, and what they may be.

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
const MAX_FLITS: u32 = 1 << 16;
/// Cycles of a latency, iterations and speed-ups at most.
const MAX_CYCLES: u32 = 1 << 16;
const MAX_ITERATIONS: u8 = 64;
const MAX_SPEEDUP: u8 = 16;

/// When a packet may be given a VC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// When the VC is nobody's: flits wait wherever they are.
    #[default]
    Wormhole,
    /// When the VC is nobody's and has room for the whole packet.
    VirtualCutThrough,
}

/// What each stage takes, in cycles: `{ routing = 1, vc_allocation = 1, switch_allocation = 1, crossbar = 1, credit = 1, link = 1 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineLatencies {
    /// Routing a head; 0 is a router that looks ahead. Default: 1.
    pub routing: u32,
    /// Allocating VCs, at least 1. Default: 1.
    pub vc_allocation: u32,
    /// Allocating the crossbar, at least 1. Default: 1.
    pub switch_allocation: u32,
    /// Crossing the crossbar, at least 1. Default: 1.
    pub crossbar: u32,
    /// From a credit's arrival at a switch until it counts. Default: 1.
    pub credit: u32,
    /// A link, beside the cycle in which a flit is sent, in front of its own propagation delay. Default: 1.
    pub link: u32,
}

impl Default for PipelineLatencies {
    fn default() -> Self {
        Self { routing: 1, vc_allocation: 1, switch_allocation: 1, crossbar: 1, credit: 1, link: 1 }
    }
}

/// The keys of an `input-queued` fabric; what they mean exactly is in `docs/input-queued.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputQueuedConfig {
    /// Hosts, switches and links, which all have one rate: a cycle is a flit's time on them. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How packets choose among several links. Default: `ecmp`.
    pub routing: RoutingConfig,
    /// Decides what is drawn. Default: 1.
    pub seed: u64,
    /// Payload of a packet at most. Default: `128B` (16 flits).
    pub mtu: Bytes,
    /// Headers of a packet. Default: none.
    pub headers: Bytes,
    /// A flit. Default: `8B`.
    pub flit: Bytes,
    /// Virtual channels of a link, 1 to 16, shared out among the classes of the routing. Default: 4.
    pub vcs: u8,
    /// Flits that a VC's queue has room for. Default: 16.
    pub buffer: u32,
    /// When a packet may be given a VC. Default: `wormhole`.
    pub flow_control: FlowControl,
    /// Whether a VC stays a packet's until the credit of its last flit is back. Default: false.
    pub wait_for_tail_credit: bool,
    /// What each stage takes.
    pub latency: PipelineLatencies,
    /// Gives VCs to packets.
    pub vc_allocator: SeparableAllocator,
    /// Gives the crossbar to flits.
    pub switch_allocator: SeparableAllocator,
    /// Whether heads ask for the crossbar before they have a VC, behind all others. Default: false.
    pub speculative: bool,
    /// Whether a packet keeps its way through the crossbar until its last flit. Default: false.
    pub hold_switch: bool,
    /// Ways from an input into the crossbar, for VCs by number, 1 to 16. Default: 1.
    pub input_speedup: u8,
    /// Ways from the crossbar to an output, for inputs by number, 1 to 16. Default: 1.
    pub output_speedup: u8,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for InputQueuedConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(128),
            headers: Bytes(0),
            flit: Bytes(8),
            vcs: 4,
            buffer: 16,
            flow_control: FlowControl::default(),
            wait_for_tail_credit: false,
            latency: PipelineLatencies::default(),
            vc_allocator: SeparableAllocator::default(),
            switch_allocator: SeparableAllocator::default(),
            speculative: false,
            hold_switch: false,
            input_speedup: 1,
            output_speedup: 1,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl InputQueuedConfig {
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
        if self.buffer == 0 || self.buffer > MAX_FLITS {
            return Err(wrong("buffer", self.buffer, "from 1 to 65536 flits"));
        }
        if self.flow_control == FlowControl::VirtualCutThrough && u64::from(self.buffer) < self.largest_flits() {
            let value = format!("{} flits, with packets of {}", self.buffer, self.largest_flits());
            return Err(wrong("buffer", value, "a packet of mtu and headers at least, with virtual cut-through"));
        }
        self.check_latencies()?;
        let iterations = [
            ("vc_allocator.iterations", self.vc_allocator.iterations),
            ("switch_allocator.iterations", self.switch_allocator.iterations),
        ];
        for (key, iterations) in iterations {
            if iterations == 0 || iterations > MAX_ITERATIONS {
                return Err(wrong(key, iterations, "from 1 to 64 iterations"));
            }
        }
        for (key, speedup) in [("input_speedup", self.input_speedup), ("output_speedup", self.output_speedup)] {
            if speedup == 0 || speedup > MAX_SPEEDUP {
                return Err(wrong(key, speedup, "from 1 to 16 ways"));
            }
        }
        Ok(())
    }

    fn check_latencies(&self) -> Result<(), FabricError> {
        let PipelineLatencies { routing, vc_allocation, switch_allocation, crossbar, credit, link } = self.latency;
        let stages = [
            ("latency.routing", routing, 0),
            ("latency.vc_allocation", vc_allocation, 1),
            ("latency.switch_allocation", switch_allocation, 1),
            ("latency.crossbar", crossbar, 1),
            ("latency.credit", credit, 0),
            ("latency.link", link, 0),
        ];
        for (key, cycles, least) in stages {
            if cycles > MAX_CYCLES || cycles < least {
                let allowed = "at most 65536 cycles; at least 1 for both allocations and the crossbar";
                return Err(wrong(key, cycles, allowed));
            }
        }
        if self.speculative && vc_allocation > switch_allocation {
            let value = format!("{vc_allocation} with switch_allocation = {switch_allocation}");
            let allowed =
                "at most latency.switch_allocation with speculative = true: a VC later than the crossbar is of no use";
            return Err(wrong("latency.vc_allocation", value, allowed));
        }
        Ok(())
    }

    /// Refuses a routing whose packets look at room, and too few VCs.
    pub(super) fn check_routes(&self, routes: &Routes) -> Result<(), FabricError> {
        if routes.commits_to_room() || routes.packets_of_room() > 1 {
            let allowed = "a routing without ranks of lanes or bubbles: ecmp, ecmp-packet, random, adaptive, d-mod-k, s-mod-k, shortest, \
                           up-down, dor, { dally = \"entry\" }, { dally = \"basic\" } or { dally = \"trc\" }";
            return Err(wrong("routing", routes.config(), allowed));
        }
        let classes = routes.classes();
        if self.vcs < classes || !self.vcs.is_multiple_of(classes) {
            let value = format!("{} for {classes} classes of virtual channels", self.vcs);
            return Err(wrong("vcs", value, "as many for each class of the routing, one at least"));
        }
        Ok(())
    }
}
