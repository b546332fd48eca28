//! The LIGHTNESS network: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod aod;
mod below;
mod buffers;
mod circuits;
#[path = "../fabric/common/mod.rs"]
mod common;
mod loss;
mod model;
mod planned;
mod prediction;
