//! The seam inside the merger: captures joined over all hosts, before causality is told. Nothing behind it opens a capture.

use std::io;

use trace::ids::{ConnectionId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{ConnectionRow, HostRow, LimitRow, ProcessRow, StepRow};

use crate::compact::{Message, Messages, Spans};
use crate::history::Histories;
use crate::loss::Loss;
use crate::network::FullTimes;
use crate::packed_stream::PackedStream;
pub use crate::segments::{Segment, Stream};
use crate::spilled::{Reader, Record, SharedList, Writer};

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
    pub messages: Messages,
    /// Processing spans.
    pub spans: Spans,
    /// Production and consumption of messages, ordered by message.
    pub steps: Vec<StepRow>,
    /// Payload of each connection, by [`ConnectionId::index`]: from the client, from the server.
    pub streams: Vec<[PackedStream; 2]>,
    /// What the JVMs said of phases and work of tasks, times moved to the reference clock, ordered by time.
    pub jvm: Vec<JvmEvent>,
    /// Threads that others started.
    pub threads: ThreadStarts,
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
    /// Whether all messages and spans that were asked for came.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check_read(&self) -> io::Result<()> {
        self.messages.check().and(self.spans.check())
    }

    /// A message.
    #[must_use]
    pub fn message(&self, message: MessageId) -> Message<'_> {
        self.messages.get(message)
    }

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

impl Record for ThreadStart {
    const BLANK: Self = Self { process: ProcessId(0), at_ns: 0, by: 0, child: 0 };
    const BYTES: usize = 4 + 3 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        self.process.0.write(out);
        [self.at_ns, self.by, self.child].into_iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { process: ProcessId(input.u32()), at_ns: input.u64(), by: input.u64(), child: input.u64() }
    }
}

/// All threads that others started; those of one process and time in the order in which that was told.
#[derive(Clone, Debug, Default)]
pub struct ThreadStarts(SharedList<ThreadStart>);

impl ThreadStarts {
    /// Appends one.
    pub fn push(&mut self, start: ThreadStart) {
        self.0.push(start);
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ThreadStart> {
        self.0.iter()
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
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
