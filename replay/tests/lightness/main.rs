//! The LIGHTNESS network, and Dimemas' external simulator on it: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod aod;
mod below;
mod buffers;
mod circuits;
#[path = "../fabric/common/mod.rs"]
mod common;
mod dimemas_dispatcher;
mod dimemas_protocol;
mod dimemas_server;
mod dimemas_session;
mod fit;
mod model;
mod names;
mod published;
