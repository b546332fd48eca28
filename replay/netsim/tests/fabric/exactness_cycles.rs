//! `credit` in cycles beside its slow model and its event engine: the same packets at the same picosecond, the same figures.

use crate::exactness::listed::bytes_at;
use crate::exactness::networks::{clocked_networks, seeking_networks};
use crate::exactness::{Case, difference, drive, found, networks_config, run};
use crate::flit_model::credit::play;
use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::{Seen, When};
use netsim::fabric::credit::{
    Consumption, Credit, CreditConfig, InputArbitration, SeparableConfig, Start, VlArbitration, VlWeight,
};
use netsim::fabric::packet::{Observer, PacketFabric};
use netsim::network::Simulation;
use netsim::routing::{BubbleAt, BubbleConfig, BubbleMode, Directions, Equals, RoomUnit, RoutingConfig, Ties};
use netsim::time::SimTime;
use netsim::topology::{GridConfig, KaryTreeConfig, LinkConfig, TopologyConfig};
use netsim::units::{Bytes, DurationPs, Rate};
use proptest::prelude::*;

/// The network of `case`, told that messages are handed over in whole cycles.
fn clocked<O: Observer>(case: &Case<CreditConfig>, observer: O) -> Credit<O> {
    let mut fabric = Credit::new(&case.config, &case.hosts, observer).unwrap();
    fabric.expect_whole_cycles();
    fabric
}

proptest! {
    #![proptest_config(networks_config(2_000, "tests/regressions/fabric_exactness_cycles.txt"))]

    #[test]
    fn in_cycles_every_packet_leaves_and_arrives_when_the_slow_model_says(
        (case, cycle_ps) in clocked_networks(),
        stops in proptest::collection::vec(0..200u64, 0..4),
    ) {
        is_exact(&case, cycle_ps, stops)?;
    }

    #[test]
    fn in_cycles_packets_commit_themselves_to_room_as_the_slow_model_says(
        (case, cycle_ps) in seeking_networks(),
        stops in proptest::collection::vec(0..200u64, 0..4),
    ) {
        is_exact(&case, cycle_ps, stops)?;
    }
}

/// The network of `case` in cycles does what the slow model and the event engine do, seen in the cycles of `stops`, too.
fn is_exact(case: &Case<CreditConfig>, cycle_ps: u64, stops: Vec<u64>) -> Result<(), TestCaseError> {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let mut slow = play(&case.config, &topology, &case.traffic, None);
    let mut fast = clocked(case, Seen::default());
    prop_assert!(fast.runs_in_cycles());
    let seen = drive(&mut fast, &case.traffic);
    if let Some(difference) = difference(&seen, &slow, &topology) {
        return Err(TestCaseError::fail(difference));
    }
    let mut by_events = Credit::new(&case.config, &case.hosts, Seen::default()).unwrap();
    drive(&mut by_events, &case.traffic);
    prop_assert_eq!(fast.figures(), by_events.figures());
    prop_assert_eq!(fast.lane_bytes(SimTime::MAX), by_events.lane_bytes(SimTime::MAX));
    if case.traffic.iter().all(|sending| matches!(sending.when, When::At(_))) {
        let mut stops: Vec<u64> = stops.iter().map(|stop| stop * cycle_ps).collect();
        stops.sort_unstable();
        let mut by_events = Credit::new(&case.config, &case.hosts, ()).unwrap();
        let expected = bytes_at(&mut by_events, &case.traffic, &stops);
        prop_assert_eq!(bytes_at(&mut clocked(case, ()), &case.traffic, &stops), expected);
        slow.deliveries.clear();
        prop_assert_eq!(run(&mut clocked(case, Seen::default()), &case.traffic), slow);
    }
    Ok(())
}

#[test]
fn mistakes_are_found() {
    let faults = [
        Fault::CreditOneFlitLate,
        Fault::CreditsRoundedDown,
        Fault::InputsFromFirst,
        Fault::SwitchDelayForgotten,
        Fault::ChoicesUnseen,
        Fault::ChoicesOfAllLanesSeen,
        Fault::FirstOfTheMostFree,
        Fault::ChoicesFromFirst,
        Fault::BubbleForgotten,
        Fault::DatelineForgotten,
    ];
    let faults_of_seekers = [Fault::BubbleForgotten, Fault::CreditOneFlitLate, Fault::ChoicesFromFirst];
    let fast = |(case, _): &(Case<CreditConfig>, u64)| drive(&mut clocked(case, Seen::default()), &case.traffic);
    let slow = |(case, _): &(Case<CreditConfig>, u64), fault: Fault| {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        play(&case.config, &topology, &case.traffic, Some(fault))
    };
    let of_all = found(&clocked_networks(), 4_000, &faults, fast, slow);
    let of_seekers = found(&seeking_networks(), 4_000, &faults_of_seekers, fast, slow);
    for (fault, network) in of_all.into_iter().chain(of_seekers) {
        assert!(network.is_some(), "{fault:?} was not found");
    }
}

/// A bubble router that looks at its own room.
const BUBBLE_HERE: BubbleConfig = BubbleConfig {
    mode: BubbleMode::Smart,
    bubble_at: BubbleAt::Here,
    equals: Equals::Draw,
    room: RoomUnit::Credits,
    directions: Directions::All,
    ties: Ties::Draw,
    vcs: Some(2),
};

/// What makes another network of one.
type Change<'a> = &'a dyn Fn(&mut CreditConfig);

/// A tree with flits of 64 bytes, 1 ns, on links with delays of 2 ns.
fn tree() -> CreditConfig {
    let link = LinkConfig {
        rate: Rate::from_bps(512_000_000_000),
        delay: Some(DurationPs::from_ns(2)),
        ..LinkConfig::default()
    };
    let topology = KaryTreeConfig { k: 2, n: 2, nodes: None, host_link: link, uplink: link, uplinks: Vec::new() };
    CreditConfig {
        topology: TopologyConfig::KAryNTree(topology),
        mtu: Bytes(500),
        headers: Bytes(12),
        vls: 2,
        switch_delay: DurationPs::from_ns(3),
        routing: RoutingConfig::Adaptive,
        ..CreditConfig::default()
    }
}

#[test]
fn what_takes_no_whole_cycles_or_has_other_rules_runs_by_events() {
    let is_clocked = |change: Change| {
        let mut config = tree();
        change(&mut config);
        let mut fabric = Credit::new(&config, &[], ()).unwrap();
        fabric.expect_whole_cycles();
        fabric.runs_in_cycles()
    };
    let on_links = |config: &mut CreditConfig, change: &dyn Fn(&mut KaryTreeConfig)| {
        if let TopologyConfig::KAryNTree(tree) = &mut config.topology {
            change(tree);
        }
    };
    assert!(is_clocked(&|_| {}));
    assert!(is_clocked(&|config| config.routing = RoutingConfig::Ecmp));
    assert!(is_clocked(&|config| (config.mtu, config.flit_gap) = (Bytes(52), DurationPs(7))), "one flit has no gaps");
    assert!(is_clocked(&|config| config.consumption = Consumption::Multiple), "hosts that take all");
    assert!(
        is_clocked(&|config| config.routing = RoutingConfig::AdaptiveVls(Some(2))),
        "lanes that are chosen by room"
    );
    let others: [(&str, Change); 15] = [
        ("long packets", &|config| config.mtu = Bytes(64 * 60)),
        ("gaps between flits", &|config| config.flit_gap = DurationPs::from_ns(1)),
        ("a fraction of a picosecond", &|config| config.flit = Bytes(65)),
        ("a switch that takes half a cycle", &|config| config.switch_delay = DurationPs(1_500)),
        ("a switch that takes very long", &|config| config.switch_delay = DurationPs::from_ns(70)),
        ("a link that takes half a cycle", &|config| {
            on_links(config, &|tree| tree.uplink.delay = Some(DurationPs(500)));
        }),
        ("a faster link", &|config| on_links(config, &|tree| tree.uplink.rate = Rate::from_bps(1_024_000_000_000))),
        ("a gap behind packets", &|config| config.packet_gap = DurationPs::from_ns(1)),
        ("pauses between updates", &|config| config.credit_min_time = DurationPs::from_ns(1)),
        ("whole packets", &|config| config.start = Start::WholePacket),
        ("another input arbitration", &|config| config.input_arbitration = InputArbitration::Age),
        ("another VL arbitration", &|config| {
            config.arbitration = VlArbitration { high: vec![VlWeight(1, 4)], ..VlArbitration::default() };
        }),
        ("transit first", &|config| config.transit_priority = 0.5),
        ("an allocation", &|config| config.allocation = Some(SeparableConfig::default())),
        ("bubbles that are looked at behind", &|config| {
            config.topology = TopologyConfig::Torus(GridConfig { size: vec![4, 4], ..GridConfig::default() });
            (config.routing, config.credits) = (RoutingConfig::BubbleVls(BUBBLE_HERE), 100);
        }),
    ];
    for (what, change) in others {
        assert!(!is_clocked(change), "{what}");
    }
}
