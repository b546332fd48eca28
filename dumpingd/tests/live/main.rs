//! dumpingd as people run it, on real sockets in network namespaces: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asked_by_signals;
mod ending_processes;
mod full_disk;
mod hostile_user;
mod opened_sockets;
mod recording;
#[path = "../../../sniffer/tests/support/mod.rs"]
mod support;
