//! From the files of a capture to messages and their owners: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod check_command;
mod check_figures;
mod clock_alignment;
mod damaged_steps;
mod digest_command;
mod foreign_captures;
mod framing_hadoop_1;
mod framing_http;
mod framing_rpc;
mod framing_transfer;
mod framing_unseen;
mod gaps;
mod history_hadoop_1;
mod history_jhist;
mod hostile;
mod join_connections;
mod layout;
mod limits;
mod memory;
mod owners;
mod steps;
mod strip_command;
mod uplinks;
mod window;
#[path = "../world/mod.rs"]
mod world;
