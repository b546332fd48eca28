//! What dumpingd is made of: texts and messages of the kernel, what changed. One file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fall_backs;
mod files;
mod listing;
mod main_classes;
mod netlink;
mod process_lines;
mod ring_pages;
mod telling;
mod what_changed;
