//! `replay topology` and `replay routing`: what they print and write, and how they fail.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

/// What a run prints that ends with `code`.
fn run(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = replay(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    let said = if code == 2 { &output.stderr } else { &output.stdout };
    String::from_utf8(said.clone()).unwrap()
}

fn json(folder: &Path, code: i32, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(folder, code, arguments)).unwrap()
}

const FAT_TREE: [&str; 8] = ["--shape", "fat-tree", "--nodes", "64", "--racks", "4", "--cores", "2"];

#[test]
fn figures_are_told_to_people_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    let text = run(folder.path(), 0, &["topology", "--shape", "k-ary-n-tree", "--set", "k=8"]);
    for part in
        ["hosts      512", "192 with at most 16 ports", "4.7260 switches", "256 cables (2560.0 Gbit/s", "level 3"]
    {
        assert!(text.contains(part), "{text}");
    }
    let figures = json(folder.path(), 0, &[&["topology", "--json"], &FAT_TREE[..]].concat());
    assert_eq!(figures["shape"], "fat-tree");
    assert_eq!((figures["hosts"].as_u64(), figures["switches"].as_u64()), (Some(64), Some(6)));
    assert_eq!(figures["cables"], 72);
    assert_eq!(figures["bisection_cables"], 4);
    assert_eq!(figures["levels"][0]["oversubscription"], 8.0);
    let racks = json(folder.path(), 0, &["topology", "--json", "--shape", "racks", "--nodes", "6", "--racks", "3"]);
    assert_eq!((racks["hosts"].as_u64(), racks["switches"].as_u64()), (Some(6), Some(4)));
}

#[test]
fn what_is_written_is_a_graph_that_an_experiment_beside_it_can_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("experiments")).unwrap();
    for (file, format) in [("net.edges", "edges"), ("net.dot", "dot")] {
        run(path, 0, &[&["topology", "--out", &format!("experiments/{file}")], &FAT_TREE[..]].concat());
        let text = format!("[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"graph\"\nfile = \"{file}\"\n");
        fs::write(path.join("experiments/x.toml"), text).unwrap();
        let figures = json(path, 0, &["topology", "experiments/x.toml", "--json"]);
        assert_eq!(
            (&figures["shape"], &figures["hosts"], &figures["cables"]),
            (&"graph".into(), &64.into(), &72.into())
        );
        assert_eq!(figures["bisection_cables"], 4);
        let printed = run(path, 0, &["topology", "experiments/x.toml", "--format", format]);
        assert_eq!(printed, fs::read_to_string(path.join("experiments").join(file)).unwrap());
    }
    let whole = json(path, 0, &["topology", "experiments/x.toml", "--format", "json"]);
    assert_eq!((whole["hosts"].as_u64(), whole["nodes"].as_array().unwrap().len()), (Some(64), 70));
    assert_eq!(whole["nodes"][64], "rack0");
    assert_eq!(whole["cables"].as_array().unwrap().len(), 72);
    assert_eq!((&whole["cables"][71]["from"], &whole["cables"][71]["to"]), (&67.into(), &69.into()));
    assert_eq!(whole["cables"][71]["rate_bps"], 10_000_000_000u64);
}

#[test]
fn a_routing_file_is_written_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let printed = run(path, 0, &["routing", "--shape", "fat-tree", "-n", "4", "-r", "2", "-c", "2"]);
    assert_eq!(printed, "0 1 2 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n");
    let message = run(path, 0, &[&["routing", "--out", "r.txt"], &FAT_TREE[..]].concat());
    assert!(message.contains("4032, one for each pair"), "{message}");
    let checked = json(path, 0, &[&["routing", "--check", "r.txt", "--json"], &FAT_TREE[..]].concat());
    assert_eq!((&checked["deadlock_free"], &checked["mistake"]), (&true.into(), &Value::Null));
    assert_eq!(checked["ways"]["pairs"], 64 * 63);
    assert_eq!(checked["ways"]["most_switches"], 3);
    // 16 hosts of a rack send to 48 others, over 2 uplinks.
    assert_eq!(checked["ways"]["most_ways"], 16 * 48 / 2);
    // An experiment uses the file that lies beside it.
    let text = "[fabric]\nkind = \"credit\"\nrouting = { table = \"r.txt\" }\n[fabric.topology]\nshape = \"fat-tree\"\n\
                nodes = 64\nracks = 4\n";
    fs::write(path.join("x.toml"), text).unwrap();
    let again = json(path, 0, &["routing", "x.toml", "--json"]);
    assert_eq!(again["ways"], checked["ways"]);
}

#[test]
fn mistakes_of_a_routing_file_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let small = ["--shape", "fat-tree", "-n", "4", "-r", "2", "-c", "2", "--check", "r.txt"];
    for (text, part) in [
        ("0 1 2 3\n2 3 0 1\n0 0 0 1\n0 0 1 1\n", "rack0 -> core0 -> rack0"),
        ("0 1 2 3\n2 3 0 1\n0 0 1 1\n", "r.txt:4:"),
        ("0 1 2 3\n2 3 0 7\n0 0 1 1\n0 0 1 1\n", "port 7"),
        ("1 1 2 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n", "no way from h1 to h0"),
    ] {
        fs::write(path.join("r.txt"), text).unwrap();
        let message = run(path, 1, &[&["routing"], &small[..]].concat());
        assert!(message.contains("mistake") && message.contains(part), "{message}");
    }
    // Dimension order on a ring without classes of virtual lanes.
    let message = run(path, 1, &["routing", "--shape", "torus", "--set", "size=[5]", "--out", "torus.txt"]);
    assert!(message.contains("wait for each other") && message.contains("r0->r1"), "{message}");
    let checked =
        json(path, 1, &["routing", "--shape", "torus", "--set", "size=[5]", "--check", "torus.txt", "--json"]);
    assert_eq!((&checked["deadlock_free"], &checked["ways"]["most_switches"]), (&false.into(), &3.into()));
}

#[test]
fn what_cannot_be_is_said_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let experiment = "[fabric]\nkind = \"ethernet\"\n[fabric.topology]\nshape = \"k-ary-n-tree\"\nk = 0\n";
    fs::write(path.join("x.toml"), experiment).unwrap();
    fs::write(path.join("ideal.toml"), "[fabric]\nkind = \"ideal\"\n").unwrap();
    for (arguments, parts) in [
        (
            ["topology", "--shape", "fat-tree", "-n", "10", "-r", "4"].as_slice(),
            ["10", "no multiple of", "4"].as_slice(),
        ),
        (&["topology", "--shape", "racks", "-n", "10", "-r", "4"], &["10", "4"]),
        (&["topology", "--shape", "ring"], &["ring", "torus"]),
        (&["topology", "--shape", "torus", "--set", "size=7"], &["7"]),
        (&["topology", "--shape", "torus", "--cores", "3"], &["cores", "size"]),
        (&["topology", "--shape", "torus", "--set", "size"], &["size", "path=value"]),
        (&["topology", "x.toml"], &["x.toml:5:1", "fabric.topology.k = 0", "at least 1"]),
        (&["topology", "ideal.toml"], &["ideal", "no topology"]),
        (&["topology", "none.toml"], &["none.toml"]),
        (&["topology"], &["--shape"]),
        (&["routing", "--shape", "torus", "--routing", "d-mod-k"], &["d-mod-k", "a torus", "dor"]),
        (&["routing", "--shape", "fat-tree", "-n", "4", "--routing", "random"], &["random", "one port", "d-mod-k"]),
        (&["routing", "--shape", "fat-tree", "-n", "4", "--routing", "best"], &["best", "d-mod-k"]),
        (&["routing", "--shape", "fat-tree", "-n", "4", "--check", "none.txt"], &["none.txt"]),
    ] {
        let message = run(path, 2, arguments);
        assert!(parts.iter().all(|part| message.contains(part)), "{arguments:?}: {message}");
    }
}

#[test]
fn what_is_wrong_with_an_option_is_told_of_that_option() {
    let folder = tempfile::tempdir().unwrap();
    let shape = run(folder.path(), 2, &["topology", "--shape", "fat-tre", "--nodes", "8"]);
    assert!(shape.starts_with("replay: --shape fat-tre: unknown variant `fat-tre`"), "{shape}");
    assert!(shape.contains("; did you mean `fat-tree`?"), "{shape}");
    let key = run(folder.path(), 2, &["topology", "--shape", "torus", "--set", "sise=[4,4]"]);
    assert!(key.starts_with("replay: --set sise=[4,4]: unknown field `sise`"), "{key}");
}

#[test]
fn routes_are_followed_from_files_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bisect = ["--pattern", "bisect", "--runs", "20"];
    let tree = ["--shape", "k-ary-n-tree", "--set", "k=4", "--set", "n=2"];
    let expected = run(path, 0, &[&["congestion"], &tree[..], &bisect].concat());
    run(path, 0, &[&["routing", "--out", "tree.dot"], &tree[..]].concat());
    for (subnet, tables) in [("tree.topo", "tree.lfts"), ("tree.lst", "tree.fdbs")] {
        run(path, 0, &["topology", "--graph", "tree.dot", "--out", subnet]);
        let message = run(path, 0, &["routing", "--graph", "tree.dot", "--out", tables]);
        assert!(message.starts_with("routing   file\n"), "{message}");
        let of_subnet = ["congestion", "--graph", subnet, "--lfts", tables];
        assert_eq!(run(path, 0, &[&of_subnet, &bisect[..]].concat()), expected);
        run(path, 0, &["routing", "--graph", subnet, "--lfts", tables, "--out", "again.dot"]);
        let again = run(path, 0, &[&["congestion", "--graph", "again.dot"], &bisect[..]].concat());
        assert_eq!(again, expected);
    }
    let other = run(path, 0, &[&["congestion", "--graph", "tree.dot", "--routing", "shortest"], &bisect[..]].concat());
    assert_ne!(other, expected);
    // An experiment's default routing is not the file's.
    fs::write(
        path.join("x.toml"),
        "[fabric]\nkind = \"credit\"\n[fabric.topology]\nshape = \"graph\"\nfile = \"tree.dot\"\n",
    )
    .unwrap();
    let error = run(path, 2, &["routing", "x.toml"]);
    assert!(error.contains("\"file\"") && error.contains("routes = false"), "{error}");
    run(path, 0, &["routing", "x.toml", "--set", "fabric.routing=file"]);
}

/// "H9" is no node: its route is left out, which every command says, or refused.
#[test]
fn what_is_left_out_of_a_file_is_said_by_runs_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let dot = "digraph g {\nH1 -> S1;\nS1 -> H1 [comment=\"H1\"];\nH2 -> S1;\nS1 -> H2 [comment=\"H2,H9\"];\n}\n";
    fs::write(path.join("net.dot"), dot).unwrap();
    let text = "[traffic]\npattern = \"uniform\"\nload = 0.1\n[fabric]\nkind = \"store-and-forward\"\nrouting = \"file\"\n\
                [fabric.topology]\nshape = \"graph\"\nfile = \"net.dot\"\n";
    fs::write(path.join("x.toml"), text).unwrap();
    for arguments in [&["run", "x.toml", "--out", "r", "--force"][..], &["topology", "x.toml"]] {
        let output = replay(path, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("net.dot:5: ") && said.contains("\"H9\""), "{said}");
        let strict = run(path, 2, &[arguments, &["--set", "fabric.topology.strict=true"]].concat());
        assert!(strict.contains("net.dot:5: ") && strict.contains("strict = false"), "{strict}");
    }
}

/// LIGHTNESS' 64 nodes: 4 racks and 2 cores, whose ports are those of the routing file (deliverable 2.3).
#[test]
fn a_topology_is_written_in_ned_with_the_ports_of_its_routing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let ned = run(path, 0, &[&["topology", "--format", "ned"], &FAT_TREE[..]].concat());
    assert_eq!((ned.matches(": Host {").count(), ned.matches(": Switch {").count()), (64, 6), "{ned}");
    assert!(
        ned.contains("rack0: Switch { gates: port[18]; }") && ned.contains("core1: Switch { gates: port[4]; }"),
        "{ned}"
    );
    let mut ends = BTreeMap::new();
    for line in ned.lines().filter(|line| line.contains("<-->")) {
        let mut parts = line.trim().trim_end_matches(';').split(" <--> ");
        let (from, channel, to) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        assert!(channel.starts_with("ned.DatarateChannel { delay = ") && channel.contains("datarate = 10000000000bps"));
        let node = |gate: &str| gate.split(".port[").next().unwrap().to_owned();
        assert!(ends.insert(from.to_owned(), node(to)).is_none() && ends.insert(to.to_owned(), node(from)).is_none());
    }
    assert_eq!(ends.len(), 2 * (64 + 8), "each port once");
    // Each line of the routing file is a switch: its port for each host leads to it, or to the other level.
    let routing = run(path, 0, &[&["routing", "--format", "table"], &FAT_TREE[..]].concat());
    let switches = ["rack0", "rack1", "rack2", "rack3", "core0", "core1"];
    let lines: Vec<&str> = routing.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(lines.len(), switches.len(), "{routing}");
    for (switch, line) in switches.into_iter().zip(lines) {
        for (host, port) in line.split_whitespace().enumerate() {
            let next = &ends[&format!("{switch}.port[{port}]")];
            let mine = format!("rack{}", host / 16);
            let right = if switch == mine {
                *next == format!("h{host}")
            } else if switch.starts_with("core") {
                *next == mine
            } else {
                next.starts_with("core")
            };
            assert!(right, "{switch} sends to h{host} by {next}");
        }
    }
    let one_way = run(path, 2, &["topology", "--shape", "torus", "--set", "ways=1", "--format", "ned"]);
    assert!(one_way.contains("json"), "{one_way}");
}
