//! The files of a capture and of a trace, and the words in them: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_files;
mod disk_quota;
mod folders;
mod jvm_records;
mod manifests;
mod packed_files;
mod packet_files;
mod quantities;
mod roles;
mod socket_files;
mod stripped_files;
