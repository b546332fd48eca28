//! The simulator: fabrics, the causal replay of traces over them, and what comes out.

pub mod causal;
pub mod dimemas;
pub mod experiment;
pub mod fabric;
pub mod kernel;
pub mod network;
pub mod published;
pub mod report;
pub mod results;
pub mod routing;
pub mod run;
pub mod statistics;
pub mod topology;
pub mod traffic;
pub mod units;
