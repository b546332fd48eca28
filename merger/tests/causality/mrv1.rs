//! A job on Hadoop 1.x from its submission to its end: heartbeats of TaskTrackers carry what ended and what is launched.

use std::fs;

use crate::scenario::{Inferred, MS, Scenario, WAY};
use merger::causality::check;
use trace::ids::{ConnectionId, EventId, HostId, ProcessId};
use trace::rows::{Carrier, DependencyRow, EventRow, Evidence, MessageKind};

const HISTORY: &str = r#"Meta VERSION="1" .
Job JOBID="job_1_0001" JOBNAME="sort" SUBMIT_TIME="1000" .
Job JOBID="job_1_0001" LAUNCH_TIME="1100" TOTAL_MAPS="1" TOTAL_REDUCES="1" JOB_STATUS="PREP" .
MapAttempt TASK_TYPE="SETUP" TASK_ATTEMPT_ID="attempt_1_0001_m_000002_0" START_TIME="1302" TRACKER_NAME="tracker_w1:localhost/127\.0\.0\.1:1" .
MapAttempt TASK_TYPE="SETUP" TASK_ATTEMPT_ID="attempt_1_0001_m_000002_0" TASK_STATUS="SUCCESS" FINISH_TIME="2400" HOSTNAME="/r1/w1" .
MapAttempt TASK_TYPE="MAP" TASK_ATTEMPT_ID="attempt_1_0001_m_000000_0" START_TIME="3602" TRACKER_NAME="tracker_w2:localhost/127\.0\.0\.1:1" .
MapAttempt TASK_TYPE="MAP" TASK_ATTEMPT_ID="attempt_1_0001_m_000000_0" TASK_STATUS="SUCCESS" FINISH_TIME="5050" HOSTNAME="/r2/w2" .
ReduceAttempt TASK_TYPE="REDUCE" TASK_ATTEMPT_ID="attempt_1_0001_r_000000_0" START_TIME="6302" TRACKER_NAME="tracker_w1:localhost/127\.0\.0\.1:1" .
ReduceAttempt TASK_TYPE="REDUCE" TASK_ATTEMPT_ID="attempt_1_0001_r_000000_0" TASK_STATUS="SUCCESS" SHUFFLE_FINISHED="8300" SORT_FINISHED="8310" FINISH_TIME="9100" HOSTNAME="/r1/w1" .
MapAttempt TASK_TYPE="CLEANUP" TASK_ATTEMPT_ID="attempt_1_0001_m_000001_0" START_TIME="9302" TRACKER_NAME="tracker_w1:localhost/127\.0\.0\.1:1" .
MapAttempt TASK_TYPE="CLEANUP" TASK_ATTEMPT_ID="attempt_1_0001_m_000001_0" TASK_STATUS="SUCCESS" FINISH_TIME="10200" HOSTNAME="/r1/w1" .
Job JOBID="job_1_0001" FINISH_TIME="10302" JOB_STATUS="SUCCESS" FINISHED_MAPS="1" FINISHED_REDUCES="1" .
"#;

/// The job, with the number of the request that fetches.
struct Job {
    inferred: Inferred,
    fetch: usize,
}

fn beats(s: &mut Scenario, line: ConnectionId, method: &str, times: (u64, u64, u64)) {
    let (mut at, last, every) = times;
    let mut call = 1_000;
    while at <= last {
        s.rpc(line, method, call, at * MS, MS, Some(10));
        call += 1;
        at += every;
    }
}

/// An attempt's JVM that says when it is done.
fn child(s: &mut Scenario, tracker: (ProcessId, HostId), attempt: &str, seen: (u64, u64), done: u64) -> ProcessId {
    let process = s.process(tracker.1, "Child", (seen.0 * MS, seen.1 * MS));
    s.joined.processes[process.index()].attempt = Some(attempt.into());
    let umbilical = s.connect(process, tracker.0, "rpc");
    s.rpc(umbilical, "getTask", 1, (seen.0 + 10) * MS, MS, Some(1));
    s.rpc(umbilical, "done", 2, done * MS - WAY, MS, Some(1));
    process
}

fn run() -> Job {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/job_1_0001_1000_root_sort"), HISTORY).unwrap();
    let mut s = Scenario::default();
    s.captures.push(folder.path().to_owned());
    let (m1, w1, w2) = (s.host("m1"), s.host("w1"), s.host("w2"));
    let whole = (0, 12_000 * MS);
    let client = s.process(m1, "Client", whole);
    let jobs = s.process(m1, "JobTracker", whole);
    let trackers = [(s.process(w1, "TaskTracker", whole), w1), (s.process(w2, "TaskTracker", whole), w2)];
    for (tracker, first) in trackers.iter().zip([300, 600]) {
        let line = s.connect(tracker.0, jobs, "rpc");
        beats(&mut s, line, "heartbeat", (first, 11_700, 1_000));
        beats(&mut s, line, "getTaskCompletionEvents", (first + 500, 11_700, 1_000));
    }
    let line = s.connect(client, jobs, "rpc");
    s.rpc(line, "submitJob", 1, 1_000 * MS, MS, Some(1));
    child(&mut s, trackers[0], "attempt_1_0001_m_000002_0", (1_700, 2_450), 2_400);
    child(&mut s, trackers[1], "attempt_1_0001_m_000000_0", (4_000, 5_100), 5_050);
    let reduce = child(&mut s, trackers[0], "attempt_1_0001_r_000000_0", (6_700, 9_150), 9_100);
    child(&mut s, trackers[0], "attempt_1_0001_m_000001_0", (9_700, 10_250), 10_200);

    let umbilical = s.connect(reduce, trackers[0].0, "rpc");
    beats(&mut s, umbilical, "getMapCompletionEvents", (6_900, 8_000, 1_000));
    let shuffle = s.connect(reduce, trackers[1].0, "shuffle");
    let fetch = s.message(shuffle, true, MessageKind::ShuffleRequest, "/mapOutput", 0, 300, 7_950 * MS);
    let fetched = s.message(shuffle, false, MessageKind::ShuffleResponse, "/mapOutput", 0, 40_000, 8_200 * MS);
    s.edit(fetched).map = Some("attempt_1_0001_m_000000_0".into());
    s.edit(fetched).reduce = Some(0);
    Job { inferred: s.build(), fetch }
}

impl Job {
    /// The mark of a name that belongs to an attempt.
    fn mark(&self, name: &str, attempt: &str) -> &EventRow {
        let causal = &self.inferred.causal;
        let task = causal.tasks.iter().find(|task| task.attempt == attempt).unwrap().task;
        let mark = causal.events.iter().find(|event| event.name == name && event.task == Some(task));
        mark.unwrap_or_else(|| panic!("no {name} of {attempt}"))
    }

    fn edge(&self, event: EventId, on: EventId) -> &DependencyRow {
        self.inferred.causes(event).into_iter().find(|row| row.on_event == on).unwrap_or_else(|| {
            panic!("{event:?} does not wait for {on:?} but for {:?}", self.inferred.causes(event));
        })
    }

    /// The name of the timer by whose beat news travels.
    fn timer(&self, row: &DependencyRow) -> &str {
        row.timer.map_or("", |timer| self.inferred.causal.timers[timer.index()].name.as_str())
    }
}

const SETUP: &str = "attempt_1_0001_m_000002_0";
const MAP: &str = "attempt_1_0001_m_000000_0";
const REDUCE: &str = "attempt_1_0001_r_000000_0";
const CLEANUP: &str = "attempt_1_0001_m_000001_0";

#[test]
fn the_setup_task_is_launched_with_the_first_heartbeat_after_the_submission() {
    let job = run();
    let assigned = job.mark("container.assigned", SETUP);
    let edge = job.edge(assigned.event, job.inferred.mark("job.submit").event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
    assert_eq!(assigned.recorded_ns, 1_300 * MS + WAY);
    let start = job.mark("task.start", SETUP);
    let edge = job.edge(start.event, assigned.event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Response)));
}

#[test]
fn a_map_waits_for_the_setup_task_which_another_tracker_reports() {
    let job = run();
    let known = job.mark("task.known", SETUP);
    let edge = job.edge(known.event, job.mark("task.finish", SETUP).event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
    let edge = job.edge(job.mark("container.assigned", MAP).event, known.event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
}

#[test]
fn a_reduce_waits_for_enough_maps_and_the_cleanup_task_for_all_tasks() {
    let job = run();
    let known = job.mark("task.known", MAP);
    job.edge(known.event, job.mark("task.finish", MAP).event);
    job.edge(job.mark("container.assigned", REDUCE).event, known.event);
    let cleanup = job.mark("container.assigned", CLEANUP).event;
    job.edge(cleanup, known.event);
    // Its own tracker reports the reduce's end, with the very heartbeat that brings the cleanup task.
    let edge = job.edge(cleanup, job.mark("task.finish", REDUCE).event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
}

#[test]
fn a_second_task_of_a_kind_waits_for_the_slot_of_the_first() {
    let job = run();
    let freed = job.mark("container.end", SETUP);
    let edge = job.edge(job.mark("container.assigned", CLEANUP).event, freed.event);
    assert_eq!((edge.evidence, job.timer(edge)), (Evidence::Slot, "heartbeat"));
}

#[test]
fn the_news_of_a_map_comes_to_the_reduce_by_three_beats() {
    let job = run();
    let known = job.mark("map.known", MAP);
    let edge = job.edge(known.event, job.mark("task.finish", MAP).event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
    let stated = job.mark("map.told", MAP);
    let edge = job.edge(stated.event, known.event);
    assert_eq!((job.timer(edge), edge.carrier), ("getTaskCompletionEvents", Some(Carrier::Response)));
    let fetch = job.inferred.first(job.fetch);
    let edge = job.edge(fetch.event, stated.event);
    assert_eq!((job.timer(edge), edge.carrier), ("getMapCompletionEvents", Some(Carrier::Response)));
}

#[test]
fn the_job_ends_with_the_heartbeat_that_reports_the_cleanup_task() {
    let job = run();
    let finish = job.inferred.mark("job.finish");
    let edge = job.edge(finish.event, job.mark("task.finish", CLEANUP).event);
    assert_eq!((job.timer(edge), edge.carrier), ("heartbeat", Some(Carrier::Request)));
}

#[test]
fn on_the_recorded_network_everything_happens_when_it_did() {
    let job = run();
    let report = check::verify(&job.inferred.causal.events, &job.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.without_beat, report.off), (0, 0, 0, 0));
}
