//! `input-queued` beside the slow model, packet by packet, and mistakes that the comparison finds.

use crate::exactness::input_queued::{input_queued_networks, networks_of_many_ports};
use crate::exactness::{Case, all_arrive_as, drive, networks_config};
use crate::flit_model::input_queued::{Mistake, play};
use crate::flit_model::separable::AllocatorMistake;
use crate::flit_model::traffic::Seen;
use netsim::fabric::input_queued::{InputQueued, InputQueuedConfig};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};

fn fabric(case: &Case<InputQueuedConfig>) -> InputQueued<Seen> {
    InputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

/// Everything arrives, and both models say the same of it.
fn all_arrive_as_the_slow_model_says(case: &Case<InputQueuedConfig>) -> TestCaseResult {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let slow = play(&case.config, &topology, &case.traffic, None);
    all_arrive_as(&slow, &topology, &case.traffic, || fabric(case))
}

proptest! {
    #![proptest_config(networks_config(600, "tests/regressions/fabric_exactness_input_queued.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says(case in input_queued_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(60, "tests/regressions/fabric_exactness_input_queued.txt"))]

    #[test]
    fn packets_pass_switches_of_many_ports_when_the_slow_model_says(case in networks_of_many_ports()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::Allocators(AllocatorMistake::TurnsAlwaysMove),
        Mistake::Allocators(AllocatorMistake::TurnStays),
        Mistake::Allocators(AllocatorMistake::OtherOrder),
        Mistake::Allocators(AllocatorMistake::OneIteration),
        Mistake::NoTailCredit,
        Mistake::NoRoomForPacket,
        Mistake::Allocators(AllocatorMistake::SpeculationEqual),
        Mistake::OutputMismatch,
        Mistake::NoHold,
        Mistake::HeldInputForgotten,
        Mistake::NoInputSpeedup,
        Mistake::NoOutputSpeedup,
        Mistake::CreditsAtOnce,
        Mistake::CreditsLate,
        Mistake::NextHeadAtOnce,
        Mistake::LowestAtHost,
        Mistake::ClassesAtHosts,
        Mistake::GivenAtOnce,
    ];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = mistakes.to_vec();
    for _ in 0..2_000 {
        if left.is_empty() {
            break;
        }
        let case = input_queued_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let right = drive(&mut fabric(&case), &case.traffic);
        left.retain(|mistake| play(&case.config, &topology, &case.traffic, Some(*mistake)) == right);
    }
    assert_eq!(left, [], "mistakes that no network shows");
}
