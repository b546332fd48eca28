//! The like of a recorded job, from the parameters that `merger characterise` learns, on a model of the network of the recording:
//! it takes as long as the recorded one, and its phases do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use hadoptic_tests::{golden, run, run_json};
use serde_json::Value;

/// The bar of document 001, chapter 4.3, for WordCount and the protein clustering.
const WITHIN: f64 = 0.10;

/// `results` of the generated job on the lab's network, of several seeds, by job time; and the recorded job.
fn generated(folder: &Path, capture: &str) -> (Vec<Value>, Value) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (trace, out, job) = (path("trace"), path("out"), path("out/job.toml"));
    assert!(run("merger", &["build", golden(capture).to_str().unwrap(), "--out", &trace]).unwrap().status.success());
    assert!(run("merger", &["characterise", &trace, "--out", &out]).unwrap().status.success());
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replay/experiments/lab-100mbit.toml");
    let experiment = experiment.to_str().unwrap();
    let recorded = run_json("replay", &["run", experiment, "--trace", &trace, "--out", &path("recorded")]).unwrap();
    let text = fs::read_to_string(&job).unwrap();
    let of_seed = |seed: u32| {
        let file = path(&format!("job-{seed}.toml"));
        fs::write(&file, format!("seed = {seed}\n{text}")).unwrap();
        run_json("replay", &["run", experiment, "--generate", &file, "--out", &path("generated")]).unwrap()
    };
    let mut results: Vec<Value> = (1..=5).map(of_seed).collect();
    results.sort_by(|a, b| job_time(a).total_cmp(&job_time(b)));
    (results, recorded)
}

fn job_time(summary: &Value) -> f64 {
    summary["job_time_s"].as_f64().unwrap()
}

fn phase(summary: &Value, name: &str, key: &str) -> f64 {
    let phases = summary["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).unwrap()[key].as_f64().unwrap()
}

/// By how much the longest map of the recorded job was longer than the one before it, if that is much: the terasort has one map that
/// read over the network on purpose, which is no parameter of a job's like.
fn longest_map(folder: &Path) -> f64 {
    let trace = trace_tables::read_trace(&folder.join("trace")).unwrap();
    let job = trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap().job;
    let maps = trace.tasks.iter().filter(|task| task.job == job && task.kind == trace::rows::TaskKind::Map);
    let mut times: Vec<u64> = maps.map(|map| map.finish_ns - map.start_ns).collect();
    times.sort_unstable();
    let [.., before, longest] = &*times else { return 0.0 };
    let more = (longest - before) as f64 / 1e9;
    if more > 0.5 * *before as f64 / 1e9 { more } else { 0.0 }
}

#[test]
fn the_like_of_a_recorded_job_takes_as_long() {
    for (capture, phases) in
        [("terasort", &["shuffle", "sort", "reduce"][..]), ("wordcount", &["map", "shuffle", "reduce"][..])]
    {
        let folder = tempfile::tempdir().unwrap();
        let (results, recorded) = generated(folder.path(), capture);
        let median = &results[results.len() / 2];
        let wanted = recorded["recorded_job_time_s"].as_f64().unwrap() - longest_map(folder.path());
        let error = job_time(median) / wanted - 1.0;
        assert!(error.abs() <= WITHIN, "{capture}: {} s, recorded {wanted} s", job_time(median));
        for name in phases {
            let (new, old) = (phase(median, name, "seconds"), phase(&recorded, name, "recorded_seconds"));
            assert!((new / old - 1.0).abs() <= WITHIN, "{capture}: {name} {new} s, recorded {old} s");
        }
    }
}

#[test]
fn shuffled_and_written_bytes_are_those_of_the_recorded_job() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let built = run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", &path("trace")]).unwrap();
    assert!(built.status.success());
    assert!(run("merger", &["characterise", &path("trace"), "--out", &path("out")]).unwrap().status.success());
    let made = run_json("replay", &["generate", &path("out/job.toml"), "--out", &path("like")]).unwrap();
    let trace = trace_tables::read_trace(&folder.path().join("trace")).unwrap();
    let recorded = trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap();
    let job = &made["jobs"][0];
    for (key, wanted) in [
        ("shuffle_bytes", recorded.shuffle_bytes),
        ("hdfs_bytes_read", recorded.hdfs_bytes_read),
        ("hdfs_bytes_written", recorded.hdfs_bytes_written),
    ] {
        let (new, old) = (job[key].as_u64().unwrap() as f64, wanted.unwrap() as f64);
        assert!((new / old - 1.0).abs() < 1e-5, "{key}: {new}, recorded {old}");
    }
    assert_eq!((job["maps"].as_u64(), job["reduces"].as_u64()), (Some(4), Some(4)));
}
