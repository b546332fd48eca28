//! Any payload of connections, in any pieces and with anything of it kept, is as long after its secrets were blanked as it
//! was before, and nothing else is in it; never a panic.
//!
//! Input: records of a byte (bits 0 and 1: connection and sender; bits 2 to 4: what it begins with; bit 5: a gap before
//! it, bit 6: it is sent again), a byte (how much of it is not kept, in sixteenths; low nibble: flags), a byte (length),
//! then as many bytes.

use sniffer::keep::FlowDirection;
use sniffer::redact::{BLANK, Redactor, Segment};

const BEGINNINGS: [&[u8]; 8] = [
    b"",
    b"GET /webhdfs/v1/a?op=OPEN&delegation=AAAA HTTP/1.1\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nSet-Cookie: hadoop.auth=AAAA\r\n",
    b"hrpc\x09\x00\xdf",
    // A call of 44 bytes: its header has 26, the method's 9.
    b"\x00\x00\x00\x2c\x1a\x08\x02\x10\x00\x18\x06\x22\x100123456789abcdef\x28\x00\x09\x0a\x03get\x12\x00\x18\x01",
    b"\x00\x00\x00\x30\x1a\x08\x03\x10\x00\x18\x09\x3a\x100123456789abcdef\x40\x01",
    // A read whose token has 4 bytes of identifier and of password.
    b"\x00\x1c\x51\x14\x0a\x12\x0a\x10\x0a\x00\x12\x0c\x0a\x04AAAA\x12\x04BBBB",
    b"\xde\xad\xbe\xef\x08\x08\x00\x12\x04CCCC",
];

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let mut redactor = Redactor::default();
    let mut next = [[0u32; 2]; 2];
    let mut rest = bytes;
    while let Some(([what, kept, length], behind)) = rest.split_first_chunk::<3>() {
        let (said, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        let payload = [BEGINNINGS[usize::from(what >> 2 & 7)], said].concat();
        let (connection, sender) = (usize::from(what & 1), usize::from(what >> 1 & 1));
        let place = &mut next[connection][sender];
        if what & 32 != 0 {
            *place = place.wrapping_add(1_000_000_007);
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let sequence = if what & 64 == 0 { *place } else { place.wrapping_sub(length / 2) };
        if what & 64 == 0 {
            *place = sequence.wrapping_add(length);
        }
        let keep = payload.len() - payload.len() * usize::from(kept >> 4) / 16;
        let flow = || FlowDirection { connection: connection as u64 + 1, sender };
        let segment = Segment { sequence, length, flags: [0x10, 0x18, 0x11, 0x02][usize::from(kept & 3)] };
        let mut again = redactor.clone();
        let mut blanked = payload[..keep].to_vec();
        let count = redactor.redact(flow, segment, &mut blanked);
        let changed = payload.iter().zip(&blanked).filter(|(before, after)| before != after);
        assert!(changed.clone().all(|(_, after)| *after == BLANK), "something else is in it");
        assert_eq!(changed.count() as u64, count);
        let (copied, counted) = again.redacted(flow, segment, &payload[..keep]);
        assert_eq!((copied, counted), (blanked.as_slice(), count), "both ways do the same");
    }
}
