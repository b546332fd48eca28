//! `replay peers`: what its tables must look like, when figures agree, and what the built-in tables give.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use replay::peers::{Figures, PEERS, experiment};
use serde_json::Value;

/// A wire of one flit a cycle between two hosts: a packet of 8 flits takes 2 x 8 cycles by storing and forwarding, whatever its number, as long as none
/// waits.
const EXPERIMENT: &str = "
[traffic]
pattern = \"uniform\"
arrivals = \"fixed\"
hosts = 2
size = \"64B\"
load = 0.05
warm_up = \"100 cycles\"
measurement = \"4000 cycles\"
[fabric]
kind = \"store-and-forward\"
mtu = \"64B\"
flit = \"8B\"
[fabric.topology]
shape = \"single-switch\"
host_link = { rate = \"64Gbps\", delay = \"0ns\" }
";

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap()
}

/// The exit code, and what is printed, of the experiment beside `table`.
fn beside(table: &str) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("wire.toml"), EXPERIMENT).unwrap();
    fs::write(folder.path().join("wire.csv"), table).unwrap();
    let output = replay(folder.path(), &["peers", "wire.toml", "--figures", "wire.csv", "--json"]);
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

/// The verdicts on the figures of the first row.
fn verdicts(printed: &Value) -> Vec<&str> {
    let figures = printed["peers"][0]["rows"][0]["figures"].as_array().unwrap();
    figures.iter().map(|figure| figure["verdict"].as_str().unwrap()).collect()
}

#[test]
fn figures_agree_within_the_tolerance_and_differ_beyond_it() {
    // Fixed gaps leave nothing to chance but where they begin: the standard error is 0.
    for (latency, verdict, code) in [
        ("16", "agrees", 0),
        ("16.4", "agrees", 0),
        ("15.6", "agrees", 0),
        ("16.6", "differs", 1),
        ("15.4", "differs", 1),
    ] {
        let (ended, printed) = beside(&format!("latency\n{latency}\n"));
        assert_eq!((verdicts(&printed), ended), (vec![verdict], code), "{printed}");
    }
    let (ended, printed) = beside("latency,apart\n14,2\n");
    assert_eq!((verdicts(&printed), ended), (vec!["agrees"], 0), "{printed}");
    let (ended, printed) = beside("latency,latency_error\n17,0.4\n");
    assert_eq!((verdicts(&printed), ended), (vec!["within-errors"], 0), "{printed}");
    let (ended, printed) = beside("latency,mechanism\n17,its wire is longer\n");
    assert_eq!((verdicts(&printed), ended), (vec!["explained"], 0), "{printed}");
    assert_eq!(printed["peers"][0]["rows"][0]["mechanism"], "its wire is longer");
}

#[test]
fn at_saturation_loads_have_more_room_and_latencies_none_to_judge() {
    // Two hosts that hand over more than their links carry.
    let (ended, printed) = beside("traffic.load,accepted,latency\n1.5,1.02,1\n");
    assert_eq!((verdicts(&printed), ended), (vec!["agrees", "not-judged"], 0), "{printed}");
    let (ended, printed) = beside("traffic.load,accepted,latency\n1.5,1.05,1\n");
    assert_eq!((verdicts(&printed), ended), (vec!["differs", "not-judged"], 1), "{printed}");
}

#[test]
fn times_of_bursts_agree_within_the_tolerance_and_differ_beyond_it() {
    // Each of the two hosts has 5 packets for the other one: 8 cycles each on a link, and 8 more of the last one by storing and forwarding.
    let folder = tempfile::tempdir().unwrap();
    let keys = ["arrivals", "load", "warm_up", "measurement"];
    let is_kept = |line: &&str| !keys.iter().any(|key| line.starts_with(key));
    let bursts = EXPERIMENT.lines().filter(is_kept).collect::<Vec<_>>().join("\n");
    let bursts = bursts.replace("[traffic]", "[traffic]\nbursts = 3\nburst = 5");
    fs::write(folder.path().join("wire.toml"), bursts).unwrap();
    for (table, verdict, code) in [
        ("burst\n48", "agrees", 0),
        ("burst,apart\n46,2", "agrees", 0),
        ("burst\n49", "agrees", 0),
        ("burst\n46", "differs", 1),
        ("burst,burst_error\n46,1", "within-errors", 0),
        ("burst,mechanism\n46,it has a burst less", "explained", 0),
    ] {
        fs::write(folder.path().join("wire.csv"), format!("{table}\n")).unwrap();
        let output = replay(folder.path(), &["peers", "wire.toml", "--figures", "wire.csv", "--json"]);
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((verdicts(&printed), output.status.code()), (vec![verdict], Some(code)), "{table}: {printed}");
        assert_eq!(printed["peers"][0]["rows"][0]["figures"][0]["measure"], "burst");
    }
    // Where nothing comes in bursts there is no time of one.
    fs::write(folder.path().join("wire.toml"), EXPERIMENT).unwrap();
    let output = replay(folder.path(), &["peers", "wire.toml", "--figures", "wire.csv"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("nothing was measured"), "{error}");
}

#[test]
fn tables_that_are_wrong_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("wire.toml"), EXPERIMENT).unwrap();
    let cases: [(&[u8], &str); 14] = [
        (b"", "no rows"),
        (b"# nothing but this\n", "no rows"),
        (b"latency\n", "no rows"),
        (b"latency\nfast\n", "wire.csv:2: latency = fast"),
        (b"latency\n-1\n", "wire.csv:2: latency = -1"),
        (b"latency\nNaN\n", "wire.csv:2: latency = NaN"),
        (b"latency\n0\n", "wire.csv:2: latency = 0: a number above 0"),
        (b"latency,runs\n# a comment\n16,0\n", "wire.csv:3: runs = 0"),
        (b"latency,speed\n16,1\n", "wire.csv:2: column speed"),
        (b"traffic.load,latency\n.1,\n", "wire.csv:2: none of accepted, latency, network_latency, burst is given"),
        (b"latency\n16,17\n", "wire.csv:2"),
        (b"traffic.laod,latency\n.1,16\n", "wire.csv:2: "),
        (b"traffic.load,latency\n\"[0.1, 0.2]\",16\n", "wire.csv:2: "),
        (b"\xff\xfe\n", "wire.csv: "),
    ];
    for (table, said) in cases {
        fs::write(folder.path().join("wire.csv"), table).unwrap();
        let output = replay(folder.path(), &["peers", "wire.toml", "--figures", "wire.csv"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}: {error}");
        assert!(error.contains(said), "{said}: {error}");
    }
    fs::write(folder.path().join("wire.csv"), "latency\n16\n".repeat(200_000)).unwrap();
    let output = replay(folder.path(), &["peers", "wire.toml", "--figures", "wire.csv"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("1048576 at most are read"));
    for (arguments, said) in [
        (&["peers", "wire.toml"][..], "give them with --figures"),
        (&["peers", "--figures", "wire.csv"], "EXPERIMENT"),
        (&["peers", "wire.toml", "--figures", "wire.csv", "--seeds", "4"], "4"),
        (&["peers", "wire.toml", "wire.toml", "--figures", "wire.csv"], "belongs to one experiment"),
        (&["peers", "wire.toml", "--figures", "none.csv"], "none.csv"),
    ] {
        let output = replay(folder.path(), arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn built_in_tables_fit_their_experiments() {
    for peer in PEERS {
        let figures = Figures::parse(peer.figures, peer.file).unwrap();
        for row in &figures.rows {
            let made = experiment(Path::new(peer.name), row, &[]);
            assert!(made.is_ok(), "{}: {}: {:?}", peer.name, row.label, made.err());
        }
    }
}

/// The comments of the presets say that they are the peers' routers: a row below saturation of each, all seeds.
#[test]
fn built_in_presets_agree_with_a_row_of_their_peers() {
    let folder = tempfile::tempdir().unwrap();
    for (peer, row) in [
        ("peers/caminos-basic", "traffic.load,accepted,latency\n0.5,0.4992,26.72\n"),
        ("peers/caminos-input-output", ""),
        ("peers/booksim2", "traffic.load,accepted,latency\n0.3,.3004,41.3\n"),
        ("peers/insee", "traffic.load,accepted,latency,apart\n0.3,.2999,33.6,2\n"),
        // Sources that stop offer no more than is carried, and are saturated all the same.
        ("peers/insee", "traffic.load,accepted,latency\n1.0,.5900,1\n"),
        ("peers/insee-bursts", ""),
        ("peers/omni-path", "traffic.load,accepted\n1.0,.72\n"),
    ] {
        let own = PEERS.iter().find(|built_in| built_in.name == peer).unwrap().figures;
        let mut lines = own.lines().filter(|line| !line.starts_with('#'));
        let header = lines.next().unwrap();
        let first = lines.next().unwrap();
        let table = if row.is_empty() { format!("{header}\n{first}\n") } else { row.to_owned() };
        fs::write(folder.path().join("row.csv"), table).unwrap();
        let output = replay(folder.path(), &["peers", peer, "--figures", "row.csv"]);
        assert_eq!(output.status.code(), Some(0), "{peer}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
