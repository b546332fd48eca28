//! The queue of an Ethernet host: what finds no room there is not lost in the network.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::Fabric;
use netsim::network::{HostIndex, Network, NetworkFigures, Simulation, Token};
use netsim::time::SimTime;

/// One rack of `hosts` at 100 Mbit/s, with switches that lose nothing and hosts that keep `queue`.
fn rack(hosts: usize, queue: &str) -> Fabric {
    let text = format!(
        "kind = \"ethernet\"\nhost_queue = \"{queue}\"\n[topology]\nshape = \"racks\"\n\
         host_link = {{ rate = \"100mbit\", buffer = \"unlimited\" }}\n"
    );
    fabric(&text, &lab(1, hosts))
}

fn counter(figures: &NetworkFigures, name: &str) -> u64 {
    figures.counters.iter().find(|(counter, _)| counter == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

fn waited(figures: &NetworkFigures) -> u64 {
    counter(figures, "segments that waited for room at their host")
}

/// Seconds that `segments` full segments take on a link of 100 Mbit/s.
fn on_the_link(segments: u64) -> f64 {
    (segments * 1_514 * 8) as f64 / 100e6
}

/// `flows` flows of `segments` segments each from host 0 to host 1, begun at once: when the last is through.
fn many(queue: &str, flows: u64, segments: u64) -> (f64, NetworkFigures) {
    let mut network = rack(2, queue);
    for token in 0..flows {
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        network.send(SimTime::ZERO, flow, segments * 1_448, Token(token));
    }
    let deliveries = run_all(&mut network);
    assert_eq!(deliveries.len() as u64, flows);
    (deliveries.last().unwrap().at.as_secs_f64(), network.figures())
}

#[test]
fn no_data_is_lost_at_its_own_host_whatever_the_number_of_flows() {
    for (queue, flows) in
        [("1 packets", 1), ("1 packets", 40), ("170 packets", 100), ("170 packets", 500), ("20kB", 60)]
    {
        let segments = 200;
        let (_, figures) = many(queue, flows, segments);
        let link = figures.links.iter().find(|link| link.name == "w0->rack0").unwrap();
        // Each segment once: none was lost, and none was sent again.
        assert_eq!((link.packets, link.bytes), (flows * segments, flows * segments * 1_514), "{queue}, {flows} flows");
        assert_eq!((figures.drops, figures.retransmissions), (0, 0), "{queue}, {flows} flows");
        assert!(waited(&figures) > 0, "{queue}, {flows} flows");
        assert!(link.queue_max_bytes <= 170 * 1_514);
    }
}

#[test]
fn linux_own_queue_has_room_for_fifty_flows() {
    // First windows of 10 segments fit; later, small queues keep about two segments a flow.
    for flows in [1, 10, 50] {
        let (took, figures) = many("1000 packets", flows, 100);
        assert_eq!((waited(&figures), figures.drops, figures.retransmissions), (0, 0, 0), "{flows} flows");
        let ideal = on_the_link(flows * 100 + 1) + 12e-6;
        assert!((took / ideal - 1.0).abs() < 0.001, "{flows} flows: {took} s, expected {ideal} s");
    }
}

#[test]
fn what_found_no_room_is_tried_again_with_the_next_ack() {
    // One packet on the link and one behind it: the third of the window waits for an ACK, and nothing but an ACK calls
    // it. So two segments are out at a time, each acknowledged alone for the first 16, then both at once.
    let (took, figures) = many("1 packets", 1, 300);
    let (segment, ack) = (1_514.0 * 8.0 / 100e6, 66.0 * 8.0 / 100e6);
    let alone = 2.0 * segment + 2.0 * ack + 24e-6;
    let expected = 8.0 * alone + 142.0 * (alone + segment);
    assert!((took / expected - 1.0).abs() < 0.005, "{took} s, expected {expected} s");
    assert!((1..=300).contains(&waited(&figures)), "{}", waited(&figures));
}

#[test]
fn when_nothing_is_out_a_timer_tries_again() {
    // The second host's ACKs are far away: the queue is full of the first flow when the second one begins, with nothing
    // out. It tries again after the time-out of a connection that knows its handshake alone: 200 ms and a round trip.
    let mut network = rack(3, "1 packets");
    let first = network.open_flow(HostIndex(0), HostIndex(1));
    let second = network.open_flow(HostIndex(0), HostIndex(2));
    network.send(SimTime::ZERO, first, 10 * 1_448, Token(1));
    network.send(SimTime::ZERO, second, 1_448, Token(2));
    let deliveries = run_all(&mut network);
    assert_eq!(deliveries[1].token, Token(2));
    let handshake = 4 * 66 * 80_000 + 24_000_000;
    let expected = 200_000_000_000 + handshake + 2 * 1_514 * 80_000 + 12_000_000;
    assert_eq!(deliveries[1].at.0, expected);
    assert_eq!(network.figures().retransmissions, 0);
}

#[test]
fn acks_that_a_full_queue_drops_are_counted_apart_from_losses() {
    // Host 0 sends over many flows, and gets small messages whose ACKs find the queue full now and then.
    let mut network = rack(3, "1 packets");
    for token in 0..60 {
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        network.send(SimTime::ZERO, flow, 300_000, Token(token));
    }
    let back = network.open_flow(HostIndex(2), HostIndex(0));
    let mut deliveries = Vec::new();
    for token in 0..1_000 {
        let at = SimTime(token * 17_000_000);
        while network.advance(at, &mut deliveries) < at {}
        network.send(at, back, 100, Token(60 + token));
    }
    deliveries.extend(run_all(&mut network));
    let figures = network.figures();
    assert_eq!(deliveries.len(), 1_060);
    assert!(counter(&figures, "ACKs dropped at their host") > 0, "{:?}", figures.counters);
    assert_eq!(figures.drops, 0);
    assert!(figures.links.iter().all(|link| link.drops == 0));
}
