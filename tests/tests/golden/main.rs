//! The golden captures of real clusters (`tests/golden`), from merging to what their jobs are on other networks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod characterise;
mod check;
mod clocks;
mod coflow;
mod encrypted;
mod generated;
mod programs;
mod replay;
mod simulated;
mod stripped;
