//! The seam inside the merger: captures joined over all hosts, before causality is told. Nothing behind it opens a capture.

use trace::ids::{ConnectionId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{ConnectionRow, HostRow, LimitRow, ProcessRow, StepRow};

use crate::compact::{Message, ProcessingSpan};
use crate::history::Histories;
use crate::loss::Loss;
use crate::network::FullTimes;
use crate::packed_stream::PackedStream;
pub use crate::segments::{Segment, Stream};

/// Everything that the captures say, on one clock, each thing once.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Hosts; the first is the reference clock.
    pub hosts: Vec<HostRow>,
    /// Processes.
    pub processes: Vec<ProcessRow>,
    /// Connections with their owners.
    pub connections: Vec<ConnectionRow>,
    /// What held their senders up, ordered by connection.
    pub limits: Vec<LimitRow>,
    /// Messages, ordered by `sent_ns`.
    pub messages: Vec<Message>,
    /// Processing spans.
    pub spans: Vec<ProcessingSpan>,
    /// Production and consumption of messages, ordered by message.
    pub steps: Vec<StepRow>,
    /// Payload of each connection, by [`ConnectionId::index`]: from the client, from the server.
    pub streams: Vec<[PackedStream; 2]>,
    /// What the JVMs said of phases and work of tasks, times moved to the reference clock, ordered by time.
    pub jvm: Vec<JvmEvent>,
    /// Threads that others started, ordered by time.
    pub threads: Vec<ThreadStart>,
    /// What Hadoop itself recorded of the jobs.
    pub histories: Histories,
    /// What was lost on the way here, but for what the histories lack.
    pub losses: Vec<Loss>,
    /// By host: when its link to its switch was full. Empty = nothing is known.
    pub full_uplinks: Vec<FullTimes>,
    /// First and last packet, nanoseconds since the epoch.
    pub window_ns: (u64, u64),
}

impl Joined {
    /// The payload of one direction of a connection.
    #[must_use]
    pub fn stream(&self, connection: ConnectionId, from_client: bool) -> &PackedStream {
        &self.streams[connection.index()][usize::from(!from_client)]
    }
}

/// A thread that another one of its process started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStart {
    /// The process.
    pub process: ProcessId,
    /// When, nanoseconds since the epoch.
    pub at_ns: u64,
    /// The thread that started it, by its id in the JVM.
    pub by: u64,
    /// The new thread.
    pub child: u64,
}

/// A record of a JVM, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct JvmEvent {
    /// The process.
    pub process: ProcessId,
    /// Its record, with all times on the reference clock.
    pub record: JvmRecord,
}
