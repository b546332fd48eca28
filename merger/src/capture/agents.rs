//! The folder of one host: files of our agents, and those that a `manifest.json` names.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use trace::files;
use trace::jvm::JvmRecord;
use trace::manifest::{DumpingdManifest, ForeignManifest, SnifferManifest, SocketListing};
use trace::mark::MarkKind;
use trace::packet::{Direction, PacketReader};
use trace::socket::SocketRecord;

use super::{HostCapture, JvmFile, listing, names_in, pcap};
use crate::error::MergeError;

/// Reads the folder of host `name`, which has number `number` among the hosts.
pub(super) fn read_folder(name: &str, folder: &Path, number: usize) -> Result<HostCapture, MergeError> {
    let mut host = HostCapture { name: name.to_owned(), folders: vec![folder.to_owned()], ..HostCapture::default() };
    let names = names_in(folder)?;
    read_sniffer_manifest(&mut host, folder);
    read_dumpingd_manifest(&mut host, folder);
    let mut file_number = 0u16;
    let mut interfaces: HashMap<String, u16> = HashMap::new();
    for file in &names {
        let path = folder.join(file);
        let plain = plain_name(file);
        if plain != file && names.iter().any(|other| other == plain) {
            host.notes.push(format!("{name}: {file} is left out, as {plain} is there too"));
            continue;
        }
        if plain.starts_with("packets-") && plain.ends_with(".hpk") {
            // An interface's files, closed one after the other, are one file as far as copies of packets are concerned.
            let of_interface = *interfaces.entry(interface_of(plain).to_owned()).or_insert(file_number);
            read_packets(&mut host, &path, number, of_interface)?;
            file_number = file_number.saturating_add(1);
        } else if plain == "sockets.jsonl" {
            let records: Vec<SocketRecord> = read_lines(&mut host, &path)?;
            note_socket_losses(&mut host, &records);
            host.sockets.extend(records);
        } else if let Some((pid, start_ticks)) = jvm_name(plain) {
            let records: Vec<JvmRecord> = read_lines(&mut host, &path)?;
            take_jvm(&mut host, pid, start_ticks, records);
        } else if plain == "manifest.json" {
            read_foreign(&mut host, folder, &path, number, &mut file_number)?;
        }
    }
    if host.packets.count == 0 {
        host.notes.push(format!("{name}: no packets in {}", folder.display()));
    }
    Ok(host)
}

/// A file's name without what tells how it is packed.
pub(crate) fn plain_name(name: &str) -> &str {
    [".zst", ".gz", ".xz"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name)
}

/// The interface in `packets-IFACE.hpk` and `packets-IFACE.NNNNNN.hpk`.
fn interface_of(name: &str) -> &str {
    let stem = name.strip_prefix("packets-").and_then(|rest| rest.strip_suffix(".hpk")).unwrap_or(name);
    match stem.rsplit_once('.') {
        Some((interface, number)) if number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()) => interface,
        _ => stem,
    }
}

/// `jvm-PID-STARTTICKS.jsonl`.
fn jvm_name(name: &str) -> Option<(u32, u64)> {
    let (pid, ticks) = name.strip_prefix("jvm-")?.strip_suffix(".jsonl")?.split_once('-')?;
    Some((pid.parse().ok()?, ticks.parse().ok()?))
}

fn read_json<T: DeserializeOwned>(host: &mut HostCapture, path: &Path) -> Option<T> {
    let text = fs::read(path).ok()?;
    match serde_json::from_slice(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            host.lost(format!("{}: unreadable ({error})", shown(path)), 1, "files");
            None
        }
    }
}

fn shown(path: &Path) -> String {
    let mut parts: Vec<String> =
        path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    parts.reverse();
    parts.join("/")
}

fn read_sniffer_manifest(host: &mut HostCapture, folder: &Path) {
    let Some(manifest) = read_json::<SnifferManifest>(host, &folder.join("sniffer.json")) else { return };
    if manifest.netns != 0 {
        host.netns = manifest.netns;
    }
    let name = host.name.clone();
    if !manifest.ended {
        host.notes.push(format!(
            "{name}: the sniffer did not end in an orderly way; its counters of drops are those of its last report"
        ));
    }
    let begin = manifest.earlier_runs.iter().chain([&manifest]).map(|run| run.started_ns).min().unwrap_or(0);
    let end = if manifest.ended && manifest.ended_ns > 0 { manifest.ended_ns } else { u64::MAX };
    host.recorded_ns = Some((begin, end));
    for run in manifest.earlier_runs.iter().chain([&manifest]) {
        for interface in &run.interfaces {
            let at = format!("{name}/{}", interface.name);
            host.addresses.extend(own_addresses(&interface.addresses));
            host.lost(format!("{at}: packets dropped by the kernel"), interface.counts.kernel_drops, "packets");
            host.lost(format!("{at}: packets dropped by the interface"), interface.counts.interface_drops, "packets");
            host.lost(format!("{at}: packets that could not be parsed"), interface.counts.unparsed, "packets");
            host.lost(format!("{at}: packets that could not be written"), interface.counts.unwritten, "packets");
            host.lost(format!("{at}: packets given up undecided"), interface.counts.undecided, "packets");
        }
        host.notes.extend(run.problems.iter().map(|problem| format!("{name}: sniffer: {problem}")));
    }
}

fn read_dumpingd_manifest(host: &mut HostCapture, folder: &Path) {
    let Some(manifest) = read_json::<DumpingdManifest>(host, &folder.join("dumpingd.json")) else { return };
    if host.netns == 0 {
        host.netns = manifest.netns;
    }
    let name = host.name.clone();
    if !manifest.ended {
        host.notes.push(format!(
            "{name}: dumpingd did not end in an orderly way; sockets that opened or died after its last record are missing"
        ));
    }
    for run in manifest.earlier_runs.iter().chain([&manifest]) {
        host.notes.extend(run.problems.iter().map(|problem| format!("{name}: dumpingd: {problem}")));
    }
}

fn read_lines<T: DeserializeOwned>(host: &mut HostCapture, path: &Path) -> Result<Vec<T>, MergeError> {
    let (records, losses) = match files::read_json_lines(path) {
        Ok(read) => read,
        // Packed data that is cut off in its first bytes cannot be unpacked at all: that is a loss like any other cut.
        Err(error) if is_damage(&error) => {
            host.lost(format!("{}: {error}", shown(path)), 1, "files");
            return Ok(Vec::new());
        }
        Err(error) => return Err(MergeError::io(path)(error)),
    };
    host.lost(format!("{}: bytes of a line that was cut off", shown(path)), losses.truncated_bytes, "bytes");
    if let Some((line, reason)) = losses.first_malformed {
        let what = format!("{}: lines that are no record, first line {line}: {reason}", shown(path));
        host.lost(what, losses.malformed_lines, "records");
    }
    Ok(records)
}

/// Whether an error comes from the content of a file and not from the machine.
fn is_damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory)
}

fn note_socket_losses(host: &mut HostCapture, records: &[SocketRecord]) {
    let mut lost: HashMap<&str, u64> = HashMap::new();
    for record in records {
        if let SocketRecord::Lost { what, count, .. } = record {
            *lost.entry(what).or_default() += count;
        }
    }
    let mut lost: Vec<_> = lost.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
    lost.sort();
    let name = host.name.clone();
    for (what, count) in lost {
        host.lost(format!("{name}: dumpingd: {what}"), count, "records");
    }
}

fn take_jvm(host: &mut HostCapture, pid: u32, start_ticks: u64, records: Vec<JvmRecord>) {
    let mut dropped = 0u64;
    for record in &records {
        match record {
            JvmRecord::Header { addresses, netns, .. } => {
                host.addresses.extend(own_addresses(addresses));
                if host.netns == 0 {
                    host.netns = *netns;
                }
            }
            JvmRecord::Clock { dropped: since, .. } => dropped += since,
            JvmRecord::End { dropped: all, .. } => dropped = dropped.max(*all),
            _ => {}
        }
    }
    let name = host.name.clone();
    host.lost(format!("{name}: records dropped in JVM {pid}"), dropped, "records");
    host.jvms.push(JvmFile { pid, start_ticks, records });
}

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

fn read_packets(host: &mut HostCapture, path: &Path, number: usize, file: u16) -> Result<(), MergeError> {
    let input = match files::open(path) {
        Ok(input) => input,
        Err(error) if is_damage(&error) => {
            host.lost(format!("{}: {error}", shown(path)), 1, "files");
            return Ok(());
        }
        Err(error) => return Err(MergeError::io(path)(error)),
    };
    let mut reader = match PacketReader::new(input) {
        Ok(reader) => reader,
        Err(error) => {
            host.lost(format!("{}: {error}", shown(path)), 1, "files");
            return Ok(());
        }
    };
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                if packet.direction != Direction::Foreign {
                    let own = packet.local().ip().to_canonical();
                    if !own.is_loopback() {
                        host.addresses.insert(own);
                    }
                }
                host.packets.push(&packet, number, file);
            }
            Ok(None) => break,
            Err(error) => {
                host.lost(format!("{}: the rest of the file ({error})", shown(path)), 1, "files");
                break;
            }
        }
    }
    for mark in reader.marks() {
        if mark.is_gap() || mark.kind == MarkKind::ClockStep {
            let from = if mark.from_ns == 0 { "the begin".to_owned() } else { format!("{} ns", mark.from_ns) };
            host.notes.push(format!("{}: {mark}, between {from} and {} ns", shown(path), mark.to_ns));
        }
    }
    let losses = reader.losses();
    host.lost(format!("{}: bytes of a packet that was cut off", shown(path)), losses.truncated_bytes, "bytes");
    host.lost(format!("{}: packets that make no sense", shown(path)), losses.malformed_records, "packets");
    Ok(())
}

fn read_foreign(
    host: &mut HostCapture,
    folder: &Path,
    path: &Path,
    number: usize,
    file_number: &mut u16,
) -> Result<(), MergeError> {
    let text = fs::read(path).map_err(MergeError::io(path))?;
    let manifest: ForeignManifest = serde_json::from_slice(&text)
        .map_err(|error| MergeError::Manifest { path: path.into(), reason: error.to_string() })?;
    let refuse = |reason: String| Err(MergeError::Manifest { path: path.into(), reason });
    if manifest.host != host.name {
        host.notes.push(format!("{}: its manifest calls it {}", host.name, manifest.host));
    }
    for text in &manifest.addresses {
        match text.parse::<IpAddr>() {
            Ok(address) if !address.is_loopback() => {
                host.addresses.insert(address.to_canonical());
            }
            Ok(_) => {}
            Err(_) => return refuse(format!("addresses: \"{text}\" is no IP address")),
        }
    }
    if host.addresses.is_empty() {
        return refuse("addresses: none; the host's packets are told from others' by them".into());
    }
    host.rack.clone_from(&manifest.rack);
    for packets in &manifest.packets {
        let file = existing(folder, path, &packets.file)?;
        let read = pcap::read(&file, number, *file_number, &host.addresses);
        *file_number = file_number.saturating_add(1);
        merge_pcap(host, &file, read);
    }
    for sockets in &manifest.sockets {
        let file = existing(folder, path, &sockets.file)?;
        let text = read_text(&file)?;
        let listed = match sockets.format {
            SocketListing::Ss => listing::ss(&text),
            SocketListing::Lsof => listing::lsof(&text),
        };
        host.lost(format!("{}: lines that were not understood", shown(&file)), listed.ignored_lines, "lines");
        host.sockets.extend(listed.records);
    }
    host.named.extend(manifest.processes);
    Ok(())
}

fn existing(folder: &Path, manifest: &Path, file: &str) -> Result<PathBuf, MergeError> {
    let path = folder.join(file);
    if path.is_file() {
        Ok(path)
    } else {
        let reason = format!("it names the file \"{file}\", which is not in its folder");
        Err(MergeError::Manifest { path: manifest.into(), reason })
    }
}

fn read_text(path: &Path) -> Result<String, MergeError> {
    let mut bytes = Vec::new();
    let mut input = files::open(path).map_err(MergeError::io(path))?;
    match std::io::Read::read_to_end(&mut input, &mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => return Err(MergeError::io(path)(error)),
        _ => {}
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn merge_pcap(host: &mut HostCapture, file: &Path, read: Result<pcap::PcapPackets, pcap::PcapError>) {
    match read {
        Ok(read) => {
            host.packets.append(read.packets);
            host.lost(format!("{}: frames that could not be parsed", shown(file)), read.unparsed, "packets");
            host.lost(format!("{}: truncated", shown(file)), u64::from(read.truncated), "files");
            host.notes.extend(read.notes.iter().map(|note| format!("{}: {note}", shown(file))));
        }
        Err(error) => host.lost(format!("{}: {error}", shown(file)), 1, "files"),
    }
}
