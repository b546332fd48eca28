//! The files of our agents in the folder of one host.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::net::IpAddr;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use trace::capture_note::CaptureNoteKind;
use trace::files::{self, MAX_RECORD_BYTES};
use trace::manifest::{DumpingdManifest, SnifferManifest};
use trace::packet::{Direction, PacketReader};
use trace::socket::SocketRecord;

use super::digest::{self, DigestError};
use super::host::{HostCapture, is_damage, own_addresses};
use super::layout::{FileKind, HostFile, HostFolder};
use super::reading::Reading;
use super::store::Packets;
use super::{foreign, jvms, sense};
use crate::error::MergeError;
use crate::loss::{LossKind, Note as _};
use crate::progress::Meter;

/// Reads a host's folder.
pub(crate) fn read_folder(folder: &HostFolder, reading: &Reading<'_>) -> Result<HostCapture, MergeError> {
    let name = &folder.name;
    let path = folder.folder.path();
    let mut host = HostCapture {
        name: name.clone(),
        folders: vec![path.to_owned()],
        packets: Packets::within(reading.limit),
        ..HostCapture::default()
    };
    if let Some(file) = folder.find(&FileKind::Digest) {
        return read_digest(host, folder, file, reading);
    }
    note_left_out(&mut host, folder);
    let sniffer = read_json::<SnifferManifest>(&mut host, folder, &FileKind::SnifferManifest)?;
    let dumpingd = read_json::<DumpingdManifest>(&mut host, folder, &FileKind::DumpingdManifest)?;
    if let Some(sniffer) = &sniffer {
        take_sniffer_manifest(&mut host, sniffer);
    }
    if let Some(dumpingd) = &dumpingd {
        take_dumpingd_manifest(&mut host, dumpingd);
    }
    let mut file_number = 0u16;
    let mut interfaces: HashMap<&str, u16> = HashMap::new();
    // Packets that were read, or that are known to have been removed, by interface.
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    // By all threads that have nothing else to do: packets are read one after the other.
    let of_jvms = folder.files.par_iter().filter(|file| matches!(file.kind, FileKind::Jvm { .. }));
    let (of_jvms, of_sockets) = rayon::join(
        || of_jvms.map(|file| read_jvm(folder, file, reading)).collect::<Vec<_>>(),
        || read_all_sockets(folder),
    );
    let (mut of_jvms, mut of_sockets) = (of_jvms.into_iter(), Some(of_sockets));
    for file in &folder.files {
        if matches!(file.kind, FileKind::Unknown | FileKind::SnifferManifest | FileKind::DumpingdManifest) {
            continue;
        }
        if let FileKind::Jvm { .. } = file.kind {
            if let Some(part) = of_jvms.next() {
                let HostCapture { losses, notes, jvms, .. } = part?;
                host.losses.extend(losses);
                host.notes.extend(notes);
                host.jvms.extend(jvms);
            }
            continue;
        }
        if let FileKind::Sockets(_) = file.kind {
            // Those of all files come with the first one.
            if let Some(part) = of_sockets.take() {
                let HostCapture { losses, notes, sockets, .. } = part?;
                host.losses.extend(losses);
                host.notes.extend(notes);
                host.take_sockets(sockets).map_err(MergeError::Spill)?;
            }
            continue;
        }
        let Some(input) = open(&mut host, folder, file)? else { continue };
        match &file.kind {
            FileKind::Packets(interface) => {
                // An interface's files, closed one after the other, are one file as far as copies of packets are concerned.
                let of_interface = *interfaces.entry(interface).or_insert(file_number);
                let count = read_packets(&mut host, &folder.shown(file), input, reading, of_interface)?;
                let all = counted.entry(interface).or_default();
                *all = all.saturating_add(count);
                file_number = file_number.saturating_add(1);
            }
            FileKind::ForeignManifest => foreign::read(&mut host, folder, file, input, reading, &mut file_number)?,
            _ => {}
        }
    }
    jvms::settle(&mut host);
    if let Some(sniffer) = &sniffer {
        note_missing_packets(&mut host, sniffer, &counted);
    }
    if let Some(dumpingd) = &dumpingd {
        note_missing_scans(&mut host, dumpingd);
    }
    if host.packets.count == 0 {
        host.notes.push(format!("{name}: no packets in {}", path.display()));
    }
    Ok(host)
}

/// What the file of a JVM says, as a host of which nothing else is known.
fn read_jvm(folder: &HostFolder, file: &HostFile, reading: &Reading<'_>) -> Result<HostCapture, MergeError> {
    let mut part = HostCapture { name: folder.name.clone(), ..HostCapture::default() };
    if let Some(input) = open(&mut part, folder, file)? {
        let jvm = jvms::read(&mut part, folder, file, input, reading.keeps_all)?;
        part.jvms.extend(jvm);
    }
    Ok(part)
}

/// What the files of sockets say, as a host of which nothing else is known.
fn read_all_sockets(folder: &HostFolder) -> Result<HostCapture, MergeError> {
    let mut part = HostCapture { name: folder.name.clone(), ..HostCapture::default() };
    for file in folder.files.iter().filter(|file| matches!(file.kind, FileKind::Sockets(_))) {
        if let Some(input) = open(&mut part, folder, file)? {
            read_sockets(&mut part, &folder.shown(file), input)?;
        }
    }
    Ok(part)
}

fn note_left_out(host: &mut HostCapture, folder: &HostFolder) {
    for (what, reason) in &folder.left_out {
        host.lost(what, LossKind::LeftOut(reason.clone()), 1);
    }
}

/// Reads the digest in a folder; beside it there may be nothing of what it was made of.
fn read_digest(
    mut host: HostCapture,
    folder: &HostFolder,
    file: &HostFile,
    reading: &Reading<'_>,
) -> Result<HostCapture, MergeError> {
    let path = || folder.folder.path().join(file.path());
    let refuse = |error: &dyn ToString| MergeError::Digest { path: path(), reason: error.to_string() };
    let beside = folder.files.iter().find(|other| !matches!(other.kind, FileKind::Unknown | FileKind::Digest));
    if let Some(beside) = beside {
        let beside = beside.path();
        return Err(refuse(&format!(
            "{} lies beside it, which would count twice: remove one of both",
            beside.display()
        )));
    }
    let input = folder.open(file).map_err(MergeError::io(path()))?;
    match digest::read(&mut host, input, reading) {
        Ok(()) => {}
        Err(DigestError::Io(error)) => return Err(MergeError::io(path())(error)),
        Err(DigestError::Spill(error)) => return Err(MergeError::Spill(error)),
        Err(error) => return Err(refuse(&error)),
    }
    note_left_out(&mut host, folder);
    Ok(host)
}

/// Opens a file; one that is none (a link, a FIFO) is left out, and so is one that is damaged from the first byte on.
fn open(host: &mut HostCapture, folder: &HostFolder, file: &HostFile) -> Result<Option<File>, MergeError> {
    match folder.open(file) {
        Ok(input) => Ok(Some(input)),
        Err(error) if is_damage(&error) => {
            host.lost(&folder.shown(file), LossKind::LeftOut(error.to_string()), 1);
            Ok(None)
        }
        Err(error) => Err(MergeError::io(folder.folder.path().join(file.path()))(error)),
    }
}

fn read_json<T: DeserializeOwned>(
    host: &mut HostCapture,
    folder: &HostFolder,
    kind: &FileKind,
) -> Result<Option<T>, MergeError> {
    let Some(file) = folder.find(kind) else { return Ok(None) };
    let Some(input) = open(host, folder, file)? else { return Ok(None) };
    let value = files::read_whole(input).and_then(|text| Ok(serde_json::from_slice(&text)?));
    match value {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            host.lost(&folder.shown(file), LossKind::UnreadableManifest(error.to_string()), 1);
            Ok(None)
        }
    }
}

fn take_sniffer_manifest(host: &mut HostCapture, manifest: &SnifferManifest) {
    if manifest.netns != 0 {
        host.netns = manifest.netns;
    }
    let name = host.name.clone();
    if !manifest.ended {
        host.notes.push(format!(
            "{name}: the sniffer did not end in an orderly way; its counters of drops are those of its last report"
        ));
    }
    let begin = runs(manifest).map(|run| run.started_ns).min().unwrap_or(0).min(sense::LATEST_NS);
    let end = if manifest.ended && manifest.ended_ns > 0 { manifest.ended_ns } else { u64::MAX };
    host.recorded_ns = Some((begin, if end > sense::LATEST_NS { u64::MAX } else { end }));
    for run in runs(manifest) {
        for interface in &run.interfaces {
            let at = format!("{name}/{}", interface.name);
            host.addresses.extend(own_addresses(&interface.addresses));
            let counts = &interface.counts;
            for (kind, count) in [
                (LossKind::KernelDrops, counts.kernel_drops),
                (LossKind::InterfaceDrops, counts.interface_drops),
                (LossKind::SnifferUnparsed, counts.unparsed),
                (LossKind::SnifferUnwritten, counts.unwritten),
                (LossKind::SnifferUndecided, counts.undecided),
                (LossKind::Blanked, counts.blanked_bytes),
            ] {
                host.lost(&at, kind, count);
            }
        }
        host.notes.extend(run.problems.iter().map(|problem| format!("{name}: sniffer: {problem}")));
    }
}

fn runs(manifest: &SnifferManifest) -> impl Iterator<Item = &SnifferManifest> {
    manifest.earlier_runs.iter().chain([manifest])
}

/// Packets that the sniffer counted and that no file holds.
fn note_missing_packets(host: &mut HostCapture, manifest: &SnifferManifest, counted: &BTreeMap<&str, u64>) {
    if !manifest.ended {
        return;
    }
    let mut written: BTreeMap<&str, u64> = BTreeMap::new();
    for interface in runs(manifest).flat_map(|run| &run.interfaces) {
        let all = written.entry(&interface.name).or_default();
        *all = all.saturating_add(interface.counts.packets.saturating_sub(interface.counts.unwritten));
    }
    for (interface, written) in written {
        let missing = written.saturating_sub(counted.get(interface).copied().unwrap_or(0));
        host.lost(&format!("{}/{interface}", host.name), LossKind::PacketsWithoutFile, missing);
    }
}

fn take_dumpingd_manifest(host: &mut HostCapture, manifest: &DumpingdManifest) {
    if host.netns == 0 {
        host.netns = manifest.netns;
    }
    let name = host.name.clone();
    if !manifest.ended {
        host.notes.push(format!(
            "{name}: dumpingd did not end in an orderly way; sockets that opened or died after its last record are missing"
        ));
    }
    for run in manifest.earlier_runs.iter().chain([manifest]) {
        host.lost(&name, LossKind::SocketsUnwritten, run.unwritten);
        host.lost(&name, LossKind::RemovedSockets, run.removed_records);
        host.lost(&name, LossKind::NamespacesLeftOut, run.left_out_netns);
        host.notes.extend(run.problems.iter().map(|problem| format!("{name}: dumpingd: {problem}")));
    }
}

/// Scans that dumpingd counted and that no file holds.
fn note_missing_scans(host: &mut HostCapture, manifest: &DumpingdManifest) {
    let runs = || manifest.earlier_runs.iter().chain([manifest]);
    // Those in files that were removed are counted among `removed_records`.
    if !manifest.ended || runs().any(|run| run.removed_files > 0) {
        return;
    }
    let counted = runs().fold(0u64, |all, run| all.saturating_add(run.scans));
    let held = host.sockets.iter().filter(|record| matches!(record, SocketRecord::Scan { .. })).count() as u64;
    host.losses.lost(&host.name, LossKind::ScansWithoutFile, counted.saturating_sub(held));
}

fn read_sockets(host: &mut HostCapture, shown: &str, input: File) -> Result<(), MergeError> {
    let (mut lost, mut senseless): (BTreeMap<String, u64>, u64) = (BTreeMap::new(), 0);
    let read = files::unpacked(input).and_then(|input| {
        files::parsed_lines(input, MAX_RECORD_BYTES, SocketRecord::of_line, |mut record| {
            if !sense::socket(&mut record) {
                senseless += 1;
                return;
            }
            if let SocketRecord::Lost { what, count, .. } = &record {
                let all = lost.entry(what.clone()).or_default();
                *all = all.saturating_add(*count);
            }
            host.sockets.push(record);
        })
    });
    match read {
        Ok(losses) => host.lost_lines(shown, losses),
        // Packed data that is cut off in its first bytes cannot be unpacked at all: that is a loss like any other cut.
        Err(error) if is_damage(&error) => host.lost(shown, LossKind::Unusable(error.to_string()), 1),
        Err(error) => return Err(MergeError::io(shown)(error)),
    }
    host.lost(shown, LossKind::SenselessSockets, senseless);
    for (what, count) in lost {
        host.losses.lost(&host.name, LossKind::ToldByDumpingd(what), count);
    }
    host.sockets.settle();
    Ok(())
}

/// Reads a packet file, and says how many packets it holds or is known to have held.
fn read_packets(
    host: &mut HostCapture,
    shown: &str,
    input: File,
    reading: &Reading<'_>,
    file: u16,
) -> Result<u64, MergeError> {
    let mut meter = Meter::of(&input, reading.done);
    let input = match files::unpacked(input) {
        Ok(input) => input,
        Err(error) if is_damage(&error) => {
            host.lost(shown, LossKind::Unusable(error.to_string()), 1);
            return Ok(0);
        }
        Err(error) => return Err(MergeError::io(shown)(error)),
    };
    let mut reader = match PacketReader::new(input) {
        Ok(reader) => reader,
        Err(error) => {
            host.lost(shown, LossKind::Unusable(error.to_string()), 1);
            return Ok(0);
        }
    };
    let (mut count, mut senseless) = (0u64, 0u64);
    // The local address of the packet before.
    let mut last: Option<IpAddr> = None;
    loop {
        if let Some(packet) = reader.next_plain() {
            if !sense::packet(packet.time_ns, packet.payload_length) {
                senseless += 1;
                continue;
            }
            count += 1;
            if packet.direction != Direction::Foreign && last != Some(packet.local().into()) {
                last = Some(packet.local().into());
                note_own(&mut host.addresses, packet.local().into());
            }
            meter.packet();
            host.packets.push_plain(&packet, reading.number, file).map_err(MergeError::Spill)?;
            continue;
        }
        // Looked at where it lies: it is large enough for moving it to take a call.
        match &reader.next_view() {
            Ok(Some(packet)) if sense::packet(packet.time_ns, packet.payload_length) => {
                count += 1;
                if packet.direction != Direction::Foreign && last != Some(packet.local().ip()) {
                    last = Some(packet.local().ip());
                    note_own(&mut host.addresses, packet.local().ip().to_canonical());
                }
                meter.packet();
                host.packets.push(packet, reading.number, file).map_err(MergeError::Spill)?;
            }
            Ok(Some(_)) => senseless += 1,
            Ok(None) => break,
            Err(error) => {
                host.lost(shown, LossKind::RestOfFile(error.to_string()), 1);
                break;
            }
        }
    }
    for note in reader.notes() {
        if note.is_gap() || note.kind == CaptureNoteKind::ClockStep {
            let from = if note.from_ns == 0 { "the begin".to_owned() } else { format!("{} ns", note.from_ns) };
            host.notes.push(format!("{shown}: {note}, between {from} and {} ns", note.to_ns));
        }
        if note.kind == CaptureNoteKind::Removed {
            count = count.saturating_add(note.count);
            host.lost(shown, LossKind::RemovedPackets, note.count);
        }
    }
    let losses = reader.losses();
    host.lost(shown, LossKind::CutPacket, losses.truncated_bytes);
    let senseless = losses.malformed_records.saturating_add(senseless);
    host.lost(shown, LossKind::SenselessPackets, senseless);
    host.lost(shown, LossKind::DamagedPacking, u64::from(losses.broken_off));
    Ok(count)
}

fn note_own(addresses: &mut BTreeSet<IpAddr>, own: IpAddr) {
    if !own.is_loopback() {
        addresses.insert(own);
    }
}
