//! Reading captures: one folder a host, of our agents or of other tools.

mod agents;
pub mod flows;
mod listing;
mod pcap;

pub(crate) use agents::plain_name;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use trace::jvm::JvmRecord;
use trace::manifest::{ForeignProcess, Loss};
use trace::socket::SocketRecord;

use crate::error::MergeError;
use flows::Packets;

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
    pub sockets: Vec<SocketRecord>,
    /// What its JVMs said.
    pub jvms: Vec<JvmFile>,
    /// Processes that a person named.
    pub named: Vec<ForeignProcess>,
    /// What was lost.
    pub losses: Vec<Loss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// The file of one JVM.
#[derive(Clone, Debug, Default)]
pub struct JvmFile {
    /// Process id, by the file's name or header.
    pub pid: u32,
    /// Start time, clock ticks since boot.
    pub start_ticks: u64,
    /// Its records, the header among them if it is there.
    pub records: Vec<JvmRecord>,
}

impl HostCapture {
    /// Notes a loss, if there is one.
    pub fn lost(&mut self, what: impl Into<String>, count: u64, unit: &str) {
        if count > 0 {
            self.losses.push(Loss { what: what.into(), count, unit: unit.into() });
        }
    }

    /// Whether an address is this host's own.
    #[must_use]
    pub fn owns(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    fn absorb(&mut self, other: Self) {
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
        self.packets.append(other.packets);
        self.sockets.extend(other.sockets);
        self.jvms.extend(other.jvms);
        self.named.extend(other.named);
        self.losses.extend(other.losses);
        self.notes.extend(other.notes);
    }
}

/// Reads captures; each folder is a run with a folder for each host, or the folder of one host. Hosts are ordered by
/// name, and `on_host` is told of each that has been read.
///
/// # Errors
/// If a folder is no capture, holds no packet at all, or hosts of different clusters come together.
pub fn read(captures: &[PathBuf], on_host: impl Fn(&str) + Sync) -> Result<Vec<HostCapture>, MergeError> {
    let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for capture in captures {
        for folder in host_folders(capture)? {
            let real = folder.canonicalize().map_err(MergeError::io(&folder))?;
            let name = folder.file_name().or(real.file_name());
            let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let of_host = folders.entry(name).or_default();
            // A folder that was named twice is still one.
            if !of_host.contains(&real) {
                of_host.push(real);
            }
        }
    }
    let folders: Vec<(String, Vec<PathBuf>)> = folders.into_iter().collect();
    let read: Vec<Result<HostCapture, MergeError>> = folders
        .par_iter()
        .enumerate()
        .map(|(number, (name, folders))| {
            let host = read_host(name, folders, number);
            on_host(name);
            host
        })
        .collect();
    let hosts = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_addresses(&hosts)?;
    if hosts.iter().all(|host| host.packets.count == 0) {
        let captures = captures.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(MergeError::NoPackets { captures });
    }
    Ok(hosts)
}

/// The hosts' folders of a capture.
pub(crate) fn host_folders(capture: &Path) -> Result<Vec<PathBuf>, MergeError> {
    if is_host_folder(capture)? {
        return Ok(vec![capture.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(capture).map_err(MergeError::io(capture))? {
        let path = entry.map_err(MergeError::io(capture))?.path();
        if path.is_dir() && is_host_folder(&path)? {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() { Err(MergeError::NoHosts { path: capture.into() }) } else { Ok(found) }
}

fn is_host_folder(folder: &Path) -> Result<bool, MergeError> {
    let names = names_in(folder)?;
    let ours = |name: &String| {
        name.starts_with("packets-")
            || name.starts_with("sockets.jsonl")
            || name.starts_with("jvm-")
            || name == "sniffer.json"
            || name == "dumpingd.json"
    };
    // A trace has a manifest.json as well, beside its tables.
    let foreign = names.contains(&"manifest.json".to_owned()) && !names.iter().any(|name| name.ends_with(".parquet"));
    Ok(names.iter().any(ours) || foreign)
}

pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, MergeError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(MergeError::io(folder))? {
        names.push(entry.map_err(MergeError::io(folder))?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn read_host(name: &str, folders: &[PathBuf], number: usize) -> Result<HostCapture, MergeError> {
    let mut host = HostCapture { name: name.to_owned(), ..HostCapture::default() };
    for folder in folders {
        let part = agents::read_folder(name, folder, number)?;
        let apart =
            !host.addresses.is_empty() && !part.addresses.is_empty() && host.addresses.is_disjoint(&part.addresses);
        if apart {
            return Err(MergeError::SameName {
                host: name.into(),
                first: host.folders[0].clone(),
                first_addresses: list(&host.addresses),
                second: folder.clone(),
                second_addresses: list(&part.addresses),
            });
        }
        host.absorb(part);
    }
    host.packets.settle();
    let copies = host.packets.copies;
    host.lost(format!("{name}: packets seen on two interfaces, counted once"), copies, "packets");
    Ok(host)
}

fn list(addresses: &BTreeSet<IpAddr>) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn check_addresses(hosts: &[HostCapture]) -> Result<(), MergeError> {
    let mut owner: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for host in hosts {
        for &address in &host.addresses {
            if let Some(first) = owner.insert(address, &host.name) {
                return Err(MergeError::Clash {
                    first: first.to_owned(),
                    second: host.name.clone(),
                    address: address.to_string(),
                });
            }
        }
    }
    Ok(())
}
