//! A measurement that begins when the network has settled, its batches, and the whole run in intervals.

use netsim::fabric::FabricConfig;
use netsim::fabric::packet::PacketRecord;
use netsim::statistics::SeriesSpan;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const TREE: &str = r#"
    kind = "store-and-forward"
    routing = "ecmp"
    mtu = "1500B"
    headers = "0B"
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 2
    host_link = { rate = "10Gbps", delay = "50ns", buffer = "2 packets" }
    uplink = { rate = "10Gbps", delay = "50ns", buffer = "2 packets" }
"#;

fn run_with(traffic: &str, options: RunOptions) -> TrafficRun {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = TREE.parse().unwrap();
    traffic::run(&traffic, &config, 5, options, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

fn run(traffic: &str) -> TrafficRun {
    run_with(traffic, RunOptions { keep: true, pairs: true, ..RunOptions::default() })
}

/// The packets that arrived in `span`.
fn arrived<'a>(run: &'a TrafficRun, span: &SeriesSpan) -> Vec<&'a PacketRecord> {
    let within = |packet: &&PacketRecord| (span.from_ps..span.until_ps).contains(&packet.arrived.0);
    run.packets.iter().filter(within).collect()
}

/// What a span says of the packets that arrived, beside the packets themselves.
fn check(run: &TrafficRun, span: &SeriesSpan) {
    let packets = arrived(run, span);
    let row = &span.row;
    assert_eq!(row.accepted, packets.len() as u64, "{span:?}");
    assert_eq!(row.accepted_bytes, packets.iter().map(|packet| u64::from(packet.bytes)).sum::<u64>());
    assert_eq!(row.switches, packets.iter().map(|packet| u64::from(packet.switches)).sum::<u64>());
    let times: Vec<u64> = packets.iter().map(|packet| packet.arrived.since_ps(packet.handed_over)).collect();
    assert_eq!(row.packet.max(), times.iter().copied().max());
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / times.len() as f64;
    if let (Some(is), Some(deviation)) = (row.packet.mean(), row.packet.deviation()) {
        let plain = mean(&mut times.iter().map(|time| *time as f64));
        let plain_deviation = mean(&mut times.iter().map(|time| (*time as f64 - plain).powi(2))).sqrt();
        assert!((is - plain).abs() < 1e-6 * plain, "{is} for {plain}");
        assert!((deviation - plain_deviation).abs() < 1e-3 * plain, "{deviation} for {plain_deviation}");
    }
    let left: Vec<u64> = packets.iter().map(|packet| packet.arrived.since_ps(packet.left)).collect();
    assert_eq!(row.network.max(), left.iter().copied().max());
}

#[test]
fn intervals_are_those_of_the_packets() {
    let run = run("load = 0.6\nevolution = \"7us\"\nwarm_up = \"20us\"\nmeasurement = \"100us\"");
    let spans = &run.figures.evolution;
    assert!(spans.len() > 16, "{} intervals", spans.len());
    for (number, span) in (0u64..).zip(spans) {
        assert_eq!(span.from_ps, number * 7_000_000);
        check(&run, span);
    }
    assert_eq!(spans.last().unwrap().until_ps, run.figures.simulated_ps);
    let total = |of: fn(&SeriesSpan) -> u64| spans.iter().map(of).sum::<u64>();
    assert_eq!(total(|span| span.row.accepted), run.figures.packets);
    assert_eq!(total(|span| span.row.offered), run.figures.messages, "a packet a message");
    assert_eq!(total(|span| span.row.lost), run.figures.drops);
    assert!(run.figures.drops > 0, "losses are seen too");
}

#[test]
fn batches_make_up_the_measurement() {
    let run = run("load = 0.4\nbatches = 10\nbatch = \"20us\"\nwarm_up = \"30us\"");
    assert_eq!(run.figures.measured_ps, (30_000_000, 230_000_000));
    let batches = &run.figures.batches;
    assert_eq!(batches.len(), 10);
    for (number, span) in (0u64..).zip(batches) {
        assert_eq!((span.from_ps, span.until_ps), (30_000_000 + number * 20_000_000, 50_000_000 + number * 20_000_000));
        check(&run, span);
    }
    let bytes: u64 = batches.iter().map(|span| span.row.accepted_bytes).sum();
    let load = bytes as f64 * 8e12 / 1e10 / 200e6 / 16.0;
    assert!((load - run.figures.accepted_load.unwrap()).abs() < 1e-9, "{load}");
}

#[test]
fn the_measurement_begins_when_three_intervals_are_like_the_one_before() {
    let convergence = "convergence = { interval = \"40us\", threshold = 0.2, most = \"2ms\" }";
    let run =
        run(&format!("load = 0.4\nwarm_up = \"20us\"\nmeasurement = \"100us\"\nevolution = \"20us\"\n{convergence}"));
    let (from, until) = run.figures.measured_ps;
    assert_eq!((run.figures.settled, until - from), (Some(true), 100_000_000));
    assert_eq!((from - 20_000_000) % 40_000_000, 0);
    // The same by the intervals of the whole run, two of which are one of these.
    let spans = &run.figures.evolution;
    let of = |index: usize| {
        let packets: Vec<&PacketRecord> =
            spans[1 + 2 * index..3 + 2 * index].iter().flat_map(|span| arrived(&run, span)).collect();
        let times: u64 = packets.iter().map(|packet| packet.arrived.since_ps(packet.handed_over)).sum();
        (packets.len() as f64, times as f64 / packets.len() as f64)
    };
    let alike = |index: usize| {
        let (before, last) = (of(index - 1), of(index));
        ((last.0 - before.0) / before.0).abs() < 0.2 && ((last.1 - before.1) / before.1).abs() < 0.2
    };
    let settled = (3..).find(|index| (index - 2..=*index).all(alike)).unwrap();
    assert_eq!(from, 20_000_000 + (settled as u64 + 1) * 40_000_000);
    assert!(run.figures.packet.count() > 0);
    let counted = run.packets.iter().filter(|packet| (from..until).contains(&packet.handed_over.0)).count();
    assert_eq!(run.figures.packet.count(), counted as u64);
}

#[test]
fn what_never_settles_is_measured_all_the_same_and_says_so() {
    let run = run("load = 0.4\nwarm_up = \"20us\"\nbatches = 4\nbatch = \"25us\"\n\
         convergence = { interval = \"10us\", threshold = 1e-9, most = \"60us\" }");
    assert_eq!((run.figures.settled, run.figures.measured_ps), (Some(false), (80_000_000, 180_000_000)));
    assert_eq!(run.figures.batches.len(), 4);
    run.figures.batches.iter().for_each(|span| check(&run, span));
}

#[test]
fn a_run_that_is_stopped_before_it_settles_has_measured_nothing() {
    let traffic =
        "load = 0.4\nwarm_up = \"20us\"\nconvergence = { interval = \"10us\", threshold = 1e-9, most = \"600ms\" }";
    let traffic: TrafficConfig = traffic.parse().unwrap();
    for engine in [EngineKind::Events, EngineKind::Windows, EngineKind::Optimistic] {
        let (stop, options) = (AtomicBool::new(true), RunOptions { engine, ..RunOptions::default() });
        let run =
            traffic::run(&traffic, &TREE.parse::<FabricConfig>().unwrap(), 5, options, &stop, &mut |_| {}).unwrap();
        let figures = &run.figures;
        assert!(figures.interim && figures.settled.is_none(), "{engine:?}");
        assert_eq!(figures.measured_ps, (figures.simulated_ps, figures.simulated_ps), "{engine:?}");
        assert_eq!((figures.packet.count(), figures.accepted_load), (0, None), "{engine:?}");
    }
}

#[test]
fn pairs_are_those_of_the_packets() {
    let run = run("load = 0.6\nwarm_up = \"20us\"\nmeasurement = \"100us\"");
    let mut plain: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for packet in &run.packets {
        let pair = plain.entry((packet.source.0, packet.destination.0)).or_default();
        *pair = (pair.0 + 1, pair.1 + u64::from(packet.bytes));
    }
    let mut offered = 0;
    for (source, destination, count) in &run.figures.pairs {
        let (accepted, bytes) = plain.remove(&(*source, *destination)).unwrap_or_default();
        assert_eq!((count.accepted, count.accepted_bytes), (accepted, bytes));
        offered += count.offered;
    }
    assert!(plain.is_empty(), "{plain:?}");
    assert_eq!(offered, run.figures.messages);
}

#[test]
fn engines_and_threads_do_not_show_in_them() {
    let traffic = "load = 0.6\nwarm_up = \"20us\"\nbatches = 4\nbatch = \"25us\"\nevolution = \"9us\"\n\
                   convergence = { interval = \"20us\", threshold = 0.3, most = \"400us\" }";
    let of = |engine, threads| {
        let mut run =
            run_with(traffic, RunOptions { keep: true, pairs: true, engine, threads, ..RunOptions::default() });
        run.figures.cost = netsim::statistics::Cost::default();
        format!("{:#?}", (run.figures, run.packets))
    };
    let events = of(EngineKind::Events, 1);
    for threads in [1, 2, 5] {
        assert!(of(EngineKind::Windows, threads) == events, "{threads} threads");
    }
    assert!(of(EngineKind::Optimistic, 2) == events, "by Time Warp");
}

#[test]
fn what_contradicts_them_is_refused() {
    for (traffic, wanted) in [
        ("batch = \"1us\"", "traffic.batch: it belongs to traffic.batches"),
        ("batches = 3", "traffic.batches: it needs traffic.batch"),
        ("batches = 1\nbatch = \"1us\"", "traffic.batches = 1: 2 to 65536"),
        ("batches = 3\nbatch = \"0us\"", "traffic.batch = \"0ps\": longer than 0"),
        ("batches = 3\nbatch = \"1us\"\nmeasurement = \"3us\"", "traffic.measurement: traffic.batches x traffic.batch"),
        ("batches = 3\nbatch = \"1us\"\ncount = 3", "traffic.batches: with traffic.count"),
        ("convergence = { threshold = 0.0 }", "traffic.convergence.threshold = 0.0: above 0"),
        ("convergence = { interval = \"0 cycles\" }", "traffic.convergence.interval = \"0 cycles\": longer than 0"),
        (
            "convergence = { interval = \"1ns\", most = \"66us\" }",
            "traffic.convergence.most = \"66us\": less than 65536 times",
        ),
        ("evolution = \"0ns\"", "traffic.evolution"),
    ] {
        let traffic: TrafficConfig = traffic.parse().unwrap();
        let config: FabricConfig = TREE.parse().unwrap();
        let run = traffic::run(&traffic, &config, 5, RunOptions::default(), &AtomicBool::new(false), &mut |_| {});
        let error = run.unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}
