//! Fabrics: the networks that bytes cross, each behind [`Network`](crate::network::Network), chosen by `kind` in the configuration.
//!
//! | `kind` | what it is |
//! |---|---|
//! | `ideal` | every flow alone: latency + bytes / rate, both may be nothing |
//! | `ethernet` | store-and-forward switches with finite buffers, Linux' TCP at the hosts |
//! | `lightness` | servers below ToR switches, joined by optical packet and circuit switches |
//! | `credit` | InfiniBand: virtual cut-through, virtual lanes, credits |
//! | `store-and-forward` | switches that queue whole packets at their outputs, nothing above them at the hosts |
//! | `omni-path` | Intel's Omni-Path: routers of two crossbars, buffers that virtual lanes share |
//! | `input-queued` | clocked routers with virtual channels, flit by flit: wormhole or virtual cut-through, separable allocators |
//! | `input-output-queued` | clocked routers with queues at inputs and outputs: virtual cut-through, VCs drawn anew each cycle |
//! | `spinnaker` | clocked routers that route one packet at a time, and lose what waits too long |
//! | `rotor` | racks that optical circuit switches join in turn, whatever waits |

mod clocked;
pub mod credit;
mod cycle;
mod error;
pub mod ethernet;
pub mod figures;
pub mod flow_packets;
pub mod flows;
mod hop_log;
pub mod hop_records;
pub mod ideal;
pub mod ideal_packets;
mod ids;
pub mod input_output_queued;
pub mod input_queued;
mod instant;
mod kinds;
pub mod lightness;
mod limits;
mod messages;
mod occupancy;
pub mod omni_path;
pub mod optimistic;
pub mod packet;
pub mod pipe;
mod port;
pub mod rotor;
mod slab;
pub mod spinnaker;
pub mod store_and_forward;
pub mod windowed;
pub mod windows;

use crate::topology::HostPlace;

pub use error::FabricError;
pub use kinds::{FabricKind, Places};
pub use limits::{check as check_limits, latest, slowest};

kinds::fabric_kinds! {
    /// A fabric and its parameters: the `[fabric]` table of an experiment. Every key but `kind` has a default.
    config FabricConfig,
    /// A fabric that is ready to carry flows.
    flows Fabric,
    /// A fabric that is ready to carry synthetic traffic.
    packets PacketsFabric,
    kinds {
        /// Every flow alone.
        "ideal" => Ideal(ideal::IdealConfig),
        /// Switched Ethernet with TCP.
        "ethernet" => Ethernet(ethernet::EthernetConfig),
        /// ToR switches with optical packet and circuit switches.
        "lightness" => Lightness(lightness::LightnessConfig),
        /// InfiniBand.
        "credit" => Credit(credit::CreditConfig),
        /// Whole packets, queued at their outputs; what is dropped is sent again.
        "store-and-forward" => StoreAndForward(store_and_forward::StoreAndForwardConfig),
        /// Omni-Path's routers of two stages.
        "omni-path" => OmniPath(omni_path::OmniPathConfig),
        /// Clocked routers with queues at their inputs, flit by flit.
        "input-queued" => InputQueued(input_queued::InputQueuedConfig),
        /// Clocked routers with queues at their inputs and outputs.
        "input-output-queued" => InputOutputQueued(input_output_queued::InputOutputQueuedConfig),
        /// Clocked routers that route one packet at a time.
        "spinnaker" => Spinnaker(spinnaker::SpinnakerRouterConfig),
        /// Racks that circuit switches join in turn.
        "rotor" => Rotor(rotor::RotorConfig),
    }
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self::Ideal(ideal::IdealConfig::default())
    }
}

/// Builds the fabric of `config` for `hosts`, whose [`HostIndex`](crate::network::HostIndex) is their index here.
///
/// # Errors
/// When a value makes no sense, or the topology has no room for the hosts; the error names key, value and what is
/// allowed.
pub fn build(config: &FabricConfig, hosts: &[HostPlace]) -> Result<Fabric, FabricError> {
    config.flows(hosts)
}
