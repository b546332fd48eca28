//! The `[fabric]` table.

use super::credit::CreditConfig;
use super::ethernet::EthernetConfig;
use super::ideal::IdealConfig;
use super::lightness::LightnessConfig;
use super::store_and_forward::StoreAndForwardConfig;
use crate::routing::RoutingConfig;
use crate::topology::TopologyConfig;
use crate::units::DurationPs;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A fabric and its parameters: the `[fabric]` table of an experiment. Every key but `kind` has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricConfig {
    /// Every flow alone.
    Ideal(IdealConfig),
    /// Switched Ethernet with TCP.
    Ethernet(EthernetConfig),
    /// ToR switches with optical packet and circuit switches.
    Lightness(LightnessConfig),
    /// InfiniBand.
    Credit(CreditConfig),
    /// Whole packets, queued at their outputs.
    StoreAndForward(StoreAndForwardConfig),
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self::Ideal(IdealConfig::default())
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
