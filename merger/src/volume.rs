//! How much captures hold, and the memory and the room for temporary files that a merge of so much takes.

use serde::{Deserialize, Serialize};

// What each part takes at most, bytes. Set on 2026-11-30 by what `merger build --json` says that it took in the end, of the golden
// captures, of golden terasorts told again and again (`enlarge-capture`), and of a million connections of eight packets each:
// docs/foreign-captures.md has the figures, those of temporary files among them.

/// What a merge of nothing takes (40 MiB), lists before they go to files, and the rows of a table that are written at once.
const BASE_BYTES: u64 = 84 << 20;
/// What each thread holds.
const BYTES_PER_THREAD: u64 = 10 << 20;
/// A packet without its payload, packed, while it is in memory.
const PACKED_BYTES: u64 = 18;
/// Packets of which a byte stays in memory when their connection has been read.
const PACKETS_PER_BYTE: u64 = 4;
const BYTES_PER_CONNECTION: u64 = 500;
const BYTES_PER_JVM_RECORD: u64 = 20;
const BYTES_PER_SOCKET_RECORD: u64 = 1;
/// The clocks of hosts are fitted to each other, offset and drift, by a matrix.
const BYTES_PER_PAIR_OF_HOSTS: u64 = 4 * 8;

/// What a packet without its payload takes in a temporary file.
const FILED_BYTES: u64 = 12;
/// What lies in temporary files of a packet while it lies there itself: its segment, what its link carried, its share of messages.
const FILED_BESIDE_BYTES: u64 = 10;
/// What lies in them later: its segment, its share of messages, events and causes.
const FILED_LATER_BYTES: u64 = 16;
const FILED_BYTES_PER_SOCKET_RECORD: u64 = 60;
/// What was read of a connection, its row, events of its own.
const FILED_BYTES_PER_CONNECTION: u64 = 800;
/// A message, what was told of it, and its causes, of each record of a JVM.
const FILED_BYTES_PER_JVM_RECORD: u64 = 300;
/// What lies in memory of what could lie in files.
const UNFILED_BYTES: u64 = 16 << 20;

/// Segments of connections that were read get such a part of what packets get.
pub(crate) const STREAMS_SHARE: u64 = 8;

/// What captures hold, as far as memory is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Connections at most: pairs of addresses on each host, and packets that may begin another connection.
    pub connections: u64,
    /// Kept payload, bytes.
    pub kept_bytes: u64,
    /// Records of JVMs.
    pub jvm_records: u64,
    /// Bytes of these.
    pub jvm_bytes: u64,
    /// Records of sockets, and lines of listings.
    pub socket_records: u64,
    /// Bytes of these.
    pub socket_bytes: u64,
    /// Hosts that were captured, of all captures.
    #[serde(skip)]
    pub hosts: u64,
}

impl Volume {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            connections: self.connections.saturating_add(other.connections),
            kept_bytes: self.kept_bytes.saturating_add(other.kept_bytes),
            jvm_records: self.jvm_records.saturating_add(other.jvm_records),
            jvm_bytes: self.jvm_bytes.saturating_add(other.jvm_bytes),
            socket_records: self.socket_records.saturating_add(other.socket_records),
            socket_bytes: self.socket_bytes.saturating_add(other.socket_bytes),
            hosts: self.hosts.saturating_add(other.hosts),
        }
    }

    /// Memory that a merge of this takes at most, bytes, if packets may take so much of it: until connections are read, or while
    /// causes are found, when packets and sockets have been given up.
    #[must_use]
    pub fn memory_bytes(&self, for_packets: u64) -> u64 {
        let packets = self.packed_bytes().min(for_packets);
        let segments = packets / STREAMS_SHARE;
        let causes = [
            (self.packets / PACKETS_PER_BYTE, 1),
            (self.connections, BYTES_PER_CONNECTION),
            (self.jvm_records, BYTES_PER_JVM_RECORD),
            (segments, 1),
        ];
        let clocks = self.hosts.saturating_mul(self.hosts).saturating_mul(BYTES_PER_PAIR_OF_HOSTS);
        self.read_bytes(packets).saturating_add(segments.max(clocks)).max(with_base(&causes))
    }

    /// Room that temporary files of a merge of this take at most, bytes, if packets may take so much of memory: while connections are
    /// read, or while causes are found.
    #[must_use]
    pub fn temporary_bytes(&self, for_packets: u64) -> u64 {
        let filed = self.packets.saturating_mul(FILED_BYTES).saturating_add(self.kept_bytes);
        let packets = if self.packed_bytes() > for_packets { filed } else { 0 };
        let of_records = self.jvm_records.saturating_mul(FILED_BYTES_PER_JVM_RECORD);
        let of_connections = self.connections.saturating_mul(FILED_BYTES_PER_CONNECTION);
        let of_sockets = self.socket_records.saturating_mul(FILED_BYTES_PER_SOCKET_RECORD);
        let beside = self.packets.saturating_mul(FILED_BESIDE_BYTES).saturating_add(packets);
        let later = self.packets.saturating_mul(FILED_LATER_BYTES).saturating_add(of_records);
        beside.max(later).saturating_add(of_connections).saturating_add(of_sockets).saturating_sub(UNFILED_BYTES)
    }

    /// Memory that the making of digests of this takes at most, bytes.
    #[must_use]
    pub fn digest_bytes(&self, for_packets: u64) -> u64 {
        self.read_bytes(self.packed_bytes().min(for_packets))
    }

    /// What its packets take in memory, bytes.
    fn packed_bytes(&self) -> u64 {
        self.packets.saturating_mul(PACKED_BYTES).saturating_add(self.kept_bytes.saturating_mul(3) / 2)
    }

    /// What it takes when it has been read, with so much for packets.
    fn read_bytes(&self, packets: u64) -> u64 {
        with_base(&[
            (packets, 1),
            (self.connections, BYTES_PER_CONNECTION),
            (self.jvm_records, BYTES_PER_JVM_RECORD),
            (self.socket_records, BYTES_PER_SOCKET_RECORD),
        ])
    }
}

/// What a merge takes whatever captures hold, bytes.
pub(crate) fn base_bytes() -> u64 {
    BASE_BYTES + BYTES_PER_THREAD * rayon::current_num_threads() as u64
}

fn with_base(parts: &[(u64, u64)]) -> u64 {
    parts.iter().fold(base_bytes(), |all, (count, bytes)| all.saturating_add(count.saturating_mul(*bytes)))
}
