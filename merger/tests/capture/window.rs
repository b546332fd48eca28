//! `--from`, `--to`, `--job`: a trace of a part of a capture holds the rows of the whole one that lie in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use merger::build::{Options, Silent};
use merger::built_trace::trace_with;
use merger::window::Window;
use trace::ids::{ConnectionId, MessageId};
use trace::rows::{ConnectionRow, MessageRow, SpanRow, Trace};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

fn trace(capture: &Path, window: Window) -> Trace {
    trace_with(&[capture.to_owned()], &Options { window, ..Options::default() }, &Silent).unwrap().trace
}

/// A row without the numbers of others, which differ where there are fewer of them.
fn connection(row: &ConnectionRow) -> ConnectionRow {
    ConnectionRow { connection: ConnectionId(0), ..row.clone() }
}

fn message(trace: &Trace, row: &MessageRow) -> (String, String, u64, MessageRow) {
    let of = &trace.connections[row.connection.index()];
    let row = MessageRow { message: MessageId(0), connection: ConnectionId(0), ..row.clone() };
    (of.client.clone(), of.server.clone(), of.first_ns, row)
}

fn span(row: &SpanRow) -> SpanRow {
    SpanRow { connection: None, request: None, response: None, ..row.clone() }
}

#[test]
fn rows_are_those_of_the_whole_trace_that_lie_in_the_window() {
    for capture in ["terasort", "wordcount", "encrypted"] {
        let capture = golden(capture);
        let whole = trace(&capture, Window::default());
        let (start, third) = (whole.manifest.start_ns, (whole.manifest.end_ns - whole.manifest.start_ns) / 3);
        let (from, to) = (start + third, start + 2 * third);
        let part = trace(&capture, Window { from_ns: Some(from), to_ns: Some(to), job: None });
        assert_eq!((part.manifest.start_ns, part.manifest.end_ns), (from, to));
        assert_eq!(part.processes.len(), whole.processes.len());

        let inside = |row: &&ConnectionRow| row.first_ns <= to && row.last_ns >= from;
        let expected: Vec<_> = whole.connections.iter().filter(inside).map(connection).collect();
        assert!(!expected.is_empty() && expected.len() < whole.connections.len());
        assert_eq!(part.connections.iter().map(connection).collect::<Vec<_>>(), expected);

        let inside = |row: &&MessageRow| row.sent_ns <= to && row.delivered_ns >= from;
        let expected: Vec<_> = whole.messages.iter().filter(inside).map(|row| message(&whole, row)).collect();
        let found: Vec<_> = part.messages.iter().map(|row| message(&part, row)).collect();
        assert!(!expected.is_empty() && expected.len() < whole.messages.len());
        assert_eq!(found.len(), expected.len());
        let other = found.iter().zip(&expected).find(|(a, b)| a != b);
        assert!(other.is_none(), "{other:#?}");

        let inside = |row: &&SpanRow| row.begin_ns <= to && row.end_ns >= from;
        let expected: Vec<_> = whole.spans.iter().filter(inside).map(span).collect();
        assert_eq!(part.spans.iter().map(span).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn of_a_job_its_tasks_are_those_of_the_whole_trace() {
    let capture = golden("terasort");
    let whole = trace(&capture, Window::default());
    for job in &whole.jobs {
        let part = trace(&capture, Window { job: Some(job.id.clone()), ..Window::default() });
        assert_eq!(part.jobs.iter().map(|row| &row.id).collect::<Vec<_>>(), [&job.id]);
        let tasks = |trace: &Trace| -> Vec<_> {
            let number = trace.jobs.iter().find(|row| row.id == job.id).unwrap().job;
            let of_job = trace.tasks.iter().filter(|task| task.job == number);
            of_job.map(|task| (task.attempt.clone(), task.process, [task.start_ns, task.finish_ns])).collect()
        };
        let (found, expected) = (tasks(&part), tasks(&whole));
        assert!(!expected.is_empty() && found.len() == expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((&found.0, found.1), (&expected.0, expected.1));
            // The histories' times are moved by what a clock was off at the begin of the trace, and its drift, both rounded.
            let off_ns =
                found.2.iter().zip(expected.2).map(|(found, expected)| found.abs_diff(expected)).max().unwrap();
            assert!(off_ns <= 100, "{off_ns} ns");
        }
        assert_eq!(part.jobs[0].shuffle_bytes, job.shuffle_bytes);
        assert!(part.messages.len() < whole.messages.len() && part.events.len() < whole.events.len());
    }
}

#[test]
fn what_is_no_time_or_no_job_is_told_with_what_there_is() {
    let capture = golden("wordcount");
    let said = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("trace");
        let mut command = Command::new(env!("CARGO_BIN_EXE_merger"));
        command.arg("build").arg(&capture).arg("--out").arg(&out).args(arguments);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!out.exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let of_jobs = said(&["--job", "job_1_0001"]);
    assert!(of_jobs.contains("no history of this job") && of_jobs.contains("there are job_"), "{of_jobs}");
    let of_times = said(&["--from", "yesterday"]);
    assert!(of_times.contains("2026-01-31T12:00:00+00:00"), "{of_times}");
    assert!(said(&["--from", "1769860801", "--to", "1769860800"]).contains("--from lies behind --to"));
}
