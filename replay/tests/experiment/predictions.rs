//! `replay predict`: several captures of a job, seeds, intervals, ablations, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use trace::rows::Trace;
use trace_tables::write_trace;

use crate::common::{MS, TraceBuilder, map_reduce};

const ETHERNET: &str = r#"
    name = "slow"
    [fabric]
    kind = "ethernet"
    [fabric.topology]
    shape = "racks"
    [fabric.topology.host_link]
    rate = "50mbit"
"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    /// Three runs of a job whose computing differs by 5%, and a network.
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for (name, percent) in [("a", 100), ("b", 105), ("c", 110)] {
            let mut trace = map_reduce(&["m1", "w1", "w2"], 4, 2);
            trace.events.iter_mut().for_each(|event| event.delay_ns = event.delay_ns * percent / 100);
            bench.write(name, &trace);
        }
        fs::write(bench.path("slow.toml"), ETHERNET).unwrap();
        bench
    }

    fn write(&self, name: &str, trace: &Trace) {
        write_trace(&self.path(name), trace).unwrap();
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn replay(&self, code: i32, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_replay");
        let output = Command::new(program).args(arguments).current_dir(self.folder.path()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && !message.contains("panicked"), "{arguments:?}: {message}");
        output
    }

    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        serde_json::from_slice(&self.replay(code, &[arguments, &["--json"]].concat()).stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.replay(2, arguments).stderr).unwrap()
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value:#}"))
}

#[test]
fn one_replay_of_one_capture_is_what_run_says_and_null_is_what_was_recorded() {
    let bench = Bench::new();
    let alone = bench.json(0, &["run", "slow.toml", "--trace", "a", "--out", "run"]);
    let predicted = bench.json(0, &["predict", "a", "--fabric", "slow.toml", "--seeds", "1"]);
    let job = &predicted["fabrics"][0]["job"];
    assert!((number(job, "predicted_s") / number(&alone, "job_time_s") - 1.0).abs() < 1e-12, "{job:#}");
    assert!((number(job, "recorded_s") / number(&alone, "recorded_job_time_s") - 1.0).abs() < 1e-12, "{job:#}");
    assert!(number(job, "low_s") < number(job, "predicted_s") && number(job, "predicted_s") < number(job, "high_s"));
    assert_eq!(predicted["fabrics"][0]["phases"][0]["low_s"], Value::Null, "one capture cannot tell");
    let notes = predicted["notes"].to_string();
    assert!(notes.contains("one capture cannot tell") && notes.contains("--recorded"), "{notes}");
}

#[test]
fn three_captures_give_their_geometric_mean_and_an_interval_from_their_own_spread() {
    let bench = Bench::new();
    let predicted = bench.json(0, &["predict", "a", "b", "c", "--fabric", "slow.toml", "--seeds", "3"]);
    let fabric = &predicted["fabrics"][0];
    let replays: Vec<f64> = fabric["replays"].as_array().unwrap().iter().map(|one| number(one, "job_time_s")).collect();
    assert_eq!(replays.len(), 9);
    let mean = libm::exp(replays.iter().map(|time| libm::log(*time)).sum::<f64>() / 9.0);
    assert!((number(&fabric["job"], "predicted_s") / mean - 1.0).abs() < 1e-9);
    let kinds: Vec<&str> =
        fabric["sources"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["captures", "chance"]);
    assert!(fabric["phases"][0]["low_s"].is_f64(), "{:#}", fabric["phases"]);
    assert_eq!(fabric["tasks"].as_array().unwrap().len(), 6);
    let answer = fabric["answer"].as_str().unwrap();
    assert!(answer.starts_with("On slow the job takes ") && answer.contains("mean of 3 runs"), "{answer}");
}

#[test]
fn a_model_of_the_recorded_network_widens_the_interval_by_its_error() {
    let bench = Bench::new();
    let base = ["predict", "a", "b", "c", "--fabric", "slow.toml", "--seeds", "1"];
    let without = bench.json(0, &base);
    let with = bench.json(0, &[&base[..], &["--recorded", "ideal"]].concat());
    let high = |of: &Value| number(&of["fabrics"][0]["job"], "high_s");
    assert!(high(&with) > high(&without));
    let errors = with["self_replay"]["errors"].as_array().unwrap();
    assert_eq!((errors.len(), with["self_replay"]["experiment"].as_str()), (3, Some("ideal")));
    let model = &with["fabrics"][0]["sources"].as_array().unwrap()[1];
    let squares: f64 = errors.iter().map(|error| libm::log(1.0 + error.as_f64().unwrap()).powi(2)).sum();
    assert_eq!(model["kind"], "model");
    assert!((number(model, "deviation") - (squares / 3.0).sqrt()).abs() < 1e-9);
}

#[test]
fn the_answer_is_the_same_on_any_number_of_threads() {
    let bench = Bench::new();
    let base = ["predict", "a", "b", "--fabric", "slow.toml", "--fabric", "ideal", "--threads"];
    let on = |threads| bench.json(0, &[&base[..], &[threads]].concat());
    assert_eq!(on("1"), on("4"));
}

#[test]
fn an_ablation_is_left_out_of_the_networks_that_have_it() {
    let bench = Bench::new();
    let base = ["predict", "a", "--fabric", "slow.toml", "--fabric", "ideal", "--seeds", "2"];
    let with = bench.json(0, &[&base[..], &["--without", "causality,timers,tcp,production"]].concat());
    let names = |of: usize| -> Vec<String> {
        let all = with["fabrics"][of]["ablations"].as_array().unwrap();
        all.iter().map(|one| one["without"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(0), ["causality", "timers", "production", "tcp"]);
    assert_eq!(names(1), ["causality", "timers", "production"], "an ideal network has no TCP");
    let recorded = number(&with["fabrics"][0]["job"], "recorded_s");
    let at_recorded_times = number(&with["fabrics"][0]["ablations"][0], "predicted_s");
    assert!((at_recorded_times / recorded - 1.0).abs() < 0.01, "{at_recorded_times} {recorded}");
    let without_timers = number(&with["fabrics"][0]["ablations"][1], "predicted_s");
    assert!(without_timers < number(&with["fabrics"][0]["job"], "predicted_s"));
    let refused = bench.refused(&[&base[..], &["--without", "cpu-sharing"]].concat());
    assert!(refused.contains("--set cpu.cores=2"), "{refused}");
    assert!(
        bench
            .refused(&[&base[..], &["--without", "luck"]].concat())
            .contains("one of causality, timers, production, tcp")
    );
}

#[test]
fn what_bytes_took_of_processors_in_the_recording_is_told_by_the_recorded_network() {
    let bench = Bench::new();
    let mut computing = map_reduce(&["m1", "w1", "w2"], 4, 2);
    let attempt = Some("attempt_1_0001_m_000000_0".to_owned());
    computing.processes.iter_mut().for_each(|process| process.attempt.clone_from(&attempt));
    bench.write("computing", &computing);
    for (file, work) in [("here.toml", "1ns/B"), ("there.toml", "1000ns/B")] {
        let cpu = format!("[cpu]\ncores = 1\nshared = true\nnetwork_work = \"{work}\"\n");
        fs::write(bench.path(file), format!("{ETHERNET}\n{cpu}")).unwrap();
    }
    let base = ["predict", "computing", "--fabric", "here.toml", "--seeds", "1"];
    let with = |more: &[&str]| bench.json(0, &[&base[..], more].concat())["fabrics"][0].clone();
    let job_s = |of: &Value| number(&of["job"], "predicted_s");
    let alike = with(&[]);
    let told = with(&["--recorded", "there.toml", "--without", "network-work"]);
    assert_eq!(job_s(&told), job_s(&with(&["--set", "cpu.recorded_network_work=1000ns/B"])));
    assert!(job_s(&told) < job_s(&alike), "{told:#}");
    assert!(number(&told["ablations"][0], "predicted_s") > job_s(&told), "{told:#}");
    let refused = bench.refused(&["predict", "a", "--fabric", "slow.toml", "--without", "network-work"]);
    assert!(refused.contains("--set cpu.network_work=9.3ns/B"), "{refused}");
    let refused = bench.refused(&[&base[..], &["--set", "cpu.network_work=2us/B"]].concat());
    assert!(refused.contains("cpu.network_work") && refused.contains("1000ns/B"), "{refused}");
}

#[test]
fn without_production_what_the_network_hid_takes_no_time() {
    let bench = Bench::new();
    let mut hidden = map_reduce(&["m1", "w1", "w2"], 4, 2);
    // 300 ms of each reduce pass while bytes wait for the network.
    for event in hidden.events.iter_mut().filter(|event| event.name == "task.sort_end") {
        event.name = "block.produced".to_owned();
    }
    bench.write("hidden", &hidden);
    let base = ["predict", "hidden", "--fabric", "ideal", "--seeds", "1", "--without", "production"];
    let answer = bench.json(0, &base);
    let with = number(&answer["fabrics"][0]["job"], "predicted_s");
    let without = number(&answer["fabrics"][0]["ablations"][0], "predicted_s");
    // The end is told by the next beat of 500 ms.
    assert!(with - without > 0.25, "{with} {without}");
}

#[test]
fn results_hold_the_prediction_its_tasks_and_a_report_that_is_drawn_again_alike() {
    let bench = Bench::new();
    let all = [
        "predict",
        "a",
        "b",
        "c",
        "--fabric",
        "slow.toml",
        "--fabric",
        "ideal",
        "--without",
        "timers",
        "--out",
        "results",
    ];
    bench.replay(0, &all);
    let page = fs::read_to_string(bench.path("results/report.html")).unwrap();
    for wanted in ["On slow the job takes", "On ideal the job takes", "What would help most", "m_3", "Without some of"]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
    bench.replay(0, &["report", "results", "--out", "again.html"]);
    assert_eq!(fs::read_to_string(bench.path("again.html")).unwrap(), page);
    assert!(bench.path("results/predicted_tasks.parquet").is_file());
    assert!(bench.refused(&all).contains("--force"));
    bench.replay(0, &[&all[..], &["--force"]].concat());
}

#[test]
fn different_jobs_and_what_is_no_capture_are_refused_with_the_reason() {
    let bench = Bench::new();
    let mut other = map_reduce(&["m1", "w1", "w2"], 4, 2);
    other.jobs[0].name = "word count".to_owned();
    bench.write("other", &other);
    let mut more = map_reduce(&["m1", "w1", "w2"], 4, 2);
    more.jobs[0].maps = 17;
    bench.write("more", &more);
    let refused = bench.refused(&["predict", "a", "other", "--fabric", "ideal"]);
    assert!(refused.contains("\"test\"") && refused.contains("\"word count\""), "{refused}");
    let refused = bench.refused(&["predict", "a", "more", "--fabric", "ideal"]);
    assert!(refused.contains("17 maps"), "{refused}");
    assert!(bench.refused(&["predict", "a", "./a", "--fabric", "ideal"]).contains("given twice"));
    assert!(bench.refused(&["predict", "nothing", "--fabric", "ideal"]).contains("nothing: is no folder"));
    assert!(bench.refused(&["predict", "a", "--fabric", "ideal", "--job", "sort"]).contains("no job \"sort\""));
    assert!(bench.refused(&["predict", "a", "--fabric", "ideal", "--fabric", "ideal"]).contains("another experiment"));
    fs::write(bench.path("traffic.toml"), "[traffic]\nload = 0.1\n[fabric]\nkind = \"ideal\"").unwrap();
    let refused = bench.refused(&["predict", "a", "--fabric", "traffic.toml"]);
    assert!(refused.contains("traffic.toml:1") && refused.contains("a prediction replays recorded jobs"), "{refused}");
    fs::create_dir(bench.path("empty")).unwrap();
    let refused = bench.refused(&["predict", "empty", "--fabric", "ideal"]);
    assert!(refused.contains("empty") && (refused.contains("merger")), "{refused}");
    bench.replay(0, &["predict", "a", "--fabric", "ideal", "--job", "test"]);
}

#[test]
fn a_trace_that_cannot_tell_is_doubted_with_exit_code_1() {
    let bench = Bench::new();
    let mut builder = TraceBuilder::new(&["m1", "w1"]);
    builder.mark("job.finish", 0, 20_000 * MS);
    bench.write("untold", &builder.build());
    let output = bench.replay(1, &["predict", "untold", "--fabric", "ideal"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("DOUBT      untold: 20.0 of 20.0 s"), "{text}");
}
