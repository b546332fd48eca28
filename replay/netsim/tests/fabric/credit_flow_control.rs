//! Credits: what a buffer and a round trip let through, updates that must wait, buffers that never overflow.

use crate::common::{credit, lab, message, packets};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::network::{Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Two hosts at a switch; a flit of 64 B takes 100 ns, a cable 1 us, the switch 300 ns.
fn two_hosts(keys: &str) -> String {
    let link = "{ rate = \"5120Mbps\", delay = \"1us\" }";
    format!(
        "topology = {{ shape = \"single-switch\", host_link = {link} }}\nmtu = \"64B\"\nheaders = \"0B\"\nswitch_delay = \"300ns\"\n{keys}"
    )
}

const FLIT: u64 = 100_000;
/// From the start of a flit until its credit is back: the flit leaves, crosses the cable, waits in the switch, leaves
/// its buffer, and the update crosses the cable.
const ROUND_TRIP: u64 = FLIT + 1_000_000 + 300_000 + FLIT + 1_000_000;

fn starts(text: &str, count: u64) -> Vec<u64> {
    let mut fabric = credit(text, &lab(1, 2));
    fabric.send(SimTime::ZERO, &message(0, 1, count * 64, 0));
    packets(&mut fabric).iter().map(|packet| packet.left.0).collect()
}

#[test]
fn a_link_carries_its_credits_once_a_round_trip() {
    for credits in [1, 3, 10, 24] {
        let expected: Vec<u64> = (0..200).map(|i| i / credits * ROUND_TRIP + i % credits * FLIT).collect();
        assert_eq!(starts(&two_hosts(&format!("credits = {credits}")), 200), expected, "{credits} credits");
    }
}

#[test]
fn a_buffer_of_a_round_trip_fills_the_link() {
    // 2.5 us are 25 flits.
    for credits in [25, 26, 100] {
        let expected: Vec<u64> = (0..200).map(|i| i * FLIT).collect();
        assert_eq!(starts(&two_hosts(&format!("credits = {credits}")), 200), expected, "{credits} credits");
    }
}

#[test]
fn updates_keep_their_distance() {
    let one = |pause: &str| starts(&two_hosts(&format!("credits = 1\ncredit_min_time = \"{pause}\"")), 5);
    // A pause below the round trip holds nobody up; a longer one sets the pace, after the first update.
    assert_eq!(one("2us"), (0..5).map(|i| i * ROUND_TRIP).collect::<Vec<_>>());
    assert_eq!(one("4us"), [0, 1, 2, 3, 4].map(|i: u64| i.min(1) * ROUND_TRIP + i.saturating_sub(1) * 4_000_000));
    // With two credits, the first update carries one and the next both that came free since.
    let two = starts(&two_hosts("credits = 2\ncredit_min_time = \"4us\""), 4);
    assert_eq!(two, [0, FLIT, ROUND_TRIP, ROUND_TRIP + 4_000_000]);
}

#[test]
fn credits_come_back_flit_by_flit() {
    // Packets of 4 flits and 6 credits: the second packet starts when 2 flits of the first have left the switch.
    let text = two_hosts("credits = 6").replace("64B", "256B");
    let mut fabric = credit(&text, &lab(1, 2));
    fabric.send(SimTime::ZERO, &message(0, 1, 512, 0));
    let starts: Vec<u64> = packets(&mut fabric).iter().map(|packet| packet.left.0).collect();
    assert_eq!(starts, [0, ROUND_TRIP + FLIT]);
    // As a whole packet it leaves the switch later.
    let mut fabric = credit(&format!("{text}\nstart = \"whole-packet\""), &lab(1, 2));
    fabric.send(SimTime::ZERO, &message(0, 1, 512, 0));
    let starts: Vec<u64> = packets(&mut fabric).iter().map(|packet| packet.left.0).collect();
    assert_eq!(starts, [0, ROUND_TRIP + FLIT + 3 * FLIT]);
}

#[test]
fn gaps_slow_a_link_down() {
    let text = two_hosts("credits = 1000\nflit_gap = \"7ns\"\npacket_gap = \"11ns\"").replace("64B", "256B");
    let mut fabric = credit(&text, &lab(1, 2));
    fabric.send(SimTime::ZERO, &message(0, 1, 5 * 256, 0));
    let starts: Vec<u64> = packets(&mut fabric).iter().map(|packet| packet.left.0).collect();
    assert_eq!(starts, [0, 1, 2, 3, 4].map(|i| i * (4 * FLIT + 3 * 7_000 + 11_000)));
}

const NETWORKS: [&str; 4] = [
    "topology = { shape = \"k-ary-n-tree\", k = 2, n = 3 }\nrouting = \"adaptive\"\nvls = 3\ncredits = 11\nmtu = \"640B\"\nheaders = \"20B\"",
    "topology = { shape = \"torus\", size = [4, 2] }\nrouting = \"dor\"\nvls = 4\ncredits = 12\nmtu = \"640B\"\nflit = \"16B\"",
    "topology = { shape = \"torus\", size = [3, 3] }\nrouting = \"bubble\"\ncredits = 23\nmtu = \"640B\"\ncredit_min_time = \"1us\"",
    "topology = { shape = \"fat-tree\", nodes = 8, racks = 4 }\nrouting = \"random\"\nvls = 2\ncredits = 34\narbitration = { high = [[1, 3]], low = [[0, 2], [1, 1]], limit = 1 }",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_and_no_buffer_overflows(
        which in 0..NETWORKS.len(),
        sends in prop::collection::vec((0u32..8, 1u32..8, 0u64..5_000, 0u8..16, 0u64..2_000_000), 1..150),
    ) {
        let text = NETWORKS[which];
        let mut fabric = credit(text, &[]);
        let mut now = SimTime::ZERO;
        let mut expected = BTreeMap::new();
        for (token, (source, step, bytes, level, gap)) in (0u64..).zip(&sends) {
            now = now.plus_ps(*gap);
            fabric.run_before(now);
            let mut sent = message(*source, (*source + step) % 8, *bytes, *level);
            sent.token = Token(token);
            fabric.send(now, &sent);
            expected.insert(token, (sent, now));
        }
        let packets: Vec<PacketRecord> = packets(&mut fabric);
        let mtu = if text.contains("mtu") { 640 } else { 2_048 };
        let headers = if text.contains("headers") { 20 } else { 26 };
        let mut bytes = BTreeMap::<u64, u64>::new();
        let mut numbers = BTreeMap::<u32, Vec<u64>>::new();
        for packet in &packets {
            let (sent, at) = &expected[&packet.token.0];
            prop_assert_eq!((packet.source, packet.destination, packet.handed_over), (sent.source, sent.destination, *at));
            prop_assert!(packet.left >= *at && packet.arrived > packet.left);
            *bytes.entry(packet.token.0).or_default() += u64::from(packet.bytes) - headers;
            numbers.entry(packet.source.0).or_default().push(packet.number);
        }
        let all: u64 = sends.iter().map(|send| send.2.div_ceil(mtu).max(1)).sum();
        prop_assert_eq!(packets.len() as u64, all);
        for (token, (sent, _)) in &expected {
            prop_assert_eq!(bytes[token], sent.bytes);
        }
        for mut numbers in numbers.into_values() {
            numbers.sort_unstable();
            prop_assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        }
        let credits: u64 = text.split("credits = ").nth(1).unwrap().split('\n').next().unwrap().parse().unwrap();
        for link in fabric.figures().links {
            prop_assert!(link.queue_max_bytes <= credits * 64, "{} held {} B", link.name, link.queue_max_bytes);
        }
    }
}

#[test]
fn the_same_calls_give_the_same_packets_and_a_long_backlog_costs_nothing() {
    for text in NETWORKS {
        let run = || {
            let mut fabric = credit(text, &[]);
            for host in 0..8 {
                // A message of a tebibyte is one entry in a queue.
                fabric.send(SimTime::ZERO, &message(host, (host + 3) % 8, 1 << 40, host as u8));
            }
            fabric.run_before(SimTime::from_ns(200_000));
            (std::mem::take(fabric.observer()), fabric.figures())
        };
        let (packets, figures) = run();
        assert!(packets.len() > 100);
        assert_eq!(run(), (packets, figures));
    }
}
