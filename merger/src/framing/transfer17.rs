//! The data transfer protocol of HDFS, version 17 (1.x): one operation a connection, its fields in fixed places.

use trace::rows::MessageKind;

use super::conversation::Conversation;
use super::draft::{Draft, FRAMING};
use super::packets::Shape;
use super::transfer::{COPY, JvmCounts, Operation, READ, REPLACE, WRITE, attempt_of_client, fill, name_of};
use super::writable::read_vlong;
use crate::join::Direction;

/// `DataTransferProtocol.DATA_TRANSFER_VERSION` of 1.x.
const VERSION: u16 = 17;
const CHECKSUM: u8 = 85;

/// Whether a connection speaks this version.
pub(super) fn is_transfer(conversation: &Conversation<'_>) -> bool {
    request(conversation.client.content.at(0)).is_some()
}

/// Reads a connection.
pub(super) fn read(conversation: &Conversation<'_>) -> Vec<Draft> {
    let (client, server) = (conversation.client, conversation.server);
    let Some(mut operation) = request(client.content.at(0)) else { return Vec::new() };
    operation.bytes = request_end(client, server);
    let mut taken = vec![false; conversation.records.len()];
    let recorded = JvmCounts::find(conversation, &operation, &mut taken);
    let draft = |from_client: bool, kind: MessageKind, offset: u64, end: u64| Draft {
        name: name_of(operation.op).to_owned(),
        block: operation.block,
        attempt: operation.attempt.clone(),
        ..Draft::new(from_client, kind, offset, end.saturating_sub(offset))
    };
    let asked = operation.bytes;
    let mut drafts = vec![draft(true, MessageKind::BlockRequest, 0, asked)];
    if asked < client.end {
        if matches!(operation.op, WRITE | REPLACE) {
            let mut data = draft(true, MessageKind::BlockData, asked, client.end);
            fill(&mut data, client, Shape::WRITE_1, None, recorded.bytes);
            drafts.push(data);
        } else {
            drafts.push(draft(true, MessageKind::BlockStatus, asked, client.end));
        }
    }
    let answered = response(server, operation.op).min(server.end);
    if answered > 0 {
        drafts.push(draft(false, MessageKind::BlockResponse, 0, answered));
    }
    if answered < server.end {
        match operation.op {
            READ | COPY => {
                let mut data = draft(false, MessageKind::BlockData, answered, server.end);
                let shape = shape(server).unwrap_or(Shape::READ_1);
                fill(&mut data, server, shape, operation.whole_answer(shape.chunk), recorded.bytes);
                if operation.op == READ {
                    data.unread_bytes = recorded.consumed.map(|consumed| data.app_bytes.saturating_sub(consumed));
                }
                drafts.push(data);
            }
            WRITE => drafts.push(draft(false, MessageKind::BlockAck, answered, server.end)),
            _ => drafts.push(draft(false, MessageKind::BlockStatus, answered, server.end)),
        }
    }
    drafts
}

/// A client goes on only when it was answered: all that it had sent before is its request.
fn request_end(client: &Direction, server: &Direction) -> u64 {
    let Some(answered) = server.stream.segments.first().map(|segment| segment.sent_ns) else { return client.end };
    let before = client.stream.segments.iter().take_while(|segment| segment.sent_ns < answered);
    before.map(|segment| segment.offset + u64::from(segment.bytes)).last().unwrap_or(0).min(client.end)
}

/// Bytes of the response: a status, and behind it what kind of checksums follow (5 bytes) and the offset from which on
/// data comes (8 bytes, of a read), or the address of a DataNode that failed (of a write).
fn response(server: &Direction, op: u8) -> u64 {
    let bytes = server.content.at(0);
    let succeeded = !bytes.starts_with(&[0, 0]) || bytes.is_empty();
    match op {
        _ if bytes.len() >= 2 && succeeded => 2,
        READ => 2 + 5 + 8,
        COPY => 2 + 5,
        WRITE => {
            let address = bytes.get(2..).and_then(read_vlong);
            2 + address.and_then(|(length, used)| Some(u64::try_from(length).ok()? + used as u64)).unwrap_or(1)
        }
        _ => 2,
    }
}

/// How data is laid out, as a response tells: byte type (0 = no checksums), int32 bytes of each checksum.
fn shape(server: &Direction) -> Option<Shape> {
    let bytes = server.content.at(2);
    let chunk = u64::from(u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?));
    let checksum = if *bytes.first()? == 0 { 0 } else { 4 };
    (1..=1 << 20).contains(&chunk).then_some(Shape { chunk, checksum, ..Shape::READ_1 })
}

/// Reads a request: int16 version, operation, int64 block, int64 generation, and what the operation needs.
fn request(bytes: &[u8]) -> Option<Operation> {
    let [high, low, op] = *bytes.first_chunk()?;
    if u16::from_be_bytes([high, low]) != VERSION || !matches!(op, WRITE | READ | REPLACE | COPY | CHECKSUM) {
        return None;
    }
    let long = |at: usize| Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let block = long(3)?.cast_unsigned();
    let (offset, length) = if op == READ { (long(19)?, long(27)?) } else { (0, 0) };
    let client = match op {
        READ => bytes.get(35..),
        // int32 DataNodes, boolean recovery
        WRITE => bytes.get(24..),
        _ => None,
    };
    let attempt = client.and_then(text).and_then(attempt_of_client);
    let length = u64::try_from(length).ok()?;
    Some(Operation {
        op,
        at: 0,
        bytes: 0,
        block: Some(block),
        attempt,
        offset: u64::try_from(offset).ok()?,
        length: (op == READ).then_some(length),
        evidence: FRAMING,
    })
}

/// A text behind its length, as far as it was kept.
fn text(bytes: &[u8]) -> Option<&str> {
    let (length, used) = read_vlong(bytes)?;
    let rest = bytes.get(used..)?;
    let length = usize::try_from(length).ok()?.min(rest.len());
    std::str::from_utf8(&rest[..length]).ok()
}
