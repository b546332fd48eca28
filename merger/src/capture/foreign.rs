//! `manifest.json` in a host's folder, and the files of other tools that it names.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::net::IpAddr;

use trace::files::{self, LineLosses};
use trace::folder::Folder;
use trace::manifest::{ForeignManifest, SocketListing};
use trace::packet::PacketView;
use trace::role::ROLES;

use super::host::{HostCapture, is_damage};
use super::layout::{HostFile, HostFolder};
use super::listing;
use super::pcap::{self, PcapError, PcapLosses};
use super::reading::Reading;
use crate::error::MergeError;
use crate::loss::LossKind;
use crate::progress::Meter;

/// Bytes of a line of a listing, at most.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Reads a manifest, and what it names, into `host`.
pub(super) fn read(
    host: &mut HostCapture,
    folder: &HostFolder,
    file: &HostFile,
    input: File,
    reading: &Reading<'_>,
    file_number: &mut u16,
) -> Result<(), MergeError> {
    let path = folder.folder.path().join(&file.name);
    let refuse = |reason: String| MergeError::Manifest { path: path.clone(), reason };
    let text = files::read_whole(input).map_err(|error| refuse(error.to_string()))?;
    let manifest: ForeignManifest = serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))?;
    if manifest.host != host.name {
        host.notes.push(format!("{}: its manifest calls it {}", host.name, manifest.host));
    }
    for text in &manifest.addresses {
        match text.parse::<IpAddr>() {
            Ok(address) if !address.is_loopback() => {
                host.addresses.insert(address.to_canonical());
            }
            Ok(_) => {}
            Err(_) => return Err(refuse(format!("addresses: \"{text}\" is no IP address"))),
        }
    }
    // One host that talks to itself alone has no others: 127.0.0.1 is its own anyway.
    if manifest.addresses.is_empty() {
        return Err(refuse("addresses: none; the host's packets are told from others' by them".into()));
    }
    if let Some(process) = manifest.processes.iter().find(|process| process.hadoop && !is_role(&process.role)) {
        return Err(refuse(format!(
            "processes: pid {}: \"{}\" is no role of Hadoop's; roles are {}; of other programs say \"hadoop\": false",
            process.pid,
            process.role,
            ROLES.join(", ")
        )));
    }
    host.rack.clone_from(&manifest.rack);
    for packets in &manifest.packets {
        let input = named(&folder.folder, &packets.file).map_err(refuse)?;
        let own = host.addresses.clone();
        let mut senders = Addresses::default();
        let mut meter = Meter::of(&input, reading.done);
        let read = pcap::read(input, &own, |packet| {
            senders.take(packet);
            meter.packet();
            host.packets.push(packet, reading.number, *file_number)
        });
        *file_number = file_number.saturating_add(1);
        let shown = format!("{}/{}", folder.name, packets.file);
        host.notes.extend(senders.of_another_host(&own).map(|other| format!("{shown}: {other}")));
        note_pcap(host, &shown, read)?;
    }
    for sockets in &manifest.sockets {
        let input = named(&folder.folder, &sockets.file).map_err(refuse)?;
        take_listing(host, &format!("{}/{}", folder.name, sockets.file), input, sockets.format)?;
    }
    host.named.extend(manifest.processes);
    Ok(())
}

/// Addresses that are remembered of a file at most.
const MAX_ADDRESSES: usize = 4096;

/// In how many packets of a file, those of a host with itself apart, an address is.
#[derive(Default)]
struct Addresses {
    packets: u64,
    by_address: HashMap<IpAddr, u64>,
}

impl Addresses {
    fn take(&mut self, packet: &PacketView<'_>) {
        let ends = [packet.source.ip(), packet.destination.ip()];
        if ends[0] == ends[1] || ends[0].is_loopback() {
            return;
        }
        self.packets += 1;
        for address in ends {
            if self.by_address.len() < MAX_ADDRESSES || self.by_address.contains_key(&address) {
                *self.by_address.entry(address).or_default() += 1;
            }
        }
    }

    /// What to say of a file that seems to be of another host than the one with the addresses `own`: all packets of a file have an
    /// address of its host.
    fn of_another_host(&self, own: &BTreeSet<IpAddr>) -> Option<String> {
        let of_own: u64 = own.iter().filter_map(|address| self.by_address.get(address)).sum();
        let others = || self.by_address.iter().filter(|(address, _)| !own.contains(address));
        let of_other = *others().map(|(_, count)| count).max()?;
        let is_other = of_own < self.packets / 10 * 9 && of_other >= self.packets / 100 * 99 && self.packets >= 100;
        (is_other || of_own == 0).then(|| {
            let most: BTreeSet<&IpAddr> = others().filter(|(_, count)| **count == of_other).map(|found| found.0).collect();
            let most = most.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            format!(
                "the host's own addresses are in {of_own} of {} packets, {most} in {of_other}: is this the file of another \
                 host?",
                self.packets
            )
        })
    }
}

fn is_role(name: &str) -> bool {
    ROLES.contains(&name)
}

/// A file that the manifest names: a plain name, a regular file, in its own folder.
pub(crate) fn named(folder: &Folder, file: &str) -> Result<File, String> {
    folder.file(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("it names the file \"{file}\", which is not in its folder"),
        _ => format!("it names the file \"{file}\": {error}; name a file that lies in its folder"),
    })
}

fn note_pcap(host: &mut HostCapture, shown: &str, read: Result<PcapLosses, PcapError>) -> Result<(), MergeError> {
    match read {
        Ok(read) => {
            host.lost(shown, LossKind::UnparsedFrames, read.unparsed);
            host.lost(shown, LossKind::CutFrames(read.cut_at_bytes), read.cut);
            host.lost(shown, LossKind::ShortFrames(read.short_at_bytes), read.short);
            host.lost(shown, LossKind::Vxlan, read.vxlan);
            host.lost(shown, LossKind::Duplicates, read.duplicates);
            if read.other > 0 {
                host.notes.push(format!("{shown}: {} frames are no TCP and were left out", read.other));
            }
            host.lost(shown, LossKind::Truncated, u64::from(read.truncated));
            host.notes.extend(read.notes.iter().map(|note| format!("{shown}: {note}")));
        }
        Err(PcapError::Taker(error)) => return Err(MergeError::Spill(error)),
        Err(error) => host.lost(shown, LossKind::Unusable(error.to_string()), 1),
    }
    Ok(())
}

fn take_listing(host: &mut HostCapture, shown: &str, input: File, format: SocketListing) -> Result<(), MergeError> {
    let mut listing = match format {
        SocketListing::Ss => listing::Reader::ss(),
        SocketListing::Lsof => listing::Reader::lsof(),
        SocketListing::Tcplife => listing::Reader::life(),
    };
    let take = |_, line: &[u8]| {
        listing.line(&String::from_utf8_lossy(line));
        host.sockets.extend(listing.records());
    };
    let read = files::unpacked(input).and_then(|input| files::lines(input, MAX_LINE_BYTES, take));
    match read {
        Ok((losses, rest)) => {
            // A listing need not end with the end of a line.
            listing.line(&String::from_utf8_lossy(&rest));
            let cut = losses.truncated_bytes.saturating_sub(rest.len() as u64);
            host.lost_lines(shown, LineLosses { truncated_bytes: cut, ..losses });
        }
        Err(error) if is_damage(&error) => host.lost(shown, LossKind::Unusable(error.to_string()), 1),
        Err(error) => return Err(MergeError::io(shown)(error)),
    }
    let listed = listing.end();
    host.lost(shown, LossKind::IgnoredLines, listed.ignored_lines);
    if let Some((line, text)) = listed.wrong_time {
        host.lost(shown, LossKind::LinesWithoutTime { line, text }, listed.lines_without_time);
    }
    host.sockets.extend(listed.records);
    host.sockets.settle();
    Ok(())
}
