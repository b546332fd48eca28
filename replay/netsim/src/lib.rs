//! A simulator of networks: topologies, routings, fabrics and synthetic traffic, in integer picoseconds. The same input gives
//! the same bits.
//!
//! A fabric is configured as data, built for hosts, and driven through [`network::Network`]: whoever uses it hands bytes over
//! and is told when they have arrived.
//!
//! ```
//! use netsim::fabric::{self, FabricConfig};
//! use netsim::network::{HostIndex, Network, Simulation, Token};
//! use netsim::time::SimTime;
//! use netsim::topology::HostPlace;
//!
//! let config: FabricConfig = r#"
//!     kind = "credit"              # InfiniBand: virtual cut-through, virtual lanes, credits
//!     headers = "0B"
//!     switch_delay = "100ns"
//!
//!     [topology]
//!     shape = "single-switch"
//!     host_link = { rate = "100Gbps", delay = "10ns" }
//!     "#
//! .parse()?;
//! let hosts = ["a", "b"].map(|name| HostPlace { name: name.to_owned(), rack: "r".to_owned() });
//! let mut network = fabric::build(&config, &hosts)?;
//!
//! let flow = network.open_flow(HostIndex(0), HostIndex(1));
//! network.send(SimTime::ZERO, flow, 2_048, Token(7));
//! let mut deliveries = Vec::new();
//! network.advance(SimTime::LATEST, &mut deliveries);
//!
//! // 2,048 bytes at 100 Gbit/s, two cables and a switch, which passes a packet on when its first flit (64 bytes) is there.
//! assert_eq!(deliveries[0].token, Token(7));
//! assert_eq!(deliveries[0].at, SimTime(163_840 + 2 * 10_000 + 100_000 + 5_120));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`time`], [`units`] | picoseconds; quantities with their units |
//! | [`files`] | what people name is opened and read with bounds |
//! | [`kernel`] | the queue of events, their total order, randomness by place and time |
//! | [`topology`], [`routing`] | nodes and links; where a packet may go next, and whether that can deadlock |
//! | [`network`] | the seam between a fabric and what sends over it |
//! | [`engine`] | lets a workload and a network take turns |
//! | [`fabric`] | the kinds of networks |
//! | [`circuits`] | schedulers of circuits: demand to matchings and slots |
//! | [`traffic`], [`statistics`] | synthetic traffic over fabrics that simulate packets, and what is measured of it |

pub mod circuits;
mod cost;
mod count;
mod csr;
pub mod engine;
pub mod fabric;
pub mod files;
pub mod kernel;
pub mod network;
pub mod routing;
pub mod statistics;
mod text;
pub mod time;
pub mod topology;
pub mod traffic;
pub mod units;
