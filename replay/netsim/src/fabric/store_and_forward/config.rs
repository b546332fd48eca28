//! The keys of a `store-and-forward` fabric.

use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::routing::RoutingConfig;
use crate::topology::TopologyConfig;
use crate::units::{Bytes, DurationPs};
use serde::{Deserialize, Serialize};

/// The keys of a `store-and-forward` fabric; what they mean exactly is in `docs/fabric.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreAndForwardConfig {
    /// Hosts, switches and links; a link's `buffer` is the queue in front of it. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How packets choose among several links. Default: `ecmp`, as FatTreeSim.
    pub routing: RoutingConfig,
    /// Decides what is drawn. Default: 1.
    pub seed: u64,
    /// Payload of a packet at most. Default: `1500B`, Ethernet's.
    pub mtu: Bytes,
    /// Headers of a packet. Default: `0B`.
    pub headers: Bytes,
    /// What statistics count as a flit. Default: `64B`.
    pub flit: Bytes,
    /// From a packet's arrival until it is queued at its output (FatTreeSim's processing delay). Default: none.
    pub switch_delay: DurationPs,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for StoreAndForwardConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(1_500),
            headers: Bytes(0),
            flit: Bytes(64),
            switch_delay: DurationPs(0),
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}
