//! What the comment of each experiment of the repository promises happens: one test a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{MS, TraceBuilder};
use replay::experiment::Experiment;
use replay::results::RunResults;
use replay::run::run_experiment;
use trace::ids::{ConnectionId, EventId};
use trace::rows::{On, Trace};

/// As the merger cuts a long message.
const PIECE: u64 = 64 * 1_024;
const LARGE: u64 = 2 << 20;
const SMALL: u64 = 200_000;
/// Hosts 0 and 2 stand in one rack, 1 and 3 in the other.
const HOSTS: [&str; 4] = ["w0", "w1", "w2", "w3"];

/// A message of `bytes` in pieces, each of which leaves when the one before it has: its last piece.
fn message(builder: &mut TraceBuilder, connection: ConnectionId, bytes: u64, at: i64) -> EventId {
    let mut last: Option<EventId> = None;
    for number in 0..i64::try_from(bytes.div_ceil(PIECE)).unwrap() {
        let piece = (bytes - number.unsigned_abs() * PIECE).min(PIECE);
        let event = builder.send(connection, true, piece, at + number * MS, at + (number + 1) * MS);
        match last {
            None => builder.trace.messages.last_mut().unwrap().bytes = bytes,
            Some(before) => {
                builder.trace.messages.pop();
                let message = builder.trace.events[before.index()].message;
                builder.trace.events[event.index()].message = message;
                builder.after(event, before, On::Sent);
            }
        }
        last = Some(event);
    }
    last.unwrap()
}

/// A job of messages (from, to, protocol, bytes) one after the other, those of equal ends and protocol on one connection.
fn job_of(messages: &[(u32, u32, &'static str, u64)]) -> Trace {
    let mut builder = TraceBuilder::new(&HOSTS);
    let mut connections: BTreeMap<(u32, u32, &str), ConnectionId> = BTreeMap::new();
    let mut last = EventId(0);
    for (index, (from, to, protocol, bytes)) in (0..).zip(messages) {
        let connection = *connections.entry((*from, *to, *protocol)).or_insert_with(|| {
            let connection = builder.connection(*from, *to);
            (*protocol).clone_into(&mut builder.trace.connections[connection.index()].protocol);
            connection
        });
        let first = EventId(u32::try_from(builder.trace.events.len()).unwrap());
        let end = message(&mut builder, connection, *bytes, 10 * MS + 100 * MS * index);
        builder.after(first, last, On::Delivered);
        last = end;
    }
    let finish = builder.mark("job.finish", 0, 100 * MS * i64::try_from(messages.len() + 1).unwrap());
    builder.after(finish, last, On::Delivered);
    builder.build()
}

/// A job of a large and a small message between the racks, and one within a rack, one after the other.
fn job() -> Trace {
    job_of(&[(0, 1, "rpc", LARGE), (2, 3, "rpc", SMALL), (1, 3, "rpc", SMALL)])
}

fn run(name: &str) -> RunResults {
    run_job(name, &job())
}

fn run_job(name: &str, job: &Trace) -> RunResults {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name);
    let mut experiment = Experiment::read(&path, &[]).unwrap();
    // Wires alone, not what the processes thought.
    experiment.workload.handshakes = false;
    run_experiment(&experiment, job, |_| {}).unwrap()
}

/// Packets of 32 KiB of a message between racks that leaves in pieces.
fn packets(bytes: u64) -> u64 {
    bytes / PIECE * 2 + (bytes % PIECE).div_ceil(32 << 10)
}

/// Packets by circuit, those by OPS, and circuits that were set up.
fn ways(results: &RunResults) -> [u64; 3] {
    ["packets by circuit", "packets by OPS", "circuits set up"].map(|name| counter(results, name))
}

fn counter(results: &RunResults, name: &str) -> u64 {
    results.detail.summary.counters[name]
}

/// How long each message took, in picoseconds: the large one, the small one, the one within a rack.
fn times(results: &RunResults) -> Vec<u64> {
    let took = |times: &replay::results::MessageTimes| {
        let (sent, delivered) = times.simulated.unwrap();
        delivered.since_ps(sent)
    };
    results.messages.iter().map(took).collect()
}

fn rates(results: &RunResults) -> BTreeSet<u64> {
    results.detail.links.iter().map(|link| link.rate_bps).collect()
}

const GBIT: u64 = 1_000_000_000;

#[test]
fn every_experiment_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = files.filter(|path| path.is_file()).map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let tested = include_str!("promises.rs");
    for name in names {
        let calls = [format!("run(\"{name}.toml\")"), format!("run_job(\"{name}.toml\", ")];
        assert!(calls.iter().any(|call| tested.contains(call)), "experiments/{name}.toml has no test here: {calls:?}");
    }
}

#[test]
fn ideal_takes_no_time_on_the_network() {
    let results = run("ideal.toml");
    // What is left are the pauses of a millisecond between pieces, which are the senders' own.
    let pauses = [LARGE, SMALL, SMALL].map(|bytes| (bytes.div_ceil(PIECE) - 1) * 1_000_000_000);
    assert_eq!(times(&results), pauses);
    assert_eq!(results.detail.summary.network_share, 0.0);
}

#[test]
fn ethernet_10g_has_racks_of_10_gbit_behind_an_uplink_of_40_each() {
    let results = run("ethernet-10g.toml");
    assert_eq!(rates(&results), BTreeSet::from([10 * GBIT, 40 * GBIT]));
    let uplinks = results.detail.links.iter().filter(|link| link.rate_bps == 40 * GBIT);
    assert_eq!(uplinks.filter(|link| link.bytes > LARGE).count(), 1, "{:?}", results.detail.links);
    // No message is faster than its bytes at 10 Gbit/s.
    assert!(times(&results)[0] >= LARGE * 800, "{:?}", times(&results));
}

#[test]
fn fat_tree_has_an_uplink_from_each_rack_to_each_core_and_flows_are_spread() {
    let results = run("fat-tree.toml");
    assert_eq!(rates(&results), BTreeSet::from([10 * GBIT]));
    let up = |link: &&replay::results::LinkDetail| {
        link.name.contains("core") && !HOSTS.iter().any(|host| link.name.contains(host))
    };
    let uplinks: Vec<_> = results.detail.links.iter().filter(up).collect();
    assert_eq!(uplinks.len(), 2 * 2 * 2, "two racks, two cores, two directions: {uplinks:?}");
    assert!(uplinks.iter().filter(|link| link.bytes > 0).count() >= 2, "{uplinks:?}");
}

#[test]
fn gigabit_has_racks_of_1_gbit_behind_an_uplink_of_10_each() {
    let results = run("gigabit.toml");
    assert_eq!(rates(&results), BTreeSet::from([GBIT, 10 * GBIT]));
    // Within a rack a message crosses two host links and no uplink.
    assert!(times(&results)[2] >= SMALL * 8_000, "{:?}", times(&results));
}

#[test]
fn infiniband_drops_nothing_and_carries_32_gbit() {
    let results = run("infiniband.toml");
    assert_eq!(rates(&results), BTreeSet::from([32 * GBIT]));
    assert_eq!((results.detail.summary.drops, results.detail.summary.retransmissions), (0, 0));
    let fastest = LARGE * 8_000 / 32;
    // Two switches of a rack and one of the core, 200 ns each, beside its bytes.
    assert!(times(&results)[0] >= fastest + 600_000, "{:?}", times(&results));
}

#[test]
fn lab_100mbit_has_links_of_100_and_an_uplink_of_50() {
    let results = run("lab-100mbit.toml");
    assert_eq!(rates(&results), BTreeSet::from([100_000_000, 50_000_000]));
    let [large, _, within] = times(&results)[..] else { panic!() };
    // Less what a token bucket lets pass at once.
    assert!(large >= (LARGE - 32 * 1_024) * 160_000, "50 Mbit/s between racks: {large}");
    assert!(((SMALL - 32 * 1_024) * 80_000..SMALL * 160_000).contains(&within), "100 within one: {within}");
}

#[test]
fn lab_10mbit_is_ten_times_slower_than_the_lab() {
    let (slow, lab) = (times(&run("lab-10mbit.toml")), times(&run("lab-100mbit.toml")));
    let ratio = slow[0] as f64 / lab[0] as f64;
    assert!((9.5..10.5).contains(&ratio), "{ratio}: {slow:?} and {lab:?}");
}

#[test]
fn lightness_ops_takes_the_packet_switch_for_all_traffic_between_racks() {
    let results = run("lightness-ops.toml");
    let packets = (LARGE / PIECE) * 2 + SMALL.div_ceil(PIECE) * 2 - 1;
    assert_eq!(counter(&results, "packets by circuit"), 0);
    assert_eq!(counter(&results, "packets by OPS"), packets);
    assert!(counter(&results, "packets within racks") > 0);
}

#[test]
fn lightness_ocs_takes_circuits_for_all_traffic_between_racks() {
    let results = run("lightness-ocs.toml");
    assert_eq!(counter(&results, "packets by OPS"), 0);
    assert!(counter(&results, "packets by circuit") > 0 && counter(&results, "circuits set up") > 0);
    // The set-up of the deliverable.
    assert!(times(&results)[0] >= 753_000_000_000, "{:?}", times(&results));
}

#[test]
fn rotor_has_messages_of_1_mib_wait_for_their_circuit_and_loses_nothing() {
    let results = run("rotor.toml");
    assert_eq!(rates(&results), BTreeSet::from([10 * GBIT]));
    let packets = |bytes: u64| bytes / PIECE * PIECE.div_ceil(1_436) + (bytes % PIECE).div_ceil(1_436);
    assert_eq!(counter(&results, "packets over circuits"), packets(LARGE) + packets(SMALL));
    assert_eq!(counter(&results, "packets on short ways"), packets(SMALL));
    assert_eq!((results.detail.summary.drops, results.detail.summary.retransmissions), (0, 0));
}

#[test]
fn circuits_by_demand_are_set_up_for_what_waits_and_lose_nothing() {
    for (name, results) in [("solstice", run("circuits-solstice.toml")), ("sunflow", run("circuits-sunflow.toml"))] {
        assert_eq!(rates(&results), BTreeSet::from([10 * GBIT, 40 * GBIT]), "{name}");
        assert!(counter(&results, "circuits planned") > 0, "{name}");
        assert_eq!((results.detail.summary.drops, results.detail.summary.retransmissions), (0, 0), "{name}");
        // What waits is known after 10 us, and a circuit up 10 us later.
        assert!(times(&results)[..2].iter().all(|time| *time >= 20_000_000), "{name}: {:?}", times(&results));
        // No circuit is planned for more than 1 ms beside its guard band: 5 MB at 40 Gbit/s.
        assert!(results.detail.circuits.iter().all(|circuit| circuit.bytes <= 5_001_500), "{name}");
    }
}

#[test]
fn lightness_mixed_takes_circuits_for_messages_of_1_mib_and_the_packet_switch_for_smaller_ones() {
    let results = run("lightness-mixed.toml");
    // Each piece of 64 KiB is two packets of 32 KiB, whatever their way.
    assert_eq!(counter(&results, "packets by circuit"), (LARGE / PIECE) * 2);
    assert_eq!(counter(&results, "packets by OPS"), SMALL.div_ceil(PIECE) * 2 - 1);
    let [large, small, _] = times(&results)[..] else { panic!() };
    assert!(large >= 753_000_000_000 && small < 753_000_000_000, "{large} and {small}");
}

#[test]
fn by_kind_goes_by_what_a_connection_of_the_trace_is_for() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/lightness-ocs.toml");
    let mut experiment = Experiment::read(&path, &[]).unwrap();
    experiment.workload.handshakes = false;
    let packets = |bytes: u64| bytes.div_ceil(32 << 10);
    for (kinds, by_circuit) in [("calls", packets(LARGE)), ("storage", packets(SMALL)), ("shuffle", 0), ("other", 0)] {
        let text = format!("kind = \"lightness\"\ndecision = \"by-kind\"\ncircuit_kinds = [\"{kinds}\"]");
        experiment.fabric = text.parse().unwrap();
        let mut trace = job();
        // The large message is a call's, the small one between the racks a block's, the one within a rack a map output's.
        for (connection, protocol) in trace.connections.iter_mut().zip(["rpc", "data-transfer", "shuffle"]) {
            protocol.clone_into(&mut connection.protocol);
        }
        let results = run_experiment(&experiment, &trace, |_| {}).unwrap();
        assert_eq!(counter(&results, "packets by circuit"), by_circuit, "{kinds}");
        assert_eq!(counter(&results, "packets by OPS"), packets(LARGE) + packets(SMALL) - by_circuit, "{kinds}");
    }
}

#[test]
fn lightness_by_flow_takes_circuits_once_a_connection_has_sent_1_mib() {
    let results = run("lightness-by-flow.toml");
    assert_eq!(ways(&results), [packets(LARGE - (1 << 20)), packets(1 << 20) + packets(SMALL), 1]);
    // However many messages it takes.
    let small = job_of(&[(0, 1, "rpc", SMALL); 8]);
    let [by_circuit, by_ops, circuits] = ways(&run_job("lightness-by-flow.toml", &small));
    assert_eq!((by_circuit + by_ops, circuits), (8 * packets(SMALL), 1));
    assert!((1..=3 * packets(SMALL)).contains(&by_circuit), "of 1.6 MB what is behind the first MiB: {by_circuit}");
}

#[test]
fn lightness_by_kind_takes_circuits_for_shuffles_alone() {
    let all =
        job_of(&[(0, 1, "shuffle", SMALL), (0, 1, "rpc", LARGE), (2, 3, "data-transfer", LARGE), (1, 0, "", LARGE)]);
    let results = run_job("lightness-by-kind.toml", &all);
    assert_eq!(ways(&results), [packets(SMALL), 3 * packets(LARGE), 1]);
    // Calls alone need no circuit.
    assert_eq!(ways(&run("lightness-by-kind.toml")), [0, packets(LARGE) + packets(SMALL), 0]);
}

#[test]
fn lightness_by_destination_takes_circuits_to_the_hosts_of_a_rack() {
    // To w1 and w3 of /r2, and back to w0 of /r1.
    let job = job_of(&[(0, 1, "rpc", SMALL), (2, 3, "shuffle", LARGE), (1, 0, "rpc", LARGE)]);
    let results = run_job("lightness-by-destination.toml", &job);
    assert_eq!(ways(&results), [packets(SMALL) + packets(LARGE), packets(LARGE), 1]);
    let circuits: Vec<(&str, &str)> =
        results.detail.circuits.iter().map(|circuit| (circuit.from.as_str(), circuit.to.as_str())).collect();
    assert_eq!(circuits, [("/r1", "/r2")]);
}

#[test]
fn lightness_by_prediction_takes_circuits_once_messages_of_the_kind_were_large() {
    let shuffle = (0, 1, "shuffle", LARGE);
    let job = job_of(&[shuffle, (2, 3, "rpc", SMALL), shuffle, (2, 3, "rpc", SMALL), shuffle, (2, 3, "rpc", SMALL)]);
    let results = run_job("lightness-by-prediction.toml", &job);
    // Of the first nothing is known.
    assert_eq!(ways(&results), [2 * packets(LARGE), packets(LARGE) + 3 * packets(SMALL), 1]);
    let of = ["messages predicted", "elephants predicted to be mice", "mice predicted to be elephants"];
    assert_eq!(of.map(|name| counter(&results, name)), [6, 1, 0]);
}

#[test]
fn lightness_solstice_plans_circuits_for_messages_of_1_mib_and_takes_the_packet_switch_for_smaller_ones() {
    let results = run("lightness-solstice.toml");
    assert_eq!(counter(&results, "packets by circuit"), (LARGE / PIECE) * 2);
    assert_eq!(counter(&results, "packets by OPS"), SMALL.div_ceil(PIECE) * 2 - 1);
    assert_eq!(counter(&results, "circuit requests"), 0);
    assert!(counter(&results, "circuits set up") > 0);
    assert!(results.detail.circuits.iter().all(|circuit| circuit.scheduled));
    let [large, small, _] = times(&results)[..] else { panic!() };
    // What waits is known after 1 ms, and a circuit up 25 ms later.
    assert!((26_000_000_000..753_000_000_000).contains(&large) && small < 26_000_000_000, "{large} and {small}");
}

#[test]
fn lightness_aod_joins_tors_to_the_packet_switch_before_a_packet_passes() {
    let results = run("lightness-aod.toml");
    assert_eq!(counter(&results, "packets by circuit"), 0);
    assert!(counter(&results, "packets by OPS") > 0);
    assert!(times(&results)[0] >= 753_000_000_000, "{:?}", times(&results));
}

#[test]
fn lightness_by_circuit_takes_the_packet_switch_while_there_is_no_circuit() {
    let results = run("lightness-by-circuit.toml");
    let packets = (LARGE / PIECE) * 2 + SMALL.div_ceil(PIECE) * 2 - 1;
    assert_eq!(counter(&results, "packets by OPS") + counter(&results, "packets by circuit"), packets);
    assert!(counter(&results, "packets by OPS") > 0);
    // Nobody waits for the set-up.
    assert!(times(&results)[0] < 753_000_000_000, "{:?}", times(&results));
}
