//! Jobs on real clusters, by agents that `hadoptic` deploys and removes, are recorded, merged and replayed: owners, messages,
//! counters and times agree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::recording::{is_recorded, is_recorded_on};

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
fn hadoop_3_3() {
    is_recorded("3.3.6", "tthree3");
}

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn hadoop_3_4() {
    is_recorded("3.4.2", "tthree");
}

/// On the newest Java that is here, 25 at most: from 24 on there is no `SecurityManager`, which all other versions need.
#[test]
#[ignore = "needs root: hosts in namespaces"]
fn hadoop_3_5() {
    is_recorded_on("3.5.0", "tthree5", newest_java(17..=25).as_deref());
}

/// The newest of the JDKs in the folder where Debian's packages and Temurin's put them.
fn newest_java(versions: std::ops::RangeInclusive<u32>) -> Option<PathBuf> {
    let homes = fs::read_dir("/usr/lib/jvm").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let version = |home: &Path| {
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        lab::setup::major_version(version.trim_matches('"'))
    };
    let known = homes.filter_map(|home| Some((version(&home)?, home)));
    known
        .filter(|(version, home)| versions.contains(version) && home.join("bin/javac").exists())
        .max()
        .map(|(_, home)| home)
}
