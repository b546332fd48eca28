//! The comparison can fail: for each mistake that the slow model makes there is a small network on which the fast fabric
//! differs from it.

use crate::exactness::networks::{
    allocated_networks, arbitrated_networks, credit_networks, exclusive_networks, flit_networks, injected_networks,
    lattice_networks, minimal_networks, shared_networks, stored_networks, transit_networks,
};
use crate::exactness::{Case, drive, found};
use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::Seen;
use crate::flit_model::{credit, store_and_forward};
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::store_and_forward::StoreAndForward;

/// Networks within which each mistake is found.
const CASES: usize = 4_000;

/// What the fast model does.
fn with_credits(case: &Case<CreditConfig>) -> Seen {
    drive(&mut Credit::new(&case.config, &case.hosts, Seen::default()).unwrap(), &case.traffic)
}

/// What the slow model does with a mistake.
fn with_mistake(case: &Case<CreditConfig>, fault: Fault) -> Seen {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    credit::play(&case.config, &topology, &case.traffic, Some(fault))
}

#[test]
fn mistakes_with_credits_are_found() {
    let faults = [
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
    ];
    let found = found(&credit_networks(), CASES, &faults, with_credits, with_mistake);
    assert_all(&found);
}

#[test]
fn mistakes_with_room_and_escapes_are_found() {
    let found = found(
        &minimal_networks(),
        CASES,
        &[Fault::EscapeForgotten, Fault::RoomForAnything, Fault::ChoicesFromFirst, Fault::CreditOneFlitLate],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_lanes_of_lattices_are_found() {
    let found = found(
        &lattice_networks(),
        CASES,
        &[
            Fault::EscapeForgotten,
            Fault::RoomForAnything,
            Fault::BubbleForgotten,
            Fault::MostRoomAlways,
            Fault::DatelineForgotten,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_input_arbitration_are_found() {
    let found = found(
        &arbitrated_networks(),
        CASES,
        &[
            Fault::DrawnWithoutTime,
            Fault::FifoSinceArrival,
            Fault::FifoSinceHead,
            Fault::LongestInPackets,
            Fault::LongestTiesToFirst,
            Fault::AgeSinceHandOver,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_allocations_are_found() {
    let found = found(
        &allocated_networks(),
        CASES,
        &[
            Fault::InputsNoResource,
            Fault::OtherSideFirst,
            Fault::OneIteration,
            Fault::TurnsMoveInAllIterations,
            Fault::TurnsMoveUnmatched,
            Fault::QueuesByRuleOfInputs,
            Fault::CycleForgotten,
            Fault::InputBusyInGap,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_shared_buffers_are_found() {
    let found = found(
        &shared_networks(),
        CASES,
        &[Fault::ExclusiveForgotten, Fault::MaximumForgotten, Fault::ExclusiveCountsAsShared],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_transit_first_are_found() {
    let found = found(
        &transit_networks(),
        CASES,
        &[
            Fault::TransitAlwaysFirst,
            Fault::TransitDrawnWithoutTime,
            Fault::ReserveForgotten,
            Fault::ReserveHoldsPacket,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_several_queues_of_hosts_are_found() {
    let found = found(
        &injected_networks(),
        CASES,
        &[Fault::LeavingPacketCounts, Fault::QueuesFromFirst, Fault::ShortestInPackets, Fault::WayOfPacket],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_flits_that_come_and_go_are_found() {
    let found = found(
        &flit_networks(),
        CASES,
        &[
            Fault::SwitchForgotten,
            Fault::FlitsOnLinkForgotten,
            Fault::FlitsComeAtOnce,
            Fault::FlitsGoWithPacket,
            Fault::HeldLanesByCredits,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_with_exclusive_lanes_are_found() {
    let found = found(
        &exclusive_networks(),
        CASES,
        &[
            Fault::LaneFreeAtStart,
            Fault::HeldLanesPassed,
            Fault::HeadAfterGap,
            Fault::LosersWait,
            Fault::InputsFromFirst,
        ],
        with_credits,
        with_mistake,
    );
    assert_all(&found);
}

#[test]
fn mistakes_in_storing_and_forwarding_are_found() {
    let faults = [
        Fault::RemainderDropped,
        Fault::RemainderKept,
        Fault::PacketOnLinkCounts,
        Fault::RoomForOneMore,
        Fault::TiesByLink,
        Fault::OfferedBeforeLinksGoOn,
        Fault::SwitchDelayForgotten,
    ];
    let found = found(
        &stored_networks(),
        CASES,
        &faults,
        |case| drive(&mut StoreAndForward::new(&case.config, &case.hosts, Seen::default()).unwrap(), &case.traffic),
        |case, fault| {
            let topology = case.config.topology.build(&case.hosts).unwrap();
            store_and_forward::play(&case.config, &topology, &case.traffic, Some(fault))
        },
    );
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
