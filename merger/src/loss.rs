//! What was lost between the hosts and the trace: values here, words in one place.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trace::manifest;

/// Something that was lost, and how much of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// A file (HOST/NAME, job/NAME), an interface (HOST/NAME), a host or a job; "" = all hosts together.
    pub place: String,
    /// What was lost, and why.
    pub kind: LossKind,
    /// How much, in the unit of its kind.
    pub count: u64,
}

/// What the loss of payload that the capture does not have is called.
pub(crate) const NEVER_CAPTURED: &str = "payload that was acknowledged and never captured";

/// What can be lost. Errors and reasons are those of the libraries that read the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LossKind {
    /// A file or folder: not looked into.
    LeftOut(String),
    /// A file, whole.
    Unusable(String),
    /// A manifest.
    UnreadableManifest(String),
    /// What follows in a file.
    RestOfFile(String),
    /// Bytes of a last line without an end.
    CutLine,
    /// Lines that are no record.
    MalformedLines {
        /// The first of them, from 1.
        first: u64,
        /// Why it is none.
        error: String,
    },
    /// Lines that are longer than any record may be.
    OverlongLines,

    /// Packets that the kernel dropped while the sniffer recorded.
    KernelDrops,
    /// Packets that the interface dropped.
    InterfaceDrops,
    /// Packets that the sniffer could not parse.
    SnifferUnparsed,
    /// Packets that the sniffer could not write.
    SnifferUnwritten,
    /// Packets that the sniffer gave up undecided.
    SnifferUndecided,
    /// Payload that the sniffer blanked.
    Blanked,
    /// Packets in files that the sniffer removed to make room.
    RemovedPackets,
    /// Packets that the sniffer's manifest counts and no file holds.
    PacketsWithoutFile,
    /// Bytes of a last packet without an end.
    CutPacket,
    /// Packets whose fields cannot be.
    SenselessPackets,
    /// A packet file, damaged in its packing.
    DamagedPacking,
    /// Copies of packets that were seen on two interfaces.
    SeenTwice,

    /// Records of sockets that the full disk took.
    SocketsUnwritten,
    /// Records of sockets in files that dumpingd removed to make room.
    RemovedSockets,
    /// Network namespaces that dumpingd did not scan.
    NamespacesLeftOut,
    /// Scans that dumpingd's manifest counts and no file holds.
    ScansWithoutFile,
    /// What dumpingd itself says that it lost, in its words.
    ToldByDumpingd(String),
    /// Records of sockets whose times or counts cannot be.
    SenselessSockets,

    /// Records that the agent in a JVM dropped.
    JvmDropped(u32),
    /// Records of a JVM that the full disk took.
    JvmUnwritten(u32),
    /// Records of a JVM whose times or sizes cannot be.
    SenselessJvmRecords,
    /// A JVM's file with the header of another process.
    ForeignHeader,
    /// A JVM's file in the folder of another user than its process has.
    ForeignUser {
        /// The process.
        pid: u32,
        /// Its user.
        user: u32,
    },
    /// A JVM's file beside another one of the same process.
    SecondFile,
    /// An address that a JVM takes for its host's and that another host has.
    ForeignAddress {
        /// The address.
        address: IpAddr,
        /// The other host.
        host: String,
    },
    /// Ends of connections that a JVM takes for its own against the kernel's word.
    ForeignConnections(u32),
    /// Times that a JVM says that it listens, on more addresses than any does.
    ListeningElsewhere(u32),

    /// Names of calls, of paths and of tasks' attempts that rows lack, as texts may take so much memory only.
    NamesLeftOut,

    /// Frames of a foreign capture that could not be parsed.
    UnparsedFrames,
    /// Frames that the recording cut inside their headers; the longest rest of one, bytes.
    CutFrames(usize),
    /// Frames that the recording cut before what tells messages apart; the longest of them, bytes.
    ShortFrames(usize),
    /// Frames of VXLAN.
    Vxlan,
    /// Packets that one file has twice.
    Duplicates,
    /// A foreign capture that ends inside a frame.
    Truncated,
    /// Lines of a listing that were not understood.
    IgnoredLines,
    /// Lines of a listing below a time that was not understood.
    LinesWithoutTime {
        /// The first such line, from 1.
        line: u64,
        /// Its text.
        text: String,
    },

    /// A file of the job's counters.
    CountersNotUnderstood(String),
    /// Lines of a history that are no event.
    MalformedEvents,
    /// Lines of a history that are longer than any event.
    OverlongEvents,
    /// Bytes of a history after its last whole event.
    CutHistory,
    /// What follows in a history.
    RestOfHistory(String),
    /// Bytes of a history behind damage.
    DamagedHistory(String),
    /// What lies behind the first bytes of a history, which are all that is read.
    LongHistory(u64),
    /// A history without a job.
    WithoutJob,
    /// The end of a job's history.
    WithoutEnd,

    /// Payload that its receiver acknowledged and that no host's packets hold.
    NeverCaptured,
    /// Hosts whose clocks could not be aligned.
    Apart,
    /// Segments that arrive before they left.
    Early {
        /// By more or less than the clocks' uncertainty.
        which: EarlySegments,
        /// The most, nanoseconds.
        largest_ns: u64,
    },
}

/// Segments that arrive before they left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EarlySegments {
    /// By more than the clocks' uncertainty.
    Violations,
    /// By less: their delivery was moved to when they left.
    Clamped,
}

impl EarlySegments {
    const fn words(self) -> &'static str {
        match self {
            Self::Violations => "segments that arrive before they left after alignment",
            Self::Clamped => "segments whose delivery was moved to when they left",
        }
    }

    /// What an entry of a trace's manifest, which has words only, says of such segments.
    pub(crate) fn of(written: &manifest::Loss) -> Option<Self> {
        [Self::Violations, Self::Clamped].into_iter().find(|which| written.what.starts_with(which.words()))
    }
}

const SNIFFER: &str = "sniffer";
const DUMPINGD: &str = "dumpingd";
const JVM: &str = "jvm";

impl LossKind {
    /// The unit in which it is counted.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self {
            Self::LeftOut(_)
            | Self::Unusable(_)
            | Self::UnreadableManifest(_)
            | Self::RestOfFile(_)
            | Self::DamagedPacking
            | Self::ForeignHeader
            | Self::ForeignUser { .. }
            | Self::SecondFile
            | Self::Truncated
            | Self::CountersNotUnderstood(_)
            | Self::RestOfHistory(_)
            | Self::LongHistory(_)
            | Self::WithoutJob => "files",
            Self::CutLine | Self::CutPacket | Self::CutHistory | Self::DamagedHistory(_) | Self::NeverCaptured => {
                "bytes"
            }
            Self::Blanked => "payload bytes",
            Self::MalformedLines { .. }
            | Self::OverlongLines
            | Self::SocketsUnwritten
            | Self::RemovedSockets
            | Self::ToldByDumpingd(_)
            | Self::SenselessSockets
            | Self::JvmDropped(_)
            | Self::JvmUnwritten(_)
            | Self::SenselessJvmRecords
            | Self::MalformedEvents
            | Self::OverlongEvents => "records",
            Self::KernelDrops
            | Self::InterfaceDrops
            | Self::SnifferUnparsed
            | Self::SnifferUnwritten
            | Self::SnifferUndecided
            | Self::RemovedPackets
            | Self::PacketsWithoutFile
            | Self::SenselessPackets
            | Self::SeenTwice
            | Self::UnparsedFrames
            | Self::CutFrames(_)
            | Self::ShortFrames(_)
            | Self::Vxlan
            | Self::Duplicates => "packets",
            Self::NamespacesLeftOut => "namespaces",
            Self::ScansWithoutFile => "scans",
            Self::ForeignAddress { .. } => "addresses",
            Self::ForeignConnections(_) => "connections",
            Self::ListeningElsewhere(_) => "records",
            Self::NamesLeftOut => "names",
            Self::IgnoredLines | Self::LinesWithoutTime { .. } => "lines",
            Self::WithoutEnd => "jobs",
            Self::Apart => "hosts",
            Self::Early { .. } => "segments",
        }
    }

    /// The agent that left it out of its record; "" = it was recorded, and could not be used.
    #[must_use]
    pub fn writer(&self) -> &'static str {
        match self {
            Self::KernelDrops
            | Self::InterfaceDrops
            | Self::SnifferUnparsed
            | Self::SnifferUnwritten
            | Self::SnifferUndecided
            | Self::Blanked
            | Self::RemovedPackets => SNIFFER,
            Self::SocketsUnwritten | Self::RemovedSockets | Self::NamespacesLeftOut | Self::ToldByDumpingd(_) => {
                DUMPINGD
            }
            Self::JvmDropped(_) | Self::JvmUnwritten(_) => JVM,
            _ => "",
        }
    }
}

impl Loss {
    /// What was lost and where, in words.
    #[must_use]
    pub fn what(&self) -> String {
        use LossKind as K;
        let at = &self.place;
        match &self.kind {
            K::LeftOut(reason) => format!("{at}: left out: {reason}"),
            K::Unusable(error) => format!("{at}: {error}"),
            K::UnreadableManifest(error) => format!("{at}: unreadable ({error})"),
            K::RestOfFile(error) => format!("{at}: the rest of the file ({error})"),
            K::CutLine => format!("{at}: bytes of a line that was cut off"),
            K::MalformedLines { first, error } => {
                format!("{at}: lines that are no record, first line {first}: {error}")
            }
            K::OverlongLines => format!("{at}: lines that are longer than any record"),

            K::KernelDrops => format!("{at}: packets dropped by the kernel"),
            K::InterfaceDrops => format!("{at}: packets dropped by the interface"),
            K::SnifferUnparsed => format!("{at}: packets that could not be parsed"),
            K::SnifferUnwritten => format!("{at}: packets that could not be written"),
            K::SnifferUndecided => format!("{at}: packets given up undecided"),
            K::Blanked => format!("{at}: payload that was blanked, as it is secret"),
            K::RemovedPackets => format!("{at}: packets removed to make room"),
            K::PacketsWithoutFile => format!("{at}: packets that sniffer.json counts and no file holds"),
            K::CutPacket => format!("{at}: bytes of a packet that was cut off"),
            K::SenselessPackets => format!("{at}: packets that make no sense"),
            K::DamagedPacking => format!("{at}: cut off or damaged in its packing"),
            K::SeenTwice => format!("{at}: packets seen on two interfaces, counted once"),

            K::SocketsUnwritten => format!("{at}: records of sockets for which there was no room on the disk"),
            K::RemovedSockets => format!("{at}: records of sockets that were removed to make room"),
            K::NamespacesLeftOut => format!("{at}: network namespaces not scanned"),
            K::ScansWithoutFile => format!("{at}: scans that dumpingd.json counts and no file holds"),
            K::ToldByDumpingd(what) => format!("{at}: dumpingd: {what}"),
            K::SenselessSockets => format!("{at}: records with times or counts that cannot be"),

            K::JvmDropped(pid) => format!("{at}: records dropped in JVM {pid}"),
            K::JvmUnwritten(pid) => format!("{at}: records of JVM {pid} for which there was no room on the disk"),
            K::SenselessJvmRecords => format!("{at}: records with times or sizes that cannot be"),
            K::ForeignHeader => format!("{at}: left out, as its header is another process's than its name"),
            K::ForeignUser { pid, user } => format!("{at}: left out, as process {pid} is user {user}'s"),
            K::SecondFile => format!("{at}: left out, as another file tells of the same process"),
            K::ForeignAddress { address, host } => {
                format!("{at}: address {address}, which is {host}'s as well: not taken from it")
            }
            K::ForeignConnections(pid) => {
                format!("{at}: JVM {pid}: ends of connections that it takes for its own and that are another process's")
            }
            K::ListeningElsewhere(pid) => {
                format!(
                    "{at}: JVM {pid}: it says that it listens on more addresses than any does, the others were left out"
                )
            }

            K::NamesLeftOut => {
                "names of calls, paths and tasks' attempts, for more of which there is no memory: rows have none"
                    .to_owned()
            }

            K::UnparsedFrames => format!("{at}: frames that could not be parsed"),
            K::CutFrames(at_bytes) => {
                format!("{at}: frames cut inside their headers, at {at_bytes} bytes (record 256: tcpdump -s 256)")
            }
            K::ShortFrames(at_bytes) => format!(
                "{at}: packets cut at {at_bytes} bytes, before the names of calls, clients and map outputs; their lengths and \
                 times were taken (record 256: tcpdump -s 256)"
            ),
            K::Vxlan => format!(
                "{at}: frames in VXLAN, which is not looked into (record the interface that takes them out, as vxlan0 or \
                 flannel.1)"
            ),
            K::Duplicates => format!("{at}: packets that were recorded twice, the second ones"),
            K::Truncated => format!("{at}: truncated"),
            K::IgnoredLines => format!("{at}: lines that were not understood"),
            K::LinesWithoutTime { line, text } => format!(
                "{at}: lines below times that were not understood, the first in line {line}: \"{text}\" (seconds or \
                 nanoseconds since the epoch, or 2026-01-31T23:59:59+00:00)"
            ),

            K::CountersNotUnderstood(error) => format!("{at}: not understood ({error})"),
            K::MalformedEvents => format!("malformed lines of {at}"),
            K::OverlongEvents => format!("lines of {at} that are longer than any event"),
            K::CutHistory => format!("truncated bytes of {at}"),
            K::RestOfHistory(error) => format!("the rest of {at} ({error})"),
            K::DamagedHistory(reason) => format!("{at} is damaged, and not read from there on ({reason})"),
            K::LongHistory(read_mib) => format!("{at}: the rest of the file, beyond {read_mib} MiB"),
            K::WithoutJob => format!("{at} tells of no job"),
            K::WithoutEnd => {
                format!("the history of {at} has no end (the job ran on, or its master was killed)")
            }

            K::NeverCaptured => NEVER_CAPTURED.to_owned(),
            K::Apart => "hosts whose clocks could not be aligned: they share no packets with the others".to_owned(),
            K::Early { which, largest_ns } => format!("{} (at most {largest_ns} ns)", which.words()),
        }
    }

    /// As an entry of a trace's manifest.
    #[must_use]
    pub fn written(&self) -> manifest::Loss {
        manifest::Loss {
            writer: self.kind.writer().to_owned(),
            ..manifest::Loss::new(self.what(), self.count, self.kind.unit())
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.what(), self.count, self.kind.unit())
    }
}

/// Losses, gathered while something is read.
pub trait Note {
    /// Notes a loss, if there is one.
    fn lost(&mut self, place: &str, kind: LossKind, count: u64);
}

impl Note for Vec<Loss> {
    fn lost(&mut self, place: &str, kind: LossKind, count: u64) {
        if count > 0 {
            self.push(Loss { place: place.to_owned(), kind, count });
        }
    }
}

/// Losses of one kind at one place are one entry; in the order in which they came first.
pub(crate) fn sum(losses: Vec<Loss>) -> Vec<Loss> {
    let mut whole: Vec<Loss> = Vec::new();
    for loss in losses {
        match whole.iter_mut().find(|earlier| earlier.place == loss.place && earlier.kind == loss.kind) {
            Some(earlier) => earlier.count = earlier.count.saturating_add(loss.count),
            None => whole.push(loss),
        }
    }
    whole
}
