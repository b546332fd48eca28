//! The program with synthetic traffic: what it prints and leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::at_terminal::{Ended, counted, interrupted};

const EXPERIMENT: &str = "
[traffic]
flits = 8
load = 0.3
warm_up = \"500 cycles\"
measurement = \"2000 cycles\"
[fabric]
kind = \"credit\"
routing = \"random\"
[fabric.topology]
shape = \"k-ary-n-tree\"
n = 2
";

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(bench.path("tree.toml"), EXPERIMENT).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    fn replay(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.replay(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.replay(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Without what differs from run to run.
fn without_times(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("wall_s");
                map.remove("cpu_s");
                map.remove("memory_peak_bytes");
                map.remove("event_rate");
                map.remove("parallel");
                map.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn a_run_prints_the_keys_that_programs_rely_on_and_leaves_its_tables() {
    let bench = Bench::new();
    let printed = bench.json(&["run", "tree.toml", "--out", "results", "--json", "--packets"]);
    assert_eq!(printed, read_json(&bench.path("results/summary.json")));
    for key in [
        "offered_load",
        "accepted_load",
        "packet_latency_mean_cycles",
        "network_latency_mean_cycles",
        "packet_latency_mean_ns",
        "hops_mean",
        "packets",
        "flit_hops",
        "events",
        "wall_s",
        "cpu_s",
        "seed",
    ] {
        assert!(printed[key].as_f64().unwrap() > 0.0, "{key}: {}", printed[key]);
    }
    assert_eq!(printed["saturated"], false);
    assert_eq!(printed["interim"], false);
    for table in ["links", "latency", "packets"] {
        assert!(fs::read(bench.path(&format!("results/{table}.parquet"))).unwrap().starts_with(b"PAR1"), "{table}");
    }
    let page = fs::read_to_string(bench.path("results/report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("busiest links"));
    fs::remove_file(bench.path("results/report.html")).unwrap();
    assert!(bench.replay(&["report", "results"]).status.success());
    assert_eq!(fs::read_to_string(bench.path("results/report.html")).unwrap(), page);
    let again = bench.json(&["run", "results/effective.toml", "--out", "again", "--json"]);
    assert_eq!(without_times(again), without_times(printed));
}

#[test]
fn a_sweep_gives_the_same_on_any_number_of_threads_and_one_table_at_the_end() {
    let bench = Bench::new();
    let arguments = ["run", "tree.toml", "--set", "traffic.load=[0.1,0.5,0.9]", "--set", "fabric.vls=[1,2]"];
    let of = |threads: &str, out: &str| {
        let more = ["--set", "run.seeds=2", "--json", "--threads", threads, "--out", out];
        without_times(bench.json(&[&arguments[..], &more[..]].concat()))
    };
    let one = of("1", "one");
    assert_eq!(one, of("4", "four"));
    let points = one["points"].as_array().unwrap();
    let values: Vec<(f64, u64)> = points
        .iter()
        .map(|point| {
            (point["values"]["traffic.load"].as_f64().unwrap(), point["values"]["fabric.vls"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(values, [(0.1, 1), (0.5, 1), (0.9, 1), (0.1, 2), (0.5, 2), (0.9, 2)]);
    // A point of a sweep is what it would be alone.
    let alone = bench.json(&[
        "run",
        "tree.toml",
        "--set",
        "traffic.load=0.5",
        "--set",
        "fabric.vls=2",
        "--set",
        "run.seeds=2",
        "--json",
        "--out",
        "alone",
    ]);
    for key in ["accepted_load", "packet_latency_mean_ns", "events", "confidence", "latency_ns"] {
        assert_eq!(points[4][key], alone[key], "{key}");
    }
    for file in ["sweep.parquet", "sweep.csv", "latency.svg", "accepted.svg", "report.html", "effective.toml"] {
        assert!(bench.path(&format!("one/{file}")).exists(), "{file}");
    }
    let csv = fs::read_to_string(bench.path("one/sweep.csv")).unwrap();
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("fabric.vls,traffic.load,saturated,offered_load,accepted_load,"), "{csv}");
    let picture = fs::read_to_string(bench.path("one/latency.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("http://www.w3.org/2000/svg"));
    assert_eq!(picture.matches("<polyline").count(), 2, "a line for each number of VLs");
    assert_eq!(picture.matches("<circle").count(), 6);
    let table = String::from_utf8(bench.replay(&[&arguments[..], &["--out", "table"]].concat()).stdout).unwrap();
    assert!(table.contains("traffic.load") && table.contains("accepted") && table.contains("report"), "{table}");
}

/// What the comment of `sweeps/packet-sizes.toml` says.
#[test]
fn bars_are_grouped_by_packet_size() {
    let bench = Bench::new();
    let printed = bench.json(&["run", "sweeps/packet-sizes", "--out", "sizes", "--json"]);
    let time = |size: &str, decision: &str| {
        let is =
            |point: &&Value| point["values"]["traffic.size"] == size && point["values"]["fabric.decision"] == decision;
        printed["points"].as_array().unwrap().iter().find(is).unwrap()["packet_latency_mean_ns"].as_f64().unwrap()
    };
    for (size, less) in [("80B", 0.1242), ("1500B", 0.3094), ("32KiB", 0.0334)] {
        let found = 1.0 - time(size, "ocs") / time(size, "ops");
        assert!((found - less).abs() < 0.0001, "{size}: {found}");
    }
    let bars = |folder: &str| fs::read_to_string(bench.path(&format!("{folder}/latency-grouped.svg"))).unwrap();
    let picture = bars("sizes");
    // Five groups of two, two entries of the legend, the paper.
    assert_eq!(picture.matches("<rect").count(), 5 * 2 + 2 + 1, "{picture}");
    let place = |words: &str| picture.find(words).unwrap_or_else(|| panic!("{words} in {picture}"));
    assert!(place(">80B</text>") < place(">1500B</text>") && place(">1500B</text>") < place(">32KiB</text>"));
    assert!(place("decision = ops: ") > 0 && place("traffic.size") > 0);
    let page = fs::read_to_string(bench.path("sizes/report.html")).unwrap();
    assert!(page.contains("By packet size or another key"));
    assert!(bench.replay(&["report", "sizes", "--out", "again.html"]).status.success());
    assert_eq!(fs::read_to_string(bench.path("again.html")).unwrap(), page);
    // By another key.
    let arguments = ["run", "sweeps/packet-sizes", "--out", "decisions", "--group-by", "fabric.decision", "--json"];
    bench.json(&arguments);
    let picture = bars("decisions");
    assert!(picture.contains(">ocs</text>") && picture.contains(">size = 80B</text>"), "{picture}");
    let wrong = bench.fails(&["run", "sweeps/packet-sizes", "--out", "wrong", "--group-by", "traffic.load"]);
    assert!(wrong.contains("those that have: fabric.decision, traffic.size"), "{wrong}");
    let alone = bench.fails(&["run", "tree.toml", "--out", "wrong", "--group-by", "traffic.load"]);
    assert!(alone.contains("those that have: none"), "{alone}");
    // What an optical packet switch refuses and what is lost, over the load.
    let loss = ["run", "sweeps/ops-loss", "--set", "traffic.load=[0.2,0.8]", "--set", "traffic.measurement=100us"];
    bench.json(&[&loss[..], &["--out", "loss", "--json"]].concat());
    for name in ["lost.svg", "nacks.svg"] {
        let picture = fs::read_to_string(bench.path(&format!("loss/{name}"))).unwrap();
        assert_eq!(picture.matches("<polyline").count(), 3, "a line for each number of wavelengths");
    }
    assert!(!bench.path("decisions/lost-grouped.svg").exists(), "nothing was lost");
    // Without a packet size and without a choice there are none.
    bench.json(&["run", "tree.toml", "--set", "traffic.load=[0.1,0.2]", "--out", "loads", "--json"]);
    assert!(!bench.path("loads/latency-grouped.svg").exists());
}

#[test]
fn a_saturated_network_is_a_result() {
    let bench = Bench::new();
    let set = ["--set", "traffic.load=1.0", "--set", "traffic.pattern=hot-spot", "--set", "traffic.share=0.9"];
    let printed = bench.json(&[&["run", "tree.toml", "--out", "r", "--json"][..], &set].concat());
    assert_eq!(printed["saturated"], true);
    assert!(printed["packets_undelivered"].as_u64().unwrap() > 0);
}

#[test]
fn a_combination_that_cannot_run_does_not_stop_the_others() {
    let bench = Bench::new();
    let arguments = ["run", "tree.toml", "--out", "r", "--json", "--set", "traffic.flits=[8,99]"];
    let output = bench.replay(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["points"].as_array().unwrap().len(), 1);
    assert!(printed["failed"]["flits = 99"].as_str().unwrap().contains("1 to 32"), "{printed}");
    let all = bench.fails(&["run", "tree.toml", "--out", "r", "--force", "--set", "traffic.flits=[98,99]"]);
    assert!(all.contains("no combination") && all.contains("flits = 98"), "{all}");
}

#[test]
fn an_interrupted_run_ends_with_interim_results() {
    let bench = Bench::new();
    let long =
        ["run", "tree.toml", "--out", "r", "--json", "--set", "traffic.measurement=1s", "--set", "traffic.warm_up=1us"];
    let Ended { code, shown, printed } =
        interrupted(bench.folder.path(), &long, |shown| counted(shown, " us simulated") > 100.0);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(printed["interim"], true);
    assert!(printed["packets"].as_u64().unwrap() > 0);
    assert_eq!(printed, read_json(&bench.path("r/summary.json")));
    assert!(fs::read_to_string(bench.path("r/report.html")).unwrap().contains("interim results"));
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let bench = Bench::new();
    fs::write(bench.path("job.toml"), "[fabric]\nkind = \"ideal\"\nrate = [\"1Gbps\", \"2Gbps\"]\n").unwrap();
    fs::write(bench.path("nothing.toml"), "[fabric]\nkind = \"ideal\"\n").unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["run", "tree.toml", "--out", "r", "--trace", "t"], "replays no trace"),
        (&["run", "job.toml", "--out", "r"], "nothing to run"),
        (&["run", "nothing.toml", "--out", "r"], "[traffic]"),
        (&["run", "nothing.toml", "--out", "r", "--packets"], "no synthetic traffic"),
        (&["run", "tree.toml", "--out", "r", "--threads", "0"], "1 to 4096"),
        (&["compare", "tree.toml", "--out", "r"], "tree.toml:2:2: `[traffic]`"),
        (&["run", "tree.toml", "--out", "r", "--set", "traffic.flits=99"], "--set traffic.flits=99"),
    ];
    for (arguments, part) in cases {
        let message = bench.fails(arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

/// The cells of a sweep's table, but for what this machine took.
fn table(bench: &Bench, folder: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(bench.path(&format!("{folder}/sweep.csv"))).unwrap();
    let wall = text.lines().next().unwrap().split(',').position(|name| name == "wall_s");
    let cells = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(column, _)| Some(*column) != wall);
        cells.map(|(_, cell)| cell.to_owned()).collect()
    };
    text.lines().map(cells).collect()
}

#[test]
fn tasks_that_share_a_sweep_of_traffic_leave_what_one_process_does() {
    let bench = Bench::new();
    let text = EXPERIMENT
        .replace("load = 0.3", "load = [0.1, 0.3, 0.5]")
        .replace("[traffic]", "[run]\nseeds = [3, 4]\n[traffic]");
    fs::write(bench.path("sweep.toml"), text).unwrap();
    assert!(bench.replay(&["run", "sweep.toml", "--out", "one"]).status.success());
    let part = |part: &str| bench.json(&["run", "sweep.toml", "--out", "many", "--part", part, "--json"]);
    assert_eq!(part("1/2")["replayed"], 1);
    // What is missing is said, and what is there shown.
    let gathered = bench.replay(&["run", "sweep.toml", "--out", "many", "--gather", "--json"]);
    assert_eq!(gathered.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&gathered.stdout).unwrap();
    assert_eq!((shown["points"].as_array().unwrap().len(), &shown["interim"]), (1, &Value::Bool(true)));
    assert!(String::from_utf8(gathered.stderr).unwrap().contains("2 of 3 combinations are not there yet"));
    for (number, replayed, before) in [("0/2", 2, 0), ("1/2", 0, 1)] {
        let done = part(number);
        assert_eq!((&done["replayed"], &done["there_before"]), (&replayed.into(), &before.into()), "{number}");
    }
    assert!(bench.replay(&["run", "sweep.toml", "--out", "many", "--gather"]).status.success());
    assert_eq!(table(&bench, "one"), table(&bench, "many"));
    for file in ["links.parquet", "latency.parquet", "latency.svg", "accepted.svg", "effective.toml"] {
        let read = |folder: &str| fs::read(bench.path(&format!("{folder}/{file}"))).unwrap();
        assert!(read("one") == read("many"), "{file}");
    }
    assert!(bench.path("many/report.html").is_file());
}

#[test]
fn parts_of_traffic_that_are_damaged_or_of_another_experiment_are_refused() {
    fn sweep<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["run", "sweep.toml", "--out", "r"], more].concat()
    }
    let bench = Bench::new();
    fs::write(bench.path("sweep.toml"), EXPERIMENT.replace("load = 0.3", "load = [0.1, 0.3]")).unwrap();
    assert!(bench.replay(&sweep(&["--part", "0/1"])).status.success());
    assert!(bench.fails(&sweep(&["--gather", "--set", "run.seed=7"])).contains("of another experiment"));
    assert!(bench.fails(&sweep(&["--part", "0/1", "--packets"])).contains("keep no packets"));
    assert!(bench.fails(&["run", "tree.toml", "--out", "s", "--part", "0/2"]).contains("is no sweep"));
    assert!(bench.fails(&["run", "sweep.toml", "--out", "empty", "--gather"]).contains("no task with --part"));
    let path = bench.path("r/parts/000001.json");
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once("\"min\":").unwrap();
    let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    fs::write(&path, format!("{before}\"min\":18446744073709551615{after}")).unwrap();
    let message = bench.fails(&sweep(&["--gather"]));
    assert!(message.contains("000001.json") && message.contains("contradict"), "{message}");
}

/// What a run says of its parts and threads.
#[test]
fn a_run_says_how_it_was_made_in_parts_and_what_crossed_between_them() {
    let bench = Bench::new();
    fs::write(
        bench.path("saf.toml"),
        "[traffic]\npattern = \"uniform\"\nload = 0.3\nsize = \"1000B\"\ncount = 20\nwarm_up = \"0ns\"\n\
         [fabric]\nkind = \"store-and-forward\"\nmtu = \"1000B\"\nheaders = \"0B\"\n\
         [fabric.topology]\nshape = \"k-ary-n-tree\"\nk = 4\nn = 2\n\
         host_link = { rate = \"8Gbps\", delay = \"50ns\" }\nuplink = { rate = \"8Gbps\", delay = \"20ns\" }\n",
    )
    .unwrap();
    let of = |name: &str, more: &[&str]| {
        let out = bench.path(name);
        bench.json(&[&["run", "saf.toml", "--json", "--out", out.to_str().unwrap()], more].concat())
    };
    let by_events = of("events", &["--engine", "events"]);
    assert_eq!(by_events["parallel"], Value::Null);
    let alone = of("alone", &["--engine", "windows", "--threads", "1"]);
    assert_eq!(alone["parallel"]["parts"], 1);
    assert_eq!(alone["parallel"]["remote_events"], 0);
    assert_eq!(alone["parallel"]["barrier_wait_s"], 0.0);
    // The shortest link: 1,000 B at 8 Gbit/s, and 20 ns.
    assert_eq!(alone["parallel"]["lookahead_ns"], 1020.0);
    let four = of("four", &["--engine", "windows", "--threads", "4"]);
    let parallel = &four["parallel"];
    assert_eq!((&parallel["parts"], &parallel["windows"]), (&Value::from(4), &alone["parallel"]["windows"]));
    // A quarter of the hosts and of each level's switches is a part. Of the packets 12 of 15 go over the top, by any of four switches there, of which
    // three are in another part, and so are three of the four edge switches below.
    let (remote, events) = (parallel["remote_events"].as_f64().unwrap(), four["events"].as_f64().unwrap());
    let over_the_top = 320.0 * 12.0 / 15.0;
    let crossings = over_the_top * (0.75 + 0.75);
    assert!((remote - crossings).abs() < 0.15 * crossings, "{remote} of {crossings}");
    assert!((parallel["remote_share"].as_f64().unwrap() - remote / events).abs() < 1e-12);
    assert!(four["event_rate"].as_f64().unwrap() > 0.0);
    // Nearest neighbours share their switch: nothing crosses.
    let near = ["--set", "traffic.pattern=nearest-neighbour", "--engine", "windows", "--threads", "4"];
    assert_eq!(of("near", &near)["parallel"]["remote_events"], 0);
    // By Time Warp it is the same that crosses, and one part alone takes nothing back.
    let warped = |name: &str, threads: &str, more: &[&str]| {
        let engine = ["--engine", "optimistic", "--threads", threads];
        of(name, &[&engine, more].concat())
    };
    let warped_alone = warped("warped-alone", "1", &[]);
    let optimistic = &warped_alone["parallel"]["optimistic"];
    assert_eq!((&optimistic["rolled_back"], &optimistic["efficiency"]), (&Value::from(0), &Value::from(1.0)));
    assert_eq!((&optimistic["gvt_interval"], &optimistic["batch"]), (&Value::from(32), &Value::from(8)));
    assert_eq!(
        (&optimistic["ahead_ns"], &warped_alone["parallel"]["remote_events"]),
        (&16_320.0.into(), &Value::from(0))
    );
    let warped_four = warped("warped", "4", &["--gvt-interval", "3", "--batch", "200", "--most-ahead", "1ms"]);
    let (parallel, optimistic) = (&warped_four["parallel"], &warped_four["parallel"]["optimistic"]);
    assert_eq!((&parallel["parts"], &parallel["remote_events"]), (&Value::from(4), &four["parallel"]["remote_events"]));
    assert_eq!((&optimistic["gvt_interval"], &optimistic["batch"]), (&Value::from(3), &Value::from(200)));
    let rolled_back = optimistic["rolled_back"].as_f64().unwrap();
    assert!((optimistic["efficiency"].as_f64().unwrap() - (1.0 - rolled_back / events)).abs() < 1e-12);
    assert_eq!((&four["parallel"]["optimistic"], &parallel["windows"]), (&Value::Null, &Value::from(0)));
    for other in [alone, four, warped_alone, warped_four] {
        assert_eq!(without_times(other), without_times(by_events.clone()));
    }
    let error = bench.fails(&["run", "saf.toml", "--out", "none", "--engine", "windows", "--batch", "9"]);
    assert!(error.contains("--batch") && error.contains("--engine optimistic"), "{error}");
    let error = bench.fails(&["run", "saf.toml", "--out", "none", "--engine", "optimistic", "--most-ahead", "0ns"]);
    assert!(error.contains("--most-ahead"), "{error}");
    let error = bench.fails(&["run", "saf.toml", "--out", "none", "--engine", "events", "--ranks", "2"]);
    assert!(error.contains("--ranks") && error.contains("windows"), "{error}");
    let mut command =
        bench.command(&["run", "saf.toml", "--out", "none", "--ranks", "2", "--mpirun", "/no/such/mpirun"]);
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    // Where the program was built, the command is what is missing.
    assert!(output.status.code() == Some(2) && error.contains("--ranks: "), "{error}");
    assert!(error.contains("netsim-rank") || error.contains("/no/such/mpirun"), "{error}");
}
