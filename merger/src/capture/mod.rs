//! Reading captures: one folder a host, of our agents or of other tools.

mod again;
pub(crate) mod agents;
pub(crate) mod digest;
pub mod flows;
pub(crate) mod foreign;
mod growing;
pub(crate) mod host;
mod jvms;
pub(crate) mod layout;
mod life;
mod listing;
pub mod observed;
pub mod packed_records;
pub mod packed_sockets;
pub(crate) mod pcap;
pub(crate) mod reading;
pub(crate) mod recent;
pub(crate) mod sense;
pub mod settled;
mod spill;
pub mod started;
pub mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::error::MergeError;
use crate::loss::LossKind;
use crate::progress::{Progress, Unit};
pub use host::{HostCapture, JvmFile};
use layout::{HostFolder, LeftOut};
use reading::Reading;
use store::Packets;

/// Reads captures; each folder is a run with a folder for each host, or the folder of one host. Hosts are ordered by
/// name; their packets take no more than `packet_bytes` of memory.
///
/// # Errors
/// If a folder is no capture, holds no packet at all, or hosts of different clusters come together.
pub fn read(captures: &[PathBuf], packet_bytes: u64, progress: &impl Progress) -> Result<Vec<HostCapture>, MergeError> {
    let Found { hosts, left_out } = find(captures)?;
    progress.step("reading hosts", hosts.iter().flatten().map(HostFolder::bytes).sum(), Unit::Bytes);
    let done = |bytes: u64| progress.done(bytes);
    let limit = packet_bytes / hosts.len().max(1) as u64;
    // The largest first: what is read last is read by one thread while the others wait.
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_cached_key(|number| Reverse(hosts[*number].iter().map(HostFolder::bytes).sum::<u64>()));
    let read = order.into_iter().par_bridge().map(|number| {
        let reading = Reading { number, limit, keeps_all: false, done: &done };
        (number, read_host(&hosts[number], &reading))
    });
    let mut read: Vec<(usize, Result<HostCapture, MergeError>)> = read.collect();
    read.sort_unstable_by_key(|(number, _)| *number);
    let mut hosts = read.into_iter().map(|(_, host)| host).collect::<Result<Vec<_>, _>>()?;
    check_addresses(&hosts)?;
    jvms::settle_addresses(&mut hosts);
    for (folder, reason) in left_out {
        hosts[0].lost(&folder, LossKind::LeftOut(reason), 1);
    }
    if hosts.iter().all(|host| host.packets.count == 0) {
        let captures = captures.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(MergeError::NoPackets { captures, reasons: left_out_of(&hosts) });
    }
    Ok(hosts)
}

/// What was left out of hosts' files and why, in words; of much the first.
fn left_out_of(hosts: &[HostCapture]) -> String {
    const MAX_REASONS: usize = 6;
    let losses = hosts.iter().flat_map(|host| host.losses.iter().map(ToString::to_string));
    let notes = hosts.iter().flat_map(|host| host.notes.iter().cloned());
    let mut reasons: Vec<String> = losses.chain(notes).collect();
    let more = reasons.len().saturating_sub(MAX_REASONS);
    reasons.truncate(MAX_REASONS);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    reasons.join("; ")
}

/// The folders of captures.
pub(crate) struct Found {
    /// Of each host, by name; one or more.
    pub hosts: Vec<Vec<HostFolder>>,
    /// What was left out, and why.
    pub left_out: LeftOut,
}

/// Looks up what captures hold; each folder is a run with a folder for each host, or the folder of one host.
pub(crate) fn find(captures: &[PathBuf]) -> Result<Found, MergeError> {
    let mut by_name: BTreeMap<String, Vec<(PathBuf, HostFolder)>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for capture in captures {
        let (hosts, skipped) = layout::hosts_of(capture)?;
        left_out.extend(skipped);
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

fn read_host(folders: &[HostFolder], reading: &Reading<'_>) -> Result<HostCapture, MergeError> {
    let name = &folders[0].name;
    let mut host =
        HostCapture { name: name.clone(), packets: Packets::within(reading.limit), ..HostCapture::default() };
    for folder in folders {
        let part = agents::read_folder(folder, reading)?;
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
        host.absorb(part).map_err(MergeError::Spill)?;
    }
    host.packets.settle().map_err(MergeError::Spill)?;
    let copies = host.packets.copies;
    host.lost(name, LossKind::SeenTwice, copies);
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
