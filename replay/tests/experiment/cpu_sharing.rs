//! Tasks that compete for processors: closed forms, a plain model beside the fast one, and what was recorded stays as it was.

use crate::common::{MS, RecordedNetwork, TraceBuilder, map_reduce};
use causal::{CoreSharing, Jitter, JobGraph, NetworkWork, Options, Outcome};
use proptest::prelude::*;
use replay::workload::run;
use trace::ids::{EventId, ProcessId};
use trace::rows::{On, ProcessRow, Trace};

fn options(cores: u32, shared: bool) -> Options {
    with_network(cores, shared, NetworkWork::default())
}

fn with_network(cores: u32, shared: bool, network: NetworkWork) -> Options {
    Options { cores: Some(CoreSharing { cores, shared, network }), ..Options::default() }
}

/// Nanoseconds of a processor a byte.
fn network_work(recorded_ns: u64, replayed_ns: u64) -> NetworkWork {
    NetworkWork { recorded_fs: recorded_ns * 1_000_000, replayed_fs: replayed_ns * 1_000_000 }
}

fn outcome(trace: &Trace, network: &Trace, options: Options) -> Outcome {
    let graph = JobGraph::new(trace, None, options).unwrap();
    run(&graph, &mut RecordedNetwork::of(network, 0), |_| ()).unwrap()
}

/// Something that is computed: in which process, from when on, for how long. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Computed {
    process: u32,
    from: i64,
    long: i64,
}

/// A job in which each process of a host computes when bytes have arrived; its marks are the events from `2` on in steps of two.
fn job(computed: &[Computed], hosts: u32) -> (Trace, Vec<EventId>) {
    job_of_bytes(computed, hosts, 1)
}

/// The same, with so many bytes for each.
fn job_of_bytes(computed: &[Computed], hosts: u32, bytes: u64) -> (Trace, Vec<EventId>) {
    let names: Vec<String> = (0..=hosts).map(|host| format!("h{host}")).collect();
    let mut builder = TraceBuilder::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let first = u32::try_from(builder.trace.processes.len()).unwrap();
    let processes = computed.iter().map(|one| one.process + 1).max().unwrap_or(0);
    for number in 0..processes {
        let like = builder.trace.processes[(number % hosts) as usize].clone();
        let process = ProcessId(first + number);
        let attempt = Some(format!("attempt_1_0001_m_{number:06}_0"));
        builder.trace.processes.push(ProcessRow { process, attempt, pid: 500 + number, ..like });
    }
    let mut marks = Vec::new();
    for one in computed {
        let connection = builder.connection(hosts, one.process % hosts);
        let send = builder.send(connection, true, bytes, 0, one.from);
        builder.after(send, EventId(0), On::Sent);
        let mark = builder.mark("computed", 0, one.from + one.long);
        builder.trace.events[mark.index()].process = Some(ProcessId(first + one.process));
        builder.after(mark, send, On::Delivered);
        marks.push(mark);
    }
    let end = computed.iter().map(|one| one.from + one.long).max().unwrap_or(0);
    let finish = builder.mark("job.finish", 0, end);
    marks.iter().for_each(|mark| builder.after(finish, *mark, On::Sent));
    (builder.build(), marks)
}

fn at_ms(outcome: &Outcome, event: EventId) -> f64 {
    outcome.event(event).happened().unwrap().0 as f64 / 1e9
}

/// Three processes that were recorded one after the other.
const APART: [Computed; 3] = [
    Computed { process: 0, from: 0, long: 10 * MS },
    Computed { process: 1, from: 10 * MS, long: 10 * MS },
    Computed { process: 2, from: 20 * MS, long: 10 * MS },
];
/// The same at once, on a faster network.
const AT_ONCE: [Computed; 3] =
    [Computed { from: 0, ..APART[0] }, Computed { from: 0, ..APART[1] }, Computed { from: 0, ..APART[2] }];

#[test]
fn more_at_once_than_there_are_cores_take_longer_and_no_more_do_not() {
    let ((trace, marks), (fast, _)) = (job(&APART, 1), job(&AT_ONCE, 1));
    for (cores, expected) in [(1, 30.0), (2, 15.0), (3, 10.0), (4, 10.0)] {
        let outcome = outcome(&trace, &fast, options(cores, false));
        assert_eq!(marks.iter().map(|mark| at_ms(&outcome, *mark)).collect::<Vec<_>>(), [expected; 3], "{cores}");
    }
    let without = outcome(&trace, &fast, Options::default());
    assert_eq!(at_ms(&without, marks[2]), 10.0);
}

#[test]
fn what_competing_took_in_the_recording_is_taken_out_first() {
    // Recorded at once on two cores: each had two thirds of one, so 15 ms were 10 ms of work.
    let together = AT_ONCE.map(|one| Computed { long: 15 * MS, ..one });
    let ((trace, marks), (slow, _)) = (job(&together, 1), job(&APART, 1));
    let outcome = outcome(&trace, &slow, options(2, false));
    assert_eq!(marks.iter().map(|mark| at_ms(&outcome, *mark)).collect::<Vec<_>>(), [10.0, 20.0, 30.0]);
}

#[test]
fn hosts_share_processors_where_that_is_said_and_one_process_counts_once() {
    let ((trace, marks), (fast, _)) = (job(&APART, 3), job(&AT_ONCE, 3));
    let own = outcome(&trace, &fast, options(1, false));
    assert_eq!(at_ms(&own, marks[2]), 10.0);
    let shared = outcome(&trace, &fast, options(1, true));
    assert_eq!(at_ms(&shared, marks[2]), 30.0);
    let one_process = |all: [Computed; 3]| job(&all.map(|one| Computed { process: 0, ..one }), 1);
    let ((trace, marks), (fast, _)) = (one_process(APART), one_process(AT_ONCE));
    assert_eq!(at_ms(&outcome(&trace, &fast, options(1, false)), marks[2]), 10.0);
}

#[test]
fn what_the_network_takes_is_one_more_process_until_it_is_done() {
    // A million bytes at 5 ns each: 5 ms of a processor, in all.
    let ends = |computed: &[Computed], options: Options| {
        let ((trace, marks), (network, _)) = (job_of_bytes(computed, 1, 1_000_000), job(computed, 1));
        let outcome = outcome(&trace, &network, options);
        marks.iter().map(|mark| at_ms(&outcome, *mark)).collect::<Vec<_>>()
    };
    let one = [APART[0]];
    assert_eq!(ends(&one, with_network(1, true, network_work(0, 5))), [15.0]);
    assert_eq!(ends(&one, with_network(2, true, network_work(0, 5))), [10.0]);
    // Hosts with a processor of their own: half of it at each end.
    assert_eq!(ends(&one, with_network(1, false, network_work(0, 5))), [12.5]);
    // Recorded beside 5 ms of it, 10 ms were 5 ms of work.
    assert_eq!(ends(&one, with_network(1, true, network_work(5, 0))), [5.0]);
    assert_eq!(ends(&one, with_network(1, true, network_work(5, 5))), [10.0]);
    // Three at once on two processors, of which 10 ms were two thirds of that in work, and the network with 15 ms: half of one each.
    let at_once = ends(&AT_ONCE, with_network(2, true, network_work(0, 5)));
    assert!(at_once.iter().all(|end| (end - 40.0 / 3.0).abs() < 1e-6), "{at_once:?}");
}

#[test]
fn bytes_within_a_host_take_no_processor_of_the_network() {
    let mut builder = TraceBuilder::new(&["h0"]);
    let like = builder.trace.processes[0].clone();
    let process = ProcessId(u32::try_from(builder.trace.processes.len()).unwrap());
    let attempt = Some("attempt_1_0001_m_000000_0".to_owned());
    builder.trace.processes.push(ProcessRow { process, attempt, pid: 500, ..like });
    let connection = builder.connection(0, 0);
    let send = builder.send(connection, true, 1_000_000, 0, 0);
    builder.after(send, EventId(0), On::Sent);
    let mark = builder.mark("computed", 0, 10 * MS);
    builder.trace.events[mark.index()].process = Some(process);
    builder.after(mark, send, On::Delivered);
    let finish = builder.mark("job.finish", 0, 10 * MS);
    builder.after(finish, mark, On::Sent);
    let trace = builder.build();
    assert_eq!(at_ms(&outcome(&trace, &trace, with_network(1, true, network_work(0, 5))), mark), 10.0);
}

#[test]
fn a_cpu_factor_scales_work() {
    let ((trace, marks), (fast, _)) = (job(&APART, 1), job(&AT_ONCE, 1));
    let mut twice = options(2, false);
    twice.cpu.all = 2.0;
    assert_eq!(at_ms(&outcome(&trace, &fast, twice), marks[0]), 30.0);
}

#[test]
fn on_the_recorded_network_a_job_with_competing_tasks_takes_the_recorded_time_to_the_picosecond() {
    for (maps, reduces) in [(1, 1), (5, 2), (12, 4)] {
        let mut trace = map_reduce(&["m1", "w1", "w2"], maps, reduces);
        trace.processes.iter_mut().for_each(|process| process.attempt = Some("attempt_1_0001_m_000000_0".to_owned()));
        let plain = outcome(&trace, &trace, Options::default());
        for (cores, shared) in [(1, false), (1, true), (2, true), (64, false)] {
            let shared_out = outcome(&trace, &trace, options(cores, shared));
            assert_eq!(shared_out.events, plain.events, "{maps} maps, {cores} cores, shared: {shared}");
        }
    }
}

#[test]
fn chance_changes_thinking_by_its_share_at_most_and_the_same_seed_by_the_same() {
    let (trace, _) = job(&APART, 1);
    let jitter = |seed| Options { jitter: Jitter { share: 0.1, seed }, ..Options::default() };
    let times: Vec<u64> = (0..20).map(|seed| outcome(&trace, &trace, jitter(seed)).job_time_ps).collect();
    assert!(times.iter().all(|time| time.abs_diff(30_000_000_000) <= 1_000_000_000), "{times:?}");
    assert!(times.iter().any(|time| time != &times[0]));
    assert_eq!(outcome(&trace, &trace, jitter(7)).job_time_ps, times[7]);
    let mean = (0..10_000).map(|event| Jitter { share: 0.1, seed: 3 }.factor(event)).sum::<f64>() / 10_000.0;
    assert!((mean - 1.0).abs() < 0.003, "{mean}");
}

/// Processor sharing in small steps from one beginning or end to the next: what each has left, one by one, and the network, which
/// gets so much more to do where one begins.
fn plainly(computed: &[Computed], cores: usize, network_ns: f64) -> Vec<f64> {
    let mut network_left = 0.0;
    let mut arrived = vec![false; computed.len()];
    let mut left: Vec<f64> = computed.iter().map(|one| one.long as f64).collect();
    let mut ends = vec![f64::NAN; computed.len()];
    let mut now = 0.0;
    while ends.iter().any(|end| end.is_nan()) {
        let under_way: Vec<usize> =
            (0..computed.len()).filter(|n| ends[*n].is_nan() && computed[*n].from as f64 <= now).collect();
        let mut processes: Vec<u32> = under_way.iter().map(|n| computed[*n].process).collect();
        processes.sort_unstable();
        processes.dedup();
        for (n, one) in computed.iter().enumerate() {
            if !arrived[n] && one.from as f64 <= now {
                arrived[n] = true;
                network_left += network_ns;
            }
        }
        let networks = usize::from(network_left > 1e-6);
        let rate = (cores as f64 / (processes.len() + networks).max(1) as f64).min(1.0);
        let next_begin =
            computed.iter().map(|one| one.from as f64).filter(|from| *from > now).fold(f64::INFINITY, f64::min);
        let next_end = under_way.iter().map(|n| now + left[*n] / rate).fold(f64::INFINITY, f64::min);
        let network_end = if networks == 1 { now + network_left / rate } else { f64::INFINITY };
        let next = next_begin.min(next_end).min(network_end);
        network_left = if networks == 1 { network_left - (next - now) * rate } else { 0.0 };
        for n in under_way {
            left[n] -= (next - now) * rate;
            if left[n] <= 1e-6 {
                ends[n] = next;
            }
        }
        now = next;
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fast_model_does_what_the_plain_one_does(
        cores in 1u32..5,
        network_ns in 0u64..30,
        cases in prop::collection::vec((0u32..6, 0i64..40, 1i64..40), 1..14),
    ) {
        let mut at = 0;
        // Recorded one after the other: the work is what it took.
        let apart: Vec<Computed> = cases.iter().map(|(process, _, long)| {
            let one = Computed { process: *process, from: at, long: long * MS };
            at += one.long;
            one
        }).collect();
        let played: Vec<Computed> =
            apart.iter().zip(&cases).map(|(one, (_, from, _))| Computed { from: from * MS, ..*one }).collect();
        let ((trace, marks), (network, _)) = (job_of_bytes(&apart, 1, 1_000_000), job(&played, 1));
        let outcome = outcome(&trace, &network, with_network(cores, true, network_work(0, network_ns)));
        for (mark, expected) in marks.iter().zip(plainly(&played, cores as usize, network_ns as f64 * 1e6)) {
            prop_assert!((at_ms(&outcome, *mark) - expected / 1e6).abs() < 1e-6, "{} {}", at_ms(&outcome, *mark), expected / 1e6);
        }
    }

    #[test]
    fn whatever_was_recorded_at_once_stays_as_it_was_on_the_recorded_network(
        cores in 1u32..4,
        shared in any::<bool>(),
        network_ns in 0u64..30,
        cases in prop::collection::vec((0u32..6, 0i64..40, 1i64..40), 1..14),
    ) {
        let computed: Vec<Computed> =
            cases.iter().map(|(process, from, long)| Computed { process: *process, from: from * MS, long: long * MS + 7 }).collect();
        let (trace, _) = job_of_bytes(&computed, 2, 1_000_000);
        let plain = outcome(&trace, &trace, Options::default());
        let options = with_network(cores, shared, network_work(network_ns, network_ns));
        prop_assert_eq!(outcome(&trace, &trace, options).events, plain.events);
    }
}
