//! Connections come out right whatever TCP and the capture do to their packets.

use crate::world::{DELAY_NS, MS, World, assert_bytes_are_conserved, at, connections};
use trace::packet::{Direction, flag};

fn two() -> World {
    World::new(&["w1", "w2"])
}

#[test]
fn both_sides_are_one_connection_with_times_of_both() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [1000, 9000], at(0));
    world.say(&mut talk, true, at(10), &[1; 60]);
    world.say(&mut talk, true, at(15), &[1; 40]);
    world.say(&mut talk, false, at(20), &[2; 5000]);
    world.close(&mut talk, at(30));
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let all = connections(&merged);
    let [row] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((row.client.as_str(), row.server.as_str()), ("10.0.0.1:40000", "10.0.0.2:8020"));
    assert_eq!((row.client_bytes, row.server_bytes), (100, 5000));
    assert!(row.syn_seen && row.end_seen && !row.loopback);
    assert_eq!((row.client_missing_bytes, row.server_missing_bytes), (0, 0));
    assert_eq!(row.handshake_ns, Some(2 * DELAY_NS));
    let segments = &merged.joined.streams.stream(row.connection, true).unwrap().segments;
    assert_eq!((segments[0].sent_ns, segments[0].delivered_ns), (at(10), at(10) + DELAY_NS));
    let windows: Vec<u64> = segments.iter().map(|segment| segment.window_bytes).collect();
    assert_eq!(windows, [65_160, 502 << 7], "that of the SYN as it stands, then scaled as the handshake tells");
}

#[test]
fn a_port_used_again_is_another_connection() {
    let mut world = two();
    for (number, isn) in [5000u32, 4_000_000_000, 77].into_iter().enumerate() {
        let t = at(number as u64 * 100);
        let mut talk = world.connect((0, 40_000), (1, 8020), [isn, isn ^ 0x55], t);
        world.say(&mut talk, true, t + 10 * MS, &vec![1; 100 + number]);
        world.close(&mut talk, t + 20 * MS);
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let bytes: Vec<u64> = connections(&merged).into_iter().map(|row| row.client_bytes).collect();
    assert_eq!(bytes, [100, 101, 102]);
    assert!(connections(&merged).into_iter().all(|row| row.syn_seen && row.end_seen));
}

#[test]
fn a_syn_sent_twice_is_one_connection() {
    let mut world = two();
    let talk = world.talk((0, 40_000), (1, 8020), [5, 6]);
    world.packet(&talk, true, at(0), 5, flag::SYN, &[], 64_240);
    let mut talk = world.connect((0, 40_000), (1, 8020), [5, 6], at(1000));
    world.say(&mut talk, true, at(1100), &[1; 10]);
    let merged = world.merged();
    assert_eq!(merged.joined.connections.len(), 1);
    assert_eq!(connections(&merged)[0].handshake_ns, Some(2 * DELAY_NS));
}

#[test]
fn sequence_numbers_wrap() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [u32::MAX - 3000, 1], at(0));
    world.say(&mut talk, true, at(10), &[1; 10_000]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].client_bytes, 10_000);
    assert_eq!(connections(&merged)[0].client_missing_bytes, 0);
}

#[test]
fn a_connection_that_was_open_before_begins_with_its_first_byte() {
    let mut world = two();
    let mut talk = world.talk((0, 40_000), (1, 8020), [1_000_000, 2_000_000]);
    world.say(&mut talk, true, at(10), &[1; 3000]);
    world.say(&mut talk, false, at(20), &[2; 50]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert!(!row.syn_seen);
    assert_eq!((row.client_bytes, row.server_bytes), (3000, 50));
    assert_eq!((row.client_missing_bytes, row.server_missing_bytes), (0, 0));
    assert_eq!(row.server, "10.0.0.2:8020", "the lower port serves where nothing else tells");
}

#[test]
fn keep_alive_probes_are_no_payload() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 100]);
    for probe in 0..3 {
        // One byte below the next one, with a byte of garbage, as some systems send it; and without, as Linux does.
        world.packet(&talk, true, at(100 + probe * 10), 200, flag::ACK, &[0], 502);
        world.packet(&talk, true, at(105 + probe * 10), 200, flag::ACK, &[], 502);
        world.packet(&talk, false, at(106 + probe * 10), 201, flag::ACK, &[], 502);
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_missing_bytes, row.client_retransmitted_bytes), (100, 0, 0));
}

#[test]
fn what_is_sent_again_counts_once_and_arrives_in_order() {
    let mut world = two();
    let talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.packet(&talk, true, at(10), 101, flag::ACK, &[1; 500], 502);
    // Lost on the way: only the sender saw it; the next one arrives before it is sent again.
    let before = world.hosts[1].eth0.len();
    world.packet(&talk, true, at(11), 601, flag::ACK, &[2; 500], 502);
    world.hosts[1].eth0.truncate(before);
    world.packet(&talk, true, at(12), 1101, flag::ACK, &[3; 500], 502);
    world.packet(&talk, true, at(40), 601, flag::ACK, &[2; 500], 502);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_retransmitted_bytes, row.client_missing_bytes), (1500, 500, 0));
    let segments = &merged.joined.streams.stream(row.connection, true).unwrap().segments;
    let stated: Vec<(u64, u64, u64, bool)> =
        segments.iter().map(|s| (s.offset, s.sent_ns, s.delivered_ns, s.retransmitted)).collect();
    assert_eq!(
        stated,
        [
            (0, at(10), at(10) + DELAY_NS, false),
            (500, at(11), at(40) + DELAY_NS, true),
            (1000, at(12), at(40) + DELAY_NS, false),
        ]
    );
    assert_eq!(segments[2].in_flight_bytes, 1000);
}

#[test]
fn what_the_capture_lost_is_counted_as_missing() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 100]);
    let before = [world.hosts[0].eth0.len(), world.hosts[1].eth0.len()];
    world.say(&mut talk, true, at(20), &[2; 700]);
    world.hosts[0].eth0.truncate(before[0]);
    world.hosts[1].eth0.truncate(before[1]);
    world.say(&mut talk, true, at(30), &[3; 100]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_missing_bytes), (200, 700));
}

#[test]
fn what_one_host_lost_comes_from_the_other() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 100]);
    let before = world.hosts[0].eth0.len();
    let arrived = world.say(&mut talk, true, at(20), &[2; 700]);
    world.hosts[0].eth0.truncate(before);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_missing_bytes), (800, 0));
    assert_eq!(merged.joined.streams.stream(row.connection, true).unwrap().segments[1].sent_ns, arrived);
}

#[test]
fn half_a_capture_still_tells_both_directions() {
    for captured in [0, 1] {
        let mut world = two();
        let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
        world.say(&mut talk, true, at(10), &[1; 3000]);
        world.say(&mut talk, false, at(20), &[2; 400]);
        let mut half = world;
        half.hosts = vec![half.hosts[captured].clone()];
        let merged = half.merged();
        assert_bytes_are_conserved(&merged);
        let row = &connections(&merged)[0];
        assert_eq!((row.client_bytes, row.server_bytes), (3000, 400));
        let peers: Vec<(&str, bool)> =
            merged.joined.hosts.iter().map(|host| (host.name.as_str(), host.captured)).collect();
        let other = ["10.0.0.2", "10.0.0.1"][captured];
        assert_eq!(peers, [(["w1", "w2"][captured], true), (other, false)]);
    }
}

#[test]
fn loopback_is_seen_once_and_has_one_host() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (0, 9866), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 3000]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert!(row.loopback);
    assert_eq!((row.client_bytes, row.client_retransmitted_bytes), (3000, 0));
    let segment = merged.joined.streams.stream(row.connection, true).unwrap().segments[0];
    assert_eq!((segment.sent_ns, segment.delivered_ns), (at(10), at(10)));
}

#[test]
fn addresses_of_loopback_mean_another_host_on_each_host() {
    let mut world = two();
    for host in 0..2 {
        let mut talk = world.connect((host, 40_000), (host, 9866), [100, 200], at(host as u64));
        world.say(&mut talk, true, at(10), &vec![1; 100 + host]);
        for packet in &mut world.hosts[host].lo {
            packet.source.set_ip([127, 0, 0, 1].into());
            packet.destination.set_ip([127, 0, 0, 1].into());
        }
    }
    let merged = world.merged();
    let rows: Vec<(u32, u64)> =
        connections(&merged).into_iter().map(|row| (row.client_host.0, row.client_bytes)).collect();
    assert_eq!(rows, [(0, 100), (1, 101)]);
}

#[test]
fn giant_segments_are_matched_by_their_bytes() {
    let mut world = two();
    world.segment = 65_000;
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 130_000]);
    // The receiver's card had cut them to the size of the wire, a packet each 10 µs.
    let whole: Vec<_> = world.hosts[1].eth0.drain(..).collect();
    for packet in whole {
        if packet.direction == Direction::Out && packet.flags == flag::ACK {
            continue;
        }
        if packet.payload_length == 0 {
            world.hosts[1].eth0.push(packet);
            continue;
        }
        for (number, start) in (0..packet.payload_length).step_by(1448).enumerate() {
            let mut part = packet.clone();
            part.sequence = packet.sequence.wrapping_add(start);
            part.payload_length = 1448.min(packet.payload_length - start);
            part.time_ns += number as u64 * 10_000;
            world.hosts[1].eth0.push(part);
        }
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_retransmitted_bytes), (130_000, 0));
    let segments = &merged.joined.streams.stream(row.connection, true).unwrap().segments;
    assert_eq!(segments.len(), 2, "as the sender's host saw them");
    assert_eq!(segments[0].delivered_ns, at(10) + DELAY_NS + 44 * 10_000, "with the last of their pieces");
}

#[test]
fn a_packet_seen_on_a_bridge_and_its_port_is_one_packet() {
    let mut world = two();
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(10), &[1; 3000]);
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    std::fs::copy(folder.path().join("w1/packets-eth0.hpk"), folder.path().join("w1/packets-br0.hpk")).unwrap();
    let merged = merger::build::merge(&[folder.path().to_owned()], &merger::build::Silent).unwrap();
    assert_bytes_are_conserved(&merged);
    let row = &connections(&merged)[0];
    assert_eq!((row.client_bytes, row.client_retransmitted_bytes), (3000, 0));
    assert!(merged.joined.losses.iter().any(|loss| loss.what().contains("two interfaces")));
}
