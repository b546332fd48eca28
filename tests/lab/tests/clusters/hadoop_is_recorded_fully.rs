//! Jobs on real clusters, by agents that `hadoptic` deploys and removes, are recorded, merged and replayed: owners, messages,
//! counters and times agree.

use crate::common::recording::is_recorded;

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn hadoop_1_2() {
    is_recorded("1.2.1", "tone");
}

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn hadoop_2_10() {
    is_recorded("2.10.2", "ttwo");
}

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn hadoop_3_4() {
    is_recorded("3.4.2", "tthree");
}
