//! A replay written as a trace is what the replay was: replayed over the same network it takes the same time to the
//! nanosecond, and what it says of messages, tasks and spans fits together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use hadoptic_tests::{experiment_file, golden, run, run_json};
use serde_json::Value;
use trace::rows::{EventKind, Trace};
use trace_tables::read_trace;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Summary of a replay of `trace`, which is also written as a trace where wanted.
fn replay(experiment: &str, trace: &Path, simulated: Option<&Path>) -> Value {
    let results = tempfile::tempdir().unwrap();
    let experiment = experiment_file(experiment);
    let mut arguments = vec!["run", text(&experiment), "--trace", text(trace), "--out", text(results.path())];
    arguments.extend(simulated.map(|folder| ["--simulated-trace", text(folder)]).into_iter().flatten());
    run_json("replay", &arguments).unwrap()
}

fn number(summary: &Value, key: &str) -> f64 {
    summary[key].as_f64().unwrap_or_else(|| panic!("{key} is missing: {summary:#}"))
}

/// Rows are numbered in the order of time; nothing ends before it begins, and no message arrives before it leaves.
fn check_order(trace: &Trace) {
    for (number, event) in trace.events.iter().enumerate() {
        assert_eq!(event.event.index(), number);
        assert!(event.recorded_delivered_ns >= event.recorded_ns, "{event:?}");
    }
    assert!(trace.events.is_sorted_by_key(|event| event.recorded_ns));
    for (number, message) in trace.messages.iter().enumerate() {
        assert_eq!(message.message.index(), number);
        assert!((message.sent_ns..=message.delivered_ns).contains(&message.sent_end_ns), "{message:?}");
    }
    assert!(trace.messages.is_sorted_by_key(|message| message.sent_ns));
    for event in trace.events.iter().filter(|event| event.kind == EventKind::Send) {
        let Some(message) = event.message else { continue };
        let row = &trace.messages[message.index()];
        assert_eq!(Some(row.connection), event.connection, "{event:?}");
        assert!(
            row.sent_ns <= event.recorded_ns && event.recorded_delivered_ns <= row.delivered_ns,
            "{row:?} {event:?}"
        );
    }
    for span in &trace.spans {
        assert!(span.received_ns <= span.begin_ns && span.begin_ns <= span.end_ns, "{span:?}");
    }
    for dependency in &trace.dependencies {
        let [event, cause] = [dependency.event, dependency.on_event].map(|event| &trace.events[event.index()]);
        assert!(cause.recorded_ns <= event.recorded_ns, "{event:?} waits for {cause:?}");
    }
}

/// The longest span of each kind and name, nanoseconds.
fn longest(trace: &Trace) -> BTreeMap<(&str, &str), u64> {
    let mut longest = BTreeMap::new();
    for span in &trace.spans {
        let known = longest.entry((span.kind.as_str(), span.name.as_str())).or_insert(0);
        *known = (span.end_ns - span.begin_ns).max(*known);
    }
    longest
}

fn exported(trace: &Path, format: &str, out: &Path) {
    let export = run("merger", &["export", text(trace), "--to", format, "--out", text(out)]).unwrap();
    assert!(export.status.success(), "{format}: {}", String::from_utf8_lossy(&export.stderr));
}

/// The ids of traces in OTLP's JSON, all of whose resources say whose times they have.
fn ids_of_traces(request: &Value, times: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for resource_spans in request["resourceSpans"].as_array().unwrap() {
        let attributes = resource_spans["resource"]["attributes"].as_array().unwrap();
        let printed = attributes.iter().find(|attribute| attribute["key"] == "hadoptic.times").unwrap();
        assert_eq!(printed["value"]["stringValue"], times);
        let spans = resource_spans["scopeSpans"][0]["spans"].as_array().unwrap();
        ids.extend(spans.iter().map(|span| span["traceId"].as_str().unwrap().to_owned()));
    }
    ids
}

#[test]
fn a_simulated_trace_replays_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["terasort", "wordcount"] {
        let recorded = folder.path().join(name);
        let built = run("merger", &["build", text(&golden(name)), "--out", text(&recorded)]).unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        for experiment in
            ["lab-100mbit.toml", "lab-10mbit.toml", "ethernet-10g.toml", "lightness-ops.toml", "infiniband.toml"]
        {
            let simulated = folder.path().join(format!("{name}-{experiment}"));
            let first = replay(experiment, &recorded, Some(&simulated));
            let trace = read_trace(&simulated).unwrap();
            check_order(&trace);
            let second = replay(experiment, &simulated, None);
            let context = format!("{name} over {experiment}");
            let took = number(&first, "job_time_s");
            for (key, of) in [("job_time_s", &second), ("recorded_job_time_s", &second)] {
                assert!((number(of, key) - took).abs() < 1e-8, "{context}: {key} {} and {took}", number(of, key));
            }
            for (was, is) in first["phases"].as_array().unwrap().iter().zip(second["phases"].as_array().unwrap()) {
                let off = (number(was, "seconds") - number(is, "recorded_seconds")).abs();
                assert!(off < 1e-8, "{context}: {was} and {is}");
            }
        }
        let simulated = folder.path().join(format!("{name}-ethernet-10g.toml"));
        // On a faster network nothing takes longer, what is left over when the job ends among it.
        let (was, is) = (read_trace(&recorded).unwrap(), read_trace(&simulated).unwrap());
        let was = longest(&was);
        for (kind, took) in longest(&is) {
            let allowed = was[&kind] + was[&kind] / 10 + 50_000_000;
            assert!(took <= allowed, "{name}: {kind:?} takes {took} ns, as recorded at most {} ns", was[&kind]);
            // The golden terasort's shuffle took seconds at 100 Mbit/s.
            if name == "terasort" && matches!(kind.0, "shuffle" | "fetch") {
                assert!(took < 1_000_000_000, "{kind:?} takes {took} ns");
            }
        }
        for format in ["paraver", "perfetto", "flows", "coflow", "goal", "dimemas", "vef"] {
            exported(&simulated, format, &folder.path().join(format!("{name}.{format}")));
        }
        // In a store of OpenTelemetry both stand beside each other: with ids of their own, and a word that tells them apart.
        let [recorded, simulated] = [(recorded, "recorded"), (simulated, "simulated")].map(|(trace, times)| {
            let file = folder.path().join(format!("{name}-{times}.json"));
            exported(&trace, "otlp", &file);
            ids_of_traces(&serde_json::from_slice(&fs::read(file).unwrap()).unwrap(), times)
        });
        assert!(recorded.len() == simulated.len() && recorded.is_disjoint(&simulated), "{recorded:?} {simulated:?}");
    }
}

#[test]
fn a_simulated_trace_is_written_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let built = run("merger", &["build", text(&golden("terasort")), "--out", text(&trace)]).unwrap();
    assert!(built.status.success());
    let refused = |experiment: &str, more: &[&str], expected: &str| {
        let experiment = experiment_file(experiment);
        let out = folder.path().join("results");
        let mut arguments = vec!["run", text(&experiment), "--trace", text(&trace), "--out", text(&out)];
        arguments.extend(["--simulated-trace", text(&trace)]);
        arguments.extend(more);
        let output = run("replay", &arguments).unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!out.exists(), "nothing was run");
    };
    refused("ideal.toml", &[], "it is there already");
    refused("ethernet-10g.toml", &["--set", "workload.cpu_factor=[1.0,0.5]"], "is a sweep");
    assert!(read_trace(&trace).is_ok(), "the trace is as it was");
}
