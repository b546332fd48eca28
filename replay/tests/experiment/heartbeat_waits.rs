//! A result says which news another heartbeat carried than in the recording.

use std::path::Path;

use crate::causal_times::beating;
use crate::common::MS;
use replay::experiment::Experiment;
use replay::results::{HeartbeatWaits, Summary};
use replay::run::run_experiment;

/// A message of 125 kB, recorded to arrive at 198 ms, whose news the beat of 200 ms carried, takes so many milliseconds.
fn summary(work_ms: u64, is_recorded_network: bool) -> Summary {
    let (trace, ..) = beating(198 * MS, 8);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/ideal.toml");
    let rate = format!("fabric.rate=\"{}bit\"", 1_000_000_000 / work_ms);
    let network = format!("workload.recorded_network={is_recorded_network}");
    let experiment = Experiment::read(&path, &[rate, network].map(|text| text.parse().unwrap())).unwrap();
    run_experiment(&experiment, &trace, |_| {}).unwrap().detail.summary
}

fn waits(other_beat: u64) -> Vec<HeartbeatWaits> {
    vec![HeartbeatWaits { timer: "heartbeat".to_owned(), waits: 1, other_beat, pause_s: 0.096 }]
}

#[test]
fn news_that_the_recorded_beat_carries_has_no_note() {
    let summary = summary(190, true);
    assert_eq!(summary.heartbeats, waits(0));
    assert!(!summary.notes.iter().any(|note| note.contains("heartbeat")), "{:?}", summary.notes);
}

#[test]
fn news_that_misses_its_beat_is_counted_and_noted_where_it_is_an_error() {
    let (in_time, late) = (summary(190, true), summary(205, true));
    assert_eq!(late.heartbeats, waits(1));
    assert!((late.job_time_s - in_time.job_time_s - 0.1).abs() < 0.005, "{in_time:?} {late:?}");
    let expected = "1 of 1 waits for a heartbeat ended with another beat than recorded (heartbeat: 1, every 0.1 s)";
    assert!(late.notes.iter().any(|note| note.starts_with(expected)), "{:?}", late.notes);
}

#[test]
fn on_another_network_other_beats_are_no_error() {
    let summary = summary(205, false);
    assert_eq!(summary.heartbeats, waits(1));
    assert!(!summary.notes.iter().any(|note| note.contains("heartbeat")), "{:?}", summary.notes);
}
