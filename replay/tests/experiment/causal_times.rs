//! Events happen when their causes have, plus their thinking: closed forms over the ideal network.

use crate::common::{MS, RecordedNetwork, TraceBuilder};
use causal::{
    Causality, CpuFactors, JobGraph, Options, Outcome, PathKind, RecordedBeats, Recording, critical_path, recorded,
};
use netsim::fabric::ideal::{Ideal, IdealConfig};
use netsim::fabric::{FabricConfig, build};
use netsim::topology::HostPlace;
use netsim::units::{DurationPs, Rate};
use replay::workload::run;
use trace::ids::EventId;
use trace::rows::{Carrier, On, Trace};

fn ideal(trace: &Trace, latency: DurationPs, rate: Rate) -> Ideal {
    let hosts: Vec<_> =
        trace.hosts.iter().map(|host| HostPlace { name: host.name.clone(), rack: host.rack.clone() }).collect();
    Ideal::new(&IdealConfig { latency, rate, ..IdealConfig::default() }, &hosts)
}

fn replay(trace: &Trace, options: Options, latency: DurationPs, rate: Rate) -> Outcome {
    let graph = JobGraph::new(trace, None, options).unwrap();
    run(&graph, &mut ideal(trace, latency, rate), |_| ()).unwrap()
}

fn at_ms(outcome: &Outcome, event: EventId) -> f64 {
    outcome.event(event).happened().unwrap().0 as f64 / 1e9
}

const ONE_MS: DurationPs = DurationPs::from_ms(1);

/// Three calls one after the other; recorded transfers take 10 ms each, and everybody thinks 5 ms.
fn chain() -> (Trace, Vec<EventId>) {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let mut events = vec![EventId(0)];
    let mut at = 5;
    for _ in 0..3 {
        for from_client in [true, false] {
            let event = builder.send(connection, from_client, 1_000, at * MS, (at + 10) * MS);
            builder.after(event, *events.last().unwrap(), On::Delivered);
            events.push(event);
            at += 15;
        }
    }
    let finish = builder.mark("job.finish", 0, at * MS);
    builder.after(finish, *events.last().unwrap(), On::Delivered);
    events.push(finish);
    (builder.build(), events)
}

#[test]
fn a_chain_of_calls_takes_latency_plus_transmission_plus_thinking() {
    let (trace, _) = chain();
    // 7 thinks of 5 ms, 6 transfers of 1 ms + 8000 bits / 1 Mbit/s.
    let outcome = replay(&trace, Options::default(), ONE_MS, Rate::from_bps(1_000_000));
    assert_eq!(outcome.job_time_ps, (7 * 5 + 6 * 9) * 1_000_000_000);
    assert_eq!(outcome.bytes, 6_000);
    assert_eq!(outcome.causal_events, 7);
}

#[test]
fn an_infinitely_fast_network_leaves_the_thinking_and_a_slow_one_lengthens_the_job() {
    let (trace, _) = chain();
    let fast = replay(&trace, Options::default(), DurationPs(0), Rate::UNLIMITED);
    let slow = replay(&trace, Options::default(), ONE_MS, Rate::from_bps(10_000));
    assert_eq!(fast.job_time_ps, 35 * 1_000_000_000);
    assert_eq!(slow.job_time_ps, (35 + 6 * 801) * 1_000_000_000);
}

#[test]
fn with_recorded_send_times_no_network_changes_the_job() {
    let (trace, events) = chain();
    let options = Options { causality: Causality::Recorded, ..Options::default() };
    for rate in [Rate::UNLIMITED, Rate::from_bps(10_000)] {
        let outcome = replay(&trace, options.clone(), ONE_MS, rate);
        assert_eq!(outcome.job_time_ps, 95 * 1_000_000_000);
        assert_eq!(at_ms(&outcome, events[3]), 35.0);
    }
}

#[test]
fn the_cpu_factor_scales_thinking_and_nothing_else() {
    let (trace, _) = chain();
    let mut options = Options { cpu: CpuFactors { all: 2.0, ..CpuFactors::default() }, ..Options::default() };
    let outcome = replay(&trace, options.clone(), ONE_MS, Rate::UNLIMITED);
    assert_eq!(outcome.job_time_ps, (7 * 10 + 6) * 1_000_000_000);
    options.cpu.by_kind.insert("Worker".to_owned(), 0.5);
    let outcome = replay(&trace, options, ONE_MS, Rate::UNLIMITED);
    assert_eq!(outcome.job_time_ps, (7 * 5 / 2 * 1_000 + 500 + 6 * 1_000) * 1_000_000);
}

#[test]
fn a_factor_for_a_role_that_is_not_there_is_refused() {
    let (trace, _) = chain();
    let mut options = Options::default();
    options.cpu.by_kind.insert("DateNode".to_owned(), 2.0);
    let error = JobGraph::new(&trace, None, options).unwrap_err().to_string();
    assert!(error.contains("\"DateNode\"") && error.contains("Worker") && error.contains("reduce"), "{error}");
}

#[test]
fn an_event_waits_for_all_its_causes() {
    let mut builder = TraceBuilder::new(&["a", "b", "c"]);
    let (to_b, to_c) = (builder.connection(0, 1), builder.connection(0, 2));
    let small = builder.send(to_b, true, 1_000, 0, MS);
    let large = builder.send(to_c, true, 9_000, 0, MS);
    let submit = EventId(0);
    builder.after(small, submit, On::Sent);
    builder.after(large, submit, On::Sent);
    let finish = builder.mark("job.finish", 0, 3 * MS);
    builder.after(finish, small, On::Delivered);
    builder.after(finish, large, On::Delivered);
    let trace = builder.build();
    // 1 ms + 72 ms for the large one, then 2 ms of thinking.
    let outcome = replay(&trace, Options::default(), ONE_MS, Rate::from_bps(1_000_000));
    assert_eq!(outcome.job_time_ps, 75 * 1_000_000_000);
    assert_eq!(outcome.event(finish).cause(), Some(3));
}

#[test]
fn what_was_recorded_before_the_job_counts_as_happened_and_arrives_as_recorded() {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let early = builder.send(connection, true, 1_000_000, -50 * MS, 20 * MS);
    let answer = builder.send(connection, false, 0, 25 * MS, 26 * MS);
    builder.after(answer, early, On::Delivered);
    let finish = builder.mark("job.finish", 0, 30 * MS);
    builder.after(finish, answer, On::Delivered);
    let outcome = replay(&builder.build(), Options::default(), ONE_MS, Rate::from_bps(1_000));
    assert_eq!(at_ms(&outcome, answer), 25.0);
    assert_eq!(outcome.job_time_ps, 30 * 1_000_000_000);
}

#[test]
fn a_connection_opened_during_the_job_costs_a_round_trip_in_place_of_the_recorded_one() {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let row = &mut builder.trace.connections[connection.index()];
    row.first_ns = u64::try_from(crate::common::SUBMIT_NS + 6 * MS).unwrap();
    row.handshake_ns = Some(4_000_000);
    let call = builder.send(connection, true, 0, 10 * MS, 12 * MS);
    builder.after(call, EventId(0), On::Sent);
    let finish = builder.mark("job.finish", 0, 12 * MS);
    builder.after(finish, call, On::Delivered);
    let trace = builder.build();
    // 10 ms of delay, of which 4 were the recorded handshake; there and back 2 x 1 ms; the call 1 ms.
    let with = replay(&trace, Options::default(), ONE_MS, Rate::UNLIMITED);
    assert_eq!(with.job_time_ps, 9 * 1_000_000_000);
    let without = replay(&trace, Options { handshakes: false, ..Options::default() }, ONE_MS, Rate::UNLIMITED);
    assert_eq!(without.job_time_ps, 11 * 1_000_000_000);
}

/// News that is ready at `ready` travels by requests sent every 100 ms (from 100 ms on).
pub fn beating(ready: i64, heartbeats: u32) -> (Trace, EventId, EventId) {
    let mut builder = TraceBuilder::new(&["a", "b", "c"]);
    let to_master = builder.connection(0, 1);
    let data = builder.connection(2, 0);
    let timer = builder.timer("heartbeat", to_master, 96 * MS, 2 * MS);
    builder.heartbeats(timer, 100 * MS, 100 * MS, heartbeats, MS);
    let work = builder.send(data, true, 125_000, 0, ready);
    builder.after(work, EventId(0), On::Sent);
    let finish = builder.mark("job.finish", 1, 900 * MS);
    builder.piggybacked(finish, work, On::Delivered, timer, Carrier::Request);
    let mut trace = builder.build();
    // The job is done 10 ms after the news has arrived.
    trace.events[finish.index()].delay_ns = 10_000_000;
    (trace, work, finish)
}

#[test]
fn news_waits_for_the_next_beat_so_a_slower_network_costs_whole_periods() {
    let (trace, work, _) = beating(150 * MS, 8);
    // Beats leave at 100, 200, 300, ... when transfers take 1 ms.
    let cases = [(98, 100), (99, 100), (101, 200), (199, 200), (201, 300), (655, 700)];
    for (work_ms, beat_ms) in cases {
        let rate = Rate::from_bps(1_000_000_000 / (work_ms - 1));
        let outcome = replay(&trace, Options::default(), ONE_MS, rate);
        let delivered_ps = outcome.event(work).delivered().unwrap().0;
        assert!((delivered_ps - i64::try_from(work_ms).unwrap() * 1_000_000_000).abs() < 100_000_000);
        let job_ms = outcome.job_time_ps / 1_000_000_000;
        // Transmission of the beats themselves moves them by a little on slow links.
        assert!((beat_ms + 11..beat_ms + 35).contains(&job_ms), "{work_ms}: {job_ms}");
    }
}

#[test]
fn news_of_the_very_instant_of_a_beat_goes_with_it() {
    let (mut trace, work, finish) = beating(100 * MS, 8);
    trace.events[work.index()].recorded_delivered_ns = u64::try_from(crate::common::SUBMIT_NS + 100 * MS).unwrap();
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    let outcome = run(&graph, &mut RecordedNetwork::of(&trace, 0), |_| ()).unwrap();
    assert_eq!(at_ms(&outcome, finish), 111.0);
}

#[test]
fn beats_go_on_when_the_recorded_ones_have_run_out() {
    let (trace, _, finish) = beating(150 * MS, 3);
    // 125 kB at 1 Mbit/s: delivered at 1001 ms. Recorded beats leave at 100 to 300; then every 1 + 2 + 1 + 96 ms, and
    // a little for transmission: 200 and 100 bytes are 1.6 and 0.8 ms.
    let outcome = replay(&trace, Options::default(), ONE_MS, Rate::from_bps(1_000_000));
    assert!(!outcome.synthetic.is_empty());
    let requests: Vec<_> = outcome.synthetic.iter().filter(|beat| beat.half == Carrier::Request).collect();
    let last = requests.last().unwrap();
    assert!(last.sent.0 >= 1_001 * 1_000_000_000);
    assert!(requests[requests.len() - 2].sent.0 < 1_001 * 1_000_000_000);
    assert_eq!(outcome.event(finish).happened().unwrap(), last.delivered.unwrap().plus_ps(10_000_000_000));
    let path = critical_path(&JobGraph::new(&trace, None, Options::default()).unwrap(), &outcome);
    assert!(path.total_of_ps(PathKind::TimerWait) > 0);
}

#[test]
fn a_timer_without_beats_during_the_job_beats_in_step_with_those_before() {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let timer = builder.timer("heartbeat", connection, 998 * MS, 0);
    builder.heartbeats(timer, -2_700 * MS, 1_000 * MS, 3, MS);
    let work = builder.mark("work", 0, 10 * MS);
    builder.after(work, EventId(0), On::Sent);
    let finish = builder.mark("job.finish", 1, 400 * MS);
    let mut trace = {
        let mut trace = builder.build();
        trace.dependencies.push(trace::rows::DependencyRow {
            event: finish,
            on_event: work,
            on: On::Sent,
            timer: Some(timer),
            carrier: Some(Carrier::Response),
            evidence: trace::rows::Evidence::Protocol,
        });
        trace
    };
    trace.events[finish.index()].delay_ns = 0;
    let outcome = replay(&trace, Options::default(), ONE_MS, Rate::UNLIMITED);
    // The last beat before was at -700 ms: the next leaves at 300, its response arrives at 302.
    assert_eq!(outcome.job_time_ps, 302 * 1_000_000_000);
}

#[test]
fn with_the_recorded_transfer_times_every_event_happens_when_it_was_recorded() {
    let traces = [chain().0, identity_trace()];
    for trace in &traces {
        let graph = JobGraph::new(trace, None, Options::default()).unwrap();
        let outcome = run(&graph, &mut RecordedNetwork::of(trace, 0), |_| ()).unwrap();
        for event in graph.during() {
            let expected = graph.job_time(event.recorded_ns);
            assert_eq!(outcome.event(event.event).happened(), Some(expected), "{event:?}");
        }
        // So the path that is told from the recording alone is that of the replay.
        assert_eq!(critical_path(&graph, &recorded(&graph)), critical_path(&graph, &outcome));
        let beats = RecordedBeats::new(&trace.events);
        let recording = Recording::new(&graph, &beats);
        assert_eq!(critical_path(&graph, &recording), critical_path(&graph, &outcome));
        assert_eq!(recording.job_time_ps(), outcome.job_time_ps);
    }
}

/// Beats, news both ways, chains and a cause before the job, mixed by a fixed rule.
fn identity_trace() -> Trace {
    let mut builder = TraceBuilder::new(&["a", "b", "c"]);
    let (beat, data) = (builder.connection(0, 1), builder.connection(2, 0));
    let timer = builder.timer("heartbeat", beat, 95 * MS, MS);
    builder.heartbeats(timer, -130 * MS, 100 * MS, 40, 2 * MS);
    let mut last = EventId(0);
    let mut at = 3;
    for round in 0..30 {
        let sent = builder.send(data, round % 2 == 0, 1_000, at * MS, (at + 7) * MS);
        builder.after(sent, last, On::Sent);
        let mark = builder.mark("work", 1, (at + 108 + round % 3) * MS);
        let carrier = if round % 2 == 0 { Carrier::Request } else { Carrier::Response };
        builder.piggybacked(mark, sent, On::Delivered, timer, carrier);
        builder.after(mark, last, On::Sent);
        last = mark;
        at += 115;
    }
    let finish = builder.mark("job.finish", 0, 3_600 * MS);
    builder.after(finish, last, On::Sent);
    builder.build()
}

#[test]
fn the_same_replay_gives_the_same_result_to_the_bit() {
    let trace = identity_trace();
    let rate = Rate::from_bps(777_777);
    let first = replay(&trace, Options::default(), ONE_MS, rate);
    for _ in 0..3 {
        let again = replay(&trace, Options::default(), ONE_MS, rate);
        assert_eq!(first.events, again.events);
        assert_eq!(first.synthetic, again.synthetic);
    }
}

#[test]
fn the_critical_path_covers_the_job_without_gaps() {
    let trace = identity_trace();
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    let outcome = replay(&trace, Options::default(), ONE_MS, Rate::from_bps(300_000));
    let path = critical_path(&graph, &outcome);
    let mut at = 0;
    for piece in &path.pieces {
        assert_eq!(piece.from_ps, at, "{piece:?}");
        at = piece.to_ps;
    }
    assert_eq!(at, outcome.job_time_ps);
    let total: u64 = PathKind::ALL.iter().map(|kind| path.total_of_ps(*kind)).sum();
    assert_eq!(total, outcome.job_time_ps);
    assert_eq!(path.totals_ps().iter().map(|(_, _, ps)| ps).sum::<u64>(), total);
}

#[test]
fn a_fabric_from_a_configuration_replays_too() {
    let (trace, _) = chain();
    let hosts: Vec<_> =
        trace.hosts.iter().map(|host| HostPlace { name: host.name.clone(), rack: host.rack.clone() }).collect();
    let mut fabric = build(&FabricConfig::default(), &hosts).unwrap();
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    assert_eq!(run(&graph, &mut fabric, |_| ()).unwrap().job_time_ps, 35 * 1_000_000_000);
}

#[test]
fn news_that_waited_for_whoever_asks_is_laid_on_what_kept_the_asker() {
    let mut builder = TraceBuilder::new(&["a", "b"]);
    let connection = builder.connection(0, 1);
    let timer = builder.timer("poll", connection, 96 * MS, 2 * MS);
    let map_done = builder.mark("map done", 1, 50 * MS);
    builder.after(map_done, EventId(0), On::Sent);
    // The poller starts at 500 ms, long after the news; it asks at once.
    let start = builder.mark("start", 0, 500 * MS);
    builder.after(start, EventId(0), On::Sent);
    let heartbeats = builder.heartbeats(timer, 500 * MS, 100 * MS, 3, MS);
    builder.after(heartbeats[0][0], start, On::Sent);
    let finish = builder.mark("job.finish", 0, 520 * MS);
    builder.piggybacked(finish, map_done, On::Sent, timer, Carrier::Response);
    let trace = builder.build();
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    let outcome = run(&graph, &mut RecordedNetwork::of(&trace, 0), |_| ()).unwrap();
    let path = critical_path(&graph, &outcome);
    assert_eq!(path.total_of_ps(PathKind::TimerWait), 0);
    assert_eq!(path.total_of_ps(PathKind::Network), 2_000_000_000);
    assert_eq!(path.total_of_ps(PathKind::Think), 518_000_000_000);
}
