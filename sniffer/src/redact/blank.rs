//! Blanking: secret bytes give way to one that says so.

use std::ops::Range;

/// What stands in place of a secret byte. No length, number or name in the protocols that are read begins with it by chance:
/// as a length it is beyond what any of them allows.
pub const BLANK: u8 = b'*';

/// Values of DIGEST-MD5's `qop`.
const PROTECTIONS: [&[u8]; 3] = [b"auth", b"auth-int", b"auth-conf"];

pub(super) fn blank(bytes: &mut [u8]) {
    bytes.fill(BLANK);
}

/// Blanks a message of a negotiation. Of DIGEST-MD5 it leaves which protection is offered or chosen (`qop`, RFC 2831, 2.1.1):
/// whether a connection is encrypted is no secret.
pub(super) fn blank_negotiation(bytes: &mut [u8]) {
    let protection = protection(bytes);
    let kept = protection.clone().map(|range| bytes[range].to_vec());
    blank(bytes);
    if let (Some(range), Some(kept)) = (protection, kept) {
        bytes[range].copy_from_slice(&kept);
    }
}

/// Where `qop` stands with its value: one of three words, or some of them in quotation marks.
fn protection(bytes: &[u8]) -> Option<Range<usize>> {
    const NAME: &[u8] = b"qop=";
    let at = bytes.windows(NAME.len()).position(|window| window == NAME)?;
    let value = &bytes[at + NAME.len()..];
    let (quoted, value) = value.strip_prefix(b"\"").map_or((0, value), |value| (1, value));
    let is_behind = |byte: &u8| *byte == b'"' || quoted == 0 && *byte == b',';
    let length = value.iter().position(is_behind).unwrap_or(value.len());
    let are_words = value[..length].split(|byte| *byte == b',').all(|word| PROTECTIONS.contains(&word));
    are_words.then_some(at..at + NAME.len() + 2 * quoted + length).filter(|range| range.end <= bytes.len())
}

pub(super) fn blanks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == BLANK).count() as u64
}
