//! `replay coflow`: what it prints and writes, and how it fails.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A long coflow, then a short one over the same ports; a third elsewhere.
const THREE: &str = "4 3\nlong 0 1 0 1 1:100\nshort 0 1 0 1 1:20\nwide 100 2 2 3 2 2:30 3:10\n";

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

/// What a run prints that ends with `code`.
fn run(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = replay(folder, &[&["coflow"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(if code == 2 { output.stderr } else { output.stdout }).unwrap()
}

fn three() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("three.txt"), THREE).unwrap();
    folder
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(folder, 0, &[&["three.txt", "--json"], arguments].concat())).unwrap()
}

/// The mean completion time of each scheduler, ms.
fn means(answer: &Value) -> Vec<(String, u64)> {
    let of = |one: &Value| {
        let mean = one["cct_s"]["mean"].as_f64().unwrap();
        (one["scheduler"].as_str().unwrap().to_owned(), (mean * 1e3).round() as u64)
    };
    answer["schedulers"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn schedulers_differ_as_they_should() {
    let folder = three();
    let named = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, ms)| ((*name).to_owned(), *ms)).collect::<Vec<_>>();
    let schedulers = "fair,fifo,varys,sunflow,sunflow-fifo";
    // At 1 Gbit/s a MB takes 8 ms: 800 and 160 ms over the same ports, 240 elsewhere (of port 2 and 3 each 160 to send).
    let found = means(&json(folder.path(), &["-s", schedulers, "--delay", "0ns"]));
    let third = |sum: u64| (sum * 2 + 3) / 6;
    assert_eq!(
        found,
        named(&[
            ("fair", third(960 + 320 + 240)),
            ("fifo", third(800 + 960 + 240)),
            ("varys", third(960 + 160 + 240)),
            ("sunflow", third(960 + 160 + 240)),
            ("sunflow-fifo", third(800 + 960 + 240)),
        ])
    );
    let alone = json(folder.path(), &["-s", "varys", "--alone"]);
    assert_eq!(means(&alone), named(&[("varys", third(800 + 160 + 240))]));
    assert!(alone["schedulers"][0]["end_s"].is_null() && alone["schedulers"][0]["circuits"].is_null());
    let first = json(folder.path(), &["-s", "sunflow", "--first", "1", "--delay", "5ms", "--rate", "2Gbps"]);
    assert_eq!(means(&first), named(&[("sunflow", 405)]));
    assert_eq!(first["schedulers"][0]["circuits"], 1);
    let binary = json(folder.path(), &["-s", "fifo", "--first", "1", "--megabyte", "binary"]);
    assert_eq!(means(&binary), named(&[("fifo", 839)]));
}

/// A path of 1 Gbit/s for each pair of hosts, and no time on the way: flows of one pair share nothing.
const IDEAL: &str = "name = \"one-gigabit\"\n[fabric]\nkind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"1ms\"\n";

#[test]
fn a_fabric_carries_each_flow_when_its_coflow_arrives() {
    let folder = three();
    fs::write(folder.path().join("ideal.toml"), IDEAL).unwrap();
    fs::write(folder.path().join("ethernet.toml"), "name = \"ethernet\"\n[fabric]\nkind = \"ethernet\"\n").unwrap();
    let found = json(folder.path(), &["--fabric", "ideal.toml", "--fabric", "ethernet.toml", "-s", "varys"]);
    let schedulers = found["schedulers"].as_array().unwrap();
    let names: Vec<&str> = schedulers.iter().map(|one| one["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["varys", "one-gigabit", "ethernet"]);
    // The longest flow of each takes 800, 160 and 120 ms, and a millisecond on the way.
    assert_eq!(means(&found)[1].1, (801 + 161 + 121) / 3);
    assert!(schedulers[1]["over_packet_bound"].is_null() && !schedulers[0]["over_packet_bound"].is_null());
    assert!(means(&found)[2].1 > 0, "{found:#}");
    let only = json(folder.path(), &["--fabric", "ideal.toml", "--rack-size", "2"]);
    assert_eq!(only["schedulers"].as_array().unwrap().len(), 1);
}

#[test]
fn results_do_not_depend_on_threads_and_the_report_is_drawn_again() {
    let folder = three();
    let files = ["coflow.json", "coflows.parquet", "report.html", "cct.svg"];
    for threads in ["1", "2", "16"] {
        let printed = run(folder.path(), 0, &["three.txt", "--threads", threads, "--out", threads]);
        assert!(printed.starts_with("3 coflows of 6 flows over 4 ports, as they arrive\n"), "{printed}");
        for file in files {
            let read = |name: &str| fs::read(folder.path().join(name).join(file)).unwrap();
            assert_eq!(read(threads), read("1"), "{file} with {threads} threads");
        }
    }
    let page = fs::read_to_string(folder.path().join("1/report.html")).unwrap();
    assert!(page.contains("birkhoff") && page.contains("Share of coflows that are complete"));
    fs::remove_file(folder.path().join("1/report.html")).unwrap();
    assert!(replay(folder.path(), &["report", "1"]).status.success());
    assert_eq!(fs::read_to_string(folder.path().join("1/report.html")).unwrap(), page);
    let message = run(folder.path(), 2, &["three.txt", "--out", "1"]);
    assert!(message.contains("1: holds results; replace them with --force"), "{message}");
    run(folder.path(), 0, &["three.txt", "--out", "1", "--force"]);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = three();
    fs::write(folder.path().join("broken.txt"), "4 1\n1 0 1 7 1 1:1\n").unwrap();
    fs::write(folder.path().join("none.txt"), "4 0\n").unwrap();
    fs::write(folder.path().join("a.toml"), "name = \"varys\"\n[fabric]\nkind = \"ideal\"\n").unwrap();
    fs::write(folder.path().join("slow.toml"), IDEAL.replace("1Gbps", "1kbps")).unwrap();
    fs::write(folder.path().join("big.txt"), "4 1\n1 0 1 0 1 1:1e6\n").unwrap();
    for (arguments, parts) in [
        (&["nowhere.txt"][..], &["nowhere.txt", "No such file"][..]),
        (&["broken.txt"], &["broken.txt: line 2: `7` for a mapper's port: the switch has ports 0 to 3"]),
        (&["none.txt"], &["none.txt: there are no coflows in it"]),
        (&["/dev/zero"], &["/dev/zero: ", "only regular files are read"]),
        (&["three.txt", "--scheduler", "sunflo"], &["sunflo", "'sunflow'"]),
        (&["three.txt", "--rate", "1bps"], &["three.txt: a port would be busy for", "take a higher rate"]),
        (&["three.txt", "--rate", "unlimited"], &["ports need a rate"]),
        (&["three.txt", "--delay", "101s"], &["a reconfiguration delay of 101 s: at most 100 s"]),
        (&["three.txt", "--first", "0"], &["--first"]),
        (&["three.txt", "--epoch", "1s"], &["--tick"]),
        (&["three.txt", "--fabric", "a.toml", "--alone"], &["--alone"]),
        (
            &["three.txt", "--fabric", "a.toml", "--fabric", "a.toml"],
            &["a.toml: the name varys is there already: change `name`"],
        ),
        (&["three.txt", "--fabric", "gone.toml"], &["gone.toml"]),
        (&["big.txt", "--fabric", "slow.toml"], &["big.txt over slow.toml: coflow 1 is not complete after"]),
    ] {
        let said = run(folder.path(), 2, arguments);
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    }
}
