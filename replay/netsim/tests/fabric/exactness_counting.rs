//! What lies in queues, and what hosts lose that finds no room, beside the slow models of clocked switches; and mistakes that the comparison finds.

use crate::exactness::input_output_queued::input_output_queued_networks;
use crate::exactness::input_queued::input_queued_networks;
use crate::exactness::networks::{
    credit_networks, exclusive_networks, injected_networks, minimal_networks, shared_networks,
};
use crate::exactness::{Case, OnTopology, difference, drive, networks_config};
use crate::flit_model::counting::{Counted, behind_first};
use crate::flit_model::credit::{Stay, observe};
use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::{Seen, Sending};
use crate::flit_model::{input_output_queued, input_queued};
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::input_output_queued::{InputOutputQueued, InputOutputQueuedConfig};
use netsim::fabric::input_queued::{InputQueued, InputQueuedConfig};
use netsim::fabric::packet::PacketFabric;
use netsim::time::SimTime;
use netsim::topology::Topology;
use proptest::prelude::*;
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt::Debug;

/// What a fast fabric does, and how long 1, 2, ... packets lie in its queues before `end`.
fn counted<F: PacketFabric<Seen>>(
    mut fabric: F,
    traffic: &[Sending],
    loses: bool,
    end: SimTime,
) -> (Seen, Vec<Vec<u64>>) {
    assert!(fabric.count_occupancy());
    if loses {
        assert!(fabric.lose_blocked_heads());
    }
    let seen = drive(&mut fabric, traffic);
    let queues = fabric.occupancy_times(end).into_iter().map(behind_first).collect();
    (seen, queues)
}

/// Both beside each other.
fn compare(fast: &(Seen, Vec<Vec<u64>>), slow: &Counted, topology: &Topology) -> Result<(), TestCaseError> {
    if let Some(difference) = difference(&fast.0, &slow.seen, topology) {
        return Err(TestCaseError::fail(difference));
    }
    prop_assert_eq!(&fast.1, &slow.queues, "queues differ");
    Ok(())
}

fn of_input_queued(case: &Case<InputQueuedConfig>) -> InputQueued<Seen> {
    InputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

fn of_input_output_queued(case: &Case<InputOutputQueuedConfig>) -> InputOutputQueued<Seen> {
    InputOutputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap()
}

proptest! {
    #![proptest_config(networks_config(300, "tests/regressions/fabric_exactness_counting.txt"))]

    #[test]
    fn input_queued_switches_count_what_the_slow_model_counts(case in input_queued_networks(), loses in any::<bool>()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = input_queued::count(&case.config, &topology, &case.traffic, None, loses);
        compare(&counted(of_input_queued(&case), &case.traffic, loses, slow.end), &slow, &topology)?;
    }

    #[test]
    fn input_output_queued_switches_count_what_the_slow_model_counts(
        case in input_output_queued_networks(),
        loses in any::<bool>(),
    ) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let slow = input_output_queued::count(&case.config, &topology, &case.traffic, None, loses);
        compare(&counted(of_input_output_queued(&case), &case.traffic, loses, slow.end), &slow, &topology)?;
    }
}

/// For how many picoseconds 1, 2, ... packets lay in the queue of one lane, by looking at each time at which that changes.
fn of_stays(stays: &[Stay], link: usize, vl: usize) -> Vec<u64> {
    let mine: Vec<&Stay> = stays.iter().filter(|stay| (stay.link, stay.vl) == (link, vl)).collect();
    let mut changes: Vec<u64> = mine.iter().flat_map(|stay| [stay.from.0, stay.until.0]).collect();
    changes.sort_unstable();
    let mut times = vec![0; mine.len() + 1];
    for pair in changes.windows(2) {
        let there = mine.iter().filter(|stay| stay.from.0 <= pair[0] && pair[1] <= stay.until.0).count();
        times[there] += pair[1] - pair[0];
    }
    behind_first(times)
}

/// Networks of `credit`, every second with several queues of a host, shared buffers, an escape or exclusive lanes.
fn credit_cases() -> impl Strategy<Value = Case<CreditConfig>> {
    let few = vec![
        (1, exclusive_networks().boxed()),
        (1, injected_networks().boxed()),
        (1, minimal_networks().boxed()),
        (1, shared_networks().boxed()),
        (4, credit_networks().boxed()),
    ];
    Union::new_weighted(few)
}

proptest! {
    #![proptest_config(networks_config(1_000, "tests/regressions/fabric_exactness_counting_credit.txt"))]

    #[test]
    fn credit_switches_count_what_the_slow_model_sees(case in credit_cases(), loses in any::<bool>()) {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        // Several queues of a host are taken from side by side: nobody is lost.
        let loses = loses && case.config.injection.is_none();
        let (seen, stays) = observe(&case.config, &topology, &case.traffic, None, loses);
        let end = stays.iter().map(|stay| stay.until).max().unwrap_or(SimTime::ZERO);
        let fabric = Credit::new(&case.config, &case.hosts, Seen::default()).unwrap();
        let lanes = PacketFabric::<Seen>::lanes(&fabric) as usize;
        let fast = counted(fabric, &case.traffic, loses, end);
        let all = (0..topology.links().len()).flat_map(|link| (0..lanes).map(move |vl| (link, vl)));
        let slow = all.map(|(link, vl)| of_stays(&stays, link, vl)).collect();
        compare(&fast, &Counted { seen, queues: slow, crossed: Vec::new(), end }, &topology)?;
    }
}

#[test]
fn losses_at_credit_hosts_are_found_to_be_a_flits_time_apart() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut lost, mut found) = (0, 0);
    for _ in 0..400 {
        let case = credit_networks().new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let wrong = observe(&case.config, &topology, &case.traffic, Some(Fault::LossTakesNoTime), true).0;
        let fabric = Credit::new(&case.config, &case.hosts, Seen::default()).unwrap();
        let right = counted(fabric, &case.traffic, true, SimTime::ZERO).0;
        lost += right.dropped.len();
        found += usize::from(wrong != right);
    }
    assert!(lost > 400 && found > 10, "{lost} packets are lost, and the mistake shows on {found} networks");
}

/// Asserts that each mistake shows on one of 400 networks with losses at hosts.
fn all_are_found<C: OnTopology, M: Copy + Debug + PartialEq, F: PacketFabric<Seen>>(
    networks: &impl Strategy<Value = Case<C>>,
    mistakes: &[M],
    fabric: impl Fn(&Case<C>) -> F,
    slow: impl Fn(&Case<C>, &Topology, Option<M>) -> Counted,
) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut left = mistakes.to_vec();
    let mut lost = 0;
    for _ in 0..400 {
        let case = networks.new_tree(&mut runner).unwrap().current();
        let topology = case.config.topology().build(&case.hosts).unwrap();
        let end = slow(&case, &topology, None).end;
        let right = counted(fabric(&case), &case.traffic, true, end);
        lost += right.0.dropped.len();
        left.retain(|mistake| {
            let wrong = slow(&case, &topology, Some(*mistake));
            (&wrong.seen, &wrong.queues) == (&right.0, &right.1)
        });
    }
    assert_eq!(left, [], "mistakes that no network shows");
    assert!(lost > 400, "{lost} packets are few");
}

#[test]
fn mistakes_in_counting_are_found_on_input_queued_switches() {
    use input_queued::Mistake;
    let mistakes = [Mistake::LosesAll, Mistake::LosesWhileSending, Mistake::GoneWithHead];
    all_are_found(&input_queued_networks(), &mistakes, of_input_queued, |case, topology, mistake| {
        input_queued::count(&case.config, topology, &case.traffic, mistake, true)
    });
}

#[test]
fn mistakes_in_counting_are_found_on_input_output_queued_switches() {
    use input_output_queued::Mistake;
    let mistakes = [Mistake::LosesAll, Mistake::LosesWhileSending, Mistake::GoneWithHead];
    all_are_found(&input_output_queued_networks(), &mistakes, of_input_output_queued, |case, topology, mistake| {
        input_output_queued::count(&case.config, topology, &case.traffic, mistake, true)
    });
}
