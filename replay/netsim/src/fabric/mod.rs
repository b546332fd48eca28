//! Fabrics: the networks that bytes cross, each behind [`Network`], chosen by `kind` in the configuration.
//!
//! | `kind` | what it is |
//! |---|---|
//! | `ideal` | every flow alone: latency + bytes / rate, both may be nothing |
//! | `ethernet` | store-and-forward switches with finite buffers, Linux' TCP at the hosts |
//! | `lightness` | servers below ToR switches, joined by optical packet and circuit switches |
//! | `credit` | InfiniBand: virtual cut-through, virtual lanes, credits |
//! | `store-and-forward` | switches that queue whole packets at their outputs, nothing above them at the hosts |

pub mod credit;
pub mod ethernet;
pub mod figures;
pub mod flows;
pub mod ideal;
pub mod ideal_packets;
pub mod lightness;
mod limits;
mod messages;
pub mod packet;
pub mod pipe;
mod port;
mod slab;
pub mod store_and_forward;

use crate::kernel::EventQueue;
use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Token};
use crate::routing::{RoutingConfig, RoutingError};
use crate::time::SimTime;
use crate::topology::{HostPlace, TopologyConfig, TopologyError};
use crate::units::DurationPs;
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

pub use limits::{check as check_limits, latest, slowest};

/// Width of the intervals of the traffic over time, where a configuration names none.
const DEFAULT_INTERVAL: DurationPs = DurationPs::from_ms(100);

/// A fabric and its parameters: the `[fabric]` table of an experiment. Every key but `kind` has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricConfig {
    /// Every flow alone.
    Ideal(ideal::IdealConfig),
    /// Switched Ethernet with TCP.
    Ethernet(ethernet::EthernetConfig),
    /// ToR switches with optical packet and circuit switches.
    Lightness(lightness::LightnessConfig),
    /// InfiniBand.
    Credit(credit::CreditConfig),
    /// Whole packets, queued at their outputs.
    StoreAndForward(store_and_forward::StoreAndForwardConfig),
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self::Ideal(ideal::IdealConfig::default())
    }
}

impl FabricConfig {
    /// The fabric's `kind`, as configurations and summaries call it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Ideal(_) => "ideal",
            Self::Ethernet(_) => "ethernet",
            Self::Lightness(_) => "lightness",
            Self::Credit(_) => "credit",
            Self::StoreAndForward(_) => "store-and-forward",
        }
    }

    /// The topology, the routing and the seed of a fabric of links and switches.
    #[must_use]
    pub const fn network(&self) -> Option<(&TopologyConfig, &RoutingConfig, u64)> {
        match self {
            Self::Ethernet(config) => Some((&config.topology, &config.routing, config.seed)),
            Self::Credit(config) => Some((&config.topology, &config.routing, config.seed)),
            Self::StoreAndForward(config) => Some((&config.topology, &config.routing, config.seed)),
            Self::Ideal(_) | Self::Lightness(_) => None,
        }
    }

    /// Takes the files that it names as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        let (topology, routing) = match self {
            Self::Ethernet(config) => (&mut config.topology, &mut config.routing),
            Self::Credit(config) => (&mut config.topology, &mut config.routing),
            Self::StoreAndForward(config) => (&mut config.topology, &mut config.routing),
            Self::Lightness(config) => {
                if let Some(rack) = &mut config.rack {
                    rack.relative_to(folder);
                }
                return;
            }
            Self::Ideal(_) => return,
        };
        topology.relative_to(folder);
        routing.relative_to(folder);
    }

    /// The width of the intervals of the traffic over time.
    pub const fn interval_mut(&mut self) -> &mut DurationPs {
        match self {
            Self::Ideal(config) => &mut config.interval,
            Self::Ethernet(config) => &mut config.interval,
            Self::Lightness(config) => &mut config.interval,
            Self::Credit(config) => &mut config.interval,
            Self::StoreAndForward(config) => &mut config.interval,
        }
    }
}

/// A fabric that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// No host to build it for.
    #[error("the fabric has no hosts: the trace names none and the topology asks for none (fabric.topology.nodes)")]
    NoHosts,
    /// The topology does not fit.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The routing does not fit.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// What is wrong with the network below the ToRs: its keys are those of `fabric.rack`.
    #[error("{}", .0.to_string().replacen("fabric.", "fabric.rack.", 1))]
    Rack(Box<FabricError>),
    /// A rate, delay or length with which no run comes to its end.
    #[error("fabric.{path} = {value}: {allowed}")]
    Limit {
        /// The key, by its path below `fabric`.
        path: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A value that makes no sense.
    #[error("fabric.{key} = {value}: {allowed}")]
    Value {
        /// The key, below `fabric`.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// A fabric that is ready to run.
pub enum Fabric {
    /// Every flow alone.
    Ideal(Box<ideal::Ideal>),
    /// Switched Ethernet with TCP.
    Ethernet(Box<ethernet::Ethernet>),
    /// ToR switches with optical packet and circuit switches.
    Lightness(Box<lightness::Lightness>),
    /// InfiniBand.
    Credit(Box<flows::Flows<credit::Credit<()>>>),
    /// Whole packets, queued at their outputs; what is dropped is sent again.
    StoreAndForward(Box<flows::Flows<store_and_forward::StoreAndForward<()>>>),
}

/// Builds the fabric of `config` for `hosts`, whose [`HostIndex`] is their index here.
///
/// # Errors
/// When a value makes no sense, or the topology has no room for the hosts; the error names key, value and what is
/// allowed.
pub fn build(config: &FabricConfig, hosts: &[HostPlace]) -> Result<Fabric, FabricError> {
    limits::check(config)?;
    Ok(match config {
        FabricConfig::Ideal(config) => {
            if hosts.is_empty() {
                return Err(FabricError::NoHosts);
            }
            check_interval(config.interval)?;
            Fabric::Ideal(Box::new(ideal::Ideal::new(config, hosts)))
        }
        FabricConfig::Ethernet(config) => {
            check_interval(config.interval)?;
            Fabric::Ethernet(Box::new(ethernet::Ethernet::new(config, hosts)?))
        }
        FabricConfig::Lightness(config) => {
            check_interval(config.interval)?;
            Fabric::Lightness(Box::new(lightness::Lightness::new(config, hosts)?))
        }
        FabricConfig::Credit(config) => {
            check_interval(config.interval)?;
            let fabric = credit::Credit::new(config, hosts, ())?;
            Fabric::Credit(Box::new(flows::Flows::new(fabric, config.loopback)))
        }
        FabricConfig::StoreAndForward(config) => {
            check_interval(config.interval)?;
            let fabric = store_and_forward::StoreAndForward::new(config, hosts, ())?.resending();
            Fabric::StoreAndForward(Box::new(flows::Flows::new(fabric, config.loopback)))
        }
    })
}

/// Refuses an interval so small that a second of traffic would fill the memory.
fn check_interval(interval: DurationPs) -> Result<(), FabricError> {
    if interval < DurationPs::from_us(1) {
        return Err(FabricError::Value {
            key: "interval",
            value: interval.to_string(),
            allowed: "at least 1us; the width of the intervals of the traffic over time",
        });
    }
    Ok(())
}

macro_rules! each_fabric {
    ($self:expr, $network:ident => $body:expr) => {
        match $self {
            Fabric::Ideal($network) => $body,
            Fabric::Ethernet($network) => $body,
            Fabric::Lightness($network) => $body,
            Fabric::Credit($network) => $body,
            Fabric::StoreAndForward($network) => $body,
        }
    };
}

impl Network for Fabric {
    fn hosts(&self) -> u32 {
        each_fabric!(self, network => network.hosts())
    }

    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        each_fabric!(self, network => network.open_flow(source, destination))
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        each_fabric!(self, network => network.open_connection(client, server))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        each_fabric!(self, network => network.send(now, flow, bytes, token));
    }

    fn send_part(&mut self, now: SimTime, flow: FlowId, bytes: u64, of_bytes: u64, token: Token) {
        each_fabric!(self, network => network.send_part(now, flow, bytes, of_bytes, token));
    }

    fn next_event(&self) -> Option<SimTime> {
        each_fabric!(self, network => network.next_event())
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        each_fabric!(self, network => network.advance(until, deliveries))
    }

    fn figures(&self) -> NetworkFigures {
        each_fabric!(self, network => network.figures())
    }
}

/// What all fabrics' `advance` has in common: processes events up to the first instant, not later than `until`, at
/// which `process` delivers something, all events of that instant included.
fn collect_instant<N, E: Copy>(
    network: &mut N,
    until: SimTime,
    deliveries: &mut Vec<Delivery>,
    queue: impl Fn(&mut N) -> &mut EventQueue<E>,
    mut process: impl FnMut(&mut N, SimTime, E, &mut Vec<Delivery>),
) -> SimTime {
    let before = deliveries.len();
    let mut until = until;
    while let Some((at, event)) = queue(network).pop_until(until) {
        process(network, at, event, deliveries);
        if deliveries.len() > before {
            until = at;
        }
    }
    deliveries[before..].sort_by_key(|delivery| delivery.token.0);
    until
}

/// A count of things that are numbered with 32 bits.
fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
