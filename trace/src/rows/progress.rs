//! Production and consumption as functions of bytes: what a network hides, and what stays on another one.

use super::column::{named, row};
use crate::ids::{MessageId, ProcessId};

named! {
    /// What a thread does with the bytes of a message.
    StepKind {
        /// Makes them: a writer of HDFS fills packets, which wait in its queue.
        Produce = "produce",
        /// Takes them: a reader of HDFS.
        Consume = "consume",
        /// Receives them: a DataNode checks, stores and forwards them.
        Receive = "receive",
        /// Sends them: a DataNode, from its disk.
        Send = "send",
        /// Serves them: a NodeManager reads a map output.
        Serve = "serve",
        /// Fetches them: a reduce copies a map output.
        Fetch = "fetch",
    }
}

row! {
    /// A step of a message: about a megabyte of it, or a whole map output, and how long one thread worked on it and waited.
    StepRow in "steps" {
        /// The message whose bytes these are.
        message: MessageId,
        /// Who worked.
        process: ProcessId,
        /// Thread; 0 = not told.
        thread: u64,
        /// What it did with them.
        kind: StepKind,
        /// First byte within the block or map output, of data without headers and checksums.
        first_byte: u64,
        /// Bytes of data.
        bytes: u64,
        /// Begin.
        begin_ns: u64,
        /// End.
        end_ns: u64,
        /// Work: what of the time was not waiting. Waiting for a processor counts as work. Of a thread that reads and writes by turns it is that of
        /// reading, without what the thread waited for room; that of writing is what is left.
        work_ns: u64,
        /// Waited for bytes.
        read_wait_ns: u64,
        /// Waited for room: in the queue of packets ("produce"), in a socket (else).
        write_wait_ns: u64,
        /// Of the work, writes to the disk.
        disk_ns: u64,
        /// Of the work, flushes and syncs.
        sync_ns: u64,
        /// Of the work, checks of checksums.
        checksum_ns: u64,
        /// CPU time of the thread from begin to end; null = not known.
        cpu_ns: Option<u64>,
        /// Time from begin to end in which the thread could have run and had no processor; null = not known.
        ready_ns: Option<u64>,
    }
}
