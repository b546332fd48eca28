//! Job histories as Hadoop 1.2 writes them: whole, and cut off at any byte.

use std::fs;

use merger::history::{AttemptState, Histories, read};
use trace::rows::TaskKind;

/// A history with the records and values of Hadoop 1.2.1, cut down to a setup task, a map and a reduce.
const HISTORY: &str = r#"Meta VERSION="1" .
Job JOBID="job_2026_0002" JOBNAME="TeraSort" USER="root" SUBMIT_TIME="900" JOBCONF="hdfs://m1:8020/a/job\.xml" .
Job JOBID="job_2026_0002" LAUNCH_TIME="1000" TOTAL_MAPS="1" TOTAL_REDUCES="1" JOB_STATUS="PREP" .
MapAttempt TASK_TYPE="SETUP" TASKID="task_2026_0002_m_000002" TASK_ATTEMPT_ID="attempt_2026_0002_m_000002_0" START_TIME="1100" TRACKER_NAME="tracker_w2:localhost/127\.0\.0\.1:36311" HTTP_PORT="50060" .
MapAttempt TASK_TYPE="SETUP" TASKID="task_2026_0002_m_000002" TASK_ATTEMPT_ID="attempt_2026_0002_m_000002_0" TASK_STATUS="SUCCESS" FINISH_TIME="1500" HOSTNAME="/r2/w2" STATE_STRING="setup" COUNTERS="" .
Task TASKID="task_2026_0002_m_000000" TASK_TYPE="MAP" START_TIME="2900" SPLITS="/r1/w1,/r2/w3" .
MapAttempt TASK_TYPE="MAP" TASKID="task_2026_0002_m_000000" TASK_ATTEMPT_ID="attempt_2026_0002_m_000000_0" START_TIME="3000" TRACKER_NAME="tracker_w1:localhost/127\.0\.0\.1:36311" HTTP_PORT="50060" .
MapAttempt TASK_TYPE="MAP" TASKID="task_2026_0002_m_000000" TASK_ATTEMPT_ID="attempt_2026_0002_m_000000_0" TASK_STATUS="SUCCESS" FINISH_TIME="5000" HOSTNAME="/r1/w1" STATE_STRING="" COUNTERS="" .
ReduceAttempt TASK_TYPE="REDUCE" TASKID="task_2026_0002_r_000000" TASK_ATTEMPT_ID="attempt_2026_0002_r_000000_0" START_TIME="6000" TRACKER_NAME="tracker_w1:localhost/127\.0\.0\.1:36311" .
ReduceAttempt TASK_TYPE="REDUCE" TASKID="task_2026_0002_r_000000" TASK_ATTEMPT_ID="attempt_2026_0002_r_000000_0" TASK_STATUS="KILLED" SHUFFLE_FINISHED="7000" SORT_FINISHED="7100" FINISH_TIME="8000" HOSTNAME="/r1/w1" .
Job JOBID="job_2026_0002" FINISH_TIME="9000" JOB_STATUS="SUCCESS" FINISHED_MAPS="1" FINISHED_REDUCES="1" FAILED_MAPS="0" FAILED_REDUCES="0" COUNTERS="{(FileSystemCounters)(FileSystemCounters)[(HDFS_BYTES_READ)(HDFS_BYTES_READ)(134218196)]}{(org\.apache\.hadoop\.mapred\.Task$Counter)(Map-Reduce Framework)[(REDUCE_SHUFFLE_BYTES)(Reduce shuffle bytes)(139587456)]}" .
"#;

fn history_of(text: &str) -> Histories {
    let capture = tempfile::tempdir().unwrap();
    fs::create_dir_all(capture.path().join("job")).unwrap();
    fs::write(capture.path().join("job/job_2026_0002_900_root_TeraSort"), text).unwrap();
    read(&[capture.path().to_owned()]).unwrap()
}

#[test]
fn a_whole_history_tells_what_the_later_ones_tell() {
    let histories = history_of(HISTORY);
    assert!(histories.losses.is_empty(), "{:?}", histories.losses);
    let job = &histories.jobs[0];
    assert_eq!((job.id.as_str(), job.name.as_str()), ("job_2026_0002", "TeraSort"));
    assert_eq!((job.submit_ms, job.launch_ms, job.finish_ms, job.maps, job.reduces), (900, 1_000, 9_000, 1, 1));
    assert!(job.succeeded);
    assert_eq!(job.counters["REDUCE_SHUFFLE_BYTES"], 139_587_456);
    assert_eq!(job.counters["HDFS_BYTES_READ"], 134_218_196);
    assert_eq!(job.split_hosts.values().collect::<Vec<_>>(), [&2]);
    assert_eq!(job.input_hosts.iter().collect::<Vec<_>>(), ["w1", "w3"]);
    let [map, setup, reduce] = job.attempts.as_slice() else { panic!("{:?}", job.attempts) };
    assert_eq!((map.kind, map.host.as_str(), map.start_ms, map.finish_ms), (TaskKind::Map, "w1", 3_000, 5_000));
    assert_eq!((setup.kind, setup.host.as_str(), setup.state), (TaskKind::Other, "w2", AttemptState::Succeeded));
    assert_eq!((reduce.shuffle_end_ms, reduce.sort_end_ms, reduce.state), (7_000, 7_100, AttemptState::Unsuccessful));
}

#[test]
fn splits_that_name_no_host_count_none_and_ends_of_tasks_take_nothing_back() {
    let split_hosts = |text: &str| history_of(text).jobs[0].split_hosts.values().copied().collect::<Vec<u32>>();
    assert_eq!(split_hosts(&HISTORY.replace("/r1/w1,/r2/w3", "")), [0]);
    let end = "Task TASKID=\"task_2026_0002_m_000000\" TASK_TYPE=\"MAP\" TASK_STATUS=\"SUCCESS\" FINISH_TIME=\"5100\" COUNTERS=\"\" .\n";
    assert_eq!(split_hosts(&format!("{HISTORY}{end}")), [2]);
}

#[test]
fn a_history_cut_at_any_byte_is_read_as_far_as_it_goes() {
    for end in (0..HISTORY.len()).step_by(7).chain(HISTORY.len() - 3..HISTORY.len()) {
        let histories = history_of(&HISTORY[..end]);
        let whole = HISTORY[..end].matches(" .\n").count().saturating_sub(1) as u64;
        let events: u64 = histories.jobs.iter().map(|job| job.events).sum();
        assert_eq!(events, whole, "cut at {end}");
        assert!(histories.jobs.iter().all(|job| !job.succeeded));
        let stated = histories.losses.iter().any(|loss| loss.what().starts_with("truncated") && loss.count > 0);
        assert_eq!(stated, end > 0 && !HISTORY[..end].ends_with('\n'), "cut at {end}: {:?}", histories.losses);
    }
}
