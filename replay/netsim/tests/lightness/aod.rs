//! Architecture on demand: the backplane between the ToRs and the packet switch.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::{self, Fabric, FabricConfig};
use netsim::network::{Delivery, HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;

const OPS: &str = "kind = \"lightness\"\nserver_rate = \"unlimited\"\nwavelengths = 1\n";
/// 1,000 bytes through the OPS: 1,678 + 2,150 + 30, the next whole ns, 800 at the output.
const ALONE: u64 = 1_678_000 + 2_150_000 + 31_000 + 800_000;

fn counter(network: &Fabric, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Sends 1,000 bytes from each of `pairs` at the times in us; when they are there, in ps.
fn times(keys: &str, racks: usize, pairs: &[(u64, u32, u32)]) -> (Vec<u64>, Fabric) {
    let mut network = fabric(&format!("{OPS}{keys}"), &lab(racks, 1));
    let mut deliveries: Vec<Delivery> = Vec::new();
    for (token, (at, source, destination)) in (0..).zip(pairs) {
        let at = SimTime::from_ns(at * 1_000);
        while network.advance(at, &mut deliveries) < at {}
        let flow = network.open_flow(HostIndex(*source), HostIndex(*destination));
        network.send(at, flow, 1_000, Token(token));
    }
    deliveries.extend(run_all(&mut network));
    deliveries.sort_by_key(|delivery| delivery.token.0);
    (deliveries.iter().map(|delivery| delivery.at.0).collect(), network)
}

const US: u64 = 1_000_000;

#[test]
fn the_first_packet_pays_for_the_backplane_and_later_ones_do_not() {
    let (at, network) = times("[aod]\n", 3, &[(0, 0, 1), (800_000, 0, 1), (900_000, 1, 0), (1_000_000, 1, 2)]);
    assert_eq!(at[0], 753_000_000_000 + ALONE);
    assert_eq!(at[1], 800_000 * US + ALONE);
    // The way back has the same two ToRs; a third ToR is configured anew.
    assert_eq!(at[2], 900_000 * US + ALONE);
    assert_eq!(at[3], 1_000_000 * US + 753_000_000_000 + ALONE);
    assert_eq!((counter(&network, "AoD joins"), counter(&network, "AoD evictions")), (3, 0));
}

#[test]
fn a_configured_backplane_costs_nothing() {
    let pairs = [(0, 0, 1), (1, 1, 2), (2, 2, 0)];
    assert_eq!(times("[aod]\nconfigured = true\n", 3, &pairs).0, times("", 3, &pairs).0);
}

#[test]
fn tors_share_the_packet_switchs_ports() {
    // Two ports: the second pair takes those of the first, once that was joined for 30 us and is idle.
    let keys = "[aod]\nports = 2\ndelay = \"100us\"\nhold = \"30us\"\nretry = \"10us\"\n";
    let (at, network) = times(keys, 4, &[(0, 0, 1), (5, 2, 3)]);
    assert_eq!(at, [100 * US + ALONE, 235 * US + ALONE]);
    // Asked at 5, 15, ..., 135 us.
    assert_eq!(counter(&network, "AoD refusals"), 13);
    assert_eq!((counter(&network, "AoD joins"), counter(&network, "AoD evictions")), (4, 2));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (keys, named) in [
        ("[aod]\nports = 1\n", "aod.ports = 1"),
        ("[aod]\nports = 2\nconfigured = true\n", "aod.ports = 2"),
        ("[aod]\nretry = \"0s\"\n", "aod.retry"),
    ] {
        let config: FabricConfig = format!("{OPS}{keys}").parse().unwrap();
        let Err(error) = fabric::build(&config, &lab(3, 1)) else { panic!("{keys}") };
        assert!(error.to_string().contains(named), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// However few ports there are and however soon they are given up: everything arrives, and nothing is left over.
    #[test]
    fn everything_arrives(
        messages in prop::collection::vec((0..200u64, 0..5u32, 1..5u32, 1..20_000u64), 1..25),
        ports in 2..5u32,
        hold in 0..50u64,
        window in 1..4u32,
        drop in prop::collection::vec(1..30u64, 0..4),
    ) {
        let text = format!(
            "kind = \"lightness\"\nwindow = {window}\nwavelengths = 2\nphotonic_packet_max = \"1500B\"\ndrop = {drop:?}\n\
             [aod]\nports = {ports}\ndelay = \"20us\"\nhold = \"{hold}us\"\nretry = \"3us\"\n"
        );
        let mut network = fabric(&text, &lab(5, 1));
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        let mut deliveries = Vec::new();
        let mut packets = 0;
        for (token, (at, from, step, bytes)) in (0..).zip(&sorted) {
            let at = SimTime::from_ns(at * 1_000);
            while network.advance(at, &mut deliveries) < at {}
            let flow = network.open_flow(HostIndex(*from), HostIndex((from + step) % 5));
            network.send(at, flow, *bytes, Token(token));
            packets += bytes.div_ceil(1_500);
        }
        deliveries.extend(run_all(&mut network));
        let mut tokens: Vec<u64> = deliveries.iter().map(|delivery| delivery.token.0).collect();
        tokens.sort_unstable();
        prop_assert_eq!(tokens, (0..messages.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(counter(&network, "ACKs"), packets);
        prop_assert_eq!(counter(&network, "NACKs"), network.figures().retransmissions);
    }
}
