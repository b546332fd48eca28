//! Packet files of the sniffer: continued after a kill at any byte, never mixed up with something else.

use std::fs;
use std::path::Path;

use sniffer::show::show;
use sniffer::sink::PacketSink;
use trace::packet::{Direction, Packet, PacketFileHeader};

fn packet(sequence: u32) -> Packet {
    Packet {
        time_ns: u64::from(sequence),
        direction: Direction::Out,
        source: "10.1.0.1:1".parse().unwrap(),
        destination: "10.1.0.2:2".parse().unwrap(),
        raw_length: 100,
        payload_length: 34,
        sequence,
        acknowledgement: 0,
        flags: 0x10,
        window: 1,
        sack: Default::default(),
        payload: vec![7; 34],
    }
}

fn write(path: &Path, sequences: std::ops::Range<u32>) {
    let mut sink = PacketSink::open(path, &PacketFileHeader { host: "w1".into(), ..Default::default() }).unwrap();
    for sequence in sequences {
        sink.write(&packet(sequence)).unwrap();
    }
    sink.flush();
    assert_eq!(sink.unwritten(), 0);
}

fn sequences(path: &Path) -> Vec<String> {
    let mut text = Vec::new();
    let summary = show(path, Some(&mut text)).unwrap();
    assert_eq!(summary.truncated_bytes, 0);
    let field = |line: &str| line.split(" seq ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    String::from_utf8(text).unwrap().lines().map(field).collect()
}

#[test]
fn a_run_goes_on_behind_the_last_whole_record_of_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk");
    write(&path, 0..3);
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let survivors = show(&path, None).map_or(0, |summary| summary.packets);
        write(&path, 10..12);
        let expected: Vec<String> = (0..survivors).chain(10..12).map(|sequence| sequence.to_string()).collect();
        assert_eq!(sequences(&path), expected, "cut at {cut}");
    }
}

#[test]
fn a_file_of_another_kind_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk");
    fs::write(&path, "a letter to my grandmother").unwrap();
    let error = PacketSink::open(&path, &PacketFileHeader::default()).unwrap_err().to_string();
    assert!(error.contains("move the file away"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "a letter to my grandmother");
}

#[test]
fn a_second_sniffer_for_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk");
    let _first = PacketSink::open(&path, &PacketFileHeader::default()).unwrap();
    let error = PacketSink::open(&path, &PacketFileHeader::default()).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
}
