//! Each figure of a check is what its definition says, and moves when what it measures goes wrong.

use merger::check::{Report, check};
use trace::ids::{ConnectionId, HostId, JobId, MessageId, ProcessId, TaskId};
use trace::rows::{
    ConnectionRow, JobRow, MessageKind, MessageRow, OwnerEvidence, ProcessRow, TaskKind, TaskRow, Trace,
};

const MAP: &str = "attempt_1700000000000_0001_m_000000_0";
const REDUCE: &str = "attempt_1700000000000_0001_r_000000_0";
const FAILED: &str = "attempt_1700000000000_0001_r_000000_1";

fn process(number: u32, role: &str, hadoop: bool) -> ProcessRow {
    ProcessRow {
        process: ProcessId(number),
        host: HostId(0),
        pid: number + 100,
        start_ticks: 1,
        role: role.into(),
        main: role.into(),
        hadoop,
        attempt: None,
        container: None,
        first_seen_ns: 1,
        last_seen_ns: 2,
    }
}

fn connection(number: u32, owners: [Option<u32>; 2], bytes: u64, kernel: Option<u64>) -> ConnectionRow {
    let evidence = |owner: Option<u32>| owner.map_or(OwnerEvidence::Unknown, |_| OwnerEvidence::Jvm);
    ConnectionRow {
        connection: ConnectionId(number),
        client_host: HostId(0),
        client: format!("10.0.0.1:{}", 40_000 + number),
        server_host: HostId(0),
        server: "10.0.0.2:9866".into(),
        client_process: owners[0].map(ProcessId),
        client_evidence: evidence(owners[0]),
        server_process: owners[1].map(ProcessId),
        server_evidence: evidence(owners[1]),
        protocol: "data-transfer".into(),
        first_ns: 1,
        last_ns: 2,
        syn_seen: true,
        end_seen: true,
        loopback: false,
        client_bytes: 0,
        server_bytes: bytes,
        client_missing_bytes: 0,
        server_missing_bytes: 0,
        client_retransmitted_bytes: 0,
        server_retransmitted_bytes: 0,
        client_kernel_bytes: None,
        server_kernel_bytes: kernel,
        handshake_ns: None,
    }
}

fn message(
    connection: u32,
    kind: MessageKind,
    name: &str,
    bytes: u64,
    app_bytes: u64,
    attempt: Option<&str>,
) -> MessageRow {
    MessageRow {
        message: MessageId(0),
        connection: ConnectionId(connection),
        from_client: false,
        kind,
        name: name.into(),
        call: 0,
        offset: 0,
        bytes,
        app_bytes,
        sent_ns: 10,
        sent_end_ns: 20,
        delivered_ns: 30,
        block: None,
        attempt: attempt.map(str::to_owned),
        map: None,
        reduce: None,
        hop: None,
        unread_bytes: None,
        evidence: "framing".into(),
    }
}

fn task(number: u32, attempt: &str, succeeded: bool) -> TaskRow {
    TaskRow {
        task: TaskId(number),
        job: JobId(0),
        attempt: attempt.into(),
        kind: if attempt.contains("_m_") { TaskKind::Map } else { TaskKind::Reduce },
        host: None,
        process: None,
        start_ns: 1000,
        shuffle_end_ns: None,
        sort_end_ns: None,
        finish_ns: 2000,
        succeeded,
    }
}

/// A job whose counters are met exactly.
fn trace() -> Trace {
    let mut trace = Trace::default();
    (trace.manifest.version, trace.manifest.start_ns, trace.manifest.end_ns) = (1, 0, 10_000_000_000);
    trace.processes = vec![
        process(0, "YarnChild", true),
        process(1, "DataNode", true),
        process(2, "other", false),
        process(3, "other", false),
        process(4, "MRAppMaster", true),
    ];
    trace.connections = vec![
        connection(0, [Some(0), Some(1)], 10_000, Some(10_000)),
        connection(1, [Some(2), Some(3)], 5_000_000, Some(1)),
        connection(2, [Some(4), Some(1)], 1_000, Some(1_000)),
    ];
    let hop = |hop: u32, row: MessageRow| MessageRow { hop: Some(hop), ..row };
    trace.messages = vec![
        MessageRow { unread_bytes: Some(50), ..message(0, MessageKind::BlockData, "read", 1100, 1050, Some(MAP)) },
        hop(1, message(0, MessageKind::BlockData, "write", 2100, 2000, Some(REDUCE))),
        hop(2, message(0, MessageKind::BlockData, "write", 2100, 2000, Some(REDUCE))),
        message(0, MessageKind::ShuffleResponse, "/mapOutput", 3100, 3000, Some(REDUCE)),
        message(0, MessageKind::ShuffleResponse, "/mapOutput", 1600, 1500, Some(FAILED)),
        message(1, MessageKind::Unknown, "", 5_000_000, 0, None),
        hop(1, message(2, MessageKind::BlockData, "write", 1000, 900, None)),
    ];
    trace.tasks = vec![task(0, MAP, true), task(1, REDUCE, true), task(2, FAILED, false)];
    trace.jobs = vec![JobRow {
        job: JobId(0),
        id: "job_1700000000000_0001".into(),
        name: "sort".into(),
        submit_ns: 1000,
        launch_ns: 1100,
        finish_ns: 3000,
        maps: 1,
        reduces: 1,
        shuffle_bytes: Some(3000),
        hdfs_bytes_read: Some(1000),
        hdfs_bytes_written: Some(2000),
        split_hosts: None,
        input_hosts: None,
        succeeded: true,
    }];
    trace
}

fn with(change: impl FnOnce(&mut Trace)) -> Report {
    let mut trace = trace();
    change(&mut trace);
    check(&trace)
}

#[test]
fn a_trace_that_is_right_has_no_error() {
    let report = with(|_| {});
    assert_eq!(report.payload_bytes, 11_000, "less what is not Hadoop's at either end");
    assert_eq!((report.owned_both_ends_share, report.in_known_message_share), (Some(1.0), Some(1.0)));
    assert_eq!(report.captured_vs_kernel_error, Some(0.0));
    assert_eq!(report.shuffle_bytes_error, Some(0.0));
    assert_eq!(report.hdfs_read_bytes_error, Some(0.0));
    assert_eq!(report.hdfs_write_bytes_error, Some(0.0));
    assert_eq!((report.missed.clone(), report.reasons.len()), (Vec::new(), 0));
    let volumes = &report.detail.volumes;
    assert_eq!((volumes.read_unread_bytes, volumes.later_hops_bytes, volumes.other_shuffle_bytes), (50, 2000, 1500));
    assert_eq!(volumes.other_written_bytes.get("MRAppMaster"), Some(&900));
}

#[test]
fn an_end_without_owner_or_role_is_not_owned() {
    let none = with(|trace| trace.connections[2].client_process = None);
    assert_eq!(none.owned_both_ends_share, Some(10.0 / 11.0));
    let no_role = with(|trace| trace.processes[4].role = "unknown".into());
    assert_eq!(no_role.owned_both_ends_share, Some(10.0 / 11.0));
    assert!(no_role.missed[0].starts_with("owned_both_ends_share") && no_role.detail.without_owner.len() == 1);
    let all = no_role.detail.counted_connections;
    assert_eq!(no_role.owned_connections_share, Some((all - 1) as f64 / all as f64));
    assert!(no_role.missed[1].starts_with("owned_connections_share"), "{:?}", no_role.missed);
    // A connection without payload counts in number, and is listed.
    let empty = with(|trace| {
        trace.connections[2].client_process = None;
        trace.connections[2].client_bytes = 0;
        trace.connections[2].server_bytes = 0;
    });
    assert_eq!(empty.owned_both_ends_share, Some(1.0));
    assert_eq!(empty.detail.connections_without_owner, 1);
    assert_eq!(empty.detail.without_owner[0].reason, "client: no owner");
    // Only if both ends are known not to be Hadoop's does a connection not count.
    assert_eq!(with(|trace| trace.connections[1].client_process = None).payload_bytes, 5_011_000);
    assert_eq!(with(|trace| trace.connections[1].client_process = Some(ProcessId(1))).payload_bytes, 5_011_000);
}

#[test]
fn bytes_in_unknown_messages_lower_the_share() {
    let report = with(|trace| trace.messages[3].kind = MessageKind::Unknown);
    assert_eq!(report.in_known_message_share, Some(7_900.0 / 11_000.0));
    assert_eq!(report.detail.in_unknown_messages[0].bytes, 3100);
    assert_eq!(report.shuffle_bytes_error, Some(-1.0));
}

#[test]
fn the_kernel_counts_what_the_capture_lost() {
    let report = with(|trace| trace.connections[0].server_bytes = 9_000);
    assert_eq!(report.captured_vs_kernel_error, Some(-1_000.0 / 11_000.0));
    assert!(report.missed.iter().any(|missed| missed.starts_with("captured_vs_kernel_error")));
    let unknown = with(|trace| trace.connections.iter_mut().for_each(|row| row.server_kernel_bytes = None));
    assert!(unknown.captured_vs_kernel_error.is_none() && unknown.reasons.contains_key("captured_vs_kernel_error"));
}

#[test]
fn counters_are_compared_in_both_directions() {
    let more = with(|trace| trace.messages[0].app_bytes += 10);
    assert_eq!(more.hdfs_read_bytes_error, Some(0.01));
    let less = with(|trace| trace.messages[1].app_bytes -= 20);
    assert_eq!(less.hdfs_write_bytes_error, Some(-0.01));
    assert_eq!(less.missed.len(), 1);
}

#[test]
fn what_cannot_be_computed_is_null_with_a_reason() {
    let no_history = with(|trace| trace.jobs.clear());
    let outside = with(|trace| trace.jobs[0].finish_ns = 20_000_000_000);
    for (report, reason) in [(no_history, "no job history"), (outside, "no job ran from begin to end")] {
        for (name, value) in [
            ("shuffle_bytes_error", report.shuffle_bytes_error),
            ("hdfs_read_bytes_error", report.hdfs_read_bytes_error),
            ("hdfs_write_bytes_error", report.hdfs_write_bytes_error),
        ] {
            assert!(value.is_none() && report.reasons[name].contains(reason), "{name}: {:?}", report.reasons);
        }
        assert_eq!(report.missed, Vec::<String>::new());
    }
}

#[test]
fn what_arrives_before_it_left_is_a_violation() {
    let report = with(|trace| trace.messages[0].delivered_ns = 15);
    assert_eq!(report.causality_violations, 1);
    assert!(report.missed[0].starts_with("causality_violations"));
}

#[test]
fn listings_alone_need_not_know_whose_short_connections_were() {
    let mut trace = Trace {
        processes: vec![process(0, "DataNode", true), process(1, "NameNode", true)],
        connections: vec![connection(0, [Some(0), Some(1)], 1_000, None), connection(1, [None, Some(1)], 1_000, None)],
        ..Trace::default()
    };
    let missed = |trace: &Trace| {
        let report = check(trace);
        assert_eq!(report.owned_both_ends_share, Some(0.5));
        (report.missed.iter().filter(|missed| missed.starts_with("owned_")).count(), report.verdict())
    };
    let (owned, verdict) = missed(&trace);
    assert!(owned == 2 && verdict.starts_with("FAIL: 2 targets are missed"), "an agent tells of all: {verdict}");
    for process in &mut trace.processes {
        process.start_ticks = 0;
    }
    let (owned, verdict) = missed(&trace);
    assert!(
        owned == 0 && verdict.starts_with("PASS") && verdict.contains("1 connections of less than a second"),
        "{verdict}"
    );
    trace.connections[1].last_ns = trace.connections[1].first_ns + 1_500_000_000;
    assert_eq!(missed(&trace).0, 2, "one that a listing had to see");
}
