//! Packet files rotate, and keep within what they may take of the disk.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::support::{Agent, Pair, exchange};
use sniffer::disk_quota::{DiskQuota, Limits, NoRoom, WhenFull};
use sniffer::show::show;
use sniffer::sink::PacketSink;
use trace::packet::{Direction, Packet, PacketFileHeader, Sack};

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

fn packet(sequence: u32) -> Packet {
    Packet {
        time_ns: u64::from(sequence),
        direction: Direction::Out,
        source: "10.1.0.1:1".parse().unwrap(),
        destination: "10.1.0.2:2".parse().unwrap(),
        raw_length: 1066,
        payload_length: 1000,
        sequence,
        acknowledgement: 0,
        flags: 0x10,
        window: 1,
        sack: Sack::default(),
        payload: vec![7; 1000],
    }
}

fn sink(folder: &Path, limits: Limits) -> (PacketSink, Arc<DiskQuota>) {
    let mut sink = PacketSink::open(&folder.join("packets-eth0.hpk"), &PacketFileHeader::default()).unwrap();
    let room = Arc::new(DiskQuota::new(folder, limits).unwrap());
    sink.keep_within(&room);
    (sink, room)
}

fn write(sink: &mut PacketSink, from: u32, count: u32) {
    for sequence in from..from + count {
        sink.write(&packet(sequence)).unwrap();
        sink.flush();
    }
}

/// Sequence numbers in all files, in the order of their names, which is that of their beginnings.
fn recorded(folder: &Path) -> Vec<u32> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let mut text = Vec::new();
        show(&file, Some(&mut text)).unwrap();
        let sequence =
            |line: &str| line.split(" seq ").nth(1).unwrap().split(' ').next().unwrap().parse::<u32>().unwrap();
        all.extend(String::from_utf8(text).unwrap().lines().map(sequence));
    }
    all
}

fn bytes_in(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn files_are_closed_at_their_size_and_nothing_is_lost_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { file_bytes: 10_000, ..Limits::default() };
    let (mut first, _) = sink(folder.path(), limits);
    write(&mut first, 0, 50);
    drop(first);
    let (mut second, room) = sink(folder.path(), limits);
    write(&mut second, 50, 50);
    assert_eq!(recorded(folder.path()), (0..100).collect::<Vec<_>>());
    let longest = fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).max().unwrap();
    assert!(longest <= 10_000, "{longest}");
    assert_eq!(room.used().0, bytes_in(folder.path()));
}

#[test]
fn the_oldest_files_give_way_and_what_they_held_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let limits =
        Limits { disk_bytes: 60_000, file_bytes: 10_000, when_full: WhenFull::DropOldest, ..Limits::default() };
    let (mut sink, room) = sink(folder.path(), limits);
    write(&mut sink, 0, 500);
    assert_eq!(sink.unwritten(), 0);
    assert!(bytes_in(folder.path()) <= 60_000, "{}", bytes_in(folder.path()));
    let left = recorded(folder.path());
    let (_, removed) = room.used();
    assert_eq!(removed.records + left.len() as u64, 500);
    assert_eq!(left, (500 - left.len() as u32..500).collect::<Vec<_>>(), "the newest are not all there");
    let notes = show(&folder.path().join("packets-eth0.hpk"), None).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("removed")) || removed.files == 0, "{notes:?}");
}

#[test]
fn at_a_limit_that_stops_nothing_more_is_written_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, room) = sink(folder.path(), Limits { disk_bytes: 20_000, ..Limits::default() });
    write(&mut sink, 0, 100);
    assert!(sink.ends_for_want_of_room());
    assert_eq!(recorded(folder.path()).len() as u64 + sink.unwritten(), 100);
    assert!(bytes_in(folder.path()) <= 20_000);
    assert_eq!(room.reserve(20_000), Err(NoRoom::Limit { limit: 20_000 }));
    let (free, wanted) = (u64::MAX / 4, 1000);
    let roomy = DiskQuota::new(folder.path(), Limits { keep_free_bytes: free, ..Limits::default() }).unwrap();
    assert!(matches!(roomy.reserve(wanted), Err(NoRoom::Free { wanted, .. }) if wanted == free));
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_sniffer_at_its_limit_ends_says_why_and_does_not_start_again() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let options = ["--ring", "8MiB", "--disk-limit", "300KiB", "--interface", "eth0"];
    let mut agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
    while !agent.has_ended() {
        exchange(&pair, 500, 400, 10);
    }
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "{manifest}");
    assert_eq!(manifest["ended"], true);
    assert!(manifest["problems"].to_string().contains("limit of 307200 bytes"), "{manifest}");
    assert!(manifest["disk_bytes"].as_u64().unwrap() <= 307_200);
    let again = Command::new("ip")
        .args([
            "netns",
            "exec",
            &pair.left,
            SNIFFER,
            "run",
            "--ring",
            "8MiB",
            "--disk-limit",
            "1KiB",
            "--keep-free",
            "0",
            "--out",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("limit of 1024 bytes"));
}
