//! Map outputs by what those who served them said, or else those who fetched them: when they were asked, and how many
//! bytes there were.

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::super::conversation::Conversation;
use super::super::draft::{Draft, HEADERS, JVM, SHARED};
use super::super::http::MAP_OUTPUT;
use super::super::turns::Turns;
use super::super::writable::ShuffleHeader;
use super::place::{TOLERANCES_NS, segments};
use super::tls;
use super::turns::{begin_of_turn, first_sent};

/// The head of an answer, with the headers of its map outputs, is shorter; what an answer has beyond them is encryption.
const MAX_HEAD: u64 = 2048;

/// Name of what only TLS has to say.
const TLS: &str = "tls";

/// No output is larger; a record that says so is damaged.
const MAX_OUTPUT: u64 = 1 << 50;

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
    // Both sides close with an alert of the same length; nothing else that a client says is so short.
    let asked = ends.last().copied().unwrap_or(0);
    let goodbye = client.end.saturating_sub(asked);
    let overhead = if encrypted { tls::overhead_of_goodbye(goodbye) } else { None };
    if overhead.is_some() {
        drafts.push(closing(true, (asked, client.end)));
    }
    for (number, request) in requests.iter().enumerate() {
        let mut asked = Draft::new(true, MessageKind::ShuffleRequest, request.from, request.to - request.from);
        (asked.name, asked.call, asked.evidence) = (MAP_OUTPUT.to_owned(), number as i64, JVM);
        asked.reduce = request.outputs.first().map(|output| output.reduce);
        drafts.push(asked);
        let (from, to) = turns.answer(number);
        let place = (number, (from.max(begin), to));
        if !encrypted {
            answer(conversation, request, place, Cover::None, &mut drafts);
            continue;
        }
        let last = number + 1 == requests.len();
        let mut closes: Vec<u64> = vec![0];
        if last && overhead.is_some() && to == server.end {
            closes.insert(0, goodbye);
        }
        let overheads: Vec<u64> = overhead.map_or(tls::OVERHEADS.to_vec(), |overhead| vec![overhead]);
        let shaped = closes.iter().flat_map(|&close| overheads.iter().map(move |&overhead| (close, overhead)));
        let shaped = shaped
            .filter_map(|(close, overhead)| {
                let all = to.checked_sub(close)?.checked_sub(from.max(begin))?;
                Some((close, tls::lengths(&sizes(conversation, request), all, overhead)?))
            })
            .next();
        // What does not have that shape still closes in a segment of its own.
        let alone = || closes[0] > 0 && segments(server).last().is_some_and(|last| last.to - last.from == closes[0]);
        let (close, cover) = match shaped {
            Some((close, lengths)) => (close, Cover::Shaped(lengths)),
            None => (if alone() { closes[0] } else { 0 }, Cover::Unknown),
        };
        answer(conversation, request, (number, (from.max(begin), to - close)), cover, &mut drafts);
        if close > 0 {
            drafts.push(closing(false, (to - close, to)));
        }
    }
    drafts
}

/// The alert by which one side closes a connection over TLS.
fn closing(from_client: bool, (from, to): (u64, u64)) -> Draft {
    let draft = Draft::new(from_client, MessageKind::Sasl, from, to - from);
    Draft { name: TLS.to_owned(), evidence: HEADERS, ..draft }
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
        // Times out of order can put the begin of the turn behind what had been received.
        requests.push(Request { from, to: to.max(from), outputs: vec![output] });
    }
    (requests, drafts)
}

/// What both sides said before the first request: a handshake, or if the capture begins later, nobody knows what.
fn before(kind: MessageKind, client: u64, server: u64) -> impl Iterator<Item = Draft> {
    let name = if kind == MessageKind::Sasl { TLS } else { "" };
    let sides = [(true, client), (false, if client > 0 { server } else { 0 })];
    sides.into_iter().filter(|(_, bytes)| *bytes > 0).map(move |(from_client, bytes)| {
        let draft = Draft::new(from_client, kind, 0, bytes);
        Draft { name: name.to_owned(), evidence: HEADERS, ..draft }
    })
}

/// How an answer is encrypted.
enum Cover {
    /// It is not.
    None,
    /// So that its outputs have these lengths.
    Shaped(Vec<u64>),
    /// In some way.
    Unknown,
}

/// Bytes of the header of each output of an answer, and of the output itself.
fn sizes(conversation: &Conversation<'_>, request: &Request<'_>) -> Vec<(u64, u64)> {
    let size = |output: &Served<'_>| {
        let raw = conversation.fetches.get(output.map, output.reduce).map(|size| size.raw);
        let header = ShuffleHeader::length_of(output.map, output.bytes, raw.unwrap_or(output.bytes), output.reduce);
        (header, output.bytes.min(MAX_OUTPUT))
    };
    request.outputs.iter().map(size).collect()
}

/// Cuts an answer into its map outputs. Each is as long as its header and what was served, the first one longer by the
/// head of the answer; under encryption that is not understood each is longer in proportion.
fn answer(
    conversation: &Conversation<'_>,
    request: &Request<'_>,
    (number, (from, to)): (usize, (u64, u64)),
    cover: Cover,
    drafts: &mut Vec<Draft>,
) {
    if from >= to {
        return;
    }
    let plain: Vec<u64> = sizes(conversation, request).iter().map(|(header, bytes)| header + bytes).collect();
    let all: u64 = plain.iter().sum();
    let head = (to - from).checked_sub(all).filter(|head| *head <= MAX_HEAD);
    // Ends of the outputs, and whether they are more than likely.
    let (ends, sure): (Vec<u64>, bool) = match (cover, head) {
        (Cover::Shaped(lengths), _) => (running(&lengths).map(|done| from + done).collect(), true),
        (Cover::None, Some(head)) => (running(&plain).map(|done| from + head + done).collect(), true),
        _ => {
            let share = |done: u64| (u128::from(to - from) * u128::from(done) / u128::from(all.max(1))) as u64;
            (running(&plain).map(|done| from + share(done)).collect(), plain.len() == 1)
        }
    };
    let mut start = from;
    for (output, end) in request.outputs.iter().zip(ends) {
        let mut draft = Draft::new(false, MessageKind::ShuffleResponse, start, end - start);
        (draft.name, draft.call) = (MAP_OUTPUT.to_owned(), number as i64);
        draft.evidence = if sure { JVM } else { SHARED };
        draft.app_bytes = output.bytes.min(end - start);
        (draft.map, draft.reduce) = (Some(output.map.to_owned()), Some(output.reduce));
        drafts.push(draft);
        start = end;
    }
}

/// Sums of the first one, the first two, ...
fn running(lengths: &[u64]) -> impl Iterator<Item = u64> {
    lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    })
}
