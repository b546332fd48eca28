//! Jobs on a cluster of Hadoop 3.4.2, by agents that `hadoptic` deploys and removes, are recorded, merged and replayed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

#[test]
fn owners_messages_counters_and_times_agree() {
    common::recording::is_recorded("3.4.2", "tthree");
}
