//! Map outputs by what those who served them said, or else those who fetched them: when they were asked, and how many
//! bytes there were.

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::super::http::MAP_OUTPUT;
use super::super::turns::Turns;
use super::super::writable::ShuffleHeader;
use super::super::{Conversation, Draft, HEADERS, JVM, SHARED};
use super::place::{TOLERANCES_NS, segments};
use super::turns::{begin_of_turn, first_sent};

/// The head of an answer, with the headers of its map outputs, is shorter; what an answer has beyond them is encryption.
const LONGEST_HEAD: u64 = 2048;

/// No output is larger; a record that says so is damaged.
const LARGEST_OUTPUT: u64 = 1 << 50;

/// A map's output that was served, or fetched.
struct Served<'a> {
    t0: u64,
    map: &'a str,
    reduce: u32,
    bytes: u64,
}

/// A request, and the outputs that answer it.
struct Request<'a> {
    from: u64,
    to: u64,
    outputs: Vec<Served<'a>>,
}

/// Reads a connection.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let (client, server) = (conversation.client, conversation.server);
    let (requests, mut drafts) = requests(conversation);
    let ends: Vec<u64> = requests.iter().map(|request| request.to).collect();
    let turns = Turns::new(client, server, &ends);
    // Whoever shakes hands before the first request encrypts.
    let encrypted = drafts.iter().any(|draft| draft.kind == MessageKind::Sasl);
    let begin = drafts.iter().filter(|draft| !draft.from_client).map(Draft::end).max().unwrap_or(0);
    for (number, request) in requests.iter().enumerate() {
        let mut asked = Draft::new(true, MessageKind::ShuffleRequest, request.from, request.to - request.from);
        (asked.name, asked.call, asked.evidence) = (MAP_OUTPUT.to_owned(), number as i64, JVM);
        asked.reduce = request.outputs.first().map(|output| output.reduce);
        drafts.push(asked);
        let (from, to) = turns.answer(number);
        answer(conversation, number, request, encrypted, (from.max(begin), to), &mut drafts);
    }
    drafts
}

/// Requests by when they had been received, and drafts of what both sides said before the first one.
fn requests<'a>(conversation: &Conversation<'a>) -> (Vec<Request<'a>>, Vec<Draft>) {
    let (client, server) = (conversation.client, conversation.server);
    let mut served: Vec<Served<'a>> = conversation
        .records
        .iter()
        .filter_map(|(record, _)| match record {
            JvmRecord::ShuffleServed { t0, map, reduce, bytes, .. } => {
                Some(Served { t0: *t0, map, reduce: *reduce, bytes: *bytes })
            }
            _ => None,
        })
        .collect();
    if served.is_empty() {
        // A fetcher says when an answer began to come: its request was long there.
        let fetched = conversation.records.iter().filter_map(|(record, _)| match record {
            JvmRecord::Fetch { t0, map, reduce, bytes, .. } => {
                Some(Served { t0: *t0, map, reduce: *reduce, bytes: *bytes })
            }
            _ => None,
        });
        served.extend(fetched);
    }
    // Outputs of one request follow each other as they were recorded.
    served.sort_by_key(|output| output.t0);
    let pieces = segments(client);
    let mut drafts = Vec::new();
    let mut requests: Vec<Request<'a>> = Vec::new();
    for output in served {
        let by = |tolerance_ns: u64| {
            let received = output.t0.saturating_add(tolerance_ns);
            pieces.partition_point(|piece| piece.delivered_ns <= received)
        };
        let behind = TOLERANCES_NS.into_iter().map(by).find(|behind| *behind > 0).unwrap_or(0);
        let to = behind.checked_sub(1).map_or(0, |last| pieces[last].to);
        let from = match requests.last_mut() {
            Some(request) if to <= request.to => {
                request.outputs.push(output);
                continue;
            }
            Some(request) => request.to,
            None => {
                let first = begin_of_turn(&pieces, behind, server);
                let (from, asked_ns) = pieces.get(first).map_or((0, 0), |piece| (piece.from, piece.sent_ns));
                let kind = if conversation.from_begin { MessageKind::Sasl } else { MessageKind::Unknown };
                drafts.extend(before(kind, from, first_sent(server, asked_ns)));
                from
            }
        };
        requests.push(Request { from, to, outputs: vec![output] });
    }
    (requests, drafts)
}

/// What both sides said before the first request: a handshake, or if the capture begins later, nobody knows what.
fn before(kind: MessageKind, client: u64, server: u64) -> impl Iterator<Item = Draft> {
    let name = if kind == MessageKind::Sasl { "tls" } else { "" };
    let sides = [(true, client), (false, if client > 0 { server } else { 0 })];
    sides.into_iter().filter(|(_, bytes)| *bytes > 0).map(move |(from_client, bytes)| {
        let draft = Draft::new(from_client, kind, 0, bytes);
        Draft { name: name.to_owned(), evidence: HEADERS, ..draft }
    })
}

/// Cuts an answer into its map outputs. Each is as long as its header and what was served, the first one longer by the
/// head of the answer; under encryption each is longer in proportion.
fn answer(
    conversation: &Conversation<'_>,
    number: usize,
    request: &Request<'_>,
    encrypted: bool,
    (from, to): (u64, u64),
    drafts: &mut Vec<Draft>,
) {
    if from >= to {
        return;
    }
    let length = |output: &Served<'_>| {
        let raw = conversation.fetches.get(&(output.map.to_owned(), output.reduce)).map(|(_, raw)| *raw);
        let header = ShuffleHeader::length_of(output.map, output.bytes, raw.unwrap_or(output.bytes), output.reduce);
        output.bytes.saturating_add(header).min(LARGEST_OUTPUT)
    };
    let lengths: Vec<u64> = request.outputs.iter().map(length).collect();
    let all: u64 = lengths.iter().sum();
    let beyond = (to - from).checked_sub(all);
    let plain = !encrypted && beyond.is_some_and(|head| head <= LONGEST_HEAD);
    let (mut start, mut done) = (from, 0);
    for (output, length) in request.outputs.iter().zip(lengths) {
        done += length;
        let end = if plain {
            from + beyond.unwrap_or(0) + done
        } else {
            from + (u128::from(to - from) * u128::from(done) / u128::from(all.max(1))) as u64
        };
        let mut draft = Draft::new(false, MessageKind::ShuffleResponse, start, end - start);
        (draft.name, draft.call) = (MAP_OUTPUT.to_owned(), number as i64);
        draft.evidence = if plain || request.outputs.len() == 1 { JVM } else { SHARED };
        draft.app_bytes = output.bytes.min(end - start);
        (draft.map, draft.reduce) = (Some(output.map.to_owned()), Some(output.reduce));
        drafts.push(draft);
        start = end;
    }
}
