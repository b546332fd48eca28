//! Block operations by what DataNodes and their clients said: when each began and ended, and how much data it moved.

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::super::conversation::Conversation;
use super::super::draft::{Draft, HEADERS, JVM, SHARED};
use super::super::packets::Shape;
use super::super::transfer::{COPY, Operation, READ, REPLACE, WRITE, attempt_of_client, fill, name_of, op_of};
use super::super::turns::Turns;
use super::place::{Piece, TOLERANCES_NS, segments};
use super::turns::{self, begin_of_turn, first_sent};
use crate::join::Direction;

/// Requests and answers without block data are shorter.
const MAX_REQUEST: u64 = 8192;
const MAX_RESPONSE: u64 = 256;
/// What a token of SASL adds at least: its length, and 16 bytes for its number and authentication (RFC 2831, 2.4).
const MIN_WRAPPING: u64 = 20;
/// A reader's final word is a few bytes, also when it is wrapped.
const MAX_STATUS: u64 = 128;
/// A request to read names at least a block and a client.
const MIN_REQUEST: u64 = 32;
/// No block is larger; a record that says so is damaged.
const MAX_BLOCK: u64 = 1 << 50;
/// How far the offset may lie before the one asked for, from which a client says that it reads.
const NEAR_OFFSET: u64 = 1 << 20;
/// A client opens a reader at most so long before the DataNode hears of it.
const MAX_OPENING_NS: u64 = 60_000_000_000;

/// Stamps of two JVMs may differ by so much.
const MAX_TOLERANCE_NS: u64 = 3_000_000;

/// An operation as JVMs tell it.
#[derive(Clone)]
struct OperationRecord {
    operation: Operation,
    /// The DataNode (or else the client) began with it: it had the request.
    begin_ns: u64,
    /// It ended.
    end_ns: u64,
    /// The client began with it.
    opened_ns: Option<u64>,
    /// Data that was moved.
    bytes: Option<u64>,
    /// Data that the reader took.
    consumed: Option<u64>,
}

/// The operations on a connection, by time: as the DataNode tells them, with what the client adds.
fn recorded_operations(conversation: &Conversation<'_>) -> Vec<OperationRecord> {
    let mut operations: Vec<OperationRecord> = Vec::new();
    for (record, _) in &conversation.records {
        if let JvmRecord::Block { t0, t1, op, block, offset, length, bytes, client, .. } = record {
            let op = op_of(op);
            let operation = Operation {
                op,
                block: Some(*block),
                attempt: attempt_of_client(client),
                offset: *offset,
                length: (op == READ).then_some(*length),
                evidence: JVM,
                ..Operation::default()
            };
            let bytes = Some(*bytes).filter(|bytes| *bytes <= MAX_BLOCK);
            operations.push(OperationRecord {
                operation,
                begin_ns: *t0,
                end_ns: *t1,
                opened_ns: None,
                bytes,
                consumed: None,
            });
        }
    }
    for (record, _) in &conversation.records {
        let (op, t0, t1, block, offset, length, bytes, consumed) = match record {
            JvmRecord::BlockRead { t0, t1, block, offset, length, consumed, .. } => {
                (READ, *t0, *t1, *block, *offset, Some(*length), None, Some(*consumed))
            }
            JvmRecord::BlockWrite { t0, t1, block, bytes, .. } => {
                (WRITE, *t0, *t1, *block, 0, None, Some(*bytes).filter(|bytes| *bytes <= MAX_BLOCK), None)
            }
            _ => continue,
        };
        let fits = |known: &&mut OperationRecord| {
            known.opened_ns.is_none()
                && known.operation.op == op
                && known.operation.block == Some(block)
                && known.operation.offset.abs_diff(offset) < NEAR_OFFSET
                && t0 <= known.begin_ns.saturating_add(MAX_TOLERANCE_NS)
                && known.begin_ns.saturating_sub(t0) < MAX_OPENING_NS
        };
        if let Some(known) = operations.iter_mut().filter(fits).min_by_key(|known| known.begin_ns.abs_diff(t0)) {
            (known.opened_ns, known.consumed) = (Some(t0), consumed);
        } else if !operations.iter().any(|known| known.operation.block == Some(block) && known.operation.op == op) {
            let operation = Operation { op, block: Some(block), offset, length, evidence: JVM, ..Operation::default() };
            operations.push(OperationRecord {
                operation,
                begin_ns: t0,
                end_ns: t1,
                opened_ns: Some(t0),
                bytes,
                consumed,
            });
        }
    }
    operations.sort_by_key(|operation| (operation.begin_ns, operation.operation.block));
    operations
}

/// Reads a connection.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let (client, server) = (conversation.client, conversation.server);
    let mut operations = recorded_operations(conversation);
    let (mut drafts, begin) = requests(conversation, &mut operations);
    let ends: Vec<u64> = operations.iter().map(|one| one.operation.at + one.operation.bytes).collect();
    let turns = Turns::new(client, server, &ends);
    for (number, one) in operations.iter().enumerate() {
        let operation = &one.operation;
        let draft = |from_client: bool, kind: MessageKind, offset: u64, end: u64| Draft {
            name: name_of(operation.op).to_owned(),
            call: number as i64,
            block: operation.block,
            attempt: operation.attempt.clone(),
            evidence: JVM,
            ..Draft::new(from_client, kind, offset, end.saturating_sub(offset))
        };
        let body = operation.at + operation.bytes;
        if operation.bytes > 0 {
            drafts.push(draft(true, MessageKind::BlockRequest, operation.at, body));
        }
        let next = operations.get(number + 1).map_or(client.end, |next| next.operation.at);
        if matches!(operation.op, WRITE | REPLACE) && body < next {
            let mut data = draft(true, MessageKind::BlockData, body, next);
            measure(&mut data, client, one, Shape::WRITE);
            drafts.push(data);
        } else if body < next {
            let mut status = draft(true, MessageKind::BlockStatus, body, next);
            status.evidence = HEADERS;
            drafts.extend((next - body <= MAX_STATUS).then_some(status));
        }
        let (from, to) = turns.answer(number);
        answer(conversation, one, (from.max(begin), to), begin > 0, &draft, &mut drafts);
    }
    drafts
}

/// What both sides said before the first request, and where that ends on what the server said.
type Opening = (Vec<Draft>, u64);

/// Finds where each request is on what the client said, and what was said before. Takes the smallest tolerance with
/// which no request is missing.
fn requests(conversation: &Conversation<'_>, operations: &mut Vec<OperationRecord>) -> Opening {
    let mut best: Option<(usize, Vec<OperationRecord>, Opening)> = None;
    for tolerance_ns in TOLERANCES_NS {
        let mut placed = operations.clone();
        let before = requests_within(conversation, &mut placed, tolerance_ns);
        let missing = placed.iter().filter(|one| one.operation.bytes == 0).count();
        if best.as_ref().is_none_or(|(least, ..)| missing < *least) {
            best = Some((missing, placed, before));
        }
        if missing == 0 {
            break;
        }
    }
    let Some((_, placed, before)) = best else { return (Vec::new(), 0) };
    *operations = placed;
    before
}

fn requests_within(conversation: &Conversation<'_>, operations: &mut [OperationRecord], tolerance_ns: u64) -> Opening {
    let (client, server) = (conversation.client, conversation.server);
    let pieces = segments(client);
    let (mut drafts, mut begin) = (Vec::new(), 0);
    // Behind the request before, by piece and by offset.
    let (mut at, mut offset) = (0, 0);
    for number in 0..operations.len() {
        let before_ns = number.checked_sub(1).map(|before| operations[before].end_ns);
        let one = &operations[number];
        let received = one.begin_ns.saturating_add(tolerance_ns);
        let opened = one.opened_ns.filter(|&opened| opened < one.begin_ns);
        let first_after = |ns: u64| pieces.partition_point(|piece| piece.sent_ns.saturating_add(tolerance_ns) < ns);
        // A client alone says only when it began: what it said in that turn is its request.
        let end = if one.opened_ns == Some(one.begin_ns) {
            end_of_turn(&pieces, first_after(one.begin_ns), server)
        } else {
            pieces.partition_point(|piece| piece.delivered_ns <= received)
        };
        let end = end.max(at);
        let first = match (number, opened, before_ns) {
            (0, ..) => begin_of_turn(&pieces[..end], end, server),
            (_, Some(opened), _) => first_after(opened),
            (_, None, Some(before)) => pieces.partition_point(|piece| piece.delivered_ns <= before),
            _ => at,
        };
        let first = first.clamp(at, end);
        if number == 0 && first > 0 {
            begin = first_sent(server, pieces[first].sent_ns);
            // What was said before the capture began is something else.
            if conversation.from_begin {
                drafts = handshake(pieces[first].from, begin);
            }
        }
        let from = pieces.get(first).map_or(client.end, |piece| piece.from).max(offset);
        let mut to = end.checked_sub(1).map_or(from, |last| pieces[last].to).max(from);
        if matches!(one.operation.op, WRITE | REPLACE) {
            to = end_of_written_request(conversation, &pieces[first..end], one, operations.get(number + 1), to);
        }
        (at, offset) = (pieces.partition_point(|piece| piece.from < to), to);
        operations[number].operation.at = from;
        operations[number].operation.bytes = to - from;
    }
    (drafts, begin)
}

/// Of the pieces from `first` on, how many in all belong to one turn.
fn end_of_turn(pieces: &[Piece], first: usize, answers: &Direction) -> usize {
    let mut end = (first + 1).min(pieces.len());
    while end < pieces.len() && begin_of_turn(&pieces[first..=end], end - first + 1, answers) == 0 {
        end += 1;
    }
    end
}

/// Where the request to write ends: before the client hears an answer it says no more. A DataNode that passes a block on
/// by itself waits for none: then its request is as long as to leave the packets of the whole block behind it.
fn end_of_written_request(
    conversation: &Conversation<'_>,
    pieces: &[Piece],
    record: &OperationRecord,
    next: Option<&OperationRecord>,
    heard_end: u64,
) -> u64 {
    let server = conversation.server;
    let Some(first) = pieces.first() else { return heard_end };
    let answered = server.stream.segments.iter().find(|segment| segment.delivered_ns >= first.sent_ns);
    let in_time = |segment: &crate::joined::Segment| next.is_none_or(|next| segment.sent_ns < next.begin_ns);
    if let Some(answered) = answered.filter(|segment| in_time(segment)) {
        let before = pieces.iter().take_while(|piece| piece.sent_ns < answered.delivered_ns);
        return before.last().map_or(heard_end, |piece| piece.to);
    }
    let end = next.map_or(conversation.client.end, |_| heard_end);
    let Some(bytes) = record.bytes.filter(|_| next.is_none()) else { return heard_end.min(first.to) };
    let shapes = [Shape::READ, Shape::WRITE, Shape::READ_1, Shape::WRITE_1];
    let fits = |offset: u64| shapes.iter().any(|shape| offset + shape.wire(bytes) == end);
    let fitting = pieces.iter().take_while(|piece| piece.to - first.from <= MAX_REQUEST).find(|piece| fits(piece.to));
    fitting.map_or(first.to, |piece| piece.to)
}

/// What both sides said before the first request: a negotiation.
fn handshake(client: u64, server: u64) -> Vec<Draft> {
    let draft = |from_client: bool, bytes: u64| Draft {
        evidence: HEADERS,
        ..Draft::new(from_client, MessageKind::Sasl, 0, bytes)
    };
    [(true, client), (false, server)].into_iter().filter(|side| side.1 > 0).map(|side| draft(side.0, side.1)).collect()
}

/// What is said in answer: a response, then data, acknowledgements or nothing. `negotiated` is whether there was something
/// before the first request.
fn answer(
    conversation: &Conversation<'_>,
    record: &OperationRecord,
    (from, to): (u64, u64),
    negotiated: bool,
    draft: &impl Fn(bool, MessageKind, u64, u64) -> Draft,
    drafts: &mut Vec<Draft>,
) {
    if from >= to {
        return;
    }
    let (server, operation) = (conversation.server, &record.operation);
    let pieces: Vec<Piece> = segments(server).into_iter().filter(|piece| (from..to).contains(&piece.from)).collect();
    let (response, evidence) = match operation.op {
        READ | COPY => response_to_reader(&pieces, from, operation, negotiated),
        _ => {
            // Acknowledgements follow data, which follows the response.
            let body = operation.at + operation.bytes;
            let data = conversation.client.stream.range(body, 1).first().map(|segment| segment.sent_ns);
            let before = pieces.iter().take_while(|piece| data.is_none_or(|data| piece.delivered_ns <= data));
            (before.last().map_or(from, |piece| piece.to), JVM)
        }
    };
    if response > from {
        drafts.push(Draft { evidence, ..draft(false, MessageKind::BlockResponse, from, response) });
    }
    if response >= to {
        return;
    }
    match operation.op {
        READ | COPY => {
            let mut data = draft(false, MessageKind::BlockData, response, to);
            measure(&mut data, server, record, Shape::READ);
            if evidence != JVM {
                data.evidence = evidence;
            }
            if operation.op == READ {
                data.unread_bytes = record.consumed.map(|consumed| data.app_bytes.saturating_sub(consumed));
            }
            drafts.push(data);
        }
        WRITE => drafts.push(draft(false, MessageKind::BlockAck, response, to)),
        _ => drafts.push(draft(false, MessageKind::BlockStatus, response, to)),
    }
}

/// Where the response to a reader ends, before the data. That of 2.x and 3.x has a status, the kind of checksums and the
/// offset of the first chunk; that of 1.x has fixed 15 bytes. Either was written before any data, also when it was wrapped
/// (138 bytes of 3DES in 3.4.2), which is seen where a short segment is followed by another. Where no segment ends there,
/// both were sent together.
fn response_to_reader(pieces: &[Piece], from: u64, operation: &Operation, negotiated: bool) -> (u64, &'static str) {
    let chunk = operation.offset / Shape::READ.chunk * Shape::READ.chunk;
    let varint = u64::from((64 - chunk.leading_zeros()).max(1).div_ceil(7));
    let expected = 13 + varint;
    for bytes in [expected, 15] {
        if pieces.iter().any(|piece| piece.to == from + bytes) {
            return (from + bytes, JVM);
        }
    }
    let Some(first) = pieces.first() else { return (from, SHARED) };
    let alone = pieces.len() > 1 && first.to - from <= MAX_RESPONSE;
    let wrapped = (expected + MIN_WRAPPING..=MAX_RESPONSE).contains(&(first.to - from));
    let evidence = if alone && negotiated && wrapped { JVM } else { SHARED };
    (if alone { first.to } else { (from + expected).min(first.to) }, evidence)
}

/// Measures the data of a message: by how packets are laid out, or else as the JVM says.
fn measure(data: &mut Draft, direction: &Direction, record: &OperationRecord, shape: Shape) {
    let older = if shape == Shape::READ { Shape::READ_1 } else { Shape::WRITE_1 };
    let fits = |shape: &Shape| record.bytes.is_some_and(|bytes| shape.wire(bytes) == data.bytes);
    let all = [shape, Shape::READ, older, Shape::READ_1];
    let shape = all.into_iter().find(|shape| fits(shape)).unwrap_or(shape);
    fill(data, direction, shape, record.operation.whole_answer(shape.chunk), record.bytes);
    data.evidence = JVM;
    // Of what was moved whole there is no doubt, however it was wrapped.
    let whole = record.operation.op != READ || record.consumed.is_some() && record.consumed >= record.operation.length;
    if let Some(bytes) = record.bytes.filter(|_| whole) {
        data.app_bytes = bytes.min(data.bytes);
    }
}

/// Reads a connection to a DataNode of which no JVM speaks, by who says more: one operation to write, or operations to
/// read. Which block it is about, nobody knows.
pub(super) fn by_turns(conversation: &Conversation<'_>) -> Vec<Draft> {
    let (client, server) = (conversation.client, conversation.server);
    let draft = |op: u8, from_client: bool, kind: MessageKind, (from, to): (u64, u64)| {
        let draft = Draft::new(from_client, kind, from, to - from);
        Draft { name: name_of(op).to_owned(), evidence: HEADERS, ..draft }
    };
    if client.end <= server.end {
        let mut drafts = turns::read(conversation, (MessageKind::BlockRequest, MessageKind::BlockData));
        for draft in &mut drafts {
            name_of(READ).clone_into(&mut draft.name);
            // A reader's final word makes a turn of its own, to which nothing is answered.
            if draft.from_client && draft.bytes < MIN_REQUEST {
                draft.kind = MessageKind::BlockStatus;
            }
        }
        return drafts;
    }
    let pieces = segments(client);
    let end = end_of_turn(&pieces, 0, server);
    let answered = server.end > 0 && end < pieces.len();
    let request = if answered { end.checked_sub(1) } else { Some(0) };
    let request = request.and_then(|last| pieces.get(last)).map_or(0, |piece| piece.to);
    let data_ns = client.stream.range(request, 1).first().map_or(u64::MAX, |segment| segment.sent_ns);
    let before = server.stream.segments.iter().take_while(|segment| segment.delivered_ns <= data_ns);
    let response = before.last().map_or(0, |segment| segment.offset + u64::from(segment.bytes));
    let mut data = draft(WRITE, true, MessageKind::BlockData, (request, client.end.max(request)));
    fill(&mut data, client, Shape::WRITE, None, None);
    data.evidence = HEADERS;
    vec![
        draft(WRITE, true, MessageKind::BlockRequest, (0, request)),
        data,
        draft(WRITE, false, MessageKind::BlockResponse, (0, response)),
        draft(WRITE, false, MessageKind::BlockAck, (response, server.end.max(response))),
    ]
}
