//! Recorded jobs and synthetic traffic over simulated networks (`netsim`), and what comes out.

pub mod coflows;
pub mod dimemas;
pub mod experiment;
pub mod generate;
pub mod long_messages;
mod nearest;
pub mod peers;
pub mod placing;
pub mod predict;
pub mod published;
pub mod ranks;
pub mod report;
pub mod results;
pub mod run;
pub mod shuffle;
pub mod workload;
