//! The golden captures, stripped of their payload, merge to what they are with it: by what the JVMs said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use hadoptic_tests::{experiment_file, golden, run, run_json};
use serde_json::Value;
use trace::rows::{ConnectionRow, MessageKind, MessageRow};
use trace_tables::Trace;

/// How far begin and end of a message may be off, bytes: a name of a user is that much longer or shorter than assumed.
const TOLERANCE_BYTES: u64 = 16;
/// Least share of the bytes of each protocol.
const WANTED: f64 = 0.95;

/// All golden captures, of whatever version.
fn captures() -> Vec<PathBuf> {
    let mut captures: Vec<PathBuf> = fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("truth.json").is_file())
        .collect();
    captures.sort();
    assert!(captures.len() >= 2, "{captures:?}");
    captures
}

fn build(capture: &Path, out: &Path) -> Trace {
    let built = run("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Trace::read(out).unwrap()
}

fn strip(capture: &Path, out: &Path) {
    let done = run("merger", &["strip", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Messages of a protocol, and those of them that were found again.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    messages: u64,
    bytes: u64,
    within: u64,
    within_bytes: u64,
    exact: u64,
    exact_bytes: u64,
    named: u64,
    named_bytes: u64,
}

/// A connection by what does not depend on how its messages were found.
fn owners(trace: &Trace, row: &ConnectionRow) -> (String, String, [Option<(u32, u64)>; 2], u64) {
    let process = |process: Option<trace::ids::ProcessId>| {
        process.map(|process| &trace.processes[process.index()]).map(|row| (row.pid, row.start_ticks))
    };
    (row.client.clone(), row.server.clone(), [process(row.client_process), process(row.server_process)], row.first_ns)
}

fn named(message: &MessageRow) -> impl PartialEq + '_ {
    (
        &message.name,
        message.call,
        message.block,
        (&message.attempt, &message.map, message.reduce, message.hop),
        message.app_bytes,
        message.unread_bytes,
    )
}

fn compare(truth: &Trace, stripped: &Trace) -> BTreeMap<String, Found> {
    let mut by_connection: HashMap<_, Vec<&MessageRow>> = HashMap::new();
    for message in &stripped.messages {
        let connection = owners(stripped, &stripped.connections[message.connection.index()]);
        by_connection.entry((connection, message.from_client, message.kind.as_str())).or_default().push(message);
    }
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for message in &truth.messages {
        let row = &truth.connections[message.connection.index()];
        let found = found.entry(row.protocol.clone()).or_default();
        found.messages += 1;
        found.bytes += message.bytes;
        let off = |other: &MessageRow| {
            let ends = (other.offset + other.bytes).abs_diff(message.offset + message.bytes);
            ends.max(other.offset.abs_diff(message.offset))
        };
        let key = (owners(truth, row), message.from_client, message.kind.as_str());
        let nearest = by_connection.get(&key).and_then(|all| all.iter().min_by_key(|other| off(other)));
        let Some(nearest) = nearest.filter(|nearest| off(nearest) <= TOLERANCE_BYTES) else { continue };
        (found.within, found.within_bytes) = (found.within + 1, found.within_bytes + message.bytes);
        if off(nearest) == 0 {
            (found.exact, found.exact_bytes) = (found.exact + 1, found.exact_bytes + message.bytes);
        }
        if named(nearest) == named(message) {
            (found.named, found.named_bytes) = (found.named + 1, found.named_bytes + message.bytes);
        }
    }
    found
}

#[test]
fn messages_of_stripped_captures_are_those_of_whole_ones() {
    for capture in captures() {
        let folder = tempfile::tempdir().unwrap();
        let bare = folder.path().join("stripped");
        strip(&capture, &bare);
        let truth = build(&capture, &folder.path().join("a"));
        let stripped = build(&bare, &folder.path().join("b"));
        let by_payload = |evidence: &str| matches!(evidence, "framing" | "counted");
        assert!(stripped.messages.iter().all(|message| !by_payload(&message.evidence)), "there was payload left");
        let unknown = stripped.messages.iter().filter(|message| message.kind == MessageKind::Unknown);
        println!(
            "{}: {} messages, {} bytes of unknown kind",
            capture.display(),
            stripped.messages.len(),
            unknown.map(|message| message.bytes).sum::<u64>()
        );
        for (protocol, found) in compare(&truth, &stripped) {
            let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
            println!(
                "{protocol:14} {:6} messages {:10} bytes | kind, owners and range {:.3}% {:.4}% | to the byte {:.3}% \
                 {:.4}% | and name, task, block, data {:.3}% {:.4}%",
                found.messages,
                found.bytes,
                share(found.within, found.messages),
                share(found.within_bytes, found.bytes),
                share(found.exact, found.messages),
                share(found.exact_bytes, found.bytes),
                share(found.named, found.messages),
                share(found.named_bytes, found.bytes),
            );
            assert!(found.within_bytes as f64 >= WANTED * found.bytes as f64, "{protocol}: {found:?}");
            assert!(found.within as f64 >= WANTED * found.messages as f64, "{protocol}: {found:?}");
            // No record of a JVM tells the path of another HTTP request.
            if protocol != "http" {
                assert!(found.named_bytes as f64 >= WANTED * found.bytes as f64, "{protocol}: {found:?}");
            }
        }
    }
}

/// The share of each kind of evidence among dependencies.
fn evidence(report: &Value) -> BTreeMap<String, f64> {
    serde_json::from_value(report["detail"]["dependency_share_by_evidence"].clone()).unwrap()
}

#[test]
fn a_stripped_terasort_checks_depends_and_replays_like_the_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("stripped");
    strip(&golden("terasort"), &bare);
    let traces = [(golden("terasort"), folder.path().join("a")), (bare, folder.path().join("b"))];
    let [whole, stripped] = traces.map(|(capture, out)| {
        build(&capture, &out);
        let report = run_json("merger", &["check", out.to_str().unwrap()]).unwrap();
        let results = tempfile::tempdir().unwrap();
        let experiment = experiment_file("lab-100mbit.toml");
        let arguments = [
            "run",
            experiment.to_str().unwrap(),
            "--trace",
            out.to_str().unwrap(),
            "--out",
            results.path().to_str().unwrap(),
        ];
        (report, run_json("replay", &arguments).unwrap())
    });
    assert!(stripped.0["missed"].as_array().unwrap().is_empty(), "{:#}", stripped.0["missed"]);
    let known_by = &stripped.0["detail"]["known_by"];
    assert!(known_by["jvm"]["byte_share"].as_f64().unwrap() >= WANTED, "{known_by:#}");
    assert!(known_by["payload"].is_null(), "{known_by:#}");
    assert!(whole.0["detail"]["known_by"]["payload"]["byte_share"].as_f64().unwrap() >= WANTED);

    let (a, b) = (evidence(&whole.0), evidence(&stripped.0));
    println!("dependencies, whole {a:?}\nstripped {b:?}");
    for (kind, share) in &a {
        let other = b.get(kind).copied().unwrap_or(0.0);
        assert!((share - other).abs() <= 0.02, "{kind}: {share} of the whole capture, {other} of the stripped one");
    }
    let time = |summary: &Value, key: &str| summary[key].as_f64().unwrap();
    let (recorded, a, b) =
        (time(&whole.1, "recorded_job_time_s"), time(&whole.1, "job_time_s"), time(&stripped.1, "job_time_s"));
    println!("recorded {recorded} s, replayed from the whole capture {a} s, from the stripped one {b} s");
    assert!((b / a - 1.0).abs() <= 0.01, "whole {a} s, stripped {b} s");
    assert!((b / recorded - 1.0).abs() <= 0.05, "recorded {recorded} s, stripped {b} s");
}
