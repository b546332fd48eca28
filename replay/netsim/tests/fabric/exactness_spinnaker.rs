//! `spinnaker` beside the slow model, packet by packet, and mistakes that the comparison finds.

use crate::exactness::spinnaker::spinnaker_networks;
use crate::exactness::{Case, difference, drive, networks_config, run};
use crate::flit_model::counting::behind_first;
use crate::flit_model::spinnaker::{Mistake, play};
use crate::flit_model::traffic::{Seen, When};
use netsim::fabric::packet::PacketFabric;
use netsim::fabric::spinnaker::{Spinnaker, SpinnakerRouterConfig};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn fabric(case: &Case<SpinnakerRouterConfig>) -> Spinnaker<Seen> {
    Spinnaker::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

proptest! {
    #![proptest_config(networks_config(600, "tests/regressions/fabric_exactness_spinnaker.txt"))]

    #[test]
    fn every_packet_arrives_or_is_lost_when_the_slow_model_says(case in spinnaker_networks()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = play(&case.config, &topology, &case.traffic, None);
        let mut fast = fabric(&case);
        prop_assert!(fast.count_occupancy());
        let seen = drive(&mut fast, &case.traffic);
        if let Some(difference) = difference(&seen, &slow.seen, &topology) {
            return Err(TestCaseError::fail(difference));
        }
        let queues: Vec<_> = fast.occupancy_times(slow.end).into_iter().map(behind_first).collect();
        prop_assert_eq!(queues, slow.queues);
        if case.traffic.iter().all(|sending| matches!(sending.when, When::At(_))) {
            prop_assert_eq!(run(&mut fabric(&case), &case.traffic).packets, slow.seen.packets);
        }
    }
}

#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::NoWait,
        Mistake::WaitsLonger,
        Mistake::WaitsForEver,
        Mistake::FirstInput,
        Mistake::OthersPass,
        Mistake::RoomAtPass,
        Mistake::EngineLater,
        Mistake::OutputUntilLeft,
        Mistake::CutThrough,
        Mistake::FreeOutputsOnly,
        Mistake::TablesForgotten,
        Mistake::NotStraight,
    ];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = mistakes.to_vec();
    let mut lost = 0;
    for _ in 0..300 {
        let case = spinnaker_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let right = drive(&mut fabric(&case), &case.traffic);
        lost += right.dropped.len();
        left.retain(|mistake| play(&case.config, &topology, &case.traffic, Some(*mistake)).seen == right);
    }
    assert_eq!(left, [], "mistakes that no network shows");
    assert!(lost > 100, "{lost} packets are few");
}
