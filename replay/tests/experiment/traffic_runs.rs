//! Runs of synthetic traffic: what is measured agrees with what is known.

use std::sync::atomic::AtomicBool;

use netsim::statistics::Saturation;
use netsim::traffic::{RunOptions, TrafficRun};
use replay::experiment::{Experiment, Override, Sweep};
use replay::results::synthetic::TrafficSummary;
use replay::run::run_traffic;

fn experiment(text: &str, changes: &[&str]) -> Experiment {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Experiment::parse(text, "x.toml", &changes).unwrap()
}

fn run(experiment: &Experiment) -> TrafficRun {
    run_traffic(experiment, RunOptions::default(), &AtomicBool::new(false), |_| {}).unwrap()
}

fn summary(text: &str, changes: &[&str]) -> TrafficSummary {
    let experiment = experiment(text, changes);
    let seeds = experiment.run.seeds.as_ref().map_or_else(|| vec![experiment.run.seed], |seeds| seeds.seeds(1));
    let runs: Vec<TrafficRun> = seeds.iter().map(|seed| run(&experiment.seeded(*seed).unwrap())).collect();
    TrafficSummary::new(&experiment, &runs).unwrap()
}

/// Packets of 8 flits over links of 100 Gbit/s (a cycle is 5.12 ns).
const IDEAL: &str = "
[traffic]
hosts = 64
flits = 8
[fabric]
kind = \"ideal\"
rate = \"100Gbps\"
latency = \"512ns\"
[run]
seeds = 5
";

const CREDIT: &str = "
[traffic]
flits = 8
load = 0.2
warm_up = \"2000 cycles\"
measurement = \"8000 cycles\"
[fabric]
kind = \"credit\"
routing = \"random\"
vls = 2
switch_delay = \"0ns\"
[fabric.topology]
shape = \"k-ary-n-tree\"
k = 4
n = 3
";

const MESH: &str = "
[traffic]
flits = 8
load = 0.2
warm_up = \"2000 cycles\"
measurement = \"8000 cycles\"
[fabric]
kind = \"store-and-forward\"
mtu = \"512B\"
routing = \"dor\"
[fabric.topology]
shape = \"mesh\"
size = [8, 8]
host_link.buffer = \"unlimited\"
link.buffer = \"unlimited\"
";

fn close(found: Option<f64>, expected: f64, within: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() <= within, "{found} for {expected} +- {within}");
}

#[test]
fn waiting_at_the_own_host_is_that_of_a_queue_with_equal_services() {
    // Geo/D/1: p D (D - 1) / (2 (1 - p D)) flit times; M/D/1: rho D / (2 (1 - rho)).
    for (load, arrivals) in [(0.3, "bernoulli"), (0.7, "bernoulli"), (0.3, "exponential"), (0.7, "exponential")] {
        let changes = [format!("traffic.load={load}"), format!("traffic.arrivals={arrivals}")];
        let summary = summary(IDEAL, &changes.each_ref().map(String::as_str));
        let services = if arrivals == "bernoulli" { 7.0 } else { 8.0 };
        let waiting = load * services / (2.0 * (1.0 - load));
        let half = summary.confidence["packet_latency_mean_cycles"];
        assert!(half < 0.1 * waiting, "the interval says nothing: {half}");
        close(summary.packet_latency_mean_cycles, waiting + 8.0 + 100.0, 2.0 * half);
        close(summary.network_latency_mean_cycles, 108.0, 1e-6);
        close(summary.packet_latency_mean_ns, (waiting + 108.0) * 5.12, 2.0 * half * 5.12);
        // Little's law: packets that wait = packets a flit time x waiting.
        close(summary.source_queue_mean, load / 8.0 * waiting, 0.1 * load);
        close(summary.offered_load, load, 0.02);
        assert_eq!((summary.saturated, summary.packets_undelivered), (false, 0));
    }
}

#[test]
fn what_a_link_does_not_carry_is_saturated_and_no_failure() {
    let summary = summary(IDEAL, &["traffic.load=1.2", "run.seeds=2", "traffic.drain=500 cycles"]);
    assert!(summary.saturated && summary.saturated_because.unwrap().contains("accepted is 8"));
    close(summary.accepted_load, 1.0, 0.001);
    close(summary.offered_load, 1.2, 0.02);
    assert!(summary.packets_undelivered > 0, "the drain has an end");
    close(summary.link_utilisation_max, 1.0, 0.001);
}

#[test]
fn accepted_is_offered_where_the_network_has_room() {
    for (text, change) in [(CREDIT, "traffic.load=0.1"), (CREDIT, "traffic.load=0.3"), (MESH, "traffic.load=0.2")] {
        let summary = summary(text, &[change, "run.seeds=3"]);
        assert!(!summary.saturated, "{change}: {:?}", summary.saturated_because);
        let offered = summary.offered_load.unwrap();
        close(summary.accepted_load, offered, 0.02 * offered);
        assert_eq!((summary.packets_undelivered, summary.drops), (0, 0));
        assert!(summary.packet_latency_mean_cycles > summary.network_latency_mean_cycles);
    }
}

#[test]
fn the_mean_of_the_hops_is_the_topologys() {
    let torus = ["fabric.topology.shape=torus", "fabric.kind=credit", "fabric.vls=2", "run.seeds=8"];
    let torus: Vec<&str> = torus.to_vec();
    for (text, changes, expected) in [
        (CREDIT, vec!["run.seeds=8"], 4.428_571),
        (CREDIT, vec!["run.seeds=8", "traffic.self_traffic=true"], 4.375),
        (CREDIT, vec!["run.seeds=8", "fabric.topology.k=8"], 4.726_027),
        (MESH, vec!["run.seeds=8"], 6.333_333),
        (MESH, torus, 5.063_492),
    ] {
        let without_buffers = text.replace("host_link.buffer = \"unlimited\"\nlink.buffer = \"unlimited\"\n", "");
        let summary = summary(&without_buffers, &changes);
        let half = summary.confidence["hops_mean"];
        assert!(half < 0.02, "the interval says nothing: {half}");
        close(summary.hops_mean, expected, 2.0 * half);
    }
}

#[test]
fn a_mesh_is_saturated_beyond_its_bisection() {
    // A mesh of 8 x 8 carries 0.5 flits per node and flit time over its bisection at best.
    let summary = summary(MESH, &["traffic.load=0.9", "run.seeds=2"]);
    assert!(summary.saturated);
    assert!(summary.accepted_load.unwrap() < 0.55, "{:?}", summary.accepted_load);
    let busiest = summary.link_utilisation_max.unwrap();
    assert!((0.98..1.002).contains(&busiest), "what waits in front of a link has not crossed it: {busiest}");
    let hot = self::summary(CREDIT, &["traffic.pattern=hot-spot", "traffic.share=0.5", "traffic.load=0.3"]);
    assert!(hot.saturated, "63 hosts send half of their flits to one");
    let shuffle = include_str!("../../experiments/synthetic/opera-shuffle.toml");
    let few =
        self::summary(shuffle, &["traffic.hosts=54", "traffic.racks=18", "traffic.count=53", "fabric.slice=100us"]);
    assert!(!few.saturated, "53 messages of each host, one after the other, are no steady load");
}

#[test]
fn a_seed_gives_the_same_bits_and_another_one_others() {
    for text in [CREDIT, MESH] {
        let of = |seed: u64| {
            let experiment = experiment(text, &[]).seeded(seed).unwrap();
            let run = run_traffic(
                &experiment,
                RunOptions { keep: true, ..RunOptions::default() },
                &AtomicBool::new(false),
                |_| {},
            )
            .unwrap();
            (run.packets, run.figures.packet, run.figures.events, run.figures.links)
        };
        let (first, again, other) = (of(1), of(1), of(2));
        assert!(!first.0.is_empty());
        assert_eq!(first, again);
        assert_ne!(first.0, other.0);
    }
}

#[test]
fn only_what_is_handed_over_in_the_measurement_counts() {
    let experiment = experiment(CREDIT, &[]);
    let run =
        run_traffic(&experiment, RunOptions { keep: true, ..RunOptions::default() }, &AtomicBool::new(false), |_| {})
            .unwrap();
    let (from, until) = (run.plan.from_ps, run.plan.until_ps);
    let inside = |at: u64| (from..until).contains(&at);
    let counted: Vec<_> = run.packets.iter().filter(|packet| inside(packet.handed_over.0)).collect();
    let figures = &run.figures;
    assert_eq!(figures.packet.count(), counted.len() as u64);
    assert!(figures.packets > figures.packet.count(), "warm-up and drain have packets, too");
    let latency = |packet: &&netsim::fabric::packet::PacketRecord| packet.arrived.since_ps(packet.handed_over);
    assert_eq!(figures.packet.sum(), counted.iter().map(latency).map(u128::from).sum::<u128>());
    assert_eq!(figures.packet.max(), counted.iter().map(latency).max().unwrap());
    let arrived = run.packets.iter().filter(|packet| inside(packet.arrived.0)).count() as f64;
    let accepted = arrived * 8.0 / 64.0 / 8_000.0;
    assert!((figures.accepted_load.unwrap() - accepted).abs() < 1e-9);
    let flit_hops: u64 = run.packets.iter().map(|packet| u64::from(packet.flits * packet.switches)).sum();
    assert_eq!(figures.flit_hops, flit_hops);
}

#[test]
fn a_message_is_there_with_its_last_packet() {
    let changes = ["traffic.packets=4", "fabric.mtu=486B", "traffic.load=0.1"];
    let experiment = experiment(CREDIT, &changes);
    let run =
        run_traffic(&experiment, RunOptions { keep: true, ..RunOptions::default() }, &AtomicBool::new(false), |_| {})
            .unwrap();
    let figures = &run.figures;
    assert_eq!(figures.packet.count(), 4 * figures.message.count());
    let mut messages = std::collections::BTreeMap::new();
    for packet in &run.packets {
        let entry = messages.entry(packet.token.0).or_insert((packet.handed_over.0, 0, 0));
        entry.1 = entry.1.max(packet.arrived.0);
        entry.2 += 1;
    }
    let counts = |handed: u64| (run.plan.from_ps..run.plan.until_ps).contains(&handed);
    let whole = messages.values().filter(|message| message.2 == 4 && counts(message.0));
    let sum: u128 = whole.map(|(handed, arrived, _)| u128::from(arrived - handed)).sum();
    assert_eq!(figures.message.sum(), sum);
    assert!(figures.message.mean() > figures.packet.mean());
}

#[test]
fn full_queues_drop_and_lost_packets_are_told() {
    let changes = ["traffic.pattern=hot-spot", "traffic.share=1.0", "traffic.load=0.2"];
    let small = MESH.replace("\"unlimited\"", "\"4 packets\"");
    let summary = summary(&small, &changes);
    assert!(summary.saturated && summary.drops > 0 && summary.drops_measured > 0);
    assert!(summary.drops_measured < summary.drops, "some were lost outside the measurement");
    assert_eq!(summary.packets_undelivered, 0, "what is lost is not waited for");
    // All that the one link into the hot host carries, and what the hot host sends to the others.
    close(summary.accepted_load, 1.2 / 64.0, 0.0005);
}

#[test]
fn losses_are_told_by_reason_and_round_trips_and_the_background_with_them() {
    let of_hosts = summary(CREDIT, &["traffic.load=3.0", "traffic.injection_queue=2", "traffic.full_queue=\"drop\""]);
    assert_eq!(of_hosts.drops_by_reason.keys().collect::<Vec<_>>(), ["full_queue"]);
    assert_eq!(of_hosts.drops_by_reason.values().sum::<u64>(), of_hosts.drops);
    assert!(of_hosts.losses().unwrap().ends_with("at full queues of hosts") && of_hosts.saturated);
    let in_network = summary(MESH, &["traffic.load=1.0", "fabric.topology.link.buffer=\"2 packets\""]);
    assert_eq!(in_network.drops_by_reason.keys().collect::<Vec<_>>(), ["in_network"]);
    let none = summary(CREDIT, &[]);
    assert!(none.losses().is_none() && none.round_trip_ns.is_none() && none.background_packets.is_none());
    let beside = "traffic.background={ pattern = \"uniform\", load = 0.1 }";
    let asked = summary(
        &CREDIT.replace("load = 0.2\n", "").replace("warm_up = \"2000 cycles\"\nmeasurement = \"8000 cycles\"\n", ""),
        &["traffic.pattern=\"ping-pong\"", "traffic.count=5", "traffic.turnaround=\"1us\"", beside],
    );
    let (ns, cycles) = (asked.round_trip_ns.unwrap(), asked.round_trip_cycles.unwrap());
    assert_eq!((ns.count, asked.messages), (32 * 5, 2 * 32 * 5));
    assert!(ns.min.unwrap() > 1_000.0 && (ns.mean.unwrap() / asked.cycle_ns / cycles.mean.unwrap() - 1.0).abs() < 1e-9);
    assert!(asked.background_packets.unwrap() > 0);
}

#[test]
fn lanes_share_a_link_by_service_level() {
    let levels = ["traffic.levels.0=0.25", "traffic.levels.1=0.75", "traffic.load=0.4"];
    let run = run(&experiment(CREDIT, &levels));
    let busy: Vec<_> = run.figures.links.iter().filter(|link| link.utilisation.unwrap() > 0.2).collect();
    assert!(!busy.is_empty());
    let all = |lane: usize| busy.iter().map(|link| link.lanes[lane]).sum::<f64>();
    assert!((all(1) / (all(0) + all(1)) - 0.75).abs() < 0.02);
    for link in busy {
        assert!((link.lanes.iter().sum::<f64>() - link.utilisation.unwrap()).abs() < 1e-9);
    }
}

#[test]
fn a_table_says_what_is_sent_and_when() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("messages.csv");
    std::fs::write(&table, "at,from,to,bytes,level\n10us,3,9,486B,1\n0ns,0,63,4860B,0\n\n20us,5,4,0B,\n").unwrap();
    let path = folder.path().join("x.toml");
    let text = "[traffic]\npattern = \"table\"\ntable = \"messages.csv\"\n[fabric]\nkind = \"credit\"\nmtu = \"486B\"\n\
                [fabric.topology]\nshape = \"k-ary-n-tree\"\n";
    std::fs::write(&path, text).unwrap();
    let experiment = Experiment::read(&path, &[]).unwrap();
    let run =
        run_traffic(&experiment, RunOptions { keep: true, ..RunOptions::default() }, &AtomicBool::new(false), |_| {})
            .unwrap();
    assert_eq!((run.figures.messages, run.figures.packets, run.figures.message.count()), (3, 12, 3));
    let mut ends: Vec<(u64, u32, u32)> =
        run.packets.iter().map(|p| (p.handed_over.0, p.source.0, p.destination.0)).collect();
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends, [(0, 0, 63), (10_000_000, 3, 9), (20_000_000, 5, 4)]);
    assert_eq!(run.figures.saturation, Saturation::No);
}

#[test]
fn a_run_that_is_stopped_is_interim() {
    let experiment = experiment(CREDIT, &["traffic.load=0.5", "traffic.measurement=1s"]);
    let stop = AtomicBool::new(false);
    let stopped = run_traffic(&experiment, RunOptions::default(), &stop, |progress| {
        stop.store(progress.share() > 0.0, std::sync::atomic::Ordering::Relaxed);
    });
    let run = stopped.unwrap();
    assert!(run.figures.interim && run.figures.simulated_ps < run.plan.until_ps);
    let summary = TrafficSummary::new(&experiment, &[run]).unwrap();
    assert!(summary.interim);
    if summary.simulated_ns > summary.measured_from_ns * 2.0 {
        close(summary.offered_load, 0.5, 0.1);
    }
}

#[test]
fn all_experiments_of_the_repository_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/synthetic");
    let short = ["traffic.warm_up=100 cycles", "traffic.measurement=300 cycles", "run.seeds=1"];
    // It ends by itself.
    let few = ["traffic.count=2", "run.seeds=1"];
    let changes = |keys: &[&str]| keys.iter().map(|change| change.parse().unwrap()).collect::<Vec<Override>>();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let counts = path.ends_with("opera-shuffle.toml");
        let sweep = Sweep::read(&path, &changes(if counts { &few } else { &short })).unwrap();
        for point in &sweep.points {
            let run = run(&point.experiment);
            assert!(run.figures.packet.count() > 0, "{}: {:?}", point.experiment.name, point.values);
        }
        names.push(sweep.points[0].experiment.name.clone());
    }
    assert!(names.len() >= 5, "{names:?}");
}

/// What the comments of `synthetic/omni-path.toml` and `omni-path-shift.toml` say.
#[test]
fn an_omni_path_router_accepts_what_its_paper_says() {
    let runs = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/synthetic").join(name);
        let changes = ["traffic.load=[0.7, 1.0]", "run.seeds=1"].map(|change| change.parse().unwrap());
        let sweep = Sweep::read(&path, &changes).unwrap();
        sweep.points.iter().map(|point| run(&point.experiment).figures).collect::<Vec<_>>()
    };
    let uniform = runs("omni-path.toml");
    close(uniform[0].accepted_load, uniform[0].offered_load.unwrap(), 0.01);
    close(uniform[1].accepted_load, 0.73, 0.01);
    for figures in runs("omni-path-shift.toml") {
        close(figures.accepted_load, figures.offered_load.unwrap(), 0.01);
        // A cycle is 625 ps.
        let (least, most) = (figures.network.quantile(0.0).unwrap(), figures.network.quantile(1.0).unwrap());
        close(Some(least / 625.0), 182.0, 0.5);
        close(Some(most / 625.0), 200.0, 0.5);
    }
}

/// What the comment of `synthetic/input-queued.toml` says.
#[test]
fn input_queued_routers_accept_and_take_what_booksims_do() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/synthetic/input-queued.toml");
    let sweep = Sweep::read(&path, &["run.seeds=1".parse().unwrap()]).unwrap();
    let figures: Vec<_> = sweep.points.iter().map(|point| run(&point.experiment).figures).collect();
    for (figures, latency) in figures.iter().zip([33.0, 41.0, 60.0]) {
        close(figures.accepted_load, figures.offered_load.unwrap(), 0.01);
        // A cycle is 1 ns.
        close(figures.packet.mean().map(|mean| mean / 1_000.0), latency, latency * 0.03);
    }
    close(figures[4].accepted_load, 0.687, 0.02);
}

/// What the comment of `sweeps/ops-load.toml` says: with more wavelengths more arrives.
#[test]
fn more_wavelengths_let_more_through_the_packet_switch() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/sweeps/ops-load.toml");
    let sweep = Sweep::read(&path, &["traffic.load=0.4".parse().unwrap()]).unwrap();
    let runs: Vec<TrafficRun> = sweep.points.iter().map(|point| run(&point.experiment)).collect();
    let accepted: Vec<f64> = runs.iter().map(|run| run.figures.accepted_load.unwrap()).collect();
    assert!(accepted.len() == 3 && accepted[1] > 1.7 * accepted[0] && accepted[2] > 1.7 * accepted[1], "{accepted:?}");
    // Slots without coordination are full at 1/e.
    for run in &runs[..2] {
        let busiest = run.figures.links.iter().filter_map(|link| link.utilisation).fold(0.0, f64::max);
        close(Some(busiest), libm::exp(-1.0), 0.02);
    }
}

/// What the comment of `sweeps/ops-loss.toml` says: losses are Erlang's within some percent, and resends leave nearly none.
#[test]
fn losses_of_the_packet_switch_are_erlangs() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/sweeps/ops-loss.toml");
    let erlang = |servers: u32, offered: f64| {
        (1..=servers).fold(1.0, |blocked, k| offered * blocked / (f64::from(k) + offered * blocked))
    };
    let lost = |run: &TrafficRun| run.figures.drops as f64 / (run.figures.drops + run.figures.packets) as f64;
    let sweep = Sweep::read(&path, &["traffic.load=0.4".parse().unwrap()]).unwrap();
    for (point, wavelengths) in sweep.points.iter().zip([1, 2, 4]) {
        let run = run(&point.experiment);
        assert!(run.figures.drops > 0 || wavelengths == 4);
        assert!(
            (lost(&run) - erlang(wavelengths, 0.4)).abs() < 0.1 * erlang(wavelengths, 0.4) + 0.0005,
            "{:?}",
            point.values
        );
    }
    let changes =
        ["traffic.load=0.4", "fabric.wavelengths=1", "fabric.resends=9"].map(|change| change.parse().unwrap());
    let resent = run(&Sweep::read(&path, &changes).unwrap().points[0].experiment);
    assert!(lost(&resent) < 0.001 && resent.figures.packets > 50_000, "{}", lost(&resent));
}
