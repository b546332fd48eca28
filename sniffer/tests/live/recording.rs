//! Real packets between network namespaces: every byte that was sent is in the record, once; what is lost is counted.

use std::fs::File;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use crate::support::{Agent, Exchange, Pair, SmallDisk, exchange, request, serve, sh, wait_until};
use crate::traffic::packets_of;
use etherparse::PacketBuilder;
use nix::sys::signal::Signal;
use serde_json::Value;
use trace::capture_note::CaptureNoteKind;
use trace::packet::{Direction, Packet, PacketReader, flag};

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

fn start(pair: &Pair, out: &Path, options: &[&str]) -> Agent {
    Agent::start(SNIFFER, &pair.left, "sniffer.json", out, &[&["--ring", "8MiB"], options].concat())
}

/// Payload bytes that `from` sent to `to`, each sequence number once.
fn unique_bytes(packets: &[Packet], from: SocketAddr, to: SocketAddr) -> u64 {
    let of_flow = || packets.iter().filter(|p| p.source == from && p.destination == to);
    let first = of_flow().find(|p| p.has(flag::SYN)).expect("no SYN").sequence.wrapping_add(1);
    let mut ranges: Vec<(u32, u32)> = of_flow()
        .filter(|p| p.payload_length > 0)
        .map(|p| (p.sequence.wrapping_sub(first), p.sequence.wrapping_sub(first) + p.payload_length))
        .collect();
    ranges.sort_unstable();
    let (mut bytes, mut end) = (0u64, 0u32);
    for (from, to) in ranges {
        bytes += u64::from(to.saturating_sub(end.max(from)));
        end = end.max(to);
    }
    bytes
}

fn interface(manifest: &Value, name: &str) -> Value {
    manifest["interfaces"].as_array().unwrap().iter().find(|i| i["name"] == name).unwrap().clone()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn every_byte_sent_is_recorded() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &[]);
    let Exchange { client, server } = exchange(&pair, 300, 10_007, 54_321);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    assert_eq!((&manifest["ready"], &manifest["ended"]), (&Value::Bool(true), &Value::Bool(true)));

    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    assert_eq!(unique_bytes(&packets, client, server), 300 * 10_007);
    assert_eq!(unique_bytes(&packets, server, client), 54_321);
    assert_eq!(interface(&manifest, "eth0")["packets"], packets.len());
    for packet in &packets {
        let out = packet.source.ip().to_string() == Pair::LEFT;
        assert_eq!(packet.direction, if out { Direction::Out } else { Direction::In });
        assert!(packet.payload.iter().all(|byte| *byte == if out { b'q' } else { b'a' }));
    }
    let kept: usize = packets.iter().map(|packet| packet.payload.len()).sum();
    assert!(kept > 0 && kept < 400_000, "{kept} bytes of payload were kept");
    assert_eq!(interface(&manifest, "lo")["packets"], 0);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_packet_on_loopback_is_recorded_once() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &[]);
    // A host reaches its own address over lo as well.
    let ends = Pair::within(&pair.left, || {
        let listener = TcpListener::bind((Pair::LEFT, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let client = std::thread::spawn(move || request(address, 10, 100_000));
        assert_eq!(serve(&listener, 10), 1_000_000);
        client.join().unwrap().0
    });
    let ends = ends.join().unwrap();
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-lo.hpk"));
    assert!(packets.iter().all(|packet| packet.direction == Direction::Loopback));
    assert_eq!(packets.iter().filter(|packet| packet.has(flag::SYN)).count(), 2);
    let sent: u64 = packets.iter().filter(|p| p.source == ends.client).map(|p| u64::from(p.payload_length)).sum();
    assert_eq!((sent, unique_bytes(&packets, ends.client, ends.server)), (1_000_000, 1_000_000));
}

/// An Ethernet frame with a TCP segment that says `text`, in as many VLAN tags as `tags` has.
fn tagged(tags: &[u16], text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [0xff; 6]).ipv4([10, 98, 0, 2], [10, 98, 0, 1], 64);
    builder.tcp(9866, 40_000, 1, 1).write(&mut plain, text).unwrap();
    let mut frame = plain[..12].to_vec();
    for (i, tag) in tags.iter().enumerate() {
        frame.extend_from_slice(if i + 1 < tags.len() { &[0x88, 0xa8] } else { &[0x81, 0x00] });
        frame.extend_from_slice(&tag.to_be_bytes());
    }
    frame.extend_from_slice(&plain[12..]);
    frame
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn frames_with_vlan_tags_are_recorded() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &[]);
    let sender = Pair::within(&pair.right, || {
        let mut wire = pcap::Capture::from_device("eth0").unwrap().open().unwrap();
        for (tags, text) in [(&[][..], b"plain "), (&[5], b"tagged"), (&[7, 5], b"twice ")] {
            wire.sendpacket(tagged(tags, text)).unwrap();
        }
    });
    sender.join().unwrap();
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    // The kernel answers the plain one (nobody listens); the tagged ones are for a network that is not there.
    let sent: Vec<_> = packets.iter().filter(|packet| packet.direction == Direction::In).collect();
    let texts: Vec<&[u8]> = sent.iter().map(|packet| packet.payload.as_slice()).collect();
    assert_eq!(texts, [&b"plain "[..], b"tagged", b"twice "]);
    assert_eq!(sent.iter().map(|packet| packet.raw_length).collect::<Vec<_>>(), [60, 64, 68]);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn what_the_ring_could_not_hold_is_counted() {
    let pair = Pair::new();
    for namespace in [&pair.left, &pair.right] {
        sh(&format!("ip netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
    }
    exchange(&pair, 1, 1, 1);
    let folder = tempfile::tempdir().unwrap();
    let options = ["--ring", "512KiB", "--interface", "eth0", "--filter", ""];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
    let before = pair.interface_packets();
    agent.signal(Signal::SIGSTOP);
    exchange(&pair, 20_000, 500, 100);
    agent.signal(Signal::SIGCONT);
    let passed = pair.interface_packets() - before;
    let (code, manifest) = agent.stop();
    let eth0 = interface(&manifest, "eth0");
    let count = |key: &str| eth0[key].as_u64().unwrap();
    assert!(count("kernel_drops") > 0, "nothing was lost: {eth0}, {passed} packets");
    assert_eq!(code, 1, "a loss has to show");
    let seen = count("packets") + count("other") + count("unparsed");
    assert_eq!(seen + count("kernel_drops"), passed, "{eth0}");
    assert_eq!(packets_of(&folder.path().join("packets-eth0.hpk")).len() as u64, count("packets"));
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_killed_sniffer_leaves_a_file_that_can_be_read_and_continued() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk");
    let mut survived = 0;
    let kills = kills(8);
    for run in 0..kills {
        let agent = start(&pair, folder.path(), &["--pcapng"]);
        assert_eq!(agent.manifest()["earlier_runs"].as_array().map_or(0, Vec::len), run);
        let busy = std::thread::scope(|scope| {
            let traffic = scope.spawn(|| exchange(&pair, 3_000, 1_000, 100));
            std::thread::sleep(std::time::Duration::from_millis(some_moment(run)));
            agent.kill();
            traffic.join().unwrap()
        });
        let packets = packets_of(&path);
        assert!(packets.len() >= survived, "run {run} lost what the runs before had recorded");
        assert!(packets.iter().all(|p| p.source.ip() == busy.client.ip() || p.source.ip() == busy.server.ip()));
        survived = packets.len();
    }
    let agent = start(&pair, folder.path(), &[]);
    let ends = exchange(&pair, 10, 1_000, 100);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&path);
    assert_eq!(
        packets.len() - survived,
        usize::try_from(interface(&manifest, "eth0")["packets"].as_u64().unwrap()).unwrap()
    );
    assert_eq!(unique_bytes(&packets[survived..], ends.client, ends.server), 10_000);
    // Each time that it was broken off is marked, with the time that is missing; the orderly end is no gap.
    let mut reader = PacketReader::new(BufReader::new(File::open(&path).unwrap())).unwrap();
    while reader.next_packet().unwrap().is_some() {}
    let notes = reader.notes();
    let restarts = notes.iter().filter(|note| note.kind == CaptureNoteKind::Restart);
    assert_eq!(restarts.clone().count(), kills);
    assert!(restarts.clone().all(|note| note.is_gap() && note.from_ns > 0 && note.from_ns < note.to_ns));
    assert_eq!(notes.last().map(|note| note.kind), Some(CaptureNoteKind::End));
}

/// How often an agent is killed: `HADOPTIC_KILLS=200` for the long run.
fn kills(usually: usize) -> usize {
    std::env::var("HADOPTIC_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Milliseconds after the begin, another one in each run.
fn some_moment(run: usize) -> u64 {
    (run as u64).wrapping_mul(2_654_435_761) % 320
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_full_disk_costs_records_that_are_counted_and_nothing_else() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let _mounted = SmallDisk::mount(folder.path(), "128k");
    let agent = start(&pair, folder.path(), &[]);
    wait_until("lost records", || {
        exchange(&pair, 2_000, 300, 100);
        interface(&agent.manifest(), "eth0")["unwritten"].as_u64() > Some(0)
    });
    let (code, manifest) = agent.stop();
    let eth0 = interface(&manifest, "eth0");
    assert_eq!(code, 1, "{manifest}");
    assert!(manifest["problems"][0].as_str().unwrap().contains("could not be written"), "{manifest}");
    let in_file = packets_of(&folder.path().join("packets-eth0.hpk")).len() as u64;
    assert_eq!(in_file + eth0["unwritten"].as_u64().unwrap(), eth0["packets"].as_u64().unwrap());
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn an_interface_that_vanishes_is_told_and_the_others_are_recorded_on() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &[]);
    let ends = exchange(&pair, 10, 1_000, 100);
    sh(&format!("ip -n {} link del eth0", pair.left));
    wait_until("the problem", || agent.manifest()["problems"].to_string().contains("eth0: recording ended early"));
    let on_lo = Pair::within(&pair.left, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = std::thread::spawn(move || request(address, 10, 1_000));
        serve(&listener, 10);
        client.join().unwrap().0
    });
    let on_lo = on_lo.join().unwrap();
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    assert_eq!(unique_bytes(&packets, ends.client, ends.server), 10_000);
    let packets = packets_of(&folder.path().join("packets-lo.hpk"));
    assert_eq!(unique_bytes(&packets, on_lo.client, on_lo.server), 10_000);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn the_counts_so_far_are_told_at_a_signal() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let mut agent = start(&pair, folder.path(), &[]);
    exchange(&pair, 10, 1_000, 100);
    wait_until("packets in the manifest", || interface(&agent.manifest(), "eth0")["packets"].as_u64() > Some(9));
    agent.signal(Signal::SIGUSR1);
    wait_until("the counts", || agent.said().contains(" packets recorded, 0 lost"));
    let stated = agent.said();
    let eth0 = stated.lines().find(|line| line.starts_with("eth0: ")).unwrap();
    assert!(eth0.split(' ').nth(1).unwrap().parse::<u64>().unwrap() > 9, "{stated}");
    assert_eq!(agent.stop().0, 0);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn without_payload_there_is_none_in_the_file() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &["--payload", "0"]);
    let ends = exchange(&pair, 50, 3_000, 100);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    assert!(packets.iter().all(|packet| packet.payload.is_empty()));
    assert_eq!(unique_bytes(&packets, ends.client, ends.server), 150_000);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_run_ends_by_itself_after_its_duration() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(SNIFFER)
        .args(["run", "--interface", "lo", "--ring", "1MiB", "--duration", "50ms", "--json"])
        .args(["--keep-free", "0", "--out"])
        .arg(folder.path().join("a/b"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(manifest["ended"], true);
    assert!(String::from_utf8_lossy(&output.stderr).contains("lo: "));
}
