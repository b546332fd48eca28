//! `store-and-forward` in windows beside its slow model and its event engine: the same packets at the same picosecond, the same figures,
//! for any number of parts and threads.

use crate::exactness::listed::{bytes_at, listed, stops, without_answers};
use crate::exactness::networks::stored_networks;
use crate::exactness::{Case, difference, networks_config, run};
use crate::flit_model::store_and_forward::play;
use crate::flit_model::traffic::Seen;
use netsim::fabric::store_and_forward::windows::Windowed;
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::fabric::windows::WindowedRun;
use netsim::network::{NetworkFigures, Simulation};
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::ops::RangeInclusive;

/// The bytes of the smallest packet and of the largest one of `case`.
pub fn packet_bytes(case: &Case<StoreAndForwardConfig>) -> RangeInclusive<u64> {
    let (mtu, headers) = (case.config.mtu.get(), case.config.headers.get());
    let last = |bytes: u64| if bytes > 0 && bytes.is_multiple_of(mtu) { mtu } else { bytes % mtu };
    let lasts = case.traffic.iter().map(|sending| (last(sending.bytes) + headers).max(1));
    let firsts = case.traffic.iter().map(|sending| (sending.bytes.min(mtu) + headers).max(1));
    lasts.min().unwrap_or(1)..=firsts.max().unwrap_or(1)
}

/// What a run in windows with `parts` parts on `threads` threads shows, stopped now and then on its way, and the bytes of its links at
/// these stops.
pub fn windows(
    case: &Case<StoreAndForwardConfig>,
    parts: u16,
    threads: usize,
    stops: &[u64],
) -> (Seen, NetworkFigures, Vec<Vec<u64>>) {
    let network = Windowed::new(&case.config, &case.hosts).unwrap();
    let mut run = network.into_parts(parts, &packet_bytes(case), Seen::default(), |_| listed(&case.traffic));
    run.on_threads(threads);
    let mut bytes = Vec::new();
    for stop in stops {
        assert!(!run.run_before(SimTime(*stop), |_| false));
        bytes.push(run.lane_bytes(SimTime(*stop)));
    }
    run.run_before(SimTime::LATEST, |_| false);
    let figures = run.take_figures();
    (run.into_observer().sorted(), figures, bytes)
}

/// In parts and on threads as `ways` says, everything is as the slow model and the event engine have it.
fn agree(case: &Case<StoreAndForwardConfig>, stops: &[u64], ways: &[(u16, usize)]) -> TestCaseResult {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let mut slow = play(&case.config, &topology, &case.traffic, None);
    slow.deliveries.clear();
    let mut fabric = StoreAndForward::new(&case.config, &case.hosts, Seen::default()).unwrap();
    run(&mut fabric, &case.traffic);
    let mut figures = fabric.figures();
    // Windows count no traffic over time.
    figures.interval_ps = 0;
    for link in &mut figures.links {
        link.intervals = None;
    }
    let mut fabric = StoreAndForward::new(&case.config, &case.hosts, ()).unwrap();
    let expected = (figures, bytes_at(&mut fabric, &case.traffic, stops));
    for (parts, threads) in ways.iter().copied() {
        let (fast, figures, bytes) = windows(case, parts, threads, stops);
        if let Some(difference) = difference(&fast, &slow, &topology) {
            return Err(TestCaseError::fail(format!("{parts} parts on {threads} threads\n{difference}")));
        }
        prop_assert_eq!(&(figures, bytes), &expected, "{} parts on {} threads", parts, threads);
    }
    Ok(())
}

const REGRESSIONS: &str = "tests/regressions/fabric_exactness_windows.txt";

/// Threads meet at each window, and wait there for the processor where a machine is busy: fewer networks than those of one thread, whose
/// number follows PROPTEST_CASES as theirs does.
fn threads_config() -> ProptestConfig {
    let config = networks_config(0, REGRESSIONS);
    ProptestConfig { cases: config.cases.div_ceil(32), ..config }
}

proptest! {
    #![proptest_config(networks_config(500, REGRESSIONS))]

    #[test]
    fn in_windows_every_packet_leaves_and_arrives_when_the_slow_model_says(case in without_answers(stored_networks()), stops in stops()) {
        agree(&case, &stops, &[(1, 1), (2, 1), (3, 1), (16, 1)])?;
    }
}

proptest! {
    #![proptest_config(threads_config())]

    #[test]
    fn threads_show_in_nothing(case in without_answers(stored_networks()), stops in stops()) {
        agree(&case, &stops, &[(2, 2), (3, 3), (16, 2)])?;
    }
}
