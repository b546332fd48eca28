//! Hadoop RPC, version 9 (2.x and 3.x): what a call and its answer hold is blanked, and so are the tokens of SASL. Lengths,
//! headers, names of methods and protocols and the connection's context are left.

use super::blank::{blank, blank_negotiation};
use super::position::{Position, Segment};
use super::proto::{Field, delimited, fields, find};

/// `ipc.maximum.data.length`.
const MAX_FRAME: usize = 128 << 20;
/// A header is no longer.
const MAX_HEADER: usize = 64 << 10;
/// Bytes of "hrpc", version, service class and authentication.
const PREAMBLE: usize = 7;
/// Call ids with a meaning of their own.
const CONTEXT: i64 = -3;
const SASL: i64 = -33;
/// `RPC_PROTOCOL_BUFFER`.
const PROTOCOL_BUFFERS: u64 = 2;

/// A frame's beginning.
struct Frame {
    /// Where its body begins, as far as that is there.
    body: usize,
    /// Where it ends.
    end: usize,
    kind: Kind,
}

enum Kind {
    /// A call in protocol buffers: its own header names the method.
    Call,
    /// Nothing of the body is of use.
    Opaque,
    /// A negotiation.
    Sasl,
    /// Who calls, and by which protocol.
    Context,
    /// It is cut off inside its header.
    Cut,
}

/// Whether a connection that is not known begins to speak this, or speaks it: `Some(false)` = another version of it.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    if bytes.starts_with(b"hrpc") {
        return Some(bytes.get(4) == Some(&9));
    }
    let is_frame = frame(bytes, 0, true).is_some_and(|frame| !matches!(frame.kind, Kind::Cut));
    is_frame.then_some(true)
}

/// Blanks what is secret in a segment of such a connection.
pub(super) fn segment(bytes: &mut [u8], segment: Segment, from: Position) -> Position {
    let mut at = match from {
        _ if bytes.starts_with(b"hrpc") => PREAMBLE,
        Position::At(end) => match segment.reaches(end) {
            Some(inside) => {
                let there = inside.min(bytes.len());
                blank(&mut bytes[..there]);
                if !segment.is_behind(end) {
                    return from;
                }
                inside
            }
            None => 0,
        },
        _ => 0,
    };
    let is_in_step = at > 0 || matches!(from, Position::At(end) if segment.reaches(end).is_some());
    let mut is_sure = !is_in_step;
    while at < bytes.len() {
        let Some(frame) = frame(bytes, at, is_sure) else {
            blank(&mut bytes[at..]);
            return Position::Lost;
        };
        body(bytes, &frame);
        at = frame.end;
        is_sure = false;
    }
    segment.ends_at(at, bytes.len())
}

/// Blanks what a frame carries.
fn body(bytes: &mut [u8], frame: &Frame) {
    let end = frame.end.min(bytes.len());
    let from = match frame.kind {
        Kind::Context | Kind::Cut => return,
        Kind::Opaque => frame.body,
        // RequestHeaderProto: 1 method, 2 protocol, 3 version.
        Kind::Call => match delimited(bytes, frame.body) {
            Some((begin, behind)) if behind <= frame.end && names_method(bytes, begin, behind) => behind,
            _ => frame.body,
        },
        // RpcSaslProto: 1 version, 2 state, 3 token, 4 what is offered: 5 challenge.
        Kind::Sasl => {
            let mut found = Vec::new();
            if let Some(message) = delimited(bytes, frame.body)
                && fields(bytes, message.0, message.1).is_some()
            {
                find(bytes, message, &[3], &mut found);
                find(bytes, message, &[4, 5], &mut found);
                for range in found {
                    blank_negotiation(&mut bytes[range]);
                }
                return;
            }
            frame.body
        }
    };
    if from < end {
        blank(&mut bytes[from..end]);
    }
}

fn names_method(bytes: &[u8], begin: usize, end: usize) -> bool {
    let is_name = |content: &[u8]| content.iter().all(u8::is_ascii_graphic);
    fields(bytes, begin, end).is_some_and(|fields| {
        let known = fields.iter().all(|field| match (field.number, &field.content) {
            (1 | 2, Some(content)) => is_name(&bytes[content.clone()]),
            (3, None) => true,
            _ => false,
        });
        known && fields.first().is_some_and(|first| first.number == 1)
    })
}

/// The frame that begins at `at`. `is_sure`: it has to show by itself that it is one, as nothing before it says so.
fn frame(bytes: &[u8], at: usize, is_sure: bool) -> Option<Frame> {
    let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>())?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| (2..=MAX_FRAME).contains(length))?;
    let (begin, end) = (at + 4, at + 4 + length);
    let cut = Frame { body: bytes.len(), end, kind: Kind::Cut };
    let Some((begin, behind)) = delimited(bytes, begin) else {
        return (!is_sure && bytes.len() < begin + 4).then_some(cut);
    };
    if behind > end || behind == begin || behind - begin > MAX_HEADER {
        return None;
    }
    let header = fields(bytes, begin, behind)?;
    if behind > bytes.len() {
        let looks_like_one = is_ordered(&header) && number(&header, 1).is_some() && number(&header, 2) <= Some(2);
        return (!is_sure || looks_like_one).then_some(cut);
    }
    let kind = kind_of_request(&header).or_else(|| kind_of_response(&header))?;
    Some(Frame { body: behind, end, kind })
}

fn is_ordered(header: &[Field]) -> bool {
    header.windows(2).all(|pair| pair[0].number < pair[1].number) && header.iter().all(|field| field.number <= 12)
}

fn field(header: &[Field], number: u32) -> Option<&Field> {
    header.iter().find(|field| field.number == number)
}

fn number(header: &[Field], of: u32) -> Option<u64> {
    field(header, of).filter(|field| field.content.is_none()).map(|field| field.value)
}

fn is_client(field: &Field) -> bool {
    field.content.is_some() && matches!(field.length, 0 | 16)
}

/// RpcRequestHeaderProto: 1 kind, 2 operation, 3 call (zigzag), 4 client.
fn kind_of_request(header: &[Field]) -> Option<Kind> {
    let (kind, operation, call) = (number(header, 1)?, number(header, 2)?, number(header, 3)?);
    let call = i64::try_from(call >> 1).unwrap_or(i64::MAX) ^ -i64::from(call & 1 == 1);
    let fits = is_ordered(header) && kind <= 2 && operation <= 2 && call >= SASL && is_client(field(header, 4)?);
    fits.then_some(match call {
        SASL => Kind::Sasl,
        CONTEXT => Kind::Context,
        0.. if kind == PROTOCOL_BUFFERS => Kind::Call,
        _ => Kind::Opaque,
    })
}

/// RpcResponseHeaderProto: 1 call, 2 status, 3 version, 7 client.
fn kind_of_response(header: &[Field]) -> Option<Kind> {
    let (call, status) = (number(header, 1)?, number(header, 2)?);
    // A negative call is an int32 in ten bytes, or in five.
    let call = i64::from(u32::try_from(call & u64::from(u32::MAX)).unwrap_or(0).cast_signed());
    let has_status = match field(header, 7) {
        Some(client) => is_client(client),
        None => call == SASL,
    };
    let fits = is_ordered(header) && status <= 2 && call >= SASL && has_status;
    fits.then_some(if call == SASL { Kind::Sasl } else { Kind::Opaque })
}
