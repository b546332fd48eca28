//! LIGHTNESS' published figures and names, and Dimemas' external simulator: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../netsim/tests/fabric/common/mod.rs"]
mod common;
mod dimemas_dispatcher;
mod dimemas_protocol;
mod dimemas_server;
mod dimemas_session;
mod fit;
mod names;
mod published;
