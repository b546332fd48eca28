//! How much captures hold, and the memory that a merge of so much takes.

use serde::{Deserialize, Serialize};

// What each part takes at most, bytes. Fitted on 2026-11-26 to what `merger build --json` says that it took in the end (foreseen;
// taken, MiB). On 2026-11-27: terasort (137; 79), wordcount (121; 50), encrypted (116; 40), 45 terasorts (564; 416 to 455 with
// `--memory 1GiB`, 1,044; 628 with 4GiB), 145 terasorts (1,391; 1,086 with 2GiB), 400,000 fetches, each of a map of its own (227; 206).
// Before memory was given back at each step: 120,000 connections of a SYN each (572; 496), 1,000,000 packets without payload (133; 42),
// 300,000 with 200 bytes each (225; 125), 400,000 records of JVMs, of calls (226; 152) and of threads (226; 78), as many of sockets, with
// half as many processes (355; 243).

/// A merge of nothing takes 40 MiB.
const BASE_BYTES: u64 = 92 << 20;
/// What each thread holds: three terasorts take 142 MiB with two threads, 204 with 8 and 242 with 16.
const BYTES_PER_THREAD: u64 = 10 << 20;
/// What stays of a packet: its segment, its share of messages and causes.
const BYTES_PER_PACKET: u64 = 4;
/// A packet without its payload, packed, while it is in memory: vectors grow by half of what they hold on average.
const PACKED_BYTES: u64 = 18;
const BYTES_PER_CONNECTION: u64 = 4_000;
/// A record of a JVM while packets are in memory.
const BYTES_PER_READ_RECORD: u64 = 120;
/// What becomes of it: a span, its row, its part in causes.
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

    /// Memory that a merge of this takes at most, bytes, if packets may take so much of it: until connections are read, or while
    /// causes are found, when packets and sockets have been given up.
    #[must_use]
    pub fn memory_bytes(&self, for_packets: u64) -> u64 {
        let packets = self.packed_bytes().min(for_packets);
        let segments = packets / 4;
        let causes = [
            (self.packets, BYTES_PER_PACKET),
            (self.connections, BYTES_PER_CONNECTION),
            (self.jvm_records, BYTES_PER_JVM_RECORD),
            (segments, 1),
        ];
        self.read_bytes(packets).saturating_add(segments).max(with_base(&causes))
    }

    /// Memory that the making of digests of this takes at most, bytes.
    #[must_use]
    pub fn digest_bytes(&self, for_packets: u64) -> u64 {
        self.read_bytes(self.packed_bytes().min(for_packets))
    }

    /// What its packets take in memory or in a temporary file, bytes.
    #[must_use]
    pub fn packed_bytes(&self) -> u64 {
        self.packets.saturating_mul(PACKED_BYTES).saturating_add(self.kept_bytes.saturating_mul(3) / 2)
    }

    /// What it takes when it has been read, with so much for packets.
    fn read_bytes(&self, packets: u64) -> u64 {
        with_base(&[
            (packets, 1),
            (self.connections, BYTES_PER_CONNECTION),
            (self.jvm_records, BYTES_PER_READ_RECORD),
            (self.socket_records, BYTES_PER_SOCKET_RECORD),
            (self.socket_bytes, 1),
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
