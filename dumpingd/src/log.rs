//! `sockets.jsonl`: begun, or continued where an earlier run left it; closed when it is large, within a quota.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use trace::agent::AppendFile;
use trace::socket::SocketRecord;

use crate::quota::{Limits, Quota, RECORDS, Removed};

/// A file is not closed before it is so many times as long as what it began with, so that most of it is news, unless it is
/// so many times as long as others: then what it began with is too much for the limit anyway.
const NEWS: u64 = 4;

/// What was made and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records made.
    pub records: u64,
    /// Of these: not written, as there was no room.
    pub unwritten: u64,
    /// Files that had to go.
    pub removed: Removed,
}

/// Appends records; a batch is in the file entirely or not at all.
#[derive(Debug)]
pub struct SocketLog {
    path: PathBuf,
    file: AppendFile,
    quota: Quota,
    /// Records in the file, those of earlier runs among them.
    in_file: u64,
    /// What the file began with, bytes.
    beginning: u64,
    batch: Vec<u8>,
    batched: u64,
    counts: Counts,
    written_last: Option<SystemTime>,
}

impl SocketLog {
    /// Opens the file in this folder and cuts what a killed run left of its last line.
    ///
    /// # Errors
    /// If it cannot be opened, or is locked.
    pub fn open(folder: &Path, limits: Limits) -> io::Result<Self> {
        let path = folder.join(RECORDS);
        let written_last = fs::symlink_metadata(&path).and_then(|about| about.modified()).ok();
        let mut file = AppendFile::open(&path)?;
        let (whole, in_file) = whole_lines(&mut file)?;
        file.truncate(whole)?;
        let mut quota = Quota::new(folder, limits)?;
        quota.grew(whole);
        let counts = Counts::default();
        Ok(Self { path, file, quota, in_file, beginning: 0, batch: Vec::new(), batched: 0, counts, written_last })
    }

    /// How long ago an earlier run wrote its last record; `None` = there was none.
    #[must_use]
    pub fn silent_for(&self) -> Option<Duration> {
        self.written_last.map(|last| last.elapsed().unwrap_or(Duration::ZERO))
    }

    /// What was made so far and what became of it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of all files.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.quota.used()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If it cannot be put into JSON.
    pub fn write(&mut self, record: &SocketRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.batch, record)?;
        self.batch.push(b'\n');
        self.batched += 1;
        self.counts.records += 1;
        Ok(())
    }

    /// Hands all records to the operating system. When there is no room for them (a full disk, the quota) they are dropped
    /// and counted.
    ///
    /// # Errors
    /// Why they could not be written; later ones may be.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.append();
        if written.is_err() {
            self.counts.unwritten += self.batched;
        } else {
            self.in_file += self.batched;
        }
        self.batch.clear();
        self.batched = 0;
        written
    }

    fn append(&mut self) -> io::Result<()> {
        let bytes = self.batch.len() as u64;
        let removed = self.quota.reserve(bytes).map_err(io::Error::other)?;
        self.counts.removed.files += removed.files;
        self.counts.removed.records += removed.records;
        self.file.append(&self.batch).inspect_err(|_| self.quota.give_back(bytes))
    }

    /// Whether the file is large enough to be closed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let at = self.quota.rotate_at();
        self.file.length() >= self.beginning.saturating_mul(NEWS).clamp(at, at.saturating_mul(NEWS))
    }

    /// Closes the file under the next number and begins another one.
    ///
    /// # Errors
    /// If the folder does not let us; then the file goes on, and is closed later.
    pub fn close_file(&mut self) -> io::Result<()> {
        let closed = self.quota.next_name();
        fs::rename(&self.path, &closed)?;
        match AppendFile::open(&self.path) {
            Ok(file) => {
                self.quota.close(self.file.length(), self.in_file);
                self.file = file;
                (self.in_file, self.beginning) = (0, 0);
                Ok(())
            }
            Err(error) => {
                // It keeps its name and is tried again when it has grown by as much.
                self.beginning = self.file.length();
                fs::rename(&closed, &self.path)?;
                Err(error)
            }
        }
    }

    /// What is in the file now is what it began with.
    pub fn has_begun(&mut self) {
        self.beginning = self.file.length();
    }
}

/// Where the last whole line ends, and how many there are.
fn whole_lines(file: &mut AppendFile) -> io::Result<(u64, u64)> {
    let mut reader = file.reader()?;
    let mut chunk = vec![0u8; 1 << 16];
    let (mut at, mut whole, mut lines) = (0u64, 0u64, 0u64);
    loop {
        let got = reader.read(&mut chunk)?;
        if got == 0 {
            return Ok((whole, lines));
        }
        if let Some(end) = chunk[..got].iter().rposition(|&byte| byte == b'\n') {
            whole = at + end as u64 + 1;
            lines += chunk[..got].iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        at += got as u64;
    }
}
