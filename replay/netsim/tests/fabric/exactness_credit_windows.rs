//! `credit` in windows beside its slow model and its event engine: the same packets at the same picosecond, the same figures, for any
//! number of parts and threads.

use crate::exactness::listed::{bytes_at, listed, stops, without_answers};
use crate::exactness::networks::{
    allocated_networks, arbitrated_networks, credit_networks, exclusive_networks, lattice_networks, minimal_networks,
    shared_networks, spread_networks,
};
use crate::exactness::{Case, difference, networks_config, run};
use crate::flit_model::credit::play;
use crate::flit_model::traffic::Seen;
use netsim::fabric::credit::windows::Windowed;
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::windows::{Unsuited, WindowedRun, WindowsWanted};
use netsim::network::{NetworkFigures, Simulation};
use netsim::routing::{BubbleAt, BubbleConfig, RoutingConfig};
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// What a run in windows with `parts` parts on `threads` threads shows, stopped now and then on its way, and the bytes of its lanes at
/// these stops.
pub fn windows(
    case: &Case<CreditConfig>,
    parts: usize,
    threads: usize,
    stops: &[u64],
) -> Result<(Seen, NetworkFigures, Vec<Vec<u64>>), Unsuited> {
    let wanted = WindowsWanted { threads: parts, always: true, asks_back: None };
    let network = Windowed::new(&case.config, &case.hosts, wanted).unwrap()?;
    let mut run = network.into_parts(Seen::default(), |_| listed(&case.traffic)).unwrap();
    run.on_threads(threads);
    let mut bytes = Vec::new();
    for stop in stops {
        assert!(!run.run_before(SimTime(*stop), |_| false));
        bytes.push(run.lane_bytes(SimTime(*stop)));
    }
    run.run_before(SimTime::LATEST, |_| false);
    let figures = run.take_figures();
    Ok((run.into_observer().sorted(), figures, bytes))
}

/// In parts and on threads as `ways` says, everything is as the slow model and the event engine have it.
fn agree(case: &Case<CreditConfig>, stops: &[u64], ways: &[(usize, usize)]) -> TestCaseResult {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let mut slow = play(&case.config, &topology, &case.traffic, None);
    slow.deliveries.clear();
    let mut fabric = Credit::new(&case.config, &case.hosts, Seen::default()).unwrap();
    run(&mut fabric, &case.traffic);
    let figures = fabric.figures();
    let mut fabric = Credit::new(&case.config, &case.hosts, ()).unwrap();
    let expected = (figures, bytes_at(&mut fabric, &case.traffic, stops));
    for (parts, threads) in ways.iter().copied() {
        let (fast, figures, bytes) = match windows(case, parts, threads, stops) {
            Ok(seen) => seen,
            Err(Unsuited(reason)) => {
                let here = matches!(
                    case.config.routing,
                    RoutingConfig::BubbleVls(BubbleConfig { bubble_at: BubbleAt::Here, .. })
                );
                prop_assert!(here, "{reason:?}");
                return Ok(());
            }
        };
        if let Some(difference) = difference(&fast, &slow, &topology) {
            return Err(TestCaseError::fail(format!("{parts} parts on {threads} threads\n{difference}")));
        }
        prop_assert_eq!(&(figures, bytes), &expected, "{} parts on {} threads", parts, threads);
    }
    Ok(())
}

/// Networks of all kinds that there are.
fn networks() -> impl Strategy<Value = Case<CreditConfig>> {
    // Boxed: together they are too large for the stack of a test.
    without_answers(prop_oneof![
        4 => credit_networks().boxed(),
        2 => minimal_networks().boxed(),
        2 => lattice_networks().boxed(),
        2 => spread_networks().boxed(),
        2 => arbitrated_networks().boxed(),
        2 => allocated_networks().boxed(),
        2 => shared_networks().boxed(),
        2 => exclusive_networks().boxed(),
    ])
}

const REGRESSIONS: &str = "tests/regressions/fabric_exactness_credit_windows.txt";

/// Threads meet at each window, and wait there for the processor where a machine is busy: fewer networks than those of one thread, whose
/// number follows PROPTEST_CASES as theirs does.
fn threads_config() -> ProptestConfig {
    let config = networks_config(0, REGRESSIONS);
    ProptestConfig { cases: config.cases.div_ceil(32), ..config }
}

proptest! {
    #![proptest_config(networks_config(1_000, REGRESSIONS))]

    #[test]
    fn in_windows_every_packet_leaves_and_arrives_when_the_slow_model_says(case in networks(), stops in stops()) {
        agree(&case, &stops, &[(1, 1), (2, 1), (3, 1), (16, 1)])?;
    }
}

proptest! {
    #![proptest_config(threads_config())]

    #[test]
    fn threads_show_in_nothing(case in networks(), stops in stops()) {
        agree(&case, &stops, &[(2, 2), (3, 3), (16, 2)])?;
    }
}
