//! `input-output-queued` beside the slow model, packet by packet, and mistakes that the comparison finds.

use crate::exactness::input_output_queued::{input_output_queued_networks, one_flit_networks};
use crate::exactness::{Case, all_arrive_as, drive, networks_config};
use crate::flit_model::input_output_queued::{Mistake, play};
use crate::flit_model::separable::AllocatorMistake;
use crate::flit_model::traffic::Seen;
use netsim::fabric::input_output_queued::{InputOutputQueued, InputOutputQueuedConfig};
use netsim::fabric::packet::PacketFabric;
use netsim::network::Simulation;
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

fn fabric(case: &Case<InputOutputQueuedConfig>) -> InputOutputQueued<Seen> {
    InputOutputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

/// Everything arrives, and both models say the same of it.
fn all_arrive_as_the_slow_model_says(case: &Case<InputOutputQueuedConfig>) -> TestCaseResult {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let slow = play(&case.config, &topology, &case.traffic, None);
    all_arrive_as(&slow, &topology, &case.traffic, || fabric(case))
}

proptest! {
    #![proptest_config(networks_config(600, "tests/regressions/fabric_exactness_input_output_queued.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says(case in input_output_queued_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }

    #[test]
    fn every_packet_of_one_flit_leaves_and_arrives_when_the_slow_model_says(case in one_flit_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
        // Where something is counted at each queue, packets move as they do where they have several flits.
        let mut counting = fabric(&case);
        prop_assert!(counting.count_occupancy());
        let (mut by_bits, seen) = (fabric(&case), drive(&mut counting, &case.traffic));
        prop_assert_eq!(drive(&mut by_bits, &case.traffic), seen);
        prop_assert_eq!(by_bits.figures(), counting.figures());
        prop_assert_eq!(by_bits.lane_bytes(SimTime::MAX), counting.lane_bytes(SimTime::MAX));
    }
}

#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::RoomForHead,
        Mistake::CreditForHead,
        Mistake::NothingDrawn,
        Mistake::DrawnOnce,
        Mistake::GrantsInOrder,
        Mistake::AsksForOne,
        Mistake::TurnStays,
        Mistake::FlitsTakeTurns,
        Mistake::NoBubble,
        Mistake::NoBubbleToHosts,
        Mistake::BubbleInOutputOnly,
        Mistake::BusyAsked,
        Mistake::NoPriority,
        Mistake::CrossbarAtOnce,
        Mistake::LeavesLater,
        Mistake::OneMovesToOutput,
        Mistake::AsksEarly,
        Mistake::HostsTakeTurns,
        Mistake::ClassesAtHosts,
        Mistake::HostsHaveBuffers,
        Mistake::Allocator(AllocatorMistake::OtherOrder),
        Mistake::Allocator(AllocatorMistake::OneIteration),
    ];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = mistakes.to_vec();
    for _ in 0..2_000 {
        if left.is_empty() {
            break;
        }
        let case = input_output_queued_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let right = drive(&mut fabric(&case), &case.traffic);
        left.retain(|mistake| play(&case.config, &topology, &case.traffic, Some(*mistake)) == right);
    }
    assert_eq!(left, [], "mistakes that no network shows");
}
