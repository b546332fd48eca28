//! How messages that are sent at once share the links of a network with one path for each pair of hosts: the model of ORCS
//! (Schneider, Hoefler, Lumsdaine: *ORCS: An Oblivious Routing Congestion Simulator*, 2009).
//!
//! A [`Pattern`] is a list of levels, each a list of messages between ranks. A run maps ranks to hosts at random, sends all
//! messages of a level at once, and counts for each link, those of hosts included, how many go over it. A message's
//! congestion is the most along its path, its bandwidth the inverse of that. Levels do not see each other.
//!
//! All results are the same for any number of threads: what is random depends on seed and run alone, and what is added up
//! over runs are integers.

mod chains;
mod dot;
mod error;
mod hosts;
mod level;
mod metrics;
mod paths;
mod pattern;
mod quality;
mod run;
mod transfers;
mod tree;

pub use chains::Sends;
pub use dot::coloured;
pub use error::CongestionError;
pub use hosts::{Listed, Subset};
pub use metrics::{Bandwidths, Histogram, Summary, Times, bandwidth, median};
pub use paths::Paths;
pub use pattern::{Joined, Pair, Pattern};
pub use quality::{Quality, quality};
pub use run::{Experiment, Results};
pub use transfers::{Sharing, Transfer};
