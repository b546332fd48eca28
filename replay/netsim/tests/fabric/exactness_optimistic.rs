//! `store-and-forward` by Time Warp beside its slow model and its run in windows: the same packets at the same picosecond, the same figures, whatever the
//! parts, the threads, and how far parts run ahead.

use crate::exactness::listed::{listed, stops, without_answers};
use crate::exactness::networks::stored_networks;
use crate::exactness::{Case, difference, found, networks_config};
use crate::exactness_windows::{packet_bytes, windows};
use crate::flit_model::fault::Fault;
use crate::flit_model::store_and_forward::play;
use crate::flit_model::traffic::Seen;
use netsim::fabric::optimistic::{OptimisticCost, OptimisticOptions};
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::fabric::store_and_forward::windows::Windowed;
use netsim::fabric::windows::WindowedRun;
use netsim::network::NetworkFigures;
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

/// What a run shows.
struct Ran {
    seen: Seen,
    figures: NetworkFigures,
    /// The bytes of the links at each stop.
    bytes: Vec<Vec<u64>>,
    remote: u64,
    cost: OptimisticCost,
}

/// What a run with `parts` parts on `threads` threads shows, stopped now and then on its way.
fn optimistic(
    case: &Case<StoreAndForwardConfig>,
    parts: u16,
    threads: usize,
    stops: &[u64],
    options: OptimisticOptions,
) -> Ran {
    let network = Windowed::new(&case.config, &case.hosts).unwrap();
    let bytes = packet_bytes(case);
    let mut run = network.into_optimistic(parts, &bytes, Seen::default(), |_| listed(&case.traffic), options);
    run.on_threads(threads);
    let mut bytes = Vec::new();
    for stop in stops {
        assert!(!run.run_before(SimTime(*stop), |_| false));
        bytes.push(run.lane_bytes(SimTime(*stop)));
    }
    run.run_before(SimTime::LATEST, |_| false);
    let (remote, cost, figures) = (run.cost().remote_events, run.optimistic_cost().unwrap(), run.take_figures());
    Ran { seen: run.into_observer().sorted(), figures, bytes, remote, cost }
}

/// How parts are run, from waiting for each other at each instant to running as far ahead as there is anything.
fn options() -> impl Strategy<Value = OptimisticOptions> {
    let ahead_ps = prop_oneof![Just(None), (0u32..40).prop_map(|bits| Some(1 << bits)), Just(Some(u64::MAX))];
    (1u32..40, prop_oneof![1u32..20, Just(1_000)], ahead_ps)
        .prop_map(|(gvt_interval, batch, ahead_ps)| OptimisticOptions { gvt_interval, batch, ahead_ps })
}

/// In parts and on threads as `ways` says, everything is as the slow model and the windows have it.
fn agree(
    case: &Case<StoreAndForwardConfig>,
    stops: &[u64],
    options: OptimisticOptions,
    ways: &[(u16, usize)],
) -> TestCaseResult {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let slow = slow(case, None);
    for (parts, threads) in ways.iter().copied() {
        let (_, figures, bytes) = windows(case, parts, 1, stops);
        let ran = optimistic(case, parts, threads, stops, options);
        if let Some(difference) = difference(&ran.seen, &slow, &topology) {
            return Err(TestCaseError::fail(format!("{parts} parts on {threads} threads\n{difference}")));
        }
        prop_assert_eq!((&ran.figures, &ran.bytes), (&figures, &bytes), "{} parts on {} threads", parts, threads);
        if parts == 1 {
            prop_assert_eq!((ran.remote, ran.cost.rolled_back, ran.cost.anti_messages), (0, 0, 0));
        }
    }
    Ok(())
}

const REGRESSIONS: &str = "tests/regressions/fabric_exactness_optimistic.txt";

fn threads_config() -> ProptestConfig {
    let config = networks_config(0, REGRESSIONS);
    ProptestConfig { cases: config.cases.div_ceil(32), ..config }
}

proptest! {
    #![proptest_config(networks_config(300, REGRESSIONS))]

    #[test]
    fn optimistically_every_packet_leaves_and_arrives_when_the_slow_model_says(
        case in without_answers(stored_networks()), stops in stops(), options in options()
    ) {
        agree(&case, &stops, options, &[(1, 1), (2, 1), (3, 1), (16, 1)])?;
    }
}

proptest! {
    #![proptest_config(threads_config())]

    #[test]
    fn threads_that_run_ahead_show_in_nothing(
        case in without_answers(stored_networks()), stops in stops(), options in options()
    ) {
        agree(&case, &stops, options, &[(2, 2), (4, 4), (16, 2)])?;
    }
}

proptest! {
    #![proptest_config(threads_config())]

    /// A run that is stopped ends somewhat later, where all is as if it had been run until then and no further.
    #[test]
    fn a_run_that_is_stopped_is_whole_until_then(
        case in without_answers(stored_networks()), options in options(), rounds in 0u32..30, threads in 1usize..3
    ) {
        let parts = || Windowed::new(&case.config, &case.hosts).unwrap();
        let bytes = packet_bytes(&case);
        let mut run = parts().into_optimistic(3, &bytes, Seen::default(), |_| listed(&case.traffic), options);
        run.on_threads(threads);
        let (mut looks, mut end) = (0, SimTime::ZERO);
        let stopped = run.run_before(SimTime::LATEST, |progress| {
            (looks, end) = (looks + 1, progress.now);
            looks > rounds
        });
        prop_assert_eq!(stopped, looks > rounds);
        let mut expected = parts().into_parts(3, &bytes, Seen::default(), |_| listed(&case.traffic));
        expected.run_before(end, |_| false);
        prop_assert_eq!(run.lane_bytes(end), expected.lane_bytes(end));
        prop_assert_eq!(run.take_figures(), expected.take_figures());
        prop_assert_eq!(run.into_observer().sorted(), expected.into_observer().sorted());
    }
}

fn slow(case: &Case<StoreAndForwardConfig>, fault: Option<Fault>) -> Seen {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let mut seen = play(&case.config, &topology, &case.traffic, fault);
    seen.deliveries.clear();
    seen.sorted()
}

/// Each part runs all that it knows of, and only then hears of the others.
const FAR_AHEAD: OptimisticOptions = OptimisticOptions { gvt_interval: 4, batch: 100_000, ahead_ps: Some(u64::MAX) };

#[test]
fn parts_that_run_far_ahead_take_packets_back() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let networks = without_answers(stored_networks());
    let mut rollbacks = [0, 0, 0, 0];
    for _ in 0..200 {
        let case = networks.new_tree(&mut runner).unwrap().current();
        let Ran { seen, cost, .. } = optimistic(&case, 4, 1, &[], FAR_AHEAD);
        assert!(seen == slow(&case, None), "{case:?}");
        let OptimisticCost { rolled_back, primary_rollbacks, secondary_rollbacks, anti_messages, .. } = cost;
        let counts = [rolled_back, primary_rollbacks, secondary_rollbacks, anti_messages];
        rollbacks.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("taken back, primary, secondary, anti-messages: {rollbacks:?}");
    assert!(rollbacks.iter().all(|count| *count > 100), "{rollbacks:?}");
}

#[test]
fn mistakes_in_storing_and_forwarding_are_found_by_time_warp() {
    let faults = [
        Fault::RemainderDropped,
        Fault::RemainderKept,
        Fault::PacketOnLinkCounts,
        Fault::RoomForOneMore,
        Fault::TiesByLink,
        Fault::OfferedBeforeLinksGoOn,
        Fault::SwitchDelayForgotten,
    ];
    let by_time_warp = |case: &Case<StoreAndForwardConfig>| {
        let seen = optimistic(case, 3, 1, &[], FAR_AHEAD).seen;
        assert!(seen == slow(case, None), "without a mistake nothing differs");
        seen
    };
    let networks = without_answers(stored_networks());
    let found = found(&networks, 4_000, &faults, by_time_warp, |case, fault| slow(case, Some(fault)));
    for (fault, network) in &found {
        println!("{fault:?}: network {network:?}");
    }
    assert!(found.iter().all(|(_, network)| network.is_some()), "{found:?}");
}
