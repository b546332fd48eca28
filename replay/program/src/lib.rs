//! Message-passing programs over simulated networks: ranks that calculate, send and receive.
//!
//! A [`Program`] comes from a file: a schedule in GOAL ([`goal`]: LogGOPSim, ATLAHS), a list of flows ([`flows`]: htsim), messages that wait for messages
//! ([`vef`]), or [`Sequences`] of each rank's operations ([`trc`]: INSEE; [`alog`]: MPICH; [`dimemas`]); or it is a [`Kernel`]. A [`Driver`] runs it as a workload of `netsim`, over any fabric.
//!
//! What an operation does, as in LogGOPSim with messages that are all eager: a calculation takes its time on a CPU of its rank. A
//! send takes the overhead on its CPU, has ended then, and its message is the network's. A receive is posted as soon as what it waits
//! for has ended; it takes the earliest message from its source with its tag, and then the overhead on its CPU. Of receives that could take a
//! message, the one that was posted first does. A CPU does one operation at a time: of those that are ready, sends and receives before
//! calculations, and those first that stand first in the file.

pub mod alog;
mod background;
mod builder;
mod collectives;
mod connections;
pub mod dimemas;
mod driver;
mod due;
pub mod flows;
pub mod goal;
mod kernels;
mod lines;
mod matching;
mod placement;
mod sequences;
mod stuck;
pub mod trc;
pub mod vef;

pub use background::Background;
pub use builder::{MAX_RANKS, Operation, OperationId, Program, RankId};
pub use driver::{Driver, MessageTimes, Options};
pub use kernels::{Kernel, KernelKind};
pub use lines::ParseError;
pub use placement::Placement;
pub use sequences::Sequences;
pub use stuck::StuckError;
