//! Messages and processing spans as they lie in memory until their rows are written: a long capture has millions of them.

use trace::ids::{ConnectionId, MessageId, ProcessId};
use trace::rows::{MessageKind, MessageRow, SpanRow};

use crate::words::Word;

/// A [`MessageRow`] that shares its words with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Row number, in order of `sent_ns`.
    pub message: MessageId,
    /// Its connection.
    pub connection: ConnectionId,
    /// True from client to server.
    pub from_client: bool,
    /// What it is.
    pub kind: MessageKind,
    /// RPC method, operation, path; "" = none.
    pub name: Word,
    /// Call id, or number of the exchange on its connection.
    pub call: i64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Application data among them.
    pub app_bytes: u64,
    /// Its first byte left, nanoseconds since the epoch.
    pub sent_ns: u64,
    /// Its last byte left.
    pub sent_end_ns: u64,
    /// Its last byte had arrived.
    pub delivered_ns: u64,
    /// Block id.
    pub block: Option<u64>,
    /// Task attempt that it is for.
    pub attempt: Option<Word>,
    /// Map attempt.
    pub map: Option<Word>,
    /// Reduce.
    pub reduce: Option<u32>,
    /// Hop of a pipeline.
    pub hop: Option<u32>,
    /// Application data that nobody took.
    pub unread_bytes: Option<u64>,
    /// How it was delimited.
    pub evidence: Word,
}

impl From<&Message> for MessageRow {
    fn from(message: &Message) -> Self {
        Self {
            message: message.message,
            connection: message.connection,
            from_client: message.from_client,
            kind: message.kind,
            name: message.name.as_str().to_owned(),
            call: message.call,
            offset: message.offset,
            bytes: message.bytes,
            app_bytes: message.app_bytes,
            sent_ns: message.sent_ns,
            sent_end_ns: message.sent_end_ns,
            delivered_ns: message.delivered_ns,
            block: message.block,
            attempt: message.attempt.as_deref().map(str::to_owned),
            map: message.map.as_deref().map(str::to_owned),
            reduce: message.reduce,
            hop: message.hop,
            unread_bytes: message.unread_bytes,
            evidence: message.evidence.as_str().to_owned(),
        }
    }
}

impl From<MessageRow> for Message {
    fn from(row: MessageRow) -> Self {
        Self {
            message: row.message,
            connection: row.connection,
            from_client: row.from_client,
            kind: row.kind,
            name: row.name.into(),
            call: row.call,
            offset: row.offset,
            bytes: row.bytes,
            app_bytes: row.app_bytes,
            sent_ns: row.sent_ns,
            sent_end_ns: row.sent_end_ns,
            delivered_ns: row.delivered_ns,
            block: row.block,
            attempt: row.attempt.map(Word::from),
            map: row.map.map(Word::from),
            reduce: row.reduce,
            hop: row.hop,
            unread_bytes: row.unread_bytes,
            evidence: row.evidence.into(),
        }
    }
}

/// A [`SpanRow`] that shares its words with others.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessingSpan {
    /// Process.
    pub process: ProcessId,
    /// Thread; 0 = not told.
    pub thread: u64,
    /// What was done, as in [`SpanRow`].
    pub kind: Word,
    /// Method, operation, map.
    pub name: Word,
    /// Connection, if known.
    pub connection: Option<ConnectionId>,
    /// Its request, if found.
    pub request: Option<MessageId>,
    /// Its response, if found.
    pub response: Option<MessageId>,
    /// When what it works on was there, nanoseconds since the epoch.
    pub received_ns: u64,
    /// Begin.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
}

impl From<&ProcessingSpan> for SpanRow {
    fn from(span: &ProcessingSpan) -> Self {
        Self {
            process: span.process,
            thread: span.thread,
            kind: span.kind.as_str().to_owned(),
            name: span.name.as_str().to_owned(),
            connection: span.connection,
            request: span.request,
            response: span.response,
            received_ns: span.received_ns,
            begin_ns: span.begin_ns,
            end_ns: span.end_ns,
        }
    }
}

impl From<SpanRow> for ProcessingSpan {
    fn from(row: SpanRow) -> Self {
        Self {
            process: row.process,
            thread: row.thread,
            kind: row.kind.into(),
            name: row.name.into(),
            connection: row.connection,
            request: row.request,
            response: row.response,
            received_ns: row.received_ns,
            begin_ns: row.begin_ns,
            end_ns: row.end_ns,
        }
    }
}
