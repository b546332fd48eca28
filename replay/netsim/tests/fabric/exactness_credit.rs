//! The fabric `credit` beside its slow model: every packet of random small networks at the same picosecond.

use crate::exactness::networks::{
    allocated_networks, arbitrated_networks, credit_networks, exclusive_networks, flit_networks, injected_networks,
    lattice_networks, minimal_networks, shared_networks, spread_networks, transit_networks,
};
use crate::exactness::{Case, difference, drive, networks_config, run};
use crate::flit_model::credit::play;
use crate::flit_model::traffic::{Seen, When};
use netsim::fabric::credit::{Credit, CreditConfig};
use proptest::prelude::*;

fn fabric(case: &Case<CreditConfig>) -> Credit<Seen> {
    Credit::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

/// Everything arrives, and both models say the same of it.
fn all_arrive_as_the_slow_model_says(case: &Case<CreditConfig>) -> Result<(), TestCaseError> {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let slow = play(&case.config, &topology, &case.traffic, None);
    prop_assert_eq!(slow.deliveries.len(), case.traffic.len(), "something is stuck");
    let fast = drive(&mut fabric(case), &case.traffic);
    difference(&fast, &slow, &topology).map_or(Ok(()), |difference| Err(TestCaseError::fail(difference)))
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_credit.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says(case in credit_networks()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = play(&case.config, &topology, &case.traffic, None);
        let fast = drive(&mut fabric(&case), &case.traffic);
        if let Some(difference) = difference(&fast, &slow, &topology) {
            return Err(TestCaseError::fail(difference));
        }
        if case.traffic.iter().all(|sending| matches!(sending.when, When::At(_))) {
            let run = run(&mut fabric(&case), &case.traffic);
            prop_assert_eq!(run.packets, slow.packets);
        }
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_minimal.txt"))]

    #[test]
    fn every_packet_with_an_escape_leaves_and_arrives_when_the_slow_model_says(case in minimal_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_arbitrated.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_with_any_input_arbitration(case in arbitrated_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_shared.txt"))]

    #[test]
    fn every_packet_over_shared_buffers_leaves_and_arrives_when_the_slow_model_says(case in shared_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_lattices.txt"))]

    #[test]
    fn every_packet_on_a_lattice_leaves_and_arrives_when_the_slow_model_says(case in lattice_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(1_000, "tests/regressions/fabric_exactness_spread.txt"))]

    #[test]
    fn every_packet_that_chooses_link_and_lane_leaves_and_arrives_when_the_slow_model_says(case in spread_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_allocated.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_with_any_allocation(case in allocated_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_exclusive.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_with_exclusive_lanes(case in exclusive_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_transit.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_with_transit_first(case in transit_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_injected.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_from_hosts_with_several_queues(case in injected_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_flits.txt"))]

    #[test]
    fn every_packet_leaves_and_arrives_when_the_slow_model_says_with_lanes_and_queues_compared_by_flits(case in flit_networks()) {
        all_arrive_as_the_slow_model_says(&case)?;
    }
}
