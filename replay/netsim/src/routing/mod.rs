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
//! | `{ dally = MODE }`, `{ bubble = MODE }` | meshes, tori, other lattices | INSEE's routers, which choose virtual lanes, too |
//! | `file` | graphs whose file says routes | as the file says |
//! | `{ table = "FILE" }` | anywhere | as LIGHTNESS' routing file says |
//!
//! `docs/topologies.md` has the rules in full. [`Routes`] is the one place where they are followed: the packet fabrics ask
//! it at each switch, [`Router`] walks along it for fabrics that fix a flow's way at its start.

mod candidates;
mod config;
mod deadlock;
mod error;
mod export;
mod graph;
mod grid;
mod lattice;
mod lattice_lanes;
mod lattice_way;
mod minimal;
mod records;
mod router;
mod routes;
mod survey;
mod table;
mod tree;
mod vcs;

pub use candidates::{BusyPolicy, Candidates, Choice, CreditRequirement, Hop, Lane, Pick, Rank, Ranks};
pub use config::RoutingConfig;
pub use deadlock::DeadlockFreedom;
pub use error::RoutingError;
pub use router::Router;
pub use routes::Routes;
pub use survey::Survey;
pub use table::MAX_FILE as MAX_TABLE_FILE;
pub use vcs::{BubbleAt, BubbleConfig, BubbleMode, Dally, DallyConfig, Directions, Equals, Order, RoomUnit, Ties};
