//! The seam inside the merger: captures joined over all hosts, before causality is told. Nothing behind it opens a capture.

use std::io;

use trace::ids::{ConnectionId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{HostRow, LimitRow, ProcessRow, StepRow};

use crate::capture::packed_records::PackedRecords;
use crate::compact::{Connections, Message, Messages, Spans};
use crate::history::Histories;
use crate::loss::Loss;
use crate::network::FullTimes;
use crate::packed_streams::PackedStreams;
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
    pub connections: Connections,
    /// What held their senders up, ordered by connection.
    pub limits: LimitRows,
    /// Messages, ordered by `sent_ns`.
    pub messages: Messages,
    /// Processing spans.
    pub spans: Spans,
    /// Production and consumption of messages, ordered by message.
    pub steps: Vec<StepRow>,
    /// Payload of each connection.
    pub streams: PackedStreams,
    /// What the JVMs said of phases and work of tasks, times moved to the reference clock, ordered by time.
    pub jvm: TaskEvents,
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
    /// Whether all connections, messages, spans and records that were asked for came.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check_read(&self) -> io::Result<()> {
        let rows = self.connections.check().and(self.limits.0.check());
        rows.and(self.messages.check()).and(self.spans.check()).and(self.jvm.check())
    }

    /// A message.
    #[must_use]
    pub fn message(&self, message: MessageId) -> Message<'_> {
        self.messages.get(message)
    }
}

/// What the JVMs said of phases and work of tasks, in order, packed.
#[derive(Clone, Debug, Default)]
pub struct TaskEvents {
    processes: SharedList<u32>,
    records: PackedRecords,
}

impl TaskEvents {
    /// Appends one.
    pub fn push(&mut self, event: &JvmEvent) {
        self.processes.push(event.process.0);
        self.records.push(&event.record);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = JvmEvent> {
        let events = self.processes.iter().zip(self.records.iter());
        events.map(|(process, record)| JvmEvent { process: ProcessId(process), record })
    }

    /// Gives back what only helps to append.
    pub(crate) fn settle(&mut self) {
        self.records.settle();
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.processes.check().and(self.records.check())
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
#[derive(Clone, Debug)]
pub struct ThreadStarts(SharedList<ThreadStart>);

/// Memory that threads' starts take at most, bytes: nobody looks at them until causes are found.
const MAX_STARTS_BYTES: usize = 128 << 10;

impl Default for ThreadStarts {
    fn default() -> Self {
        Self(SharedList::within(MAX_STARTS_BYTES))
    }
}

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

/// A [`LimitRow`], as it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LimitRecord {
    connection: u32,
    /// Whether it is the direction from the client, and above that which times are known.
    flags: u8,
    times_ns: [u64; 5],
}

impl From<&LimitRow> for LimitRecord {
    fn from(row: &LimitRow) -> Self {
        let times = [
            row.busy_ns,
            row.window_limited_ns,
            row.kernel_busy_ns,
            row.kernel_window_limited_ns,
            row.kernel_buffer_limited_ns,
        ];
        let known = times.iter().rev().fold(0, |known, time| known << 1 | u8::from(time.is_some()));
        let times_ns = times.map(|time| time.unwrap_or(0));
        Self { connection: row.connection.0, flags: known << 1 | u8::from(row.from_client), times_ns }
    }
}

impl From<LimitRecord> for LimitRow {
    fn from(LimitRecord { connection, flags, times_ns }: LimitRecord) -> Self {
        let time = |place: usize| (flags >> (place + 1) & 1 != 0).then_some(times_ns[place]);
        Self {
            connection: ConnectionId(connection),
            from_client: flags & 1 != 0,
            busy_ns: time(0),
            window_limited_ns: time(1),
            kernel_busy_ns: time(2),
            kernel_window_limited_ns: time(3),
            kernel_buffer_limited_ns: time(4),
        }
    }
}

impl Record for LimitRecord {
    const BLANK: Self = Self { connection: 0, flags: 0, times_ns: [0; 5] };
    const BYTES: usize = 4 + 1 + 5 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        self.connection.write(out);
        out.bytes([self.flags]);
        self.times_ns.into_iter().for_each(|time| time.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { connection: input.u32(), flags: input.u8(), times_ns: std::array::from_fn(|_| input.u64()) }
    }
}

/// What held senders up, ordered by connection.
#[derive(Clone, Debug, Default)]
pub struct LimitRows(SharedList<LimitRecord>);

impl LimitRows {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LimitRow> {
        self.0.iter().map(LimitRow::from)
    }
}

impl Extend<LimitRow> for LimitRows {
    fn extend<R: IntoIterator<Item = LimitRow>>(&mut self, rows: R) {
        rows.into_iter().for_each(|row| self.0.push(LimitRecord::from(&row)));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    proptest! {
        #[test]
        fn limits_are_as_they_were(rows in prop::collection::vec(any::<(u32, bool, [Option<u64>; 5])>(), 0..20)) {
            let rows = rows.into_iter().map(|(connection, from_client, [a, b, c, d, e])| LimitRow {
                connection: ConnectionId(connection),
                from_client,
                busy_ns: a,
                window_limited_ns: b,
                kernel_busy_ns: c,
                kernel_window_limited_ns: d,
                kernel_buffer_limited_ns: e,
            });
            let rows: Vec<LimitRow> = rows.collect();
            let mut limits = LimitRows::default();
            limits.extend(rows.iter().cloned());
            prop_assert_eq!(limits.len(), rows.len());
            prop_assert_eq!(limits.iter().collect::<Vec<_>>(), &rows[..]);
            for record in rows.iter().map(LimitRecord::from) {
                prop_assert_eq!(read_back(&record), record);
            }
        }
    }
}
