//! Job histories (`.jhist`, and the text of Hadoop 1.x): when a job ran, with how many tasks, and its counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Context, LabError, Result};
use serde_json::Value;
use trace::history1;
use trace::jhist::{Events, Losses};
use trace::truth::{CounterGroups, CountersByJob, JobCounters};

/// What a job's history says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobHistory {
    /// Job id.
    pub id: String,
    /// Submitted, nanoseconds since the epoch (milliseconds in the history).
    pub submitted_ns: u64,
    /// Ended, likewise.
    pub finished_ns: u64,
    /// Maps that succeeded.
    pub maps: u32,
    /// Reduces that succeeded.
    pub reduces: u32,
    /// Maps of which no host that holds their input ran the successful attempt.
    pub remote_maps: u32,
    /// Its counters.
    pub counters: JobCounters,
}

/// Reads a `.jhist` file of either kind.
///
/// # Errors
/// If it is no such file or the job did not succeed; the message says at which event.
pub fn parse(bytes: &[u8]) -> Result<JobHistory> {
    let mut events = Events::new(bytes);
    let mut history = JobHistory::default();
    let mut finished = false;
    let mut locations = BTreeMap::new();
    for (number, event) in (&mut events).enumerate() {
        let event = event.with_context(|| format!("event {}", number + 1))?;
        let inner = event["event"].as_object().and_then(|event| event.values().next());
        let Some(inner) = inner else { return Err(LabError::Parse(format!("event {} is empty", number + 1))) };
        match event["type"].as_str() {
            Some("JOB_SUBMITTED") => {
                history.id = text_of(inner, "jobid");
                history.submitted_ns = millis(&inner["submitTime"])?;
            }
            Some("TASK_STARTED") => {
                locations.insert(text_of(inner, "taskid"), text_of(inner, "splitLocations"));
            }
            Some("MAP_ATTEMPT_FINISHED") => {
                let (task, host) = (text_of(inner, "taskid"), text_of(inner, "hostname"));
                let split = locations.get(&task).map_or("", String::as_str);
                if !split.is_empty() && !split.split(',').any(|location| location == host) {
                    history.remote_maps += 1;
                }
            }
            Some("JOB_FINISHED") => {
                finished = true;
                history.finished_ns = millis(&inner["finishTime"])?;
                history.maps = tasks(inner, ["succeededMaps", "finishedMaps"]);
                history.reduces = tasks(inner, ["succeededReduces", "finishedReduces"]);
                history.counters = JobCounters {
                    total: groups(&inner["totalCounters"]),
                    map: groups(&inner["mapCounters"]),
                    reduce: groups(&inner["reduceCounters"]),
                };
            }
            Some(failed @ ("JOB_FAILED" | "JOB_KILLED" | "JOB_ERROR")) => {
                return Err(LabError::Parse(format!("the job ended with {failed}: {}", inner["diagnostics"])));
            }
            _ => {}
        }
    }
    let losses = events.losses();
    if losses != Losses::default() {
        return Err(LabError::Parse(format!("not all of it could be read: {losses:?}")));
    }
    if !finished {
        return Err(LabError::Parse("the job's end is missing".to_owned()));
    }
    Ok(history)
}

/// Reads the history of Hadoop 1.x.
///
/// # Errors
/// If it was cut off or the job did not succeed; the message says at which line.
pub fn parse_one(text: &str) -> Result<JobHistory> {
    let (records, left) = history1::read(text);
    if left > 0 {
        return Err(LabError::Parse(format!(
            "what begins behind line {} is no whole record",
            records.last().map_or(0, |record| record.line)
        )));
    }
    let mut history = JobHistory::default();
    let mut finished = false;
    let mut locations = BTreeMap::new();
    for record in &records {
        let succeeded = record.text("TASK_STATUS") == "SUCCESS";
        match (record.kind.as_str(), record.text("TASK_TYPE")) {
            ("Job", _) => {
                if record.number("SUBMIT_TIME") > 0 {
                    history.id = record.text("JOBID").to_owned();
                    history.submitted_ns = record.number("SUBMIT_TIME") * 1_000_000;
                }
                match record.text("JOB_STATUS") {
                    "SUCCESS" => {
                        finished = true;
                        history.finished_ns = record.number("FINISH_TIME") * 1_000_000;
                        history.maps = u32::try_from(record.number("FINISHED_MAPS")).unwrap_or(u32::MAX);
                        history.reduces = u32::try_from(record.number("FINISHED_REDUCES")).unwrap_or(u32::MAX);
                        history.counters = JobCounters {
                            total: record.counters("COUNTERS"),
                            map: record.counters("MAP_COUNTERS"),
                            reduce: record.counters("REDUCE_COUNTERS"),
                        };
                    }
                    ended @ ("FAILED" | "KILLED") => {
                        return Err(LabError::Parse(format!("line {}: the job ended with {ended}", record.line)));
                    }
                    _ => {}
                }
            }
            ("Task", "MAP") if record.number("START_TIME") > 0 => {
                locations.insert(record.text("TASKID"), record.text("SPLITS"));
            }
            ("MapAttempt", "MAP") if succeeded => {
                let split = locations.get(record.text("TASKID")).copied().unwrap_or("");
                if !split.is_empty() && !split.split(',').any(|location| location == record.text("HOSTNAME")) {
                    history.remote_maps += 1;
                }
            }
            _ => {}
        }
    }
    if !finished {
        return Err(LabError::Parse("the job's end is missing".to_owned()));
    }
    Ok(history)
}

fn text_of(event: &Value, field: &str) -> String {
    event[field].as_str().unwrap_or_default().to_owned()
}

fn millis(value: &Value) -> Result<u64> {
    let millis = value.as_u64().ok_or_else(|| LabError::Parse(format!("{value} is no time")))?;
    Ok(millis * 1_000_000)
}

fn tasks(event: &Value, names: [&str; 2]) -> u32 {
    let count = names.iter().find_map(|name| event[*name].as_u64()).unwrap_or(0);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Counters as the history nests them: groups, each with a list of counts.
fn groups(counters: &Value) -> CounterGroups {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    list(&counters["groups"])
        .iter()
        .map(|group| {
            let counts = list(&group["counts"]);
            let counts = counts.iter().filter_map(|c| Some((name(c), c["value"].as_i64()?)));
            (name(group), counts.collect())
        })
        .collect()
}

/// Reads the histories of all jobs in a folder and writes their counters beside them.
///
/// # Errors
/// If one cannot be read or the counters cannot be written; the message names the file.
pub fn collect(folder: &Path) -> Result<Vec<JobHistory>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).at("cannot read", folder)? {
        let path = entry.at("cannot read", folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Hadoop 1.x: job_1_0001_1700000000000_root_NAME
        let of_one = name.starts_with("job_") && !name.ends_with(".xml");
        if of_one || name.ends_with(".jhist") {
            files.push(path);
        }
    }
    files.sort();
    let mut histories = Vec::new();
    for file in files {
        let bytes = fs::read(&file).at("cannot read", &file)?;
        let history = match std::str::from_utf8(&bytes) {
            Ok(text) if history1::is_one(text) => parse_one(text),
            _ => parse(&bytes),
        };
        let history = history.with_context(|| format!("the history {} is of no use", file.display()))?;
        histories.push(history);
    }
    let counters: CountersByJob =
        histories.iter().map(|history| (history.id.clone(), history.counters.clone())).collect();
    let path = folder.join("counters.json");
    fs::write(&path, serde_json::to_vec_pretty(&counters).at("cannot write", &path)?).at("cannot write", &path)?;
    Ok(histories)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const HEAD: &str = "Avro-Json\n{\"type\":\"record\"}\n";
    const SUBMITTED: &str = r#"{"type":"JOB_SUBMITTED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobSubmitted":{"jobid":"job_1_0001","submitTime":1000}}}"#;
    const FINISHED: &str = r#"{"type":"JOB_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobFinished":{"jobid":"job_1_0001","finishTime":5000,"finishedMaps":4,"finishedReduces":2,"totalCounters":{"name":"TOTAL_COUNTERS","groups":[{"name":"g","displayName":"G","counts":[{"name":"HDFS_BYTES_READ","displayName":"x","value":12}]}]}}}}"#;

    #[test]
    fn times_tasks_and_counters_are_read() {
        let history = parse(format!("{HEAD}\n{SUBMITTED}\n\n{FINISHED}\n").as_bytes()).unwrap();
        assert_eq!(history.id, "job_1_0001");
        assert_eq!((history.submitted_ns, history.finished_ns), (1_000_000_000, 5_000_000_000));
        assert_eq!((history.maps, history.reduces), (4, 2));
        assert_eq!(history.counters.named("HDFS_BYTES_READ"), Some(12));
    }

    #[test]
    fn a_map_that_ran_where_its_input_is_not_is_remote() {
        let event =
            |kind: &str, fields: &str| format!(r#"{{"type":"{kind}","event":{{"x":{{"taskid":"t1",{fields}}}}}}}"#);
        let started = event("TASK_STARTED", r#""splitLocations":"w1,w2""#);
        let on = |host: &str| {
            let ended = event("MAP_ATTEMPT_FINISHED", &format!(r#""hostname":"{host}""#));
            let text = format!("{HEAD}{SUBMITTED}\n{started}\n{ended}\n{FINISHED}\n");
            parse(text.as_bytes()).unwrap().remote_maps
        };
        assert_eq!(on("w2"), 0);
        assert_eq!(on("w3"), 1);
    }

    const ONE: &str = "Meta VERSION=\"1\" .\n\
        Job JOBID=\"job_1_0001\" SUBMIT_TIME=\"1000\" .\n\
        Task TASKID=\"t1\" TASK_TYPE=\"MAP\" START_TIME=\"1\" SPLITS=\"/r1/w1,/r2/w2\" .\n\
        MapAttempt TASK_TYPE=\"MAP\" TASKID=\"t1\" TASK_STATUS=\"SUCCESS\" HOSTNAME=\"/r1/w3\" .\n\
        Job JOBID=\"job_1_0001\" FINISH_TIME=\"5000\" JOB_STATUS=\"SUCCESS\" FINISHED_MAPS=\"4\" FINISHED_REDUCES=\"2\" \
        COUNTERS=\"{(g)(G)[(HDFS_BYTES_READ)(x)(12)]}\" .\n";

    #[test]
    fn the_text_of_hadoop_1_tells_the_same() {
        let history = parse_one(ONE).unwrap();
        assert_eq!((history.id.as_str(), history.maps, history.reduces), ("job_1_0001", 4, 2));
        assert_eq!((history.submitted_ns, history.finished_ns), (1_000_000_000, 5_000_000_000));
        assert_eq!(history.counters.named("HDFS_BYTES_READ"), Some(12));
        assert_eq!(history.remote_maps, 1);
        let failed = ONE.replace("JOB_STATUS=\"SUCCESS\"", "JOB_STATUS=\"FAILED\"");
        assert!(parse_one(&failed).unwrap_err().to_string().contains("line 5"));
        assert!(parse_one(&ONE[..ONE.len() - 2]).unwrap_err().to_string().contains("whole record"));
    }

    #[test]
    fn a_history_without_an_end_is_refused() {
        let error = parse(format!("{HEAD}{SUBMITTED}\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("end is missing"), "{error}");
    }

    #[test]
    fn what_hadoop_writes_in_binary_is_read() {
        let history = parse(include_bytes!("../../../merger/tests/capture/wordcount-binary.jhist")).unwrap();
        assert_eq!((history.id.as_str(), history.maps, history.reduces), ("job_1795357070653_0001", 2, 1));
        assert!(history.submitted_ns < history.finished_ns);
        assert_eq!(history.counters.named("SPILLED_RECORDS").map(|spilled| spilled > 0), Some(true));
    }

    #[test]
    fn a_history_that_was_cut_off_is_refused() {
        let text = format!("{HEAD}{SUBMITTED}\n{}", &FINISHED[..60]);
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("truncated_bytes: 60"), "{error}");
    }

    #[test]
    fn a_damaged_binary_history_is_refused_with_the_reason() {
        let error = parse(b"Avro-Binary\n{\"type\":\"record\"}\n").unwrap_err();
        assert!(error.to_string().contains("the schema in line 2"), "{error}");
    }
}
