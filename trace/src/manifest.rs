//! What an agent says of itself and of its run, and what a person says of captures that other tools made.

#[cfg(feature = "agent")]
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Earlier runs of which a manifest tells, each by itself; what those before them counted stands in the oldest of these.
pub const MAX_EARLIER_RUNS: usize = 20;
/// Bytes of an agent's manifest at most.
pub const MAX_MANIFEST_BYTES: u64 = 16 << 20;
/// Problems that a manifest names at most.
pub const MAX_PROBLEMS: usize = 100;
/// Interfaces of which the entry of several runs tells, each by itself.
const MAX_ABSORBED_INTERFACES: usize = 256;
/// Stands for those beyond; it has no file.
pub const OTHER_INTERFACES: &str = "others";

/// `sniffer.json`: written when the sniffer is ready and again when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SnifferManifest {
    /// Format version, 1.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// Host name.
    pub host: String,
    /// Network namespace, by inode.
    pub netns: u64,
    /// True as soon as packets are recorded.
    pub ready: bool,
    /// True when the run ended in an orderly way and the counters are final.
    pub ended: bool,
    /// CPU time, microseconds.
    #[serde(default)]
    pub cpu_us: u64,
    /// Start, nanoseconds since the epoch.
    pub started_ns: u64,
    /// End, nanoseconds since the epoch; 0 = still running.
    pub ended_ns: u64,
    /// Capture filter (pcap-filter syntax).
    pub filter: String,
    /// Captured bytes of a frame at most.
    pub snap_length: u32,
    /// Kernel ring, bytes.
    pub ring_bytes: u64,
    /// Kept payload bytes of segments shorter than `full_segment_bytes`.
    pub payload_bytes: u32,
    /// Segments of at least so many payload bytes count as full-sized.
    pub full_segment_bytes: u32,
    /// Kept payload bytes of full-sized segments.
    pub full_payload_bytes: u32,
    /// Of which full-sized segments a prefix is kept: "bursts" (those that begin one), "all" or "none".
    #[serde(default)]
    pub full_payload_of: String,
    /// What became of secrets in the payload: "blank" (they were, `blanked_bytes` counts them) or "keep"; "" = of captures
    /// that do not say, in which they were kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets: String,
    /// One for each interface.
    pub interfaces: Vec<InterfaceManifest>,
    /// Whether only Hadoop's ports are recorded, as they come and go.
    #[serde(default)]
    pub follows: bool,
    /// The ports that are followed now, as ranges "8020" or "50100-50200".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followed_ports: Vec<String>,
    /// How often the kernel's filter was replaced.
    #[serde(default)]
    pub filter_changes: u64,
    /// The rights that were left after the start, as capabilities(7) names them; "all" = none were given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// What shuts the agent in beside that (`trace::sandbox`): "mounts", "landlock", "seccomp".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
    /// Bytes of all packet files in the folder, those of earlier runs among them.
    #[serde(default)]
    pub disk_bytes: u64,
    /// Older packet files that were removed to stay within the limit.
    #[serde(default)]
    pub removed_files: u64,
    /// What the reader should know, and is no fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What went wrong, in words.
    pub problems: Vec<String>,
    /// Of an earlier run: how many before it are counted in this entry as well. 0 = it stands for itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absorbed_runs: u64,
    /// What the manifest said at the end of the runs before, whose packets stand in the same files. Intervals of the last
    /// of them only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_runs: Vec<SnifferManifest>,
}

/// An interface that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceManifest {
    /// Name.
    pub name: String,
    /// File of its packets, in the manifest's folder.
    pub file: String,
    /// Addresses.
    pub addresses: Vec<String>,
    /// From when on it is recorded and accounted for, nanoseconds since the epoch: it came up during the run. 0 = from the
    /// start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// What became of its packets, over the whole run.
    #[serde(flatten)]
    pub counts: PacketCounts,
    /// The same by interval, in order; intervals get longer as the run does, so that there are never many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<CountedInterval>,
}

/// What became of the packets of an interface. Each packet that the interface counted is in one of the other numbers:
/// `interface_packets` = `packets` + `other` + `unparsed` + `unfollowed` + `undecided` + `kernel_drops` + `filtered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PacketCounts {
    /// Packets recorded.
    pub packets: u64,
    /// Packets that were seen but are no TCP over IP.
    pub other: u64,
    /// Packets that could not be parsed.
    pub unparsed: u64,
    /// TCP packets that were seen, but turned out not to be Hadoop's.
    pub unfollowed: u64,
    /// TCP packets that were seen and given up undecided, because too many had to be held.
    pub undecided: u64,
    /// Recorded packets of which less payload was kept than asked for, because the frame was cut at the snap length.
    pub truncated: u64,
    /// Bytes of kept payload that were blanked, as they are secret.
    pub blanked_bytes: u64,
    /// Lost because the ring was full.
    pub kernel_drops: u64,
    /// Lost in the interface or its driver.
    pub interface_drops: u64,
    /// Recorded packets that could not be written to the file (a full disk).
    pub unwritten: u64,
    /// What the interface itself counted, both ways; 0 = it does not tell. With segmentation offload a network card
    /// counts the packets on the wire, of which the kernel shows several as one.
    pub interface_packets: u64,
    /// Packets that the interface counted and the kernel's filter rejected: what is left of `interface_packets`.
    pub filtered: u64,
}

impl PacketCounts {
    /// What was lost: packets that should be in the files and are not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.kernel_drops + self.unwritten + self.undecided
    }

    /// Packets of which it is known what became of them, without what the interface counted.
    #[must_use]
    pub fn accounted_for(&self) -> u64 {
        self.packets + self.other + self.unparsed + self.unfollowed + self.undecided + self.kernel_drops
    }

    /// The same with `filtered` made of the others: what the interface counted and nothing else tells of.
    #[must_use]
    pub fn with_filtered(self) -> Self {
        Self { filtered: self.interface_packets.saturating_sub(self.accounted_for()), ..self }
    }

    /// The increase since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            packets: of(self.packets, other.packets),
            other: of(self.other, other.other),
            unparsed: of(self.unparsed, other.unparsed),
            unfollowed: of(self.unfollowed, other.unfollowed),
            undecided: of(self.undecided, other.undecided),
            truncated: of(self.truncated, other.truncated),
            blanked_bytes: of(self.blanked_bytes, other.blanked_bytes),
            kernel_drops: of(self.kernel_drops, other.kernel_drops),
            interface_drops: of(self.interface_drops, other.interface_drops),
            unwritten: of(self.unwritten, other.unwritten),
            interface_packets: of(self.interface_packets, other.interface_packets),
            filtered: of(self.filtered, other.filtered),
        }
    }
}

/// What became of the packets of an interface between two times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedInterval {
    /// Begin, nanoseconds since the epoch.
    pub from_ns: u64,
    /// End, nanoseconds since the epoch.
    pub to_ns: u64,
    /// Counts within.
    #[serde(flatten)]
    pub counts: PacketCounts,
}

/// `dumpingd.json`: written when dumpingd is ready and again when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DumpingdManifest {
    /// Format version, 1.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// Host name.
    pub host: String,
    /// Network namespace, by inode.
    pub netns: u64,
    /// True as soon as sockets are recorded.
    pub ready: bool,
    /// True when the run ended in an orderly way and the counters are final.
    pub ended: bool,
    /// Start, nanoseconds since the epoch.
    pub started_ns: u64,
    /// End, nanoseconds since the epoch; 0 = still running.
    pub ended_ns: u64,
    /// Interval of scans, milliseconds.
    pub interval_ms: u64,
    /// Why it is that, in words; "" = of captures that do not say, which had what was asked for or 1 s.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interval_reason: String,
    /// Scans made.
    pub scans: u64,
    /// The rights that were left after the start, as capabilities(7) names them; "all" = none were given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// What shuts the agent in beside that (`trace::sandbox`): "mounts", "seccomp".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
    /// Whether the kernel's broadcast of dying sockets was heard.
    pub hears_dying: bool,
    /// Where sockets were read from: "netlink" (also of captures that do not say), "proc" or "lsof".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Whether the kernel's tracepoint of TCP state changes was read.
    #[serde(default)]
    pub tracepoint: bool,
    /// Connections of which it told the owner.
    #[serde(default)]
    pub traced: u64,
    /// Connections of which it told when the thread that opened them had ended: their owner is known only where a scan
    /// found them alive. Those of threads in network namespaces that are not scanned are among them.
    #[serde(default)]
    pub ended_openers: u64,
    /// Dying sockets that were heard of.
    #[serde(default)]
    pub died: u64,
    /// Records made.
    #[serde(default)]
    pub records: u64,
    /// Of these: not written, as there was no room on the disk.
    #[serde(default)]
    pub unwritten: u64,
    /// Bytes of all files of records in the folder, those of earlier runs among them.
    #[serde(default)]
    pub disk_bytes: u64,
    /// Older files of records that were removed to keep within the limit of the disk.
    #[serde(default)]
    pub removed_files: u64,
    /// Records in them.
    #[serde(default)]
    pub removed_records: u64,
    /// Network namespaces of Hadoop's processes that were not scanned, as there were too many; the most at one time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_netns: u64,
    /// The other network namespaces of Hadoop's processes that were scanned, by inode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_netns: Vec<u64>,
    /// Scans that began late, because those before took too much time.
    #[serde(default)]
    pub late_scans: u64,
    /// What the reader should know, and is no fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// CPU time, microseconds.
    pub cpu_us: u64,
    /// What went wrong, in words.
    pub problems: Vec<String>,
    /// Of an earlier run: how many before it are counted in this entry as well. 0 = it stands for itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absorbed_runs: u64,
    /// What the manifest said at the end of the runs before, whose records stand in the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_runs: Vec<DumpingdManifest>,
}

/// The manifest of an agent, which carries those of the runs before it.
pub trait RunManifest: DeserializeOwned {
    /// The runs before it, oldest first; none are left in it.
    fn take_earlier_runs(&mut self) -> Vec<Self>;
    /// Takes what only the last run before has to tell.
    fn shorten(&mut self);
    /// Adds what an older run counted: from now on this entry stands for both.
    fn absorb(&mut self, older: Self);
}

impl SnifferManifest {
    /// Its name in the host's folder.
    pub const FILE: &str = "sniffer.json";
}

impl RunManifest for SnifferManifest {
    fn take_earlier_runs(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.earlier_runs)
    }

    fn shorten(&mut self) {
        self.interfaces.iter_mut().for_each(|interface| interface.intervals.clear());
    }

    fn absorb(&mut self, older: Self) {
        self.absorbed_runs = self.absorbed_runs.saturating_add(older.absorbed_runs).saturating_add(1);
        self.started_ns = self.started_ns.min(older.started_ns);
        self.cpu_us = self.cpu_us.saturating_add(older.cpu_us);
        self.filter_changes = self.filter_changes.saturating_add(older.filter_changes);
        self.removed_files = self.removed_files.saturating_add(older.removed_files);
        absorb_lines(&mut self.problems, older.problems);
        absorb_lines(&mut self.notes, older.notes);
        for interface in older.interfaces {
            let is_full = self.interfaces.len() >= MAX_ABSORBED_INTERFACES;
            let index = self.interfaces.iter().position(|known| known.name == interface.name);
            let other = || self.interfaces.iter().position(|known| known.name == OTHER_INTERFACES);
            match index.or_else(|| other().filter(|_| is_full)) {
                Some(index) => {
                    let counts = &mut self.interfaces[index].counts;
                    *counts = counts.plus(&interface.counts);
                }
                None if is_full => {
                    self.interfaces.push(InterfaceManifest {
                        name: OTHER_INTERFACES.to_owned(),
                        counts: interface.counts,
                        ..InterfaceManifest::default()
                    });
                }
                None => self.interfaces.push(interface),
            }
        }
    }
}

impl DumpingdManifest {
    /// Its name in the host's folder.
    pub const FILE: &str = "dumpingd.json";
}

impl RunManifest for DumpingdManifest {
    fn take_earlier_runs(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.earlier_runs)
    }

    fn shorten(&mut self) {}

    fn absorb(&mut self, older: Self) {
        self.absorbed_runs = self.absorbed_runs.saturating_add(older.absorbed_runs).saturating_add(1);
        self.started_ns = self.started_ns.min(older.started_ns);
        self.cpu_us = self.cpu_us.saturating_add(older.cpu_us);
        self.scans = self.scans.saturating_add(older.scans);
        self.late_scans = self.late_scans.saturating_add(older.late_scans);
        self.traced = self.traced.saturating_add(older.traced);
        self.ended_openers = self.ended_openers.saturating_add(older.ended_openers);
        self.died = self.died.saturating_add(older.died);
        self.records = self.records.saturating_add(older.records);
        self.unwritten = self.unwritten.saturating_add(older.unwritten);
        self.removed_files = self.removed_files.saturating_add(older.removed_files);
        self.removed_records = self.removed_records.saturating_add(older.removed_records);
        self.left_out_netns = self.left_out_netns.max(older.left_out_netns);
        absorb_lines(&mut self.problems, older.problems);
        absorb_lines(&mut self.notes, older.notes);
    }
}

/// Adds lines that are not there yet, as long as there is room.
fn absorb_lines(lines: &mut Vec<String>, older: Vec<String>) {
    for line in older {
        if lines.len() < MAX_PROBLEMS && !lines.contains(&line) {
            lines.push(line);
        }
    }
}

/// The runs of which the manifest at `path` tells, oldest first, at most [`MAX_EARLIER_RUNS`]; none if there is no such file.
/// One that cannot be read is a problem that the new run tells of: only a file of this user is, and nothing that would wait.
#[cfg(feature = "agent")]
pub fn earlier_runs<M: RunManifest>(path: &Path, problems: &mut Vec<String>) -> Vec<M> {
    let last = crate::agent::read_own(path, MAX_MANIFEST_BYTES)
        .and_then(|text| Ok(text.map(|text| serde_json::from_slice::<M>(&text)).transpose()?));
    match last {
        Ok(None) => Vec::new(),
        Ok(Some(mut last)) => {
            let mut runs = last.take_earlier_runs();
            runs.iter_mut().for_each(M::shorten);
            runs.push(last);
            let excess = runs.len().saturating_sub(MAX_EARLIER_RUNS);
            let old: Vec<M> = runs.drain(..excess).collect();
            if let Some(oldest) = runs.first_mut() {
                // The newest first: of equal problems and interfaces its own words stay.
                old.into_iter().rev().for_each(|run| oldest.absorb(run));
            }
            runs
        }
        Err(error) => {
            problems.push(format!("the manifest of an earlier run could not be read: {error}"));
            Vec::new()
        }
    }
}

/// `manifest.json` in a host's folder: which file is what, for captures made with tcpdump, lsof or ss.
///
/// ```json
/// { "host": "w1", "addresses": ["10.1.0.11"], "rack": "/r1",
///   "packets": [ { "file": "eth0.pcap.zst", "interface": "eth0" }, { "file": "lo.pcapng", "interface": "lo" } ],
///   "sockets": [ { "file": "ss.txt", "format": "ss" } ],
///   "processes": [ { "pid": 4711, "role": "DataNode" } ] }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a manifest like { \"host\": \"w1\", \"addresses\": [\"10.1.0.11\"], \"packets\": [...] }"
)]
pub struct ForeignManifest {
    /// Host name.
    pub host: String,
    /// Addresses of the host; its packets are told from others' by them.
    pub addresses: Vec<String>,
    /// Rack, "" = unknown.
    #[serde(default)]
    pub rack: String,
    /// Packet files.
    pub packets: Vec<ForeignPackets>,
    /// Socket listings.
    #[serde(default)]
    pub sockets: Vec<ForeignSockets>,
    /// Processes whose role no listing tells.
    #[serde(default)]
    pub processes: Vec<ForeignProcess>,
}

/// A pcap or pcapng file, possibly packed (.zst, .gz, .xz).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a file like { \"file\": \"eth0.pcap\", \"interface\": \"eth0\" }")]
pub struct ForeignPackets {
    /// File, in the manifest's folder.
    pub file: String,
    /// Interface; "lo" = loopback.
    pub interface: String,
}

/// A listing of sockets and owners.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a listing like { \"file\": \"ss.txt\", \"format\": \"ss\" }")]
pub struct ForeignSockets {
    /// File, in the manifest's folder.
    pub file: String,
    /// Who wrote it.
    pub format: SocketListing,
}

/// Formats of socket listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketListing {
    /// `ss -tanpeiO` outputs, one after the other, each preceded by a line `# <nanoseconds since the epoch>`.
    Ss,
    /// `lsof -nP -iTCP -F pcnTf` outputs, each preceded by a line `# <nanoseconds since the epoch>`.
    Lsof,
    /// What `tcplife`, `tcpconnect` or `tcpaccept` print, of bcc or bpftrace, with their header; each line, or some, preceded by one as
    /// of `ss`.
    Tcplife,
}

/// A process and its role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a process like { \"pid\": 4711, \"role\": \"DataNode\" }")]
pub struct ForeignProcess {
    /// Process id.
    pub pid: u32,
    /// Role (`trace::role`), or any name for a process that is not Hadoop's.
    pub role: String,
    /// Whether it belongs to Hadoop.
    #[serde(default = "yes")]
    pub hadoop: bool,
}

fn yes() -> bool {
    true
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// `manifest.json` of a trace, beside its tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceManifest {
    /// Format version of the tables, 1.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// The captures that went into it.
    pub captures: Vec<String>,
    /// First packet, nanoseconds since the epoch on the reference clock.
    pub start_ns: u64,
    /// Last packet.
    pub end_ns: u64,
    /// The host whose clock is the reference.
    pub reference_host: String,
    /// What was lost on the way, by name: "packets dropped by the kernel", "truncated bytes of HOST/FILE".
    pub losses: Vec<Loss>,
    /// What the reader should know, in words.
    pub notes: Vec<String>,
    /// The network, as far as its packets tell of it; missing in traces of older versions, and of jobs from parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkEstimate>,
}

/// A network as the packets of a capture tell of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkEstimate {
    /// Links that carried anything, by host and by rack, each direction by itself.
    pub links: Vec<LinkEstimate>,
    /// The least round trip of a handshake between two hosts of a rack; null = none was seen.
    pub rack_round_trip_ns: Option<u64>,
    /// The same between two racks.
    pub across_round_trip_ns: Option<u64>,
}

/// A link, in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkEstimate {
    /// Where it begins: a host, a rack's switch by the rack's name ("switch" = the rack is not known), or "core".
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Its rate, bits per second of Ethernet frames (header, no preamble, no checksum).
    pub rate_bps: u64,
    /// It was never full: its rate is at least that.
    pub at_least: bool,
    /// For how long it was full, seconds.
    pub full_s: f64,
    /// The longest queue in front of it while it was full, bytes; null = it was never full, or lies in front of all that was
    /// captured (a host's own link).
    pub queue_bytes: Option<u64>,
    /// Whether packets were sent again that had left while it was full: then that queue was all there is room for.
    pub overflowed: bool,
}

/// Something that was lost, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// What was lost, as a clause.
    pub what: String,
    /// How much.
    pub count: u64,
    /// In which unit: "packets", "bytes", "records".
    pub unit: String,
    /// Which of the agents left it out of its record: "sniffer", "dumpingd", "jvm"; "" = none: it was recorded, and could
    /// not be used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub writer: String,
}

impl Loss {
    /// Something that was recorded and could not be used.
    #[must_use]
    pub fn new(what: impl Into<String>, count: u64, unit: &str) -> Self {
        Self { what: what.into(), count, unit: unit.into(), writer: String::new() }
    }
}
