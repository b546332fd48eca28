//! The fabric `rotor`: what holds of its circuits whatever is sent, closed forms, and its losses by cause.

use crate::common::{lab, message, packets, with_token};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::fabric::rotor::{Passage, Rotor, RotorConfig, RotorRouting};
use netsim::network::Simulation;
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub fn rotor(config: &RotorConfig, racks: usize, hosts: usize) -> Rotor<Vec<PacketRecord>> {
    Rotor::new(config, &lab(racks, hosts), Vec::new()).unwrap()
}

fn configured(text: &str) -> RotorConfig {
    text.parse().unwrap()
}

fn counter(network: &impl Simulation, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn each_pair_of_racks_gets_its_share_of_the_time_less_guard_bands() {
    for (racks, uplinks, change) in [(6, 1, "together"), (7, 1, "together"), (6, 5, "together"), (10, 3, "in-turn")] {
        let config = configured(&format!(
            "uplinks = {uplinks}\nchange = \"{change}\"\nslice = \"50us\"\nguard = \"2500ns\"\nreconfiguration_delay = \"2us\"\n\
             cable_delay = \"100ns\"\nhost_rate = \"1000Gbps\"\nmtu = \"1436B\"\n"
        ));
        let lasts = 50 * if change == "in-turn" { u64::from(config.uplinks) } else { 1 };
        let matchings = racks - 1 + racks % 2;
        let cycle_us = lasts * (matchings as u64).div_ceil(u64::from(config.uplinks));
        // A packet takes 1.2 us, and what is sent between two bands is whole packets. A host's uplinks ask it one after the
        // other, for 12 ns each, so that a little is left.
        let per_circuit = (lasts * 1_000 - 2_500) / 1_200;
        let mut network = rotor(&config, racks, 1);
        network.keep_passages();
        for from in 0..racks {
            for to in (0..racks).filter(|to| *to != from) {
                let count = |n: usize| u32::try_from(n).unwrap();
                network.send(SimTime::ZERO, &message(count(from), count(to), 1_436 * per_circuit * 9, 0));
            }
        }
        // From the second cycle on: the first has circuits that have begun before it.
        let (from, until) = (cycle_us * 1_000_000, 3 * cycle_us * 1_000_000);
        network.run_before(SimTime(until + cycle_us * 1_000_000));
        let mut crossed = BTreeMap::<(u32, u32), u64>::new();
        for passage in network.passages().iter().filter(|passage| (from..until).contains(&passage.first.0)) {
            assert!(passage.passes);
            *crossed.entry((passage.from, passage.to)).or_default() += 1;
        }
        assert_eq!(crossed.len(), racks * (racks - 1));
        assert!(crossed.values().all(|packets| *packets == 2 * per_circuit), "{racks} {uplinks} {change}: {crossed:?}");
    }
}

#[test]
fn what_falls_into_the_band_is_lost_and_sent_again() {
    let text = "slice = \"50us\"\nguard = \"5us\"\nreconfiguration_delay = \"5us\"\nclock_skew = \"2us\"\n";
    for (margin, loses) in [("2us", false), ("0us", true)] {
        let mut network = rotor(&configured(&format!("{text}margin = \"{margin}\"\n")), 8, 2);
        (0..16).for_each(|host| network.send(SimTime::ZERO, &message(host, (host + 5) % 16, 200_000, 0)));
        let delivered = packets(&mut network);
        assert_eq!(delivered.len(), 16 * 140);
        assert_eq!(counter(&network, "lost: in a guard band") > 0, loses, "margin {margin}");
        assert_eq!(counter(&network, "lost: the switch not reconfigured"), 0);
        assert_eq!(network.figures().retransmissions > 0, loses);
    }
    // A switch that needs longer than the band loses what comes meanwhile.
    let slow = "slice = \"50us\"\nguard = \"5us\"\nreconfiguration_delay = { uniform = [\"1us\", \"20us\"] }\n";
    let mut network = rotor(&configured(slow), 8, 1);
    (0..8).for_each(|host| network.send(SimTime::ZERO, &message(host, (host + 3) % 8, 300_000, 0)));
    packets(&mut network);
    assert!(counter(&network, "lost: the switch not reconfigured") > 0);
    assert_eq!(counter(&network, "lost: in a guard band"), 0);
}

#[test]
fn a_budget_limits_what_a_circuit_carries() {
    let config = configured("slice = \"50us\"\nguard = \"2us\"\nreconfiguration_delay = \"1us\"\nbudget = \"6kB\"\n");
    let mut network = rotor(&config, 2, 1);
    network.keep_passages();
    network.send(SimTime::ZERO, &message(0, 1, 1_436 * 10, 0));
    packets(&mut network);
    let slices: Vec<u64> = network.passages().iter().map(|passage| passage.first.0 / 50_000_000).collect();
    assert_eq!(slices, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
}

/// A circuit is open for 48 us: 60,000 bytes, 40 packets. Each of three hosts may use 20,000 bytes, thirteen packets.
#[test]
fn each_host_of_a_rack_uses_its_equal_share_of_a_circuit_and_no_more() {
    let text = "slice = \"50us\"\nguard = \"2us\"\nreconfiguration_delay = \"1us\"\nhost_rate = \"100Gbps\"\n";
    let by_period = |share: &str, senders: u32| {
        let mut network = rotor(&configured(&format!("{text}host_share = \"{share}\"\n")), 2, 3);
        network.keep_passages();
        (0..senders).for_each(|host| network.send(SimTime::ZERO, &message(host, 3, 1_436 * 100, 0)));
        assert_eq!(packets(&mut network).len(), senders as usize * 100);
        let mut passed = BTreeMap::<u64, u64>::new();
        for passage in network.passages() {
            assert!(passage.passes);
            *passed.entry(passage.first.0 / 50_000_000).or_default() += 1;
        }
        passed.into_values().collect::<Vec<_>>()
    };
    assert_eq!(by_period("equal", 1), [13, 13, 13, 13, 13, 13, 13, 9]);
    assert_eq!(by_period("equal", 3), [39, 39, 39, 39, 39, 39, 39, 27]);
    // Who is alone uses all of it otherwise.
    assert_eq!(by_period("any", 1), [40, 40, 20]);
}

/// A host whose message comes while others have used up their shares sends in the same period.
#[test]
fn a_share_waits_for_its_host_until_the_circuit_ends() {
    let text = "slice = \"50us\"\nguard = \"2us\"\nreconfiguration_delay = \"1us\"\nhost_rate = \"100Gbps\"\nhost_share = \"equal\"\n";
    let mut network = rotor(&configured(text), 2, 3);
    network.keep_passages();
    network.send(SimTime::ZERO, &message(0, 3, 1_436 * 50, 0));
    network.run_before(SimTime(30_000_000));
    network.send(SimTime(30_000_000), &message(1, 3, 1_436, 0));
    packets(&mut network);
    let first: Vec<u64> =
        network.passages().iter().map(|passage| passage.first.0).filter(|at| *at < 50_000_000).collect();
    assert_eq!(first.len(), 14);
    assert!(first[13] > 30_000_000 && first[13] < 32_000_000, "{first:?}");
}

#[test]
fn a_share_without_room_for_a_packet_is_refused() {
    let text = "slice = \"5us\"\nguard = \"500ns\"\nreconfiguration_delay = \"500ns\"\nhost_share = \"equal\"\n";
    let refused = Rotor::new(&configured(text), &lab(2, 6), Vec::<PacketRecord>::new()).err().unwrap().to_string();
    assert!(refused.contains("host_share"), "{refused}");
}

#[test]
fn short_ways_take_microseconds_where_the_circuit_to_a_rack_takes_a_cycle() {
    let text =
        "uplinks = 4\nchange = \"in-turn\"\nslice = \"100us\"\nguard = \"1us\"\nreconfiguration_delay = \"1us\"\n";
    let worst = |routing: &str| {
        let mut network = rotor(&configured(&format!("{text}routing = \"{routing}\"\n")), 32, 1);
        // From the middle of a slice on, when no circuit is about to change.
        let at = SimTime(330_000_000);
        network.run_before(at);
        (1..32).for_each(|host| network.send(at, &message(host, 0, 1_000, 0)));
        let packets = packets(&mut network);
        packets.iter().map(|packet| packet.arrived.since_ps(at)).max().unwrap() / 1_000_000
    };
    assert!(worst("expander") < 40, "{}", worst("expander"));
    assert!(worst("direct") > 1_000);
}

#[test]
fn a_skewed_pair_gains_from_the_others_circuits() {
    let finish = |routing: RotorRouting| {
        let config = RotorConfig {
            routing,
            ..configured("slice = \"50us\"\nguard = \"2us\"\nreconfiguration_delay = \"2us\"\n")
        };
        let mut network = rotor(&config, 8, 1);
        network.send(SimTime::ZERO, &message(0, 1, 1_000_000, 0));
        packets(&mut network).iter().map(|packet| packet.arrived).max().unwrap().0 / 1_000_000
    };
    // Directly 1 of 7 slices, over two hops nearly all.
    let (direct, two_hop) = (finish(RotorRouting::Direct), finish(RotorRouting::TwoHop));
    assert!(direct > 5_000 && two_hop * 3 < direct, "{direct} us and {two_hop} us");
}

#[test]
fn keys_that_make_no_sense_are_named() {
    let refused = |text: &str, racks: usize| {
        let error = Rotor::new(&configured(text), &lab(racks, 1), ()).err().unwrap().to_string();
        assert!(error.starts_with("fabric."), "{error}");
        error
    };
    assert!(refused("slice = \"5us\"\n", 4).starts_with("fabric.slice"));
    assert!(refused("uplinks = 65\n", 4).starts_with("fabric.uplinks"));
    assert!(refused("uplinks = 50\nchange = \"in-turn\"\nslice = \"50min\"\n", 60).starts_with("fabric.slice"));
    assert!(refused("uplinks = 0\n", 4).starts_with("fabric.uplinks"));
    assert!(refused("", 1).contains("two racks"));
    assert!(refused("bulk_threshold = \"1MB\"\n", 4).starts_with("fabric.bulk_threshold"));
    assert!(refused("uplink_queue = 8\n", 4).starts_with("fabric.uplink_queue"));
    assert!(refused("transit_queue = 8\n", 4).starts_with("fabric.transit_queue"));
    assert!(refused("budget = \"1kB\"\n", 4).starts_with("fabric.budget"));
    assert!(refused("budget = \"3kB\"\nclock_skew = \"1us\"\n", 4).starts_with("fabric.budget"));
    assert!(refused("mtu = \"0B\"\n", 4).starts_with("fabric.mtu"));
    assert!(refused("reconfiguration_delay = { uniform = [\"9us\", \"3us\"] }\n", 4).contains("reconfiguration_delay"));
    assert!(refused("routing = \"expander\"\n", 257).starts_with("fabric.routing"));
    assert!("reconfiguration_delay = { uniform = [\"9us\"] }\n".parse::<RotorConfig>().is_err());
}

/// When `switch` last changed at or before `at`, slice by slice from the start.
fn last_change(config: &RotorConfig, in_turn: bool, switch: u32, at: u64) -> u64 {
    let slice = config.slice.ps();
    let changes = |number: u64| !in_turn || number % u64::from(config.uplinks) == u64::from(switch);
    (0..=at / slice).rev().find(|number| changes(*number)).unwrap_or(0) * slice
}

/// What holds of all that came to the switches.
fn check(config: &RotorConfig, passages: &[Passage]) {
    let in_turn = config.change == netsim::fabric::rotor::Change::InTurn;
    let mut by_input = BTreeMap::<(u32, u32), Vec<&Passage>>::new();
    let mut by_output = BTreeMap::<(u32, u32), Vec<&Passage>>::new();
    let mut joined = BTreeMap::<(u32, u64, u32), u32>::new();
    for passage in passages {
        let change = last_change(config, in_turn, passage.switch, passage.first.0);
        let at_end = last_change(config, in_turn, passage.switch, passage.last.0.saturating_sub(1));
        let began_inside = passage.first.0 >= change + config.guard.ps();
        if passage.passes {
            assert!(began_inside && change == at_end, "{passage:?} passes in a guard band");
            by_output.entry((passage.switch, passage.to)).or_default().push(passage);
            let one = joined.insert((passage.switch, change, passage.from), passage.to);
            assert!(one.is_none_or(|one| one == passage.to), "{passage:?}: one circuit at a time");
        }
        by_input.entry((passage.switch, passage.from)).or_default().push(passage);
    }
    for ((switch, change, from), to) in &joined {
        assert!(joined.get(&(*switch, *change, *to)).is_none_or(|back| back == from), "both ways are one circuit");
    }
    for port in by_input.values_mut().chain(by_output.values_mut()) {
        port.sort_by_key(|passage| passage.first);
        assert!(port.windows(2).all(|pair| pair[0].last <= pair[1].first), "one packet at a time");
    }
}

fn configs() -> impl Strategy<Value = (RotorConfig, usize, usize)> {
    let shape = (2..9usize, 1..4usize, 1..5u32, any::<bool>());
    let times = (25..80u64, 0..6u64, 0..8u64, 0..4u64, 0..4u64);
    let ways = (0..3u32, prop::option::of(2..6u32), prop::option::of(3_000..40_000u64), 0..400u64, any::<u64>());
    (shape, times, ways).prop_map(|((racks, hosts, uplinks, in_turn), times, ways)| {
        let (slice, guard, delay, margin, skew) = times;
        let (routing, limit, budget, cable, seed) = ways;
        let mut text = format!(
            "slice = \"{slice}us\"\nguard = \"{guard}us\"\nmargin = \"{margin}us\"\nclock_skew = \"{skew}us\"\n\
             reconfiguration_delay = {{ uniform = [\"{}us\", \"{delay}us\"] }}\nuplinks = {uplinks}\n\
             cable_delay = \"{cable}ns\"\nseed = {}\nrouting = \"{}\"\nchange = \"{}\"\n",
            delay / 2,
            seed >> 1,
            ["direct", "two-hop", "expander"][routing as usize],
            if in_turn { "in-turn" } else { "together" },
        );
        let lines = [
            limit.filter(|_| routing == 1).map(|limit| format!("transit_queue = {limit}\n")),
            limit.filter(|_| routing == 2).map(|limit| format!("uplink_queue = {limit}\n")),
            budget.filter(|_| delay <= guard && skew <= margin).map(|budget| format!("budget = \"{budget}B\"\n")),
            (routing == 2).then(|| "bulk_threshold = \"20kB\"\n".to_owned()),
        ];
        text.extend(lines.into_iter().flatten());
        (text.parse().unwrap(), racks, hosts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn circuits_keep_apart_nothing_passes_in_a_band_and_what_is_lost_comes_later(
        (config, racks, hosts) in configs(),
        sends in prop::collection::vec((0..64u32, 1..64u32, 0..60_000u64, 0..150u64), 1..30),
    ) {
        let mut network = rotor(&config, racks, hosts);
        network.keep_passages();
        let number = u32::try_from(racks * hosts).unwrap();
        let mut at = SimTime::ZERO;
        let mut wanted = BTreeMap::new();
        for (token, (from, step, bytes, gap_us)) in (0..).zip(&sends) {
            at = at.plus_ps(gap_us * 1_000_000);
            network.run_before(at);
            let from = from % number;
            let to = (from + 1 + step % (number - 1)) % number;
            network.send(at, &with_token(message(from, to, *bytes, 0), token));
            wanted.insert(token, bytes.div_ceil(config.mtu.get()).max(1));
        }
        let delivered = packets(&mut network);
        for packet in &delivered {
            *wanted.get_mut(&packet.token.0).unwrap() -= 1;
            let direct = packet.switches == 3 || packet.switches == 1;
            match config.routing {
                RotorRouting::Direct => prop_assert!(direct),
                RotorRouting::TwoHop => prop_assert!(direct || packet.switches == 5),
                RotorRouting::Expander => prop_assert!(packet.switches % 2 == 1),
            }
        }
        prop_assert!(wanted.values().all(|left| *left == 0), "each packet arrives once");
        check(&config, network.passages());
        let of = |name: &str| counter(&network, name);
        let causes = of("lost: in a guard band") + of("lost: the switch not reconfigured");
        let lost_at_switches = network.passages().iter().filter(|passage| !passage.passes).count() as u64;
        prop_assert_eq!(lost_at_switches, causes);
        let no_place = of("lost: no place at the ToR in between");
        prop_assert_eq!(of("packets over circuits"), of("packets that passed circuits") + causes + no_place);
        prop_assert_eq!(of("bytes over circuits"), of("bytes that passed circuits") + of("bytes lost and sent again"));
        if config.margin >= config.clock_skew {
            prop_assert_eq!(of("lost: in a guard band"), 0);
            let slowest = config.reconfiguration_delay.draw_ps(u64::MAX);
            prop_assert!(slowest > config.guard.ps() || causes == 0);
        }
    }
}
