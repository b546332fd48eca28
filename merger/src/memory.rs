//! How much memory and how much room for temporary files a merge will take, told before it begins, and how much it may take.

use std::collections::BTreeSet;
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use trace::files::{self, MAX_RECORD_BYTES, Packing};
use trace::manifest::ForeignManifest;
use trace::packet::{PacketReader, PacketView, flag};
use trace::quantity;

use crate::capture::flows::{FlowKey, canonical};
use crate::capture::host::is_damage;
use crate::capture::layout::{FileKind, HostFile, HostFolder};
use crate::capture::observed::KEPT_BYTES;
use crate::capture::recent::Recent;
use crate::capture::{digest, find, pcap};
use crate::error::MergeError;
use crate::maps::HashMap;
use crate::progress::{Progress, Unit};
use crate::temporary;
use crate::volume::{STREAMS_SHARE, Volume, base_bytes};

/// What captures hold.
#[derive(Clone, Debug, Default)]
struct Measured {
    volume: Volume,
    /// The file that takes most memory, and how much.
    heaviest: (u64, String),
}

impl Measured {
    fn plus(self, other: Self) -> Self {
        Self { volume: self.volume.plus(other.volume), heaviest: self.heaviest.max(other.heaviest) }
    }
}

/// Has this process use no huge pages from now on: they are cleared as a whole where a part is wanted, and split to be given back, which
/// was a tenth of a merge's CPU time. Where the system does not know of them, nothing is lost.
pub fn take_no_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Whether a merge of so much takes more than it may.
type TooMuch<'a> = &'a (dyn Fn(&Volume) -> bool + Sync);

/// Counts what captures hold, without keeping anything of it. What cannot be read takes no memory. Files are told by their begins; only if
/// that were too much, for a file may begin with what is rare in it, all of them are counted.
fn measure(captures: &[PathBuf], too_much: TooMuch<'_>, progress: &impl Progress) -> Result<Measured, MergeError> {
    let by_begins = count(captures, None)?;
    if !too_much(&by_begins.volume) {
        return Ok(by_begins);
    }
    progress.step("counting packets: by the begins of the files there are too many", 1, Unit::Nothing);
    count(captures, Some(too_much))
}

/// `too_much` = files are counted to their ends, or until one of them is too much by itself.
fn count(captures: &[PathBuf], too_much: Option<TooMuch<'_>>) -> Result<Measured, MergeError> {
    let hosts = find(captures)?.hosts;
    let files: Vec<(&HostFolder, &HostFile)> =
        hosts.iter().flatten().flat_map(|folder| folder.files.iter().map(move |file| (folder, file))).collect();
    let volumes = files.par_iter().map(|(folder, file)| {
        let volume = folder.open(file).and_then(|input| volume_of(folder, file, input, too_much));
        match volume {
            Ok(volume) => Ok(Measured {
                volume,
                heaviest: (volume.memory_bytes(for_packets(u64::MAX)) - base_bytes(), folder.shown(file)),
            }),
            Err(error) if is_damage(&error) => Ok(Measured::default()),
            Err(error) => Err(MergeError::io(folder.folder.path().join(file.path()))(error)),
        }
    });
    let of_files = volumes.try_reduce(Measured::default, |a, b| Ok(a.plus(b)))?;
    let volume = Volume { hosts: hosts.iter().flatten().count() as u64, ..of_files.volume };
    Ok(Measured { volume, ..of_files })
}

fn volume_of(folder: &HostFolder, file: &HostFile, input: File, too_much: Option<TooMuch<'_>>) -> io::Result<Volume> {
    let to_end = too_much.is_some();
    match file.kind {
        FileKind::Packets(_) => packets(input, too_much),
        FileKind::Sockets(_) => {
            let (socket_records, socket_bytes) = lines(input, true, to_end)?;
            Ok(Volume { socket_records, socket_bytes, ..Volume::default() })
        }
        FileKind::Jvm { .. } => {
            let (jvm_records, jvm_bytes) = lines(input, true, to_end)?;
            Ok(Volume { jvm_records, jvm_bytes, ..Volume::default() })
        }
        FileKind::ForeignManifest => foreign(folder, input, too_much),
        FileKind::Digest => digest::volume_of(input),
        _ => Ok(Volume::default()),
    }
}

fn packets(input: File, too_much: Option<TooMuch<'_>>) -> io::Result<Volume> {
    let sample = Sample::of(&input)?;
    let Ok(mut reader) = PacketReader::new(files::unpacked(input)?) else { return Ok(Volume::default()) };
    let mut counted = Counted::default();
    while !counted.is_enough(too_much) {
        if let Some(packet) = reader.next_plain() {
            counted.take(&packet.view());
            continue;
        }
        match &reader.next_view() {
            Ok(Some(packet)) => counted.take(packet),
            _ => return Ok(counted.volume()),
        }
    }
    sample.whole(&counted)
}

/// Packets of a file that are counted; what follows is taken to be like them.
const SAMPLE_PACKETS: u64 = 1 << 16;

/// The begin of a file.
struct Sample {
    /// The same open file that is being read: its position is that of the reader.
    file: File,
    length: u64,
}

impl Sample {
    fn of(file: &File) -> io::Result<Self> {
        Ok(Self { file: file.try_clone()?, length: file.metadata()?.len() })
    }

    /// What the whole file holds, if the part of it that was read holds this. Connections that were open before are no more in all of it.
    fn whole(mut self, counted: &Counted) -> io::Result<Volume> {
        let (part, open) = (counted.volume(), counted.open());
        let read = self.file.stream_position()?.clamp(1, self.length.max(1));
        let times = self.length as f64 / read as f64;
        let more = |count: u64| (count as f64 * times).ceil() as u64;
        Ok(Volume {
            packets: more(part.packets),
            connections: more(part.connections - open).saturating_add(open),
            kept_bytes: more(part.kept_bytes),
            ..part
        })
    }
}

/// What the files take that a manifest names.
fn foreign(folder: &HostFolder, manifest: File, too_much: Option<TooMuch<'_>>) -> io::Result<Volume> {
    let manifest: ForeignManifest = serde_json::from_slice(&files::read_whole(manifest)?)?;
    let mut volume = Volume::default();
    for packets in &manifest.packets {
        let mut counted = Counted::default();
        if let Ok(input) = folder.folder.file(&packets.file) {
            // What is wrong with it is told when it is read.
            let sample = Sample::of(&input)?;
            let read = pcap::read(input, &BTreeSet::new(), |packet| {
                counted.take(packet);
                if counted.is_enough(too_much) { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
            });
            volume = volume.plus(if read.is_err() { sample.whole(&counted)? } else { counted.volume() });
        }
    }
    for sockets in &manifest.sockets {
        if let Ok(input) = folder.folder.file(&sockets.file) {
            let (socket_records, socket_bytes) = lines(input, false, too_much.is_some())?;
            volume = volume.plus(Volume { socket_records, socket_bytes, ..Volume::default() });
        }
    }
    Ok(volume)
}

/// Bytes of a file of lines that are counted; what follows is taken to be like them.
const SAMPLE_BYTES: u64 = 1 << 16;

/// Lines of a file that may be records, and their bytes; of JSON or of a listing; by its begin, or to its end.
fn lines(mut input: File, json: bool, to_end: bool) -> io::Result<(u64, u64)> {
    let length = input.metadata()?.len();
    let mut begin = BufReader::with_capacity(SAMPLE_BYTES as usize, (&input).take(SAMPLE_BYTES));
    // How far a packed file has been read says little of how much has come out of it.
    if !to_end && length > SAMPLE_BYTES && Packing::of(begin.fill_buf()?) == Packing::Plain {
        let ((records, bytes), cut_off) = count_lines(begin, json)?;
        let counted = SAMPLE_BYTES.saturating_sub(cut_off as u64);
        if counted > 0 {
            let times = length as f64 / counted as f64;
            let more = |count: u64| (count as f64 * times).ceil() as u64;
            return Ok((more(records), more(bytes)));
        }
    }
    input.rewind()?;
    Ok(count_lines(files::unpacked(input)?, json)?.0)
}

/// The same of what is read, and bytes behind the last line's end.
fn count_lines(input: impl BufRead, json: bool) -> io::Result<((u64, u64), usize)> {
    let (mut records, mut bytes) = (0, 0);
    let (_, cut_off) = files::lines(input, MAX_RECORD_BYTES, |_, line| {
        // What is no JSON object is counted as lost, and not kept.
        let kept = line.first() == Some(&b'{') || !json;
        records += u64::from(kept);
        bytes += if kept { line.len() as u64 } else { 0 };
    })?;
    Ok(((records, bytes), cut_off.len()))
}

/// Packets of a file, counted.
#[derive(Default)]
struct Counted {
    packets: u64,
    kept_bytes: u64,
    /// Pairs of addresses, hashed, and their places in `begins`.
    flows: HashMap<u64, u32>,
    recent: Recent,
    /// Packets that had been counted when the last of these flows came.
    newest: u64,
    /// Packets between two addresses by which a connection may begin, as SYN, as its answer, and as RST.
    begins: Vec<[u64; 3]>,
}

impl Counted {
    #[inline]
    fn take(&mut self, packet: &PacketView<'_>) {
        self.packets += 1;
        let kept = packet.payload.len().min(KEPT_BYTES).min(packet.payload_length as usize);
        self.kept_bytes += kept as u64;
        let number = self.flow_of(packet);
        let begins = &mut self.begins[number as usize];
        begins[0] += u64::from(packet.has(flag::SYN) && !packet.has(flag::ACK));
        begins[1] += u64::from(packet.has(flag::SYN | flag::ACK));
        begins[2] += u64::from(packet.has(flag::RST));
    }

    /// Whether no more packets have to be counted. Where all are, what they are is looked at each time that they, or their flows, have
    /// doubled.
    fn is_enough(&self, too_much: Option<TooMuch<'_>>) -> bool {
        let has_doubled = || {
            let flows = self.newest == self.packets && self.begins.len().is_power_of_two();
            flows || self.packets.is_power_of_two()
        };
        self.packets >= SAMPLE_PACKETS && too_much.is_none_or(|too_much| has_doubled() && too_much(&self.volume()))
    }

    fn flow_of(&mut self, packet: &PacketView<'_>) -> u32 {
        if let Some((number, _)) = self.recent.find(packet) {
            return number;
        }
        let (key, forward) = FlowKey::of(canonical(packet.source), canonical(packet.destination), 0);
        let (hash, next) = (self.flows.hasher().hash_one(key), self.begins.len() as u32);
        let number = *self.flows.entry(hash).or_insert(next);
        if number == next {
            self.begins.push([0; 3]);
            self.newest = self.packets;
        }
        self.recent.keep(packet, number, forward);
        number
    }

    fn volume(&self) -> Volume {
        let Self { packets, kept_bytes, .. } = self;
        let connections = self.begun().map(|begun| begun.max(1)).sum();
        Volume { packets: *packets, connections, kept_bytes: *kept_bytes, ..Volume::default() }
    }

    /// Connections at most that began, between each two addresses.
    fn begun(&self) -> impl Iterator<Item = u64> {
        self.begins.iter().map(|[asked, answered, broken]| *asked.max(answered) + broken / 2)
    }

    /// Connections that did not begin in these packets.
    fn open(&self) -> u64 {
        self.begun().filter(|begun| *begun == 0).count() as u64
    }
}

/// What a merge may take where nobody says: a quarter of the machine's memory, or of what the process's control group
/// allows, bytes. `None` = the machine does not tell.
#[must_use]
pub fn default_limit() -> Option<u64> {
    trace::memory::allowed_bytes().map(|bytes| bytes / 4)
}

/// Packets may take one of so many equal shares of a merge's memory.
const SHARES: u64 = 8;
/// More memory than this makes a merge no faster: the system holds temporary files in what is free.
const MAX_FOR_PACKETS: u64 = 16 << 20;

/// Memory that packets may take of so much, bytes.
#[must_use]
pub fn for_packets(limit: u64) -> u64 {
    (limit / SHARES).min(MAX_FOR_PACKETS)
}

/// What a merge is said to take at most before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// Packets.
    pub packets: u64,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Room for temporary files, bytes.
    pub temporary_bytes: u64,
}

/// Foresees what the merge of captures takes, and refuses those that take more than `limit` bytes of memory, or more room for temporary
/// files than there is.
///
/// # Errors
/// If they do, or cannot be looked at.
pub fn check(captures: &[PathBuf], limit: u64, progress: &impl Progress) -> Result<Foreseen, MergeError> {
    let (folder, share) = (std::env::temp_dir(), for_packets(limit));
    let free = free_bytes(&folder);
    let no_room = |volume: &Volume| free.is_some_and(|free| volume.temporary_bytes(share) > free);
    let too_much = |volume: &Volume| volume.memory_bytes(share) > limit || no_room(volume);
    let measured = measure(captures, &too_much, progress)?;
    let volume = &measured.volume;
    let foreseen = Foreseen {
        packets: volume.packets,
        memory_bytes: volume.memory_bytes(share),
        temporary_bytes: volume.temporary_bytes(share),
    };
    refuse_without_memory(measured, limit, Volume::memory_bytes)?;
    refuse_without_room(foreseen, folder, free)?;
    Ok(foreseen)
}

/// Ends this process with an error as soon as a merge holds more memory than `limit` bytes, or its temporary files take all but a tenth of
/// what was free when it began. Both were foreseen, but by the begins of files: what comes further on may be something else.
///
/// # Errors
/// If no thread can be started.
pub fn watch(limit: u64) -> io::Result<()> {
    let folder = std::env::temp_dir();
    let room = free_bytes(&folder).map_or(u64::MAX, |free| free - free / 10);
    trace::memory::end_if("merger", move || over(limit, room, &folder))
}

fn over(limit: u64, room: u64, folder: &Path) -> Option<String> {
    const UNFORESEEN: &str = "which was not to be foreseen from the begins of the files";
    const LESS: &str = "or merge fewer hosts or a shorter capture";
    let show = quantity::show_bytes;
    let (held, filed) = (trace::memory::held_bytes(), temporary::held_bytes());
    if held > limit {
        let (held, limit) = (show(held), show(limit));
        return Some(format!(
            "out of memory: it holds {held}, and may hold {limit}, {UNFORESEEN}: allow more with --memory, {LESS}"
        ));
    }
    (filed > room).then(|| {
        let (filed, room, folder) = (show(filed), show(room), folder.display());
        format!("out of room: temporary files in {folder} take {filed}, and may take {room}, {UNFORESEEN}: free some, name another folder with TMPDIR, {LESS}")
    })
}

/// What an ordinary user may still write on the file system of a folder, bytes; `None` = it does not tell.
fn free_bytes(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

fn refuse_without_room(foreseen: Foreseen, folder: PathBuf, free: Option<u64>) -> Result<(), MergeError> {
    match free {
        Some(free) if free < foreseen.temporary_bytes => Err(MergeError::DiskSpace {
            needed: quantity::show_bytes(foreseen.temporary_bytes),
            free: quantity::show_bytes(free),
            folder,
        }),
        _ => Ok(()),
    }
}

/// Refuses captures whose digests take more than `limit` bytes to make.
///
/// # Errors
/// As [`check`].
pub fn check_digest(captures: &[PathBuf], limit: u64, progress: &impl Progress) -> Result<(), MergeError> {
    let too_much = |volume: &Volume| volume.digest_bytes(for_packets(limit)) > limit;
    refuse_without_memory(measure(captures, &too_much, progress)?, limit, Volume::digest_bytes)
}

/// `taken` is what so much takes if packets may take so many bytes of it.
fn refuse_without_memory(measured: Measured, limit: u64, taken: fn(&Volume, u64) -> u64) -> Result<(), MergeError> {
    let Measured { volume, heaviest } = measured;
    if taken(&volume, for_packets(limit)) <= limit {
        return Ok(());
    }
    // With as much for packets as they ever get, or with a share in which packets, and their segments in a part of it, just fit.
    let others =
        taken(&volume, 0).saturating_mul(STREAMS_SHARE * SHARES) / (STREAMS_SHARE * SHARES - (STREAMS_SHARE + 1));
    let needed = taken(&volume, for_packets(u64::MAX)).min(others + SHARES);
    let show = quantity::show_bytes;
    Err(MergeError::Memory {
        volume: Box::new(volume),
        needed: show(needed),
        limit: show(limit),
        file: heaviest.1,
        part: show(heaviest.0),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::fs;

    use super::*;

    #[test]
    fn a_merge_without_room_for_its_files_is_refused_with_the_figures() {
        let foreseen = Foreseen { temporary_bytes: 30 << 30, ..Foreseen::default() };
        let refused = |free: Option<u64>| refuse_without_room(foreseen, "/spool".into(), free);
        assert!(refused(Some(30 << 30)).is_ok() && refused(None).is_ok());
        let said = refused(Some(10 << 30)).unwrap_err().to_string();
        assert!(["30GiB", "10GiB", "/spool", "TMPDIR"].iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn what_a_merge_holds_beyond_its_limits_is_said_with_the_way_out() {
        let file = temporary::TemporaryFile::new().unwrap();
        file.write_all_at(&[1; 100], 0).unwrap();
        let said = |limit: u64, room: u64| over(limit, room, Path::new("/spool"));
        assert_eq!(said(u64::MAX, u64::MAX), None);
        assert!(said(0, u64::MAX).unwrap().contains("--memory"));
        let of_room = said(u64::MAX, 50).unwrap();
        assert!(["/spool", "may take 50B", "TMPDIR"].iter().all(|part| of_room.contains(part)), "{of_room}");
    }

    #[test]
    fn lines_of_a_long_file_are_told_by_its_begin_and_all_of_a_packed_one_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let told = |name: &str, text: &[u8], json: bool| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            lines(File::open(path).unwrap(), json, false).unwrap()
        };
        // Every fourth line is no record, and they differ in length.
        let line = |number: usize| {
            [["{", "no "][usize::from(number.is_multiple_of(4))], &"x".repeat(number % 90), "\n"].concat()
        };
        let text = |count: usize| (0..count).map(line).collect::<String>().into_bytes();
        let exact = |text: &[u8]| {
            let records = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{"));
            records.fold((0, 0), |(records, bytes), line| (records + 1, bytes + line.len() as u64))
        };
        let (short, long) = (text(100), text(100_000));
        assert_eq!(told("short", &short, true), exact(&short));
        assert_eq!(told("short", &short, false), (100, short.len() as u64));
        assert_eq!(told("packed", &zstd::encode_all(&long[..], 0).unwrap(), true), exact(&long));
        let ((records, bytes), (true_records, true_bytes)) = (told("long", &long, true), exact(&long));
        let apart = |told: u64, exact: u64| (told as f64 / exact as f64 - 1.0).abs();
        let to_end = lines(File::open(folder.path().join("long")).unwrap(), true, true).unwrap();
        assert_eq!(to_end, (true_records, true_bytes));
        assert!(apart(records, true_records) < 0.02 && apart(bytes, true_bytes) < 0.02, "{records} of {true_records}");
        // No line ends within what is looked at.
        let mut one = [b"{", &[b'x'; 200_000][..], b"\n"].concat();
        one.extend_from_slice(&short);
        assert_eq!(told("one", &one, true), exact(&short));
    }

    #[test]
    fn a_file_system_tells_what_is_free() {
        assert!(free_bytes(Path::new("/")).is_some() && free_bytes(Path::new("/there/is/none")).is_none());
    }
}
