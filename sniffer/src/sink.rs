//! The packet file of one interface: begun, or continued where an earlier run left it.

use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use trace::agent::{AppendFile, now_ns};
use trace::capture_note::{CaptureNote, CaptureNoteKind};
use trace::packet::{MAGIC, Packet, PacketFileError, PacketFileHeader, PacketReader, PacketWriter, PlainPacket};

use crate::disk_quota::{DiskQuota, WhenFull};
use crate::rolling::{AppendError, Rolling};

/// Records wait until there are so many bytes of them, or until [`PacketSink::flush`].
pub const BATCH_BYTES: usize = 256 << 10;

/// Appends packet records; a batch is in the file entirely or not at all.
#[derive(Debug)]
pub struct PacketSink {
    file: Rolling,
    batch: PacketWriter<Vec<u8>>,
    batched: u64,
    unwritten: u64,
    /// Since when records could not be written, and how many it were.
    gap: Option<(u64, u64)>,
    last_error: Option<io::Error>,
    no_room: bool,
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
        let mut batch = batch?;
        if !begins && (!left.ended || cut_bytes > 0) {
            let to_ns = header.started_ns;
            batch.note(&CaptureNote {
                kind: CaptureNoteKind::Restart,
                from_ns: left.last_ns,
                to_ns,
                count: 0,
                step_ns: 0,
            })?;
        }
        file.append(batch.get_mut())?;
        batch.get_mut().clear();
        let mut begin = PacketWriter::create(Vec::new(), header)?;
        let file = Rolling::new(path, file, std::mem::take(begin.get_mut()));
        Ok(Self { file, batch, batched: 0, unwritten: 0, gap: None, last_error: None, no_room: false })
    }

    /// Keeps to the limits of `quota` from now on.
    pub fn keep_within(&mut self, quota: &Arc<DiskQuota>) {
        self.file.keep_within(quota);
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

    /// Adds the record of a plain packet.
    #[inline]
    pub fn write_plain(&mut self, packet: &PlainPacket<'_>) {
        self.batch.write_plain(packet);
        self.batched += 1;
        if self.batch.get_mut().len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Adds a note.
    ///
    /// # Errors
    /// Never because of the disk.
    pub fn note(&mut self, note: &CaptureNote) -> io::Result<()> {
        self.batch.note(note)
    }

    /// Hands all records to the operating system. When it cannot take them they are dropped and counted: the memory
    /// is needed for those that follow, and the file stays readable.
    pub fn flush(&mut self) {
        if self.batch.get_mut().is_empty() {
            return;
        }
        let result = self.note_gap().map_err(AppendError::Io);
        let result = result.and_then(|()| self.file.append(self.batch.get_mut(), self.batched));
        self.batch.get_mut().clear();
        let batched = std::mem::take(&mut self.batched);
        match result {
            Ok(removed) => {
                self.gap = None;
                if removed.files > 0 {
                    let (to_ns, count) = (now_ns(), removed.records);
                    // Goes with the next batch; a note about what is gone cannot fail in memory.
                    let _ = self.note(&CaptureNote {
                        kind: CaptureNoteKind::Removed,
                        from_ns: 0,
                        to_ns,
                        count,
                        step_ns: 0,
                    });
                }
            }
            Err(error) => {
                self.no_room |= matches!(error, AppendError::NoRoom(_));
                self.unwritten += batched;
                let (since, count) = self.gap.unwrap_or((now_ns(), 0));
                self.gap = Some((since, count + batched));
                self.last_error = Some(io::Error::other(error));
            }
        }
        if let Some(error) = self.file.take_rotation_error() {
            self.last_error = Some(io::Error::other(format!("no new file could be begun: {error}")));
        }
    }

    /// In front of the first records that can be written again it says how many could not.
    fn note_gap(&mut self) -> io::Result<()> {
        let Some((from_ns, count)) = self.gap else { return Ok(()) };
        let mut noted = PacketWriter::append_to(Vec::with_capacity(64));
        noted.note(&CaptureNote { kind: CaptureNoteKind::Unwritten, from_ns, to_ns: now_ns(), count, step_ns: 0 })?;
        self.batch.get_mut().splice(0..0, noted.get_mut().drain(..));
        Ok(())
    }

    /// Whether there are records that wait to be written.
    #[must_use]
    pub fn is_waiting(&mut self) -> bool {
        !self.batch.get_mut().is_empty()
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
        self.no_room && self.file.quota().is_some_and(|quota| quota.limits().when_full == WhenFull::Stop)
    }
}

/// What an earlier run left.
#[derive(Default)]
struct EarlierRun {
    /// How far it can be used; 0 for a file that is empty or was cut inside its first header.
    whole_until: u64,
    /// Its last packet or note, or its begin.
    last_ns: u64,
    /// Whether it ended in order.
    ended: bool,
}

fn left_by_earlier_run(file: &mut AppendFile) -> io::Result<EarlierRun> {
    let length = file.length();
    if length == 0 {
        return Ok(EarlierRun::default());
    }
    let refuse = |error: PacketFileError| io::Error::other(format!("{error}: move the file away"));
    let mut reader = match PacketReader::new(BufReader::with_capacity(1 << 18, file.reader()?)) {
        Ok(reader) => reader,
        Err(PacketFileError::NotAPacketFile { found }) if MAGIC.starts_with(&found) => return Ok(EarlierRun::default()),
        Err(PacketFileError::Header { reason, .. }) if length < 1 << 16 && reason.contains("cut off") => {
            return Ok(EarlierRun::default());
        }
        Err(error) => return Err(refuse(error)),
    };
    let mut last_ns = 0;
    let mut ends = 0;
    while let Some(packet) = reader.next_packet().map_err(refuse)? {
        last_ns = packet.time_ns.max(last_ns);
        ends = reader.notes().len();
    }
    // An end is one if no packet stands behind it.
    let ended =
        reader.notes().len() > ends && reader.notes().last().is_some_and(|note| note.kind == CaptureNoteKind::End);
    let noted = reader.notes().iter().map(|note| note.to_ns).max().unwrap_or(0);
    let last_ns = last_ns.max(noted).max(reader.header().started_ns);
    Ok(EarlierRun { whole_until: reader.whole_until(), last_ns, ended })
}
