//! A packet file that was stripped holds nothing of the payload, and everything else as it was.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;
use trace::capture_note::{CaptureNote, CaptureNoteKind};
use trace::packet::{Direction, Packet, PacketFileHeader, PacketReader, PacketWriter, Sack, strip};

/// Stands in no header by chance.
const SECRET: [u8; 8] = *b"\xf3s3cr3t\xf7";

fn header(run: u64) -> PacketFileHeader {
    PacketFileHeader {
        host: "w1".into(),
        interface: "eth0".into(),
        loopback: false,
        snap_length: 384,
        started_ns: 1_700_000_000_000_000_000 + run,
    }
}

/// What a recorder can write.
#[derive(Clone, Debug)]
enum Step {
    Packet(Box<Packet>),
    Note(CaptureNote),
    Restart,
}

prop_compose! {
    fn packet()(
        time_ns in 0u64..1 << 40, ports in any::<[u16; 2]>(), numbers in any::<[u16; 4]>(), flags in any::<u8>(),
        blocks in vec((0u32..1 << 20, 0u32..1 << 20), 0..5), secrets in 0usize..20, cut in 0usize..8,
    ) -> Packet {
        let end = |i: usize| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, i as u8)), ports[i]);
        let mut payload = SECRET.repeat(secrets);
        payload.truncate(payload.len().saturating_sub(cut));
        let mut sack = Sack::default();
        blocks.iter().for_each(|(left, right)| sack.push(*left, *right));
        Packet {
            time_ns, direction: Direction::Out, source: end(0), destination: end(1),
            raw_length: u32::from(numbers[0]), payload_length: u32::from(numbers[1]),
            sequence: u32::from(numbers[2]), acknowledgement: u32::from(numbers[3]),
            flags, window: numbers[0], sack, payload,
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let note = (any::<u32>(), 0u64..100).prop_map(|(at, count)| CaptureNote {
        kind: CaptureNoteKind::KernelDrops,
        from_ns: u64::from(at),
        to_ns: u64::from(at) + 1,
        count,
        step_ns: 0,
    });
    prop_oneof![
        8 => packet().prop_map(|packet| Step::Packet(Box::new(packet))),
        1 => note.prop_map(Step::Note),
        1 => Just(Step::Restart),
    ]
}

fn write(steps: &[Step], keep_payload: bool) -> Vec<u8> {
    let mut writer = PacketWriter::create(Vec::new(), &header(0)).unwrap();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Packet(packet) if keep_payload => writer.write(packet).unwrap(),
            Step::Packet(packet) => writer.write(&Packet { payload: Vec::new(), ..(**packet).clone() }).unwrap(),
            Step::Note(note) => writer.note(note).unwrap(),
            Step::Restart => {
                let written = std::mem::take(writer.get_mut());
                writer = PacketWriter::resume(written, &header(number as u64)).unwrap();
            }
        }
    }
    std::mem::take(writer.get_mut())
}

proptest! {
    #[test]
    fn nothing_of_the_payload_is_left_and_everything_else_is_equal(steps in vec(step(), 0..60)) {
        let mut out = Vec::new();
        let stripped = strip(write(&steps, true).as_slice(), &mut out).unwrap();
        prop_assert!(!out.windows(SECRET.len()).any(|window| window == SECRET));
        // The very file that a sniffer would have written that keeps no payload.
        prop_assert_eq!(&out, &write(&steps, false));
        let packets = steps.iter().filter_map(|step| if let Step::Packet(packet) = step { Some(packet) } else { None });
        let (count, bytes) = packets.fold((0, 0), |(n, bytes), packet| (n + 1, bytes + packet.payload.len() as u64));
        prop_assert_eq!((stripped.packets, stripped.payload_bytes), (count, bytes));
        prop_assert_eq!(stripped.losses, Default::default());
    }

    #[test]
    fn a_file_that_was_cut_or_damaged_leaves_no_payload_either(
        steps in vec(step(), 1..30), cut in any::<prop::sample::Index>(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = write(&steps, true);
        let head = write(&[], true).len();
        for (at, to) in flips {
            let at = at.index(bytes.len());
            // Fields, lengths among them, make no sense then.
            if at >= head && !SECRET.contains(&bytes[at]) && bytes[at] != 0 {
                bytes[at] = to;
            }
        }
        bytes.truncate(head + cut.index(bytes.len() - head + 1));
        let mut out = Vec::new();
        if strip(bytes.as_slice(), &mut out).is_ok() {
            let mut reader = PacketReader::new(out.as_slice()).unwrap();
            while let Some(packet) = reader.next_packet().unwrap() {
                prop_assert!(packet.payload.is_empty());
            }
        }
    }
}

#[test]
fn what_is_no_packet_file_is_refused() {
    let mut out = Vec::new();
    assert!(strip(&b"PK\x03\x04something"[..], &mut out).is_err());
    assert!(out.is_empty(), "nothing is written of it");
}
