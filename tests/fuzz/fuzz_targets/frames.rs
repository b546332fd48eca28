//! Captured frames, of each link layer, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sniffer::frame::{Frame, LinkLayer, parse, parse_any};

fuzz_target!(|data: &[u8]| {
    let [kind, a, b, frame @ ..] = data else { return };
    let link = [LinkLayer::Ethernet, LinkLayer::Ip, LinkLayer::LinuxCooked, LinkLayer::LinuxCooked2][usize::from(kind % 4)];
    let wire_length = u32::from(u16::from_le_bytes([*a, *b]));
    let found = parse(link, frame, wire_length);
    assert_eq!(found, parse_any(link, frame, wire_length));
    if let Frame::Tcp(segment) = found {
        assert!(segment.payload.len() <= segment.payload_length as usize);
        assert!(segment.payload_at + segment.payload.len() <= frame.len());
    }
});
