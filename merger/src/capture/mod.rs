//! Reading captures: one folder a host, of our agents or of other tools.

mod again;
mod agents;
pub mod flows;
pub(crate) mod foreign;
mod jvms;
pub(crate) mod layout;
mod listing;
pub(crate) mod pcap;
pub(crate) mod sense;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use rayon::prelude::*;
use trace::files::LineLosses;
use trace::manifest::{ForeignProcess, Loss};
use trace::socket::SocketRecord;

use crate::error::MergeError;
use flows::Packets;
pub use jvms::JvmFile;
use layout::HostFolder;

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

impl HostCapture {
    /// Notes a loss, if there is one.
    pub fn lost(&mut self, what: impl Into<String>, count: u64, unit: &str) {
        if count > 0 {
            self.losses.push(Loss::new(what, count, unit));
        }
    }

    /// Notes what one of the agents left out of its record, if there is anything.
    fn unwritten(&mut self, writer: &str, what: impl Into<String>, count: u64, unit: &str) {
        if count > 0 {
            self.losses.push(Loss { writer: writer.into(), ..Loss::new(what, count, unit) });
        }
    }

    /// Notes what could not be used of a file of lines.
    fn lost_lines(&mut self, shown: &str, losses: LineLosses) {
        self.lost(format!("{shown}: bytes of a line that was cut off"), losses.truncated_bytes, "bytes");
        if let Some((line, reason)) = losses.first_malformed {
            let what = format!("{shown}: lines that are no record, first line {line}: {reason}");
            self.lost(what, losses.malformed_lines, "records");
        }
        self.lost(format!("{shown}: lines that are longer than any record"), losses.overlong_lines, "records");
        if let Some(reason) = losses.broken_off {
            self.lost(format!("{shown}: the rest of the file ({reason})"), 1, "files");
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
    let Found { hosts, left_out } = find(captures)?;
    let read: Vec<Result<HostCapture, MergeError>> = hosts
        .par_iter()
        .enumerate()
        .map(|(number, folders)| {
            let host = read_host(folders, number);
            on_host(&folders[0].name);
            host
        })
        .collect();
    let mut hosts = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_addresses(&hosts)?;
    jvms::settle_addresses(&mut hosts);
    for what in left_out {
        hosts[0].lost(what, 1, "files");
    }
    if hosts.iter().all(|host| host.packets.count == 0) {
        let captures = captures.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(MergeError::NoPackets { captures });
    }
    Ok(hosts)
}

/// The folders of captures.
pub(crate) struct Found {
    /// Of each host, by name; one or more.
    pub hosts: Vec<Vec<HostFolder>>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// Looks up what captures hold; each folder is a run with a folder for each host, or the folder of one host.
pub(crate) fn find(captures: &[PathBuf]) -> Result<Found, MergeError> {
    let mut by_name: BTreeMap<String, Vec<(PathBuf, HostFolder)>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for capture in captures {
        let (hosts, skipped) = layout::hosts_of(capture)?;
        left_out.extend(
            skipped.iter().map(|(name, reason)| format!("{}: left out: {reason}", capture.join(name).display())),
        );
        for host in hosts {
            let path = host.folder.path();
            let real = path.canonicalize().map_err(MergeError::io(path))?;
            let of_host = by_name.entry(host.name.clone()).or_default();
            // A folder that was named twice is still one.
            if of_host.iter().all(|(other, _)| *other != real) {
                of_host.push((real, host));
            }
        }
    }
    let hosts = by_name.into_values().map(|folders| folders.into_iter().map(|(_, folder)| folder).collect()).collect();
    Ok(Found { hosts, left_out })
}

fn read_host(folders: &[HostFolder], number: usize) -> Result<HostCapture, MergeError> {
    let name = &folders[0].name;
    let mut host = HostCapture { name: name.clone(), ..HostCapture::default() };
    for folder in folders {
        let part = agents::read_folder(folder, number)?;
        let apart =
            !host.addresses.is_empty() && !part.addresses.is_empty() && host.addresses.is_disjoint(&part.addresses);
        if apart {
            return Err(MergeError::SameName {
                host: name.clone(),
                first: host.folders[0].clone(),
                first_addresses: list(&host.addresses),
                second: folder.folder.path().to_owned(),
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

/// Whether an error comes from a file and not from the machine.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Addresses of a host's interfaces that tell it from other hosts.
fn own_addresses(texts: &[String]) -> impl Iterator<Item = IpAddr> + '_ {
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
