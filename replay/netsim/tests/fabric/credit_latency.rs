//! What a packet takes that meets nobody, on every kind of topology: the closed forms of `docs/fabric.md`, to the
//! picosecond.

use crate::common::{credit, lab, message, packets, store_and_forward};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::network::Simulation;
use netsim::time::SimTime;
use netsim::topology::HostPlace;

/// A link of 7 Gbit/s: a flit of 64 bytes takes 73,142 and 6/7 ps.
const LINK: &str = "{ rate = \"7Gbps\", delay = \"13ns\" }";
const DELAY: u64 = 13_000;
const RATE: u128 = 7_000_000_000;

/// Shapes with their hosts, and the mean number of switches between two of these, where there is a formula.
fn shapes() -> Vec<(String, &'static str, usize, Option<f64>)> {
    let tree = |k: u32, n: u32| {
        format!("{{ shape = \"k-ary-n-tree\", k = {k}, n = {n}, host_link = {LINK}, uplink = {LINK} }}")
    };
    let grid = |shape: &str| format!("{{ shape = \"{shape}\", size = [8, 8], host_link = {LINK}, link = {LINK} }}");
    let racks = format!("{{ shape = \"racks\", host_link = {LINK}, uplink = {LINK} }}");
    let full = format!("{{ shape = \"fat-tree\", cores = 3, host_link = {LINK}, uplink = {LINK} }}");
    vec![
        (racks.clone(), "ecmp", 4, None),
        (racks, "d-mod-k", 12, None),
        (full, "random", 12, None),
        (tree(4, 3), "adaptive", 64, Some(4.4286)),
        (tree(2, 4), "d-mod-k", 16, None),
        (grid("torus"), "dor", 64, Some(5.0635)),
        (grid("mesh"), "dor", 64, Some(6.3333)),
        (grid("torus"), "bubble", 64, Some(5.0635)),
    ]
}

/// T(flits) of one flit after the other, from rest.
fn flits(flits: u64, flit: u64, gap: u64) -> u64 {
    u64::try_from(u128::from(flits * flit * 8) * 1_000_000_000_000 / RATE).unwrap() + (flits - 1) * gap
}

fn hosts(count: usize) -> Vec<HostPlace> {
    lab(count / 4, 4)
}

/// One packet of `bytes` from each host to each other one, with so long between them that none meets another.
fn one_by_one(fabric: &mut impl PacketFabric<Vec<PacketRecord>>, hosts: u32, bytes: u64) -> Vec<PacketRecord> {
    let mut now = SimTime(1);
    for source in 0..hosts {
        for destination in (0..hosts).filter(|host| *host != source) {
            fabric.run_before(now);
            fabric.send(now, &message(source, destination, bytes, 0));
            now = now.plus_ps(50_000_001);
        }
    }
    packets(fabric)
}

fn mean_switches(packets: &[PacketRecord]) -> f64 {
    packets.iter().map(|packet| f64::from(packet.switches)).sum::<f64>() / packets.len() as f64
}

#[test]
fn cutting_through_a_switch_costs_a_flit_and_its_delay() {
    for (topology, routing, count, mean) in shapes() {
        let text = format!(
            "topology = {topology}\nrouting = \"{routing}\"\nvls = 2\ncredits = 40\nmtu = \"1000B\"\nswitch_delay = \"150ns\"\nflit_gap = \"70ps\""
        );
        let mut fabric = credit(&text, &hosts(count));
        let hosts = fabric.hosts();
        let packets = one_by_one(&mut fabric, hosts, 900);
        assert_eq!(packets.len() as u32, hosts * (hosts - 1));
        // 900 B and 26 B of headers are 15 flits.
        for packet in &packets {
            let n = u64::from(packet.switches);
            let expected = n * (flits(1, 64, 70) + 150_000) + flits(15, 64, 70) + (n + 1) * DELAY;
            assert_eq!(packet.arrived.since_ps(packet.left), expected, "{topology} {routing} {packet:?}");
            assert_eq!((packet.left, packet.bytes, packet.flits), (packet.handed_over, 926, 15));
        }
        if let Some(mean) = mean {
            assert!((mean_switches(&packets) - mean).abs() < 0.0001, "{topology}: {}", mean_switches(&packets));
        }
    }
}

#[test]
fn a_whole_packet_costs_itself_at_every_switch() {
    for (topology, routing, count, _) in shapes() {
        let text = format!(
            "topology = {topology}\nrouting = \"{routing}\"\nvls = 2\ncredits = 40\nmtu = \"1000B\"\nheaders = \"0B\"\nflit = \"100B\"\nstart = \"whole-packet\""
        );
        let mut fabric = credit(&text, &hosts(count));
        let hosts = fabric.hosts().min(16);
        for packet in one_by_one(&mut fabric, hosts, 1_000) {
            let n = u64::from(packet.switches);
            let expected = n * (flits(10, 100, 0) + 200_000) + flits(10, 100, 0) + (n + 1) * DELAY;
            assert_eq!(packet.arrived.since_ps(packet.left), expected, "{topology} {routing} {packet:?}");
        }
    }
}

#[test]
fn storing_and_forwarding_costs_a_packet_at_every_link() {
    for (topology, routing, count, mean) in shapes() {
        let routing = if routing == "adaptive" { "s-mod-k" } else { routing };
        let text = format!(
            "topology = {topology}\nrouting = \"{routing}\"\nmtu = \"1000B\"\nheaders = \"26B\"\nswitch_delay = \"3us\""
        );
        let mut fabric = store_and_forward(&text, &hosts(count));
        let hosts = fabric.hosts();
        let packets = one_by_one(&mut fabric, hosts, 900);
        for packet in &packets {
            let n = u64::from(packet.switches);
            let expected = (n + 1) * (flits(926, 1, 0) + DELAY) + n * 3_000_000;
            assert_eq!(packet.arrived.since_ps(packet.left), expected, "{topology} {routing} {packet:?}");
        }
        if let Some(mean) = mean {
            assert!((mean_switches(&packets) - mean).abs() < 0.0001, "{topology}: {}", mean_switches(&packets));
        }
    }
}

#[test]
fn a_packet_that_goes_on_faster_waits_until_it_has_arrived() {
    // 1,024 B at 8 Gbit/s take 1,024 ns, a flit 64 ns; at 32 Gbit/s 256 ns and 16 ns.
    let topology = |host: u32, up: u32| {
        format!(
            "topology = {{ shape = \"racks\", joined = \"direct\", host_link = {{ rate = \"{host}Gbps\" }}, uplink = {{ rate = \"{up}Gbps\" }} }}\nmtu = \"1KiB\"\nheaders = \"0B\"\nswitch_delay = \"100ns\""
        )
    };
    let latency = |text: &str| {
        let mut fabric = credit(text, &lab(2, 1));
        fabric.send(SimTime(5), &message(0, 1, 1_024, 0));
        packets(&mut fabric)[0].arrived.since_ps(SimTime(5))
    };
    // Whole at the first switch, then cut through from fast to slow.
    assert_eq!(latency(&topology(8, 32)), 1_024_000 + 100_000 + 16_000 + 100_000 + 1_024_000);
    // Cut through from fast to slow, then whole.
    assert_eq!(latency(&topology(32, 8)), 16_000 + 100_000 + 1_024_000 + 100_000 + 256_000);
}
