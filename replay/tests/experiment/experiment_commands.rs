//! The program: what it prints and leaves behind, and that bad input ends in an error and never in a panic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::at_terminal::shown;
use replay::results::remove_results;
use serde_json::Value;
use tempfile::TempDir;
use trace::ids::EventId;
use trace::rows::Trace;
use trace_tables::{read_rows, read_trace, write_trace};

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        bench.trace(&crate::common::map_reduce(&["m1", "w1", "w2"], 4, 2));
        bench.file("slow.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"ideal\"\nrate = \"20Mbps\"\n");
        bench.file("fast.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"ethernet\"\n");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trace(&self, trace: &Trace) {
        write_trace(&self.path("trace"), trace).unwrap();
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn replay(&self, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_replay");
        let output = Command::new(program).args(arguments).current_dir(self.folder.path()).output().unwrap();
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        output
    }

    /// Runs what must fail with this code, and returns what it says.
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.replay(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.replay(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn run_prints_the_documented_keys_and_writes_them() {
    let bench = Bench::new();
    let printed = bench.json(&["run", "slow.toml", "--out", "results", "--json"]);
    assert_eq!(printed, read_json(&bench.path("results/summary.json")));
    let keys: Vec<&str> = printed.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "name",
        "fabric",
        "trace",
        "job",
        "job_name",
        "causality",
        "cpu_factor",
        "seed",
        "job_time_s",
        "recorded_job_time_s",
        "phases",
        "messages",
        "messages_unfinished",
        "bytes",
        "drops",
        "retransmissions",
        "wall_s",
        "events",
        "causal_events",
        "synthetic_beats",
        "heartbeats",
        "network_share",
        "transfer_error",
        "critical_path",
        "counters",
        "notes",
    ] {
        assert!(keys.contains(&key), "{key} is missing: {keys:?}");
    }
    assert_eq!(printed["fabric"], "ideal");
    let phases = printed["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["map", "shuffle", "sort", "reduce"]);
    for phase in phases {
        assert!(phase["seconds"].is_f64() && phase["recorded_seconds"].is_f64(), "{phase}");
        let waits = phase["waits"].as_array().unwrap();
        let total: f64 = waits.iter().map(|wait| wait["seconds"].as_f64().unwrap()).sum();
        assert!((total - phase["seconds"].as_f64().unwrap()).abs() < 1e-6, "what a phase consists of: {phase}");
    }
    for key in ["median", "p95", "messages"] {
        assert!(printed["transfer_error"][key].is_number(), "{key}");
    }
    let shares: f64 =
        printed["critical_path"].as_array().unwrap().iter().map(|share| share["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn scalars_and_vectors_of_a_run_are_drawn_in_files_and_in_the_report() {
    let bench = Bench::new();
    bench.json(&["run", "fast.toml", "--out", "plotted", "--json"]);
    for plot in ["nodes-sent", "nodes-received", "links-bytes", "links-packets", "links-throughput", "transfer-times"] {
        let picture = fs::read_to_string(bench.path(&format!("plotted/plots/{plot}.svg")));
        let picture = picture.unwrap_or_else(|error| panic!("{plot}: {error}"));
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{plot}");
        let page = fs::read_to_string(bench.path("plotted/report.html")).unwrap();
        let inline = picture.trim_end().replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(page.contains(&inline), "{plot}");
    }
}

#[test]
fn run_leaves_tables_a_report_and_a_configuration_that_gives_the_same_result() {
    let bench = Bench::new();
    let first = bench.json(&["run", "slow.toml", "--out", "results", "--json", "--set", "workload.cpu_factor=1.5"]);
    for file in ["messages", "tasks", "links", "traffic", "critical_path"] {
        let bytes = fs::read(bench.path(&format!("results/{file}.parquet"))).unwrap();
        assert!(bytes.starts_with(b"PAR1"), "{file}");
    }
    assert!(fs::read_to_string(bench.path("results/report.html")).unwrap().starts_with("<!doctype html>"));
    let again = bench.json(&["run", "results/effective.toml", "--out", "again", "--json"]);
    for key in ["name", "job_time_s", "events", "phases", "critical_path", "transfer_error"] {
        assert_eq!(first[key], again[key], "{key}");
    }
}

#[test]
fn compare_puts_experiments_side_by_side_and_report_draws_them_again() {
    let bench = Bench::new();
    let printed = bench.json(&["compare", "slow.toml", "fast.toml", "--out", "results", "--json"]);
    let names: Vec<&str> =
        printed["experiments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["slow", "fast"]);
    assert_eq!(printed, read_json(&bench.path("results/summary.json")));
    assert!(bench.path("results/fast/messages.parquet").exists());
    let page = fs::read_to_string(bench.path("results/report.html")).unwrap();
    fs::remove_file(bench.path("results/report.html")).unwrap();
    assert!(bench.replay(&["report", "results"]).status.success());
    assert_eq!(fs::read_to_string(bench.path("results/report.html")).unwrap(), page);
    assert!(bench.replay(&["report", "results/fast", "--out", "fast.html"]).status.success());
    let table =
        String::from_utf8(bench.replay(&["compare", "slow.toml", "--out", "results", "--force"]).stdout).unwrap();
    assert!(table.contains("nothing changes") && table.contains("slow"), "{table}");
}

#[test]
fn a_trace_that_cannot_be_used_is_named_and_nothing_runs() {
    let bench = Bench::new();
    let missing = bench.fails(2, &["run", "slow.toml", "--trace", "nowhere", "--out", "results"]);
    assert!(missing.contains("nowhere"), "{missing}");
    bench.file("no-trace.toml", "[fabric]\nkind = \"ideal\"");
    let none = bench.fails(2, &["run", "no-trace.toml", "--out", "results"]);
    assert!(none.contains("--trace"), "{none}");
    fs::create_dir(bench.path("empty")).unwrap();
    let empty = bench.fails(2, &["run", "slow.toml", "--trace", "empty", "--out", "results"]);
    assert!(empty.contains("manifest.json"), "{empty}");
    fs::remove_file(bench.path("trace/events.parquet")).unwrap();
    let partly = bench.fails(2, &["run", "slow.toml", "--out", "results"]);
    assert!(partly.contains("events.parquet"), "{partly}");
    assert!(!bench.path("results").exists());
}

#[test]
fn a_trace_without_jobs_or_events_or_with_a_cycle_is_refused_with_the_reason() {
    let bench = Bench::new();
    let good = read_trace(&bench.path("trace")).unwrap();
    let without = |spoil: fn(&mut Trace)| {
        let mut trace = good.clone();
        spoil(&mut trace);
        bench.trace(&trace);
    };
    without(|trace| {
        trace.jobs.clear();
        trace.tasks.clear();
        trace.events.clear();
        trace.dependencies.clear();
    });
    assert!(bench.fails(2, &["run", "slow.toml", "--out", "results"]).contains("no job"));
    without(|trace| {
        trace.events.clear();
        trace.dependencies.clear();
    });
    assert!(bench.fails(2, &["run", "slow.toml", "--out", "results"]).contains("no events"));
    without(|trace| trace.hosts.clear());
    assert!(bench.fails(2, &["run", "slow.toml", "--out", "results"]).contains("hosts"));
    without(|trace| {
        let last = EventId(u32::try_from(trace.events.len() - 1).unwrap());
        let first_start = trace.dependencies.iter_mut().find(|row| row.on_event == EventId(0)).unwrap();
        first_start.on_event = last;
    });
    let cycle = bench.fails(1, &["run", "slow.toml", "--out", "results"]);
    assert!(cycle.contains("cycle"), "{cycle}");
}

#[test]
fn a_comparison_goes_on_when_one_experiment_comes_to_no_result() {
    let bench = Bench::new();
    bench.file("bad.toml", "[workload]\ntrace = \"trace\"\njob = \"job_7\"\n[fabric]\nkind = \"ideal\"\n");
    let output = bench.replay(&["compare", "slow.toml", "bad.toml", "--out", "results", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(printed["failed"]["bad"].as_str().unwrap().contains("job_7"));
    assert_eq!(printed["experiments"].as_array().unwrap().len(), 1);
}

#[test]
fn a_comparison_of_different_traces_is_refused() {
    let bench = Bench::new();
    write_trace(&bench.path("other"), &crate::common::map_reduce(&["m1", "w1"], 2, 1)).unwrap();
    bench.file("other.toml", "[workload]\ntrace = \"other\"\n[fabric]\nkind = \"ideal\"\n");
    let message = bench.fails(2, &["compare", "slow.toml", "other.toml", "--out", "results"]);
    assert!(message.contains("one job side by side"), "{message}");
}

#[test]
fn wrong_experiments_and_arguments_are_refused() {
    let bench = Bench::new();
    bench.file("wrong.toml", "[fabric]\nkind = \"ideal\"\nlatency = \"5\"\n");
    let cases: [(&[&str], &str); 9] = [
        (&["run", "slow.toml", "--out", "r", "--set", "workload.racks.w9=/r1"], "it has: m1, w1, w2"),
        (&["run", "wrong.toml", "--out", "r"], "wrong.toml:3:11"),
        (&["run", "missing.toml", "--out", "r"], "missing.toml"),
        (&["run", "slow.toml", "--out", "r", "--set", "fabric.rate=5"], "--set fabric.rate=5"),
        (&["run", "slow.toml", "--out", "r", "--set", "fabric.rate"], "path=value"),
        (&["run", "slow.toml", "--out", "r", "--set", "workload.job=job_7"], "job_1_0001"),
        (&["run", "slow.toml", "--out", "r", "--set", "workload.cpu_factors.Nobody=2"], "Nobody"),
        (&["compare", "slow.toml", "slow.toml", "--out", "r"], "another name"),
        (&["report", "nowhere"], "holds no results"),
    ];
    for (arguments, part) in cases {
        let message = bench.fails(2, arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
    bench.file("r.txt", "");
    assert!(bench.fails(2, &["run", "slow.toml", "--out", "r.txt"]).contains("r.txt"));
    bench.file("fat.toml", "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"fat-tree\"\ncores = 0\n");
    let fat = bench.fails(2, &["run", "fat.toml", "--trace", "trace", "--out", "r"]);
    assert!(fat.contains("fat.toml:5:1") && fat.contains("at least 1"), "{fat}");
}

#[test]
fn tables_cut_at_a_hundred_places_are_refused() {
    let bench = Bench::new();
    let tables = ["events", "dependencies", "connections", "jobs"];
    for cut in 0..100_usize {
        let path = bench.path(&format!("trace/{}.parquet", tables[cut % tables.len()]));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() * (cut * 37 % 100) / 100]).unwrap();
        let error = read_trace(&bench.path("trace")).unwrap_err().to_string();
        assert!(error.contains(".parquet"), "{error}");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(read_rows::<trace::rows::JobRow>(&bench.path("trace")).unwrap().len(), 1);
}

#[test]
fn a_reader_who_has_enough_is_no_failure() {
    for arguments in [
        &["completions", "bash"][..],
        &["lightness", "--json"],
        &["topology", "--shape", "fat-tree", "--nodes", "8", "--racks", "2"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let program = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).stdout(writer).output().unwrap();
        let answer = String::from_utf8_lossy(&program.stderr);
        assert!(program.status.success() && answer.is_empty(), "{arguments:?}: {}: {answer}", program.status);
    }
}

#[test]
fn completions_and_help_are_there() {
    let bench = Bench::new();
    for arguments in [&["completions", "bash"][..], &["--help"], &["run", "--help"], &["compare", "--help"]] {
        let output = bench.replay(arguments);
        assert!(output.status.success() && output.stdout.len() > 200, "{arguments:?}");
    }
}

#[test]
fn a_key_by_the_deliverables_name_is_named_so_and_an_override_beside_the_file() {
    let bench = Bench::new();
    bench.file("light.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"lightness\"\nnumWavelengths = 0\n");
    let answer = bench.fails(2, &["run", "light.toml", "--out", "r"]);
    assert!(answer.contains("light.toml:5:1: fabric.numWavelengths = 0"), "{answer}");
    bench.file(
        "input.toml",
        "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"lightness\"\n[fabric.tor.input]\nwidth = 3\n",
    );
    let answer = bench.fails(2, &["run", "input.toml", "--out", "r"]);
    assert!(answer.contains("input.toml:6:1: fabric.tor.input.width = 3"), "{answer}");
}

#[test]
fn a_rate_with_which_no_run_ends_is_an_error_that_names_it() {
    let bench = Bench::new();
    let change = "fabric.topology.host_link.rate=1bps";
    let answer =
        bench.fails(2, &["run", "fast.toml", "--out", "r", "--set", "fabric.topology.shape=racks", "--set", change]);
    assert!(
        answer.contains("--set fabric.topology.host_link.rate=1bps: fabric.topology.host_link.rate = 1bps: at least"),
        "{answer}"
    );
    // Allowed, but so slow that no piece of the job arrives within a day.
    let answer = bench
        .fails(2, &["run", "slow.toml", "--out", "r", "--set", "fabric.rate=1kbps", "--set", "fabric.interval=1us"]);
    assert!(answer.contains("fabric.rate = 1kbps") && answer.contains("fabric.interval"), "{answer}");
}

#[test]
fn a_table_that_a_terminal_is_too_narrow_for_is_a_list() {
    let bench = Bench::new();
    let compare = |out| ["compare", "slow.toml", "fast.toml", "--out", out];
    let wide = shown(bench.folder.path(), 200, &compare("wide"));
    let row = |text: &str| text.lines().find(|line| line.trim_start().starts_with("slow")).unwrap().to_owned();
    assert!(wide.contains("═══") && row(&wide).contains("ideal"), "{wide}");
    let narrow = shown(bench.folder.path(), 60, &compare("narrow"));
    let table = narrow.split("\nexperiment slow\n").nth(1).unwrap_or_else(|| panic!("{narrow}"));
    assert!(narrow.lines().all(|line| line.starts_with("report: ") || line.chars().count() <= 60), "{narrow}");
    for header in ["fabric", "job", "change", "map", "shuffle", "sort", "reduce", "network", "lost", "wall"] {
        assert!(table.lines().any(|line| line.trim_start().starts_with(&format!("{header} "))), "{header}: {narrow}");
    }
}

#[test]
fn results_give_way_only_when_they_are_meant_to() {
    let bench = Bench::new();
    bench.json(&["compare", "slow.toml", "fast.toml", "--out", "r", "--json"]);
    let summary = fs::read(bench.path("r/summary.json")).unwrap();
    for command in ["run", "compare"] {
        let answer = bench.fails(2, &[command, "slow.toml", "--out", "r"]);
        assert!(answer.contains("r: holds results; replace them with --force"), "{answer}");
    }
    assert_eq!(fs::read(bench.path("r/summary.json")).unwrap(), summary);
    // An experiment that cannot be run costs no results.
    bench.fails(2, &["run", "slow.toml", "--trace", "nowhere", "--out", "r", "--force"]);
    assert_eq!(fs::read(bench.path("r/summary.json")).unwrap(), summary);
    bench.file("r/notes.txt", "mine");
    bench.json(&["run", "slow.toml", "--out", "r", "--json", "--force"]);
    assert!(bench.path("r/notes.txt").exists() && !bench.path("r/slow").exists() && !bench.path("r/fast").exists());
    // What a comparison left that was stopped.
    bench.json(&["compare", "slow.toml", "--out", "stopped", "--json"]);
    fs::remove_file(bench.path("stopped/summary.json")).unwrap();
    bench.json(&["compare", "fast.toml", "--out", "stopped", "--json", "--force"]);
    assert!(!bench.path("stopped/slow").exists());
}

#[test]
fn a_folder_of_other_things_takes_no_results() {
    let bench = Bench::new();
    fs::create_dir(bench.path("r")).unwrap();
    bench.json(&["run", "slow.toml", "--out", "r", "--json"]);
    for arguments in
        [&["run", "slow.toml", "--out", "trace"][..], &["compare", "slow.toml", "--out", "trace", "--force"]]
    {
        let answer = bench.fails(2, arguments);
        assert!(
            answer.contains("trace: holds something that is no results of replay; choose another folder"),
            "{answer}"
        );
    }
    assert!(read_trace(&bench.path("trace")).is_ok());
}

#[test]
fn nothing_is_left_of_results_that_are_replaced() {
    let bench = Bench::new();
    bench.file("circuits.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"lightness\"\ndecision = \"ocs\"\n");
    bench.file(
        "tree.toml",
        "[traffic]\n[fabric]\nkind = \"credit\"\nvls = 2\n[fabric.topology]\nshape = \"k-ary-n-tree\"\n",
    );
    bench.file("coflows.txt", "2 1\n1 0 1 0 1 1:1.0\n");
    let short = ["--set", "traffic.warm_up=1us", "--set", "traffic.measurement=10us", "--packets"];
    let factors = ["--set", "workload.cpu_factor=[1.0, 2.0]"];
    let several = ["-p", "rand", "-p", "bisect", "--runs", "2", "--hosts", "2,4"];
    let commands: [Vec<&str>; 7] = [
        vec!["run", "circuits.toml"],
        vec!["compare", "slow.toml", "circuits.toml"],
        [&["run", "slow.toml"][..], &factors].concat(),
        [&["run", "tree.toml", "--set", "traffic.load=[0.1, 0.2]"][..], &short].concat(),
        vec!["coflow", "coflows.txt"],
        [&["congestion", "--shape", "k-ary-n-tree"][..], &several].concat(),
        vec!["congestion", "--shape", "k-ary-n-tree", "--metric", "routequal"],
    ];
    for command in &commands {
        let output = bench.replay(&[&command[..], &["--out", "r", "--force"]].concat());
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        assert!(fs::read_dir(bench.path("r")).unwrap().count() > 0, "{command:?}");
        remove_results(&bench.path("r")).unwrap();
        let left: Vec<_> = fs::read_dir(bench.path("r")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{command:?} leaves {left:?}");
    }
}

#[test]
fn circuits_of_a_run_are_a_table() {
    let bench = Bench::new();
    bench.file("ocs.toml", "[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"lightness\"\ndecision = \"ocs\"\n");
    bench.json(&["run", "ocs.toml", "--out", "r", "--json"]);
    assert!(bench.path("r/circuits.parquet").exists());
    let circuits = read_json(&bench.path("r/detail.json"))["circuits"].clone();
    let first = &circuits.as_array().unwrap()[0];
    assert!(first["packets"].as_u64().unwrap() > 0 && first["up_s"].as_f64() > first["granted_s"].as_f64(), "{first}");
    assert!(first["asked_s"].as_f64() <= first["granted_s"].as_f64(), "{first}");
    assert!(first["last_used_s"].as_f64() > first["up_s"].as_f64(), "{first}");
    let summary = read_json(&bench.path("r/summary.json"))["circuits"].clone();
    let (set_up, requests) = (summary["set_up"].as_u64().unwrap(), summary["requests"].as_u64().unwrap());
    assert_eq!(requests, set_up + summary["refused"].as_u64().unwrap(), "{summary}");
    let of_all = |key: &str| circuits.as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (summary["packets"].as_u64(), summary["bytes"].as_u64()),
        (Some(of_all("packets")), Some(of_all("bytes")))
    );
    let (held, lost) = (summary["occupancy"].as_f64().unwrap(), summary["reconfiguring_share"].as_f64().unwrap());
    assert!(0.0 < lost && lost < held && held < 1.0, "{summary}");
    let report = |folder: &str| fs::read_to_string(bench.path(folder)).unwrap();
    assert!(report("r/report.html").contains("Optical circuits") && report("r/report.html").contains(" port 0"));
    // A run without any leaves none of an earlier one's.
    bench.json(&["run", "slow.toml", "--out", "r", "--json", "--force"]);
    assert!(!bench.path("r/circuits.parquet").exists() && !report("r/report.html").contains("Optical circuits"));
    assert!(read_json(&bench.path("r/summary.json"))["circuits"].is_null());
}
