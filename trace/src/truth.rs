//! `truth.json` and `job/counters.json`: what the lab knows of the cluster on which a capture was made.
//!
//! Nothing that makes a trace depends on it; what checks a trace does. A capture of a real cluster has none, or one
//! written by hand with what is known. Unknown fields are kept out so that a misspelt one is noticed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters of jobs by job id: `job/counters.json`.
pub type CountersByJob = BTreeMap<String, JobCounters>;

/// Counters by group and name, as Hadoop names them
/// (`org.apache.hadoop.mapreduce.FileSystemCounter` / `HDFS_BYTES_READ`).
pub type CounterGroups = BTreeMap<String, BTreeMap<String, i64>>;

/// The counters of a finished job: sums over its successful attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobCounters {
    /// Of the whole job.
    pub total: CounterGroups,
    /// Of its maps.
    pub map: CounterGroups,
    /// Of its reduces.
    pub reduce: CounterGroups,
}

impl JobCounters {
    /// A counter of the whole job by its name alone, whatever its group; `None` when the job has none of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<i64> {
        self.total.values().find_map(|group| group.get(name).copied())
    }
}

/// All that the lab knows. Times are nanoseconds since the epoch, wall clock of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// Format version, 1.
    pub version: u32,
    /// The lab program's version.
    pub program: String,
    /// Prefix of the lab's names.
    pub prefix: String,
    /// Recording began: everything that was running then had just been started.
    pub started_ns: u64,
    /// Recording ended.
    pub ended_ns: u64,
    /// Who recorded: "agents", "tcpdump" or "nobody".
    pub recorder: String,
    /// Seed of the generated text.
    pub seed: u64,
    /// Whether the quiet settings were on (no speculation, reduces start after the last map).
    pub quiet: bool,
    /// Hosts, the master first.
    pub hosts: Vec<TruthHost>,
    /// Links: one a host, then the racks' uplink.
    pub links: Vec<TruthLink>,
    /// What was measured before the first daemon started.
    pub measured: Measured,
    /// Versions of what ran.
    pub versions: Versions,
    /// The machine that all hosts share.
    pub machine: Machine,
    /// TCP congestion control of the hosts.
    pub congestion_control: String,
    /// Other kernel settings of the hosts (`net.ipv4.tcp_rmem`, ...).
    pub sysctls: BTreeMap<String, String>,
    /// What ran, in order.
    pub jobs: Vec<TruthJob>,
    /// Where HDFS put the blocks of what the jobs read and wrote.
    pub blocks: Vec<BlockPlacement>,
    /// What was not as it should be, in words.
    pub problems: Vec<String>,
}

/// A host of the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthHost {
    /// Host name ("m1", "w1"); also the name of its folder in the capture.
    pub name: String,
    /// Addresses, loopback left out.
    pub addresses: Vec<String>,
    /// Rack as HDFS knows it ("/r1").
    pub rack: String,
    /// Name of its network namespace.
    pub namespace: String,
    /// Inode of its network namespace.
    pub netns: u64,
    /// Daemons that ran on it, by role.
    pub roles: Vec<String>,
    /// What the kernel counted on its interfaces between the beginning and the end of the recording.
    #[serde(default)]
    pub interfaces: Vec<InterfaceTraffic>,
}

/// Traffic of an interface as the kernel counts: frames of all protocols, Ethernet headers included, except
/// on `lo`, where the kernel leaves the 14 bytes of each out that a capture shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceTraffic {
    /// Name.
    pub name: String,
    /// Frames received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames that the interface dropped, both ways (not those that a link's queue had no room for).
    pub dropped_packets: u64,
}

/// A link, both directions alike as set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthLink {
    /// One end: a host, or for the uplink the first rack's switch.
    pub a: String,
    /// The other end: a rack's switch ("r1").
    pub b: String,
    /// Rate as set, bits per second of Ethernet frames (header, no preamble, no checksum); `None` = unshaped.
    pub set_bps: Option<u64>,
    /// Rate from a to b as measured: TCP payload, bits per second; `None` = no path on which it is the narrowest link.
    pub measured_ab_bps: Option<f64>,
    /// The same from b to a.
    pub measured_ba_bps: Option<f64>,
    /// Queue at each end, packets; 0 = unshaped.
    pub queue_packets: u32,
    /// Burst of the shaper, bytes; 0 = unshaped.
    pub burst_bytes: u32,
    /// Delay added, nanoseconds one way.
    pub delay_ns: u64,
    /// Packets from a to b for which the queue had no room while the run was recorded.
    #[serde(default)]
    pub drops_ab: u64,
    /// The same from b to a.
    #[serde(default)]
    pub drops_ba: u64,
}

/// What the lab measured itself with TCP between its hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// A transfer of a host to itself, payload, bytes per second.
    pub loopback_bytes_per_s: f64,
    /// Median round trip of one byte over loopback, between two processes' threads, nanoseconds.
    pub loopback_round_trip_ns: u64,
    /// The same between two hosts of one rack; 0 = no two hosts there.
    pub rack_round_trip_ns: u64,
    /// The same between two racks.
    pub across_round_trip_ns: u64,
}

/// Versions of what ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Apache Hadoop.
    pub hadoop: String,
    /// Java runtime.
    pub java: String,
    /// Linux kernel.
    pub kernel: String,
}

/// The machine on which all hosts ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Processors.
    pub cpus: u32,
    /// Their model.
    pub cpu: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
}

/// A job or a client's command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthJob {
    /// "teragen", "terasort", "teravalidate", "wordcount", "put", "get".
    pub kind: String,
    /// Hadoop's job id; "" = no MapReduce job (put, get).
    pub id: String,
    /// Host on which the client ran.
    pub client: String,
    /// The client process was started.
    pub client_start_ns: u64,
    /// The client process had ended.
    pub client_end_ns: u64,
    /// Submission by the job history (milliseconds there); 0 = no MapReduce job.
    pub submitted_ns: u64,
    /// End by the job history; 0 = no MapReduce job.
    pub finished_ns: u64,
    /// Bytes of input asked for.
    pub size_bytes: u64,
    /// Maps that ran.
    pub maps: u32,
    /// Reduces that ran.
    pub reduces: u32,
    /// Maps that ran on another host than the one that holds their input; `None` = the input has several replicas, of
    /// which the job history of a sort names one only, or there is no input.
    #[serde(default)]
    pub remote_maps: Option<u32>,
    /// Replication of its input.
    pub input_replication: u32,
    /// Replication of its output.
    pub output_replication: u32,
}

/// Where a block lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockPlacement {
    /// File in HDFS.
    pub file: String,
    /// Block ("blk_1073741825").
    pub block: String,
    /// Bytes of the block.
    pub bytes: u64,
    /// Hosts that hold a replica.
    pub hosts: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_misspelt_field_is_an_error() {
        let error = serde_json::from_str::<Machine>(r#"{"cpus":2,"cpu":"x","memory":1}"#).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
    }

    #[test]
    fn a_counter_is_found_in_whatever_group() {
        let mut counters = JobCounters::default();
        counters.total.entry("g".into()).or_default().insert("HDFS_BYTES_READ".into(), 7);
        assert_eq!(counters.named("HDFS_BYTES_READ"), Some(7));
        assert_eq!(counters.named("NONE"), None);
    }
}
