//! Synthetic traffic: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrivals;
mod bursts;
mod distances;
mod engines;
mod insee;
mod over_flows;
mod patterns;
mod steps;
