//! Topologies: hosts, switches and the links between them, as data.
//!
//! | `shape` | what it is |
//! |---|---|
//! | `racks` | each host at its rack's switch; two rack switches joined directly, or any number through one core switch |
//! | `fat-tree` | LIGHTNESS' full fat-tree: `nodes` hosts in `racks`, an uplink from each rack switch to each of `cores` |
//! | `single-switch`, `leaf-spine` | one switch; leaves, each joined to every spine |
//! | `k-ary-n-tree`, `thin-tree`, `m-port-n-tree`, `xgft` | trees of any height, the last with any widths |
//! | `mesh`, `torus` | routers in one to many dimensions, hosts at each of them; tori twisted or one way |
//! | `midimew`, `spinnaker` | lattices of four and six links |
//! | `graph` | whatever a file says: an edge list, DOT, a subnet of InfiniBand |
//!
//! All keys, the numbering and the formulae are in `docs/topologies.md`. Nodes are numbered hosts first, then switches;
//! trees level by level from below. Every cable is two links, one for each direction: link `i` and link `i ^ 1`. Each
//! host has exactly one cable.

mod builder;
mod cut;
mod distances;
mod error;
mod export;
mod faults;
mod figures;
mod graph;
mod grid;
mod grids;
mod host;
mod ids;
mod keys;
mod lattice;
mod lattices;
mod link;
mod links;
mod ned;
mod placing;
mod shape;
mod structure;
mod tree;
mod trees;

pub use distances::HostDistances;
pub use error::TopologyError;
pub use export::Export;
pub use faults::FaultsConfig;
pub use figures::{Figures, Level, figures};
pub use graph::{Format, Graph, GraphConfig, GraphEdge, LinkText, NO_ROUTE, Subnet, Tables};
pub use grid::Grid;
pub use grids::GridConfig;
pub use host::HostPlace;
pub(crate) use ids::MAX_ENTRIES;
pub use ids::{LinkId, NodeId};
pub use lattice::Lattice;
pub use lattices::{MidimewConfig, SpinnakerConfig};
pub use link::LinkConfig;
pub use links::{Link, Links, LinksIter};
pub use ned::Ned;
pub(crate) use placing::Placing;
pub use shape::{FatTreeConfig, Joined, RacksConfig, TopologyConfig};
pub use structure::{Structure, Topology};
pub use tree::Tree;
pub use trees::{KaryTreeConfig, LeafSpineConfig, PortTreeConfig, SingleSwitchConfig, ThinTreeConfig, XgftConfig};
