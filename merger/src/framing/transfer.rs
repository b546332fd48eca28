//! The data transfer protocol of HDFS (2.x and 3.x): operations on blocks, one after the other on a connection.

use std::ops::RangeInclusive;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::conversation::Conversation;
use super::draft::{COUNTED, Draft, FRAMING, HEADERS, JVM};
use super::packets::{self, Shape, measure};
use super::proto::{Message, varint};
use super::turns::Turns;
use crate::join::Direction;

/// `DataTransferProtocol.DATA_TRANSFER_VERSION` of 2.x and 3.x.
const VERSION: u16 = 28;

pub(super) const WRITE: u8 = 80;
pub(super) const READ: u8 = 81;
pub(super) const REPLACE: u8 = 83;
pub(super) const COPY: u8 = 84;
const TRANSFER: u8 = 86;

/// A request.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    pub op: u8,
    pub at: u64,
    pub bytes: u64,
    pub block: Option<u64>,
    pub attempt: Option<String>,
    pub offset: u64,
    /// Of a read: bytes asked for.
    pub length: Option<u64>,
    /// Whether its own bytes said where it ends.
    pub evidence: &'static str,
}

impl Operation {
    /// How much data answers a read, if all of it comes: from the checksum chunk with its first byte to the end of the
    /// chunk with its last one, or of the block.
    pub fn whole_answer(&self, chunk: u64) -> Option<RangeInclusive<u64>> {
        let end = self.offset.checked_add(self.length?)?;
        let begin = self.offset / chunk * chunk;
        Some(end - begin..=end.checked_next_multiple_of(chunk)? - begin)
    }
}

/// Operations by name.
const NAMES: [(u8, &str); 11] = [
    (WRITE, "write"),
    (READ, "read"),
    (82, "read-metadata"),
    (REPLACE, "replace"),
    (COPY, "copy"),
    (85, "checksum"),
    (TRANSFER, "transfer"),
    (87, "request-short-circuit-fds"),
    (88, "release-short-circuit-fds"),
    (89, "request-short-circuit-shm"),
    (90, "block-group-checksum"),
];

pub(super) fn name_of(op: u8) -> &'static str {
    NAMES.iter().find(|(of, _)| *of == op).map_or("operation", |(_, name)| name)
}

/// The operation that the JVMs call by this name; 0 = another one.
pub(super) fn op_of(name: &str) -> u8 {
    NAMES.iter().find(|(_, of)| *of == name).map_or(0, |(op, _)| *op)
}

/// Whether a connection speaks this protocol: its first bytes or its JVMs say so.
pub(super) fn is_transfer(conversation: &Conversation<'_>) -> bool {
    let recorded = conversation.records.iter().any(|(record, _)| {
        matches!(record, JvmRecord::Block { .. } | JvmRecord::BlockRead { .. } | JvmRecord::BlockWrite { .. })
    });
    let client = conversation.client;
    let starts = client.stream.segments.iter().take(64).map(|segment| segment.offset);
    recorded
        || starts.into_iter().any(|at| request(client.content.at(at), at).is_some())
        || only_data(conversation).is_some()
}

/// A connection of which only the middle was captured, if packets of block data are in it: from which side.
fn only_data(conversation: &Conversation<'_>) -> Option<bool> {
    [true, false].into_iter().find(|&from_client| {
        let direction = conversation.direction(from_client);
        direction
            .stream
            .segments
            .iter()
            .take(256)
            .any(|segment| packets::header(direction.content.at(segment.offset), segment.offset).is_some())
    })
}

/// Reads a connection.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let (operations, mut drafts) = requests(conversation.client);
    if operations.is_empty() {
        return middle(conversation);
    }
    let starts: Vec<u64> = operations.iter().map(|operation| operation.at + operation.bytes).collect();
    let turns = Turns::new(conversation.client, conversation.server, &starts);
    let mut taken = vec![false; conversation.records.len()];
    for (number, operation) in operations.iter().enumerate() {
        let recorded = JvmCounts::find(conversation, operation, &mut taken);
        let upstream_end = operations.get(number + 1).map_or(conversation.client.end, |next| next.at);
        let draft = |from_client: bool, kind: MessageKind, offset: u64, end: u64| Draft {
            name: name_of(operation.op).to_owned(),
            call: number as i64,
            block: operation.block.or(recorded.block),
            attempt: operation.attempt.clone(),
            ..Draft::new(from_client, kind, offset, end.saturating_sub(offset))
        };
        let body = operation.at + operation.bytes;
        let mut asked = draft(true, MessageKind::BlockRequest, operation.at, body);
        asked.evidence = operation.evidence;
        drafts.push(asked);
        if matches!(operation.op, WRITE | REPLACE) {
            let mut data = draft(true, MessageKind::BlockData, body, upstream_end);
            fill(&mut data, conversation.client, Shape::WRITE, None, recorded.bytes);
            drafts.push(data);
        }
        let (from, to) = turns.answer(number);
        answer(conversation.server, operation, &recorded, (from, to), &draft, &mut drafts);
    }
    drafts
}

/// What is said in answer to an operation: a response, then data, acknowledgements or nothing.
fn answer(
    server: &Direction,
    operation: &Operation,
    recorded: &JvmCounts,
    (from, to): (u64, u64),
    draft: &impl Fn(bool, MessageKind, u64, u64) -> Draft,
    drafts: &mut Vec<Draft>,
) {
    if from >= to {
        return;
    }
    let data_follows = matches!(operation.op, READ | COPY);
    let (response, shape) = response(server, from, to, data_follows);
    if response > from {
        drafts.push(draft(false, MessageKind::BlockResponse, from, response));
    }
    if response >= to {
        return;
    }
    if data_follows {
        let mut data = draft(false, MessageKind::BlockData, response, to);
        let shape = shape.unwrap_or(Shape::READ);
        fill(&mut data, server, shape, operation.whole_answer(shape.chunk), recorded.bytes);
        if operation.op == READ {
            data.unread_bytes = recorded.consumed.map(|consumed| data.app_bytes.saturating_sub(consumed));
        }
        drafts.push(data);
    } else {
        let kind = if operation.op == WRITE { MessageKind::BlockAck } else { MessageKind::BlockStatus };
        drafts.push(draft(false, kind, response, to));
    }
}

/// Where the response ends that begins at `from`, and how it says that data is laid out.
fn response(server: &Direction, from: u64, to: u64, data_follows: bool) -> (u64, Option<Shape>) {
    if let Some((message, used)) = Message::read_delimited(server.content.at(from))
        && message.get(1).and_then(|status| status.number()).is_some_and(|status| status < 32)
        && from + used as u64 <= to
    {
        // 4 readOpChecksumInfo: 1 checksum: 1 type (0 none, 1 CRC32, 2 CRC32C), 2 bytes each.
        let checksum = message.message(4).and_then(|info| info.message(1));
        let shape = checksum.and_then(|checksum| {
            let chunk = checksum.get(2)?.number().filter(|chunk| (1..=1 << 20).contains(chunk))?;
            let none = checksum.get(1)?.number()? == 0;
            Some(Shape { chunk, checksum: if none { 0 } else { 4 }, ..Shape::READ })
        });
        return (from + used as u64, shape);
    }
    // It was not kept: if data follows it ends where the first packet begins.
    let first =
        if data_follows { packets::anchors(&server.content, from, to).first().map(|anchor| anchor.at) } else { None };
    (first.filter(|at| at - from <= 256).unwrap_or(from), None)
}

/// Measures the data of a message, and takes the JVM's word where the bytes alone leave a doubt.
pub(super) fn fill(
    data: &mut Draft,
    direction: &Direction,
    shape: Shape,
    whole: Option<RangeInclusive<u64>>,
    recorded: Option<u64>,
) {
    let layout = measure(&direction.content, data.offset, data.end().min(direction.end), shape, whole);
    data.app_bytes = layout.data;
    data.evidence = if layout.seen { FRAMING } else { COUNTED };
    if let Some(recorded) = recorded
        .filter(|&recorded| !layout.exact && recorded <= data.bytes && recorded.abs_diff(layout.data) <= shape.full)
    {
        data.app_bytes = recorded;
        data.evidence = JVM;
    }
}

/// What the JVMs say of one operation.
#[derive(Default)]
pub(super) struct JvmCounts {
    pub block: Option<u64>,
    /// Data that the DataNode moved.
    pub bytes: Option<u64>,
    /// Data that the reader took.
    pub consumed: Option<u64>,
}

impl JvmCounts {
    /// The records of this operation: of its block, each used once, in the order of time.
    pub fn find(conversation: &Conversation<'_>, operation: &Operation, taken: &mut [bool]) -> Self {
        let mut recorded = Self::default();
        let (mut served, mut used) = (false, false);
        for (number, (record, _)) in conversation.records.iter().enumerate() {
            let fits = |block: u64| operation.block.is_none_or(|wanted| wanted == block) && !taken[number];
            match record {
                JvmRecord::Block { block, bytes, op, .. } if !served && fits(*block) && op == name_of(operation.op) => {
                    (recorded.block, recorded.bytes, served) = (Some(*block), Some(*bytes), true);
                    taken[number] = true;
                }
                JvmRecord::BlockRead { block, consumed, offset, .. }
                    if !used
                        && operation.op == READ
                        && fits(*block)
                        && operation.offset.abs_diff(*offset) < 1 << 20 =>
                {
                    (recorded.block, recorded.consumed, used) =
                        (recorded.block.or(Some(*block)), Some(*consumed), true);
                    taken[number] = true;
                }
                JvmRecord::BlockWrite { block, bytes, .. } if !used && operation.op == WRITE && fits(*block) => {
                    (recorded.block, used) = (recorded.block.or(Some(*block)), true);
                    recorded.bytes = recorded.bytes.or(Some(*bytes));
                    taken[number] = true;
                }
                _ => {}
            }
        }
        recorded
    }
}

/// Walks over what the client says: requests, and behind those for reading its final status (pushed to the drafts).
fn requests(client: &Direction) -> (Vec<Operation>, Vec<Draft>) {
    let (mut operations, mut statuses): (Vec<Operation>, Vec<Draft>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < client.end {
        if let Some(operation) = request(client.content.at(at), at) {
            at += operation.bytes;
            operations.push(operation);
            continue;
        }
        let open = operations.last().map(|operation| operation.op);
        match open {
            Some(WRITE | REPLACE) => at = behind_written_block(client, at),
            Some(op) => match status(client.content.at(at)) {
                Some(bytes) => {
                    let mut draft = Draft::new(true, MessageKind::BlockStatus, at, bytes);
                    draft.call = operations.len() as i64 - 1;
                    draft.name = name_of(op).to_owned();
                    draft.block = operations.last().and_then(|operation| operation.block);
                    draft.attempt = operations.last().and_then(|operation| operation.attempt.clone());
                    statuses.push(draft);
                    at += bytes;
                }
                None => at = next_request(client, at),
            },
            None => at = next_request(client, at),
        }
    }
    (operations, statuses)
}

/// Behind the packet that ends a block, if another request follows it; else the end.
fn behind_written_block(client: &Direction, at: u64) -> u64 {
    packets::anchors(&client.content, at, client.end)
        .iter()
        .filter(|anchor| anchor.last)
        .map(packets::Anchor::end)
        .find(|&end| request(client.content.at(end), end).is_some())
        .unwrap_or(client.end)
}

fn next_request(client: &Direction, at: u64) -> u64 {
    let segments = &client.stream.segments;
    let next = segments.partition_point(|segment| segment.offset <= at);
    segments[next..]
        .iter()
        .map(|segment| segment.offset)
        .find(|&offset| request(client.content.at(offset), offset).is_some())
        .unwrap_or(client.end)
}

/// A reader's final word, ClientReadStatusProto: 1 status.
fn status(bytes: &[u8]) -> Option<u64> {
    let (message, used) = Message::read_delimited(bytes)?;
    let fits = used <= 16 && message.whole && message.get(1)?.number()? < 32 && message.fields.len() == 1;
    fits.then_some(used as u64)
}

/// Reads a request: int16 version, operation, and its message behind its length.
fn request(bytes: &[u8], at: u64) -> Option<Operation> {
    let [high, low, op] = *bytes.first_chunk()?;
    if u16::from_be_bytes([high, low]) != VERSION || !(WRITE..=90).contains(&op) {
        return None;
    }
    let (length, used) = varint(&bytes[3..]).ok()?;
    if !(2..=1 << 20).contains(&length) {
        return None;
    }
    let message = Message::read(&bytes[3 + used..], length as usize)?;
    let header = message.message(1);
    let for_client = matches!(op, WRITE | READ | TRANSFER);
    let base = if for_client { header.as_ref().and_then(|header| header.message(1)) } else { header.clone() };
    let block = base.and_then(|base| base.message(1)).and_then(|block| block.get(2)).and_then(|id| id.number());
    let client = if for_client { header.and_then(|header| header.get(2)) } else { None };
    let attempt = client.and_then(|name| name.text()).and_then(attempt_of_client);
    Some(Operation {
        op,
        at,
        bytes: 3 + used as u64 + length,
        block,
        attempt,
        offset: if op == READ { message.get(2).and_then(|offset| offset.number()).unwrap_or(0) } else { 0 },
        length: if op == READ { message.get(3).and_then(|length| length.number()) } else { None },
        evidence: FRAMING,
    })
}

/// `DFSClient_attempt_1700000000000_0001_m_000000_0_-123_1` belongs to `attempt_1700000000000_0001_m_000000_0`.
pub(super) fn attempt_of_client(name: &str) -> Option<String> {
    let rest = name.strip_prefix("DFSClient_")?;
    let parts: Vec<&str> = rest.split('_').take(6).collect();
    (parts.len() == 6 && parts[0] == "attempt").then(|| parts.join("_"))
}

/// A connection of which no request was captured: packets of block data tell themselves, and the JVMs whose they are.
fn middle(conversation: &Conversation<'_>) -> Vec<Draft> {
    let recorded = conversation.records.iter().find_map(|(record, _)| match record {
        JvmRecord::Block { op, block, .. } => Some((op.clone(), *block)),
        JvmRecord::BlockRead { block, .. } => Some(("read".to_owned(), *block)),
        JvmRecord::BlockWrite { block, .. } => Some(("write".to_owned(), *block)),
        _ => None,
    });
    let side = only_data(conversation).or_else(|| recorded.as_ref().map(|(op, _)| op == "write"));
    let Some(from_client) = side else { return Vec::new() };
    let mut drafts = Vec::new();
    let direction = conversation.direction(from_client);
    let first = packets::anchors(&direction.content, 0, direction.end).first().map_or(0, |anchor| anchor.at);
    let (op, block) = recorded
        .map_or_else(|| (if from_client { "write" } else { "read" }.to_owned(), None), |(op, block)| (op, Some(block)));
    let shape = if from_client { Shape::WRITE } else { Shape::READ };
    for (start, end) in [(0, first), (first, direction.end)] {
        let layout = measure(&direction.content, start, end, shape, None);
        let mut data = Draft::new(from_client, MessageKind::BlockData, start, end - start);
        (data.name, data.block, data.app_bytes, data.evidence) = (op.clone(), block, layout.data, HEADERS);
        drafts.push(data);
    }
    let other = conversation.direction(!from_client);
    let kind = if from_client { MessageKind::BlockAck } else { MessageKind::BlockStatus };
    let mut rest = Draft::new(!from_client, kind, 0, other.end);
    (rest.name, rest.block, rest.evidence) = (op, block, HEADERS);
    drafts.push(rest);
    drafts
}
