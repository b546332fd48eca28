//! The seam inside the merger: captures joined over all hosts, before causality is told. Nothing behind it opens a capture.

use trace::ids::{ConnectionId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{ConnectionRow, HostRow, MessageRow, ProcessRow, SpanRow};

use crate::history::Histories;
use crate::loss::Loss;

/// Everything that the captures say, on one clock, each thing once.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Hosts; the first is the reference clock.
    pub hosts: Vec<HostRow>,
    /// Processes.
    pub processes: Vec<ProcessRow>,
    /// Connections with their owners.
    pub connections: Vec<ConnectionRow>,
    /// Messages, ordered by `sent_ns`.
    pub messages: Vec<MessageRow>,
    /// Processing spans.
    pub spans: Vec<SpanRow>,
    /// Payload of each connection, by [`ConnectionId::index`].
    pub streams: Vec<[Stream; 2]>,
    /// What the JVMs said, times moved to the reference clock, ordered by time.
    pub jvm: Vec<JvmEvent>,
    /// What Hadoop itself recorded of the jobs.
    pub histories: Histories,
    /// What was lost on the way here, but for what the histories lack.
    pub losses: Vec<Loss>,
    /// First and last packet, nanoseconds since the epoch.
    pub window_ns: (u64, u64),
}

impl Joined {
    /// The payload of one direction of a connection.
    #[must_use]
    pub fn stream(&self, connection: ConnectionId, from_client: bool) -> &Stream {
        &self.streams[connection.index()][usize::from(!from_client)]
    }
}

/// A record of a JVM, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct JvmEvent {
    /// The process.
    pub process: ProcessId,
    /// Its record, with all times on the reference clock.
    pub record: JvmRecord,
}

/// One direction of a connection: its payload in order, each byte once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Segments, ordered by offset, without overlap; a gap = bytes that the capture lost.
    pub segments: Vec<Segment>,
}

impl Stream {
    /// The segments that hold bytes of `offset..offset + bytes`.
    #[must_use]
    pub fn range(&self, offset: u64, bytes: u64) -> &[Segment] {
        let end = offset.saturating_add(bytes);
        let first = self.segments.partition_point(|segment| segment.offset + u64::from(segment.bytes) <= offset);
        let last = self.segments.partition_point(|segment| segment.offset < end);
        &self.segments[first.min(last)..last]
    }
}

/// Payload that was seen for the first time in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte in this direction (0 = the byte after SYN, or the first one seen).
    pub offset: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When it left first, as the sender's host saw it (or, if only the receiver was captured, when it arrived).
    pub sent_ns: u64,
    /// When it had arrived, and all before it, at the receiver's host: never before `sent_ns`.
    pub delivered_ns: u64,
    /// Bytes in flight when it left: sent before and not yet acknowledged, as the sender's host saw it.
    pub in_flight_bytes: u64,
    /// The receiver's window as last heard by the sender then, scaled; 0 = unknown.
    pub window_bytes: u64,
    /// Whether it was sent again later.
    pub retransmitted: bool,
}
