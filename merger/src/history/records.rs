//! The job history of Hadoop 1.x (`trace::history1`), as what the later ones tell.

use std::fs::File;
use std::io::{self, Read};

use trace::files;
use trace::history1::{self, Record};
use trace::rows::TaskKind;

use super::events::{AttemptState, History, kept};
use crate::loss::{Loss, LossKind, Note as _};

/// Bytes of a history of 1.x that are read, at most: some 100,000 attempts.
const MAX_BYTES: u64 = 128 << 20;

/// Reads a history file.
pub(super) fn read(name: &str, input: File) -> io::Result<(Vec<History>, Vec<Loss>)> {
    let mut bytes = Vec::new();
    let read = files::unpacked(input)?.take(MAX_BYTES).read_to_end(&mut bytes);
    if let Err(error) = read
        && error.kind() != io::ErrorKind::UnexpectedEof
    {
        return Err(error);
    }
    let text = String::from_utf8_lossy(&bytes);
    let (records, left) = history1::read(&text);
    let at = format!("job/{name}");
    let mut losses = Vec::new();
    losses.lost(&at, LossKind::LongHistory(MAX_BYTES >> 20), u64::from(bytes.len() as u64 == MAX_BYTES));
    losses.lost(&at, LossKind::CutHistory, left as u64);
    let mut history = History::default();
    for record in &records {
        take(&mut history, record);
    }
    if history.id.is_empty() {
        losses.lost(&at, LossKind::WithoutJob, 1);
        return Ok((Vec::new(), losses));
    }
    Ok((vec![history], losses))
}

fn take(history: &mut History, record: &Record) {
    match record.kind.as_str() {
        "Job" => job(history, record),
        "Task" => task(history, record),
        "MapAttempt" | "ReduceAttempt" => attempt(history, record),
        _ => return,
    }
    history.events += 1;
}

fn job(history: &mut History, record: &Record) {
    history.id = record.text("JOBID").to_owned();
    if record.number("SUBMIT_TIME") > 0 {
        history.submit_ms = record.number("SUBMIT_TIME");
        history.name = record.text("JOBNAME").to_owned();
    }
    if record.number("LAUNCH_TIME") > 0 {
        history.launch_ms = record.number("LAUNCH_TIME");
    }
    let status = record.text("JOB_STATUS");
    if matches!(status, "SUCCESS" | "FAILED" | "KILLED") {
        let small = |name: &str| u32::try_from(record.number(name)).unwrap_or(u32::MAX);
        history.finish_ms = record.number("FINISH_TIME");
        (history.maps, history.reduces) = (small("FINISHED_MAPS"), small("FINISHED_REDUCES"));
        history.succeeded = status == "SUCCESS";
        let counters = record.counters("COUNTERS").into_values().flatten();
        history.counters =
            counters.filter_map(|(name, value)| Some((kept(&name)?, u64::try_from(value).ok()?))).collect();
    }
}

/// As a map starts, the hosts of its split with their racks: "/rack-a/w1,/rack-b/w3".
fn task(history: &mut History, record: &Record) {
    if record.text("TASK_TYPE") == "MAP" && record.number("START_TIME") > 0 {
        let hosts = record.text("SPLITS").split(',').map(|place| place.rsplit('/').next().unwrap_or(place));
        history.split(record.text("TASKID"), hosts);
    }
}

fn attempt(history: &mut History, record: &Record) {
    let kind = match record.text("TASK_TYPE") {
        "MAP" => TaskKind::Map,
        "REDUCE" => TaskKind::Reduce,
        _ => TaskKind::Other,
    };
    let attempt = history.attempt(record.text("TASK_ATTEMPT_ID"), kind);
    if record.number("START_TIME") > 0 {
        attempt.start_ms = record.number("START_TIME");
        if attempt.host.is_empty() {
            attempt.host = record.text("TRACKER_NAME").to_owned();
        }
    }
    let status = record.text("TASK_STATUS");
    if status.is_empty() {
        return;
    }
    attempt.state = if status == "SUCCESS" { AttemptState::Succeeded } else { AttemptState::Unsuccessful };
    attempt.finish_ms = record.number("FINISH_TIME");
    attempt.shuffle_end_ms = record.number("SHUFFLE_FINISHED");
    attempt.sort_end_ms = record.number("SORT_FINISHED");
    let host = record.last_part("HOSTNAME");
    if !host.is_empty() {
        attempt.host = host.to_owned();
    }
}
