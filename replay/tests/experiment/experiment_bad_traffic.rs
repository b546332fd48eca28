//! Experiments with synthetic traffic that cannot be run: each is named with its place, its value and what is allowed.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use netsim::traffic::RunOptions;
use replay::experiment::{Experiment, Override, Sweep};
use replay::run::run_traffic;

const FABRIC: &str = "[fabric]\nkind = \"ideal\"\nrate = \"100Gbps\"\n[traffic]\n";
const CREDIT: &str = "[fabric]\nkind = \"credit\"\ntopology.shape = \"k-ary-n-tree\"\n[traffic]\n";

/// Reads and runs an experiment that must fail, and returns what is said.
fn fails(path: &Path, text: &str, changes: &[&str]) -> String {
    fs::write(path, text).unwrap();
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let sweep = match Sweep::read(path, &changes) {
        Ok(sweep) => sweep,
        Err(error) => return error.to_string(),
    };
    for point in sweep.points {
        if let Err(error) = run_traffic(&point.experiment, RunOptions::default(), &AtomicBool::new(false), |_| {}) {
            return Experiment::wrong(path, &changes, &error.to_string()).to_string();
        }
    }
    panic!("nothing is wrong with {text:?} {changes:?}");
}

#[test]
fn every_wrong_key_of_traffic_is_named_with_its_value_and_what_is_allowed() {
    // What stands in the traffic's table (line 5 on), the place, and what the message must say.
    let cases: &[(&str, &str, &[&str])] = &[
        ("loud = 0.1", "5:1", &["unknown field `loud`; did you mean `load`?"]),
        ("load = -0.1", "5:1", &["traffic.load = -0.1", "above 0", "1.0 = all that a host's link carries"]),
        ("load = 0", "5:1", &["traffic.load = 0.0", "above 0"]),
        ("load = nan", "5:1", &["traffic.load = NaN"]),
        ("load = inf", "5:1", &["traffic.load = inf", "at most 64.0"]),
        ("load = 65.0", "5:1", &["at most 64.0"]),
        ("load = \"0.1\"", "5:8", &["string \"0.1\", expected a number, such as 0.5"]),
        ("load = true", "5:8", &["true"]),
        ("pattern = \"unifrom\"", "5:11", &["`unifrom`", "uniform", "tornado", "table"]),
        ("arrivals = \"poisson\"", "5:12", &["`poisson`", "bernoulli", "exponential", "fixed"]),
        ("hosts = 8\narrivals = \"bernoulli\"\nload = 40.0\nflits = 8", "7:1", &["40.0", "a load of 8"]),
        ("hosts = 8\nsize = \"0B\"\narrivals = \"fixed\"", "6:1", &["traffic.size = \"0B\"", "in a picosecond"]),
        ("hosts = 8\nsize = \"0B\"\narrivals = \"exponential\"", "6:1", &["traffic.size = \"0B\"", "traffic.interval"]),
        ("hosts = 8\nsize = \"1B\"\narrivals = \"bernoulli\"", "", &["traffic.load = 0.1: arrivals", "flits in each"]),
        ("interval = \"200\"", "5:12", &["\"200\" has no unit"]),
        ("interval = 200", "5:12", &["\"200\" has no unit"]),
        ("interval = \"0ns\"", "5:1", &["traffic.interval", "above 0"]),
        ("load = 0.1\ninterval = \"200ns\"", "6:1", &["traffic.interval", "traffic.load", "one of them"]),
        ("size = \"2048\"", "5:8", &["\"2048\" has no unit", "64KiB"]),
        ("size = \"2KiB\"\nflits = 8", "6:1", &["traffic.flits", "traffic.size", "one of them"]),
        ("packets = 3", "5:1", &["traffic.packets", "traffic.flits"]),
        ("flits = 0", "5:1", &["traffic.flits = 0", "1 to"]),
        ("flits = -1", "5:9", &["-1"]),
        ("hosts = 8\nflits = 99", "6:1", &["traffic.flits = 99", "1 to 32", "fabric.mtu = \"2048B\""]),
        ("hosts = 8\nflits = 8\npackets = 2", "7:1", &["traffic.packets = 2", "fabric.mtu", "\"512B\""]),
        ("hosts = 0", "5:1", &["traffic.hosts = 0", "1 to"]),
        ("hosts = 1", "5:1", &["traffic.hosts = 1", "at least 2"]),
        ("hosts = 8\nracks = 3", "6:1", &["traffic.racks = 3", "traffic.hosts = 8", "multiple"]),
        ("racks = 3", "5:1", &["traffic.racks", "traffic.hosts"]),
        ("load = 0.5", "", &["traffic.hosts", "how many hosts"]),
        ("warm_up = \"20\"", "5:11", &["\"20\" has no unit", "5000 cycles"]),
        ("warm_up = 2000", "5:11", &["\"2000\" has no unit", "\"2000 cycles\""]),
        ("warm_up = \"many cycles\"", "5:11", &["\"many cycles\" is no number of cycles"]),
        ("measurement = \"0 cycles\"", "5:1", &["traffic.measurement", "longer than 0"]),
        ("hosts = 8\ndrain = \"2000min\"", "6:1", &["traffic.drain", "at most a simulated day"]),
        ("levels = { 16 = 1.0 }", "5:12", &["traffic.levels.16", "0 to 15"]),
        ("levels = { 0 = 1.5 }", "5:12", &["traffic.levels.0 = 1.5", "0.0 to 1.0"]),
        ("levels = { 0 = 0.5, 1 = 0.4 }", "5:1", &["0.5 + 0.4", "add up to 1.0"]),
        ("spots = [0]", "5:1", &["traffic.spots", "\"hot-spot\"", "\"uniform\""]),
        ("share = 0.5", "5:1", &["traffic.share", "\"hot-spot\""]),
        ("radix = 8", "5:1", &["traffic.radix", "\"tornado\""]),
        ("neighbour = \"nearest\"", "5:1", &["traffic.neighbour", "\"nearest-neighbour\""]),
        ("table = \"x.csv\"", "5:1", &["traffic.table", "\"table\""]),
        ("pattern = \"table\"", "", &["traffic.table", "needs the file's path"]),
        ("pattern = \"table\"\ntable = \"x.csv\"\nload = 0.1", "7:1", &["traffic.load", "the table says itself"]),
        ("pattern = \"table\"\ntable = \"nowhere.csv\"\nhosts = 4", "", &["traffic.table", "nowhere.csv"]),
        ("pattern = \"hot-spot\"\nshare = 1.1", "6:1", &["traffic.share = 1.1", "at most 1.0"]),
        ("pattern = \"hot-spot\"\nspots = [8]\nhosts = 8", "6:1", &["traffic.spots = 8", "0 to 7"]),
        ("pattern = \"hot-spot\"\nspots = [-1]", "6:9", &["-1"]),
        ("pattern = \"transpose\"\nhosts = 12", "5:1", &["12 hosts do not fit", "a power of 2"]),
        ("pattern = \"nearest-neighbour\"\nhosts = 6", "5:1", &["6 hosts do not fit", "a multiple of 4"]),
        ("pattern = \"tornado\"\nhosts = 12\nradix = 5", "7:1", &["traffic.radix = 5", "12 hosts"]),
        ("pattern = \"nearest-neighbour\"\nself_traffic = true", "6:1", &["traffic.self_traffic", "neighbour"]),
        ("self_traffic = \"yes\"", "5:16", &["\"yes\"", "boolean"]),
        ("[run]\nseeds = 0", "6:1", &["run.seeds = 0", "1 to 10000"]),
        ("[run]\nseeds = [1, 1]", "6:1", &["run.seeds", "1 is there twice"]),
        ("[run]\nseeds = []", "6:1", &["run.seeds", "empty list"]),
        ("[run]\nseeds = \"all\"", "6:9", &["\"all\"", "how many seeds"]),
        ("[workload]\ntrace = \"t\"", "4:2", &["`[traffic]` and [workload] exclude each other"]),
        ("load = []", "5:1", &["traffic.load", "empty list"]),
        ("load = { sweep = [] }", "5:1", &["traffic.load", "empty list"]),
        ("load = [0.1, -0.3]", "5:1", &["traffic.load = -0.3", "above 0"]),
        ("pattern = [\"uniform\", \"unifrom\"]", "5:11", &["`unifrom`"]),
        ("hosts = \"many\"", "5:9", &["string \"many\", expected a whole number from 0 to 4294967295"]),
        (
            "noise = \"5us\"",
            "5:9",
            &["string \"5us\", expected a table with keys among `", "such as traffic.noise = { "],
        ),
        ("bursts.count = 0", "5:1", &["`traffic.bursts` has no keys of its own: expected a whole number from 0 to "]),
        ("levels = 3", "5:10", &["integer `3`, expected a table"]),
        ("spots = 3", "5:9", &["integer `3`, expected a list, such as traffic.spots = [3]"]),
        ("sides = \"4x4\"", "5:9", &["string \"4x4\", expected a list, such as traffic.sides = [1]"]),
        ("lengths = [5]", "5:11", &["integer `5`, expected a list of tables with keys among "]),
    ];
    assert!(cases.len() >= 60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let mut complaints = Vec::new();
    for (keys, place, parts) in cases {
        let message = fails(&path, &format!("{FABRIC}{keys}\n"), &[]);
        let start =
            if place.is_empty() { format!("{}:", path.display()) } else { format!("{}:{place}: ", path.display()) };
        if !message.starts_with(&start) {
            complaints.push(format!("{keys:?}\n  gives: {message}\n  not at {place}"));
        }
        for part in parts.iter().filter(|part| !message.contains(**part)) {
            complaints.push(format!("{keys:?}\n  gives: {message}\n  without {part}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn traffic_and_fabric_must_fit_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let cases: &[(&str, &[&str])] = &[
        (
            "[fabric]\nkind = \"ethernet\"\n[traffic]\nhosts = 4\nflows = \"message\"",
            &["x.toml:5:1", "traffic.flows", "one connection a pair"],
        ),
        ("[fabric]\nkind = \"lightness\"\n[traffic]\nload = 0.1", &["traffic.hosts", "no topology"]),
        ("[fabric]\nkind = \"ideal\"\n[traffic]\nhosts = 4", &["traffic.load", "unlimited", "give the link a rate"]),
        (
            "[fabric]\nkind = \"ideal\"\n[traffic]\nhosts = 4\ninterval = \"1us\"",
            &["traffic.arrivals", "\"exponential\" or \"fixed\""],
        ),
        (
            "[fabric]\nkind = \"ideal\"\n[traffic]\nhosts = 4\ninterval = \"1us\"\narrivals = \"fixed\"",
            &["traffic.warm_up", "no cycles", "write a time"],
        ),
        ("[fabric]\nkind = \"credit\"\n[traffic]\nload = 0.1", &["no hosts", "traffic.hosts"]),
        (&format!("{CREDIT}hosts = 65"), &["65", "64"]),
        (&format!("{CREDIT}pattern = \"tornado\"\nradix = 10"), &["x.toml:6:1", "traffic.radix = 10", "64 hosts"]),
        (&format!("{CREDIT}flits = 40"), &["x.toml:5:1", "1 to 32", "fabric.mtu"]),
    ];
    for (text, parts) in cases {
        let message = fails(&path, text, &[]);
        for part in *parts {
            assert!(message.contains(part), "{text:?}\n  gives: {message}\n  without {part}");
        }
    }
}

#[test]
fn wrong_lines_of_a_table_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let cases: &[(&str, &[&str])] = &[
        ("", &["holds no message"]),
        ("at,from,to,bytes\n", &["holds no message"]),
        ("at,from,to\n1us,0,1", &["m.csv:1", "\"bytes\" is missing"]),
        ("at,from,to,bytes,colour\n", &["m.csv:1", "unknown column \"colour\"", "level"]),
        ("at,from,at,bytes\n", &["m.csv:1", "twice"]),
        ("at,from,to,bytes\n1us,0,1", &["m.csv:2", "3 cells"]),
        ("at,from,to,bytes\n1us,0,1,64B\n1,0,1,64B", &["m.csv:3", "at: \"1\" has no unit"]),
        ("at,from,to,bytes\n1us,0,1,64", &["m.csv:2", "bytes: \"64\" has no unit"]),
        ("at,from,to,bytes\n1us,0,8,64B", &["m.csv:2", "to = \"8\"", "0 to 7"]),
        ("at,from,to,bytes\n1us,w1,7,64B", &["m.csv:2", "from = \"w1\""]),
        ("at,from,to,bytes\n2000min,0,1,64B", &["m.csv:2", "at = \"120000s\"", "a simulated day"]),
        ("at,from,to,bytes\n1us,7,7,64B", &["m.csv:2", "another host"]),
        ("at,from,to,bytes,level\n1us,6,7,64B,16", &["m.csv:2", "level = \"16\"", "0 to 15"]),
    ];
    for (table, parts) in cases {
        fs::write(folder.path().join("m.csv"), table).unwrap();
        let message = fails(&path, &format!("{FABRIC}hosts = 8\npattern = \"table\"\ntable = \"m.csv\"\n"), &[]);
        for part in *parts {
            assert!(message.contains(part), "{table:?}\n  gives: {message}\n  without {part}");
        }
    }
}

#[test]
fn a_wrong_override_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let good = format!("{FABRIC}hosts = 8\n");
    for (change, part) in [
        ("traffic.load=-1", "above 0"),
        ("traffic.load=[0.1,-1]", "traffic.load = -1.0"),
        ("traffic.laod=0.1", "`laod`"),
        ("traffic.pattern=[uniform,tornadoo]", "`tornadoo`"),
        ("run.seeds=0", "1 to 10000"),
        ("traffic.flits=[8,99]", "1 to 32"),
    ] {
        let message = fails(&path, &good, &[change]);
        assert!(message.starts_with(&format!("--set {change}: ")) && message.contains(part), "{change}: {message}");
    }
}
