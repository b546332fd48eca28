//! How much captures hold, and the memory that a merge of so much takes.

use serde::{Deserialize, Serialize};

// What each part takes at most, bytes. Fitted on 2026-11-26 so that the golden captures and captures of one kind of thing
// alone come out between 1.25 and 2.66 times what `merger build --json` says that it took in the end: terasort 113 MiB (691,888
// packets), wordcount 74, encrypted 62; 120,000 connections of a packet each, 523; 1,000,000 packets without payload, 53;
// 300,000 with 200 bytes each, 123; 400,000 records of JVMs, 156 of calls and 69 of threads; as many of sockets, each of another
// process, 269.

/// A merge of nothing takes 40 MiB, and more where there are more threads.
pub(crate) const BASE_BYTES: u64 = 112 << 20;
/// What stays of a packet: its segment, its share of messages and causes.
const BYTES_PER_PACKET: u64 = 4;
/// A packet without its payload, packed, while it is in memory: vectors grow by half of what they hold on average.
const PACKED_BYTES: u64 = 18;
const BYTES_PER_CONNECTION: u64 = 2_400;
const BYTES_PER_JVM_RECORD: u64 = 300;
const BYTES_PER_SOCKET_RECORD: u64 = 450;

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
        }
    }

    /// Memory that a merge of this takes at most, bytes, if packets may take so much of it.
    #[must_use]
    pub fn memory_bytes(&self, for_packets: u64) -> u64 {
        self.other_bytes().saturating_add(self.packed_bytes().min(for_packets))
    }

    /// Memory that the making of digests of this takes at most, bytes.
    #[must_use]
    pub fn digest_bytes(&self, for_packets: u64) -> u64 {
        let without_packets = Self { packets: 0, ..*self };
        without_packets.other_bytes().saturating_add(self.packed_bytes().min(for_packets))
    }

    /// What its packets take in memory or in a temporary file, bytes.
    #[must_use]
    pub fn packed_bytes(&self) -> u64 {
        self.packets.saturating_mul(PACKED_BYTES).saturating_add(self.kept_bytes.saturating_mul(3) / 2)
    }

    /// What everything else takes, bytes.
    pub(crate) fn other_bytes(&self) -> u64 {
        let parts = [
            (self.packets, BYTES_PER_PACKET),
            (self.connections, BYTES_PER_CONNECTION),
            (self.jvm_records, BYTES_PER_JVM_RECORD),
            (self.socket_records, BYTES_PER_SOCKET_RECORD),
            (self.socket_bytes, 1),
        ];
        parts.iter().fold(BASE_BYTES, |all, (count, bytes)| all.saturating_add(count.saturating_mul(*bytes)))
    }
}
