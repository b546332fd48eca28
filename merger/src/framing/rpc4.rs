//! Hadoop RPC, version 4 (1.x): a request has a length, a response has none. It begins with the number of the call and
//! a status, and goes on until the next one begins.

use std::collections::{BTreeMap, BTreeSet};

use trace::rows::MessageKind;

use super::conversation::Conversation;
use super::draft::{COUNTED, Draft, FRAMING};
use super::rpc::{Calls, FramedMessages, assign};
use crate::join::Direction;

/// `Server.CURRENT_VERSION` of 1.x.
const VERSION: u8 = 4;
/// Bytes of "hrpc", version and authentication.
const PREAMBLE: u64 = 6;
/// `Server.MAX_QUEUE_SIZE` aside, nothing limits a request; the largest are block reports of some MiB.
const MAX_REQUEST: u32 = 64 << 20;
/// Instead of a length: a ping.
const PING: [u8; 4] = [0xff; 4];
/// Longest name of a method or class that is believed.
const MAX_NAME: usize = 200;

/// A request of which length, call and method are known.
struct Request {
    bytes: u64,
    call: i64,
    method: String,
}

/// Whether a connection speaks this version: it says so at its beginning, or its client sends such requests.
pub(super) fn is_rpc(conversation: &Conversation<'_>) -> bool {
    let client = conversation.client;
    let first = client.content.at(0);
    if first.starts_with(b"hrpc") {
        return first.get(4) == Some(&VERSION);
    }
    let mut starts = client.stream.segments.iter().take(64).map(|segment| segment.offset);
    starts.any(|offset| request(client.content.at(offset)).is_some())
}

/// Reads both directions.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let calls = Calls::of(conversation);
    let mut requests = requests(conversation.client);
    let seen: BTreeSet<i64> = requests.drafts.iter().map(|draft| draft.call).collect();
    let missing = calls.asked.iter().filter(|(_, call)| !seen.contains(call)).copied().collect();
    assign(&mut requests, conversation.client, missing);
    let mut methods = calls.methods.clone();
    for draft in requests.drafts.iter_mut().filter(|draft| draft.kind == MessageKind::RpcRequest) {
        if draft.name.is_empty() {
            draft.name = methods.get(&draft.call).cloned().unwrap_or_default();
        } else {
            methods.insert(draft.call, draft.name.clone());
        }
    }
    let asked = asked(conversation.client, &requests.drafts, &calls);
    let mut drafts = requests.drafts;
    let starts = responses(conversation.server, &asked);
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([conversation.server.end]);
    for (&(at, call), end) in starts.iter().zip(ends) {
        let mut draft = Draft::new(false, MessageKind::RpcResponse, at, end - at);
        (draft.call, draft.name) = (call, methods.get(&call).cloned().unwrap_or_default());
        drafts.push(draft);
    }
    drafts
}

/// Walks over what the client says.
fn requests(client: &Direction) -> FramedMessages {
    let mut walk = FramedMessages::default();
    let mut at = 0;
    let mut in_step = false;
    if client.content.at(0).starts_with(b"hrpc") {
        // Behind the preamble comes the connection's header with its length, or a negotiation: until the first request.
        let header = client.content.at(PREAMBLE).first_chunk().map(|length| u64::from(u32::from_be_bytes(*length)));
        let behind = header.map(|length| PREAMBLE + 4 + length).filter(|end| *end <= client.end);
        let plain = behind.filter(|end| *end == client.end || begins(client.content.at(*end)));
        at = plain.unwrap_or_else(|| next(client, 0));
        walk.drafts.push(Draft::new(true, MessageKind::RpcConnect, 0, at));
        in_step = true;
    }
    while at < client.end {
        let bytes = client.content.at(at);
        if let Some(request) = request(bytes) {
            let mut draft = Draft::new(true, MessageKind::RpcRequest, at, request.bytes);
            (draft.call, draft.name) = (request.call, request.method);
            at += request.bytes;
            walk.drafts.push(draft);
            in_step = true;
        } else if bytes.starts_with(&PING) {
            walk.drafts.push(Draft::new(true, MessageKind::RpcPing, at, 4));
            at += 4;
        } else {
            let next = next(client, at);
            if in_step {
                walk.hidden.push(walk.drafts.len());
                walk.drafts.push(Draft {
                    evidence: COUNTED,
                    // No call has this id.
                    call: i64::MIN,
                    ..Draft::new(true, MessageKind::RpcRequest, at, next - at)
                });
            }
            at = next;
        }
    }
    walk
}

fn begins(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.starts_with(&PING) || request(bytes).is_some()
}

/// The next segment that begins with a request, or the end.
fn next(client: &Direction, at: u64) -> u64 {
    let segments = &client.stream.segments;
    let next = segments.partition_point(|segment| segment.offset <= at);
    let starts = segments[next..].iter().map(|segment| segment.offset);
    starts.into_iter().find(|&offset| request(client.content.at(offset)).is_some()).unwrap_or(client.end)
}

/// Reads a request: int32 length, int32 call, method as UTF8, int32 number of parameters.
fn request(bytes: &[u8]) -> Option<Request> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?);
    let call = i32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
    let (method, behind) = name(bytes.get(8..)?)?;
    let parameters = bytes.get(8 + behind..8 + behind + 4).map(|count| count[..3] == [0; 3] && count[3] <= 64);
    let fits = (10 + method.len() as u32..=MAX_REQUEST).contains(&length) && call >= 0;
    (fits && parameters != Some(false) && is_identifier(method)).then(|| Request {
        bytes: 4 + u64::from(length),
        call: i64::from(call),
        method: method.to_owned(),
    })
}

/// A name as `UTF8` writes it, and the bytes that it takes.
fn name(bytes: &[u8]) -> Option<(&str, usize)> {
    let length = usize::from(u16::from_be_bytes(*bytes.first_chunk()?));
    let text = std::str::from_utf8(bytes.get(2..2 + length)?).ok()?;
    (1..=MAX_NAME).contains(&length).then_some((text, 2 + length))
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// When each call can be answered at the earliest: its request has been delivered. Calls of requests that were not
/// captured are known by their JVMs.
fn asked(client: &Direction, requests: &[Draft], calls: &Calls) -> BTreeMap<i64, u64> {
    let mut asked: BTreeMap<i64, u64> = calls.asked.iter().map(|&(at, call)| (call, at)).collect();
    for request in requests.iter().filter(|draft| draft.kind == MessageKind::RpcRequest && draft.evidence == FRAMING) {
        if let Some(first) = client.stream.range(request.offset, request.bytes).first() {
            asked.insert(request.call, first.sent_ns);
        }
    }
    asked
}

/// Where responses begin, and to which calls: at the beginnings of segments, and where one that is missing lies inside
/// of a segment.
fn responses(server: &Direction, asked: &BTreeMap<i64, u64>) -> Vec<(u64, i64)> {
    let mut starts: BTreeMap<u64, i64> = BTreeMap::new();
    let mut answered = BTreeSet::new();
    for segment in &server.stream.segments {
        let call = response(server.content.at(segment.offset));
        let known = |call: &i64| asked.get(call).is_some_and(|at| *at <= segment.sent_ns) && !answered.contains(call);
        if let Some(call) = call.filter(known) {
            answered.insert(call);
            starts.insert(segment.offset, call);
        }
    }
    if answered.len() < asked.len() {
        for (offset, run) in server.content.runs(0, server.end) {
            for place in 0..run.len() {
                let at = offset + place as u64;
                let call = response(&run[place..]).filter(|call| asked.contains_key(call) && !answered.contains(call));
                if let Some(call) = call {
                    answered.insert(call);
                    starts.insert(at, call);
                }
            }
        }
    }
    starts.into_iter().collect()
}

/// Reads the beginning of a response: int32 call, int32 status (0 = done, 1 = error, -1 = fatal), then the name of a
/// class, as UTF8 where it is done and with an int32 length where it is not.
fn response(bytes: &[u8]) -> Option<i64> {
    let call = i32::from_be_bytes(*bytes.first_chunk()?);
    let status = i32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
    let class = match status {
        0 => name(bytes.get(8..)?)?.0,
        1 | -1 => {
            let length = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?) as usize;
            std::str::from_utf8(bytes.get(12..12 + length.min(MAX_NAME))?).ok()?
        }
        _ => return None,
    };
    let fits = call >= 0
        && class.starts_with(|first: char| first.is_ascii_alphabetic() || first == '[')
        && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._$[;".contains(&byte));
    fits.then_some(i64::from(call))
}
