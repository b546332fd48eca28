//! `replay program`: what it prints and writes, and how it fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A rank asks, another thinks for 4 us and answers.
const QUESTION: &str = "num_ranks 2
rank 0 {
q: send 1000b to 1 tag 1
a: recv 500b from 1 tag 2
a requires q
}
rank 1 {
q: recv 1000b from 0 tag 1
t: calc 4000
t requires q
a: send 500b to 0 tag 2
a requires t
}
";

/// A byte takes 1 ns, and each way 1 us more.
const LINEAR: &str = "name = \"linear\"\n[fabric]\nkind = \"ideal\"\nrate = \"8Gbps\"\nlatency = \"1us\"\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("question.goal"), QUESTION).unwrap();
    fs::write(folder.path().join("flows.txt"), "0 1 1000 0\n0 1 2000 0\n1 0 500 700").unwrap();
    fs::write(folder.path().join("linear.toml"), LINEAR).unwrap();
    folder
}

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

/// What a run prints that ends with `code`.
fn run(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = replay(folder, &[&["program"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(if code == 2 { output.stderr } else { output.stdout }).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(folder, 0, &[arguments, &["--json"]].concat())).unwrap()
}

/// What the first fabric took, ns.
fn time_ns(answer: &Value) -> u64 {
    (answer["fabrics"][0]["time_s"].as_f64().unwrap() * 1e9).round() as u64
}

#[test]
fn a_schedule_takes_its_ways_its_calculations_and_overheads() {
    let folder = folder();
    let of = |more: &[&str]| json(folder.path(), &[&["question.goal", "--fabric", "linear.toml"], more].concat());
    let found = of(&[]);
    assert_eq!(time_ns(&found), 2_000 + 4_000 + 1_500);
    let counts = ["ranks", "operations", "messages", "bytes"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(counts, [2, 5, 2, 1_500]);
    assert_eq!(found["fabrics"][0]["message_median_s"], 1.5e-6);
    assert_eq!(time_ns(&of(&["--compute-factor", "0.5"])), 5_500);
    assert_eq!(time_ns(&of(&["--overhead", "100ns"])), 7_500 + 4 * 100);
    assert_eq!(time_ns(&of(&["--set", "fabric.latency=0ns"])), 5_500);
    // Both on one host: what they say does not cross the network, where that has a time for it.
    fs::write(folder.path().join("map"), "0 1\n1 1\n").unwrap();
    let local = of(&["--task-mapping", "map"]);
    assert!(time_ns(&local) <= 7_500, "{local:#}");
}

#[test]
fn hosts_without_a_rank_send_beside() {
    let folder = folder();
    let on_nodes = ["question.goal", "--fabric", "fat-tree", "--nodes", "16"];
    let of = |more: &[&str]| json(folder.path(), &[&on_nodes, more].concat());
    let (alone, beside) = (of(&[]), of(&["--background", "1us:1KiB"]));
    assert_eq!(beside["messages"], 2, "messages are the program's");
    // A fat-tree has room: those of other racks are in nobody's way.
    assert!(time_ns(&beside) >= time_ns(&alone), "{beside:#}");
    for (arguments, needles) in [
        (&["--background", "1us"][..], ["20us:1KiB", "--background"]),
        (&["--background", "0us:1KiB"], ["above 0", "--background"]),
        (&["--background-seed", "3"], ["--background <TIME:SIZE>", "required"]),
    ] {
        let error = run(folder.path(), 2, &[&["question.goal", "--fabric", "linear.toml"], arguments].concat());
        assert!(needles.iter().all(|needle| error.contains(needle)), "{error}");
    }
    let error = run(folder.path(), 2, &["question.goal", "--fabric", "linear.toml", "--background", "1us:1KiB"]);
    assert!(error.contains("of 2 hosts 0 have no rank"), "{error}");
}

#[test]
fn flows_begin_at_their_times_and_have_connections_of_their_own() {
    let folder = folder();
    let found = json(folder.path(), &["flows.txt", "--fabric", "linear.toml", "--fabric", "ethernet-10g"]);
    assert_eq!(time_ns(&found), 3_000);
    assert_eq!(found["fabrics"][0]["message_max_s"], 3e-6);
    // At 10 Gbit/s both flows of the first host need 2.4 us on its link, and their headers.
    let ethernet = &found["fabrics"][1];
    assert!(ethernet["fabric"] == "ethernet-10g" && ethernet["time_s"].as_f64().unwrap() > 2.4e-6, "{found:#}");
}

#[test]
fn every_kind_of_fabric_carries_a_program() {
    let folder = folder();
    let fabrics = ["ideal", "ethernet-10g", "infiniband", "fat-tree", "lightness-ops", "lightness-ocs"];
    let arguments: Vec<&str> = fabrics.iter().flat_map(|fabric| ["--fabric", fabric]).collect();
    for file in ["question.goal", "flows.txt"] {
        let found = json(folder.path(), &[&[file][..], &arguments].concat());
        let names: Vec<&str> =
            found["fabrics"].as_array().unwrap().iter().map(|one| one["fabric"].as_str().unwrap()).collect();
        assert_eq!(names, fabrics);
        for one in found["fabrics"].as_array().unwrap() {
            assert!(one["time_s"].as_f64() >= found["fabrics"][0]["time_s"].as_f64(), "{found:#}");
        }
    }
}

#[test]
fn kernels_run_are_printed_and_placed() {
    let folder = folder();
    let kernel = ["--kernel", "butterfly", "--ranks", "8", "--size", "500B"];
    let linear = ["--fabric", "linear.toml"];
    let found = json(folder.path(), &[&kernel[..], &linear].concat());
    assert_eq!(
        (time_ns(&found), found["program"].as_str(), found["messages"].as_u64()),
        (4_500, Some("kernel butterfly"), Some(24))
    );
    // Printed in each form, it is what it was.
    for form in ["goal", "trc", "dimemas"] {
        let text = run(folder.path(), 0, &[&kernel[..], &["--print", form]].concat());
        fs::write(folder.path().join(form), text).unwrap();
        let read = json(folder.path(), &[&[form][..], &linear].concat());
        assert_eq!((time_ns(&read), read["messages"].as_u64()), (4_500, Some(24)), "{form}");
    }
    let trc = fs::read_to_string(folder.path().join("trc")).unwrap();
    assert!(trc.starts_with("s 0 1 0 500\nr 1 0 0 500\ns 0 2 1 500\n"), "{trc}");
    let instances = ["--instances", "2", "--nodes", "64", "--placement"];
    for placement in ["consecutive", "shift:60", "shuffle:4", "column:8x8", "quadrant:8x8", "random:5"] {
        let found = json(folder.path(), &[&kernel[..], &linear, &instances, &[placement]].concat());
        assert_eq!((time_ns(&found), found["ranks"].as_u64()), (4_500, Some(16)), "{placement}");
    }
    for (arguments, part) in [
        (&["--kernel", "mesh2", "--ranks", "12"][..], "12 ranks are no grid of 2 equal sides: give --sides, as 8x4"),
        (&["--kernel", "mesh2", "--sides", "2x2x3"], "--sides: this kernel has 2 dimensions"),
        (&["--kernel", "mesh2", "--sides", "2x0"], "\"2x0\" is no grid"),
        (&["--kernel", "butterfly", "--ranks", "6"], "this kernel needs a power of 2"),
        (&["--kernel", "nbody"], "nbodies"),
        (&["question.goal", "--kernel", "gups"], "cannot be used with"),
        (&["question.goal", "--placement", "column:4"], "column has a grid of 2 sides"),
        (&["question.goal", "--placement", "somewhere"], "there are consecutive, shift:N"),
        (&["question.goal", "--nodes", "3", "--placement", "shuffle:2"], "3 hosts are no multiple of 2 to a switch"),
    ] {
        let said = run(folder.path(), 2, &[arguments, &linear].concat());
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let goal = run(folder.path(), 2, &["question.goal", "--print", "trc"]);
    assert!(goal.contains("only kernels, trc, alog and Dimemas' traces can be printed in another form"), "{goal}");
}

/// The torus of docs/programs.md, and the cycles that INSEE's own program took there.
#[test]
fn kernels_take_as_long_as_in_insee() {
    let page = include_str!("../../../docs/programs.md");
    let (_, torus) = page.split_once("```toml\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("insee.toml"), torus.split_once("```").unwrap().0).unwrap();
    for (kernel, size, cycles, within) in [
        ("onetoall", "1024B", 16_132.0, 0.005),
        ("torus2", "1024B", 4_106.0, 0.005),
        ("nbodies", "1024B", 8_887.0, 0.005),
        ("mesh2", "1024B", 1_027.0, 0.005),
        ("waterfall", "64B", 640.0, 0.03),
        ("alltoone", "1024B", 4_451.0, 0.03),
    ] {
        let found = json(folder.path(), &["--kernel", kernel, "--size", size, "--fabric", "insee.toml"]);
        let ours = found["fabrics"][0]["time_s"].as_f64().unwrap() / 8e-9;
        assert!((ours / cycles - 1.0).abs() < within, "{kernel}: {ours}");
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = folder();
    let files = ["program.json", "program_messages.parquet", "program_ranks.parquet"];
    for threads in ["1", "2", "16"] {
        let printed = run(
            folder.path(),
            0,
            &[
                "question.goal",
                "--fabric",
                "linear.toml",
                "--fabric",
                "infiniband",
                "--threads",
                threads,
                "--out",
                threads,
            ],
        );
        assert!(printed.starts_with("2 ranks, 5 operations, 2 messages of 1500 bytes\n"), "{printed}");
        for file in files {
            let read = |name: &str| fs::read(folder.path().join(name).join(file)).unwrap();
            assert_eq!(read(threads), read("1"), "{file} with {threads} threads");
        }
    }
    let said = run(folder.path(), 2, &["question.goal", "--fabric", "linear.toml", "--out", "1"]);
    assert!(said.contains("1: holds results; replace them with --force"), "{said}");
    run(folder.path(), 0, &["question.goal", "--fabric", "linear.toml", "--out", "1", "--force"]);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("broken.goal", "num_ranks 1\nrank 0 {\nx: think 5\n}\n");
    write("stuck.goal", "num_ranks 2\nrank 0 {\nr: recv 4b from 1 tag 7\n}\nrank 1 {\n}\n");
    write("flow.txt", "0 1 10\n");
    write("map", "0 9\n");
    let linear = ["--fabric", "linear.toml"];
    for (arguments, parts) in [
        (&["nowhere.goal"][..], &["nowhere.goal", "No such file"][..]),
        (&["broken.goal"], &["broken.goal: line 3: \"think 5\" is no operation"]),
        (&["stuck.goal"], &["stuck.goal over linear.toml: rank 0 waits for ever for a message from rank 1 with tag 7"]),
        (&["flow.txt"], &["flow.txt: line 1: \"0 1 10\" is no flow: write SOURCE DESTINATION BYTES START_NS"]),
        (&["/dev/zero"], &["/dev/zero: ", "only regular files are read"]),
        (&["question.goal", "--task-mapping", "map"], &["map"]),
        (&["question.goal", "--nodes", "4294967295"], &["4294967295 nodes: from 1 to 16777216 are possible"]),
        (&["question.goal", "--nodes", "1"], &["2 ranks do not fit on 1 hosts (--nodes says how many there are)"]),
        (&["question.goal", "--compute-factor=-1"], &["--compute-factor", "from 0 to 1,000,000"]),
        (&["question.goal", "--fabric", "linear.toml"], &["linear.toml: the name linear is there already"]),
        (&["question.goal", "--fabric", "ethernet-100g"], &["ethernet-100g", "ethernet-10g"]),
    ] {
        let said = run(folder.path(), 2, &[arguments, &linear].concat());
        for part in parts {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
    let none = run(folder.path(), 2, &["question.goal"]);
    assert!(none.contains("--fabric"), "{none}");
}
