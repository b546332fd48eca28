//! `--memory`: what a merge takes is said before it begins, and one that takes more than it may is refused.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::{World, at, golden_captures};
use merger::build::{Options, Silent};
use merger::built_trace::{trace_with, write_with};
use serde_json::Value;

fn merger(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_merger")).args(arguments).output().unwrap()
}

fn build(capture: &Path, out: &Path, memory: &str) -> Output {
    let (capture, out) = (capture.to_str().unwrap(), out.to_str().unwrap());
    merger(&["build", capture, "--out", out, "--json", "--memory", memory])
}

#[test]
fn a_merge_that_takes_too_much_is_refused_before_it_begins_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("trace"));
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [1, 2], at(0));
    world.say(&mut talk, true, at(1), &[1; 100]);
    world.write(&capture);
    for arguments in [
        vec!["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap(), "--memory", "1MiB"],
        vec!["check", capture.to_str().unwrap(), "--memory", "1MiB"],
    ] {
        let output = merger(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("more than the 1024KiB") && said.contains("10 packets"), "{said}");
        assert!(said.contains("packets-eth0.hpk") && !out.exists(), "{said}");
        // What it proposes is enough.
        let enough = said.split("--memory ").nth(1).unwrap().split([',', ' ']).next().unwrap();
        assert_eq!(build(&capture, &out, enough).status.code(), Some(0), "{said}");
        fs::remove_dir_all(&out).unwrap();
    }
    assert_eq!(merger(&["build", "x", "--out", "y", "--memory", "much"]).status.code(), Some(2));
}

/// A capture of packets without payload, of each the number of its connection, and whether it is a SYN.
fn write_capture(capture: &Path, packets: impl Iterator<Item = (u32, bool)>) {
    let mut pcap: Vec<u8> = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1_u32].map(u32::to_le_bytes).concat();
    for (number, (connection, is_syn)) in (0_u32..).zip(packets) {
        let micros = number * 10;
        let head = [1_700_000_000 + micros / 1_000_000, micros % 1_000_000, 54, 54].map(u32::to_le_bytes).concat();
        let [high, middle, low @ ..] = connection.to_be_bytes();
        let mut frame = [0_u8; 54];
        frame[12] = 8; // IPv4
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        frame[26..34].copy_from_slice(&[10, high, middle, 2, 10, 0, 0, 1]);
        frame[34..38].copy_from_slice(&[low[0], low[1], 0x1f, 0x54]);
        frame[38..42].copy_from_slice(&number.to_be_bytes());
        (frame[46], frame[47]) = (0x50, if is_syn { 0x02 } else { 0x10 });
        pcap.extend([head.as_slice(), &frame].concat());
    }
    fs::create_dir_all(capture.join("w1")).unwrap();
    fs::write(capture.join("w1/eth0.pcap"), pcap).unwrap();
    let manifest =
        r#"{ "host": "w1", "addresses": ["10.0.0.1"], "packets": [ { "file": "eth0.pcap", "interface": "eth0" } ] }"#;
    fs::write(capture.join("w1/manifest.json"), manifest).unwrap();
}

#[test]
fn what_begins_harmless_and_goes_on_as_a_flood_ends_the_merge_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("out"));
    // Packets of one connection, then a SYN each of many others.
    let first = std::iter::repeat_n((40_000, false), 70_000);
    write_capture(&capture, first.chain((0..1_200_000).map(|connection| (connection, true))));
    for command in ["build", "digest"] {
        let mut merger = Command::new(env!("CARGO_BIN_EXE_merger"));
        merger.args([command, capture.to_str().unwrap(), "--out", out.to_str().unwrap(), "--memory", "128MiB"]);
        // What it takes beforehand grows with its threads.
        let output = merger.env("RAYON_NUM_THREADS", "2").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("may hold 128MiB") && said.contains("--memory"), "{command}: {said}");
    }
    let output = build(&capture, &out, "4GiB");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn connections_of_a_begin_are_not_foreseen_again_and_again() {
    const CONNECTIONS: u32 = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let (capture, out) = (folder.path().join("capture"), folder.path().join("out"));
    // Some were open before; others begin one after the other, and no more of them later.
    for begun in [0, CONNECTIONS] {
        write_capture(&capture, (0..10 * CONNECTIONS).map(|number| (number % CONNECTIONS, number < begun)));
        merges_in_180_mib(&capture, &out);
    }
}

fn merges_in_180_mib(capture: &Path, out: &Path) {
    let mut merger = Command::new(env!("CARGO_BIN_EXE_merger"));
    merger.args(["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap(), "--force", "--json"]);
    merger.args(["--memory", "180MiB"]);
    let output = merger.env("RAYON_NUM_THREADS", "2").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let stated: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| stated[name].as_u64().unwrap();
    assert!(of("memory_peak_bytes") <= of("memory_estimate_bytes"), "{stated}");
}

#[test]
fn golden_captures_take_no_more_than_foreseen_and_not_much_less() {
    for capture in golden_captures() {
        let out = tempfile::tempdir().unwrap();
        let output = build(&capture, out.path(), "8GiB");
        let stated: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |name: &str| stated[name].as_u64().unwrap();
        let (foreseen, taken) = (of("memory_estimate_bytes"), of("memory_peak_bytes"));
        assert!(taken > 0 && taken <= foreseen, "{}: {taken} of {foreseen}", capture.display());
        assert!(foreseen <= 4 * taken, "{}: {taken} of {foreseen}", capture.display());
    }
}

#[test]
fn packets_that_lie_in_a_temporary_file_make_the_same_trace() {
    for capture in golden_captures() {
        let made = |packet_bytes: u64| {
            let options = Options { packet_bytes, ..Options::default() };
            trace_with(std::slice::from_ref(&capture), &options, &Silent).unwrap().trace
        };
        // Nothing may stay in memory; some of it; everything.
        let whole = made(1 << 32);
        for packet_bytes in [0, 2 << 20] {
            assert!(made(packet_bytes) == whole, "{} in {packet_bytes} bytes", capture.display());
        }
    }
}

#[test]
fn a_trace_that_is_written_row_by_row_is_the_whole_one_to_the_byte() {
    for capture in golden_captures() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, rows) = (folder.path().join("whole"), folder.path().join("rows"));
        let trace = trace_with(std::slice::from_ref(&capture), &Options::default(), &Silent).unwrap().trace;
        trace_tables::write_trace(&whole, &trace).unwrap();
        let written = write_with(std::slice::from_ref(&capture), &Options::default(), &rows, &Silent).unwrap();
        let files = |folder: &Path| -> BTreeMap<OsString, Vec<u8>> {
            let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
            entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
        };
        let (whole, rows) = (files(&whole), files(&rows));
        assert!(whole.keys().eq(rows.keys()) && whole.len() > 10);
        let other: Vec<&OsString> = whole.keys().filter(|name| whole[*name] != rows[*name]).collect();
        assert!(other.is_empty(), "{}: {other:?}", capture.display());
        let counted = ["messages", "spans", "events", "dependencies"].map(|name| written.rows[name] as usize);
        let there = [trace.messages.len(), trace.spans.len(), trace.events.len(), trace.dependencies.len()];
        assert_eq!(counted, there, "{}", capture.display());
    }
}
