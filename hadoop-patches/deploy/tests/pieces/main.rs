//! What is written into hosts' files, and taken out again: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod env_block;
mod hosts;
mod site_xml;
mod units;
