//! Synthetic traffic over networks of flows, whose hosts speak protocols of their own: each message counts as one packet.

use netsim::fabric::{self, FabricConfig};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::traffic::{self, RunOptions, TrafficConfig, TrafficRun};
use std::sync::atomic::AtomicBool;

const ETHERNET: &str = r#"
    kind = "ethernet"
    topology = { shape = "racks", host_link = { rate = "10Gbps", delay = "100ns" }, uplink = { rate = "10Gbps", delay = "100ns" } }
    host_delay = "1us"
"#;

const LIGHTNESS: &str = r#"
    kind = "lightness"
    decision = "ops"
    wavelengths = 4
    cable_delay = "100ns"
"#;

const CIRCUITS: &str = r#"
    kind = "lightness"
    decision = "ocs"
    wavelengths = 4
    ocs_first_message_delay = "2us"
"#;

fn run(traffic: &str, fabric: &str, keep: bool) -> TrafficRun {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    traffic::run(
        &traffic,
        &config,
        1,
        RunOptions { keep, ..RunOptions::default() },
        &AtomicBool::new(false),
        &mut |_| {},
    )
    .unwrap()
}

/// How long a message of `bytes` from host 0 to host `to` of four hosts in two racks takes by itself.
fn alone(fabric: &str, to: u32, bytes: u64) -> u64 {
    let config: FabricConfig = fabric.parse().unwrap();
    let place = |host: u32| HostPlace { name: format!("h{host}"), rack: format!("rack{}", host / 2) };
    let mut network = fabric::build(&config, &(0..4).map(place).collect::<Vec<_>>()).unwrap();
    let flow = network.open_flow(HostIndex(0), HostIndex(to));
    network.send(SimTime::ZERO, flow, bytes, Token(0));
    let mut deliveries = Vec::new();
    network.advance(SimTime::LATEST, &mut deliveries);
    deliveries[0].at.0
}

/// Messages so rare that none is in another's way: each host sends to one in the other rack.
const RARE: &str = r#"
    hosts = 4
    racks = 2
    pattern = "bit-complement"
    size = "1448B"
    arrivals = "fixed"
    interval = "1ms"
    warm_up = "0 cycles"
    measurement = "20ms"
"#;

#[test]
fn a_message_that_is_alone_takes_as_long_as_on_its_flow() {
    for fabric in [ETHERNET, LIGHTNESS, CIRCUITS] {
        let run = run(RARE, fabric, true);
        let expected = alone(fabric, 3, 1_448);
        // The first message of a pair of hosts may set a circuit up; the later ones find it.
        let later = run.packets.iter().filter(|packet| packet.number > 0);
        let times: Vec<u64> = later.map(|packet| packet.arrived.since_ps(packet.handed_over)).collect();
        assert!(times.len() >= 4 * 18, "{fabric}");
        for time in times {
            let as_expected = match fabric {
                ETHERNET => time == expected,
                // The packet switch decides at the end of each nanosecond.
                LIGHTNESS => time.abs_diff(expected) < 1_000,
                _ => time + 2_000_000 <= expected,
            };
            assert!(as_expected, "{fabric}: {time} {expected}");
        }
        assert_eq!((run.figures.undelivered, run.figures.lost), (0, 0));
        assert_eq!(run.figures.network, run.figures.packet, "the time at the source is not told apart");
    }
}

#[test]
fn a_message_that_no_record_can_hold_is_refused() {
    let traffic: TrafficConfig = RARE.replace("1448B", "4GiB").parse().unwrap();
    for fabric in [ETHERNET, LIGHTNESS] {
        let config: FabricConfig = fabric.parse().unwrap();
        let error = traffic::run(&traffic, &config, 1, RunOptions::default(), &AtomicBool::new(false), &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("traffic.size") && error.contains("4 GiB"), "{error}");
    }
}

#[test]
fn messages_of_a_pair_arrive_in_their_order_and_all_arrive() {
    let traffic = r#"
        hosts = 8
        racks = 2
        pattern = "uniform"
        size = "9000B"
        load = 0.3
        arrivals = "exponential"
        warm_up = "0 cycles"
        measurement = "1ms"
    "#;
    for fabric in [ETHERNET, LIGHTNESS, CIRCUITS] {
        let run = run(traffic, fabric, true);
        assert!(run.packets.len() > 100, "{fabric}");
        assert_eq!(run.figures.undelivered, 0, "{fabric}");
        let mut last = std::collections::BTreeMap::new();
        for packet in &run.packets {
            let before = last.insert((packet.source, packet.destination), packet.number);
            assert!(before.is_none_or(|before| before < packet.number), "{fabric}: {packet:?}");
        }
    }
}

#[test]
fn a_load_is_a_share_of_what_the_hosts_link_carries_headers_included() {
    let traffic = "hosts = 8\nracks = 2\nsize = \"14480B\"\nload = 0.2\nwarm_up = \"100us\"\nmeasurement = \"20ms\"\n";
    let run = run(traffic, ETHERNET, false);
    // Ten segments of 1,448 bytes with 66 bytes of headers and framing each.
    assert_eq!(run.plan.wire_bytes, 10 * 1_514);
    let (offered, accepted) = (run.figures.offered_load.unwrap(), run.figures.accepted_load.unwrap());
    assert!((offered - 0.2).abs() < 0.02, "{offered}");
    assert!((accepted - offered).abs() < 0.02, "{accepted} of {offered}");
}

#[test]
fn switches_are_those_of_the_way() {
    for (fabric, far) in [(ETHERNET, 2.0), (LIGHTNESS, 3.0)] {
        let run = run(RARE, fabric, false);
        assert_eq!(run.figures.hops.mean(), Some(far), "{fabric}");
    }
}
