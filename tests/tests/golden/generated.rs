//! The like of a recorded job, from the parameters that `merger characterise` learns, and a recorded job grown, on a model of the
//! network of the recording: it takes as long as the recorded one, and its phases do.

use std::fs;
use std::path::Path;

use hadoptic_tests::{golden, run, run_json};
use serde_json::Value;

/// The bar of document 001, chapter 4.3, for WordCount and the protein clustering.
const WITHIN: f64 = 0.10;

/// A recorded job that does not grow takes as long, as docs/generate.md says.
const GROWN_WITHIN: f64 = 0.03;
/// One map of the terasort got a container on a node without its block, as that node's heartbeat came last. In grown jobs of other seeds it
/// mostly waits for the next one, and its master hears of it a heartbeat later.
const WAITED_S: f64 = 1.0;
const PHASE_WITHIN: f64 = 0.05;
/// A phase of tenths of a second is not known better.
const PHASE_WITHIN_S: f64 = 0.05;

/// Who makes the job file.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Characterise,
    Grow,
}

/// `results` of the generated job on the lab's network, of several seeds, by job time; and the recorded job.
fn generated(folder: &Path, capture: &str, by: By) -> (Vec<Value>, Value) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (trace, out, job) = (path("trace"), path("out"), path("out/job.toml"));
    assert!(run("merger", &["build", golden(capture).to_str().unwrap(), "--out", &trace]).unwrap().status.success());
    let made = match by {
        By::Characterise => run("merger", &["characterise", &trace, "--out", &out]),
        By::Grow => run("replay", &["grow", &trace, "--out", &out]),
    };
    assert!(made.unwrap().status.success());
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replay/experiments/lab-100mbit.toml");
    let experiment = experiment.to_str().unwrap();
    let recorded = run_json("replay", &["run", experiment, "--trace", &trace, "--out", &path("recorded")]).unwrap();
    let text = fs::read_to_string(&job).unwrap();
    let of_seed = |seed: u32| {
        let file = path(&format!("job-{seed}.toml"));
        fs::write(&file, format!("seed = {seed}\n{}", text.replacen("seed = 1\n", "", 1))).unwrap();
        run_json("replay", &["run", experiment, "--generate", &file, "--out", &path("generated"), "--force"]).unwrap()
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

#[test]
fn the_like_of_a_recorded_job_takes_as_long() {
    for (capture, phases) in
        [("terasort", &["map", "shuffle", "sort", "reduce"][..]), ("wordcount", &["map", "shuffle", "reduce"][..])]
    {
        let folder = tempfile::tempdir().unwrap();
        let (results, recorded) = generated(folder.path(), capture, By::Characterise);
        let median = &results[results.len() / 2];
        let wanted = recorded["recorded_job_time_s"].as_f64().unwrap();
        let error = job_time(median) / wanted - 1.0;
        assert!(error.abs() <= WITHIN, "{capture}: {} s, recorded {wanted} s", job_time(median));
        for name in phases {
            let (new, old) = (phase(median, name, "seconds"), phase(&recorded, name, "recorded_seconds"));
            let off = (new - old).abs();
            assert!(off <= (PHASE_WITHIN * old).max(PHASE_WITHIN_S), "{capture}: {name} {new} s, recorded {old} s");
        }
    }
}

/// What `docs/generate.md` says of the bytes and calls of the word count, whose capture has no other job.
#[test]
fn the_like_of_a_recorded_job_moves_its_bytes_between_the_same_roles() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert!(
        run("merger", &["build", golden("wordcount").to_str().unwrap(), "--out", &path("trace")])
            .unwrap()
            .status
            .success()
    );
    let recorded = run_json("merger", &["characterise", &path("trace"), "--out", &path("recorded")]).unwrap();
    run_json("replay", &["generate", &path("recorded/job.toml"), "--fabric", "lab-100mbit", "--out", &path("like")])
        .unwrap();
    let like = run_json("merger", &["characterise", &path("like"), "--out", &path("of-like")]).unwrap();
    let data = |of: &Value, from: &str, to: &str| {
        let rows = of["roles"].as_array().unwrap();
        let row = rows.iter().find(|row| row["from_role"] == from && row["to_role"] == to).unwrap();
        row["data_bytes"].as_f64().unwrap()
    };
    for (from, to) in [("DataNode", "YarnChild"), ("NodeManager", "YarnChild"), ("YarnChild", "DataNode")] {
        let (new, old) = (data(&like, from, to), data(&recorded, from, to));
        assert!((new / old - 1.0).abs() < 1e-3, "{from} to {to}: {new}, recorded {old}");
    }
    let requests = |of: &Value, name: &str| {
        let row = of["calls"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["requests"].as_u64().unwrap()
    };
    for name in ["submitApplication", "registerApplicationMaster", "startContainers", "getTask", "done", "/mapOutput"] {
        assert_eq!(requests(&like, name), requests(&recorded, name), "{name}");
    }
}

#[test]
fn a_recorded_job_that_does_not_grow_takes_as_long() {
    for (capture, phases) in
        [("terasort", &["shuffle", "sort", "reduce"][..]), ("wordcount", &["map", "shuffle", "sort", "reduce"][..])]
    {
        let folder = tempfile::tempdir().unwrap();
        let (results, recorded) = generated(folder.path(), capture, By::Grow);
        let median = &results[results.len() / 2];
        let waited = if capture == "terasort" { WAITED_S } else { 0.0 };
        let wanted = recorded["recorded_job_time_s"].as_f64().unwrap() + waited;
        let error = job_time(median) / wanted - 1.0;
        assert!(error.abs() <= GROWN_WITHIN, "{capture}: {} s, recorded {wanted} s", job_time(median));
        for name in phases {
            let (new, old) = (phase(median, name, "seconds"), phase(&recorded, name, "recorded_seconds"));
            let off = (new - old).abs();
            assert!(off <= (WITHIN * old).max(PHASE_WITHIN_S), "{capture}: {name} {new} s, recorded {old} s");
        }
    }
}

#[test]
fn a_grown_job_has_its_bytes_and_says_what_its_masters_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let built = run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", &path("trace")]).unwrap();
    assert!(built.status.success());
    let grow = |more: &[&str], out: &str| {
        run_json("replay", &[&["grow", &path("trace"), "--out", &path(out)], more].concat()).unwrap()
    };
    let same = grow(&[], "same");
    let grown = grow(&["--nodes", "16", "--racks", "4", "--data", "8x"], "grown");
    let of = |made: &Value, key: &str| made["jobs"][0][key].as_f64().unwrap();
    for (key, times) in
        [("maps", 8.0), ("reduces", 4.0), ("shuffle_bytes", 8.0), ("hdfs_bytes_read", 8.0), ("hdfs_bytes_written", 8.0)]
    {
        let ratio = of(&grown, key) / of(&same, key);
        assert!((ratio / times - 1.0).abs() < 1e-5, "{key}: {ratio} times");
    }
    assert_eq!(grown["hosts"], 17);
    let roles: Vec<&str> =
        grown["masters"].as_array().unwrap().iter().map(|row| row["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["NameNode", "ResourceManager", "MRAppMaster"]);
    let is_busy = |made: &Value| made["notes"].to_string().contains("ResourceManager answers calls for");
    let slow = grow(&["--nodes", "16", "--set", "calls.nodeHeartbeat.service=300ms"], "slow");
    assert_eq!((is_busy(&grown), is_busy(&slow)), (false, true), "{}", slow["notes"]);
    assert!(run("merger", &["check", &path("grown")]).unwrap().status.success());
    // Done before: nothing is written over.
    let again = run("replay", &["grow", &path("trace"), "--out", &path("grown")]).unwrap();
    assert_eq!(again.status.code(), Some(2));
}

/// What the comment of `sweeps/nodes.toml` says, with an eighth of its data.
#[test]
fn a_recorded_job_is_swept_over_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let built = run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", &path("trace")]).unwrap();
    assert!(built.status.success());
    let arguments = ["run", "sweeps/nodes", "--set", "workload.grow.data=8x", "--trace", &path("trace")];
    let sweep = run_json("replay", &[&arguments[..], &["--out", &path("results")]].concat()).unwrap();
    let points = sweep["points"].as_array().unwrap();
    for rate in ["1Gbps", "10Gbps"] {
        let of_rate = points.iter().filter(|point| point["values"]["fabric.topology.host_link.rate"] == rate);
        let times: Vec<f64> = of_rate.map(job_time).collect();
        assert_eq!(times.len(), 5);
        assert!(times.is_sorted_by(|fewer, more| fewer > more), "{rate}: {times:?}");
        let saved: Vec<f64> = times.windows(2).map(|pair| pair[0] - pair[1]).collect();
        assert!(saved.is_sorted_by(|before, after| before > after), "{rate}: {times:?}");
    }
    // Each is beside the same job on an infinitely fast network, which is a faster one.
    for point in points {
        assert!(job_time(point) >= point["recorded_job_time_s"].as_f64().unwrap(), "{point:#}");
    }
    // The command does the same.
    let grow = ["grow", &path("trace"), "--nodes", "16", "--data", "8x", "--out", &path("grown")];
    let grown = run_json("replay", &grow).unwrap();
    let of_sweep = points.iter().find(|point| point["values"]["workload.grow.nodes"] == 16).unwrap();
    assert_eq!(grown["jobs"][0]["job_time_s"], of_sweep["recorded_job_time_s"]);
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
