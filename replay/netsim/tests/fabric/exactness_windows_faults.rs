//! The comparisons in windows can fail: for each mistake that the slow model makes, and for windows that are too wide, there is a small network on which
//! the fabric in windows differs.

use crate::exactness::listed::{listed, without_answers};
use crate::exactness::networks::{
    allocated_networks, arbitrated_networks, credit_networks, exclusive_networks, lattice_networks, minimal_networks,
    shared_networks, stored_networks,
};
use crate::exactness::{Case, difference, found};
use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::Seen;
use crate::flit_model::{credit, store_and_forward};
use crate::{exactness_credit_windows, exactness_windows};
use netsim::fabric::credit::CreditConfig;
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::fabric::store_and_forward::windows::Windowed;
use netsim::fabric::windows::WindowedRun;
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::panic::{self, AssertUnwindSafe};

/// Networks within which each mistake is found.
const CASES: usize = 4_000;

/// Parts of each network.
const PARTS: u16 = 3;

/// As the slow model has it, in the order in which windows are compared.
fn comparable(mut seen: Seen) -> Seen {
    seen.deliveries.clear();
    seen.sorted()
}

fn slow_credit(case: &Case<CreditConfig>, fault: Option<Fault>) -> Seen {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    comparable(credit::play(&case.config, &topology, &case.traffic, fault))
}

fn slow_stored(case: &Case<StoreAndForwardConfig>, fault: Option<Fault>) -> Seen {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    comparable(store_and_forward::play(&case.config, &topology, &case.traffic, fault))
}

/// Looks for each of `faults` among networks of credits, in windows.
fn assert_found_with_credits(networks: impl Strategy<Value = Case<CreditConfig>>, faults: &[Fault]) {
    let in_windows = |case: &Case<CreditConfig>| {
        // Where a network is not run in windows, the slow model stands for it, which shows nothing but the mistake's own.
        let seen = exactness_credit_windows::windows(case, PARTS.into(), 1, &[]).map(|(seen, ..)| seen);
        let right = slow_credit(case, None);
        let seen = seen.map_or_else(|_| right.clone(), comparable);
        assert!(seen == right, "without a mistake nothing differs");
        seen
    };
    // A model with a mistake may contradict itself and stop: that differs, too.
    let slow = |case: &Case<CreditConfig>, fault| {
        panic::catch_unwind(AssertUnwindSafe(|| slow_credit(case, Some(fault)))).unwrap_or_default()
    };
    let found = found(&without_answers(networks), CASES, faults, in_windows, slow);
    assert_all(&found);
}

fn assert_all(found: &[(Fault, Option<usize>)]) {
    for (fault, network) in found {
        println!("{fault:?}: network {network:?}");
    }
    for (fault, network) in found {
        assert!(network.is_some(), "{fault:?} is not found among {CASES} networks");
    }
}

#[test]
fn mistakes_with_credits_are_found_in_windows() {
    assert_found_with_credits(
        credit_networks(),
        &[
            Fault::CreditOneFlitLate,
            Fault::CreditsRoundedDown,
            Fault::UpdateTooEarly,
            Fault::FlitGapForgotten,
            Fault::PacketGapForgotten,
            Fault::RemainderDropped,
            Fault::RemainderKept,
            Fault::InputsFromFirst,
            Fault::WeightOneMore,
            Fault::LimitOneByteLate,
            Fault::LimitNeverReset,
            Fault::HeadAfterGap,
            Fault::HeldBackAtEqualRates,
            Fault::DelayOnlyAtEmptyQueue,
            Fault::SwitchDelayForgotten,
            Fault::ChoicesUnseen,
            Fault::ChoicesOfAllLanesSeen,
            Fault::FirstOfTheMostFree,
            Fault::ChoicesFromFirst,
            Fault::BubbleForgotten,
            Fault::DatelineForgotten,
        ],
    );
}

#[test]
fn mistakes_with_escapes_and_lanes_are_found_in_windows() {
    let of_rooms = [Fault::EscapeForgotten, Fault::RoomForAnything, Fault::CreditOneFlitLate];
    assert_found_with_credits(minimal_networks(), &of_rooms);
    assert_found_with_credits(
        lattice_networks(),
        &[Fault::BubbleForgotten, Fault::MostRoomAlways, Fault::DatelineForgotten],
    );
    assert_found_with_credits(
        exclusive_networks(),
        &[Fault::LaneFreeAtStart, Fault::HeldLanesPassed, Fault::HeadAfterGap],
    );
}

#[test]
fn mistakes_of_switches_are_found_in_windows() {
    let of_inputs = [
        Fault::DrawnWithoutTime,
        Fault::FifoSinceArrival,
        Fault::FifoSinceHead,
        Fault::LongestInPackets,
        Fault::LongestTiesToFirst,
        Fault::AgeSinceHandOver,
    ];
    assert_found_with_credits(arbitrated_networks(), &of_inputs);
    let of_allocations = [
        Fault::InputsNoResource,
        Fault::OtherSideFirst,
        Fault::OneIteration,
        Fault::TurnsMoveInAllIterations,
        Fault::TurnsMoveUnmatched,
        Fault::QueuesByRuleOfInputs,
        Fault::CycleForgotten,
        Fault::InputBusyInGap,
    ];
    assert_found_with_credits(allocated_networks(), &of_allocations);
    let of_buffers = [Fault::ExclusiveForgotten, Fault::MaximumForgotten, Fault::ExclusiveCountsAsShared];
    assert_found_with_credits(shared_networks(), &of_buffers);
}

#[test]
fn mistakes_in_storing_and_forwarding_are_found_in_windows() {
    let faults = [
        Fault::RemainderDropped,
        Fault::RemainderKept,
        Fault::PacketOnLinkCounts,
        Fault::RoomForOneMore,
        Fault::TiesByLink,
        Fault::OfferedBeforeLinksGoOn,
        Fault::SwitchDelayForgotten,
    ];
    let in_windows = |case: &Case<StoreAndForwardConfig>| {
        let seen = comparable(exactness_windows::windows(case, PARTS, 1, &[]).0);
        assert!(seen == slow_stored(case, None), "without a mistake nothing differs");
        seen
    };
    let networks = without_answers(stored_networks());
    let found = found(&networks, CASES, &faults, in_windows, |case, fault| slow_stored(case, Some(fault)));
    assert_all(&found);
}

/// Windows are as wide as the shortest packet on the shortest link takes. Who says that packets are longer than they are makes them too wide: what arrives
/// within its own window is seen too late, and that shows.
#[test]
fn windows_that_are_too_wide_are_found() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let networks = without_answers(stored_networks());
    let too_wide = (0..CASES).find(|_| {
        let case = networks.new_tree(&mut runner).unwrap().current();
        let longer = exactness_windows::packet_bytes(&case).end() * 16;
        let network = Windowed::new(&case.config, &case.hosts).unwrap();
        let mut run = network.into_parts(PARTS, &(longer..=longer), Seen::default(), |_| listed(&case.traffic));
        run.run_before(SimTime::LATEST, |_| false);
        let topology = case.config.topology.build(&case.hosts).unwrap();
        difference(&comparable(run.into_observer()), &slow_stored(&case, None), &topology).is_some()
    });
    assert!(too_wide.is_some(), "not found among {CASES} networks");
}
