//! The Ethernet fabric against closed forms: times to the picosecond, throughput, fairness, loss and its repair.

use crate::common::{config, fabric, lab, run_all};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;

/// Picoseconds that a frame of `bytes` takes at 100 Mbit/s.
const fn at_100m(bytes: u64) -> u64 {
    bytes * 80_000
}

#[test]
fn one_packet_takes_the_sum_of_serialisation_and_delays() {
    let text = r#"
        kind = "ethernet"
        switch_delay = "7ns"
        host_delay = "1us"
        topology = { shape = "racks", host_link = { rate = "100mbit", length = "50m" }, uplink = { rate = "1Gbps", delay = "3us" } }
    "#;
    let mut network = fabric(text, &lab(2, 2));
    // Hosts 0 and 1 share a rack, 2 and 3 the other.
    let near = network.open_flow(HostIndex(0), HostIndex(1));
    let far = network.open_flow(HostIndex(0), HostIndex(2));
    network.send(SimTime::ZERO, near, 934, Token(1));
    let deliveries = run_all(&mut network);
    // 934 + 52 + 14 = 1,000 bytes on the wire; 250 ns of cable a link; the host's own microsecond.
    let expected = 2 * (at_100m(1_000) + 250_000) + 7_000 + 1_000_000;
    assert_eq!(deliveries[0].at.0, expected);

    let start = SimTime(1_000_000_000_000);
    network.advance(start, &mut Vec::new());
    network.send(start, far, 934, Token(2));
    let deliveries = run_all(&mut network);
    let expected = 2 * (at_100m(1_000) + 250_000) + at_100m(1_000) / 10 + 3_000_000 + 2 * 7_000 + 1_000_000;
    assert_eq!(deliveries[0].at.since_ps(start), expected);
}

#[test]
fn a_bulk_flow_gets_the_payloads_share_of_the_rate() {
    let mut network = fabric(&config("100mbit", "100mbit"), &lab(2, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(2));
    let bytes = 100_000_000;
    network.send(SimTime::ZERO, flow, bytes, Token(1));
    let deliveries = run_all(&mut network);
    let ideal = bytes as f64 * 8.0 / 100e6 * 1514.0 / 1448.0;
    let took = deliveries[0].at.as_secs_f64();
    assert!((took / ideal - 1.0).abs() < 0.01, "{took} s, expected {ideal} s");
    assert_eq!(network.figures().drops, 0, "a flow must not overflow its own host's queue");
}

#[test]
fn cores_of_a_fat_tree_add_a_hop_each_way() {
    let text = r#"
        kind = "ethernet"
        host_delay = "0ns"
        topology = { shape = "fat-tree", cores = 4, host_link = { rate = "100mbit" }, uplink = { rate = "1Gbps" } }
    "#;
    let mut network = fabric(text, &lab(3, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(5));
    network.send(SimTime::ZERO, flow, 934, Token(1));
    // Two host links and two uplinks of a tenth of the time.
    assert_eq!(run_all(&mut network)[0].at.0, 2 * at_100m(1_000) + 2 * at_100m(100));
}

#[test]
fn a_message_of_nothing_crosses_the_network_as_one_small_packet() {
    let mut network = fabric(&config("100mbit", "100mbit"), &lab(1, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    network.send(SimTime::ZERO, flow, 0, Token(1));
    let deliveries = run_all(&mut network);
    assert_eq!(deliveries[0].at.0, 2 * at_100m(67) + 12_000_000);
}

#[test]
fn two_flows_share_a_link_fairly_and_use_it_up() {
    let mut network = fabric(&config("100mbit", "100mbit"), &lab(1, 3));
    let bytes = 60_000_000;
    for source in [0, 1] {
        let flow = network.open_flow(HostIndex(source), HostIndex(2));
        network.send(SimTime::ZERO, flow, bytes, Token(u64::from(source)));
    }
    let deliveries = run_all(&mut network);
    let (first, last) = (deliveries[0].at.as_secs_f64(), deliveries[1].at.as_secs_f64());
    let ideal = 2.0 * bytes as f64 * 8.0 / 100e6 * 1514.0 / 1448.0;
    assert!(last / ideal < 1.02, "{last} s of at least {ideal} s");
    // Equal shares would end together; the one that wins must not have had more than two thirds on average.
    assert!(first / last > 0.75, "one flow took {first} s, the other {last} s");
}

#[test]
fn a_small_buffer_overflows_and_tcp_repairs_it() {
    let text = r#"
        kind = "ethernet"
        topology = { shape = "racks", host_link = { rate = "100mbit", buffer = "20 packets" } }
    "#;
    let mut network = fabric(text, &lab(1, 5));
    for source in 0..4 {
        let flow = network.open_flow(HostIndex(source), HostIndex(4));
        network.send(SimTime::ZERO, flow, 5_000_000, Token(u64::from(source)));
    }
    let deliveries = run_all(&mut network);
    let figures = network.figures();
    assert_eq!(deliveries.len(), 4);
    assert!(figures.drops > 0 && figures.retransmissions >= figures.drops, "{figures:?}");
    let to_receiver = figures.links.iter().find(|link| link.name == "rack0->w4").unwrap();
    assert_eq!(to_receiver.drops, figures.drops, "drops belong to the link that is short");
    assert!(to_receiver.queue_max_bytes <= 20 * 1514);
    let ideal = 20_000_000.0 * 8.0 / 100e6 * 1514.0 / 1448.0;
    let took = deliveries.last().unwrap().at.as_secs_f64();
    assert!(took < ideal * 1.2, "{took} s of at least {ideal} s");
}

#[test]
fn links_count_every_byte_in_its_interval() {
    let mut network = fabric(&config("100mbit", "100mbit"), &lab(1, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    let bytes = 5_000_000;
    network.send(SimTime::ZERO, flow, bytes, Token(0));
    run_all(&mut network);
    let figures = network.figures();
    let up = figures.links.iter().find(|link| link.name == "w0->rack0").unwrap();
    let packets = bytes.div_ceil(1_448);
    assert_eq!((up.packets, up.bytes), (packets, bytes + packets * 66));
    assert_eq!(up.bytes_by_interval().iter().sum::<u64>(), up.bytes);
    // 100 ms at 100 Mbit/s are 1,250,000 bytes.
    assert!((1_245_000..1_255_000).contains(&up.bytes_by_interval()[1]), "{:?}", up.bytes_by_interval());
    let back = figures.links.iter().find(|link| link.name == "w1->rack0").unwrap();
    assert!((packets / 2..packets).contains(&back.packets), "ACKs: {} for {packets}", back.packets);
    assert_eq!(back.bytes, back.packets * 66);
}

#[test]
fn traffic_of_a_host_to_itself_crosses_no_link() {
    let text = "kind = \"ethernet\"\nloopback = { rate = \"8Gbps\", latency = \"20us\" }\n";
    let mut network = fabric(text, &lab(1, 2));
    let (there, back) = network.open_connection(HostIndex(1), HostIndex(1));
    network.send(SimTime::ZERO, there, 1_000_000, Token(1));
    network.send(SimTime::ZERO, back, 1_000, Token(2));
    let deliveries = run_all(&mut network);
    assert_eq!(deliveries[0].at, SimTime(20_000_000 + 1_000_000));
    assert_eq!(deliveries[1].at, SimTime(20_000_000 + 1_000_000_000));
    assert!(network.figures().links.iter().all(|link| link.bytes == 0));
}

#[test]
fn a_pause_shrinks_the_window_and_a_window_holds_the_sender_back() {
    // 1 ms each way: a round trip of 2 ms and 10 segments a window are far below the link's rate.
    let text = r#"
        kind = "ethernet"
        slow_start_after_idle = IDLE
        topology = { shape = "racks", host_link = { rate = "10Gbps", delay = "500us", buffer = "unlimited" } }
    "#;
    let second_message = |idle: &str| {
        let mut network = fabric(&text.replace("IDLE", idle), &lab(1, 2));
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        network.send(SimTime::ZERO, flow, 20_000_000, Token(0));
        let mut deliveries = run_all(&mut network);
        let begin = deliveries[0].at.plus_ps(10_000_000_000_000);
        while network.advance(begin, &mut deliveries) < begin {}
        network.send(begin, flow, 100_000, Token(1));
        run_all(&mut network)[0].at.since_ps(begin)
    };
    let (restarted, kept) = (second_message("true"), second_message("false"));
    // 70 segments: 10 + 20 + 40 in three round trips after a restart, one window without.
    assert!((4_900_000_000..6_500_000_000).contains(&restarted), "{restarted} ps");
    assert!((900_000_000..2_000_000_000).contains(&kept), "{kept} ps");
}

#[test]
fn d_mod_k_takes_one_way_for_a_destination_and_ecmp_spreads_flows() {
    let used = |routing: &str| {
        let text = format!(
            "kind = \"ethernet\"\nrouting = \"{routing}\"\n[topology]\nshape = \"fat-tree\"\nnodes = 8\nracks = 2\ncores = 4\n"
        );
        let mut network = fabric(&text, &lab(2, 4));
        for token in 0..32 {
            let flow = network.open_flow(HostIndex(0), HostIndex(5));
            network.send(SimTime::ZERO, flow, 1_000, Token(token));
        }
        run_all(&mut network);
        let links = network.figures().links;
        links.iter().filter(|link| link.name.starts_with("rack0->core") && link.packets >= 1).count()
    };
    // With one way for data, the ACKs of host 0 come back over one other link at most.
    assert_eq!(used("d-mod-k"), 1);
    assert_eq!(used("ecmp"), 4);
}

/// Three hosts send one packet each to a fourth at once; the switch has room for two of them. When the third is there.
fn third_of_three(bytes: u64) -> (u64, u64) {
    let text = r#"
        kind = "ethernet"
        topology = { shape = "racks", host_link = { rate = "100mbit", buffer = "1 packets" } }
    "#;
    let mut network = fabric(text, &lab(1, 4));
    for source in 0..3 {
        let (flow, _) = network.open_connection(HostIndex(source), HostIndex(3));
        network.send(SimTime::ZERO, flow, bytes, Token(u64::from(source)));
    }
    let deliveries = run_all(&mut network);
    let figures = network.figures();
    assert_eq!((deliveries.len(), figures.drops, figures.retransmissions), (3, 1, 1));
    (deliveries[2].at.0, figures.counters.iter().find(|(name, _)| name == "time-outs").unwrap().1)
}

#[test]
fn a_lost_first_segment_is_repeated_after_200_ms_and_a_lost_syn_after_a_second() {
    // An open connection has measured its handshake: two frames of 66 bytes over two links, and 12 us at each end.
    let handshake = 4 * at_100m(66) + 24_000_000;
    let expected = 200_000_000_000 + handshake + 2 * at_100m(1_066) + 12_000_000;
    assert_eq!(third_of_three(1_000), (expected, 0), "the probe of a tail");
    let expected = 1_000_000_000_000 + 2 * at_100m(67) + 12_000_000;
    assert_eq!(third_of_three(0), (expected, 1));
}
