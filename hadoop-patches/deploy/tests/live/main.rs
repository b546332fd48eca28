//! `hadoptic` over real sshds, on hosts that are namespaces: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod broken_hosts;
mod collecting;
mod digests;
mod jvms;
mod login_shells;
mod other_users;
mod sudo_login;
#[path = "../support/mod.rs"]
mod support;
mod systemd;
mod whole_round;
