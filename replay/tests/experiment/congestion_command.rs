//! `replay congestion`: what it prints and writes, and how it fails.

use replay::results::remove_results;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use trace::rows::MessageKind;

/// What a run prints that ends with `code`.
fn run(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_replay"))
        .arg("congestion")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8(if code == 2 { output.stderr } else { output.stdout }).unwrap()
}

const TREE: [&str; 6] = ["--shape", "k-ary-n-tree", "--set", "k=4", "--set", "n=2"];
const SWITCH: [&str; 4] = ["--shape", "single-switch", "--nodes", "4"];

fn tree(code: i32, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), code, &[&TREE, arguments].concat())
}

fn switch(code: i32, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), code, &[&SWITCH, arguments].concat())
}

#[test]
fn each_metric_has_its_text() {
    assert_eq!(switch(0, &["-p", "gather"]), "weight 3: 3 of the 3 connections\nBW: 0.333333\n");
    assert_eq!(switch(0, &["-p", "null"]), "BW: –\n");
    assert_eq!(
        switch(0, &["-p", "tree", "--metric", "sum_max_cong", "--runs", "5"]),
        "2: 5 runs\nmean 2.000000 ± 0.000000 (99%), deviation 0.000000, from 2.000000 to 2.000000\n"
    );
    let delay = switch(0, &["-p", "ring", "--metric", "dep_max_delay"]);
    assert!(delay.starts_with("4: 1 runs\nmean 4.0"), "{delay}");
    let bands = switch(0, &["-p", "bisect", "--metric", "hist_acc_band", "--runs", "7"]);
    assert_eq!(bands.lines().count(), 21);
    assert!(bands.contains("0.0000 to 0.0505: 0 runs\n") && bands.contains("0.9595 to 1.0100: 7 runs\n"), "{bands}");
    assert_eq!(switch(0, &["-p", "null", "--metric", "dep_max_delay"]).lines().next(), Some("0: 1 runs"));
    assert!(switch(0, &["-p", "null", "--metric", "hist_acc_band"]).ends_with("no run has messages\n"));
    let evenness = tree(0, &["--metric", "routequal"]);
    assert_eq!(
        evenness,
        "links between switches: 32\npaths over each: 12.000000 in the mean, deviation 0.000000, 12 at most\n"
    );
    let alone = switch(0, &["--metric", "routequal"]);
    assert_eq!(
        alone,
        "links between switches: 0\npaths over each: 0.000000 in the mean, deviation 0.000000, 0 at most\n"
    );
    let graph = switch(0, &["-p", "gather", "--no-shuffle", "--metric", "get_cable_cong"]);
    assert!(graph.starts_with("digraph congestion {\n") && graph.ends_with("}\n"), "{graph}");
    assert!(graph.contains("\"switch\" -> \"h0\" [label=\"1.000000\", color=\"0.000000 0.9 0.9\"];"), "{graph}");
    assert!(graph.contains("\"h0\" -> \"switch\" [label=\"0.000000\", color=\"0.400000 0.9 0.9\"];"), "{graph}");
}

#[test]
fn the_patterns_and_hosts_of_the_first_run_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hosts"), "h2\n\n h0 \nh3\n").unwrap();
    let with = |arguments: &[&str]| run(folder.path(), 0, &[&SWITCH, arguments].concat());
    assert_eq!(with(&["--subset", "hosts", "--no-shuffle", "--print-hosts"]), "h2\nh0\nh3\n");
    let tree = with(&["--subset", "hosts", "--no-shuffle", "--print-pattern", "-p", "tree"]);
    assert_eq!(tree, "0: h2 -> h0\n1: h2 -> h3\n");
    let level = with(&["--subset", "first", "--no-shuffle", "--print-pattern", "-p", "tree", "--level", "1"]);
    assert_eq!(level, "1: h0 -> h2\n1: h1 -> h3\n");
    let beside = ["-p", "ring", "--part", "2", "--against", "bisect", "--no-shuffle", "--print-pattern"];
    assert_eq!(with(&beside), "0: h0 -> h1\n0: h3 -> h2\n1: h1 -> h0\n1: h3 -> h2\n");
    let drawn = with(&["--subset", "rand", "--hosts", "2", "--print-hosts", "--seed", "5"]);
    assert_eq!(drawn.lines().count(), 2);
    assert_eq!(drawn, with(&["--subset", "rand", "--hosts", "2", "--print-hosts", "--seed", "5", "--threads", "3"]));
}

#[test]
fn json_has_all_metrics_on_any_number_of_threads() {
    let arguments = ["-p", "bruck", "--runs", "50", "--json", "--threads"];
    let one = tree(0, &[&arguments[..], &["1"]].concat());
    assert_eq!(one, tree(0, &[&arguments[..], &["7"]].concat()));
    let found: Value = serde_json::from_str(&one).unwrap();
    assert_eq!((&found["topology"], &found["runs"]), (&"k-ary-n-tree".into(), &50.into()));
    let found = &found["cases"][0];
    assert_eq!((&found["pattern"], &found["routing"]), (&"bruck".into(), &"d-mod-k".into()));
    assert_eq!((&found["hosts"], &found["pairs"]), (&16.into(), &(16 * 4 * 50).into()));
    let messages: u64 = found["congestion"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(messages, 16 * 4 * 50);
    for key in ["bandwidth_of_runs", "sum_max_cong", "dep_max_delay"] {
        let [min, mean, max] = ["min", "mean", "max"].map(|figure| found[key][figure].as_f64().unwrap());
        assert!(min <= mean && mean <= max && found[key]["runs"] == 50, "{key}: {found}");
    }
    let evenness: Value = serde_json::from_str(&tree(0, &["--metric", "routequal", "--json"])).unwrap();
    let evenness = &evenness["d-mod-k"];
    assert_eq!((&evenness["links"], &evenness["most"]), (&32.into(), &12.into()));
}

#[test]
fn a_folder_gets_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let printed = run(folder.path(), 0, &[&TREE[..], &["-p", "rand", "--out", "a/b", "--json"]].concat());
    assert_eq!(fs::read_to_string(folder.path().join("a/b/congestion.json")).unwrap(), printed.trim_end());
    let graph = fs::read_to_string(folder.path().join("a/b/congestion.dot")).unwrap();
    // 16 cables of hosts and 16 between switches, two directions each.
    assert_eq!(graph.matches("color=").count(), 64);
}

#[test]
fn results_give_way_only_when_they_are_meant_to() {
    let folder = tempfile::tempdir().unwrap();
    for (metric, file) in [("hist_max_cong", "congestion.json"), ("routequal", "routequal.json")] {
        let into = [&TREE[..], &["-p", "rand", "--metric", metric, "--out", metric]].concat();
        run(folder.path(), 0, &into);
        let text = run(folder.path(), 2, &into);
        assert!(text.contains(&format!("{metric}: holds results; replace them with --force")), "{text}");
        run(folder.path(), 0, &[&into[..], &["--force"]].concat());
        assert!(folder.path().join(metric).join(file).is_file());
    }
}

#[test]
fn several_patterns_routings_and_numbers_of_hosts_make_one_table_and_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let several = [
        "-p",
        "bisect",
        "-p",
        "tree",
        "--routing",
        "d-mod-k",
        "--routing",
        "ecmp",
        "--hosts",
        "4,8,16",
        "--runs",
        "30",
    ];
    let table = run(path, 0, &[&TREE[..], &several, &["--out", "all"]].concat());
    for routing in ["d-mod-k", "ecmp"] {
        for pattern in ["bisect", "tree"] {
            for hosts in [4, 8, 16] {
                let hosts = hosts.to_string();
                let row = |line: &&str| {
                    let cells: Vec<&str> = line.split_whitespace().take(4).collect();
                    cells == [routing, pattern, "–", &hosts]
                };
                assert_eq!(table.lines().filter(row).count(), 1, "{routing} {pattern} {hosts}: {table}");
            }
        }
    }
    let read = |name: &str| fs::read_to_string(path.join("all").join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("congestion.json")).unwrap();
    assert_eq!(found["cases"].as_array().unwrap().len(), 12);
    // A row of figures is what its case is alone.
    let alone: Value = serde_json::from_str(&run(
        path,
        0,
        &[&TREE[..], &["-p", "tree", "--routing", "ecmp", "--hosts", "8", "--runs", "30", "--json"]].concat(),
    ))
    .unwrap();
    assert!(found["cases"].as_array().unwrap().contains(&alone["cases"][0]));
    let page = read("report.html");
    assert!(page.contains("ecmp, tree, 8 hosts") && page.contains("Mean bandwidth over hosts"));
    for picture in ["congestion.svg", "bandwidth.svg", "sum_max.svg", "delay.svg", "hosts.svg"] {
        assert!(read(picture).contains("xmlns=\"http://www.w3.org/2000/svg\""), "{picture}");
    }
    for table in ["congestion.parquet", "histograms.parquet", "congestion-1.dot", "congestion-12.dot"] {
        assert!(fs::metadata(path.join("all").join(table)).unwrap().len() > 0, "{table}");
    }
    // The report is drawn again from what lies beside it.
    let mut again = Command::new(env!("CARGO_BIN_EXE_replay"));
    assert!(again.args(["report", "all", "--out", "again.html"]).current_dir(path).status().unwrap().success());
    assert_eq!(fs::read_to_string(path.join("again.html")).unwrap(), page);
    let metric = run(path, 0, &[&TREE[..], &["-p", "ring", "-p", "null", "--metric", "sum_max_cong"]].concat());
    assert!(metric.starts_with("# ring\n16: 1 runs\n") && metric.contains("\n# null\n0: 1 runs\n"), "{metric}");
}

/// A trace of four hosts in two racks with three maps and two reduces, in `folder`/trace; gives bytes between hosts.
fn record(folder: &Path) -> u64 {
    let mut trace = crate::common::map_reduce(&["m1", "w1", "w2", "w3"], 3, 2);
    // Map outputs are the sends of half a block.
    let outputs: Vec<_> = (trace.events.iter())
        .filter(|event| event.bytes == 4_000_000)
        .filter_map(|event| Some((event.message?, event.connection?)))
        .collect();
    let mut moved = 0;
    for (message, connection) in outputs {
        trace.messages[message.index()].kind = MessageKind::ShuffleResponse;
        let connection = &trace.connections[connection.index()];
        moved += u64::from(connection.client_host != connection.server_host) * 4_000_000;
    }
    trace_tables::write_trace(&folder.join("trace"), &trace).unwrap();
    moved
}

#[test]
fn a_recorded_shuffle_is_compared_under_several_routings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let moved = record(path);
    let network =
        ["--shape", "xgft", "--set", "m=[2,2]", "--set", "w=[1,2]", "--set", "fabric.topology.host_link.rate=1Gbps"];
    let routings = ["--routing", "d-mod-k", "--routing", "shortest", "--routing", "ecmp", "--trace", "trace"];
    let of = |arguments: &[&str]| -> Value {
        let json = run(path, 0, &[&network[..], &routings, arguments, &["--json"]].concat());
        serde_json::from_str(&json).unwrap()
    };
    let found = of(&["--no-shuffle", "--subset", "first"]);
    let shuffle = &found["shuffle"];
    assert_eq!((&shuffle["job"], &shuffle["bytes"]), (&"job_1_0001".into(), &moved.into()));
    assert_eq!((&shuffle["hosts"], &shuffle["in_order"], &shuffle["pairs"]), (&4.into(), &true.into(), &4.into()));
    // Each reduce gets two map outputs of other hosts, over a link of 1 Gbit/s.
    for routing in shuffle["routings"].as_array().unwrap() {
        assert_eq!(routing["host_links_s"]["mean"], 0.064, "{routing}");
        assert!(routing["slowdown"].as_f64().unwrap() >= 1.0, "{routing}");
    }
    let random = of(&["--runs", "40", "--out", "out", "--threads", "1"]);
    assert_eq!(random, of(&["--runs", "40", "--threads", "3"]));
    assert_eq!(random["shuffle"]["routings"][2]["links_s"]["runs"], 40);
    let page = fs::read_to_string(path.join("out/report.html")).unwrap();
    assert!(page.contains("job_1_0001") && page.contains("at random, 40 runs"));
    assert!(path.join("out/shuffle.parquet").exists());
    remove_results(&path.join("out")).unwrap();
    assert_eq!(fs::read_dir(path.join("out")).unwrap().count(), 0, "results are known as such");
    let table = run(path, 0, &[&network[..], &routings].concat());
    assert!(table.contains("16.000 MB between 4 pairs of 4 hosts") && table.lines().count() > 6, "{table}");
    let too_small = ["--shape", "single-switch", "--nodes", "3", "--trace", "trace"];
    assert!(run(path, 2, &too_small).contains("4 hosts are asked for: from 2 to 3"));
    assert!(run(path, 2, &[&SWITCH[..], &["--trace", "trace", "--job", "job_9"]].concat()).contains("job_1_0001"));
    assert!(run(path, 2, &[&SWITCH[..], &["--trace", "none"]].concat()).contains("none"));
    assert!(run(path, 2, &[&SWITCH[..], &["--trace", "trace", "-p", "tree"]].concat()).contains("--pattern"));
}

#[test]
fn static_estimates_stand_beside_simulated_times() {
    let simulated = |network: &[&str], arguments: &[&str]| -> Value {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [network, arguments, &["--json", "--runs", "3"]].concat();
        let found: Value = serde_json::from_str(&run(folder.path(), 0, &arguments)).unwrap();
        found["cases"][0]["simulated"].clone()
    };
    let roomy = ["--set", "fabric.topology.host_link.buffer=unlimited"];
    for (pattern, arguments, times) in [
        ("bisect", ["--simulate", "credit"].as_slice(), 1.0),
        ("bisect", &["--simulate", "store-and-forward"], 1.0),
        ("gather", &["--simulate", "credit"], 3.0),
        ("gather", &["--simulate", "store-and-forward", "--threads", "1"], 3.0),
    ] {
        let found = simulated(&[&SWITCH[..], &roomy].concat(), &[arguments, &["-p", pattern]].concat());
        let of = |key: &str| found[key].as_f64().unwrap();
        // 1 MiB at 10 Gbit/s; headers and flits that are filled up are 3%.
        let alone = f64::from(1u32 << 20) * 8e-10;
        assert!((of("static_slowest_s") / (times * alone) - 1.0).abs() < 0.035, "{found}");
        let change = of("simulated_slowest_s") / of("static_slowest_s") - 1.0;
        assert!((0.0..0.01).contains(&change), "{found}");
        assert!(of("mean_error") < 0.01 || pattern == "gather", "{found}");
    }
    let torus = ["--shape", "torus", "--set", "size=[4,4]"];
    let found = simulated(&torus, &["--simulate", "credit", "--message", "64KiB", "-p", "rand"]);
    assert_eq!((&found["message_bytes"], &found["messages"]), (&65_536.into(), &48.into()));
    let lost = switch(2, &["-p", "gather", "--simulate", "store-and-forward"]);
    assert!(lost.contains("of 3 messages arrived") && lost.contains("host_link.buffer=unlimited"), "{lost}");
    let table = tree(0, &["-p", "bisect", "-p", "bruck", "--simulate", "credit", "--message", "16KiB"]);
    assert!(table.contains("16384 bytes a message on credit") && table.contains("slowest, static"), "{table}");
}

#[test]
fn what_cannot_be_counted_is_said_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hosts"), "h1\n\nnobody\n").unwrap();
    fs::write(folder.path().join("twice"), "h1\nh1\n").unwrap();
    fs::write(folder.path().join("one"), "h1\n").unwrap();
    fs::write(folder.path().join("bytes"), [0xff, 0xfe]).unwrap();
    for (arguments, parts) in [
        (["-p", "bisekt"].as_slice(), ["bisekt", "bisect_fb_sym"].as_slice()),
        (&["-p", "shift:x"], &["shift:x", "shift:N"]),
        (&["--routing", "random"], &["random", "no fixed path", "d-mod-k"]),
        (&["--routing", "adaptive"], &["adaptive", "no fixed path"]),
        (&["--routing", "best"], &["--routing best"]),
        (&["--routing", "dor"], &["dor", "a tree"]),
        (&["--subset", "hosts"], &["--subset hosts: line 3: host nobody is not a host"]),
        (&["--subset", "twice"], &["--subset twice: line 2: host h1 is listed twice"]),
        (&["--subset", "one"], &["1 of the hosts can take part: at least 2"]),
        (&["--subset", "none"], &["--subset none", "linear-bfs"]),
        (&["--subset", "bytes"], &["--subset bytes"]),
        (&["--hosts", "17"], &["17 hosts", "from 2 to 16"]),
        (&["--hosts", "1"], &["1 hosts", "from 2 to 16"]),
        (&["--level", "1"], &["no level 1"]),
        (&["--runs", "0"], &["--runs"]),
        (&["--part", "3"], &["--against"]),
        (&["--part", "15", "--against", "null"], &["15 of 16"]),
        (&["--print-hosts", "--json"], &["--json"]),
    ] {
        let said = run(folder.path(), 2, &[&TREE[..], arguments].concat());
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    }
    assert!(run(folder.path(), 2, &[]).contains("--shape"));
}
