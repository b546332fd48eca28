//! Job histories as Hadoop 3.4 writes them, as JSON and in binary: whole, cut off at any byte, damaged.

use std::fs;
use std::path::Path;

use merger::history::{Attempt, AttemptState, Histories, read};
use merger::loss::LossKind;
use proptest::prelude::*;
use trace::rows::TaskKind;

use crate::world::avro;

/// A history with the events and fields of Hadoop 3.4.2, cut down to one map and one reduce.
const HISTORY: &str = r#"Avro-Json
{"type":"record","name":"Event","namespace":"org.apache.hadoop.mapreduce.jobhistory","fields":[]}
{"type":"AM_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.AMStarted":{"applicationAttemptId":"appattempt_17_0002_000001","startTime":1000,"containerId":"container_17_0002_01_000001","nodeManagerHost":"w4","nodeManagerPort":1,"nodeManagerHttpPort":8042}}}
{"type":"JOB_SUBMITTED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobSubmitted":{"jobid":"job_17_0002","jobName":"TeraSort","userName":"root","submitTime":900,"workflowId":{"string":""}}}}
{"type":"JOB_INITED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobInited":{"jobid":"job_17_0002","launchTime":2000,"totalMaps":1,"totalReduces":1,"jobStatus":"INITED","uberized":false}}}
{"type":"TASK_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskStarted":{"taskid":"task_17_0002_m_000000","taskType":"MAP","startTime":2500,"splitLocations":"w1,w3"}}}
{"type":"TASK_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskStarted":{"taskid":"task_17_0002_r_000000","taskType":"REDUCE","startTime":2500,"splitLocations":""}}}
{"type":"MAP_ATTEMPT_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskAttemptStarted":{"taskid":"task_17_0002_m_000000","taskType":"MAP","attemptId":"attempt_17_0002_m_000000_0","startTime":3000,"trackerName":"w1","httpPort":8042,"shufflePort":13562,"containerId":"container_17_0002_01_000004","locality":{"string":"NODE_LOCAL"},"avataar":{"string":"VIRGIN"}}}}
{"type":"MAP_ATTEMPT_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.MapAttemptFinished":{"taskid":"task_17_0002_m_000000","attemptId":"attempt_17_0002_m_000000_0","taskType":"MAP","taskStatus":"SUCCEEDED","mapFinishTime":4500,"finishTime":5000,"hostname":"w1","port":44381,"rackname":"/r1","state":"map","counters":{"name":"COUNTERS","groups":[]}}}}
{"type":"REDUCE_ATTEMPT_STARTED","event":{"org.apache.hadoop.mapreduce.jobhistory.TaskAttemptStarted":{"taskid":"task_17_0002_r_000000","taskType":"REDUCE","attemptId":"attempt_17_0002_r_000000_0","startTime":6000,"trackerName":"w3","httpPort":8042,"shufflePort":13562,"containerId":"container_17_0002_01_000010","locality":{"string":"OFF_SWITCH"},"avataar":{"string":"VIRGIN"}}}}
{"type":"REDUCE_ATTEMPT_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.ReduceAttemptFinished":{"taskid":"task_17_0002_r_000000","attemptId":"attempt_17_0002_r_000000_0","taskType":"REDUCE","taskStatus":"SUCCEEDED","shuffleFinishTime":7000,"sortFinishTime":7100,"finishTime":8000,"hostname":"w3","port":1,"rackname":"/r2","state":"reduce > reduce","counters":{"name":"COUNTERS","groups":[]}}}}
{"type":"JOB_FINISHED","event":{"org.apache.hadoop.mapreduce.jobhistory.JobFinished":{"jobid":"job_17_0002","finishTime":9000,"finishedMaps":1,"finishedReduces":1,"failedMaps":0,"failedReduces":0,"totalCounters":{"name":"TOTAL_COUNTERS","groups":[{"name":"org.apache.hadoop.mapreduce.FileSystemCounter","displayName":"File System Counters","counts":[{"name":"HDFS_BYTES_READ","displayName":"r","value":134218196},{"name":"HDFS_BYTES_WRITTEN","displayName":"w","value":134217800}]},{"name":"org.apache.hadoop.mapreduce.TaskCounter","displayName":"c","counts":[{"name":"REDUCE_SHUFFLE_BYTES","displayName":"s","value":139587456}]}]}}}}
"#;

fn history_of(text: &[u8]) -> Histories {
    let capture = tempfile::tempdir().unwrap();
    put(capture.path(), "job_17_0002-900-root-TeraSort-9000-1-1-SUCCEEDED-default-2000.jhist", text);
    read(&[capture.path().to_owned()]).unwrap()
}

fn put(capture: &Path, name: &str, text: &[u8]) {
    fs::create_dir_all(capture.join("job")).unwrap();
    fs::write(capture.join("job").join(name), text).unwrap();
}

#[test]
fn a_whole_history_tells_all() {
    let histories = history_of(HISTORY.as_bytes());
    assert!(histories.losses.is_empty(), "{:?}", histories.losses);
    let job = &histories.jobs[0];
    assert_eq!((job.id.as_str(), job.name.as_str(), job.master_host.as_str()), ("job_17_0002", "TeraSort", "w4"));
    assert_eq!((job.submit_ms, job.launch_ms, job.finish_ms, job.maps, job.reduces), (900, 2_000, 9_000, 1, 1));
    assert!(job.succeeded);
    assert_eq!(job.counters["REDUCE_SHUFFLE_BYTES"], 139_587_456);
    assert_eq!(job.counters["HDFS_BYTES_READ"], 134_218_196);
    assert_eq!(job.split_hosts.iter().collect::<Vec<_>>(), [(&"task_17_0002_m_000000".to_owned(), &2)]);
    assert_eq!(job.input_hosts.iter().collect::<Vec<_>>(), ["w1", "w3"]);
    let [map, reduce] = job.attempts.as_slice() else { panic!("{:?}", job.attempts) };
    assert_eq!((map.kind, map.host.as_str(), map.start_ms, map.finish_ms), (TaskKind::Map, "w1", 3_000, 5_000));
    assert_eq!((reduce.shuffle_end_ms, reduce.sort_end_ms, reduce.state), (7_000, 7_100, AttemptState::Succeeded));
    assert_eq!(reduce.container, "container_17_0002_01_000010");
}

#[test]
fn splits_that_name_no_host_are_told_from_splits_that_are_not_told_of() {
    let of_none = HISTORY.replace("w1,w3", "");
    let job = &history_of(of_none.as_bytes()).jobs[0];
    assert_eq!(job.split_hosts.iter().collect::<Vec<_>>(), [(&"task_17_0002_m_000000".to_owned(), &0)]);
    assert!(job.input_hosts.is_empty());
    let untold: String =
        HISTORY.lines().filter(|line| !line.contains("TASK_STARTED")).map(|line| format!("{line}\n")).collect();
    assert!(history_of(untold.as_bytes()).jobs[0].split_hosts.is_empty());
}

#[test]
fn a_history_cut_at_any_byte_is_read_as_far_as_it_goes() {
    for end in (0..HISTORY.len()).step_by(5).chain(HISTORY.len() - 3..HISTORY.len()) {
        let histories = history_of(&HISTORY.as_bytes()[..end]);
        let lines = HISTORY.lines().filter(|line| line.starts_with("{\"type\":\"") && !line.contains("record"));
        let whole = lines.filter(|line| HISTORY[..end].contains(line)).count() as u64;
        let events: u64 = histories.jobs.iter().map(|job| job.events).sum();
        assert_eq!(events, whole, "cut at {end}");
        assert!(histories.jobs.iter().all(|job| !job.succeeded || job.finish_ms == 9_000));
        let cut_in_a_line = !HISTORY[..end].ends_with(['\n', '}']) && end > HISTORY.find("{\"type\":\"AM").unwrap() + 1;
        if cut_in_a_line {
            assert!(!histories.losses.is_empty(), "cut at {end}: what is lost is counted");
        }
    }
}

#[test]
fn garbage_between_the_lines_is_counted() {
    let text = HISTORY.replace("{\"type\":\"JOB_INITED\"", "{\"type\":JOB_INITED");
    let histories = history_of(text.as_bytes());
    assert_eq!(histories.jobs[0].launch_ms, 0);
    assert_eq!(histories.losses.len(), 1);
    assert_eq!((histories.losses[0].count, histories.losses[0].kind.unit()), (1, "records"));
}

#[test]
fn settings_and_counters_beside_the_history_are_found() {
    let capture = tempfile::tempdir().unwrap();
    let cut = HISTORY.find("{\"type\":\"JOB_FINISHED\"").unwrap();
    put(capture.path(), "job_17_0002.jhist", &HISTORY.as_bytes()[..cut]);
    let conf = "<configuration><property><name>mapreduce.job.reduce.slowstart.completedmaps</name><value>1.0</value>\
                <final>false</final><source>job.xml</source></property></configuration>";
    put(capture.path(), "job_17_0002_conf.xml", conf.as_bytes());
    let counters = r#"{"job_17_0002":{"total":{"g":{"HDFS_BYTES_READ":7}},"map":{},"reduce":{}}}"#;
    put(capture.path(), "counters.json", counters.as_bytes());
    let histories = read(&[capture.path().to_owned()]).unwrap();
    let slow_start = histories.setting("job_17_0002", "mapreduce.job.reduce.slowstart.completedmaps");
    assert_eq!(slow_start, Some("1.0"));
    assert_eq!(histories.jobs[0].counters["HDFS_BYTES_READ"], 7);
}

#[test]
fn a_capture_without_history_is_no_error() {
    let capture = tempfile::tempdir().unwrap();
    let histories = read(&[capture.path().to_owned()]).unwrap();
    assert!(histories.jobs.is_empty() && histories.losses.is_empty());
}

/// What Hadoop 3.4.2 wrote with its defaults: a wordcount of two maps and a reduce.
const REAL: &[u8] = include_bytes!("wordcount-binary.jhist");

/// The histories of the golden terasort: three jobs, as JSON.
fn golden() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/terasort/job");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "jhist")).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn what_hadoop_writes_in_binary_is_read() {
    let histories = history_of(REAL);
    assert!(histories.losses.is_empty(), "{:?}", histories.losses);
    let [job] = histories.jobs.as_slice() else { panic!("{:?}", histories.jobs) };
    assert_eq!((job.name.as_str(), job.maps, job.reduces, job.succeeded), ("word count", 2, 1, true));
    assert!(job.submit_ms < job.launch_ms && job.launch_ms < job.finish_ms);
    assert!(job.counters["REDUCE_SHUFFLE_BYTES"] > 0, "{:?}", job.counters);
    let (succeeded, killed): (Vec<&Attempt>, Vec<&Attempt>) =
        job.attempts.iter().partition(|attempt| attempt.state == AttemptState::Succeeded);
    let kinds: Vec<TaskKind> = succeeded.iter().map(|attempt| attempt.kind).collect();
    assert_eq!(kinds, [TaskKind::Map, TaskKind::Map, TaskKind::Reduce]);
    // One that was started in case the other was too slow.
    let killed: Vec<_> = killed.iter().map(|attempt| (attempt.kind, attempt.state)).collect();
    assert_eq!(killed, [(TaskKind::Map, AttemptState::Unsuccessful)]);
    for attempt in succeeded {
        assert!(job.launch_ms < attempt.start_ms && attempt.start_ms < attempt.finish_ms, "{attempt:?}");
        assert!(attempt.container.starts_with("container_") && !attempt.host.is_empty(), "{attempt:?}");
    }
}

#[test]
fn a_binary_history_tells_what_the_same_in_json_tells() {
    for json in golden() {
        let (expected, read) = (history_of(json.as_bytes()), history_of(&avro::binary(&json)));
        assert!(read.losses.is_empty(), "{:?}", read.losses);
        assert_eq!(read.jobs, expected.jobs);
        assert!(read.jobs[0].succeeded && read.jobs[0].attempts.len() >= 4);
    }
}

#[test]
fn a_binary_history_cut_at_any_byte_is_read_as_far_as_it_goes() {
    let json = golden().remove(0);
    let head: usize = json.lines().take(2).map(|line| line.len() + 1).sum();
    let lines = json.match_indices('\n').filter(|(at, _)| *at >= head);
    let mut ends: Vec<usize> = lines.map(|(at, _)| avro::binary(&json[..at]).len()).collect();
    let head = head + "Avro-Binary".len() - "Avro-Json".len();
    // Between the lines of JSON are empty ones.
    ends.retain(|end| *end > head);
    ends.dedup();
    let whole = avro::binary(&json);
    for end in (0..whole.len()).step_by(211).chain(ends.iter().copied()).chain(whole.len() - 3..whole.len()) {
        let histories = history_of(&whole[..end]);
        let events: u64 = histories.jobs.iter().map(|job| job.events).sum();
        assert_eq!(events, ends.iter().filter(|at| **at <= end).count() as u64, "cut at {end}");
        let losses = &histories.losses;
        let has = |kind: LossKind| losses.iter().any(|loss| loss.kind == kind);
        let within = !ends.contains(&end) && end != head && end > "Avro-Binary\n".len();
        assert_eq!(has(LossKind::CutHistory), within, "cut at {end}: {losses:?}");
        // A running job's ends between two events.
        let ended = histories.jobs.first().is_none_or(|job| job.finish_ms > 0);
        assert_eq!(has(LossKind::WithoutEnd), !ended, "cut at {end}: {losses:?}");
    }
}

#[test]
fn histories_put_together_are_read_as_one_file() {
    let [first, second, third] = <[String; 3]>::try_from(golden()).unwrap();
    let together = [avro::binary(&first), second.into_bytes(), avro::binary(&third)].concat();
    let histories = history_of(&together);
    assert!(histories.losses.is_empty(), "{:?}", histories.losses);
    assert_eq!(histories.jobs.iter().filter(|job| job.succeeded).count(), 3);
}

#[test]
fn lengths_that_lie_take_no_memory_and_what_follows_is_counted() {
    let schema = |event: &str| {
        format!(
            "Avro-Binary\n{{\"type\":\"record\",\"name\":\"Event\",\"fields\":[{{\"name\":\"type\",\"type\":{event}}}]}}\n"
        )
    };
    let endless = |ends_with: i64| {
        let mut bytes = Vec::new();
        avro::integer(i64::MAX / 2, &mut bytes);
        avro::integer(ends_with, &mut bytes);
        bytes
    };
    for (event, bytes) in [
        // A text of 4 EiB, one of less than nothing, as many nothings, a record of itself.
        (r#""string""#, endless(0)),
        (r#""string""#, vec![1, 0]),
        (r#"{"type":"array","items":"null"}"#, endless(0)),
        (r#""Event""#, vec![0; 3]),
        (r#"["null","string"]"#, vec![6, 0]),
        (r#"{"type":"enum","name":"E","symbols":[]}"#, vec![0]),
        (r#""long""#, vec![0xff; 12]),
        (r#""no such type""#, vec![0]),
        (r#"{"type":"fixed","name":"F","size":1152921504606846976}"#, vec![0; 9]),
    ] {
        let text = [schema(event).as_bytes(), &bytes].concat();
        let histories = history_of(&text);
        let found: Vec<_> = histories.losses.iter().filter(|loss| loss.what().contains("damaged")).collect();
        assert_eq!(found.len(), 1, "{event}: {:?}", histories.losses);
        assert_eq!((found[0].count, found[0].kind.unit()), (bytes.len() as u64, "bytes"), "{event}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_binary_history_gives_what_came_before(
        at in 0..REAL.len(),
        put in proptest::collection::vec(any::<u8>(), 1..20),
        rest in prop_oneof![Just(true), Just(false)],
    ) {
        let mut bytes = REAL[..at].to_vec();
        bytes.extend(&put);
        if rest {
            bytes.extend(&REAL[at..]);
        }
        let before: u64 = history_of(&REAL[..at]).jobs.iter().map(|job| job.events).sum();
        let read: u64 = history_of(&bytes).jobs.iter().map(|job| job.events).sum();
        // In front of the first event all hangs on the schema.
        let schema_ends = REAL.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0;
        prop_assert!(read >= before || at <= schema_ends, "{read} of {before}");
    }
}
