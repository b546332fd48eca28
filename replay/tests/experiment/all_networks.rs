//! One job over all kinds of networks in one comparison: they differ where they should.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

/// The job `sixteen-racks` with a sixteenth of its data, in as many maps and reduces. Heartbeats come every 20 ms, for those of a
/// second move job times by more than networks do.
const JOB: &str = "[cluster]\nnodes = 64\nracks = 16\ncores = 16\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
    [hadoop]\ndfs.blocksize = 8388608\nyarn.resourcemanager.nodemanagers.heartbeat-interval-ms = 20\n\
    yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms = 20\n\
    [[job]]\nprofile = \"terasort\"\ninput = \"1GiB\"\nreduces = 128\nmap_rate = \"200MB/s\"\nreduce_rate = \"200MB/s\"\n";
const NETWORKS: [&str; 13] = [
    "ideal",
    "gigabit",
    "ethernet-10g",
    "fat-tree",
    "infiniband",
    "rotor",
    "circuits-solstice",
    "circuits-sunflow",
    "lightness-ops",
    "lightness-ocs",
    "lightness-aod",
    "lightness-mixed",
    "lightness-by-circuit",
];

#[test]
fn a_job_over_all_networks_in_one_report_takes_another_time_on_each() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), JOB).unwrap();
    let compared = Command::new(env!("CARGO_BIN_EXE_replay"))
        .current_dir(folder.path())
        .arg("compare")
        .args(NETWORKS)
        .args(["--generate", "job.toml", "--out", "results", "--json"])
        .output()
        .unwrap();
    assert!(compared.status.success(), "{compared:?}");
    let answer: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(answer["failed"].as_object().map(serde_json::Map::len), Some(0), "every experiment finishes");
    let experiments = answer["experiments"].as_array().unwrap();
    let of = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one["job_time_s"].as_f64().unwrap());
    let times: BTreeMap<String, f64> = experiments.iter().map(of).collect();
    assert_eq!(times.len(), NETWORKS.len());
    let more = |name: &str| times[name] / times["ideal"] - 1.0;

    for name in &NETWORKS[1..] {
        assert!(more(name) > 0.0, "no network is faster than an infinitely fast one: {name} {times:?}");
    }
    // Without losses, cut-through, 10 Gbit/s.
    assert!(more("infiniband") < 0.005, "{times:?}");
    // The packet switch sends again what collides; joining the ToRs to it takes 753 ms, once.
    assert!(more("lightness-ops") > more("infiniband") && more("lightness-ops") < 0.02, "{times:?}");
    assert!(more("lightness-aod") > more("lightness-ops"), "{times:?}");
    // A rack has four ports for fifteen others, and waits for a circuit each time.
    assert!(more("lightness-ocs") > 3.0, "{times:?}");
    assert!(more("lightness-by-circuit") < 0.02, "nobody waits for a circuit there: {times:?}");
    assert!(more("gigabit") > 0.03, "{times:?}");
    let mut all: Vec<f64> = times.into_values().collect();
    all.sort_by(f64::total_cmp);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "two networks are one: {all:?}");
    assert!(folder.path().join("results/report.html").is_file());
}
