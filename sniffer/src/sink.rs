//! The packet file of one interface: begun, or continued where an earlier run left it; closed and begun anew when it
//! has become long.

use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::agent::{AppendFile, now_ns};
use trace::mark::{Mark, MarkKind};
use trace::packet::{MAGIC, Packet, PacketFileError, PacketFileHeader, PacketReader, PacketWriter};

use crate::room::{Removed, Room, WhenFull, number_of};

/// Records wait until there are so many bytes of them, or until [`PacketSink::flush`].
pub const BATCH_BYTES: usize = 256 << 10;

/// Appends packet records; a batch is in the file entirely or not at all.
#[derive(Debug)]
pub struct PacketSink {
    path: PathBuf,
    header: PacketFileHeader,
    file: AppendFile,
    batch: PacketWriter<Vec<u8>>,
    batched: u64,
    in_file: u64,
    unwritten: u64,
    /// Since when records could not be written, and how many it were.
    gap: Option<(u64, u64)>,
    last_error: Option<io::Error>,
    no_room: bool,
    room: Option<Arc<Room>>,
    next_number: u64,
}

impl PacketSink {
    /// Opens the file, cuts what a killed run left of its last record, and writes the header.
    ///
    /// # Errors
    /// If it cannot be opened or written, is locked, or is something else than a packet file.
    pub fn open(path: &Path, header: &PacketFileHeader) -> io::Result<Self> {
        let mut file = AppendFile::open(path)?;
        let left = left_by_earlier_run(&mut file)?;
        let cut_bytes = file.length() - left.whole_until;
        file.truncate(left.whole_until)?;
        let batch = Vec::with_capacity(BATCH_BYTES + 4096);
        let begins = left.whole_until == 0;
        let batch = if begins { PacketWriter::create(batch, header) } else { PacketWriter::resume(batch, header) };
        let mut sink = Self {
            path: path.to_owned(),
            header: header.clone(),
            file,
            batch: batch?,
            batched: 0,
            in_file: 0,
            unwritten: 0,
            gap: None,
            last_error: None,
            no_room: false,
            room: None,
            next_number: next_number(path),
        };
        if !begins && (!left.ended || cut_bytes > 0) {
            let to_ns = header.started_ns;
            sink.batch.mark(&Mark { kind: MarkKind::Restart, from_ns: left.last_ns, to_ns, count: 0, step_ns: 0 })?;
        }
        sink.file.append(sink.batch.get_mut())?;
        sink.batch.get_mut().clear();
        Ok(sink)
    }

    /// Keeps to the limits of `room` from now on.
    pub fn keep_within(&mut self, room: &Arc<Room>) {
        self.room = Some(Arc::clone(room));
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Never because of the disk: what could not be written is counted by [`PacketSink::unwritten`].
    pub fn write(&mut self, packet: &Packet) -> io::Result<()> {
        self.batch.write(packet)?;
        self.batched += 1;
        if self.batch.get_mut().len() >= BATCH_BYTES {
            self.flush();
        }
        Ok(())
    }

    /// Adds a note.
    ///
    /// # Errors
    /// Never because of the disk.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        self.batch.mark(mark)
    }

    /// Hands all records to the operating system. When it cannot take them they are dropped and counted: the memory
    /// is needed for those that follow, and the file stays readable.
    pub fn flush(&mut self) {
        if self.batch.get_mut().is_empty() {
            return;
        }
        self.rotate_if_long();
        let result = self.mark_gap().and_then(|()| self.append());
        match result {
            Ok(()) => {
                self.in_file += self.batched;
                self.gap = None;
            }
            Err(error) => {
                self.unwritten += self.batched;
                let (since, count) = self.gap.unwrap_or((now_ns(), 0));
                self.gap = Some((since, count + self.batched));
                self.last_error = Some(error);
            }
        }
        self.batch.get_mut().clear();
        self.batched = 0;
    }

    fn append(&mut self) -> io::Result<()> {
        let bytes = self.batch.get_mut().len() as u64;
        if let Some(room) = self.room.clone() {
            let removed = match room.reserve(bytes) {
                Ok(removed) => removed,
                Err(no_room) => {
                    self.no_room = true;
                    return Err(io::Error::other(no_room));
                }
            };
            if removed.files > 0 {
                self.mark_removed(removed)?;
            }
            let result = self.file.append(self.batch.get_mut());
            if result.is_err() {
                room.give_back(bytes);
            }
            return result;
        }
        self.file.append(self.batch.get_mut())
    }

    fn mark_removed(&mut self, removed: Removed) -> io::Result<()> {
        let count = removed.packets;
        self.batch.mark(&Mark { kind: MarkKind::Removed, from_ns: 0, to_ns: now_ns(), count, step_ns: 0 })
    }

    /// In front of the first records that can be written again it says how many could not.
    fn mark_gap(&mut self) -> io::Result<()> {
        let Some((from_ns, count)) = self.gap else { return Ok(()) };
        let mut marked = PacketWriter::append_to(Vec::with_capacity(64));
        marked.mark(&Mark { kind: MarkKind::Unwritten, from_ns, to_ns: now_ns(), count, step_ns: 0 })?;
        self.batch.get_mut().splice(0..0, marked.get_mut().drain(..));
        Ok(())
    }

    /// Closes the file under a name with a number and begins another one under the same name. If that is not possible,
    /// the old one gets longer: no record is lost.
    fn rotate_if_long(&mut self) {
        let Some(room) = self.room.clone() else { return };
        let limit = room.limits().rotate_at();
        if limit == 0 || self.in_file == 0 || self.file.length() + self.batch.get_mut().len() as u64 <= limit {
            return;
        }
        if let Err(error) = self.rotate(&room) {
            self.last_error = Some(io::Error::other(format!("no new file could be begun: {error}")));
        }
    }

    fn rotate(&mut self, room: &Room) -> io::Result<()> {
        let mut begin = PacketWriter::create(Vec::new(), &self.header)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fresh_path = self.path.with_file_name(format!(".{name}.new"));
        let mut fresh = AppendFile::open(&fresh_path)?;
        fresh.truncate(0)?;
        fresh.append(begin.get_mut())?;
        let closed = numbered(&self.path, self.next_number);
        fs::rename(&self.path, &closed)?;
        fs::rename(&fresh_path, &self.path)?;
        room.close(closed, self.file.length(), self.in_file);
        room.grew(fresh.length());
        self.next_number += 1;
        self.file = fresh;
        self.in_file = 0;
        Ok(())
    }

    /// Records that could not be written so far.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Why records could not be written, if that happened since the last call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.last_error.take()
    }

    /// Whether a limit was reached at which the recording is to end.
    #[must_use]
    pub fn ends_for_want_of_room(&self) -> bool {
        self.no_room && self.room.as_ref().is_some_and(|room| room.limits().when_full == WhenFull::Stop)
    }
}

/// `packets-IFACE.hpk` -> `packets-IFACE.000001.hpk`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}.{number:06}.{extension}"))
}

/// Behind the highest number that a file of this interface has.
fn next_number(path: &Path) -> u64 {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let numbers = path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let highest = numbers
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            number_of(&name).filter(|_| name.strip_prefix(&stem).is_some_and(|rest| rest.starts_with('.')))
        })
        .max();
    highest.map_or(1, |highest| highest + 1)
}

/// What an earlier run left.
#[derive(Default)]
struct Left {
    /// How far it can be used; 0 for a file that is empty or was cut inside its first header.
    whole_until: u64,
    /// Its last packet or note, or its begin.
    last_ns: u64,
    /// Whether it ended in order.
    ended: bool,
}

fn left_by_earlier_run(file: &mut AppendFile) -> io::Result<Left> {
    let length = file.length();
    if length == 0 {
        return Ok(Left::default());
    }
    let refuse = |error: PacketFileError| io::Error::other(format!("{error}: move the file away"));
    let mut reader = match PacketReader::new(BufReader::with_capacity(1 << 18, file.reader()?)) {
        Ok(reader) => reader,
        Err(PacketFileError::NotAPacketFile { found }) if MAGIC.starts_with(&found) => return Ok(Left::default()),
        Err(PacketFileError::Header { reason, .. }) if length < 1 << 16 && reason.contains("cut off") => {
            return Ok(Left::default());
        }
        Err(error) => return Err(refuse(error)),
    };
    let mut last_ns = 0;
    let mut ends = 0;
    while let Some(packet) = reader.next_packet().map_err(refuse)? {
        last_ns = packet.time_ns.max(last_ns);
        ends = reader.marks().len();
    }
    // An end is one if no packet stands behind it.
    let ended = reader.marks().len() > ends && reader.marks().last().is_some_and(|mark| mark.kind == MarkKind::End);
    let noted = reader.marks().iter().map(|mark| mark.to_ns).max().unwrap_or(0);
    let last_ns = last_ns.max(noted).max(reader.header().started_ns);
    Ok(Left { whole_until: reader.whole_until(), last_ns, ended })
}
