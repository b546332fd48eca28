//! HDFS' data transfer protocol (2.x and 3.x): tokens in requests, and the negotiation before encrypted ones. Block data
//! and its packets' headers are left as they are.

use std::ops::Range;

use super::blank::{blank, blank_negotiation};
use super::position::{Position, Segment};
use super::proto::{delimited, fields, find};

/// `DATA_TRANSFER_VERSION` as it stands in front of each request.
const VERSION: [u8; 2] = [0, 28];
/// Requests by number.
const OPERATIONS: std::ops::RangeInclusive<u8> = 80..=90;
/// Requests whose header names the client as well: write, read, transfer.
const OF_CLIENTS: [u8; 3] = [80, 81, 86];
/// `SASL_TRANSFER_MAGIC_NUMBER`.
pub(super) const NEGOTIATES: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
/// A request is no longer.
const MAX_REQUEST: usize = 1 << 20;
/// Messages of each side of a negotiation (DIGEST-MD5: DataTransferSaslUtil).
pub(super) const MESSAGES: u8 = 2;

/// Where a request begins: at the beginning, or behind a reader's final word (ClientReadStatusProto, 3 bytes).
pub(super) fn request_at(bytes: &[u8]) -> Option<usize> {
    let at = if matches!(bytes, [2, 8, status, 0, 28, ..] if *status < 32) { 3 } else { 0 };
    let operation = bytes.get(at + 2)?;
    if bytes.get(at..at + 2)? != VERSION || !OPERATIONS.contains(operation) {
        return None;
    }
    // One that is cut in its length is one still.
    let Some((begin, end)) = delimited(bytes, at + 3) else { return (bytes.len() < at + 6).then_some(at) };
    ((2..=MAX_REQUEST).contains(&(end - begin)) && fields(bytes, begin, end).is_some()).then_some(at)
}

/// Blanks what is secret in a segment of such a connection. `left`: messages of a negotiation that this side has still to
/// say.
pub(super) fn segment(bytes: &mut [u8], segment: Segment, from: Position, left: &mut u8) -> Position {
    if let Position::At(end) = from
        && let Some(inside) = segment.reaches(end)
    {
        // The request or message goes on from the segment before.
        let inside = inside.min(bytes.len());
        blank(&mut bytes[..inside]);
        return if segment.is_behind(end) { Position::Unknown } else { from };
    }
    if let Some(at) = request_at(bytes) {
        return request(bytes, segment, at);
    }
    if bytes.starts_with(&NEGOTIATES) {
        *left = MESSAGES - 1;
        return message(bytes, segment, NEGOTIATES.len());
    }
    if *left > 0 {
        *left -= 1;
        return message(bytes, segment, 0);
    }
    Position::Unknown
}

/// Blanks tokens (TokenProto: 1 identifier, 2 password) in the headers of a request (BaseHeaderProto: 2 token).
fn request(bytes: &mut [u8], segment: Segment, at: usize) -> Position {
    let Some((begin, end)) = delimited(bytes, at + 3) else { return Position::Unknown };
    let operation = bytes.get(at + 2).copied().unwrap_or(0);
    let paths: &[&[u32]] = if OF_CLIENTS.contains(&operation) {
        &[&[1, 1, 2, 1], &[1, 1, 2, 2]]
    } else {
        // The last two: tokens of the blocks of a group (OpBlockGroupChecksumProto).
        &[&[1, 2, 1], &[1, 2, 2], &[3, 1], &[3, 2]]
    };
    blank_at(bytes, (begin, end), paths, blank);
    segment.unless_within(end)
}

/// Blanks what proves who somebody is in a message of the negotiation (DataTransferEncryptorMessageProto): 2 payload,
/// 4 cipher's keys, 5 secret.
fn message(bytes: &mut [u8], segment: Segment, at: usize) -> Position {
    let message = delimited(bytes, at).filter(|(_, end)| end - at <= MAX_REQUEST);
    let Some((begin, end)) = message.filter(|(begin, end)| fields(bytes, *begin, *end).is_some()) else {
        blank(&mut bytes[at..]);
        return Position::Unknown;
    };
    blank_at(bytes, (begin, end), &[&[2]], blank_negotiation);
    blank_at(bytes, (begin, end), &[&[4, 2], &[4, 3], &[4, 4], &[4, 5], &[5, 1]], blank);
    segment.unless_within(end)
}

fn blank_at(bytes: &mut [u8], message: (usize, usize), paths: &[&[u32]], blank: fn(&mut [u8])) {
    let mut found: Vec<Range<usize>> = Vec::new();
    for path in paths {
        find(bytes, message, path, &mut found);
    }
    for range in found {
        blank(&mut bytes[range]);
    }
}
