//! Every file that a command line, an experiment, a trace or results name is a regular one and has a limit: whoever put
//! something else there would have the program wait, or take all memory. That nothing opens a file in another way is
//! looked at by `tests/tests/structure.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use trace_tables::write_trace;

use crate::common::map_reduce;

/// What is said of a file that is too long to be read.
const TOO_LONG: &str = "at most are read";
/// Lines of programs are read one by one.
const LONG_LINE: &str = "line 1: longer than 16 MiB";

/// A file that something names.
struct Named {
    /// Where it lies.
    at: &'static str,
    arguments: &'static [&'static str],
    /// The experiment `x.toml`.
    experiment: &'static str,
    /// What is said where the file is too long.
    too_long: &'static str,
}

const fn named(arguments: &'static [&'static str], experiment: &'static str, too_long: &'static str) -> Named {
    Named { at: "named", arguments, experiment, too_long }
}

const TREE: &str = "[fabric]\nkind = \"store-and-forward\"\ntopology = { shape = \"k-ary-n-tree\", k = 2, n = 2 }\n";
const RUN: &[&str] = &["run", "x.toml", "--out", "out"];
const OF_TREE: [&str; 4] = ["--shape", "k-ary-n-tree", "--set", "n=2"];

const NAMED: &[Named] = &[
    named(&["run", "named", "--out", "out"], "", TOO_LONG),
    named(&["run", "x.toml", "--generate", "named", "--out", "out"], TREE, TOO_LONG),
    named(&["generate", "named", "--out", "out"], "", TOO_LONG),
    named(RUN, "workload.generate = \"named\"\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }", TOO_LONG),
    named(RUN, "workload = { trace = \"trace\", placement = \"file:named\" }\nfabric.kind = \"ethernet\"", TOO_LONG),
    named(
        RUN,
        "traffic = { pattern = \"table\", table = \"named\", hosts = 4 }\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        TOO_LONG,
    ),
    named(
        RUN,
        "traffic = { pattern = \"histogram\", distances = \"named\", hosts = 4 }\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        TOO_LONG,
    ),
    named(
        RUN,
        "traffic = { pattern = \"population\", distances = \"named\", hosts = 4 }\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        TOO_LONG,
    ),
    named(
        RUN,
        "traffic = { hosts = 4, background = { pattern = \"histogram\", distances = \"named\" } }\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        TOO_LONG,
    ),
    named(
        RUN,
        "traffic = {}\n[fabric]\nkind = \"store-and-forward\"\nrouting = { table = \"named\" }\n\
         topology = { shape = \"k-ary-n-tree\", k = 2, n = 2 }",
        TOO_LONG,
    ),
    named(
        RUN,
        "traffic = {}\n[fabric]\nkind = \"store-and-forward\"\ntopology = { shape = \"graph\", file = \"named\" }",
        TOO_LONG,
    ),
    named(
        &["dimemas", "x.toml", "--once", "--listen", "127.0.0.1:0"],
        "dispatcher.taskFilename = \"named\"\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        TOO_LONG,
    ),
    named(&["dimemas", "x.toml", "--once", "--listen", "127.0.0.1:0", "--task-mapping", "named"], TREE, TOO_LONG),
    named(&["program", "named", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "goal", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "flows", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "trc", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "alog", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "dimemas", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "named", "--format", "vef", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "flow.txt", "--with", "named", "--fabric", "x.toml"], TREE, LONG_LINE),
    named(&["program", "flow.txt", "--task-mapping", "named", "--fabric", "x.toml"], TREE, TOO_LONG),
    named(&["coflow", "named"], "", TOO_LONG),
    named(&["topology", "--graph", "named"], "", TOO_LONG),
    named(&["topology", "--graph", "subnet.topo", "--lfts", "named"], "", "named:1"),
    named(&["routing", OF_TREE[0], OF_TREE[1], OF_TREE[2], OF_TREE[3], "--check", "named"], "", TOO_LONG),
    named(&["congestion", OF_TREE[0], OF_TREE[1], OF_TREE[2], OF_TREE[3], "--subset", "named"], "", TOO_LONG),
    named(&["peers", "x.toml", "--figures", "named"], TREE, TOO_LONG),
    named(&["lightness", "named"], "", TOO_LONG),
    Named { at: "results/detail.json", arguments: &["report", "results"], experiment: "", too_long: TOO_LONG },
    Named { at: "results/traffic.json", arguments: &["report", "results"], experiment: "", too_long: TOO_LONG },
    Named {
        at: "results/parts/000000.json",
        arguments: &["run", "x.toml", "--gather", "--out", "results"],
        experiment: "traffic = { load = [0.1, 0.2] }\n[fabric]\nkind = \"store-and-forward\"\n\
                     topology = { shape = \"k-ary-n-tree\", k = 2, n = 2 }",
        too_long: TOO_LONG,
    },
    Named {
        at: "trace/manifest.json",
        arguments: RUN,
        experiment: "workload.trace = \"trace\"\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        too_long: TOO_LONG,
    },
    Named {
        at: "trace/hosts.parquet",
        arguments: RUN,
        experiment: "workload.trace = \"trace\"\nfabric = { kind = \"ideal\", rate = \"1Gbps\" }",
        too_long: "hosts.parquet: ",
    },
];

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_trace(&at("trace"), &map_reduce(&["m1", "w1", "w2"], 1, 1)).unwrap();
    fs::create_dir_all(at("results/parts")).unwrap();
    fs::write(at("flow.txt"), "0 1 10 0\n").unwrap();
    fs::write(at("subnet.topo"), SUBNET).unwrap();
    assert!(Command::new("mkfifo").arg(at("a-fifo")).status().unwrap().success());
    fs::create_dir(at("a-folder")).unwrap();
    // Holes: longer than anything that is read, and nothing on the disk.
    fs::File::create(at("long")).unwrap().set_len(5 << 30).unwrap();
    folder
}

/// Two hosts at a switch.
const SUBNET: &str = "vendid=0x2c9\nswitchguid=0x10\nSwitch\t2 \"S-0000000000000010\"\t\t# \"s\" enhanced port 0 lid 1 lmc 0\n\
    [1]\t\"H-0000000000000020\"[1](21) \t\t# \"a\" lid 2 4xQDR\n[2]\t\"H-0000000000000030\"[1](31) \t\t# \"b\" lid 3 4xQDR\n\n\
    caguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"a\"\n[1](21) \t\"S-0000000000000010\"[1]\t\t# lid 2 lmc 0 \"s\" lid 1 4xQDR\n\n\
    caguid=0x30\nCa\t1 \"H-0000000000000030\"\t\t# \"b\"\n[1](31) \t\"S-0000000000000010\"[2]\t\t# lid 3 lmc 0 \"s\" lid 1 4xQDR\n";

/// Runs what must fail, and at once; what it says.
fn fails(folder: &Path, case: &Named, what: &str) -> String {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_replay")]).args(case.arguments).current_dir(folder);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{:?} with {what}: {said}", case.arguments);
    assert!(!said.contains("panicked"), "{:?} with {what}: {said}", case.arguments);
    said
}

#[test]
fn what_names_a_file_takes_regular_ones_up_to_a_limit_only() {
    let folder = folder();
    for case in NAMED {
        fs::write(folder.path().join("x.toml"), case.experiment).unwrap();
        let at = folder.path().join(case.at);
        // What was there before.
        let kept = fs::read(&at).ok();
        let name = Path::new(case.at).file_name().unwrap().to_str().unwrap();
        let regular = "only regular files are read";
        for (target, said) in [
            (folder.path().join("a-fifo"), regular),
            (folder.path().join("a-folder"), regular),
            ("/dev/zero".into(), regular),
            (folder.path().join("long"), case.too_long),
        ] {
            let _ = fs::remove_file(&at);
            symlink(&target, &at).unwrap();
            let found = fails(folder.path(), case, &target.display().to_string());
            // Some follow links first.
            let is_named = found.contains(name) || found.contains(target.to_str().unwrap());
            assert!(found.contains(said) && is_named, "{:?} with {target:?}: {found}", case.arguments);
        }
        fs::remove_file(&at).unwrap();
        if let Some(kept) = kept {
            fs::write(&at, kept).unwrap();
        }
    }
}
