//! The keys of an `omni-path` fabric, and what they may be.

use crate::fabric::FabricError;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::routing::RoutingConfig;
use crate::topology::TopologyConfig;
use crate::units::{Bytes, DurationPs};
use serde::{Deserialize, Serialize};

/// The largest packet, headers included, and most flits of a buffer.
const MAX_BYTES: u64 = 1 << 20;
const MAX_FLITS: u32 = 1 << 24;
/// Ports of a switch at most, and cycles of a latency.
const MAX_PORTS: u32 = 4_096;
const MAX_CYCLES: u32 = 1 << 20;

/// Which of the links of its group a packet takes to the central crossbar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CentralChoice {
    /// By the number of its output port (inferred from figure 3 of the paper).
    #[default]
    Output,
    /// By the number of its input port.
    Input,
    /// A drawn one.
    Drawn,
    /// The first that is idle and has room; if none is, that of its output port.
    Free,
}

/// When a head whose request was not granted asks again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// After the latency of another allocation (inferred from figure 3 of the paper).
    #[default]
    Allocation,
    /// In the next cycle.
    Cycle,
}

/// What each stage of the router takes, in cycles: `{ input = 50, routing = 32, allocation = 16, crossbar = 2, output = 50, link = 8 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StageLatencies {
    /// Storing in an input buffer (SB). Default: 50.
    pub input: u32,
    /// Routing a header (RT). Default: 32.
    pub routing: u32,
    /// Allocating, at each of both crossbars (AT). Default: 16. With 8 the sum is the 160 cycles of the paper's text.
    pub allocation: u32,
    /// Crossing a crossbar (X). Default: 2.
    pub crossbar: u32,
    /// Storing in an output buffer (SB). Default: 50.
    pub output: u32,
    /// A link, in front of its own propagation delay (FLY). Default: 8.
    pub link: u32,
}

impl Default for StageLatencies {
    /// Table 1 of the paper.
    fn default() -> Self {
        Self { input: 50, routing: 32, allocation: 16, crossbar: 2, output: 50, link: 8 }
    }
}

/// A buffer that the VLs share, in flits: `{ size = 256, exclusive = 16, max = 192 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlitBuffers {
    /// What all VLs together have. Default: 256 (`QUEUE_SIZE`).
    pub size: u32,
    /// What each VL has for itself. Default: 16, a packet (the paper's 16 credits of 4 flits for each of 8 VLs do not fit into 256).
    pub exclusive: u32,
    /// What a VL may hold at most. Default: 192 (`MAX_VC_CREDITS`: 48 credits of 4 flits).
    pub max: u32,
}

impl Default for FlitBuffers {
    fn default() -> Self {
        Self { size: 256, exclusive: 16, max: 192 }
    }
}

/// The keys of an `omni-path` fabric; what they mean exactly is in `docs/omni-path.md`. Defaults are those of `OpaSim`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OmniPathConfig {
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
    /// Virtual lanes for data, 1 to 15. Default: 8.
    pub vls: u8,
    /// The VL of each service level, from 0 on; those that are not named go by level mod (VLs / classes). Default: empty.
    pub sl_to_vl: Vec<u8>,
    /// Ports of a switch; a switch may use fewer. Default: 48.
    pub ports: u32,
    /// Ports of a group (`MPort`), which share a first crossbar. Default: 4.
    pub group: u32,
    /// Links from a group to the central crossbar, each with a buffer. Default: 2.
    pub central_links: u32,
    /// Flits that an input passes in a cycle. Default: 3.
    pub group_speedup: u32,
    /// Flits that a central link passes in a cycle. Default: 4.
    pub central_speedup: u32,
    /// What each stage takes.
    pub latency: StageLatencies,
    /// Buffers of inputs and outputs.
    pub buffers: FlitBuffers,
    /// Buffers of central links. Default: as `buffers` (the paper does not say).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub central_buffers: Option<FlitBuffers>,
    /// Flits of a credit: packets take whole credits of a buffer. Default: 4.
    pub flits_per_credit: u32,
    /// Which central link a packet takes. Default: `output`.
    pub central_choice: CentralChoice,
    /// When a head whose request was not granted asks again. Default: `allocation`.
    pub retry: Retry,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for OmniPathConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(128),
            headers: Bytes(0),
            flit: Bytes(8),
            vls: 8,
            sl_to_vl: Vec::new(),
            ports: 48,
            group: 4,
            central_links: 2,
            group_speedup: 3,
            central_speedup: 4,
            latency: StageLatencies::default(),
            buffers: FlitBuffers::default(),
            central_buffers: None,
            flits_per_credit: 4,
            central_choice: CentralChoice::default(),
            retry: Retry::default(),
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl OmniPathConfig {
    /// The buffers of central links.
    #[must_use]
    pub fn central(&self) -> FlitBuffers {
        self.central_buffers.unwrap_or(self.buffers)
    }

    /// Flits of the largest packet.
    #[must_use]
    pub const fn largest_flits(&self) -> u64 {
        (self.mtu.get() + self.headers.get()).div_ceil(self.flit.get())
    }

    /// Refuses what makes no sense whatever the topology.
    pub(super) fn check(&self) -> Result<(), FabricError> {
        if self.vls == 0 || self.vls > 15 {
            return Err(wrong("vls", self.vls, "from 1 to 15 virtual lanes for data"));
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
        if self.routing.needs_credits() || self.routing == RoutingConfig::Bubble {
            let allowed = "a routing that does not look at credits: ecmp, ecmp-packet, random, d-mod-k, s-mod-k, shortest, up-down, dor";
            return Err(wrong("routing", &self.routing, allowed));
        }
        self.check_switch()?;
        self.check_buffers("buffers.exclusive", "buffers.size", "buffers.max", self.buffers)?;
        let keys = ("central_buffers.exclusive", "central_buffers.size", "central_buffers.max");
        self.check_buffers(keys.0, keys.1, keys.2, self.central())
    }

    fn check_switch(&self) -> Result<(), FabricError> {
        if self.group == 0 || self.group > MAX_PORTS {
            return Err(wrong("group", self.group, "from 1 to 4096 ports"));
        }
        if self.ports > MAX_PORTS || self.ports / self.group < 2 || !self.ports.is_multiple_of(self.group) {
            let value = format!("{} with group = {}", self.ports, self.group);
            return Err(wrong("ports", value, "a multiple of fabric.group, two groups at least, at most 4096 ports"));
        }
        if self.central_links == 0 || self.central_links > self.group {
            return Err(wrong(
                "central_links",
                self.central_links,
                "from 1 to fabric.group: an input uses one at a time",
            ));
        }
        let speedups = [("group_speedup", self.group_speedup), ("central_speedup", self.central_speedup)];
        for (key, speedup) in speedups {
            if speedup == 0 || speedup > MAX_PORTS {
                return Err(wrong(key, speedup, "from 1 to 4096 flits a cycle"));
            }
        }
        let StageLatencies { input, routing, allocation, crossbar, output, link } = self.latency;
        let stages = [
            ("latency.input", input, 0),
            ("latency.routing", routing, 0),
            ("latency.allocation", allocation, 1),
            ("latency.crossbar", crossbar, 0),
            ("latency.output", output, 0),
            ("latency.link", link, 1),
        ];
        for (key, cycles, least) in stages {
            if cycles > MAX_CYCLES || cycles < least {
                let allowed = "at most 1048576 cycles; at least 1 for allocation and link";
                return Err(wrong(key, cycles, allowed));
            }
        }
        Ok(())
    }

    fn check_buffers(
        &self,
        exclusive_key: &'static str,
        size_key: &'static str,
        max_key: &'static str,
        buffers: FlitBuffers,
    ) -> Result<(), FabricError> {
        let FlitBuffers { size, exclusive, max } = buffers;
        let unit = self.flits_per_credit;
        if unit == 0 || unit > MAX_FLITS {
            return Err(wrong("flits_per_credit", unit, "from 1 to 16777216 flits"));
        }
        let largest = self.largest_flits().div_ceil(unit.into()) * u64::from(unit);
        if u64::from(exclusive) < largest {
            let value = format!("{exclusive} flits, with packets of {largest}");
            return Err(wrong(
                exclusive_key,
                value,
                "whole credits for one packet of mtu and headers at least, or a VL could starve",
            ));
        }
        if size > MAX_FLITS {
            return Err(wrong(size_key, size, "at most 16777216 flits"));
        }
        if u64::from(exclusive) * u64::from(self.vls) > u64::from(size) {
            let value = format!("{size} with exclusive = {exclusive} for each of {} VLs", self.vls);
            return Err(wrong(size_key, value, "exclusive x fabric.vls at least"));
        }
        if max < exclusive {
            return Err(wrong(max_key, max, "exclusive at least"));
        }
        if [size, exclusive, max].iter().any(|flits| flits % unit != 0) {
            let value = format!("{size}, exclusive = {exclusive}, max = {max}");
            return Err(wrong(size_key, value, "multiples of fabric.flits_per_credit"));
        }
        Ok(())
    }

    /// The VL of class 0 of each service level, where the routing needs `classes` classes.
    pub(super) fn bases(&self, classes: u8) -> Result<[u8; 16], FabricError> {
        let groups = self.vls / classes.max(1);
        if groups == 0 {
            let allowed = "a VL at least for each class that the routing needs to be free of deadlock";
            return Err(wrong("vls", self.vls, allowed));
        }
        if self.sl_to_vl.len() > 16 {
            return Err(wrong("sl_to_vl", format!("{} levels", self.sl_to_vl.len()), "at most 16 service levels"));
        }
        if let Some(vl) = self.sl_to_vl.iter().find(|vl| **vl >= groups) {
            return Err(wrong("sl_to_vl", format!("VL {vl}"), "VLs below fabric.vls / classes of the routing"));
        }
        let mut bases = [0; 16];
        for (level, base) in (0u8..).zip(&mut bases) {
            *base = self.sl_to_vl.get(usize::from(level)).copied().unwrap_or(level % groups) * classes;
        }
        Ok(bases)
    }
}
