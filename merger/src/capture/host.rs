//! What was recorded of one host.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trace::files::LineLosses;
use trace::jvm::JvmRecord;
use trace::manifest::ForeignProcess;

use super::packed_records::PackedRecords;
use super::packed_sockets::PackedSockets;
use super::started::{StartedThread, StartedThreads};
use super::store::Packets;
use crate::loss::{Loss, LossKind, Note as _};

/// All that was recorded of one host.
#[derive(Clone, Debug, Default)]
pub struct HostCapture {
    /// Host name.
    pub name: String,
    /// Its folders, one a capture.
    pub folders: Vec<PathBuf>,
    /// Its addresses, loopback left out.
    pub addresses: BTreeSet<IpAddr>,
    /// Rack, "" = unknown.
    pub rack: String,
    /// Network namespace of the recorded interfaces; 0 = unknown.
    pub netns: u64,
    /// Packets.
    pub packets: Packets,
    /// From when to when its packets were recorded, as the sniffer says; `None` = not told.
    pub recorded_ns: Option<(u64, u64)>,
    /// Sockets and owners, in the order of their files.
    pub sockets: PackedSockets,
    /// What its JVMs said.
    pub jvms: Vec<JvmFile>,
    /// Processes that a person named.
    pub named: Vec<ForeignProcess>,
    /// What was lost.
    pub losses: Vec<Loss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl HostCapture {
    /// Notes a loss, if there is one.
    pub fn lost(&mut self, place: &str, kind: LossKind, count: u64) {
        self.losses.lost(place, kind, count);
    }

    /// Notes what could not be used of a file of lines.
    pub(super) fn lost_lines(&mut self, shown: &str, losses: LineLosses) {
        self.lost(shown, LossKind::CutLine, losses.truncated_bytes);
        if let Some((first, error)) = losses.first_malformed {
            self.lost(shown, LossKind::MalformedLines { first, error }, losses.malformed_lines);
        }
        self.lost(shown, LossKind::OverlongLines, losses.overlong_lines);
        if let Some(error) = losses.broken_off {
            self.lost(shown, LossKind::RestOfFile(error), 1);
        }
    }

    /// Whether an address is this host's own.
    #[must_use]
    pub fn owns(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    /// Adds what other files say of its sockets, behind what is known.
    pub(super) fn take_sockets(&mut self, sockets: PackedSockets) -> io::Result<()> {
        if self.sockets.is_empty() {
            self.sockets = sockets;
            return Ok(());
        }
        self.sockets.extend(sockets.iter());
        self.sockets.settle();
        sockets.check()
    }

    /// Adds what another folder holds of the same host.
    pub(super) fn absorb(&mut self, other: Self) -> io::Result<()> {
        self.folders.extend(other.folders);
        self.addresses.extend(other.addresses);
        if self.rack.is_empty() {
            self.rack = other.rack;
        }
        self.recorded_ns = match (self.recorded_ns, other.recorded_ns) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        if self.netns == 0 {
            self.netns = other.netns;
        }
        self.packets.append(other.packets)?;
        self.take_sockets(other.sockets)?;
        self.jvms.extend(other.jvms);
        self.named.extend(other.named);
        self.losses.extend(other.losses);
        self.notes.extend(other.notes);
        Ok(())
    }
}

/// The file of one JVM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JvmFile {
    /// What people call it: HOST/NAME.
    pub file: String,
    /// Process id as the machine counts, where that is known; else as the JVM sees itself.
    pub pid: u32,
    /// Its id in the innermost process namespace that it is in.
    pub inner_pid: u32,
    /// Start time, clock ticks since boot.
    pub start_ticks: u64,
    /// The user in whose folder it lies, if it lies in one.
    pub user: Option<u32>,
    /// Its network namespace, by inode; 0 = not told.
    pub netns: u64,
    /// The addresses that it takes for its host's.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether it says that it ended.
    pub ended: bool,
    /// Its records, the header among them if it is there.
    #[serde(skip)]
    pub records: PackedRecords,
    /// When it read its clocks, where those records were set apart.
    #[serde(skip)]
    pub clocks: Vec<u64>,
    /// Threads that were started, where those records were set apart.
    #[serde(skip)]
    pub threads: StartedThreads,
}

impl JvmFile {
    /// Takes a record in: of those of clocks and threads, which are most of all, no more than a merge wants to know, but where all
    /// is kept.
    pub(in crate::capture) fn take(&mut self, record: &JvmRecord, keeps_all: bool) {
        match record {
            JvmRecord::Clock { t, .. } if !keeps_all => self.clocks.push(*t),
            JvmRecord::Thread { t, th, child, .. } if !keeps_all => {
                self.threads.push(StartedThread { at_ns: *t, by: *th, child: *child });
            }
            _ => self.records.push(record),
        }
    }

    /// Gives memory back when all records are there.
    pub(in crate::capture) fn settle(&mut self) {
        self.records.settle();
        self.clocks.shrink_to_fit();
        self.threads.settle();
    }
}

/// Whether an error comes from a file and not from the machine.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Addresses of a host's interfaces that tell it from other hosts.
pub(super) fn own_addresses(texts: &[String]) -> impl Iterator<Item = IpAddr> + '_ {
    texts
        .iter()
        .filter_map(|text| text.split(['/', '%']).next().and_then(|address| address.parse::<IpAddr>().ok()))
        .map(|address| address.to_canonical())
        .filter(|address| !address.is_loopback() && !address.is_unspecified() && !is_link_local(*address))
}

/// Link-local addresses can be the same on several hosts.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
