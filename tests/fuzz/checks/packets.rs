//! Any frame is taken apart or refused; what is found lies within it; never a panic.

use sniffer::frame::{Frame, LinkLayer, parse, parse_any};

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let Some((length, frame)) = rest.split_first_chunk::<4>() else { return };
    let link =
        [LinkLayer::Ethernet, LinkLayer::Ip, LinkLayer::LinuxCooked, LinkLayer::LinuxCooked2][usize::from(choice % 4)];
    let wire_length = u32::from_le_bytes(*length);
    let quick = parse(link, frame, wire_length);
    let careful = parse_any(link, frame, wire_length);
    assert_eq!(quick, careful, "the quick way and the careful way see the same");
    if let Frame::Tcp(segment) = quick {
        let range = frame.as_ptr_range();
        let kept = segment.payload.as_ptr_range();
        assert!(segment.payload.is_empty() || range.start <= kept.start && kept.end <= range.end);
    }
}
