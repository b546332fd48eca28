//! Application data of jobs beside the counters of Hadoop.

use std::collections::BTreeSet;

use trace::rows::{JobRow, MessageKind, MessageRow, Trace};

use super::report::{Report, Volumes, error};
use crate::sums::{add, sum};

/// Compares what was captured with the counters of the jobs that ran within the capture.
pub(super) fn compare(trace: &Trace, report: &mut Report) {
    let jobs: Vec<&JobRow> = trace.jobs.iter().filter(|job| within(trace, job)).collect();
    let names: BTreeSet<String> = jobs.iter().map(|job| job.id.replacen("job_", "attempt_", 1) + "_").collect();
    let good: BTreeSet<&str> = trace
        .tasks
        .iter()
        .filter(|task| task.succeeded && names.iter().any(|name| task.attempt.starts_with(name)))
        .map(|task| task.attempt.as_str())
        .collect();
    let mut volumes = Volumes { jobs: jobs.iter().map(|job| job.id.clone()).collect(), ..Volumes::default() };
    for row in &trace.messages {
        let ours = row.attempt.as_deref().is_some_and(|attempt| good.contains(attempt));
        match row.kind {
            MessageKind::ShuffleResponse if ours => {
                add(&mut volumes.shuffle_bytes, row.app_bytes);
                add(&mut volumes.shuffle_payload_bytes, row.bytes);
            }
            MessageKind::ShuffleResponse => add(&mut volumes.other_shuffle_bytes, row.app_bytes),
            MessageKind::BlockData => block_data(trace, row, ours, &mut volumes),
            _ => {}
        }
    }
    let none = || match (trace.jobs.is_empty(), jobs.is_empty()) {
        (true, _) => Some("no job history in the capture".to_owned()),
        (false, true) => Some("no job ran from begin to end within the capture".to_owned()),
        _ => None,
    };
    let mut figure = |name: &str, captured: u64, counter: fn(&JobRow) -> Option<u64>| -> (Option<f64>, u64) {
        // A job without reduces has no counter of a shuffle: only if no job has it, it is missing.
        let counted: Vec<u64> = jobs.iter().filter_map(|job| counter(job)).collect();
        let counters = (!counted.is_empty()).then(|| sum(counted));
        let reason = none().or_else(|| match counters {
            None => Some("the job history lacks the counter".to_owned()),
            Some(0) => Some(format!("the counter is 0; captured: {captured} bytes")),
            Some(_) => None,
        });
        match reason {
            Some(reason) => {
                report.reasons.insert(name.to_owned(), reason);
                (None, counters.unwrap_or(0))
            }
            None => (error(captured, counters.unwrap_or(0)), counters.unwrap_or(0)),
        }
    };
    let shuffle = figure("shuffle_bytes_error", volumes.shuffle_bytes, |job| job.shuffle_bytes);
    let read = figure("hdfs_read_bytes_error", volumes.read_bytes, |job| job.hdfs_bytes_read);
    let written = figure("hdfs_write_bytes_error", volumes.written_bytes, |job| job.hdfs_bytes_written);
    (report.shuffle_bytes_error, volumes.shuffle_counter) = shuffle;
    (report.hdfs_read_bytes_error, volumes.read_counter) = read;
    (report.hdfs_write_bytes_error, volumes.written_counter) = written;
    report.detail.volumes = volumes;
}

/// Whether a job was submitted and finished while packets were recorded. The history's times are whole milliseconds.
fn within(trace: &Trace, job: &JobRow) -> bool {
    const MILLISECOND_NS: u64 = 1_000_000;
    job.finish_ns > 0
        && job.submit_ns.saturating_add(MILLISECOND_NS) >= trace.manifest.start_ns
        && job.finish_ns <= trace.manifest.end_ns.saturating_add(MILLISECOND_NS)
}

fn block_data(trace: &Trace, row: &MessageRow, ours: bool, volumes: &mut Volumes) {
    let role = || {
        let client = trace.connections.get(row.connection.index()).and_then(|connection| connection.client_process);
        let process = client.and_then(|process| trace.processes.get(process.index()));
        process.map_or_else(|| "unknown".to_owned(), |process| process.role.clone())
    };
    match (row.name.as_str(), row.hop) {
        ("write", Some(1)) if ours => add(&mut volumes.written_bytes, row.app_bytes),
        ("write", Some(1)) => add(volumes.other_written_bytes.entry(role()).or_default(), row.app_bytes),
        ("write", Some(_)) => add(&mut volumes.later_hops_bytes, row.app_bytes),
        ("write", None) => add(volumes.other_written_bytes.entry(role()).or_default(), row.app_bytes),
        ("read", _) if ours => {
            let unread = row.unread_bytes.unwrap_or(0).min(row.app_bytes);
            add(&mut volumes.read_bytes, row.app_bytes - unread);
            add(&mut volumes.read_unread_bytes, unread);
        }
        _ => add(volumes.other_read_bytes.entry(role()).or_default(), row.app_bytes),
    }
}
