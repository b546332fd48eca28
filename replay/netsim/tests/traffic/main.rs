//! Synthetic traffic: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrivals;
mod background;
mod bursts;
mod counts;
mod distances;
mod engines;
mod insee;
mod losing;
mod never_stops;
mod over_flows;
mod patterns;
mod ping_pong;
mod ranks;
mod steps;
