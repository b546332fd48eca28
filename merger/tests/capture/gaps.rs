//! Agents that were killed, disks that were full: the files are read as far as they go, and what is missing is said.

use std::fs;
use std::path::Path;

use crate::world::{World, at};
use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::capture::{HostCapture, read};
use merger::check::{check, show};
use trace::capture_note::{CaptureNote, CaptureNoteKind};
use trace::manifest::{DumpingdManifest, SnifferManifest};
use trace::packet::{Direction, Packet, PacketFileHeader, PacketWriter, Sack};
use trace::socket::SocketRecord;

const T0: u64 = 1_700_000_000_000_000_000;

fn packet(number: u64) -> Packet {
    Packet {
        time_ns: T0 + number,
        direction: Direction::Out,
        source: "10.1.0.1:40000".parse().unwrap(),
        destination: "10.1.0.2:9866".parse().unwrap(),
        raw_length: 1514,
        payload_length: 1448,
        sequence: number as u32,
        acknowledgement: 0,
        flags: 0x10,
        window: 1,
        sack: Sack::default(),
        payload: vec![7; 20],
    }
}

/// A packet file of a run that was killed after 100 packets, one that went on with 50 more, could not write 30 of them,
/// and was killed as well: the file ends within its last record.
fn packets_of_killed_runs() -> Vec<u8> {
    let header = |started_ns| PacketFileHeader {
        host: "w1".into(),
        interface: "eth0".into(),
        snap_length: 96,
        started_ns,
        ..Default::default()
    };
    let mut first = PacketWriter::create(Vec::new(), &header(T0)).unwrap();
    (0..100).for_each(|number| first.write(&packet(number)).unwrap());
    let again = T0 + 5_000;
    let mut second = PacketWriter::resume(std::mem::take(first.get_mut()), &header(again)).unwrap();
    let note = |kind, from_ns, to_ns, count| CaptureNote { kind, from_ns, to_ns, count, step_ns: 0 };
    second.note(&note(CaptureNoteKind::Restart, T0 + 99, again, 0)).unwrap();
    (5_000..5_020).for_each(|number| second.write(&packet(number)).unwrap());
    second.note(&note(CaptureNoteKind::Unwritten, T0 + 5_020, T0 + 5_050, 30)).unwrap();
    second.write(&packet(5_050)).unwrap();
    let mut bytes = std::mem::take(second.get_mut());
    bytes.truncate(bytes.len() - 3);
    bytes
}

fn host_of(folder: &Path) -> HostCapture {
    read(&[folder.to_owned()], 1 << 20, &Silent).unwrap().remove(0)
}

#[test]
fn what_killed_agents_left_is_read_and_what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let w1 = folder.path().join("w1");
    fs::create_dir(&w1).unwrap();
    fs::write(w1.join("packets-eth0.hpk"), packets_of_killed_runs()).unwrap();
    let sniffer = SnifferManifest { version: 1, host: "w1".into(), ready: true, ..Default::default() };
    fs::write(w1.join("sniffer.json"), serde_json::to_vec(&sniffer).unwrap()).unwrap();
    let dumpingd = DumpingdManifest { version: 1, host: "w1".into(), ready: true, ..Default::default() };
    fs::write(w1.join("dumpingd.json"), serde_json::to_vec(&dumpingd).unwrap()).unwrap();
    let lost = |what: &str, count| SocketRecord::Lost { t: T0, what: what.to_owned(), count };
    let mut sockets = Vec::new();
    for record in [lost("milliseconds without dumpingd, as the run before was broken off", 700), lost("x", 2)] {
        serde_json::to_writer(&mut sockets, &record).unwrap();
        sockets.push(b'\n');
    }
    sockets.extend_from_slice(b"{\"k\":\"sock");
    fs::write(w1.join("sockets.jsonl"), sockets).unwrap();

    let host = host_of(folder.path());
    assert_eq!(host.packets.count, 120, "whole records of both runs");
    let notes = host.notes.join("\n");
    for note in [
        &format!("recording began again after it was broken off, between {} ns and {} ns", T0 + 99, T0 + 5_000),
        &format!("the file could not be written, 30 packets, between {} ns and {} ns", T0 + 5_020, T0 + 5_050),
        "w1: the sniffer did not end in an orderly way",
        "w1: dumpingd did not end in an orderly way",
    ] {
        assert!(notes.contains(note), "\"{note}\" is missing in\n{notes}");
    }
    let losses: Vec<String> = host.losses.iter().map(ToString::to_string).collect();
    for loss in
        ["milliseconds without dumpingd, as the run before was broken off: 700", "line that was cut off: 10 bytes"]
    {
        assert!(losses.iter().any(|found| found.contains(loss)), "\"{loss}\" is missing in {losses:?}");
    }
    assert!(losses.iter().any(|found| found.contains("packet that was cut off")), "{losses:?}");
}

#[test]
fn packets_that_a_recording_of_loopback_dropped_are_missed_in_words() {
    let mut world = World::new(&["w1"]);
    let mut talk = world.connect((0, 40_000), (0, 9866), [1, 2], at(0));
    world.say(&mut talk, true, at(1), &vec![7; 300_000]);
    world.close(&mut talk, at(20));
    let mut number = 0;
    world.hosts[0].lo.retain(|packet| {
        number += u64::from(packet.payload_length > 0);
        packet.payload_length == 0 || !number.is_multiple_of(100)
    });
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path());
    let report = check(&trace_of(&[folder.path().to_owned()], &Silent).unwrap().trace);
    assert_eq!(report.detail.missing_bytes, 2 * 1448);
    let missed = "2896 bytes (0.97% of the payload) were acknowledged and never captured";
    assert!(report.missed.iter().any(|said| said.starts_with(missed)), "{:?}", report.missed);
    let stated = show(&report);
    let targets = report.missed.len();
    assert!(
        stated.starts_with(&format!("FAIL: {targets} target")) && stated.contains("\nMISSED: 2896 bytes"),
        "{stated}"
    );
    assert_eq!(stated.matches("never captured").count(), 1, "{stated}");
    assert_eq!(stated.matches("MISSED").count(), targets, "{stated}");
}
