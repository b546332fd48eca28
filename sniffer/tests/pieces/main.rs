//! What the sniffer is made of, without a packet of the kernel's: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod choice_of_interfaces;
mod files;
mod frames;
mod hadoop_ports;
mod kept_payload;
mod kernel_filter;
mod secrets;
#[path = "../../../tests/fuzz/checks/secrets.rs"]
mod secrets_check;
