//! RPC calls by the stamps of both JVMs.

use std::collections::BTreeMap;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::super::conversation::Conversation;
use super::super::draft::{Draft, HEADERS, JVM, SHARED};
use super::super::rpc_constants::{CONNECTION_CONTEXT, PING, PREAMBLE, SASL};
use super::context;
use super::place::{Piece, PieceRange, Window, place, segments};
use super::turns::begin_of_turn;
use crate::join::Direction;

/// A ping is a length and RpcRequestHeaderProto.
const MAX_PING: u64 = 64;
/// The first call, behind a connection context, has at least its own length and header.
const MIN_CALL: u64 = 32;

/// A server says how to negotiate; and once more, that a token was good.
const ANSWERS_TO_TOKEN: usize = 2;

/// A negotiation takes fewer segments of one side than this. Where more come before the first call that was recorded, an
/// agent was loaded when the connection had been in use for a while.
const MAX_NEGOTIATION: usize = 9;

/// What JVMs say of a call.
#[derive(Clone, Debug)]
struct Call {
    method: String,
    /// Caller context.
    context: String,
    request: Window,
    response: Window,
}

impl Call {
    fn new(call: i64) -> Self {
        let window = Window { call, after_ns: 0, by_ns: u64::MAX };
        Self { method: String::new(), context: String::new(), request: window, response: window }
    }

    /// The task attempt for which it was made, as its context says.
    fn attempt(&self) -> Option<String> {
        let attempt = self.context.strip_prefix("mr_").filter(|context| context.starts_with("attempt_"));
        attempt.map(str::to_owned)
    }
}

/// Whether the calls are those of 1.x: clients have had ids since.
fn is_older(conversation: &Conversation<'_>) -> bool {
    conversation.records.iter().all(|(record, _)| match record {
        JvmRecord::Rpc { client, .. } | JvmRecord::Call { client, .. } => client.is_empty(),
        _ => true,
    })
}

/// The calls on a connection. Where only one side has an agent, its stamps bound the other side's as well.
fn calls(conversation: &Conversation<'_>) -> BTreeMap<i64, Call> {
    let mut calls: BTreeMap<i64, Call> = BTreeMap::new();
    let known = |time: u64| (time > 0).then_some(time);
    for (record, _) in &conversation.records {
        match record {
            JvmRecord::Rpc { received, end, responded, call, method, context, .. } => {
                let entry = calls.entry(*call).or_insert_with(|| Call::new(*call));
                (entry.method, entry.context) = (method.clone(), context.clone());
                entry.request.by_ns = *received;
                entry.response.after_ns = known(*responded).unwrap_or(*end);
            }
            JvmRecord::Call { t, sent, received, call, method, .. } => {
                let entry = calls.entry(*call).or_insert_with(|| Call::new(*call));
                if entry.method.is_empty() {
                    entry.method.clone_from(method);
                }
                entry.request.after_ns = known(*sent).unwrap_or(*t);
                entry.response.by_ns = known(*received).unwrap_or(u64::MAX);
            }
            _ => {}
        }
    }
    for call in calls.values_mut() {
        call.request.by_ns = call.request.by_ns.min(call.response.by_ns);
        call.response.after_ns = call.response.after_ns.max(call.request.after_ns);
    }
    calls
}

/// One direction: its pieces, and where on them which messages are.
struct Placed {
    pieces: Vec<Piece>,
    windows: Vec<Window>,
    places: Vec<PieceRange>,
}

impl Placed {
    fn new(pieces: Vec<Piece>, mut windows: Vec<Window>) -> Self {
        windows.sort_by_key(Window::order);
        let places = place(&pieces, &windows);
        Self { pieces, windows, places }
    }

    /// The call and bytes of each message, in order, and whether it was cut out of a segment with others.
    fn messages(&self) -> Vec<(i64, u64, u64, bool)> {
        let mut found = Vec::with_capacity(self.places.len());
        let mut at = 0;
        while at < self.places.len() {
            let place = &self.places[at];
            let last = place.pieces.end;
            let together = self.places[at..].iter().take_while(|place| place.pieces.end == last).count();
            let (Some(first), Some(shared)) =
                (self.pieces.get(place.pieces.start), self.pieces.get(last.wrapping_sub(1)))
            else {
                at += 1;
                continue;
            };
            // What is before the segment that they share is the first one's; in it, they get equal parts.
            let mut from = first.from;
            for part in 0..together {
                let to = shared.from + (shared.to - shared.from) * (part as u64 + 1) / together as u64;
                found.push((self.windows[at + part].call, from, to, together > 1));
                from = to;
            }
            at += together;
        }
        found
    }

    /// Pieces that are nobody's, and whether they come before all calls.
    fn rest(&self) -> Vec<(Piece, bool)> {
        let mut taken = vec![false; self.pieces.len()];
        let first = self.places.iter().filter(|place| !place.pieces.is_empty()).map(|place| place.pieces.start).min();
        for place in &self.places {
            taken[place.pieces.clone()].fill(true);
        }
        let first = first.unwrap_or(self.pieces.len());
        let rest = self.pieces.iter().zip(taken).enumerate().filter(|(_, (_, taken))| !taken);
        rest.map(|(number, (piece, _))| (*piece, number < first)).collect()
    }
}

/// Reads a connection.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let calls = calls(conversation);
    let responses = Placed::new(segments(conversation.server), calls.values().map(|call| call.response).collect());
    let mut negotiated: Vec<Piece> =
        responses.rest().into_iter().filter(|(_, before)| *before).map(|(piece, _)| piece).collect();
    let opened = conversation.from_begin && negotiated.len() < MAX_NEGOTIATION;
    if !opened {
        negotiated.clear();
    }
    let by_token = negotiated.len() >= ANSWERS_TO_TOKEN;
    let negotiated = negotiated.iter().map(|piece| silent(MessageKind::Sasl, SASL, (piece.from, piece.to), false));
    let mut drafts: Vec<Draft> = negotiated.collect();
    for (call, from, to, shared) in responses.messages() {
        drafts.push(message(&calls, call, MessageKind::RpcResponse, (from, to), shared));
    }
    drafts.append(&mut requests(conversation, &calls, opened, by_token));
    drafts
}

/// `opened` tells whether the first call that is known is the first one of the connection, and `by_token` how it was
/// negotiated.
fn requests(conversation: &Conversation<'_>, calls: &BTreeMap<i64, Call>, opened: bool, by_token: bool) -> Vec<Draft> {
    let mut requests = Placed::new(segments(conversation.client), calls.values().map(|call| call.request).collect());
    // Without a stamp of its client the first call would have all that was said before it.
    if let (Some(window), Some(place)) = (requests.windows.first(), requests.places.first_mut())
        && window.after_ns == 0
        && !place.pieces.is_empty()
    {
        let mut begin = begin_of_turn(&requests.pieces, place.pieces.end, conversation.server);
        // Who needs no token says so and goes on in the same turn.
        let announced = opened && begin > 0 && !by_token;
        begin += usize::from(announced && begin + 1 < place.pieces.end);
        place.pieces.start = place.pieces.start.max(begin);
    }
    let mut drafts = Vec::new();
    let older = is_older(conversation);
    // In 1.x it is one message with what follows.
    let opening = if conversation.from_begin && !older { PREAMBLE.min(conversation.client.end) } else { 0 };
    if opening > 0 {
        drafts.push(silent(MessageKind::RpcConnect, 0, (0, opening), true));
    }
    let rest = requests.rest();
    let opened = opened && rest.iter().filter(|(_, before)| *before).count() < MAX_NEGOTIATION;
    for (piece, before) in rest {
        let (from, to) = (piece.from.max(opening), piece.to);
        if from >= to {
            continue;
        }
        if before && opened {
            drafts.push(silent(MessageKind::Sasl, SASL, (from, to), true));
        } else if !before && to - from <= MAX_PING {
            drafts.push(silent(MessageKind::RpcPing, PING, (from, to), true));
        }
    }
    for (number, (call, from, to, shared)) in requests.messages().into_iter().enumerate() {
        let mut from = from.max(opening);
        let mut shared = shared;
        if number == 0
            && opened
            && let Some(behind) = context_end(conversation, calls, (call, from, to), by_token)
        {
            drafts.push(context_of(older, (from, behind)));
            (from, shared) = (behind, true);
        }
        if from < to {
            drafts.push(message(calls, call, MessageKind::RpcRequest, (from, to), shared));
        }
    }
    drafts
}

/// Where a connection's context ends that is in front of its first call, if there is room for both.
fn context_end(
    conversation: &Conversation<'_>,
    calls: &BTreeMap<i64, Call>,
    (call, from, to): (i64, u64, u64),
    by_token: bool,
) -> Option<u64> {
    let methods = calls.values().map(|call| call.method.as_str());
    let caller = calls.get(&call).map_or("", |call| call.context.as_str());
    let context = if is_older(conversation) {
        context::bytes_1(methods, by_token) - if from == 0 { 0 } else { context::PREAMBLE_1 }
    } else {
        context::bytes(methods, caller, by_token)
    };
    (from + context + MIN_CALL <= to).then_some(from + context)
}

fn context_of(older: bool, range: (u64, u64)) -> Draft {
    let call = if older { 0 } else { CONNECTION_CONTEXT };
    Draft { evidence: SHARED, ..silent(MessageKind::RpcConnect, call, range, true) }
}

fn message(calls: &BTreeMap<i64, Call>, number: i64, kind: MessageKind, (from, to): (u64, u64), shared: bool) -> Draft {
    let from_client = kind == MessageKind::RpcRequest;
    let mut draft = Draft::new(from_client, kind, from, to - from);
    if let Some(call) = calls.get(&number) {
        draft.name.clone_from(&call.method);
        draft.attempt = if from_client { call.attempt() } else { None };
    }
    (draft.call, draft.evidence) = (number, if shared { SHARED } else { JVM });
    draft
}

/// A message of which no JVM speaks.
fn silent(kind: MessageKind, call: i64, (from, to): (u64, u64), from_client: bool) -> Draft {
    Draft { call, evidence: HEADERS, ..Draft::new(from_client, kind, from, to - from) }
}

/// Calls inside SASL: `frames` are the messages of both directions, of which those named `name` wrap what was said. Each
/// call gets the frames that went in its time; frames that are nobody's stay what they are.
pub(in super::super) fn unwrapped(conversation: &Conversation<'_>, frames: Vec<Draft>, name: &str) -> Vec<Draft> {
    let calls = calls(conversation);
    let (wrapped, mut drafts): (Vec<Draft>, Vec<Draft>) =
        frames.into_iter().partition(|draft| draft.kind == MessageKind::Sasl && draft.name == name);
    for (from_client, kind) in [(true, MessageKind::RpcRequest), (false, MessageKind::RpcResponse)] {
        let direction = conversation.direction(from_client);
        let frames: Vec<&Draft> = wrapped.iter().filter(|draft| draft.from_client == from_client).collect();
        let pieces: Vec<Piece> = frames.iter().filter_map(|draft| piece(direction, draft)).collect();
        let windows = calls.values().map(|call| if from_client { call.request } else { call.response }).collect();
        let placed = Placed::new(pieces, windows);
        let rest = placed.rest();
        // The context is wrapped with the first call, in one token.
        let opened = from_client && conversation.from_begin && rest.iter().all(|(_, before)| !before);
        for (number, (call, mut from, to, mut shared)) in placed.messages().into_iter().enumerate() {
            if number == 0
                && opened
                && let Some(behind) = context_end(conversation, &calls, (call, from, to), true)
            {
                drafts.push(context_of(false, (from, behind)));
                (from, shared) = (behind, true);
            }
            drafts.push(message(&calls, call, kind, (from, to), shared));
        }
        let rest = frames.iter().filter(|draft| rest.iter().any(|(piece, _)| piece.from == draft.offset));
        drafts.extend(rest.map(|draft| Draft::clone(draft)));
    }
    drafts
}

/// A frame as a piece: when its bytes went.
fn piece(direction: &Direction, draft: &Draft) -> Option<Piece> {
    let segments = direction.stream.range(draft.offset, draft.bytes);
    let (first, last) = (segments.first()?, segments.last()?);
    Some(Piece { from: draft.offset, to: draft.end(), sent_ns: first.sent_ns, delivered_ns: last.delivered_ns })
}
