//! The events of a job history (`trace::jhist`), as what they tell of jobs and attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use serde_json::Value;
use trace::files;
use trace::jhist::Events;
use trace::rows::TaskKind;
use trace::truth::JobCounters;

use super::racks;
use crate::loss::{Loss, LossKind, Note as _};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttemptState {
    /// The history does not say.
    #[default]
    Unknown,
    /// It succeeded.
    Succeeded,
    /// It failed or was killed.
    Unsuccessful,
}

/// A task attempt. Times are milliseconds since the epoch, 0 = not told.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// "attempt_..."
    pub id: String,
    /// What it does.
    pub kind: TaskKind,
    /// Container, "" = not told.
    pub container: String,
    /// Host name, "" = not told.
    pub host: String,
    /// When it was launched, milliseconds since the epoch.
    pub start_ms: u64,
    /// Reduce: all map outputs are there.
    pub shuffle_end_ms: u64,
    /// Reduce: they are merged.
    pub sort_end_ms: u64,
    /// When it ended, milliseconds since the epoch.
    pub finish_ms: u64,
    /// How it ended.
    pub state: AttemptState,
}

/// What the history tells of one job. Times are milliseconds since the epoch, 0 = not told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// "job_..."
    pub id: String,
    /// Name.
    pub name: String,
    /// Host of the (last) application master, "" = not told.
    pub master_host: String,
    /// When it was submitted, milliseconds since the epoch.
    pub submit_ms: u64,
    /// When its master launched it, milliseconds since the epoch.
    pub launch_ms: u64,
    /// When it ended, milliseconds since the epoch.
    pub finish_ms: u64,
    /// Finished maps.
    pub maps: u32,
    /// Finished reduces.
    pub reduces: u32,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// Totals of its counters by name: of those that are asked for.
    pub counters: BTreeMap<&'static str, u64>,
    /// Attempts, in order of their ids.
    pub attempts: Vec<Attempt>,
    /// Of each map: how many hosts its split names as near to its data.
    pub split_hosts: BTreeMap<String, u32>,
    /// All hosts that splits name.
    pub input_hosts: BTreeSet<String>,
    /// Events that were understood.
    pub events: u64,
}

impl History {
    /// Adds counters that the history itself lacks (it was cut off).
    pub fn complete_counters(&mut self, counters: &JobCounters) {
        for (name, value) in counters.total.values().flatten() {
            if let (Some(name), Ok(value)) = (kept(name), u64::try_from(*value)) {
                self.counters.entry(name).or_insert(value);
            }
        }
    }

    /// The split of a map names hosts, or none.
    pub(super) fn split<'a>(&mut self, map: &str, hosts: impl Iterator<Item = &'a str>) {
        let hosts: BTreeSet<&str> = hosts.filter(|host| !host.is_empty()).collect();
        if let Ok(count) = u32::try_from(hosts.len()) {
            self.split_hosts.insert(map.to_owned(), count);
            self.input_hosts.extend(hosts.into_iter().map(str::to_owned));
        }
    }

    pub(super) fn attempt(&mut self, id: &str, kind: TaskKind) -> &mut Attempt {
        let at = match self.attempts.binary_search_by(|attempt| attempt.id.as_str().cmp(id)) {
            Ok(at) => at,
            Err(at) => {
                self.attempts.insert(
                    at,
                    Attempt {
                        id: id.to_owned(),
                        kind,
                        container: String::new(),
                        host: String::new(),
                        start_ms: 0,
                        shuffle_end_ms: 0,
                        sort_end_ms: 0,
                        finish_ms: 0,
                        state: AttemptState::Unknown,
                    },
                );
                at
            }
        };
        &mut self.attempts[at]
    }
}

/// Reads a history file; it may hold one job (as Hadoop writes it) or several (files put together). Of one that cannot be read to
/// its end, `racks` are what was read.
pub(super) fn read(
    name: &str,
    input: File,
    racks: &mut BTreeMap<String, String>,
) -> io::Result<(Vec<History>, Vec<Loss>)> {
    let mut jobs: Vec<History> = Vec::new();
    let mut events = Events::new(files::unpacked(input)?);
    for event in &mut events {
        let event = event?;
        racks::find(&event, racks);
        take(&mut jobs, &event);
    }
    let at = format!("job/{name}");
    let unread = events.losses();
    let mut losses = Vec::new();
    losses.lost(&at, LossKind::MalformedEvents, unread.malformed_lines);
    losses.lost(&at, LossKind::OverlongEvents, unread.overlong_lines);
    losses.lost(&at, LossKind::CutHistory, unread.truncated_bytes);
    if let Some(error) = &unread.broken_off {
        losses.lost(&at, LossKind::RestOfHistory(error.clone()), 1);
    }
    if let Some((reason, bytes)) = &unread.damaged {
        losses.lost(&at, LossKind::DamagedHistory(reason.clone()), *bytes);
    }
    losses.lost(&at, LossKind::WithoutJob, u64::from(jobs.is_empty()));
    Ok((jobs, losses))
}

fn take(jobs: &mut Vec<History>, line: &Value) {
    let Some(kind) = line.get("type").and_then(Value::as_str) else { return };
    let Some(event) = line.get("event").and_then(Value::as_object).and_then(|event| event.values().next()) else {
        return;
    };
    let Some(id) = job_id(event) else { return };
    let job = match jobs.iter().position(|job| job.id == id) {
        Some(at) => &mut jobs[at],
        None => {
            jobs.push(History { id, ..History::default() });
            let last = jobs.len() - 1;
            &mut jobs[last]
        }
    };
    job.events += 1;
    match kind {
        "JOB_SUBMITTED" => {
            job.name = text(event, "jobName");
            job.submit_ms = number(event, "submitTime");
        }
        "AM_STARTED" => job.master_host = text(event, "nodeManagerHost"),
        "JOB_INITED" => {
            job.launch_ms = number(event, "launchTime");
            if job.submit_ms == 0 {
                job.submit_ms = number(event, "submitTime");
            }
        }
        "JOB_FINISHED" => {
            job.finish_ms = number(event, "finishTime");
            job.maps = small(either(event, "finishedMaps", "succeededMaps"));
            job.reduces = small(either(event, "finishedReduces", "succeededReduces"));
            job.succeeded = true;
            job.counters = counters(event.get("totalCounters"));
        }
        "JOB_FAILED" | "JOB_KILLED" | "JOB_ERROR" => {
            job.finish_ms = number(event, "finishTime");
            job.maps = small(either(event, "finishedMaps", "succeededMaps"));
            job.reduces = small(either(event, "finishedReduces", "succeededReduces"));
        }
        "TASK_STARTED" if text(event, "taskType") == "MAP" => {
            job.split(&text(event, "taskid"), text(event, "splitLocations").split(','));
        }
        "MAP_ATTEMPT_STARTED" => started(job, event, TaskKind::Map),
        "REDUCE_ATTEMPT_STARTED" => started(job, event, TaskKind::Reduce),
        "SETUP_ATTEMPT_STARTED" | "CLEANUP_ATTEMPT_STARTED" => started(job, event, TaskKind::Other),
        "MAP_ATTEMPT_FINISHED" => finished(job, event, TaskKind::Map, AttemptState::Succeeded),
        "REDUCE_ATTEMPT_FINISHED" => finished(job, event, TaskKind::Reduce, AttemptState::Succeeded),
        "SETUP_ATTEMPT_FINISHED" | "CLEANUP_ATTEMPT_FINISHED" => {
            finished(job, event, TaskKind::Other, AttemptState::Succeeded);
        }
        "MAP_ATTEMPT_FAILED" | "MAP_ATTEMPT_KILLED" => finished(job, event, TaskKind::Map, AttemptState::Unsuccessful),
        "REDUCE_ATTEMPT_FAILED" | "REDUCE_ATTEMPT_KILLED" => {
            finished(job, event, TaskKind::Reduce, AttemptState::Unsuccessful);
        }
        _ => {}
    }
}

fn started(job: &mut History, event: &Value, kind: TaskKind) {
    let attempt = job.attempt(&text(event, "attemptId"), kind);
    attempt.start_ms = number(event, "startTime");
    attempt.container = text(event, "containerId");
    if attempt.host.is_empty() {
        attempt.host = text(event, "trackerName");
    }
}

fn finished(job: &mut History, event: &Value, kind: TaskKind, state: AttemptState) {
    let attempt = job.attempt(&text(event, "attemptId"), kind);
    attempt.state = state;
    attempt.finish_ms = number(event, "finishTime");
    attempt.shuffle_end_ms = number(event, "shuffleFinishTime");
    attempt.sort_end_ms = number(event, "sortFinishTime");
    let host = text(event, "hostname");
    if !host.is_empty() {
        attempt.host = host;
    }
}

/// The job's id, or that of the job of the task or attempt that the event is about.
fn job_id(event: &Value) -> Option<String> {
    let id = text(event, "jobid");
    if !id.is_empty() {
        return Some(id);
    }
    ["taskid", "attemptId", "applicationAttemptId"].iter().find_map(|name| job_of(&text(event, name)))
}

/// "task_1_0002_m_000000", "attempt_1_0002_m_000000_0" and "appattempt_1_0002_000001" belong to "job_1_0002".
pub(crate) fn job_of(id: &str) -> Option<String> {
    let mut parts = id.split('_');
    matches!(parts.next()?, "task" | "attempt" | "appattempt" | "application").then_some(())?;
    Some(format!("job_{}_{}", parts.next()?, parts.next()?))
}

/// Counters that are asked for: a history has sixty more.
pub(crate) const SHUFFLE_BYTES: &str = "REDUCE_SHUFFLE_BYTES";
pub(crate) const BYTES_READ: &str = "HDFS_BYTES_READ";
pub(crate) const BYTES_WRITTEN: &str = "HDFS_BYTES_WRITTEN";

/// The name of a counter that is asked for.
pub(super) fn kept(name: &str) -> Option<&'static str> {
    [SHUFFLE_BYTES, BYTES_READ, BYTES_WRITTEN].into_iter().find(|kept| *kept == name)
}

fn counters(value: Option<&Value>) -> BTreeMap<&'static str, u64> {
    let groups = value.map(unwrapped).and_then(|value| value.get("groups")).and_then(Value::as_array);
    groups
        .into_iter()
        .flatten()
        .filter_map(|group| group.get("counts").and_then(Value::as_array))
        .flatten()
        .filter_map(|count| Some((kept(count.get("name")?.as_str()?)?, count.get("value")?.as_u64()?)))
        .collect()
}

/// Avro's JSON wraps a value of a union in an object whose only key is its type: `{"string": "x"}`.
fn unwrapped(value: &Value) -> &Value {
    match value.as_object() {
        Some(object) if object.len() == 1 => object.values().next().unwrap_or(value),
        _ => value,
    }
}

fn text(event: &Value, name: &str) -> String {
    event.get(name).map(unwrapped).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(event: &Value, name: &str) -> u64 {
    event.get(name).map(unwrapped).and_then(Value::as_u64).unwrap_or(0)
}

fn either(event: &Value, name: &str, other: &str) -> u64 {
    number(event, name).max(number(event, other))
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
