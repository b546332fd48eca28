//! What LIGHTNESS' deliverable published, and the arithmetic behind it.

use crate::common::{fabric, lab, run_all};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;

/// Servers' links take no time: the test beds' measurements are of the ToRs and switches alone.
const IDEAL_SERVERS: &str = "kind = \"lightness\"\nserver_rate = \"unlimited\"\n";

/// When `count` messages of `bytes` from one rack's server to the other's, all handed over at once, are there.
fn time_of(keys: &str, count: u64, bytes: u64) -> u64 {
    let mut network = fabric(&format!("{IDEAL_SERVERS}{keys}"), &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in 0..count {
        network.send(SimTime::ZERO, flow, bytes, Token(token));
    }
    let deliveries = run_all(&mut network);
    let order: Vec<u64> = deliveries.iter().map(|delivery| delivery.token.0).collect();
    assert_eq!(order, (0..count).collect::<Vec<_>>(), "none lost, none twice, none out of order");
    deliveries.last().unwrap().at.0
}

#[test]
fn table_1_two_tors_back_to_back() {
    let keys = "decision = \"direct\"\nphotonic_packet_max = \"1500B\"\n";
    // 22 packets of at most 1,500 bytes: 22 x 1678 + 32768 x (0.8 + 1.35) ns; the deliverable measured 107,426 ns.
    let ps = time_of(keys, 1, 32_768);
    assert_eq!(ps, 22 * 1_678_000 + 32_768 * 2_150);
    assert_eq!(ps / 1_000, 107_367);
    // 80 bytes: 1,678 + 80 x 2.15 ns (1,742 ns measured, from which the start-up was fitted without the conversion).
    assert_eq!(time_of(keys, 1, 80), 1_678_000 + 80 * 2_150);
}

/// Ten packets of 1,500 bytes through the packet switch: how much longer they take when the first is dropped.
fn cost_of_a_collision(keys: &str) -> u64 {
    let keys = format!("photonic_packet_max = \"1500B\"\n{keys}");
    time_of(&format!("{keys}drop = [1]\n"), 10, 1_500) - time_of(&keys, 10, 1_500)
}

#[test]
fn figure_16_one_collision_costs_3276_ns() {
    // 1500 x 2.15 again on the wire, 30 routing, 20 for the NACK, 1 until the slot's end.
    assert_eq!(cost_of_a_collision(""), 3_276_000);
    assert_eq!(cost_of_a_collision("ops_serialises_again = false\n"), 3_276_000);
}

#[test]
fn figure_16_with_two_cables_of_50_m() {
    assert_eq!(cost_of_a_collision("cable_length = \"50m\"\n"), 3_776_000);
    assert_eq!(cost_of_a_collision("CableDelay = \"250ns\"\n"), 3_776_000);
}

#[test]
fn figure_16_decided_at_the_head_costs_the_packet_alone() {
    assert_eq!(cost_of_a_collision("ops_decision = \"head\"\n"), 3_225_000);
}

#[test]
fn figure_18_only_the_first_packet_pays_for_the_circuit() {
    for bytes in [80, 32_768] {
        let mut network = fabric(&format!("{IDEAL_SERVERS}decision = \"ocs\"\n"), &lab(2, 1));
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        let second = SimTime::from_ns(1_000_000_000);
        network.send(SimTime::ZERO, flow, bytes, Token(1));
        let mut deliveries = Vec::new();
        while network.advance(second, &mut deliveries) < second {}
        network.send(second, flow, bytes, Token(2));
        deliveries.extend(run_all(&mut network));
        let alone = 1_678_000 + bytes * 2_150;
        assert_eq!(deliveries[0].at.0, 753_000_000_000 + alone);
        assert_eq!(deliveries[1].at.since_ps(second), alone);
    }
}

#[test]
fn the_deliverables_own_names_say_the_same() {
    let own = "TorStartupDelay = \"1000ns\"\nTorPer3ByteDelay = \"6ns\"\nOPSDelay = \"50ns\"\nAckDelay = \"10ns\"\n\
               TORBW = \"20Gbps\"\nOPSBW = \"40Gbps\"\nnumFibers = 2\nnumWavelengths = 2\nTORMaxMgs = 7\n";
    let ours = "tor_startup_delay = \"1us\"\ntor_byte_delay = \"2ns/B\"\nops_delay = \"50ns\"\nack_delay = \"10ns\"\n\
                tor_rate = \"20Gbps\"\nops_rate = \"40Gbps\"\nfibers = 2\nwavelengths = 2\ntor_max_messages = 7\n";
    assert_eq!(time_of(own, 5, 40_000), time_of(ours, 5, 40_000));
    // 1,000 start-up, 1,000 bytes x (0.4 + 2) ns, 50 routing, 1 slot, 1,000 bytes x 0.2 ns out.
    assert_eq!(time_of(own, 1, 1_000), 1_000_000 + 2_400_000 + 50_000 + 1_000 + 200_000);
}
