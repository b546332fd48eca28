//! Routing: which links packets take.
//!
//! | `routing` | where | how it goes |
//! |---|---|---|
//! | `ecmp` | anywhere | a shortest way, by a hash of the flow at each switch |
//! | `ecmp-packet` | anywhere | a shortest way, drawn for each packet at each switch |
//! | `shortest` | anywhere | a shortest way, by the first link of each switch that lies on one |
//! | `d-mod-k`, `s-mod-k` | trees, graphs | a shortest way, by digits of the destination's or source's number |
//! | `random` | trees, graphs | a shortest way, drawn for each packet at each switch |
//! | `adaptive` | trees, graphs | a shortest way, by the link with the most credits |
//! | `up-down` | anywhere | the shortest way that never goes up again after it went down |
//! | `dor` | meshes, tori | dimension by dimension; on rings two classes of virtual lanes, parted by a dateline |
//! | `bubble` | meshes, tori | dimension by dimension; into a ring only where a packet's room remains |
//! | `{ table = "FILE" }` | anywhere | as LIGHTNESS' routing file says |
//!
//! `docs/topologies.md` has the rules in full. [`Routes`] is the one place where they are followed: the packet fabrics ask
//! it at each switch, [`Router`] walks along it for fabrics that fix a flow's way at its start.

mod deadlock;
mod error;
mod grid;
mod routes;
mod sets;
mod survey;
mod table;
mod tree;

pub use deadlock::Freedom;
pub use error::RoutingError;
pub use routes::{Choice, Next, Routes};
pub use survey::Survey;

use crate::topology::{LinkId, NodeId, Topology};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// How a switch chooses where a packet goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingConfig {
    /// Equal-cost multi-path by a hash of the flow, as Ethernet switches do.
    #[default]
    Ecmp,
    /// Equal-cost multi-path by a hash of the packet.
    EcmpPacket,
    /// The destination's number modulo the number of links: one way for each destination.
    DModK,
    /// The source's number modulo the number of links.
    SModK,
    /// Any link, drawn for each packet and switch.
    Random,
    /// The link with the most credits.
    Adaptive,
    /// The first link on a shortest way.
    Shortest,
    /// Never up after down.
    UpDown,
    /// Dimension by dimension, datelines on rings.
    Dor,
    /// Dimension by dimension, bubbles on rings.
    Bubble,
    /// As a routing file says, which is found relative to the experiment's file.
    Table(PathBuf),
}

impl RoutingConfig {
    /// Whether all packets of a flow take one way.
    #[must_use]
    pub const fn keeps_flows(&self) -> bool {
        !matches!(self, Self::EcmpPacket | Self::Random | Self::Adaptive | Self::Bubble)
    }

    /// Takes a file that it names as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Self::Table(file) = self {
            *file = folder.join(&*file);
        }
    }
}

impl fmt::Display for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ecmp => "ecmp",
            Self::EcmpPacket => "ecmp-packet",
            Self::DModK => "d-mod-k",
            Self::SModK => "s-mod-k",
            Self::Random => "random",
            Self::Adaptive => "adaptive",
            Self::Shortest => "shortest",
            Self::UpDown => "up-down",
            Self::Dor => "dor",
            Self::Bubble => "bubble",
            Self::Table(file) => return write!(f, "{{ table = \"{}\" }}", file.display()),
        })
    }
}

/// Finds whole ways through a topology, for fabrics that fix the way of a flow when it is opened.
pub struct Router {
    config: RoutingConfig,
    seed: u64,
    routes: Option<Routes>,
}

impl Router {
    /// A router with `config` that looks at its topology when it is first asked; `seed` decides the hashes.
    #[must_use]
    pub const fn new(config: RoutingConfig, seed: u64) -> Self {
        Self { config, seed, routes: None }
    }

    /// A router for `topology`.
    ///
    /// # Errors
    /// When the routing does not fit the topology, or its file is wrong.
    pub fn of(config: &RoutingConfig, topology: &Topology, seed: u64) -> Result<Self, RoutingError> {
        let routes = Routes::new(config, topology, seed)?;
        Ok(Self { config: config.clone(), seed, routes: Some(routes) })
    }

    /// Appends the links from `source` to `destination` for the flow with number `flow` to `path`; nothing if there is
    /// no way.
    pub fn way(&mut self, topology: &Topology, source: NodeId, destination: NodeId, flow: u64, path: &mut Vec<LinkId>) {
        if self.routes.is_none() {
            self.routes = Routes::new(&self.config, topology, self.seed).ok();
        }
        if let Some(routes) = &self.routes
            && !routes.walk(topology, source, destination, flow, path)
        {
            path.clear();
        }
    }
}
