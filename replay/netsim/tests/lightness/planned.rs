//! Circuits that a scheduler plans by demand: cases worked out by hand, and what holds of them whatever is sent.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::Fabric;
use netsim::fabric::lightness::Lightness;
use netsim::network::{CircuitFigures, FlowKind, HostIndex, LinkFigures, Network, NetworkFigures, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SCHEDULERS: [&str; 4] = ["max-weight", "birkhoff", "solstice", "sunflow"];
/// A packet of 1,500 B over a circuit: the start-up, and 2.15 ns a byte.
const PACKET: u64 = 1_678_000 + 1_500 * 2_150;
const US: u64 = 1_000_000;
const SET_UP: u64 = 100 * US;

fn configured(scheduler: &str, keys: &str) -> String {
    format!(
        "kind = \"lightness\"\nscheduler = \"{scheduler}\"\nserver_rate = \"unlimited\"\nphotonic_packet_max = \"1500B\"\n\
         ocs_first_message_delay = \"100us\"\n{keys}"
    )
}

/// One port a ToR, all over circuits.
fn plain(scheduler: &str, keys: &str) -> String {
    configured(scheduler, &format!("decision = \"ocs\"\nocs_wavelengths = 1\nslice = \"1ms\"\n{keys}"))
}

/// When each message is delivered; messages are (time, from, to, packets of 1,500 B).
fn delivered(network: &mut Fabric, messages: &[(u64, u32, u32, u64)]) -> Vec<u64> {
    let (mut found, mut reached) = (Vec::new(), 0);
    for (token, (at, from, to, packets)) in (0..).zip(messages) {
        // What is handed over at one time is handed over before anything happens.
        while *at > reached && network.advance(SimTime(*at), &mut found) < SimTime(*at) {}
        reached = *at;
        let flow = network.open_flow(HostIndex(*from), HostIndex(*to));
        network.send(SimTime(*at), flow, packets * 1_500, Token(token));
    }
    found.extend(run_all(network));
    let by_token: BTreeMap<u64, u64> = found.iter().map(|delivery| (delivery.token.0, delivery.at.0)).collect();
    assert_eq!((by_token.len(), found.len()), (messages.len(), messages.len()), "each once");
    by_token.into_values().collect()
}

fn counter(figures: &NetworkFigures, name: &str) -> u64 {
    figures.counters.iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn what_waits_alone_takes_a_set_up_and_its_own_time() {
    for scheduler in SCHEDULERS {
        let last = |keys: &str| {
            let mut network = fabric(&plain(scheduler, keys), &lab(4, 1));
            delivered(&mut network, &[(5 * US, 1, 2, 10)])[0] - 5 * US
        };
        assert_eq!(last(""), SET_UP + 10 * PACKET, "{scheduler}");
        // What is planned from is 30 us old.
        assert_eq!(last("demand_age = \"30us\"\n"), 30 * US + SET_UP + 10 * PACKET, "{scheduler}");
        // The ToR learns of its circuit over a cable, and its packets cross two.
        assert_eq!(
            last("cable_delay = \"250ns\"\nack_delay = \"20ns\"\n"),
            SET_UP + 770_000 + 10 * PACKET,
            "{scheduler}"
        );
        // Four packets a plan: three circuits.
        let limit = format!("demand_limit = \"{}ps\"\n", 4 * PACKET);
        assert_eq!(last(&limit), 3 * SET_UP + 10 * PACKET, "{scheduler}");
    }
}

/// Optics in which a packet takes no time have circuits all the same.
#[test]
fn what_takes_no_time_waits_for_a_circuit_too() {
    for scheduler in SCHEDULERS {
        let keys = "tor_rate = \"unlimited\"\nocs_rate = \"unlimited\"\ntor_startup_delay = \"0ns\"\ntor_byte_delay = \"0ns/B\"\n";
        let mut network = fabric(&plain(scheduler, keys), &lab(3, 1));
        assert_eq!(delivered(&mut network, &[(0, 0, 1, 10)]), [SET_UP], "{scheduler}");
    }
}

/// Racks 0 and 1 have ten, four and five packets for racks 1 and 2, and 2: the heaviest matching is 0 to 1 and 1 to 2.
#[test]
fn max_weight_takes_the_heaviest_matching_first() {
    let mut network = fabric(&plain("max-weight", ""), &lab(3, 1));
    let found = delivered(&mut network, &[(0, 0, 1, 10), (0, 0, 2, 4), (0, 1, 2, 5)]);
    let first = SET_UP + 10 * PACKET;
    assert_eq!(found, [first, first + SET_UP + 4 * PACKET, SET_UP + 5 * PACKET]);
    // A slot of six packets ends before the ten are through: then four are as heavy as four.
    let slice = format!("slice = \"{}ps\"\n", 6 * PACKET);
    let mut network = fabric(&plain("max-weight", "").replace("slice = \"1ms\"\n", &slice), &lab(3, 1));
    let found = delivered(&mut network, &[(0, 0, 1, 10), (0, 0, 2, 3), (0, 1, 2, 5)]);
    let second = 2 * SET_UP + 10 * PACKET;
    assert_eq!(found, [second, second + SET_UP + 3 * PACKET, SET_UP + 5 * PACKET]);
}

/// A matrix whose rows and columns all have 6 packets: Birkhoff's slots are 4 and 2 packets long, and nothing is left over.
#[test]
fn birkhoffs_slots_add_up_to_the_demand() {
    for scheduler in ["birkhoff", "solstice"] {
        let mut network = fabric(&plain(scheduler, "").replace("1ms", "1us"), &lab(3, 1));
        let messages = [(0, 1, 4), (1, 2, 4), (2, 0, 4), (0, 2, 2), (1, 0, 2), (2, 1, 2)];
        let messages: Vec<_> = messages.into_iter().map(|(from, to, packets)| (0, from, to, packets)).collect();
        let found = delivered(&mut network, &messages);
        let last = *found.iter().max().unwrap();
        assert_eq!(last, 2 * SET_UP + 6 * PACKET, "{scheduler}");
        let figures = network.figures();
        assert_eq!(counter(&figures, "circuits set up"), 6, "{scheduler}");
        let totals = figures.circuit_totals.unwrap();
        assert_eq!((totals.requests, totals.granted, totals.packets), (0, 6, 18), "{scheduler}");
    }
}

#[test]
fn sunflow_does_not_stop_circuits_of_others_and_lets_who_waits_longest_go_first() {
    let both = |scheduler: &str| {
        let mut network = fabric(&plain(scheduler, ""), &lab(4, 1));
        delivered(&mut network, &[(0, 0, 1, 100), (150 * US, 2, 3, 1), (160 * US, 2, 1, 1), (170 * US, 3, 1, 1)])
    };
    let long = SET_UP + 100 * PACKET;
    let found = both("sunflow");
    assert_eq!(found, [long, 150 * US + SET_UP + PACKET, long + SET_UP + PACKET, long + 2 * (SET_UP + PACKET)]);
    // Who stops the whole switch serves the second one after the first.
    assert!(both("birkhoff")[1] > long + SET_UP);
}

/// With a port for each other rack, all circuits are there at once.
#[test]
fn several_ports_carry_several_pairs_at_once() {
    for scheduler in SCHEDULERS {
        let text = plain(scheduler, "").replace("ocs_wavelengths = 1", "ocs_wavelengths = 3");
        let mut network = fabric(&text, &lab(4, 1));
        let messages: Vec<_> = (1..4).map(|to| (0, 0, to, 8)).chain((1..4).map(|from| (0, from, 0, 8))).collect();
        let found = delivered(&mut network, &messages);
        assert!(found.iter().all(|at| *at == SET_UP + 8 * PACKET), "{scheduler}: {found:?}");
    }
}

/// What is small goes by packets at once, whatever the circuits do.
#[test]
fn the_packet_switch_stands_beside() {
    for scheduler in SCHEDULERS {
        let keys = "decision = \"by-size\"\ndecision_threshold = \"15kB\"\n";
        let mut network = fabric(&configured(scheduler, keys), &lab(4, 1));
        let found = delivered(&mut network, &[(0, 0, 1, 10), (0, 0, 2, 1), (0, 2, 3, 9)]);
        assert_eq!(found[0], SET_UP + 10 * PACKET, "{scheduler}");
        assert!(found[1] < SET_UP && found[2] < SET_UP, "{scheduler}: {found:?}");
        let figures = network.figures();
        assert_eq!((counter(&figures, "packets by circuit"), counter(&figures, "packets by OPS")), (10, 10));
    }
}

#[test]
fn keys_that_mean_nothing_are_refused() {
    let refused = |text: &str, racks: usize| {
        let config: netsim::fabric::FabricConfig = text.parse().unwrap();
        let netsim::fabric::FabricConfig::Lightness(config) = config else { panic!("another kind") };
        let error = Lightness::new(&config, &lab(racks, 1)).err().unwrap().to_string();
        assert!(error.starts_with("fabric."), "{error}");
        error
    };
    let lightness = "kind = \"lightness\"\n";
    for key in ["slice", "demand_age", "demand_limit"] {
        assert!(refused(&format!("{lightness}{key} = \"1ms\"\n"), 2).starts_with(&format!("fabric.{key}")));
    }
    for decision in ["ops", "direct"] {
        let text = format!("{lightness}scheduler = \"solstice\"\ndecision = \"{decision}\"\n");
        assert!(refused(&text, 2).starts_with("fabric.scheduler"));
    }
    assert!(refused(&plain("solstice", "ocs_output_size = 2\n"), 2).starts_with("fabric.ocs_output_size"));
    assert!(refused(&plain("solstice", "demand_limit = \"1us\"\n"), 2).starts_with("fabric.demand_limit"));
    assert!(refused(&plain("solstice", "demand_age = \"101s\"\n"), 2).starts_with("fabric.demand_age"));
    assert!(refused(&plain("solstice", ""), 257).starts_with("fabric.scheduler"));
    let many = plain("solstice", "").replace("ocs_wavelengths = 1", "ocs_wavelengths = 129");
    assert!(refused(&many, 2).starts_with("fabric.scheduler"));
}

fn end(circuit: &CircuitFigures) -> SimTime {
    circuit.released.unwrap_or(SimTime::LATEST)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// No port has two circuits, nothing passes while one is set up, every byte crosses one of both switches once, every message arrives once.
    #[test]
    fn circuits_keep_apart_and_bytes_add_up(
        messages in prop::collection::vec((0..900u64, 0..10u32, 1..10u32, 0..60_000u64), 1..40),
        scheduler in 0..4usize,
        decision in prop_oneof![Just("ocs"), Just("by-size"), Just("by-flow"), Just("by-prediction"), Just("by-circuit"), Just("by-destination"), Just("by-kind")],
        (ports, hosts) in (1..4u32, 1..3usize),
        (set_up, age, limit, slice) in (0..200u64, 0..100u64, 60..2_000u64, 1..300u64),
        (cable, ack, pass) in (0..300u64, 0..2_000u64, 0..2_000u64),
        (places, output) in (1..8u32, prop::option::of(1..4u32)),
        server in prop_oneof![Just("unlimited"), Just("10Gbps"), Just("1Gbps")],
    ) {
        let output = output.map_or_else(String::new, |places| format!("tor_output_buffer = {places}\n"));
        let text = format!(
            "kind = \"lightness\"\nscheduler = \"{}\"\ndecision = \"{decision}\"\ndecision_threshold = \"20kB\"\n\
             circuit_destinations = [\"rack1\", \"rack3\"]\ncircuit_kinds = [\"storage\"]\nserver_rate = \"{server}\"\nocs_wavelengths = {ports}\n\
             photonic_packet_min = \"1B\"\nphotonic_packet_max = \"9000B\"\nocs_first_message_delay = \"{set_up}us\"\n\
             demand_age = \"{age}us\"\ndemand_limit = \"{limit}us\"\nslice = \"{slice}us\"\ncable_delay = \"{cable}ns\"\n\
             ocs_ack_delay = \"{ack}ns\"\nocs_delay = \"{pass}ns\"\ntor_max_messages = {places}\n{output}interval = \"1us\"\n",
            SCHEDULERS[scheduler],
        );
        let racks = 5;
        let mut network = fabric(&text, &lab(racks, hosts));
        let number = u32::try_from(racks * hosts).unwrap();
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        let (mut found, mut flows, mut within) = (Vec::new(), BTreeMap::new(), 0);
        for (token, (at, from, step, bytes)) in (0..).zip(&sorted) {
            let at = SimTime(at * US);
            while network.advance(at, &mut found) < at {}
            let from = from % number;
            let to = (from + 1 + (step - 1) % (number - 1)) % number;
            let flow = *flows.entry((from, to)).or_insert_with(|| {
                let flow = network.open_flow(HostIndex(from), HostIndex(to));
                network.describe(flow, if from % 2 == 0 { FlowKind::Storage } else { FlowKind::Calls });
                flow
            });
            network.send(at, flow, *bytes, Token(token));
            let rack = |host: u32| host as usize / hosts;
            within += if rack(from) == rack(to) { (*bytes).max(1) } else { 0 };
        }
        let mut steps = 0;
        while network.next_event().is_some_and(|at| at < SimTime(2_000_000 * US)) && steps < 100_000 {
            network.advance(SimTime(2_000_000 * US), &mut found);
            steps += 1;
        }
        prop_assert!(network.next_event().is_none(), "something goes on for ever");
        prop_assert_eq!(found.len(), sorted.len());
        let figures = network.figures();
        let sent: u64 = sorted.iter().map(|(.., bytes)| (*bytes).max(1)).sum();
        let of_links = |begin: &str| -> u64 {
            let of: fn(&LinkFigures) -> u64 = |link| link.bytes;
            figures.links.iter().filter(|link| link.name.starts_with(begin)).map(of).sum()
        };
        let by_circuits: u64 = figures.circuits.iter().map(|circuit| circuit.bytes).sum();
        prop_assert_eq!(by_circuits + of_links("OPS."), sent - within, "each byte crosses one of both switches once");
        let of = |name: &str| counter(&figures, name);
        prop_assert_eq!(of("ACKs"), of("packets by OPS"));
        let attempts = of("packets by OPS") + figures.retransmissions;
        prop_assert_eq!(of("ACKs") + of("NACKs"), attempts, "ACKs and NACKs are the attempts");
        let through = SimTime((cable + pass) * 1_000);
        for circuit in &figures.circuits {
            let up = circuit.up.unwrap();
            prop_assert!(circuit.granted.plus_ps(set_up * US) <= up && up <= end(circuit), "{circuit:?}");
            // The last bit is through the switch before the ports are another's.
            prop_assert!(circuit.last_used.is_none_or(|last| up < last && last.plus_ps(through.0) <= end(circuit)));
            prop_assert!(circuit.scheduled && circuit.input == circuit.output);
            for other in &figures.circuits {
                let input = circuit.from == other.from && circuit.input == other.input;
                let output = circuit.to == other.to && circuit.output == other.output;
                let apart = end(circuit) <= other.granted || end(other) <= circuit.granted;
                prop_assert!(std::ptr::eq(circuit, other) || !(input || output) || apart, "{circuit:?} {other:?}");
            }
            if ports == 1 {
                let link = figures.links.iter().find(|link| link.name == format!("{}->OCS", circuit.from)).unwrap();
                for interval in circuit.granted.0.div_ceil(US)..up.0 / US {
                    let passed = link.bytes_by_interval().get(usize::try_from(interval).unwrap()).copied().unwrap_or(0);
                    prop_assert_eq!(passed, 0, "while {:?} is set up", circuit);
                }
            }
        }
    }
}
