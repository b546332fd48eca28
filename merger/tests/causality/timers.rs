//! Heartbeats and polls: they go on by themselves, and what they carry is news.

use crate::scenario::{MS, Scenario, WAY};
use trace::jvm::JvmRecord;
use trace::rows::Evidence;

#[test]
fn beats_wait_for_the_beat_before_and_for_its_pause() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (node, manager) =
        (s.process(a, "NodeManager", (0, 9_000 * MS)), s.process(b, "ResourceManager", (0, 9_000 * MS)));
    let line = s.connect(node, manager, "rpc");
    let mut beats = Vec::new();
    for number in 0..5u64 {
        beats.push(s.rpc(line, "nodeHeartbeat", number as i64, (1 + number * 1_000) * MS, MS, Some(33)));
    }
    let inferred = s.build();

    assert_eq!(inferred.causal.timers.len(), 1);
    let timer = &inferred.causal.timers[0];
    assert_eq!((timer.name.as_str(), timer.beats, timer.service_ns), ("nodeHeartbeat", 5, MS));
    assert_eq!(timer.pause_ns, 999 * MS - 2 * WAY);
    for pair in beats.windows(2) {
        let edge = inferred.edge(pair[1].0, pair[0].1).expect("the response before");
        assert_eq!(edge.evidence, Evidence::Timer);
        assert_eq!(inferred.causes(edge.event).len(), 1, "a beat waits for nothing but its timer");
    }
    let last = inferred.first(beats[4].1);
    assert_eq!((last.timer, last.beat), (Some(timer.timer), Some(4)));
}

#[test]
fn a_status_update_by_the_tasks_own_thread_is_no_beat() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (task, master) = (s.process(a, "YarnChild", (0, 9_000 * MS)), s.process(b, "MRAppMaster", (0, 9_000 * MS)));
    let line = s.connect(task, master, "rpc");
    s.rpc(line, "getTask", 1, MS, MS, Some(1));
    let (own, _, _) = s.rpc(line, "statusUpdate", 2, 500 * MS, MS, Some(1));
    let (beat, _, _) = s.rpc(line, "statusUpdate", 3, 3_000 * MS, MS, Some(30));
    s.rpc(line, "statusUpdate", 4, 6_000 * MS, MS, Some(30));
    let inferred = s.build();

    assert_eq!(inferred.first(own).timer, None);
    assert!(inferred.first(beat).timer.is_some());
    assert_eq!(inferred.causal.timers[0].beats, 2);
}

#[test]
fn a_task_does_not_wait_for_its_thread_that_reports_progress() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let task = s.process(a, "YarnChild", (0, 9_000 * MS));
    let master = s.process(b, "MRAppMaster", (0, 9_000 * MS));
    let line = s.connect(task, master, "rpc");
    let (_, got, _) = s.rpc(line, "getTask", 1, MS, MS, Some(1));
    s.jvm(task, JvmRecord::Thread { t: 10 * MS, th: 1, child: 30, name: "communication thread".into() });
    let (_, reported, _) = s.rpc(line, "statusUpdate", 2, 3_000 * MS, MS, Some(30));
    let (done, _, _) = s.rpc(line, "done", 3, 3_100 * MS, MS, Some(1));
    let inferred = s.build();

    assert!(inferred.edge(done, got).is_some());
    assert!(inferred.edge(done, reported).is_none(), "the report was no cause, though it came last");
}
