//! A job on YARN from its submission to its end: each step waits for what the cluster really waits for, and news goes
//! by the beat that brings it.

use std::fs;

use crate::scenario::{Inferred, MS, Scenario, WAY};
use causal::{JobGraph, Options, PathKind, critical_path, recorded};
use merger::causality::check;
use trace::ids::{ConnectionId, EventId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{Carrier, DependencyRow, EventRow, Evidence, MessageKind};

/// Numbers of the messages that tests ask about.
struct Job {
    inferred: Inferred,
    start_master: usize,
    start_map: usize,
    start_reduce: usize,
    map_done: usize,
    fetch: usize,
    fetched: usize,
    after_shuffle: usize,
    counters: usize,
}

fn beats(s: &mut Scenario, line: ConnectionId, method: &str, first: u64, last: u64, thread: u64) {
    let mut call = 1_000;
    let mut at = first;
    while at <= last {
        s.rpc(line, method, call, at * MS, MS, Some(thread));
        call += 1;
        at += 1_000;
    }
}

fn child(s: &mut Scenario, host: trace::ids::HostId, attempt: &str, seen: (u64, u64)) -> ProcessId {
    let process = s.process(host, "YarnChild", (seen.0 * MS, seen.1 * MS));
    s.joined.processes[process.index()].attempt = Some(attempt.into());
    process
}

fn history(folder: &std::path::Path) {
    let job = r#""jobid":"job_1_0001""#;
    let start = |kind: &str, letter: &str, at: u64, host: &str| {
        format!(
            r#"{{"type":"{kind}_ATTEMPT_STARTED","event":{{"e":{{"attemptId":"attempt_1_0001_{letter}_000000_0","startTime":{at},"trackerName":"{host}"}}}}}}"#
        )
    };
    let lines = [
        "Avro-Json".to_owned(),
        format!(r#"{{"type":"JOB_SUBMITTED","event":{{"e":{{{job},"jobName":"sort","submitTime":1000}}}}}}"#),
        r#"{"type":"AM_STARTED","event":{"e":{"applicationAttemptId":"appattempt_1_0001_000001","nodeManagerHost":"w1"}}}"#.to_owned(),
        format!(r#"{{"type":"JOB_INITED","event":{{"e":{{{job},"launchTime":2900}}}}}}"#),
        start("MAP", "m", 5_012, "w2"),
        r#"{"type":"MAP_ATTEMPT_FINISHED","event":{"e":{"attemptId":"attempt_1_0001_m_000000_0","finishTime":7021,"hostname":"w2"}}}"#.to_owned(),
        start("REDUCE", "r", 10_012, "w1"),
        r#"{"type":"REDUCE_ATTEMPT_FINISHED","event":{"e":{"attemptId":"attempt_1_0001_r_000000_0","shuffleFinishTime":10850,"sortFinishTime":10860,"finishTime":12001,"hostname":"w1"}}}"#.to_owned(),
        format!(r#"{{"type":"JOB_FINISHED","event":{{"e":{{{job},"finishTime":12080,"finishedMaps":1,"finishedReduces":1}}}}}}"#),
    ];
    fs::create_dir_all(folder.join("job")).unwrap();
    fs::write(folder.join("job/job_1_0001.jhist"), lines.join("\n") + "\n").unwrap();
}

fn run() -> Job {
    run_with(12_900)
}

/// With a master whose last `allocate` goes at `last_allocate`, milliseconds.
fn run_with(last_allocate: u64) -> Job {
    let folder = tempfile::tempdir().unwrap();
    history(folder.path());
    let mut s = Scenario::default();
    s.captures.push(folder.path().to_owned());
    let (m1, w1, w2) = (s.host("m1"), s.host("w1"), s.host("w2"));
    let whole = (0, 14_000 * MS);
    let client = s.process(m1, "Client", whole);
    let manager = s.process(m1, "ResourceManager", whole);
    let names = s.process(m1, "NameNode", whole);
    let nodes = [s.process(w1, "NodeManager", whole), s.process(w2, "NodeManager", whole)];
    let master = s.process(w1, "MRAppMaster", (2_000 * MS, 13_000 * MS));
    s.joined.processes[master.index()].container = Some("container_1_0001_01_000001".into());
    let map = child(&mut s, w2, "attempt_1_0001_m_000000_0", (5_500, 7_100));
    let reduce = child(&mut s, w1, "attempt_1_0001_r_000000_0", (10_500, 12_100));

    // Heartbeats of the nodes, and the submission of the job.
    for (node, first) in nodes.iter().zip([300, 600]) {
        let line = s.connect(*node, manager, "rpc");
        beats(&mut s, line, "nodeHeartbeat", first, 13_000, 10);
    }
    let line = s.connect(client, manager, "rpc");
    s.rpc(line, "submitApplication", 1, 1_000 * MS, MS, Some(1));
    let poll = s.connect(client, master, "rpc");
    beats(&mut s, poll, "getJobReport", 3_500, 12_500, 1);
    let (counters, ..) = s.rpc(poll, "getCounters", 2_000, 12_600 * MS, MS, Some(1));
    let line = s.connect(manager, nodes[0], "rpc");
    let (start_master, ..) = s.rpc(line, "startContainers", 1, 1_310 * MS, MS, Some(50));

    // The master registers, asks, and has containers started.
    let scheduler = s.connect(master, manager, "rpc");
    s.rpc(scheduler, "registerApplicationMaster", 1, 2_500 * MS, MS, Some(5));
    s.jvm(master, JvmRecord::Thread { t: 2_600 * MS, th: 5, child: 6, name: "allocator".into() });
    beats(&mut s, scheduler, "allocate", 3_000, last_allocate, 6);
    let to_w2 = s.connect(master, nodes[1], "rpc");
    let (start_map, ..) = s.rpc(to_w2, "startContainers", 2, 5_010 * MS, MS, Some(7));
    let to_w1 = s.connect(master, nodes[0], "rpc");
    let (start_reduce, ..) = s.rpc(to_w1, "startContainers", 3, 10_010 * MS, MS, Some(8));

    // The map.
    let umbilical = s.connect(map, master, "rpc");
    s.rpc(umbilical, "getTask", 1, 5_600 * MS, MS, Some(1));
    let (map_done, ..) = s.rpc(umbilical, "done", 2, 7_020 * MS, MS, Some(1));

    // The reduce.
    let umbilical = s.connect(reduce, master, "rpc");
    s.rpc(umbilical, "getTask", 1, 10_600 * MS, MS, Some(1));
    s.jvm(reduce, JvmRecord::Thread { t: 10_650 * MS, th: 1, child: 9, name: "EventFetcher".into() });
    s.jvm(reduce, JvmRecord::Thread { t: 10_660 * MS, th: 1, child: 11, name: "fetcher#1".into() });
    beats(&mut s, umbilical, "getMapCompletionEvents", 10_700, 10_800, 9);
    let shuffle = s.connect(reduce, nodes[1], "shuffle");
    let fetch = s.message(shuffle, true, MessageKind::ShuffleRequest, "/mapOutput", 0, 300, 10_750 * MS);
    let fetched = s.message(shuffle, false, MessageKind::ShuffleResponse, "/mapOutput", 0, 40_000, 10_790 * MS);
    s.edit(fetched).map = Some("attempt_1_0001_m_000000_0".into());
    s.edit(fetched).reduce = Some(0);
    let done_fetching = 10_790 * MS + WAY;
    s.span(reduce, 11, "fetch", "attempt_1_0001_m_000000_0", (10_740 * MS, done_fetching), Some(fetch), Some(fetched));
    let attempt = "attempt_1_0001_r_000000_0".to_owned();
    s.jvm(reduce, JvmRecord::Phase { t: 10_860 * MS, th: 1, attempt, phase: "reduce".into() });
    let (after_shuffle, ..) = s.rpc(umbilical, "statusUpdate", 2, 10_900 * MS, MS, Some(1));
    s.rpc(umbilical, "done", 3, 12_000 * MS, MS, Some(1));

    // The master commits.
    let line = s.connect(master, names, "rpc");
    s.rpc(line, "rename", 1, 12_060 * MS, MS, Some(12));
    Job {
        inferred: s.build(),
        start_master,
        start_map,
        start_reduce,
        map_done,
        fetch,
        fetched,
        after_shuffle,
        counters,
    }
}

impl Job {
    fn mark(&self, name: &str, nth: usize) -> &EventRow {
        self.inferred.causal.events.iter().filter(|event| event.name == name).nth(nth).unwrap()
    }

    /// The edge from one event to another.
    fn edge(&self, event: EventId, on: EventId) -> &DependencyRow {
        let causes = self.inferred.causes(event);
        let found = causes.iter().find(|row| row.on_event == on);
        found.unwrap_or_else(|| panic!("{event} does not wait for {on}, but for {causes:?}"))
    }

    fn by(&self, edge: &DependencyRow) -> Option<(String, Carrier)> {
        let name = self.inferred.causal.timers[edge.timer?.index()].name.clone();
        Some((name, edge.carrier?))
    }
}

fn by(name: &str, carrier: Carrier) -> Option<(String, Carrier)> {
    Some((name.into(), carrier))
}

#[test]
fn the_masters_container_is_assigned_with_a_heartbeat_of_its_node() {
    let job = run();
    let assigned = job.mark("container.assigned", 0);
    let start = job.inferred.first(job.start_master).event;
    assert_eq!(job.by(job.edge(start, assigned.event)), None);
    let edge = job.edge(assigned.event, job.mark("job.submit", 0).event);
    assert_eq!(job.by(edge), by("nodeHeartbeat", Carrier::Request));
    assert_eq!(assigned.delay_ns, 0, "the scheduler assigns with the heartbeat itself");
}

#[test]
fn a_maps_container_is_asked_for_assigned_and_learnt_of_by_beats() {
    let job = run();
    let (asked, assigned) = (job.mark("maps.asked", 0), job.mark("container.assigned", 1));
    let edge = job.edge(job.inferred.first(job.start_map).event, assigned.event);
    assert_eq!(job.by(edge), by("allocate", Carrier::Response));
    assert_eq!(job.by(job.edge(assigned.event, asked.event)), by("nodeHeartbeat", Carrier::Request));
    assert_eq!(asked.recorded_ns, 4_000 * MS + WAY, "the last request before the response that brought the container");
}

#[test]
fn a_reduce_waits_for_its_share_of_maps_and_two_rounds_of_asking() {
    let job = run();
    let scheduled = job.mark("reduces.scheduled", 0);
    let (finish, asked) = (job.mark("task.finish", 0), job.mark("reduces.asked", 0));
    assert_eq!(job.by(job.edge(scheduled.event, finish.event)), by("allocate", Carrier::Response));
    assert_eq!(job.by(job.edge(asked.event, scheduled.event)), by("allocate", Carrier::Request));
    assert_eq!(asked.recorded_ns, 9_000 * MS + WAY);
    let assigned = job.mark("container.assigned", 2);
    assert_eq!(job.by(job.edge(assigned.event, asked.event)), by("nodeHeartbeat", Carrier::Request));
    let start = job.inferred.first(job.start_reduce).event;
    assert_eq!(job.by(job.edge(start, assigned.event)), by("allocate", Carrier::Response));
}

#[test]
fn what_no_beat_brought_any_more_did_not_happen_at_time_zero() {
    // The only map is done at 7 s.
    let job = run_with(6_900);
    for event in &job.inferred.causal.events {
        assert!(event.recorded_ns >= 300 * MS, "before the first message: {event:?}");
        assert!(!event.name.starts_with("reduces."), "nobody could ask: {event:?}");
    }
}

#[test]
fn a_fetch_waits_for_the_poll_that_tells_of_its_map() {
    let job = run();
    let finish = job.mark("task.finish", 0);
    assert_eq!(job.edge(finish.event, job.inferred.first(job.map_done).event).evidence, Evidence::Protocol);
    let edge = job.edge(job.inferred.first(job.fetch).event, finish.event);
    assert_eq!(job.by(edge), by("getMapCompletionEvents", Carrier::Response));
    let shuffled = job.mark("task.shuffle_end", 0);
    assert_eq!(shuffled.recorded_ns, 10_850 * MS);
    job.edge(shuffled.event, job.inferred.first(job.fetched).event);
    job.edge(job.inferred.first(job.after_shuffle).event, job.mark("task.sort_end", 0).event);
}

#[test]
fn a_clients_next_step_after_its_last_poll_is_because_the_job_was_finished() {
    let job = run();
    let edge = job.edge(job.inferred.first(job.counters).event, job.mark("job.finish", 0).event);
    assert_eq!(job.by(edge), by("getJobReport", Carrier::Response));
}

#[test]
fn everything_comes_out_as_recorded_on_the_recorded_network() {
    let job = run();
    let report = check::verify(&job.inferred.causal.events, &job.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.without_beat, report.off), (0, 0, 0, 0));
    assert_eq!(report.worst.unwrap().0, 0);
    let jobs = &job.inferred.causal.jobs;
    assert_eq!((jobs.len(), jobs[0].submit_ns, jobs[0].finish_ns), (1, 1_000 * MS, 12_080 * MS));
    let trace = job.inferred.trace();
    let graph = JobGraph::new(&trace, None, Options { handshakes: false, ..Options::default() }).unwrap();
    let path = critical_path(&graph, &recorded(&graph));
    let ends = (path.pieces[0].from_ps, path.pieces.last().unwrap().to_ps);
    assert_eq!(ends, (0, 11_080 * MS * 1_000), "the path goes back from the end to the submission");
    assert!(path.pieces.windows(2).all(|pair| pair[0].to_ps == pair[1].from_ps), "without a gap");
    assert!(path.total_of_ps(PathKind::Outside) <= WAY * 1_000);
    let timers_ps = path.total_of_ps(PathKind::TimerWait) + path.total_of_ps(PathKind::TimerPause);
    assert!(timers_ps > 2_000 * MS * 1_000, "heartbeats are a large part of it: {timers_ps}");
}
