//! From bytes in order to messages, protocol by protocol.

mod http;
pub(crate) mod opaque;
mod packets;
pub mod proto;
mod rpc;
mod rpc4;
mod transfer;
mod transfer17;
mod turns;
mod writable;

pub use http::Fetches;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use crate::join::Direction;

/// A message, before it is known when it travelled.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// True from client to server.
    pub from_client: bool,
    /// What it is.
    pub kind: MessageKind,
    /// RPC method, operation, path; "" = none.
    pub name: String,
    /// Call id, or number of the exchange on its connection.
    pub call: i64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Application data among them.
    pub app_bytes: u64,
    /// Block id.
    pub block: Option<u64>,
    /// Task attempt that it is for.
    pub attempt: Option<String>,
    /// Map attempt.
    pub map: Option<String>,
    /// Reduce.
    pub reduce: Option<u32>,
    /// Hop of a pipeline.
    pub hop: Option<u32>,
    /// Application data that nobody took.
    pub unread_bytes: Option<u64>,
    /// How it was delimited.
    pub evidence: &'static str,
}

/// Delimited by its own framing.
pub const FRAMING: &str = "framing";
/// Continued from the framing before it: its own lies beyond the kept bytes.
pub const COUNTED: &str = "counted";
/// Told by the JVM.
pub const JVM: &str = "jvm";
/// Told by the JVM, but cut where it is only likely to begin or end: its segment holds other messages too.
pub const SHARED: &str = "shared";
/// Told by when and how its segments went.
pub const HEADERS: &str = "headers";

/// What a message with this evidence is known from.
#[must_use]
pub fn source_of(evidence: &str) -> &'static str {
    match evidence {
        FRAMING | COUNTED => "payload",
        JVM => "jvm",
        SHARED => "jvm, shared segment",
        _ => "headers",
    }
}

impl Draft {
    /// A message of `kind` at `offset`.
    #[must_use]
    pub fn new(from_client: bool, kind: MessageKind, offset: u64, bytes: u64) -> Self {
        Self {
            from_client,
            kind,
            name: String::new(),
            call: 0,
            offset,
            bytes,
            app_bytes: 0,
            block: None,
            attempt: None,
            map: None,
            reduce: None,
            hop: None,
            unread_bytes: None,
            evidence: FRAMING,
        }
    }

    /// Offset behind its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// A connection, ready to be read.
pub struct Conversation<'a> {
    /// From client to server.
    pub client: &'a Direction,
    /// From server to client.
    pub server: &'a Direction,
    /// What JVMs said of it, by time; true = the client's JVM.
    pub records: Vec<(&'a JvmRecord, bool)>,
    /// Sizes of map outputs as all reduces know them.
    pub fetches: &'a Fetches,
    /// Whether it was recorded from its first byte on.
    pub from_begin: bool,
    /// Whether the JVMs at both ends have an agent that spoke of it, and the server's one speaks of what it serves
    /// elsewhere.
    pub agents: bool,
    /// The protocol of other connections to the same listener, as JVMs tell it.
    pub neighbours: Option<&'static str>,
}

impl Conversation<'_> {
    /// One of its directions.
    #[must_use]
    pub fn direction(&self, from_client: bool) -> &Direction {
        if from_client { self.client } else { self.server }
    }
}

/// What became of a connection.
#[derive(Clone, Debug, Default)]
pub struct Framed {
    /// "rpc", "data-transfer", "shuffle", "http", "" = unknown.
    pub protocol: &'static str,
    /// Messages of both directions, in any order; bytes between them are unknown.
    pub drafts: Vec<Draft>,
}

/// Reads a connection: by its payload, or where that cannot be understood by what its JVMs say.
#[must_use]
pub fn read(conversation: &Conversation<'_>) -> Framed {
    let is_opaque = opaque::is_opaque(conversation);
    let mut framed = if is_opaque { Framed::default() } else { by_payload(conversation) };
    if 2 * known(&framed) < conversation.client.end + conversation.server.end {
        let opaque = opaque::read(conversation, is_opaque);
        if known(&opaque) > known(&framed) {
            framed = opaque;
        }
    }
    for from_client in [true, false] {
        let end = conversation.direction(from_client).end;
        complete(&mut framed.drafts, from_client, end);
    }
    framed
}

/// Bytes of messages whose kind is known.
fn known(framed: &Framed) -> u64 {
    framed.drafts.iter().filter(|draft| draft.kind != MessageKind::Unknown).map(|draft| draft.bytes).sum()
}

fn by_payload(conversation: &Conversation<'_>) -> Framed {
    if http::is_http(conversation) {
        let (protocol, drafts) = http::read(conversation);
        Framed { protocol, drafts }
    } else if transfer17::is_transfer(conversation) {
        Framed { protocol: "data-transfer", drafts: transfer17::read(conversation) }
    } else if transfer::is_transfer(conversation) {
        Framed { protocol: "data-transfer", drafts: transfer::read(conversation) }
    } else if rpc4::is_rpc(conversation) {
        Framed { protocol: "rpc", drafts: rpc4::read(conversation) }
    } else if rpc::is_rpc(conversation) {
        Framed { protocol: "rpc", drafts: rpc::read(conversation) }
    } else {
        Framed::default()
    }
}

/// Makes the messages of one direction cover `0..end` exactly: cuts what overlaps or goes beyond, and fills what is
/// left with messages of unknown kind.
fn complete(drafts: &mut Vec<Draft>, from_client: bool, end: u64) {
    let (mut these, others): (Vec<Draft>, Vec<Draft>) =
        std::mem::take(drafts).into_iter().partition(|draft| draft.from_client == from_client);
    these.sort_by_key(|draft| draft.offset);
    let mut whole = others;
    let mut at = 0;
    for mut draft in these {
        let start = draft.offset.max(at);
        let stop = draft.end().min(end);
        if start >= stop {
            continue;
        }
        if start > at {
            whole.push(unknown(from_client, at, start - at));
        }
        draft.offset = start;
        draft.bytes = stop - start;
        draft.app_bytes = draft.app_bytes.min(draft.bytes);
        at = stop;
        whole.push(draft);
    }
    if at < end {
        whole.push(unknown(from_client, at, end - at));
    }
    *drafts = whole;
}

fn unknown(from_client: bool, offset: u64, bytes: u64) -> Draft {
    Draft { evidence: HEADERS, ..Draft::new(from_client, MessageKind::Unknown, offset, bytes) }
}
