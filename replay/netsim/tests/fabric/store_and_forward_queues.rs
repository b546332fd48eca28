//! `store-and-forward`: queues at outputs that drop what finds no room, one order, and a network on which nothing is
//! lost for good.

use crate::common::{fabric, lab, message, packets, run_all, store_and_forward, with_token};
use netsim::fabric::packet::{LostPacket, Observer, PacketFabric, PacketRecord};
use netsim::fabric::store_and_forward::StoreAndForward;
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;

/// Packets of 1,000 B take 1 us; the queue in front of a link holds `buffer`.
fn one_switch(buffer: &str) -> String {
    format!(
        "topology = {{ shape = \"single-switch\", host_link = {{ rate = \"8Gbps\", buffer = \"{buffer}\" }} }}\nmtu = \"1000B\""
    )
}

/// Keeps what was lost beside what arrived.
#[derive(Default)]
struct Both {
    arrived: Vec<PacketRecord>,
    lost: Vec<(SimTime, HostIndex, u64, Token)>,
}

impl Observer for Both {
    fn delivered(&mut self, packet: &PacketRecord) {
        self.arrived.push(*packet);
    }

    fn dropped(&mut self, packet: &LostPacket) {
        self.lost.push((packet.at, packet.source, packet.number, packet.token));
    }
}

fn with_losses(text: &str, hosts: usize) -> StoreAndForward<Both> {
    StoreAndForward::new(&text.parse().unwrap(), &lab(1, hosts), Both::default()).unwrap()
}

#[test]
fn packets_follow_one_another_without_a_gap() {
    let mut fabric = store_and_forward(&one_switch("unlimited"), &lab(1, 2));
    fabric.send(SimTime(7), &message(0, 1, 3_500, 0));
    let times: Vec<_> = packets(&mut fabric).iter().map(|packet| (packet.left.0, packet.arrived.0)).collect();
    let us = 1_000_000;
    let expected = [(0, 2), (1, 3), (2, 4)].map(|(left, arrived)| (7 + left * us, 7 + arrived * us));
    assert_eq!(times[..3], expected);
    // The last has 500 B: it waits in the switch for the one before.
    assert_eq!(times[3], (7 + 3 * us, 7 + 4 * us + us / 2));
}

#[test]
fn a_full_queue_drops_what_is_offered() {
    // Three hosts send four packets each to a fourth: one is on the link, two wait, and the rest has no room.
    let mut fabric = with_losses(&one_switch("2 packets"), 4);
    for source in 0..3 {
        fabric.send(SimTime::ZERO, &with_token(message(source, 3, 4_000, 0), source.into()));
    }
    let mut deliveries = Vec::new();
    while fabric.next_event().is_some() {
        fabric.advance(SimTime::MAX, &mut deliveries);
    }
    // At 1 us all three find room. At 2, 3 and 4 us one has gone on, and one of three finds room.
    let figures = fabric.figures();
    let both = std::mem::take(fabric.observer());
    assert_eq!(both.arrived.len(), 6);
    assert_eq!(both.arrived.iter().map(|packet| packet.arrived.0 / 1_000_000).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
    assert_eq!(both.lost.iter().map(|lost| lost.0.0 / 1_000_000).collect::<Vec<_>>(), [2, 2, 3, 3, 4, 4]);
    assert_eq!((figures.drops, figures.links.iter().map(|link| link.drops).sum::<u64>()), (6, 6));
    // A message is complete only if all its packets arrived.
    let whole = (0..3).filter(|source| both.lost.iter().all(|lost| lost.1.0 != *source)).count();
    assert_eq!(deliveries.len(), whole);
}

#[test]
fn a_queue_without_room_still_lets_a_packet_onto_a_free_link() {
    for buffer in ["0 packets", "999B"] {
        let mut fabric = with_losses(&one_switch(buffer), 3);
        fabric.send(SimTime::ZERO, &message(0, 2, 3_000, 0));
        fabric.send(SimTime(500_000), &message(1, 2, 1_000, 0));
        fabric.run_before(SimTime::MAX);
        assert_eq!(fabric.observer().arrived.len(), 3, "{buffer}");
        assert_eq!(fabric.observer().lost, [(SimTime(1_500_000), HostIndex(1), 0, Token(0))], "{buffer}");
    }
    // With room for its bytes it waits.
    let mut fabric = with_losses(&one_switch("1000B"), 3);
    fabric.send(SimTime::ZERO, &message(0, 2, 3_000, 0));
    fabric.send(SimTime(500_000), &message(1, 2, 1_000, 0));
    fabric.run_before(SimTime::MAX);
    assert_eq!(fabric.observer().lost, []);
}

#[test]
fn as_a_network_it_sends_again_what_it_drops() {
    let text = format!("kind = \"store-and-forward\"\n{}", one_switch("1 packets"));
    let mut network = fabric(&text, &lab(1, 5));
    for source in 0..4 {
        let flow = network.open_flow(HostIndex(source), HostIndex(4));
        network.send(SimTime::ZERO, flow, 50_000, Token(source.into()));
    }
    let deliveries = run_all(&mut network);
    assert_eq!(deliveries.len(), 4);
    let figures = network.figures();
    assert!(figures.drops > 0 && figures.drops == figures.retransmissions);
    // 200 packets of 1 us cross the last link, and the first microsecond is the first link's.
    assert!(deliveries.iter().all(|delivery| delivery.at >= SimTime(51_000_000)));
    assert!(deliveries.iter().any(|delivery| delivery.at >= SimTime(201_000_000)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_packet_arrives_once_or_is_lost_once(
        buffer in prop_oneof![Just("0 packets"), Just("3 packets"), Just("4kB"), Just("unlimited")],
        sends in prop::collection::vec((0u32..8, 1u32..8, 0u64..5_000, 0u64..2_000_000), 1..150),
    ) {
        let link = format!("{{ rate = \"5Gbps\", buffer = \"{buffer}\", delay = \"3ns\" }}");
        let text = format!(
            "topology = {{ shape = \"k-ary-n-tree\", k = 2, n = 3, host_link = {link}, uplink = {link} }}\nrouting = \"random\"\nheaders = \"14B\"\nswitch_delay = \"1us\""
        );
        let run = || {
            let mut fabric = StoreAndForward::new(&text.parse().unwrap(), &[], Both::default()).unwrap();
            let mut now = SimTime::ZERO;
            for (source, step, bytes, gap) in &sends {
                now = now.plus_ps(*gap);
                fabric.run_before(now);
                fabric.send(now, &message(*source, (source + step) % 8, *bytes, 0));
            }
            fabric.run_before(SimTime::MAX);
            (std::mem::take(fabric.observer()), fabric.figures())
        };
        let (both, figures) = run();
        let (again, figures_again) = run();
        prop_assert_eq!((&both.arrived, &both.lost, &figures), (&again.arrived, &again.lost, &figures_again));
        let mut packets: Vec<(u32, u64)> = both.arrived.iter().map(|packet| (packet.source.0, packet.number)).collect();
        packets.extend(both.lost.iter().map(|lost| (lost.1.0, lost.2)));
        packets.sort_unstable();
        let count = |source: u32| sends.iter().filter(|send| send.0 == source).map(|send| send.2.div_ceil(1_500).max(1)).sum();
        let expected: Vec<(u32, u64)> = (0..8).flat_map(|source| (0..count(source)).map(move |n| (source, n))).collect();
        prop_assert_eq!(packets, expected);
        if buffer == "unlimited" {
            prop_assert!(both.lost.is_empty());
        }
        for link in figures.links.iter().filter(|link| !link.name.starts_with('h')) {
            let most = match buffer { "0 packets" => 0, "3 packets" => 3 * 1_514, "4kB" => 4_000, _ => u64::MAX };
            prop_assert!(link.queue_max_bytes <= most, "{} had {} B", link.name, link.queue_max_bytes);
        }
    }
}
