//! What a check says.

use std::collections::BTreeMap;

use serde::Serialize;

use super::limits::LimitsDetail;
use super::path::PathDetail;

/// What a check found. Shares and errors are fractions; error = (captured - counter) / counter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// TCP payload bytes, each byte of a connection's sequence once, less connections both of whose owners are known
    /// not to be Hadoop's.
    pub payload_bytes: u64,
    /// Share of these with an owner process and a role at both ends.
    pub owned_both_ends_share: Option<f64>,
    /// Share of the connections, those without payload included, with an owner process and a role at both ends.
    pub owned_connections_share: Option<f64>,
    /// The same shares, but for [`Detail::shorter_than_listings`]: what is judged.
    #[serde(skip)]
    pub(super) could_be_owned_share: Option<f64>,
    #[serde(skip)]
    pub(super) could_be_owned_connections_share: Option<f64>,
    /// Share of these bytes in messages of known kind.
    pub in_known_message_share: Option<f64>,
    /// Segments that arrive before they left by more than the clocks' uncertainty, messages that arrive before they
    /// left, and dependencies on something later.
    pub causality_violations: u64,
    /// Captured against the kernel's bytes_sent - bytes_retrans, over all ends of connections for which it is known.
    pub captured_vs_kernel_error: Option<f64>,
    /// Map output fetched by successful reduces against REDUCE_SHUFFLE_BYTES.
    pub shuffle_bytes_error: Option<f64>,
    /// Block data read by successful attempts, less what nobody took, against HDFS_BYTES_READ.
    pub hdfs_read_bytes_error: Option<f64>,
    /// Block data written by successful attempts, first hop, against HDFS_BYTES_WRITTEN.
    pub hdfs_write_bytes_error: Option<f64>,
    /// Why a figure is null, by its name.
    pub reasons: BTreeMap<String, String>,
    /// Targets that were missed, in words.
    pub missed: Vec<String>,
    /// What lies behind the figures.
    pub detail: Detail,
}

/// What lies behind the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Detail {
    /// Hosts, captured ones and peers.
    pub hosts: Vec<HostDetail>,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// Payload bytes of connections that are not Hadoop's at either end.
    pub other_bytes: u64,
    /// Payload bytes by protocol of the connection.
    pub bytes_by_protocol: BTreeMap<String, u64>,
    /// Bytes by kind of message.
    pub bytes_by_kind: BTreeMap<String, u64>,
    /// Messages by kind.
    pub messages_by_kind: BTreeMap<String, u64>,
    /// Bytes by how messages were delimited.
    pub bytes_by_delimiting: BTreeMap<String, u64>,
    /// Messages and bytes by what they are known from: "payload", "jvm", "jvm, shared segment", "headers"; "nothing" are
    /// those of unknown kind.
    pub known_by: BTreeMap<String, Known>,
    /// Connections that begin with a negotiation (TLS, SASL), by protocol.
    pub negotiated: BTreeMap<String, Negotiated>,
    /// Bytes of both ends by how their owner is known (each connection counts twice).
    pub bytes_by_owner_evidence: BTreeMap<String, u64>,
    /// Connections that count: all but those of which both owners are known not to be Hadoop's.
    pub counted_connections: u64,
    /// Of these, how many lack an owner or role at one end.
    pub connections_without_owner: u64,
    /// Of these, those that lived less than the time between two listings of sockets, where nothing else tells of owners.
    #[serde(skip_serializing_if = "Short::is_none")]
    pub shorter_than_listings: Short,
    /// All of them with their reasons, by bytes; the first 10,000.
    pub without_owner: Vec<IncompleteConnection>,
    /// Connections with bytes in messages of unknown kind, by bytes, the 20 largest.
    pub in_unknown_messages: Vec<IncompleteConnection>,
    /// Bytes that were acknowledged but never seen.
    pub missing_bytes: u64,
    /// Bytes sent more than once.
    pub retransmitted_bytes: u64,
    /// Against the kernel: captured, counted, and the sum of all differences as amounts.
    pub kernel: KernelDetail,
    /// Application data by what it was for.
    pub volumes: Volumes,
    /// Segments whose delivery was moved to when they left, within the clocks' uncertainty.
    pub clamped_segments: u64,
    /// Edges of the causal graph by evidence.
    pub dependencies_by_evidence: BTreeMap<String, u64>,
    /// Share of the edges by evidence.
    pub dependency_share_by_evidence: BTreeMap<String, f64>,
    /// Events that wait for nothing.
    pub root_events: u64,
    /// What the jobs' times consist of.
    pub critical_paths: Vec<PathDetail>,
    /// What was lost on the way.
    pub losses: Vec<trace::manifest::Loss>,
    /// What held senders up.
    pub limits: LimitsDetail,
    /// What each agent ("sniffer", "dumpingd", "jvm") left out of its record on all hosts, by unit.
    pub unwritten_by: BTreeMap<String, BTreeMap<String, u64>>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Short connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Short {
    /// Connections.
    pub connections: u64,
    /// Their payload bytes.
    pub bytes: u64,
}

impl Short {
    fn is_none(&self) -> bool {
        self.connections == 0
    }
}

impl Report {
    /// In one line, whether the trace can be relied on.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Short { connections, .. } = self.detail.shorter_than_listings;
        let short =
            format!("listings of sockets alone cannot tell whose {connections} connections of less than a second were");
        let targets =
            |missed: usize| format!("FAIL: {missed} {} missed", if missed == 1 { "target is" } else { "targets are" });
        match (self.missed.len(), connections) {
            (0, 0) => "PASS: as complete and as sure as is wanted".to_owned(),
            (0, _) => format!("PASS: as complete as its sources can be; {short}"),
            (missed, 0) => targets(missed),
            (missed, _) => format!("{}; {short}", targets(missed)),
        }
    }
}

/// How much is known from one source. Shares are fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Known {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of all messages.
    pub message_share: f64,
    /// Share of all bytes.
    pub byte_share: f64,
}

/// A host and its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostDetail {
    /// Name.
    pub name: String,
    /// Whether its packets were captured.
    pub captured: bool,
    /// Added to its clock at the trace's start, nanoseconds.
    pub clock_offset_ns: i64,
    /// What its clock gained, parts per billion.
    pub clock_drift_ppb: i64,
}

/// Negotiated connections of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// Connections.
    pub connections: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Of these, bytes of negotiations and of how they end.
    pub negotiation_bytes: u64,
    /// Of these, application data: of blocks and of map outputs.
    pub app_bytes: u64,
}

impl Negotiated {
    /// What is neither: requests, headers, checksums, and what encryption adds to them and to data.
    #[must_use]
    pub fn other_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.negotiation_bytes).saturating_sub(self.app_bytes)
    }
}

/// Application data, bytes, by what it was for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Volumes {
    /// Jobs whose counters were compared.
    pub jobs: Vec<String>,
    /// Map output that successful reduces fetched.
    pub shuffle_bytes: u64,
    /// Payload of these responses with their headers.
    pub shuffle_payload_bytes: u64,
    /// The counter of it.
    pub shuffle_counter: u64,
    /// Block data that successful attempts read and took.
    pub read_bytes: u64,
    /// Block data that they were sent and did not take (reads that were broken off, whole checksum chunks).
    pub read_unread_bytes: u64,
    /// The counter of what was read.
    pub read_counter: u64,
    /// Block data that successful attempts wrote, first hop.
    pub written_bytes: u64,
    /// The counter of it.
    pub written_counter: u64,
    /// Block data of later hops of write pipelines.
    pub later_hops_bytes: u64,
    /// Map output of other attempts.
    pub other_shuffle_bytes: u64,
    /// Block data read by others, by role ("YarnChild" = attempts that did not succeed, or of other jobs).
    pub other_read_bytes: BTreeMap<String, u64>,
    /// Block data written by others, first hop, by role: clients (staging), application masters (history), localizers.
    pub other_written_bytes: BTreeMap<String, u64>,
}

/// A connection that lacks something.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IncompleteConnection {
    /// Row.
    pub connection: u32,
    /// Client.
    pub client: String,
    /// Server.
    pub server: String,
    /// Protocol.
    pub protocol: String,
    /// Bytes concerned.
    pub bytes: u64,
    /// What is lacking.
    pub reason: String,
}

/// Captured bytes beside the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelDetail {
    /// Ends of connections that were compared.
    pub ends: u64,
    /// Ends with payload of which the kernel's counters are not known.
    pub unknown_ends: u64,
    /// Captured bytes of the compared ends.
    pub captured_bytes: u64,
    /// The kernel's bytes of these.
    pub kernel_bytes: u64,
    /// Sum of the differences as amounts.
    pub absolute_difference_bytes: u64,
    /// The 20 largest differences.
    pub largest: Vec<IncompleteConnection>,
}

pub(super) fn named(name: &str) -> String {
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// (captured - counter) / counter.
pub(super) fn error(captured: u64, counter: u64) -> Option<f64> {
    (counter > 0).then(|| (captured as f64 - counter as f64) / counter as f64)
}
