//! Clocks that were set wrong and run at different speeds make no difference to a trace.

use std::collections::BTreeMap;
use std::path::Path;

use crate::world::wire::{data_packets, read_block, read_response, rpc_preamble, rpc_request, rpc_response};
use crate::world::{SECOND, T0, World, at, connections};
use merger::build::{Silent, merge};
use merger::merged::Merged;
use trace::ids::ConnectionId;

/// By how much each host's clock is wrong at the start, and what it gains: nanoseconds, parts per million.
const WRONG: [(&str, i64, f64); 5] = [
    ("m1", 3_000_000, 25.0),
    ("w1", -150_000_000, -10.0),
    ("w2", 0, 0.0),
    ("w3", 95_000_000_000, 48.0),
    ("w4", -240_000_000_000, -37.0),
];
/// What is promised of the alignment.
const ALLOWED_NS: u64 = 10_000;

fn wrong(host: &str, t: u64) -> u64 {
    let Some((_, offset, ppm)) = WRONG.iter().find(|(name, ..)| *name == host) else { return t };
    let drift = (i128::from(t) - i128::from(T0)) as f64 * ppm * 1e-6;
    (i128::from(t) + i128::from(*offset) + drift.round() as i128) as u64
}

/// Five hosts that talk for a minute, with delays that differ from packet to packet.
fn talkative() -> World {
    let mut world = World::new(&["m1", "w1", "w2", "w3", "w4"]);
    let mut random = 12345u64;
    let mut jitter = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    for worker in 1..5usize {
        let mut talk = world.connect((worker, 40_000), (0, 8020), [7, 8], at(worker as u64));
        world.own(&talk, at(worker as u64), (100 + worker as u32, "DataNode"), (99, "NameNode"));
        world.say(&mut talk, true, at(10), &rpc_preamble());
        for beat in 0..120u64 {
            world.delay_ns = 30_000 + jitter(400_000);
            let t = at(20 + beat * 500) + jitter(3_000_000);
            let there = world.say(&mut talk, true, t, &rpc_request(beat as i64, "sendHeartbeat", 200));
            world.delay_ns = 30_000 + jitter(400_000);
            world.say(&mut talk, false, there + 300_000, &rpc_response(beat as i64, 20));
        }
        let other = worker % 4 + 1;
        let mut talk = world.connect((worker, 41_000), (other, 9866), [70, 80], at(5000));
        world.own(&talk, at(5000), (100 + worker as u32, "DataNode"), (100 + other as u32, "DataNode"));
        for round in 0..10u64 {
            world.delay_ns = 25_000 + jitter(200_000);
            let t = at(5010 + round * 5000);
            world.say(&mut talk, true, t, &read_block(round, "DFSClient_NONMAPREDUCE_1_1", 0, 200_000));
            let answer = [read_response(), data_packets(0, 200_000, 65_536)].concat();
            world.say(&mut talk, false, t + 900_000, &answer);
        }
    }
    world
}

type Times = BTreeMap<(String, String, bool, u64), [u64; 3]>;

fn message_times(merged: &Merged) -> Times {
    let ends = |connection: ConnectionId| {
        let row = &connections(merged)[connection.index()];
        (row.client.clone(), row.server.clone())
    };
    let rows = merged.joined.messages.iter().map(|m| {
        let (client, server) = ends(m.connection);
        ((client, server, m.from_client, m.offset), [m.sent_ns, m.sent_end_ns, m.delivered_ns])
    });
    rows.collect()
}

/// The same messages, all times within what is allowed of each other once the reference clocks are made one.
fn assert_same(straight: &Merged, distorted: &Merged) -> u64 {
    let reference = straight.joined.hosts[0].name.as_str();
    assert_eq!(distorted.joined.hosts[0].name, reference);
    let (a, b) = (message_times(straight), message_times(distorted));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let mut worst = 0;
    for (times, distorted) in a.values().zip(b.values()) {
        for (&t, &d) in times.iter().zip(distorted) {
            worst = worst.max(wrong(reference, t).abs_diff(d));
        }
    }
    assert!(worst <= ALLOWED_NS, "{worst} ns");
    worst
}

fn violations(merged: &Merged) -> u64 {
    merged.clocks.early_segments.beyond_uncertainty
}

#[test]
fn distorted_clocks_merge_to_the_same_trace() {
    let world = talkative();
    let straight = world.merged();
    assert_eq!(violations(&straight), 0);
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    distort(folder.path());
    let distorted = merge(&[folder.path().to_owned()], &Silent).unwrap();
    assert_eq!(violations(&distorted), 0);
    assert_same(&straight, &distorted);
    // The JVMs' and scans' records moved along: every connection has its owners.
    assert!(connections(&distorted).into_iter().all(|c| c.client_process.is_some() && c.server_process.is_some()));
    let found: BTreeMap<&str, f64> =
        distorted.clocks.hosts.iter().map(|clock| (clock.host.as_str(), clock.drift_ppm)).collect();
    let reference = WRONG.iter().find(|(name, ..)| *name == distorted.joined.hosts[0].name).unwrap().2;
    for (host, _, ppm) in WRONG {
        assert!((found[host] - (ppm - reference)).abs() < 1.0, "{host}: {} ppm", found[host]);
    }
}

#[test]
fn a_pair_that_met_for_a_moment_does_not_spoil_the_others() {
    let mut world = talkative();
    let mut talk = world.connect((2, 45_000), (4, 9866), [70, 80], at(30_000));
    for step in 0..60u64 {
        // For 60 ms, with a queue that builds up all the while.
        world.delay_ns = 20_000 + step * 40_000;
        world.say(&mut talk, true, at(30_001 + step), &[7; 300]);
    }
    assert_eq!(violations(&world.merged()), 0);
}

#[test]
fn hosts_without_a_packet_in_common_keep_their_clocks() {
    let mut world = World::new(&["w1", "w2"]);
    for host in 0..2 {
        let mut talk = world.connect((host, 40_000), (host, 9866), [1, 2], at(host as u64));
        world.say(&mut talk, true, at(10), &[1; 10]);
    }
    let merged = world.merged();
    assert!(merged.notes().iter().any(|note| note.contains("shares no packets with")), "{:?}", merged.notes());
    assert!(merged.joined.hosts.iter().all(|host| host.clock_offset_ns == 0));
}

#[test]
fn golden_captures_merge_the_same_with_distorted_clocks() {
    for capture in crate::world::golden_captures() {
        let straight = merge(std::slice::from_ref(&capture), &Silent).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_hosts(&capture, copy.path());
        distort(copy.path());
        let distorted = merge(&[copy.path().to_owned()], &Silent).unwrap();
        let worst = assert_same(&straight, &distorted);
        assert_eq!(violations(&distorted), 0);
        println!("{}: {worst} ns at worst", capture.display());
    }
}

fn copy_hosts(from: &Path, to: &Path) {
    for host in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let folder = to.join(host.file_name().unwrap());
        std::fs::create_dir(&folder).unwrap();
        for file in std::fs::read_dir(host).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// Sets the clocks of all hosts of a capture wrong.
fn distort(capture: &Path) {
    for folder in std::fs::read_dir(capture).unwrap().map(|entry| entry.unwrap().path()) {
        let host = folder.file_name().unwrap().to_string_lossy().into_owned();
        move_clock(&folder, |t| wrong(&host, t));
    }
    assert!(wrong("w1", T0 + SECOND) != T0 + SECOND);
}

/// What a clock shows that is set or slewed while it is recorded.
fn jumping(host: &str, jumps: impl Fn(u64) -> i64) -> (Merged, Merged) {
    let world = talkative();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    move_clock(&folder.path().join(host), |t| t.saturating_add_signed(jumps(t)));
    (world.merged(), merge(&[folder.path().to_owned()], &Silent).unwrap())
}

/// The largest difference of two merges, but for messages that were on their way within `within_ns` of `about`.
fn largest_difference(straight: &Merged, jumped: &Merged, about: &[u64], within_ns: u64) -> u64 {
    assert_eq!(straight.joined.hosts[0].name, jumped.joined.hosts[0].name);
    let (a, b) = (message_times(straight), message_times(jumped));
    let away = |times: &[u64; 3]| about.iter().all(|at| times.iter().all(|t| t.abs_diff(*at) > within_ns));
    // What a clock shows twice can be in another order; nothing else may be missing.
    assert!(a.iter().all(|(key, times)| b.contains_key(key) || !away(times)));
    let times = a.iter().filter(|(_, times)| away(times)).map(|(key, times)| (times, &b[key]));
    let worst = times.flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)));
    worst.max().unwrap()
}

#[test]
fn clocks_that_were_stepped_are_found_and_mended() {
    let half = at(30_000);
    for step_ns in [2_000_000i64, 1_000_000_000, -1_000_000_000, -2_000_000] {
        for host in ["w1", "m1"] {
            let (straight, jumped) = jumping(host, |t| if t >= half { step_ns } else { 0 });
            let [(found, jump)] = jumped.clocks.jumps.as_slice() else {
                panic!("{host} {step_ns}: {:?}", jumped.clocks.jumps)
            };
            assert_eq!(found, host);
            assert!(jump.step_ns.abs_diff(step_ns) < 200_000, "{host} {step_ns}: {jump:?}");
            assert!((jump.at_ns as u64).abs_diff(half) < 2 * SECOND, "{host} {step_ns}: {jump:?}");
            // What it showed twice is read as sent in another order, and so part of the block before it, five seconds earlier.
            let within_ns = if step_ns < -100_000_000 { 6 * SECOND } else { SECOND };
            let about = [half, half.saturating_add_signed(step_ns)];
            let worst = largest_difference(&straight, &jumped, &about, within_ns);
            assert!(worst < 200_000, "{host} {step_ns}: {worst} ns");
            let drift = jumped.clocks.hosts.iter().map(|clock| clock.drift_ppm.abs()).fold(0.0, f64::max);
            assert!(drift < 20.0, "{host} {step_ns}: {drift} ppm");
            let notes = jumped.notes().join("\n");
            assert!(notes.contains(&format!("{host}: its clock jumped by")), "{notes}");
        }
    }
}

#[test]
fn a_clock_that_was_slewed_is_found_and_mended() {
    // 500 ppm for 20 s: 10 ms.
    let (from, to) = (at(20_000), at(40_000));
    let slewed = |t: u64| (t.clamp(from, to) - from) as f64 * 500e-6;
    let (straight, jumped) = jumping("w2", |t| slewed(t) as i64);
    assert!(!jumped.clocks.jumps.is_empty() && jumped.clocks.jumps.iter().all(|(host, _)| host == "w2"));
    let worst = largest_difference(&straight, &jumped, &[from, to], SECOND);
    assert!(worst < 400_000, "{worst} ns: {:?}", jumped.clocks.jumps);
}

#[test]
fn two_clocks_that_were_stepped_are_both_mended() {
    let world = talkative();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    for (host, after, step_ns) in [("w1", at(20_000), 50_000_000), ("w3", at(40_000), 700_000_000)] {
        move_clock(&folder.path().join(host), |t| if t >= after { t + step_ns } else { t });
    }
    let (straight, jumped) = (world.merged(), merge(&[folder.path().to_owned()], &Silent).unwrap());
    let hosts: Vec<&str> = jumped.clocks.jumps.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["w1", "w3"], "{:?}", jumped.clocks.jumps);
    let worst = largest_difference(&straight, &jumped, &[at(20_000), at(40_000), at(40_700)], SECOND);
    assert!(worst < 200_000, "{worst} ns");
}

#[test]
fn one_stamp_that_cannot_be_is_no_jump_of_a_clock() {
    let mut world = talkative();
    let mut talk = world.connect((1, 45_000), (0, 9866), [70, 80], at(30_000));
    world.say(&mut talk, true, at(30_001), &[7; 300]);
    let straight = world.merged();
    let arrived = world.hosts[0].eth0.iter_mut().find(|packet| packet.payload_length == 300 && packet.payload[0] == 7);
    arrived.unwrap().time_ns -= 5_000_000;
    let merged = world.merged();
    assert_eq!(merged.clocks.jumps, []);
    assert_eq!((straight.clocks.contradicting, merged.clocks.hosts), (0, straight.clocks.hosts));
    assert!((1..16).contains(&merged.clocks.contradicting), "{}", merged.clocks.contradicting);
}

#[test]
fn golden_captures_with_a_stepped_clock_are_mended() {
    for capture in crate::world::golden_captures() {
        let straight = merge(std::slice::from_ref(&capture), &Silent).unwrap();
        let reference = straight.joined.hosts[0].name.clone();
        let (from, to) = straight.joined.window_ns;
        let half = from + (to - from) / 2;
        let copy = tempfile::tempdir().unwrap();
        copy_hosts(&capture, copy.path());
        let host = straight.joined.hosts.iter().find(|host| host.captured && host.name != reference).unwrap();
        move_clock(&copy.path().join(&host.name), |t| if t >= half { t + SECOND } else { t });
        let jumped = merge(&[copy.path().to_owned()], &Silent).unwrap();
        let found: Vec<_> = jumped.clocks.jumps.iter().map(|(host, jump)| (host.as_str(), jump)).collect();
        assert!(found.len() == 1 && found[0].0 == host.name, "{}: {found:?}", capture.display());
        assert!(found[0].1.step_ns.abs_diff(SECOND as i64) < 1_000_000, "{}: {found:?}", capture.display());
        let uncertainty = jumped.clocks.hosts.iter().map(|clock| clock.uncertainty_ns).max().unwrap();
        assert!(uncertainty < 5_000_000, "{}: {uncertainty} ns", capture.display());
        println!("{}: {:?}, at worst {uncertainty} ns off", capture.display(), found[0].1);
    }
}

/// Sets the clock of a host of a capture.
fn move_clock(folder: &Path, to: impl Fn(u64) -> u64 + Copy) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("packets-") {
            crate::world::rewrite::packets(&path, to);
        } else if name.contains(".jsonl") {
            crate::world::rewrite::lines(&path, to);
        }
    }
}
