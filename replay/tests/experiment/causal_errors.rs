//! A trace that cannot be replayed is refused with the reason: what is missing, or who waits for whom.

use crate::common::{MS, RecordedNetwork, TraceBuilder};
use causal::{CausalError, JobGraph, Options};
use replay::workload::run;
use trace::ids::{ConnectionId, EventId, HostId, ProcessId, TimerId};
use trace::rows::{Carrier, DependencyRow, Evidence, On, Trace};

fn small() -> TraceBuilder {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let call = builder.send(connection, true, 10, MS, 2 * MS);
    builder.after(call, EventId(0), On::Sent);
    let finish = builder.mark("job.finish", 0, 5 * MS);
    builder.after(finish, call, On::Delivered);
    builder
}

fn error(trace: &Trace) -> CausalError {
    match JobGraph::new(trace, None, Options::default()) {
        Err(error) => error,
        Ok(graph) => run(&graph, &mut RecordedNetwork::of(trace, 0), |_| ()).unwrap_err(),
    }
}

fn wait(event: u32, on_event: u32) -> DependencyRow {
    DependencyRow {
        event: EventId(event),
        on_event: EventId(on_event),
        on: On::Sent,
        timer: None,
        carrier: None,
        evidence: Evidence::Heuristic,
    }
}

#[test]
fn a_cycle_is_named_with_its_events() {
    let mut trace = small().build();
    trace.dependencies.push(wait(1, 2));
    let text = error(&trace).to_string();
    assert!(text.contains("a cycle in the trace") && text.contains("event 1") && text.contains("event 2"), "{text}");
    assert!(text.contains("rpc-request call a -> b, 10 bytes"), "{text}");
}

#[test]
fn an_event_that_waits_for_itself_is_a_cycle() {
    let mut trace = small().build();
    trace.dependencies.push(wait(2, 2));
    let text = error(&trace).to_string();
    assert!(text.contains("event 2 (job.finish) waits for itself"), "{text}");
}

#[test]
fn news_for_beats_that_are_stuck_names_the_beat_that_keeps_it() {
    let mut builder = small();
    let connection = builder.connection(1, 0);
    let timer = builder.timer("nodeHeartbeat", connection, 10 * MS, MS);
    let heartbeats = builder.heartbeats(timer, MS, 12 * MS, 1, 0);
    let [request, _] = heartbeats[0];
    let mut trace = builder.build();
    // The beat waits for the job's end, which waits for news by this beat.
    trace.events[2].recorded_ns += 100_000_000;
    trace.events[2].recorded_delivered_ns += 100_000_000;
    trace.jobs[0].finish_ns += 100_000_000;
    trace.dependencies.push(wait(request.0, 2));
    trace.dependencies.push(DependencyRow { timer: Some(timer), carrier: Some(Carrier::Request), ..wait(2, 1) });
    let text = error(&trace).to_string();
    assert!(text.contains("nodeHeartbeat") && text.contains("cycle"), "{text}");
}

#[test]
fn a_halt_does_not_go_unnoticed_while_other_timers_beat() {
    let mut builder = small();
    let connection = builder.connection(1, 0);
    let timer = builder.timer("poll", connection, 10 * MS, MS);
    let other = builder.mark("other", 0, 4 * MS);
    let mut trace = builder.build();
    trace.dependencies.push(wait(1, 2));
    // Somebody else's news keeps the timer beating only until it has arrived.
    trace.dependencies.push(DependencyRow { timer: Some(timer), carrier: Some(Carrier::Response), ..wait(other.0, 0) });
    trace.dependencies.push(DependencyRow { timer: Some(timer), carrier: Some(Carrier::Response), ..wait(2, 1) });
    assert!(matches!(error(&trace), CausalError::Halt { .. }));
}

#[test]
fn rows_that_refer_to_nothing_are_named() {
    type Damage = fn(&mut Trace);
    let cases: Vec<(Damage, &str)> = vec![
        (|trace| trace.dependencies[0].on_event = EventId(99), "table dependencies, row 0: on_event = 99"),
        (|trace| trace.dependencies[1].event = EventId(77), "table dependencies, row 1: event = 77"),
        (|trace| trace.events[1].connection = Some(ConnectionId(5)), "table events, row 1: connection = 5"),
        (|trace| trace.events[1].connection = None, "a send without a connection"),
        (|trace| trace.events[1].process = Some(ProcessId(9)), "table events, row 1: process = 9"),
        (|trace| trace.connections[0].server_host = HostId(7), "table connections, row 0: server_host = 7"),
        (|trace| trace.events[1].timer = Some(TimerId(3)), "table events, row 1: timer = 3"),
        (|trace| trace.events[1].recorded_delivered_ns = 5, "table events, row 1: arrived at 5 ns, before it left"),
        (|trace| trace.events[1].bytes = u64::MAX, "table events, row 1: bytes = 18446744073709551615"),
        (|trace| trace.events[2].recorded_ns = 7, "recorded before it was submitted"),
        (|trace| trace.events[1].event = EventId(2), "table events, row 1: event = 2"),
        (|trace| trace.dependencies[0].timer = Some(TimerId(0)), "table dependencies, row 0: timer = 0"),
    ];
    for (spoil, expected) in cases {
        let mut trace = small().build();
        spoil(&mut trace);
        let text = error(&trace).to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_trace_without_jobs_events_or_an_end_is_refused() {
    assert_eq!(error(&Trace::default()), CausalError::NoJob);
    let mut trace = small().build();
    trace.events.clear();
    trace.dependencies.clear();
    assert_eq!(error(&trace), CausalError::NoEvents);
    let mut trace = small().build();
    trace.events[2].name = "other".to_owned();
    assert!(matches!(error(&trace), CausalError::NoFinish { .. }));
}

#[test]
fn an_unknown_job_is_refused_with_those_that_are_there() {
    let trace = small().build();
    let text = JobGraph::new(&trace, Some("job_9_0009"), Options::default()).unwrap_err().to_string();
    assert!(text.contains("job_9_0009") && text.contains("job_1_0001 (test)"), "{text}");
}

#[test]
fn the_job_with_the_largest_shuffle_is_replayed_unless_another_is_named() {
    let mut builder = small();
    builder.job("job_1_0002", 100 * MS, 200 * MS, Some(5_000));
    builder.mark("job.submit", 0, 100 * MS);
    let finish = builder.mark("job.finish", 0, 200 * MS);
    let trace = builder.build();
    let chosen = JobGraph::new(&trace, None, Options::default()).unwrap();
    assert_eq!((chosen.job.id.as_str(), chosen.finish), ("job_1_0002", finish));
    let named = JobGraph::new(&trace, Some("job_1_0001"), Options::default()).unwrap();
    assert_eq!((named.job.id.as_str(), named.finish), ("job_1_0001", EventId(2)));
}

#[test]
fn a_network_with_too_few_hosts_is_refused() {
    let trace = small().build();
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    let mut network = RecordedNetwork::of(&Trace { hosts: trace.hosts[..1].to_vec(), ..Trace::default() }, 0);
    assert_eq!(run(&graph, &mut network, |_| ()).unwrap_err(), CausalError::TooFewHosts { fabric: 1, trace: 2 });
}
