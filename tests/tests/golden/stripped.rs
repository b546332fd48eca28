//! The golden captures, stripped of their payload, merge to what they are with it: by what the JVMs said.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use hadoptic_tests::{experiment_file, golden, run, run_json};
use serde_json::Value;
use trace::rows::{MessageKind, MessageRow, Trace};
use trace_tables::read_trace;

/// How far begin and end of a message may be off, bytes: a name of a user is that much longer or shorter than assumed.
const TOLERANCE_BYTES: u64 = 16;
/// Least share of the bytes of each protocol.
const WANTED: f64 = 0.95;

/// All golden captures, of whatever version, or those in the folder that HADOPTIC_CAPTURES names.
fn captures() -> Vec<PathBuf> {
    let folder = std::env::var_os("HADOPTIC_CAPTURES").map_or_else(|| golden(""), PathBuf::from);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    captures.sort();
    assert!(!captures.is_empty());
    captures
}

fn build(capture: &Path, out: &Path) -> Trace {
    let built = run("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    read_trace(out).unwrap()
}

fn strip(capture: &Path, out: &Path) {
    let done = run("merger", &["strip", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Copies a stripped capture with other records of its JVMs: `keep` may change each, or refuse it.
fn with_records(capture: &Path, out: &Path, keep: impl Fn(&mut Value) -> bool) {
    for host in fs::read_dir(capture).unwrap().map(|entry| entry.unwrap().path()) {
        let to = out.join(host.file_name().unwrap());
        if host.is_file() {
            fs::create_dir_all(out).unwrap();
            fs::copy(&host, to).unwrap();
            continue;
        }
        fs::create_dir_all(&to).unwrap();
        for path in fs::read_dir(&host).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.starts_with("jvm-") {
                fs::copy(&path, to.join(name)).unwrap();
                continue;
            }
            let (mut records, _) = trace::files::read_json_lines::<Value>(&path).unwrap();
            records.retain_mut(&keep);
            let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
            fs::write(to.join(name.trim_end_matches(".zst")), lines).unwrap();
        }
    }
}

/// Messages, and those of them that were found again.
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

impl Found {
    fn add(&mut self, message: &MessageRow, nearest: Option<&MessageRow>) {
        let off = nearest.map_or(u64::MAX, |nearest| off(message, nearest));
        let same = nearest.is_some_and(|nearest| named(nearest) == named(message));
        (self.messages, self.bytes) = (self.messages + 1, self.bytes + message.bytes);
        if off <= TOLERANCE_BYTES {
            (self.within, self.within_bytes) = (self.within + 1, self.within_bytes + message.bytes);
            if off == 0 {
                (self.exact, self.exact_bytes) = (self.exact + 1, self.exact_bytes + message.bytes);
            }
            if same {
                (self.named, self.named_bytes) = (self.named + 1, self.named_bytes + message.bytes);
            }
        }
    }

    fn show(&self, what: &str) {
        let share = |part: u64, whole: u64| format!("{:.3}%", 100.0 * part as f64 / whole as f64);
        println!(
            "{what:20} {:6} messages {:10} bytes | kind, owners and range {} {} | to the byte {} {} | name, task, block, \
             data {} {}",
            self.messages,
            self.bytes,
            share(self.within, self.messages),
            share(self.within_bytes, self.bytes),
            share(self.exact, self.messages),
            share(self.exact_bytes, self.bytes),
            share(self.named, self.messages),
            share(self.named_bytes, self.bytes),
        );
    }

    fn byte_share(&self) -> f64 {
        self.within_bytes as f64 / self.bytes as f64
    }
}

/// By how much begin or end of two messages differ.
fn off(a: &MessageRow, b: &MessageRow) -> u64 {
    (a.offset + a.bytes).abs_diff(b.offset + b.bytes).max(a.offset.abs_diff(b.offset))
}

fn named(message: &MessageRow) -> impl PartialEq + '_ {
    let task = (&message.attempt, &message.map, message.reduce);
    (&message.name, message.call, message.block, task, message.hop, message.app_bytes)
}

/// A connection, whose it is, and in it one direction and kind of messages.
type Place = (String, String, [Option<(u32, u64)>; 2], u64, bool, &'static str);

fn place(trace: &Trace, message: &MessageRow) -> Place {
    let row = &trace.connections[message.connection.index()];
    let process = |process: Option<trace::ids::ProcessId>| {
        process.map(|process| &trace.processes[process.index()]).map(|row| (row.pid, row.start_ticks))
    };
    let owners = [process(row.client_process), process(row.server_process)];
    (row.client.clone(), row.server.clone(), owners, row.first_ns, message.from_client, message.kind.as_str())
}

fn by_place(trace: &Trace) -> HashMap<Place, Vec<&MessageRow>> {
    let mut messages: HashMap<_, Vec<_>> = HashMap::new();
    for message in &trace.messages {
        messages.entry(place(trace, message)).or_default().push(message);
    }
    messages
}

/// The messages of `of`, by `key`, as they are found in `other`.
fn find(of: &Trace, other: &Trace, key: impl Fn(&MessageRow) -> String) -> BTreeMap<String, Found> {
    let others = by_place(other);
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for message in &of.messages {
        let same = others.get(&place(of, message));
        let nearest = same.and_then(|all| all.iter().min_by_key(|other| off(message, other)).copied());
        found.entry(key(message)).or_default().add(message, nearest);
    }
    found
}

fn by_protocol(truth: &Trace, stripped: &Trace) -> BTreeMap<String, Found> {
    find(truth, stripped, |message| truth.connections[message.connection.index()].protocol.clone())
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
        println!("{}", capture.display());
        for (evidence, found) in find(&stripped, &truth, |message| message.evidence.clone()) {
            found.show(&format!("  of \"{evidence}\""));
        }
        for (protocol, found) in by_protocol(&truth, &stripped) {
            found.show(&protocol);
            assert!(found.byte_share() >= WANTED, "{protocol}: {found:?}");
            assert!(found.within as f64 >= WANTED * found.messages as f64, "{protocol}: {found:?}");
            // No record of a JVM tells the path of another HTTP request.
            if protocol != "http" {
                assert!(found.named_bytes as f64 >= WANTED * found.bytes as f64, "{protocol}: {found:?}");
            }
        }
    }
}

fn is(record: &Value, kinds: &[&str]) -> bool {
    record["k"].as_str().is_some_and(|kind| kinds.contains(&kind))
}

/// Which records there are, for people; their least share of bytes that is found again; which are kept.
type Case = (&'static str, f64, fn(&mut Value) -> bool);

#[test]
fn agents_at_one_side_or_with_coarse_clocks_are_enough() {
    let cases: [Case; 4] = [
        ("servers only", WANTED, |record| !is(record, &["call", "block_read", "block_write", "fetch"])),
        ("clients only", 0.9, |record| !is(record, &["rpc", "block", "shuffle_served"])),
        ("whole milliseconds", WANTED, |record| {
            for (key, value) in record.as_object_mut().unwrap() {
                let is_time =
                    matches!(key.as_str(), "t" | "t0" | "t1" | "received" | "sent" | "begin" | "end" | "responded");
                if let Some(ns) = value.as_u64().filter(|_| is_time) {
                    *value = Value::from(ns / 1_000_000 * 1_000_000);
                }
            }
            true
        }),
        // Owners and roles are known, and nothing else: then nothing is claimed.
        ("no operations", 0.0, |record| {
            !is(record, &["rpc", "call", "block", "block_read", "block_write", "fetch", "shuffle_served"])
        }),
    ];
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("stripped");
    strip(&golden("terasort"), &bare);
    let truth = build(&golden("terasort"), &folder.path().join("truth"));
    for (name, wanted, keep) in cases {
        let capture = folder.path().join(name);
        with_records(&bare, &capture, keep);
        let found = build(&capture, &folder.path().join(format!("{name} trace")));
        println!("{name}");
        for (protocol, found) in by_protocol(&truth, &found) {
            found.show(&format!("  {protocol}"));
            // That it is HTTP is known by what a server says of its other listeners.
            let untold = protocol == "http" && name == "clients only";
            assert!(untold || found.byte_share() >= wanted, "{name}: {protocol}: {found:?}");
        }
        if wanted == 0.0 {
            assert!(found.messages.iter().all(|message| message.kind == MessageKind::Unknown));
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
