//! A job on a cluster of Hadoop 1.2.1 is recorded, merged and replayed as one of 3.4.2.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

#[test]
fn owners_messages_counters_and_times_agree() {
    common::recording::is_recorded("1.2.1", "tone");
}
