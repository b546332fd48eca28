//! Hadoop RPC, version 9 (2.x and 3.x): frames of a length, a header and a body.

use std::collections::{BTreeMap, BTreeSet};

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::conversation::Conversation;
use super::draft::{COUNTED, Draft, JVM};
use super::opaque;
use super::proto::{Message, zigzag};
use super::rpc_constants::{CONNECTION_CONTEXT, PING, PREAMBLE, SASL};
use super::writable;
use crate::join::Direction;

/// `ipc.maximum.data.length` of Hadoop: 128 MiB.
const MAX_FRAME: u64 = 128 << 20;
/// `RpcSaslProto.SaslState`: what follows is wrapped.
const WRAP: u64 = 5;
/// `RpcKindProto`: what is called and with what stands in Hadoop's own serialisation.
const WRITABLE: u64 = 1;
/// Name of a message that wraps others.
const WRAPPED: &str = "wrap";
/// How far a JVM's stamps may lie from those of the packets that they are about.
const NEAR_NS: u64 = 200_000_000;

/// A frame of which at least length and header are known.
struct Frame {
    bytes: u64,
    call: i64,
    method: String,
    attempt: Option<String>,
}

/// Whether a connection speaks RPC: it says so, its JVMs say so, or both directions hold frames.
pub(super) fn is_rpc(conversation: &Conversation<'_>) -> bool {
    let client = conversation.client;
    if client.content.at(0).starts_with(b"hrpc") {
        return true;
    }
    let recorded =
        conversation.records.iter().any(|(record, _)| matches!(record, JvmRecord::Rpc { .. } | JvmRecord::Call { .. }));
    let frames = |direction: &Direction, from_client: bool| {
        let starts = direction.stream.segments.iter().take(64).map(|segment| segment.offset);
        starts.filter(|&offset| frame(direction.content.at(offset), from_client).is_some()).count()
    };
    recorded || (frames(client, true) > 0 && (conversation.server.end == 0 || frames(conversation.server, false) > 0))
}

/// Reads both directions.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let calls = Calls::of(conversation);
    let mut requests = walk(conversation.client, true);
    let seen: BTreeSet<i64> = requests.drafts.iter().map(|draft| draft.call).collect();
    let missing = calls.asked.iter().filter(|(_, call)| !seen.contains(call)).copied().collect();
    assign(&mut requests, conversation.client, missing);
    let mut methods = calls.methods.clone();
    for draft in &mut requests.drafts {
        if draft.name.is_empty() && draft.kind == MessageKind::RpcRequest {
            draft.name = methods.get(&draft.call).cloned().unwrap_or_default();
        } else if !draft.name.is_empty() {
            methods.insert(draft.call, draft.name.clone());
        }
    }
    let mut responses = walk(conversation.server, false);
    let seen: BTreeSet<i64> = responses.drafts.iter().map(|draft| draft.call).collect();
    let missing = calls.answered.iter().filter(|(_, call)| !seen.contains(call)).copied().collect();
    assign(&mut responses, conversation.server, missing);
    for draft in &mut responses.drafts {
        if draft.name.is_empty() && draft.kind == MessageKind::RpcResponse {
            draft.name = methods.get(&draft.call).cloned().unwrap_or_default();
        }
    }
    requests.drafts.append(&mut responses.drafts);
    let drafts = requests.drafts;
    let wrapped = |draft: &Draft| draft.kind == MessageKind::Sasl && draft.name == WRAPPED;
    if drafts.iter().any(wrapped) { opaque::rpc::unwrapped(conversation, drafts, WRAPPED) } else { drafts }
}

/// What JVMs say of the calls on a connection.
pub(super) struct Calls {
    /// Their methods.
    pub methods: BTreeMap<i64, String>,
    /// When requests went, by the client or else the server; ordered.
    pub asked: Vec<(u64, i64)>,
    /// When responses went.
    answered: Vec<(u64, i64)>,
}

impl Calls {
    pub fn of(conversation: &Conversation<'_>) -> Self {
        let mut methods = BTreeMap::new();
        let (mut asked, mut answered) = (BTreeMap::new(), BTreeMap::new());
        for (record, _) in &conversation.records {
            match record {
                JvmRecord::Rpc { received, end, responded, call, method, .. } => {
                    methods.insert(*call, method.clone());
                    asked.entry(*call).or_insert(*received);
                    answered.insert(*call, (*end).max(*responded));
                }
                JvmRecord::Call { t, sent, received, call, method, .. } => {
                    methods.entry(*call).or_insert_with(|| method.clone());
                    asked.insert(*call, (*t).max(*sent));
                    if *received > 0 {
                        answered.entry(*call).or_insert(*received);
                    }
                }
                _ => {}
            }
        }
        let ordered = |times: BTreeMap<i64, u64>| {
            let mut times: Vec<(u64, i64)> = times.into_iter().map(|(call, t)| (t, call)).collect();
            times.sort_unstable();
            times
        };
        Self { methods, asked: ordered(asked), answered: ordered(answered) }
    }
}

/// Messages of one direction, and the numbers of those that were counted on over hidden frames.
#[derive(Default)]
pub(super) struct FramedMessages {
    pub drafts: Vec<Draft>,
    pub hidden: Vec<usize>,
}

fn walk(direction: &Direction, from_client: bool) -> FramedMessages {
    let mut walk = FramedMessages::default();
    let mut at = 0;
    // Whether the last frame ended where the next has to begin.
    let mut in_step = false;
    let kind = if from_client { MessageKind::RpcRequest } else { MessageKind::RpcResponse };
    if from_client && direction.content.at(0).starts_with(b"hrpc") {
        walk.drafts.push(Draft::new(true, MessageKind::RpcConnect, 0, PREAMBLE));
        at = PREAMBLE;
        in_step = true;
    } else if !from_client {
        in_step = direction.end > 0 && frame(direction.content.at(0), false).is_some();
    }
    while at < direction.end {
        if let Some(frame) = frame(direction.content.at(at), from_client) {
            let kind = match frame.call {
                CONNECTION_CONTEXT => MessageKind::RpcConnect,
                PING => MessageKind::RpcPing,
                SASL => MessageKind::Sasl,
                _ => kind,
            };
            let mut draft = Draft::new(from_client, kind, at, frame.bytes);
            draft.call = frame.call;
            draft.name = frame.method;
            draft.attempt = frame.attempt;
            at += frame.bytes;
            walk.drafts.push(draft);
            in_step = true;
            continue;
        }
        let next = resume(direction, at, from_client);
        if in_step {
            walk.hidden.push(walk.drafts.len());
            walk.drafts.push(Draft {
                evidence: COUNTED,
                // No call has this id.
                call: i64::MIN,
                ..Draft::new(from_client, kind, at, next - at)
            });
        }
        at = next;
    }
    walk
}

/// The next segment that begins with a frame, or the end.
fn resume(direction: &Direction, at: u64, from_client: bool) -> u64 {
    let segments = &direction.stream.segments;
    let next = segments.partition_point(|segment| segment.offset <= at);
    segments[next..]
        .iter()
        .map(|segment| segment.offset)
        .find(|&offset| frame(direction.content.at(offset), from_client).is_some())
        .unwrap_or(direction.end)
}

/// Gives hidden frames the calls of which nothing was seen and that went at that time; where there are several in one
/// place, they share its bytes evenly.
pub(super) fn assign(walk: &mut FramedMessages, direction: &Direction, mut missing: Vec<(u64, i64)>) {
    let mut whole = Vec::with_capacity(walk.drafts.len());
    let hidden: BTreeSet<usize> = walk.hidden.iter().copied().collect();
    for (number, mut draft) in std::mem::take(&mut walk.drafts).into_iter().enumerate() {
        if !hidden.contains(&number) {
            whole.push(draft);
            continue;
        }
        draft.call = 0;
        let segments = direction.stream.range(draft.offset, draft.bytes);
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            whole.push(draft);
            continue;
        };
        let from = first.sent_ns.saturating_sub(NEAR_NS);
        let to = last.delivered_ns.saturating_add(NEAR_NS);
        let (calls, rest): (Vec<_>, Vec<_>) = missing.into_iter().partition(|call| (from..=to).contains(&call.0));
        missing = rest;
        let shares = (calls.len() as u64).min(draft.bytes);
        if shares == 0 {
            whole.push(draft);
            continue;
        }
        let mut at = draft.offset;
        for (share, (_, call)) in (0..shares).zip(calls) {
            let end = draft.offset + draft.bytes * (share + 1) / shares;
            whole.push(Draft { call, evidence: JVM, offset: at, bytes: end - at, ..draft.clone() });
            at = end;
        }
    }
    walk.drafts = whole;
}

/// Reads a frame at the beginning of `bytes`.
fn frame(bytes: &[u8], request: bool) -> Option<Frame> {
    let length = u64::from(u32::from_be_bytes(*bytes.first_chunk()?));
    if !(2..=MAX_FRAME).contains(&length) {
        return None;
    }
    let rest = &bytes[4..];
    let rest = &rest[..rest.len().min(length as usize)];
    let (header, used) = Message::read_delimited(rest)?;
    if used as u64 > length {
        return None;
    }
    let call = if request { call_of_request(&header)? } else { call_of_response(&header)? };
    let (mut method, mut attempt) = (String::new(), None);
    if request {
        attempt = header
            .message(7)
            .and_then(|context| context.get(1)?.text().map(str::to_owned))
            .and_then(|context| context.strip_prefix("mr_").map(str::to_owned))
            .filter(|context| context.starts_with("attempt_"));
        let body = rest.get(used..).unwrap_or_default();
        if call >= 0 && header.get(1).and_then(|kind| kind.number()) == Some(WRITABLE) {
            method = writable::invoked(body).unwrap_or_default().to_owned();
        } else if call >= 0
            && let Some((request, _)) = Message::read_delimited(body)
        {
            method = request.get(1).and_then(|name| name.text()).unwrap_or_default().to_owned();
        }
    }
    // RpcSaslProto: 1 version, 2 state, 3 token. Of a long token only the beginning is kept.
    if call == SASL
        && let Some((sasl, _)) = rest.get(used..).and_then(Message::read_delimited)
        && sasl.get(2).and_then(|state| state.number()) == Some(WRAP)
    {
        method = WRAPPED.to_owned();
    }
    Some(Frame { bytes: 4 + length, call, method, attempt })
}

/// RpcRequestHeaderProto: 1 kind, 2 operation, 3 call id, 4 client id, 5 retry count, 6 trace, 7 caller context,
/// 8 state id, 9 router's state.
fn call_of_request(header: &Message<'_>) -> Option<i64> {
    let ordered = header.numbers().zip(header.numbers().skip(1)).all(|(a, b)| a < b);
    let kind = header.get(1)?.number()?;
    let operation = header.get(2)?.number()?;
    let call = zigzag(header.get(3)?.number()?);
    let client = header.get(4)?.bytes()?;
    let fits = ordered && kind <= 2 && operation <= 2 && call >= SASL && matches!(client.len(), 0 | 16);
    (fits && header.numbers().all(|number| number <= 12)).then_some(call)
}

/// RpcResponseHeaderProto: 1 call id, 2 status, 3 version, 4 exception, 5 message, 6 detail, 7 client id, 8 retry count,
/// 9 state id, 10 router's state.
fn call_of_response(header: &Message<'_>) -> Option<i64> {
    let ordered = header.numbers().zip(header.numbers().skip(1)).all(|(a, b)| a < b);
    let call = i64::from(header.get(1)?.number()? as u32 as i32);
    let status = header.get(2)?.number()?;
    let fits = ordered && status <= 2 && call >= SASL && header.numbers().all(|number| number <= 12);
    let recorded = match header.get(7) {
        Some(client) => matches!(client.bytes()?.len(), 0 | 16),
        // What wraps a response has a call id and a status, and nothing else.
        None => header.get(3).is_some() || !header.whole || call == SASL,
    };
    (fits && recorded).then_some(call)
}
