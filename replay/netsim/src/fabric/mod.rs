//! Fabrics: the networks that bytes cross, each behind [`Network`], chosen by `kind` in the configuration.
//!
//! | `kind` | what it is |
//! |---|---|
//! | `ideal` | every flow alone: latency + bytes / rate, both may be nothing |
//! | `ethernet` | store-and-forward switches with finite buffers, Linux' TCP at the hosts |
//! | `lightness` | servers below ToR switches, joined by optical packet and circuit switches |
//! | `credit` | InfiniBand: virtual cut-through, virtual lanes, credits |
//! | `store-and-forward` | switches that queue whole packets at their outputs, nothing above them at the hosts |

mod config;
pub mod credit;
mod error;
pub mod ethernet;
pub mod figures;
pub mod flows;
pub mod ideal;
pub mod ideal_packets;
mod instant;
pub mod lightness;
mod limits;
mod messages;
pub mod packet;
pub mod pipe;
mod port;
mod slab;
pub mod store_and_forward;

use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use crate::topology::HostPlace;
use crate::units::DurationPs;

pub use config::FabricConfig;
pub use error::FabricError;
pub use limits::{check as check_limits, latest, slowest};

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

impl Simulation for Fabric {
    fn hosts(&self) -> u32 {
        each_fabric!(self, network => network.hosts())
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

impl Network for Fabric {
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
}
