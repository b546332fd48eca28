//! Packet files: what is written is read again, a file cut at any byte gives all whole records, garbage never panics.

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;
use trace::capture_note::{CaptureNote, CaptureNoteKind};
use trace::packet::{
    Direction, MAGIC, Packet, PacketFileError, PacketFileHeader, PacketReader, PacketWriter, PlainPacket, Sack,
};

fn header(interface: &str) -> PacketFileHeader {
    PacketFileHeader {
        host: "w1".into(),
        interface: interface.into(),
        loopback: interface == "lo",
        snap_length: 384,
        started_ns: 1_700_000_000_000_000_000,
    }
}

prop_compose! {
    fn any_packet()(
        (time_ns, version6, addresses, ports) in
            (any::<u64>(), any::<bool>(), any::<[u128; 2]>(), any::<[u16; 2]>()),
        direction in prop_oneof![
            Just(Direction::In), Just(Direction::Out), Just(Direction::Loopback), Just(Direction::Foreign)
        ],
        (raw_length, payload_length, sequence, acknowledgement, flags, window) in
            (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>()),
        blocks in vec(any::<(u32, u32)>(), 0..5),
        payload in vec(any::<u8>(), 0..300),
    ) -> Packet {
        let end = |i: usize| {
            let ip = if version6 {
                IpAddr::V6(Ipv6Addr::from(addresses[i]))
            } else {
                IpAddr::V4(Ipv4Addr::from((addresses[i] & 0xffff_ffff) as u32))
            };
            SocketAddr::new(ip, ports[i])
        };
        Packet {
            time_ns, direction, source: end(0), destination: end(1), raw_length, payload_length, sequence,
            acknowledgement, flags, window, sack: blocks.iter().fold(Sack::default(), |mut all, (left, right)| {
                all.push(*left, *right);
                all
            }), payload,
        }
    }
}

fn write(packets: &[Packet]) -> (Vec<u8>, Vec<usize>) {
    let mut writer = PacketWriter::create(Vec::new(), &header("eth0")).unwrap();
    let mut ends = vec![writer.get_mut().len()];
    for packet in packets {
        writer.write(packet).unwrap();
        ends.push(writer.get_mut().len());
    }
    (std::mem::take(writer.get_mut()), ends)
}

fn read(bytes: &[u8]) -> (Vec<Packet>, PacketReader<Cursor<&[u8]>>) {
    let mut reader = PacketReader::new(Cursor::new(bytes)).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet);
    }
    (packets, reader)
}

/// As a merger reads: plain packets where there are such, all others by the way for any; and how many were plain.
fn read_plainly(reader: &mut PacketReader<Cursor<&[u8]>>) -> (Vec<Packet>, usize) {
    let (mut packets, mut plain) = (Vec::new(), 0);
    loop {
        if let Some(packet) = reader.next_plain() {
            packets.push(packet.view().to_packet());
            plain += 1;
        } else if let Ok(Some(packet)) = reader.next_packet() {
            packets.push(packet);
        } else {
            return (packets, plain);
        }
    }
}

proptest! {
    #[test]
    fn plain_packets_are_read_as_all_others_are(
        packets in vec(any_packet(), 0..40), damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cut in prop_oneof![Just(None), any::<prop::sample::Index>().prop_map(Some)],
    ) {
        let (mut bytes, _) = write(&packets);
        if let Some((at, to)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let open = || PacketReader::new(Cursor::new(bytes.as_slice()));
        let (Ok(mut reader), Ok(mut plain_reader)) = (open(), open()) else { return Ok(()) };
        let mut each = Vec::new();
        while let Ok(Some(packet)) = reader.next_packet() {
            each.push(packet);
        }
        let (found, plain) = read_plainly(&mut plain_reader);
        prop_assert_eq!(&found, &each);
        prop_assert_eq!(plain_reader.losses(), reader.losses());
        prop_assert_eq!(plain_reader.whole_until(), reader.whole_until());
        if damage.is_none() {
            let is_plain = |packet: &&Packet| packet.source.is_ipv4() && packet.sack.blocks().is_empty();
            // What was not at hand as a whole is read the other way.
            let there = each.iter().filter(is_plain).count();
            prop_assert!(plain <= there && plain + 2 >= there, "{plain} of {there}");
        }
    }

    #[test]
    fn a_plain_packet_has_the_same_record(packet in any_packet(), payload in 0usize..70_000) {
        let packet = Packet { sack: Sack::default(), payload: vec![b'p'; payload], ..packet };
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (packet.source.ip(), packet.destination.ip()) else {
            return Ok(());
        };
        let mut plainly = PacketWriter::append_to(Vec::new());
        plainly.write_plain(&PlainPacket {
            time_ns: packet.time_ns,
            direction: packet.direction,
            source,
            source_port: packet.source.port(),
            destination,
            destination_port: packet.destination.port(),
            raw_length: packet.raw_length,
            payload_length: packet.payload_length,
            sequence: packet.sequence,
            acknowledgement: packet.acknowledgement,
            flags: packet.flags,
            window: packet.window,
            payload: &packet.payload,
        });
        let mut writer = PacketWriter::append_to(Vec::new());
        writer.write(&packet).unwrap();
        prop_assert_eq!(plainly.get_mut(), writer.get_mut());
    }

    #[test]
    fn what_is_written_is_read_again(packets in vec(any_packet(), 0..20)) {
        let (bytes, ends) = write(&packets);
        let (found, reader) = read(&bytes);
        prop_assert_eq!(found, packets);
        prop_assert_eq!(reader.header(), &header("eth0"));
        prop_assert_eq!(reader.losses(), Default::default());
        prop_assert_eq!(reader.whole_until(), *ends.last().unwrap() as u64);
    }

    #[test]
    fn garbage_never_panics(bytes in vec(any::<u8>(), 0..400)) {
        if let Ok(mut reader) = PacketReader::new(Cursor::new(&bytes)) {
            while let Ok(Some(_)) = reader.next_packet() {}
        }
    }

    #[test]
    fn garbage_behind_a_header_never_panics(bytes in vec(any::<u8>(), 0..400)) {
        let (mut file, _) = write(&[]);
        file.extend_from_slice(&bytes);
        let mut reader = PacketReader::new(Cursor::new(&file)).unwrap();
        let mut records = 0u64;
        while let Ok(Some(_)) = reader.next_packet() {
            records += 1;
        }
        prop_assert!(records <= bytes.len() as u64);
        prop_assert!(reader.whole_until() <= file.len() as u64);
    }

    #[test]
    fn a_damaged_byte_never_panics(packets in vec(any_packet(), 1..5), at in any::<prop::sample::Index>(), to: u8) {
        let (mut bytes, _) = write(&packets);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(mut reader) = PacketReader::new(Cursor::new(&bytes)) {
            while let Ok(Some(_)) = reader.next_packet() {}
        }
    }
}

fn some_packets() -> Vec<Packet> {
    let mut packets = Vec::new();
    for i in 0..5u16 {
        let ip: IpAddr = if i % 2 == 0 { "10.1.0.1".parse().unwrap() } else { "fd00::1".parse().unwrap() };
        packets.push(Packet {
            time_ns: 1_700_000_000_000_000_000 + u64::from(i),
            direction: Direction::Out,
            source: SocketAddr::new(ip, 40_000 + i),
            destination: SocketAddr::new(ip, 9866),
            raw_length: 66 + u32::from(i),
            payload_length: u32::from(i),
            sequence: u32::MAX - u32::from(i),
            acknowledgement: 7,
            flags: 0x18,
            window: 512,
            sack: Sack::default(),
            payload: vec![i as u8; usize::from(i)],
        });
    }
    packets
}

#[test]
fn a_file_cut_at_any_byte_gives_all_whole_records() {
    let packets = some_packets();
    let (bytes, ends) = write(&packets);
    for cut in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        match PacketReader::new(Cursor::new(&bytes[..cut])) {
            Err(_) => assert_eq!(whole, 0, "cut at {cut}: the header was whole"),
            Ok(_) => {
                let (found, reader) = read(&bytes[..cut]);
                assert_eq!(found, packets[..whole - 1], "cut at {cut}");
                assert_eq!(reader.losses().truncated_bytes, (cut - ends[whole - 1]) as u64, "cut at {cut}");
                assert_eq!(reader.whole_until(), ends[whole - 1] as u64, "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_restarted_agent_goes_on_in_the_same_file() {
    let packets = some_packets();
    let (mut bytes, _) = write(&packets[..2]);
    let mut again = PacketWriter::resume(Vec::new(), &header("eth1")).unwrap();
    for packet in &packets[2..] {
        again.write(packet).unwrap();
    }
    let second = std::mem::take(again.get_mut());
    let first_length = bytes.len();
    bytes.extend_from_slice(&second);
    let (found, reader) = read(&bytes);
    assert_eq!(found, packets);
    assert_eq!(reader.header().interface, "eth1");

    for cut in first_length..bytes.len() {
        let (found, reader) = read(&bytes[..cut]);
        assert!(found.len() >= 2, "cut at {cut} in the second part: the first is lost");
        assert_eq!(found, packets[..found.len()]);
        assert!(reader.whole_until() >= first_length as u64);
    }
}

#[test]
fn a_payload_too_long_for_a_record_is_kept_as_far_as_it_fits() {
    let mut packet = some_packets().remove(0);
    packet.payload = vec![1; 100_000];
    let next = some_packets().remove(1);
    let (bytes, _) = write(&[packet.clone(), next.clone()]);
    let (found, _) = read(&bytes);
    assert_eq!(found.len(), 2);
    assert!(found[0].payload.len() > 65_000 && packet.payload.starts_with(&found[0].payload));
    assert_eq!(found[1], next);
}

#[test]
fn a_record_whose_fields_make_no_sense_is_counted_and_skipped() {
    let (mut bytes, _) = write(&some_packets()[..1]);
    bytes.extend_from_slice(&[3, 0, 1, 2, 3]);
    let mut rest = PacketWriter::create(Vec::new(), &header("eth0")).unwrap();
    let header_length = rest.get_mut().len();
    rest.write(&some_packets()[1]).unwrap();
    bytes.extend_from_slice(&rest.get_mut()[header_length..]);
    let (found, reader) = read(&bytes);
    assert_eq!(found, some_packets()[..2]);
    assert_eq!(reader.losses().malformed_records, 1);
}

#[test]
fn another_kind_of_file_is_refused_by_name() {
    let error = PacketReader::new(Cursor::new(b"\xd4\xc3\xb2\xa1 pcap")).unwrap_err();
    assert!(matches!(&error, PacketFileError::NotAPacketFile { found } if found.len() == MAGIC.len()));
    assert!(error.to_string().contains("not a packet file"), "{error}");
}

#[test]
fn notes_stand_between_the_packets() {
    let packets = some_packets();
    let notes = [
        CaptureNote { kind: CaptureNoteKind::KernelDrops, from_ns: 1, to_ns: 2, count: 3, step_ns: 0 },
        CaptureNote { kind: CaptureNoteKind::ClockStep, from_ns: 5, to_ns: 6, count: 0, step_ns: -7 },
    ];
    let mut writer = PacketWriter::create(Vec::new(), &header("eth0")).unwrap();
    writer.write(&packets[0]).unwrap();
    writer.note(&notes[0]).unwrap();
    writer.write(&packets[1]).unwrap();
    writer.note(&notes[1]).unwrap();
    let bytes = std::mem::take(writer.get_mut());
    let mut reader = PacketReader::new(Cursor::new(&bytes)).unwrap();
    assert_eq!(reader.next_packet().unwrap().as_ref(), Some(&packets[0]));
    assert!(reader.notes().is_empty());
    assert_eq!(reader.next_packet().unwrap().as_ref(), Some(&packets[1]));
    assert_eq!(reader.notes(), &notes[..1]);
    assert_eq!(reader.next_packet().unwrap(), None);
    assert_eq!(reader.notes(), notes);
    assert_eq!((reader.losses(), reader.version()), (Default::default(), 2));
    assert!(notes[0].is_gap() && !notes[1].is_gap());
}

#[test]
fn the_first_version_of_the_format_is_read_and_a_later_one_is_refused() {
    let (bytes, _) = write(&some_packets());
    let text = br#"{"host":"w1","interface":"eth0","loopback":false,"snap_length":1,"started_ns":2}"#;
    let with_header = |text: &[u8]| {
        let old = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        file.extend_from_slice(text);
        file.extend_from_slice(&bytes[12 + old..]);
        file
    };
    let (found, reader) = {
        let file = with_header(text);
        let mut reader = PacketReader::new(Cursor::new(file)).unwrap();
        let mut found = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            found.push(packet);
        }
        (found, reader)
    };
    assert_eq!((found, reader.version()), (some_packets(), 1));
    let later = String::from_utf8(text.to_vec()).unwrap().replace('{', "{\"version\":3,");
    let error = PacketReader::new(Cursor::new(with_header(later.as_bytes()))).unwrap_err().to_string();
    assert!(error.contains("format version 3") && error.contains("up to 2"), "{error}");
}
