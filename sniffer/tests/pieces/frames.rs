//! Frames: the nine fields of whole, cut, tagged, padded and oversized frames; arbitrary bytes never panic.

use etherparse::{PacketBuilder, SingleVlanHeader, VlanId};
use proptest::collection::vec;
use proptest::prelude::*;
use sniffer::frame::{Frame, LinkLayer, Segment, parse, parse_any, plain};

const MACS: ([u8; 6], [u8; 6]) = ([1; 6], [2; 6]);
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;

/// An Ethernet frame with a TCP segment of `payload` bytes.
fn frame_v4(payload: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64);
    let builder = builder.tcp(9866, 40_000, 0xfedc_ba98, 512).ack(77).psh();
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![b'p'; payload]).unwrap();
    frame
}

fn frame_v6(payload: usize) -> Vec<u8> {
    let (from, to) =
        ("fd00::1".parse::<std::net::Ipv6Addr>().unwrap(), "fd00::2".parse::<std::net::Ipv6Addr>().unwrap());
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv6(from.octets(), to.octets(), 64);
    let mut frame = Vec::new();
    builder.tcp(1, 2, 3, 4).write(&mut frame, &vec![b'p'; payload]).unwrap();
    frame
}

fn parse_whole(frame: &[u8]) -> Frame<'_> {
    parse(LinkLayer::Ethernet, frame, frame.len() as u32)
}

fn tcp<'a>(frame: &Frame<'a>) -> Segment<'a> {
    match frame {
        Frame::Tcp(segment) => *segment,
        other => panic!("no TCP segment: {other:?}"),
    }
}

#[test]
fn the_fields_of_a_segment_are_found() {
    let frame = frame_v4(100);
    let segment = tcp(&parse_whole(&frame));
    assert_eq!(segment.source, "10.1.0.1:9866".parse().unwrap());
    assert_eq!(segment.destination, "10.1.0.2:40000".parse().unwrap());
    assert_eq!((segment.sequence, segment.acknowledgement), (0xfedc_ba98, 77));
    assert_eq!((segment.flags, segment.window), (0x18, 512));
    assert_eq!((segment.payload_length, segment.payload), (100, vec![b'p'; 100].as_slice()));
}

#[test]
fn sack_blocks_are_found_behind_other_options() {
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64);
    // As Linux sends them: no operation twice, time stamps, no operation twice, SACK with two blocks.
    let time_stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let mut sack = vec![1, 1, 5, 18];
    for edge in [1000u32, 2000, 3000, 4000] {
        sack.extend_from_slice(&edge.to_be_bytes());
    }
    let mut frame = Vec::new();
    let options = [&time_stamps[..], &sack].concat();
    builder.tcp(1, 2, 3, 4).ack(500).options_raw(&options).unwrap().write(&mut frame, b"x").unwrap();
    let segment = tcp(&parse_whole(&frame));
    assert_eq!(segment.sack.blocks(), [(1000, 2000), (3000, 4000)]);
    assert_eq!(segment.payload, b"x");
    assert_eq!(segment.payload_at, frame.len() - 1);
    assert!(plain(LinkLayer::Ethernet, &frame).unwrap().may_have_sack());
    // Options that end early or make no sense are none.
    for options in [vec![5, 10, 0, 0], vec![5, 1, 0, 0], vec![0, 5, 10, 9], vec![2, 4, 5, 180]] {
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64);
        let mut frame = Vec::new();
        builder.tcp(1, 2, 3, 4).options_raw(&options).unwrap().write(&mut frame, b"x").unwrap();
        assert_eq!(tcp(&parse_whole(&frame)).sack.blocks(), []);
    }
}

#[test]
fn usual_frames_are_known_to_have_no_sack_blocks() {
    for options in [&[][..], &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]] {
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64);
        let mut frame = Vec::new();
        builder.tcp(1, 2, 3, 4).options_raw(options).unwrap().write(&mut frame, b"x").unwrap();
        assert!(!plain(LinkLayer::Ethernet, &frame).unwrap().may_have_sack());
    }
}

#[test]
fn ipv6_is_understood() {
    let frame = frame_v6(1000);
    let segment = tcp(&parse_whole(&frame));
    assert_eq!(segment.source, "[fd00::1]:1".parse().unwrap());
    assert_eq!(segment.payload_length, 1000);
}

#[test]
fn a_cut_frame_has_the_payload_length_of_the_wire() {
    for (frame, headers) in [(frame_v4(1448), 54), (frame_v6(1448), 74)] {
        for cut in 0..frame.len() {
            match parse(LinkLayer::Ethernet, &frame[..cut], frame.len() as u32) {
                Frame::Tcp(segment) => {
                    assert!(cut >= headers, "a segment in {cut} bytes");
                    assert_eq!(segment.payload_length, 1448, "cut at {cut}");
                    assert_eq!(segment.payload.len(), cut - headers, "cut at {cut}");
                }
                Frame::Unparsed => assert!(cut < headers, "cut at {cut}"),
                Frame::Other => panic!("cut at {cut}: taken for something else than TCP"),
            }
        }
    }
}

#[test]
fn padding_of_a_short_frame_is_no_payload() {
    let mut frame = frame_v4(0);
    frame.resize(60, 0);
    let segment = tcp(&parse_whole(&frame));
    assert_eq!((segment.payload_length, segment.payload.len()), (0, 0));
}

#[test]
fn a_packet_beyond_64_kib_has_its_length_from_the_frame() {
    for (mut frame, length_at, headers) in
        [(frame_v4(300), ETHERNET_BYTES + 2, 54), (frame_v6(300), ETHERNET_BYTES + 4, 74)]
    {
        frame[length_at..length_at + 2].fill(0);
        let segment = tcp(&parse(LinkLayer::Ethernet, &frame, 200_000));
        assert_eq!(segment.payload_length, 200_000 - headers);
        assert_eq!(segment.payload.len(), 300);
    }
}

#[test]
fn vlan_tags_are_looked_through() {
    let vlan = SingleVlanHeader { vlan_id: VlanId::try_new(5).unwrap(), ..SingleVlanHeader::default() };
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).vlan(etherparse::VlanHeader::Single(vlan));
    let mut frame = Vec::new();
    builder.ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64).tcp(1, 2, 3, 4).write(&mut frame, b"tagged").unwrap();
    assert_eq!(tcp(&parse_whole(&frame)).payload, b"tagged");
    let mut twice = frame[..12].to_vec();
    twice.extend_from_slice(&[0x88, 0xa8, 0, 7]);
    twice.extend_from_slice(&frame[12..]);
    assert_eq!(tcp(&parse_whole(&twice)).payload, b"tagged");
}

#[test]
fn other_link_layers_are_understood() {
    let ip = &frame_v4(10)[ETHERNET_BYTES..];
    assert_eq!(tcp(&parse(LinkLayer::Ip, ip, ip.len() as u32)).payload_length, 10);
    let mut cooked = vec![0; 14];
    cooked.extend_from_slice(&[8, 0]);
    cooked.extend_from_slice(ip);
    assert_eq!(tcp(&parse(LinkLayer::LinuxCooked, &cooked, cooked.len() as u32)).payload_length, 10);
    let mut cooked = vec![8, 0];
    cooked.resize(20, 0);
    cooked.extend_from_slice(ip);
    assert_eq!(tcp(&parse(LinkLayer::LinuxCooked2, &cooked, cooked.len() as u32)).payload_length, 10);
}

#[test]
fn what_is_no_tcp_is_told_from_what_cannot_be_read() {
    let mut udp = Vec::new();
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1).ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64);
    builder.udp(1, 2).write(&mut udp, b"x").unwrap();
    assert_eq!(parse_whole(&udp), Frame::Other);
    let mut arp = frame_v4(20);
    arp[12..14].copy_from_slice(&[0x86, 0xdd + 1]);
    assert_eq!(parse_whole(&arp), Frame::Other);
    let mut fragment = frame_v4(20);
    fragment[ETHERNET_BYTES + 6] = 0x20;
    assert_eq!(parse_whole(&fragment), Frame::Unparsed);
    let mut too_short = frame_v4(20);
    too_short[ETHERNET_BYTES + 2..ETHERNET_BYTES + 4].copy_from_slice(&[0, (IPV4_BYTES + TCP_BYTES - 1) as u8]);
    assert_eq!(parse_whole(&too_short), Frame::Unparsed);
}

fn any_link() -> impl Strategy<Value = LinkLayer> {
    prop_oneof![
        Just(LinkLayer::Ethernet),
        Just(LinkLayer::Ip),
        Just(LinkLayer::LinuxCooked),
        Just(LinkLayer::LinuxCooked2)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn arbitrary_bytes_never_panic(link in any_link(), bytes in vec(any::<u8>(), 0..200), wire_length: u32) {
        prop_assert_eq!(parse(link, &bytes, wire_length), parse_any(link, &bytes, wire_length));
        if let Frame::Tcp(segment) = parse(link, &bytes, wire_length) {
            prop_assert!(segment.payload.len() <= segment.payload_length as usize);
        }
    }

    #[test]
    fn damaged_frames_never_panic(
        v6: bool, damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in 0usize..200,
    ) {
        let mut frame = if v6 { frame_v6(100) } else { frame_v4(100) };
        for (at, to) in damage {
            let at = at.index(frame.len());
            frame[at] = to;
        }
        let cut = cut.min(frame.len());
        let wire_length = frame.len() as u32;
        prop_assert_eq!(
            parse(LinkLayer::Ethernet, &frame[..cut], wire_length),
            parse_any(LinkLayer::Ethernet, &frame[..cut], wire_length)
        );
        if let Frame::Tcp(segment) = parse(LinkLayer::Ethernet, &frame[..cut], wire_length) {
            prop_assert!(segment.payload.len() <= segment.payload_length as usize);
        }
    }
}
