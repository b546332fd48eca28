//! Sweeps of a recorded job: each combination comes out as it does by itself, and all of them stand side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use trace_tables::write_trace;

use crate::at_terminal::{Ended, counted, interrupted};

const SWEEP: &str = r#"
    [workload]
    trace = "trace"
    cpu_factors = { map = [0.5, 2.0] }
    [fabric]
    kind = "ideal"
    rate = ["20Mbps", "1Gbps", "100Mbps"]
"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(experiment: &str) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        write_trace(&bench.path("trace"), &crate::common::map_reduce(&["m1", "w1", "w2"], 4, 2)).unwrap();
        fs::write(bench.path("sweep.toml"), experiment).unwrap();
        bench
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn replay(&self, code: i32, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_replay");
        let output = Command::new(program).args(arguments).current_dir(self.folder.path()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && !message.contains("panicked"), "{arguments:?}: {message}");
        output
    }

    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        serde_json::from_slice(&self.replay(code, arguments).stdout).unwrap()
    }
}

/// What the comment of `sweeps/circuit-set-up.toml` says, but for the longest of its sweeps.
#[test]
fn a_sweep_says_from_which_set_up_on_circuits_pay() {
    let bench = Bench::new("");
    let run = |job: &str, more: &[&str]| {
        let arguments = ["run", "sweeps/circuit-set-up", "--generate", job, "--out", "results", "--force"];
        let message = bench.replay(0, &[&arguments[..], more].concat());
        (String::from_utf8_lossy(&message.stdout).into_owned(), bench.text("results/report.html"))
    };
    let (message, page) = run("sixteen-racks", &["--set", "fabric.ocs_first_message_delay=[753ms,100ms,1ms,1us]"]);
    let sentence = "Circuits (decision = ocs) pay for this job from a set-up of 1ms down: there it takes";
    assert!(message.contains(sentence) && page.contains(sentence), "{message}");
    let times = ["--set", "fabric.ocs_first_message_delay=[753ms,100ms,1us]"];
    let (message, _) = run("terasort", &[&times[..], &["--set", "fabric.wavelengths=[1,4]"]].concat());
    assert!(
        message
            .contains("With wavelengths = 1: circuits (decision = ocs) pay for this job from a set-up of 753ms down"),
        "{message}"
    );
    assert!(
        message.contains(
            "With wavelengths = 4: circuits (decision = ocs) pay for this job at no set-up time that was tried"
        ),
        "{message}"
    );
}

/// What the comment of `sweeps/wavelengths-and-buffers.toml` says.
#[test]
fn wavelengths_gain_and_so_do_buffers_up_to_16_places() {
    let bench = Bench::new("");
    let sweep = bench
        .json(0, &["run", "sweeps/wavelengths-and-buffers", "--generate", "terasort", "--out", "results", "--json"]);
    let time = |wavelengths: u64, places: u64| {
        let values = |point: &Value| {
            let of = |key: &str| point["values"][key].as_u64().unwrap();
            (of("fabric.wavelengths"), of("fabric.tor_max_messages"))
        };
        let mut points = sweep["points"].as_array().unwrap().iter();
        points.find(|point| values(point) == (wavelengths, places)).unwrap()["job_time_s"].as_f64().unwrap()
    };
    for places in [1, 16, 64] {
        let times = [1, 2, 4].map(|wavelengths| time(wavelengths, places));
        assert!(times[0] > times[1] + 0.5 && times[1] > times[2] + 0.5, "{places}: {times:?}");
    }
    for wavelengths in [1, 2, 4] {
        let [one, some, many] = [1, 16, 64].map(|places| time(wavelengths, places));
        assert!(one > some + 0.2 && one < some + 2.3 && (many / some - 1.0).abs() < 0.01, "{one} {some} {many}");
    }
}

#[test]
fn a_sweep_says_from_which_value_on_it_is_sooner_done_than_another_network() {
    let bench = Bench::new(SWEEP);
    fs::write(bench.path("other.toml"), "[fabric]\nkind = \"ideal\"\nrate = \"50Mbps\"").unwrap();
    let arguments =
        ["run", "sweep.toml", "--out", "results", "--against", "other.toml", "--set", "workload.cpu_factors.map=1.0"];
    let output = bench.replay(0, &arguments);
    let message = String::from_utf8_lossy(&output.stdout);
    let other = bench.json(0, &["run", "other.toml", "--trace", "trace", "--out", "other", "--json"]);
    let summary: Value = serde_json::from_str(&bench.text("results/summary.json")).unwrap();
    assert_eq!(summary["reference"]["job_time_s"], other["job_time_s"]);
    let page = bench.text("results/report.html");
    for text in ["ooner done from rate = 100Mbps up", "over other"] {
        assert!(message.contains(text) && page.contains(text), "{message}");
    }
    // A key of the sweep's network does not change the other one, and a single run has nothing to say.
    let faster =
        bench.json(0, &[&arguments[..], &["--force", "--json", "--set", "fabric.rate=[1Gbps,2Gbps]"]].concat());
    assert_eq!(faster["reference"]["job_time_s"], other["job_time_s"]);
    let output = bench.replay(2, &["run", "other.toml", "--trace", "trace", "--out", "one", "--against", "sweep.toml"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no sweep"));
}

#[test]
fn each_combination_comes_out_as_by_itself() {
    let bench = Bench::new(SWEEP);
    let sweep = bench.json(0, &["run", "sweep.toml", "--out", "results", "--json"]);
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    for point in points {
        let values = point["values"].as_object().unwrap();
        let mut arguments = vec!["run".to_owned(), "sweep.toml".to_owned(), "--out".to_owned(), "single".to_owned()];
        arguments.extend(["--json".to_owned(), "--force".to_owned()]);
        for (path, value) in values {
            arguments.extend(["--set".to_owned(), format!("{path}={}", value.to_string().trim_matches('"'))]);
        }
        let single = bench.json(0, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        for (key, value) in single.as_object().unwrap().iter().filter(|(key, _)| *key != "wall_s") {
            assert_eq!(&point[key], value, "{key} of {values:?}");
        }
    }
    let time = |rate: &str, factor: f64| {
        let of = |point: &&Value| {
            point["values"]["fabric.rate"] == rate && point["values"]["workload.cpu_factors.map"] == factor
        };
        points.iter().find(of).unwrap()["job_time_s"].as_f64().unwrap()
    };
    assert!(time("20Mbps", 0.5) > time("1Gbps", 0.5) && time("1Gbps", 2.0) > time("1Gbps", 0.5));
}

#[test]
fn the_folder_holds_a_table_curves_and_a_report() {
    let bench = Bench::new(SWEEP);
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--threads", "1"]);
    let csv = bench.text("results/sweep.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..4], ["fabric.rate", "workload.cpu_factors.map", "job_time_s", "recorded_job_time_s"]);
    assert_eq!((rows.len(), &rows[1][..2], &rows[6][..2]), (7, &["20Mbps", "0.5"][..], &["100Mbps", "2.0"][..]));
    assert!(bench.path("results/sweep.parquet").exists());
    // A line for each factor and one for the recording; the values stand by their size, not by their order in the file.
    let curve = bench.text("results/job_time.svg");
    assert_eq!(curve.matches("<polyline").count(), 3);
    let at = |rate: &str| {
        let before = curve.split(&format!(">{rate}</text>")).next().unwrap().rsplit("x=\"").next().unwrap();
        before.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(at("20Mbps") < at("100Mbps") && at("100Mbps") < at("1Gbps"));
    let page = bench.text("results/report.html");
    for message in ["Recorded, the job took", "rate = 20Mbps, map = 2.0", "Job time (s)", "cpu_factors"] {
        assert!(page.contains(message), "{message}");
    }
    bench.replay(0, &["report", "results", "--out", "again.html"]);
    assert_eq!(bench.text("again.html"), page);
    // The effective experiment is the sweep, wherever it is run from.
    let again = bench.json(0, &["run", "results/effective.toml", "--out", "again", "--json"]);
    assert_eq!(again["points"].as_array().unwrap().len(), 6);
    assert_eq!(without_wall(&bench.text("again/sweep.csv")), without_wall(&csv));
}

#[test]
fn bars_are_grouped_by_a_key_that_is_chosen_or_a_packet_size() {
    let bench = Bench::new(SWEEP);
    bench.replay(0, &["run", "sweep.toml", "--out", "plain"]);
    assert!(!bench.path("plain/job_time-grouped.svg").exists());
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--group-by", "fabric.rate"]);
    let bars = bench.text("results/job_time-grouped.svg");
    // Three groups of two, two entries of the legend, the paper.
    assert_eq!(bars.matches("<rect").count(), 3 * 2 + 2 + 1, "{bars}");
    for words in [">20Mbps</text>", ">map = 0.5</text>", "map = 2.0: "] {
        assert!(bars.contains(words), "{words} in {bars}");
    }
    let page = bench.text("results/report.html");
    bench.replay(0, &["report", "results", "--out", "again.html"]);
    assert_eq!(bench.text("again.html"), page);
    // A packet size needs no choice.
    let ethernet = SWEEP.split("[fabric]").next().unwrap().to_owned() + "[fabric]\nkind = \"ethernet\"\n";
    fs::write(bench.path("ethernet.toml"), ethernet).unwrap();
    bench.replay(0, &["run", "ethernet.toml", "--out", "sizes", "--set", "fabric.mtu=[1500B,9000B]"]);
    let bars = bench.text("sizes/shuffle-grouped.svg");
    assert!(bars.contains(">1500B</text>") && bars.contains(">9000B</text>") && bars.contains("fabric.mtu"), "{bars}");
    // What is replaced goes, too.
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--force"]);
    assert!(!bench.path("results/job_time-grouped.svg").exists());
    let wrong = bench.replay(2, &["run", "sweep.toml", "--out", "wrong", "--group-by", "fabric.rat"]);
    let error = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        error.contains("--group-by fabric.rat: ") && error.contains("fabric.rate, workload.cpu_factors.map"),
        "{error}"
    );
}

/// A table less the times of this machine.
fn without_wall(csv: &str) -> Vec<Vec<String>> {
    let wall = csv.lines().next().unwrap().split(',').position(|name| name == "wall_s").unwrap();
    let row = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(number, _)| *number != wall);
        cells.map(|(_, cell)| cell.to_owned()).collect()
    };
    csv.lines().map(row).collect()
}

#[test]
fn seeds_and_jobs_are_keys_as_others_and_a_combination_without_result_is_told() {
    let bench = Bench::new("[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"ideal\"\n[run]\nseed = [1, 2]\n");
    let seeds = bench.json(0, &["run", "sweep.toml", "--out", "seeds", "--json"]);
    assert_eq!(seeds["axes"][0]["path"], "run.seed");
    assert_eq!(seeds["points"][1]["seed"], 2);
    let setting = ["--set", "run.seed=1", "--set", "workload.job=[job_1_0001, nobody]"];
    let jobs = bench.json(1, &[&["run", "sweep.toml", "--out", "jobs", "--json"][..], &setting].concat());
    assert_eq!(jobs["points"].as_array().unwrap().len(), 1);
    assert!(jobs["failed"]["job = nobody"].as_str().unwrap().contains("no job \"nobody\""), "{jobs:#}");
}

#[test]
fn an_interrupted_sweep_leaves_what_is_done() {
    let bench = Bench::new(SWEEP);
    // So large that the whole sweep takes a minute.
    write_trace(&bench.path("trace"), &crate::common::map_reduce(&["m1", "w1", "w2"], 200, 60)).unwrap();
    let factors: Vec<String> = (1..=2_000).map(|number| format!("{}", f64::from(number) / 1_000.0)).collect();
    let text = SWEEP.replace("[0.5, 2.0]", &format!("[{}]", factors.join(", ")));
    fs::write(bench.path("long.toml"), text.replace("[\"20Mbps\", \"1Gbps\", \"100Mbps\"]", "\"1Gbps\"")).unwrap();
    let arguments = ["run", "long.toml", "--out", "r", "--json", "--threads", "1"];
    let Ended { code, shown, printed } =
        interrupted(bench.folder.path(), &arguments, |shown| counted(shown, " of 2000 runs") > 0.0);
    assert!(code == Some(1) && shown.contains("stopped"), "{shown}");
    let done = printed["points"].as_array().unwrap().len();
    assert!(printed["interim"] == true && (1..2_000).contains(&done), "{done}");
    assert_eq!(bench.text("r/sweep.csv").lines().count(), done + 1);
    assert_eq!(serde_json::from_str::<Value>(&bench.text("r/summary.json")).unwrap(), printed);
    assert!(bench.path("r/sweep.parquet").exists());
    assert!(bench.text("r/report.html").contains("interim results"));
}

#[test]
fn tasks_that_share_a_sweep_leave_what_one_process_does() {
    let bench = Bench::new(SWEEP);
    bench.replay(0, &["run", "sweep.toml", "--out", "one"]);
    let part = |part: &str| bench.json(0, &["run", "sweep.toml", "--out", "many", "--part", part, "--json"]);
    assert_eq!(part("1/4")["replayed"], 2);
    // What is missing is said, and what is there shown.
    let gathered = bench.json(1, &["run", "sweep.toml", "--out", "many", "--gather", "--json"]);
    assert_eq!((gathered["points"].as_array().unwrap().len(), &gathered["interim"]), (2, &Value::Bool(true)));
    for (number, replayed) in [("0/4", 2), ("2/4", 1), ("3/4", 1), ("1/4", 0)] {
        let done = part(number);
        assert_eq!(done["replayed"], replayed, "{number}");
        assert_eq!(done["there_before"].as_u64().unwrap() + replayed, done["combinations"].as_u64().unwrap());
    }
    bench.replay(0, &["run", "sweep.toml", "--out", "many", "--gather"]);
    let table = |folder: &str| {
        let text = bench.text(&format!("{folder}/sweep.csv"));
        let wall = text.lines().next().unwrap().split(',').position(|name| name == "wall_s");
        let rows = text.lines().map(|line| {
            let cells = line.split(',').enumerate().filter(|(column, _)| Some(*column) != wall);
            cells.map(|(_, cell)| cell.to_owned()).collect::<Vec<_>>()
        });
        rows.collect::<Vec<_>>()
    };
    assert_eq!(table("one"), table("many"));
    assert!(bench.path("many/report.html").is_file());
}

#[test]
fn a_task_that_was_killed_is_taken_up_where_it_was() {
    let bench = Bench::new(SWEEP);
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--part", "0/1"]);
    let parts: Vec<PathBuf> =
        fs::read_dir(bench.path("results/parts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(parts.len(), 6);
    fs::remove_file(bench.path("results/parts/000002.json")).unwrap();
    // What a killed task left half written has another name.
    fs::write(bench.path("results/parts/000002.json.4711"), "{\"exper").unwrap();
    let done = bench.json(0, &["run", "sweep.toml", "--out", "results", "--part", "0/1", "--json"]);
    assert_eq!((&done["replayed"], &done["there_before"]), (&1.into(), &5.into()));
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--gather"]);
}

#[test]
fn parts_of_another_experiment_are_refused() {
    let bench = Bench::new(SWEEP);
    bench.replay(0, &["run", "sweep.toml", "--out", "results", "--part", "0/2"]);
    let says = |output: Output, words: &str| {
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(words), "{error}");
    };
    let seed = ["run", "sweep.toml", "--out", "results", "--set", "run.seed=7"];
    says(bench.replay(2, &[&seed[..], &["--part", "0/2"]].concat()), "of another experiment");
    says(bench.replay(2, &[&seed[..], &["--gather"]].concat()), "results/parts");
    fs::write(bench.path("results/parts/000000.json"), "{}").unwrap();
    says(bench.replay(2, &["run", "sweep.toml", "--out", "results", "--gather"]), "000000.json");
    says(bench.replay(2, &["run", "sweep.toml", "--out", "empty", "--gather"]), "--part");
    for wrong in ["4/4", "1", "a/b", "0/0", "-1/2"] {
        says(bench.replay(2, &["run", "sweep.toml", "--out", "results", &format!("--part={wrong}")]), "K/N");
    }
    let single = Bench::new("[workload]\ntrace = \"trace\"\n[fabric]\nkind = \"ideal\"\n");
    says(single.replay(2, &["run", "sweep.toml", "--out", "results", "--part", "0/2"]), "is no sweep");
}
