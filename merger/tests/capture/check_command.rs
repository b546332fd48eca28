//! `merger build` and `merger check` from the shell: exit codes, keys, and a check that can fail.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{World, at};
use serde_json::Value;
use trace::rows::ConnectionRow;
use trace::stderr::error_chain;
use trace_tables::read_rows;

fn merger(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_merger")).args(arguments).output().unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn world(with_owners: bool) -> World {
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    if with_owners {
        world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    }
    world.say(&mut talk, true, at(1), &rpc_preamble());
    for call in 0..20 {
        world.say(&mut talk, true, at(10 + call * 10), &rpc_request(call as i64, "sendHeartbeat", 30));
        world.say(&mut talk, false, at(11 + call * 10), &rpc_response(call as i64, 30));
    }
    world
}

const KEYS: [&str; 10] = [
    "payload_bytes",
    "owned_both_ends_share",
    "owned_connections_share",
    "in_known_message_share",
    "causality_violations",
    "captured_vs_kernel_error",
    "shuffle_bytes_error",
    "hdfs_read_bytes_error",
    "hdfs_write_bytes_error",
    "reasons",
];

#[test]
fn a_trace_with_a_wrong_manifest_is_no_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, trace) = (folder.path().join("capture"), folder.path().join("trace"));
    world(true).write(&capture);
    assert!(merger(&["build", path(&capture), "--out", path(&trace)]).status.success());
    for (manifest, expected) in [
        (
            "{\"version\":2,\"later\":[]}",
            "manifest.json: format version 2, this program reads version 1; merge the capture again",
        ),
        ("{", "manifest.json: EOF"),
    ] {
        fs::write(trace.join("manifest.json"), manifest).unwrap();
        let checked = merger(&["check", path(&trace)]);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.code() == Some(2) && said.contains(expected), "{said}");
    }
}

#[test]
fn a_table_over_which_the_parquet_library_panics_is_an_error_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, trace) = (folder.path().join("capture"), folder.path().join("trace"));
    world(true).write(&capture);
    assert!(merger(&["build", path(&capture), "--out", path(&trace)]).status.success());
    let table = trace.join("connections.parquet");
    let whole = fs::read(&table).unwrap();
    let mut state = 1u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let is_one_found = (0..20_000).any(|_| {
        let mut damaged = whole.clone();
        for _ in 0..[1, 3, 20][below(3)] {
            damaged[below(whole.len())] = below(256) as u8;
        }
        fs::write(&table, damaged).unwrap();
        let read = read_rows::<ConnectionRow>(&trace);
        read.is_err_and(|error| error_chain(&error).contains("the Parquet library gave up on it"))
    });
    assert!(is_one_found);
    let checked = merger(&["check", path(&trace)]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(checked.status.code(), Some(2), "{said}");
    assert!(!said.contains("panicked") && said.lines().count() == 1, "{said}");
    assert!(said.contains("connections.parquet") && said.contains("the file is damaged"), "{said}");
}

#[test]
fn a_trace_is_built_checked_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, trace) = (folder.path().join("capture"), folder.path().join("trace"));
    world(true).write(&capture);
    let built = merger(&["build", path(&capture), "--out", path(&trace), "--json"]);
    assert_eq!(built.status.code(), Some(0), "{}", String::from_utf8_lossy(&built.stderr));
    let summary: Value = serde_json::from_slice(&built.stdout).unwrap();
    assert_eq!(summary["rows"]["connections"], 1);
    for of in [&trace, &capture] {
        let checked = merger(&["check", path(of), "--json"]);
        assert_eq!(checked.status.code(), Some(0));
        let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
        for key in KEYS {
            assert!(report.get(key).is_some(), "{key}");
        }
        assert_eq!(report["owned_both_ends_share"], 1.0);
        assert_eq!(report["in_known_message_share"], 1.0);
        assert_eq!(report["causality_violations"], 0);
        for missing in
            ["captured_vs_kernel_error", "shuffle_bytes_error", "hdfs_read_bytes_error", "hdfs_write_bytes_error"]
        {
            assert!(report[missing].is_null() && report["reasons"][missing].is_string(), "{missing}");
        }
    }
    assert_eq!(merger(&["check", path(&trace)]).status.code(), Some(0));
    let refused = merger(&["check", path(&trace), "--memory", "100KiB"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.starts_with("merger: out of memory: it holds ") && said.contains("may hold 100KiB"), "{said}");
    let exported = merger(&["export", path(&trace), "--to", "paraver", "--out", path(&folder.path().join("p"))]);
    assert_eq!(exported.status.code(), Some(0), "{}", String::from_utf8_lossy(&exported.stderr));
}

#[test]
fn the_same_capture_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture");
    world(true).write(&capture);
    for name in ["a", "b"] {
        assert_eq!(merger(&["build", path(&capture), "--out", path(&folder.path().join(name))]).status.code(), Some(0));
    }
    for file in fs::read_dir(folder.path().join("a")).unwrap().map(|entry| entry.unwrap().file_name()) {
        let [a, b] = ["a", "b"].map(|name| fs::read(folder.path().join(name).join(&file)).unwrap());
        assert_eq!(a, b, "{}", file.display());
    }
}

#[test]
fn a_missed_target_is_exit_code_1_and_named() {
    let folder = tempfile::tempdir().unwrap();
    world(false).write(folder.path());
    let checked = merger(&["check", path(folder.path()), "--json"]);
    assert_eq!(checked.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["owned_both_ends_share"], 0.0);
    assert!(report["missed"][0].as_str().unwrap().starts_with("owned_both_ends_share"));
    assert_eq!(report["detail"]["without_owner"][0]["reason"], "client: no owner; server: no owner");
}

#[test]
fn what_cannot_be_read_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    for arguments in [
        vec!["check", "/nowhere"],
        vec!["build", "/nowhere", "--out", path(&trace)],
        vec!["export", "/nowhere", "--to", "paraver", "--out", path(&trace)],
        vec!["check", path(folder.path())],
    ] {
        let output = merger(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && !String::from_utf8_lossy(&output.stderr).contains("panicked"));
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, trace) = (folder.path().join("capture"), folder.path().join("trace"));
    world(true).write(&capture);
    let build =
        |extra: &[&str]| merger(&[&["build", path(&capture), "--out", path(&trace)], extra].concat()).status.code();
    assert_eq!(build(&[]), Some(0));
    assert_eq!(build(&[]), Some(2), "a trace is there");
    let victim = folder.path().join("victim");
    fs::write(&victim, "a letter").unwrap();
    let put_link = || {
        fs::remove_file(trace.join("events.parquet")).unwrap();
        std::os::unix::fs::symlink(&victim, trace.join("events.parquet")).unwrap();
    };
    put_link();
    assert_eq!(build(&["--force"]), Some(0));
    assert!(trace.join("events.parquet").symlink_metadata().unwrap().is_file());
    fs::remove_file(trace.join("hosts.parquet")).unwrap();
    assert_eq!(build(&["--force"]), Some(2), "it is no trace any more");
    // As a merge leaves it that is ended while it writes.
    fs::remove_file(trace.join("manifest.json")).unwrap();
    assert_eq!(build(&[]), Some(2), "tables are there");
    assert_eq!(build(&["--force"]), Some(0));
    fs::remove_file(trace.join("manifest.json")).unwrap();
    fs::write(trace.join("notes.txt"), "mine").unwrap();
    assert_eq!(build(&["--force"]), Some(2), "something else lies beside them");
    fs::remove_file(trace.join("notes.txt")).unwrap();
    put_link();
    assert_eq!(build(&["--force"]), Some(2), "a link is no table");
    assert_eq!(fs::read_to_string(victim).unwrap(), "a letter");
}

#[test]
fn golden_captures_meet_all_targets() {
    for capture in crate::world::golden_captures() {
        let checked = merger(&["check", path(&capture), "--json"]);
        let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(checked.status.code(), Some(0), "{}: {}", capture.display(), report["missed"]);
        for key in KEYS {
            assert!(!report[key].is_null(), "{}: {key}: {}", capture.display(), report["reasons"]);
        }
    }
}

#[test]
fn a_verdict_has_colours_on_a_terminal_that_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture");
    world(false).write(&capture);
    let on_terminal = |no_color: &str| {
        let line = format!("{} check {} 2>/dev/null", env!("CARGO_BIN_EXE_merger"), path(&capture));
        let mut script = Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", no_color);
        String::from_utf8(script.env("SHELL", "/bin/sh").output().unwrap().stdout).unwrap()
    };
    assert!(
        on_terminal("").starts_with("\u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m: 2 targets are missed"),
        "{}",
        on_terminal("")
    );
    assert!(on_terminal("1").starts_with("FAIL: ") && !on_terminal("1").contains('\u{1b}'));
    let piped = merger(&["check", path(&capture)]);
    assert!(piped.stdout.starts_with(b"FAIL: ") && !piped.stdout.contains(&0x1b));
}
