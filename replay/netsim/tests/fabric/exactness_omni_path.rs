//! `omni-path` beside the slow model, packet by packet, and mistakes that the comparison finds.

use crate::exactness::omni_path::omni_path_networks;
use crate::exactness::{Case, difference, drive, networks_config, run};
use crate::flit_model::omni_path::{Mistake, play, play_losing};
use crate::flit_model::traffic::{Seen, When};
use netsim::fabric::omni_path::{OmniPath, OmniPathConfig};
use netsim::fabric::packet::PacketFabric;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn fabric(case: &Case<OmniPathConfig>) -> OmniPath<Seen> {
    OmniPath::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

proptest! {
    #![proptest_config(networks_config(400, "tests/regressions/fabric_exactness_omni_path.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says(case in omni_path_networks()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = play(&case.config, &topology, &case.traffic, None);
        prop_assert_eq!(slow.deliveries.len(), case.traffic.len(), "something is stuck");
        let fast = drive(&mut fabric(&case), &case.traffic);
        if let Some(difference) = difference(&fast, &slow, &topology) {
            return Err(TestCaseError::fail(difference));
        }
        if case.traffic.iter().all(|sending| matches!(sending.when, When::At(_))) {
            prop_assert_eq!(run(&mut fabric(&case), &case.traffic).packets, slow.packets);
        }
    }

    #[test]
    fn hosts_lose_what_the_slow_model_says(case in omni_path_networks()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = play_losing(&case.config, &topology, &case.traffic, None, true);
        if let Some(difference) = difference(&drive(&mut losing(&case), &case.traffic), &slow, &topology) {
            return Err(TestCaseError::fail(difference));
        }
    }
}

fn losing(case: &Case<OmniPathConfig>) -> OmniPath<Seen> {
    let mut fabric = fabric(case);
    assert!(fabric.lose_blocked_heads());
    fabric
}

#[test]
fn mistakes_in_losing_are_found() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = vec![Mistake::LosesAll, Mistake::LosesHighest, Mistake::LosesWhileSending];
    let mut lost = 0;
    for _ in 0..400 {
        let case = omni_path_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let right = drive(&mut losing(&case), &case.traffic);
        lost += right.dropped.len();
        left.retain(|mistake| play_losing(&case.config, &topology, &case.traffic, Some(*mistake), true) == right);
    }
    assert_eq!(left, [], "mistakes that no network shows");
    assert!(lost > 400, "{lost} packets are few");
}

#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::RetryAtOnce,
        Mistake::TurnOnlyWhenGranted,
        Mistake::CentralUnlimited,
        Mistake::CentralAsSlow,
        Mistake::RoomTooEarly,
        Mistake::MaxForgotten,
        Mistake::ExclusiveForgotten,
        Mistake::LowestUnit,
        Mistake::NoCredits,
    ];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = mistakes.to_vec();
    for _ in 0..2_000 {
        if left.is_empty() {
            break;
        }
        let case = omni_path_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let right = drive(&mut fabric(&case), &case.traffic);
        left.retain(|mistake| play(&case.config, &topology, &case.traffic, Some(*mistake)) == right);
    }
    assert_eq!(left, [], "mistakes that no network shows");
}
