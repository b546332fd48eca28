//! HTTP/1: of a head the names of all fields stay, and the values of those that say how a message is laid out; of a target
//! the path, and the parameters that are known to be no secret. Bodies are blanked but for map outputs.

use super::blank::{BLANK, blank};
use super::position::{Body, Position, Segment};

const METHODS: [&[u8]; 9] =
    [b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"CONNECT "];
const RESPONSE: &[u8] = b"HTTP/1.";
/// Path of the shuffle handler.
const MAP_OUTPUT: &[u8] = b"/mapOutput";

/// Fields whose values stay.
const PLAIN_FIELDS: [&[u8]; 28] = [
    b"accept",
    b"accept-charset",
    b"accept-encoding",
    b"accept-language",
    b"accept-ranges",
    b"age",
    b"allow",
    b"cache-control",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-range",
    b"content-type",
    b"date",
    b"expect",
    b"expires",
    b"for-reduce-task",
    b"from-map-task",
    b"host",
    b"keep-alive",
    b"map-output-length",
    b"name",
    b"pragma",
    b"range",
    b"raw-map-output-length",
    b"transfer-encoding",
    b"user-agent",
    b"version",
];
/// Fields whose values are addresses: their parameters are looked through.
const ADDRESSES: [&[u8]; 3] = [b"location", b"content-location", b"referer"];
/// Parameters whose values stay: of the shuffle, and of WebHDFS what is done with a file and on whose behalf.
const PLAIN_PARAMETERS: [&[u8]; 18] = [
    b"job",
    b"reduce",
    b"map",
    b"keepalive",
    b"op",
    b"offset",
    b"length",
    b"user.name",
    b"doas",
    b"buffersize",
    b"permission",
    b"overwrite",
    b"replication",
    b"blocksize",
    b"recursive",
    b"noredirect",
    b"namenoderpcaddress",
    b"createparent",
];
/// A body beyond this has an end that sequence numbers cannot tell.
const MAX_BODY: u64 = 1 << 30;

/// Whether a request or response begins here.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let is_request = || {
        let target = METHODS.iter().find_map(|method| bytes.strip_prefix(*method));
        target.and_then(<[u8]>::first).is_some_and(u8::is_ascii_graphic)
    };
    if !bytes.starts_with(RESPONSE) && !is_request() {
        return false;
    }
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        return bytes.iter().all(|&byte| (b' '..=b'~').contains(&byte) || byte == b'\r');
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let has_version = bytes.starts_with(RESPONSE) || line.windows(8).any(|window| window == b" HTTP/1.");
    has_version && line.iter().all(|&byte| (b' '..=b'~').contains(&byte))
}

/// Blanks what is secret in a segment of such a connection. `is_shuffle`: the last request was for map outputs.
pub(super) fn segment(bytes: &mut [u8], segment: Segment, from: Position, is_shuffle: &mut bool) -> Position {
    let (mut at, mut head) = (0, None);
    match from {
        // An answer may come before the end of the one before that was said, as none follows a HEAD.
        _ if bytes.starts_with(RESPONSE) && begins(bytes) => {}
        Position::At(next) | Position::Head { next, .. } => match segment.reaches(next) {
            Some(inside) => {
                let there = inside.min(bytes.len());
                blank(&mut bytes[..there]);
                if !segment.is_behind(next) {
                    return from;
                }
                at = inside;
                if let Position::Head { is_in_line, body, .. } = from {
                    head = Some((is_in_line, body));
                }
            }
            None if begins(bytes) => {}
            None => return lose(bytes),
        },
        Position::MapOutputs if !begins(bytes) => return from,
        _ => {}
    }
    while at < bytes.len() {
        let (is_in_line, mut body) = match head.take() {
            Some((is_in_line, body)) if is_in_line || !begins(&bytes[at..]) => (is_in_line, body),
            _ => {
                if !begins(&bytes[at..]) {
                    return lose(&mut bytes[at..]);
                }
                let body = first_line(&mut bytes[at..], is_shuffle);
                at = behind_line(bytes, at);
                if at == bytes.len() && bytes.last() != Some(&b'\n') {
                    return segment.cut_in_head(at, true, body);
                }
                (false, body)
            }
        };
        if is_in_line {
            let end = behind_line(bytes, at);
            blank_value(&mut bytes[at..end]);
            let is_over = end > at && bytes[end - 1] == b'\n';
            at = end;
            if !is_over {
                return segment.cut_in_head(at, true, body);
            }
        }
        // Line by line, up to an empty one.
        loop {
            let end = behind_line(bytes, at);
            let line = &mut bytes[at..end];
            let is_whole = line.last() == Some(&b'\n');
            let is_over = is_whole && line.iter().all(|byte| b"\r\n".contains(byte));
            // An empty line that is cut inside of its end ends the head all the same, in the next segment.
            let is_in_line = line.iter().any(|&byte| byte != b'\r');
            if !is_over {
                field(line, &mut body);
            }
            at = end;
            if !is_whole {
                return segment.cut_in_head(at, is_in_line, body);
            }
            if is_over {
                break;
            }
        }
        match body {
            Body::MapOutputs => return Position::MapOutputs,
            Body::Unknown => return lose(&mut bytes[at..]),
            Body::Bytes(length) => {
                let end = at.saturating_add(length as usize);
                let there = end.min(bytes.len());
                blank(&mut bytes[at..there]);
                at = end;
            }
        }
    }
    segment.ends_at(at, bytes.len())
}

fn lose(bytes: &mut [u8]) -> Position {
    blank(bytes);
    Position::Lost
}

fn behind_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| at + end + 1)
}

/// Blanks what is secret in a request's target; returns what follows unless a field says otherwise.
fn first_line(bytes: &mut [u8], is_shuffle: &mut bool) -> Body {
    let end = behind_line(bytes, 0);
    let line = &mut bytes[..end];
    if line.starts_with(RESPONSE) {
        let status = line.get(9..12).unwrap_or_default();
        return match status {
            _ if *is_shuffle => Body::MapOutputs,
            [b'1', ..] | b"204" | b"304" => Body::Bytes(0),
            _ => Body::Unknown,
        };
    }
    let begin = line.iter().position(|&byte| byte == b' ').map_or(line.len(), |space| space + 1);
    *is_shuffle = line[begin..].starts_with(MAP_OUTPUT);
    let behind = line[begin..].iter().position(|byte| b" \r\n".contains(byte));
    let end = behind.map_or(line.len(), |length| begin + length);
    address(&mut line[begin..end], behind.is_some());
    Body::Bytes(0)
}

/// Blanks what is secret in a field's line, and takes what it says of the body.
fn field(line: &mut [u8], body: &mut Body) {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        // The rest of a value that goes on in this line, or nothing that is known; a name that is cut off is no secret.
        if line.last() == Some(&b'\n') || line.first().is_some_and(u8::is_ascii_whitespace) {
            blank_value(line);
        }
        return;
    };
    let name = line[..colon].to_ascii_lowercase();
    let is_whole = line.last() == Some(&b'\n');
    let value = &mut line[colon + 1..];
    if name.first().is_none_or(u8::is_ascii_whitespace) {
        blank_value(line);
    } else if ADDRESSES.contains(&name.as_slice()) {
        address(value, is_whole);
    } else if !PLAIN_FIELDS.contains(&name.as_slice()) {
        blank_value(value);
    } else {
        lay_out(&name, value.trim_ascii(), is_whole, body);
    }
}

/// What a field says of the body that follows. A number that may be cut off says nothing.
fn lay_out(name: &[u8], value: &[u8], is_whole: bool, body: &mut Body) {
    // Of a request it is known that it has no body unless it says so.
    let may_be_outputs = *body == Body::Unknown;
    let is_outputs = may_be_outputs && (name == b"from-map-task" || name == b"name" && value == b"mapreduce");
    if is_outputs || *body == Body::MapOutputs {
        *body = Body::MapOutputs;
    } else if name == b"transfer-encoding" {
        *body = Body::Unknown;
    } else if name == b"content-length" {
        let length = str::from_utf8(value).ok().and_then(|value| value.parse::<u64>().ok());
        let length = length.filter(|length| is_whole && *length <= MAX_BODY);
        *body = length.and_then(|length| u32::try_from(length).ok()).map_or(Body::Unknown, Body::Bytes);
    }
}

/// Blanks an address' user, and the values of parameters that may be secret.
fn address(address: &mut [u8], is_whole: bool) {
    let query = address.iter().position(|&byte| byte == b'?').unwrap_or(address.len());
    if let Some(scheme) = address[..query].windows(3).position(|window| window == b"://") {
        let begin = scheme + 3;
        let slash = address[begin..query].iter().position(|&byte| byte == b'/');
        let host = &mut address[begin..slash.map_or(query, |slash| begin + slash)];
        if let Some(at) = host.iter().rposition(|&byte| byte == b'@') {
            blank(&mut host[..at]);
        } else if slash.is_none() && query == address.len() && !is_whole {
            // It may be a user's name and password that are cut off here.
            blank(&mut address[begin..]);
        }
    }
    let behind = (query + 1).min(address.len());
    for parameter in address[behind..].split_mut(|&byte| b"&;".contains(&byte)) {
        let equals = parameter.iter().position(|&byte| byte == b'=');
        let name = parameter[..equals.unwrap_or(0)].to_ascii_lowercase();
        if !PLAIN_PARAMETERS.contains(&name.as_slice()) {
            blank_value(&mut parameter[equals.map_or(0, |equals| equals + 1)..]);
        }
    }
}

/// Blanks all but white space.
fn blank_value(value: &mut [u8]) {
    value.iter_mut().filter(|byte| !b" \t\r\n".contains(byte)).for_each(|byte| *byte = BLANK);
}
