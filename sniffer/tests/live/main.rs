//! The sniffer as people run it, on real interfaces in network namespaces: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accounting;
mod capabilities;
mod command_line;
mod disk_limits;
mod following;
mod hostile_users;
mod new_interfaces;
mod pcapng;
mod recording;
mod reopening;
mod secrets;
mod several_interfaces;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/traffic.rs"]
mod traffic;
