//! What a record claims, held against what can be. Numbers of files are others' claims: whatever passes here can be added,
//! subtracted and moved by a clock without running over.

use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use crate::records;

/// The latest time that is believed, nanoseconds since the epoch: in the year 2096. Twice as much still fits into an `i64`.
pub(crate) const LATEST_NS: u64 = 4_000_000_000_000_000_000;
/// The largest size, count or duration that is believed: 1 PiB, or 13 days in nanoseconds.
pub(crate) const MAX_COUNT: u64 = 1 << 50;
/// The largest segment that is believed, bytes: Linux makes some of 512 KiB (BIG TCP).
pub(crate) const MAX_SEGMENT: u32 = 1 << 20;

/// Whether a packet can be one, by its time and its payload's length.
#[inline]
pub(super) fn packet(time_ns: u64, payload_length: u32) -> bool {
    time_ns <= LATEST_NS && payload_length <= MAX_SEGMENT
}

/// Whether a record of a JVM can be true, as far as its numbers go.
pub(super) fn jvm(record: &mut JvmRecord) -> bool {
    use JvmRecord as R;
    let numbers: &[u64] = match record {
        R::Wait { read_ns, write_ns, reads, writes, .. } => &[*read_ns, *write_ns, *reads, *writes],
        R::Block { offset, length, bytes, read_wait, write_wait, .. } => {
            &[*offset, *length, *bytes, *read_wait, *write_wait]
        }
        R::BlockRead { offset, length, consumed, read_wait, .. } => &[*offset, *length, *consumed, *read_wait],
        R::BlockWrite { bytes, write_wait, .. } => &[*bytes, *write_wait],
        R::ShuffleServed { bytes, read_ns, .. } => &[*bytes, *read_ns],
        R::Step {
            offset,
            bytes,
            work_ns,
            read_wait,
            write_wait,
            disk_ns,
            sync_ns,
            checksum_ns,
            cpu_ns,
            ready_ns,
            ..
        } => {
            &[*offset, *bytes, *work_ns, *read_wait, *write_wait, *disk_ns, *sync_ns, *checksum_ns, *cpu_ns, *ready_ns]
        }
        R::Fetch { bytes, raw, read_wait, .. } => &[*bytes, *raw, *read_wait],
        _ => &[],
    };
    let sizes = numbers.iter().all(|number| *number <= MAX_COUNT);
    let mut times = true;
    records::move_jvm(record, |t| {
        times &= t <= LATEST_NS;
        t
    });
    sizes && times
}

/// Whether a record of a socket can be true, as far as its numbers go.
pub(super) fn socket(record: &mut SocketRecord) -> bool {
    let counters = match record {
        SocketRecord::Socket { tcp, .. } | SocketRecord::Died { tcp, .. } => *tcp,
        _ => None,
    };
    let counts = counters.is_none_or(|tcp| {
        [tcp.bytes_sent, tcp.bytes_retrans, tcp.bytes_acked, tcp.bytes_received].iter().all(|count| *count <= MAX_COUNT)
    });
    counts && *records::socket_time(record) <= LATEST_NS
}
