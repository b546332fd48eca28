//! Messages of a connection, and how each was delimited.

use trace::rows::MessageKind;

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
