//! The ToR's and the OCS' buffers, the resequencer, and delays of single submodules.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::Fabric;
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;

const IDEAL_SERVERS: &str = "kind = \"lightness\"\nserver_rate = \"unlimited\"\nswitch_delay = \"0ns\"\n";

fn counter(network: &Fabric, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// When the last of `count` messages of `bytes`, all handed over at once, is there.
fn time(keys: &str, count: u64, bytes: u64) -> u64 {
    let mut network = fabric(&format!("{IDEAL_SERVERS}{keys}"), &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in 0..count {
        network.send(SimTime::ZERO, flow, bytes, Token(token));
    }
    run_all(&mut network).last().unwrap().at.0
}

#[test]
fn each_cable_counts_where_it_lies() {
    let ops = time("", 1, 1_000);
    assert_eq!(time("cable_to_ops = \"100ns\"", 1, 1_000), ops + 100_000);
    assert_eq!(time("cable_from_ops = \"70ns\"", 1, 1_000), ops + 70_000);
    assert_eq!(time("cable_to_ocs = \"100ns\"\ncable_from_ocs = \"100ns\"", 1, 1_000), ops);
    // The own value of a cable goes before that of all.
    assert_eq!(time("cable_length = \"50m\"\ncable_to_ops = \"0ns\"", 1, 1_000), ops + 250_000);
    let circuit = |keys: &str| time(&format!("decision = \"ocs\"\nocs_first_message_delay = \"0s\"\n{keys}"), 1, 1_000);
    let ocs = circuit("");
    // The request crosses the one, its answer the other one, and then the packet both.
    assert_eq!(circuit("cable_to_ocs = \"100ns\""), ocs + 200_000);
    assert_eq!(circuit("cable_from_ocs = \"70ns\""), ocs + 140_000);
    assert_eq!(circuit("ocs_ack_delay = \"9ns\""), ocs + 9_000);
    // The ToR deals with the answer, where it is said how long that takes.
    assert_eq!(circuit("ack_delay = \"9ns\""), ocs + 9_000);
    assert_eq!(circuit("cable_to_ops = \"100ns\""), ocs);
    assert_eq!(circuit("tor_ocs_rate = \"5Gbps\""), ocs + 800_000);
}

#[test]
fn the_packet_switchs_time_to_answer_keeps_the_channel_waiting() {
    // Ten packets with window 1: each but the last waits for its answer.
    assert_eq!(time("ops_ack_delay = \"9ns\"", 10, 1_500), time("", 10, 1_500) + 9 * 9_000);
}

#[test]
fn a_full_output_makes_the_packet_switch_refuse_and_a_circuit_wait() {
    // The server's link takes 8 us for a packet, the optics some 5: with one place, the packet before is still there.
    let run = |keys: &str| {
        let text = format!(
            "kind = \"lightness\"\nserver_rate = \"1.5Gbps\"\nphotonic_packet_max = \"1500B\"\nwavelengths = 1\n\
             ocs_first_message_delay = \"0s\"\nwindow = 4\n{keys}"
        );
        let mut network = fabric(&text, &lab(3, 1));
        for source in [0, 1] {
            let flow = network.open_flow(HostIndex(source), HostIndex(2));
            network.send(SimTime::ZERO, flow, 30_000, Token(u64::from(source)));
        }
        assert_eq!(run_all(&mut network).len(), 2);
        network
    };
    assert_eq!(counter(&run(""), "NACKs: no place in the ToR's output"), 0);
    let full = run("tor_output_buffer = 1\n");
    assert!(counter(&full, "NACKs: no place in the ToR's output") > 0);
    assert_eq!(counter(&full, "ACKs"), 40);
    let circuits = run("tor_output_buffer = 1\ndecision = \"ocs\"\nocs_wavelengths = 2\n");
    assert_eq!((counter(&circuits, "packets by circuit"), counter(&circuits, "NACKs")), (40, 0));
}

#[test]
fn the_resequencer_keeps_the_servers_free_of_reordering() {
    let run = |resequencer: &str| {
        let text = format!(
            "{IDEAL_SERVERS}photonic_packet_max = \"1500B\"\nwindow = 4\ndrop = [1]\nresequencer = \"{resequencer}\"\n"
        );
        let mut network = fabric(&text, &lab(2, 1));
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        for token in 0..6 {
            network.send(SimTime::ZERO, flow, 1_500, Token(token));
        }
        (run_all(&mut network), network)
    };
    let ((at_server, by_server), (at_tor, by_tor)) = (run("server"), run("tor"));
    assert!(counter(&by_server, "reordered packets") > 0);
    assert_eq!(counter(&by_server, "packets put in order by ToRs"), 0);
    assert_eq!(counter(&by_tor, "reordered packets"), 0);
    assert_eq!(counter(&by_tor, "packets put in order by ToRs"), counter(&by_server, "reordered packets"));
    // With ideal links below it makes no difference where packets wait.
    assert_eq!(at_server, at_tor);
}

#[test]
fn a_circuits_output_buffer_lets_the_tor_go_on_at_its_own_rate() {
    // Ten packets of 1,500 B; the ToR takes 1,678 + 3,225 ns for each, the slower output 6,000 ns.
    let keys =
        "decision = \"ocs\"\nocs_first_message_delay = \"0s\"\nphotonic_packet_max = \"1500B\"\nocs_rate = \"2Gbps\"\n";
    let (tor, output) = (1_678_000 + 1_500 * 2_150, 6_000_000);
    let without = time(keys, 10, 1_500);
    assert_eq!(without, 10 * (1_678_000 + output + 1_500 * 1_350));
    // The output begins with the first head and is then never idle.
    let with = time(&format!("{keys}ocs_output_size = 8\n"), 10, 1_500);
    assert_eq!(with, 1_678_000 + 10 * output);
    // With one place a packet begins when the one before is through: the ToR's start-up comes in between.
    let one = time(&format!("{keys}ocs_output_size = 1\n"), 10, 1_500);
    assert_eq!(one, 10 * (1_678_000 + output));
    // A faster output waits for the ToR.
    let fast = keys.replace("2Gbps", "40Gbps");
    assert_eq!(time(&format!("{fast}ocs_output_size = 1\n"), 10, 1_500), 10 * tor);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// However small the buffers are: nothing is lost, nothing comes twice, everything ends.
    #[test]
    fn full_buffers_make_no_deadlock(
        messages in prop::collection::vec((0..100u64, 0..8u32, 1..8u32, 0..30_000u64), 1..30),
        places in (1..4u32, 1..4u32, 1..3u32, 0..3u32),
        decision in prop_oneof![Just("ops"), Just("ocs"), Just("by-size"), Just("by-flow"), Just("by-prediction"), Just("by-circuit")],
        window in 1..4u32,
        tor in any::<bool>(),
        drop in prop::collection::vec(1..30u64, 0..4),
    ) {
        let (messages_most, circuit_most, output, ocs_output) = places;
        let resequencer = if tor { "tor" } else { "server" };
        let text = format!(
            "kind = \"lightness\"\nphotonic_packet_max = \"1500B\"\nwavelengths = 2\nwindow = {window}\ndrop = {drop:?}\n\
             decision = \"{decision}\"\ndecision_threshold = \"10kB\"\ntor_max_messages = {messages_most}\n\
             tor_ocs_max_messages = {circuit_most}\ntor_output_buffer = {output}\nocs_output_size = {ocs_output}\n\
             resequencer = \"{resequencer}\"\nocs_first_message_delay = \"10us\"\nretry_request_delay = \"2us\"\n\
             circuit_hold = \"5us\"\ncircuit_idle = \"50us\"\nocs_rate = \"8Gbps\"\nserver_rate = \"5Gbps\"\n"
        );
        let mut network = fabric(&text, &lab(4, 2));
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        let mut deliveries = Vec::new();
        for (token, (at, from, step, bytes)) in (0..).zip(&sorted) {
            let at = SimTime::from_ns(at * 1_000);
            while network.advance(at, &mut deliveries) < at {}
            let flow = network.open_flow(HostIndex(*from), HostIndex((from + step) % 8));
            network.send(at, flow, *bytes, Token(token));
        }
        deliveries.extend(run_all(&mut network));
        let mut tokens: Vec<u64> = deliveries.iter().map(|delivery| delivery.token.0).collect();
        tokens.sort_unstable();
        prop_assert_eq!(tokens, (0..messages.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(counter(&network, "ACKs"), counter(&network, "packets by OPS"));
        prop_assert_eq!(counter(&network, "NACKs"), network.figures().retransmissions);
        let of_racks = |host: u32| host / 2;
        let packets = |within: bool| -> u64 {
            let sent = sorted.iter().filter(|(_, from, step, _)| (of_racks(*from) == of_racks((from + step) % 8)) == within);
            sent.map(|(_, _, _, bytes)| bytes.div_ceil(1_500).max(1)).sum()
        };
        prop_assert_eq!(counter(&network, "packets within racks"), packets(true));
        prop_assert_eq!(counter(&network, "packets by OPS") + counter(&network, "packets by circuit"), packets(false));
    }
}
