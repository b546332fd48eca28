//! A job on a cluster of Hadoop 2.10.2 is recorded, merged and replayed as one of 3.4.2.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

#[test]
fn owners_messages_counters_and_times_agree() {
    common::recording::is_recorded("2.10.2", "ttwo");
}
