//! What damaged traces become in OpenTelemetry: parents and links lead to spans of the same file, whatever the ids of the tables say.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::export::{otlp, vef};
use proptest::prelude::*;
use serde_json::Value;
use trace::ids::{ConnectionId, EventId, JobId, MessageId, ProcessId};
use trace::rows::Trace;

fn golden() -> Trace {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encrypted");
    TRACE.get_or_init(|| trace_of(&[capture], &Silent).unwrap().trace).clone()
}

/// Spans of a file by their ids.
fn spans(request: &Value) -> BTreeMap<String, Value> {
    let resources = request["resourceSpans"].as_array().unwrap();
    let all = resources.iter().flat_map(|one| one["scopeSpans"][0]["spans"].as_array().unwrap());
    let mut by_id = BTreeMap::new();
    for span in all {
        let id = span["spanId"].as_str().unwrap();
        assert!(id.len() == 16 && span["traceId"].as_str().unwrap().len() == 32, "{span}");
        assert!(by_id.insert(id.to_owned(), span.clone()).is_none(), "twice: {span}");
    }
    by_id
}

/// Each span has its parent and the ends of its links in the file, ends after it began, and is below itself never.
fn check(spans: &BTreeMap<String, Value>) {
    let parent = |span: &Value| span["parentSpanId"].as_str().filter(|id| !id.is_empty()).map(|id| &spans[id]);
    let ns = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    for span in spans.values() {
        assert!(ns(span, "startTimeUnixNano") <= ns(span, "endTimeUnixNano"), "{span}");
        let mut above = HashSet::new();
        let mut at = span;
        while let Some(next) = parent(at) {
            assert_eq!(next["traceId"], span["traceId"], "{span} below {next}");
            assert!(above.insert(next["spanId"].as_str().unwrap()), "{span} is below itself");
            at = next;
        }
        for link in span["links"].as_array().unwrap() {
            assert_eq!(spans[link["spanId"].as_str().unwrap()]["traceId"], link["traceId"], "{link}");
        }
    }
}

fn exported(trace: &Trace) -> BTreeMap<String, Value> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trace.json");
    let written = otlp(trace, &out).unwrap();
    let spans = spans(&serde_json::from_slice(&fs::read(&out).unwrap()).unwrap());
    assert_eq!(spans.len() as u64, written.jobs + written.tasks + written.phases + written.spans);
    check(&spans);
    spans
}

#[test]
fn calls_that_wait_for_each_other_are_not_below_themselves() {
    let mut trace = golden();
    // Of two served calls each is asked for by a call within the other one.
    let [mut first, mut second] = [trace.spans[0].clone(), trace.spans[0].clone()];
    for (span, process) in [(&mut first, 0), (&mut second, 1)] {
        (span.process, span.thread, span.kind) = (ProcessId(process), 7, "rpc".to_owned());
        span.request = Some(MessageId(process));
    }
    let [mut within_first, mut within_second] = [first.clone(), second.clone()];
    for (span, request) in [(&mut within_first, 1), (&mut within_second, 0)] {
        (span.kind, span.request) = ("call".to_owned(), Some(MessageId(request)));
        (span.begin_ns, span.end_ns) = (span.begin_ns + 1, span.end_ns.max(span.begin_ns + 2) - 1);
    }
    trace.processes.iter_mut().for_each(|process| process.hadoop = true);
    trace.spans = vec![first, second, within_first, within_second];
    trace.tasks.clear();
    let spans = exported(&trace);
    let roots = spans.values().filter(|span| span["parentSpanId"] == "" && span["name"] != "job");
    assert_eq!(roots.count(), 1, "the circle is cut once: {spans:#?}");
}

#[test]
fn the_same_trace_has_the_same_ids() {
    let trace = golden();
    assert_eq!(exported(&trace), exported(&trace));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn ids_that_lead_nowhere_and_times_in_disorder_end_nothing(
        edits in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), any::<u32>(), any::<bool>()), 1..60)
    ) {
        let mut trace = golden();
        for (what, row, value, is_small) in edits {
            // Half of the ids are of rows that there are.
            let id = if is_small { value % 40 } else { value };
            match what {
                0 => row.get_mut_of(&mut trace.spans).process = ProcessId(id),
                1 => row.get_mut_of(&mut trace.spans).request = Some(MessageId(id)),
                2 => row.get_mut_of(&mut trace.spans).end_ns = u64::from(value),
                3 => row.get_mut_of(&mut trace.messages).connection = ConnectionId(id),
                4 => row.get_mut_of(&mut trace.tasks).job = JobId(id),
                5 => row.get_mut_of(&mut trace.tasks).process = Some(ProcessId(id)),
                6 => row.get_mut_of(&mut trace.connections).client_process = Some(ProcessId(id)),
                _ => row.get_mut_of(&mut trace.dependencies).on_event = EventId(id),
            }
        }
        exported(&trace);
        // A graph that makes no sense is refused, and never ends the program.
        let folder = tempfile::tempdir().unwrap();
        let _ = vef(&trace, None, &folder.path().join("job.vef"));
    }
}

trait OfRows {
    fn get_mut_of<'r, T>(&self, rows: &'r mut [T]) -> &'r mut T;
}

impl OfRows for prop::sample::Index {
    fn get_mut_of<'r, T>(&self, rows: &'r mut [T]) -> &'r mut T {
        let index = self.index(rows.len());
        &mut rows[index]
    }
}
