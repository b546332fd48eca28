//! What the files of dumpingd's records may take of the disk, and which of them go for it: its own, the oldest first, and
//! only where that makes room enough.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trace::agent::open_to_read;
use trace::budget::free_bytes;

/// The file that is being written; those that were closed have a number before the last dot.
pub const RECORDS: &str = "sockets.jsonl";
/// What a file takes on the disk comes in such steps, bytes: ext4, XFS and Btrfs by default.
const BLOCK: u64 = 4096;
/// How often the free space is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// A file is closed when it takes this part of the limit, within these bounds.
const FILES: u64 = 16;
const MIN_FILE_BYTES: u64 = 16 << 10;
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Limits of what the files take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// All of them together, bytes; 0 = no limit.
    pub disk_bytes: u64,
    /// What has to stay free on the file system, bytes.
    pub keep_free_bytes: u64,
}

impl Limits {
    /// At so many bytes a file is closed; without limits none is.
    #[must_use]
    pub fn rotate_at(&self) -> u64 {
        match (self.disk_bytes, self.keep_free_bytes) {
            (0, 0) => u64::MAX,
            (0, _) => MAX_FILE_BYTES,
            (limit, _) => (limit / FILES).clamp(MIN_FILE_BYTES, MAX_FILE_BYTES),
        }
    }
}

/// Why there is no room.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// Removing files does not help any more.
    #[error("the limit of {0} bytes is reached (--disk-limit)")]
    Limit(u64),
    /// Somebody else's files take it.
    #[error("less than {0} bytes are free on the file system (--keep-free)")]
    Free(u64),
}

/// Files that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub files: u64,
    /// Records in them.
    pub records: u64,
}

#[derive(Debug)]
struct Closed {
    path: PathBuf,
    bytes: u64,
    /// `None` = of an earlier run: counted when it goes.
    records: Option<u64>,
}

/// Keeps the limits.
#[derive(Debug)]
pub struct Quota {
    folder: PathBuf,
    limits: Limits,
    closed: VecDeque<Closed>,
    used: u64,
    free: u64,
    asked: Option<Instant>,
    next_number: u64,
}

impl Quota {
    /// Counts our files in the folder.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn new(folder: &Path, limits: Limits) -> io::Result<Self> {
        let me = nix::unistd::geteuid().as_raw();
        let (mut used, mut last) = (0, 0);
        let mut closed = Vec::new();
        for entry in fs::read_dir(folder)?.flatten() {
            let name = entry.file_name();
            let Some(number) = name.to_str().and_then(number_of) else { continue };
            // Whoever it belongs to: its name is not used again.
            last = last.max(number);
            let Ok(about) = entry.metadata() else { continue };
            if about.is_file() && about.uid() == me && about.nlink() == 1 {
                used += about.len();
                closed.push((number, Closed { path: entry.path(), bytes: about.len(), records: None }));
            }
        }
        closed.sort_by_key(|(number, _)| *number);
        let closed = closed.into_iter().map(|(_, closed)| closed).collect();
        let next_number = last.saturating_add(1);
        Ok(Self { folder: folder.to_owned(), limits, closed, used, free: 0, asked: None, next_number })
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// At so many bytes a file is closed.
    #[must_use]
    pub fn rotate_at(&self) -> u64 {
        self.limits.rotate_at()
    }

    /// Room for so many bytes more; the oldest closed files are removed for it.
    ///
    /// # Errors
    /// If there is none. Files are only removed if that makes enough.
    pub fn reserve(&mut self, bytes: u64) -> Result<Removed, NoRoom> {
        let mut removed = Removed::default();
        let (missing, why) = self.missing(bytes);
        let removable: u64 = self.closed.iter().map(|closed| closed.bytes).sum();
        if missing > removable {
            return Err(why);
        }
        let mut made = 0;
        while made < missing {
            let Some(oldest) = self.closed.pop_front() else { return Err(why) };
            let records = oldest.records.unwrap_or_else(|| lines_in(&oldest.path).unwrap_or(0));
            match fs::remove_file(&oldest.path) {
                // One that somebody else has removed has made room as well.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
            made += oldest.bytes;
            removed.files += 1;
            removed.records += records;
        }
        self.used = self.used.saturating_sub(made) + bytes;
        self.free = self.free.saturating_add(made).saturating_sub(bytes);
        Ok(removed)
    }

    /// What is there already, in the file that is written.
    pub fn grew(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// A reservation was not used after all.
    pub fn give_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Where the file that is written goes when it is closed.
    #[must_use]
    pub fn next_name(&self) -> PathBuf {
        self.folder.join(format!("sockets.{:06}.jsonl", self.next_number))
    }

    /// It was closed under [`Quota::next_name`], and may go from now on.
    pub fn close(&mut self, bytes: u64, records: u64) {
        self.closed.push_back(Closed { path: self.next_name(), bytes, records: Some(records) });
        self.next_number = self.next_number.saturating_add(1);
    }

    /// How many bytes are missing for so many more, and which limit it is.
    fn missing(&mut self, bytes: u64) -> (u64, NoRoom) {
        let limit = self.limits.disk_bytes;
        // The last block of a file is a whole one on the disk.
        let blocks = (self.closed.len() as u64 + 1) * BLOCK;
        let over = if limit > 0 { (self.used + bytes + blocks).saturating_sub(limit) } else { 0 };
        let keep = self.limits.keep_free_bytes;
        let mut short = 0;
        if keep > 0 {
            if self.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                // One that does not tell has as much as is wanted.
                self.free = free_bytes(&self.folder).unwrap_or(u64::MAX);
                self.asked = Some(Instant::now());
            }
            short = keep.saturating_add(bytes).saturating_sub(self.free);
        }
        (over.max(short), if short > over { NoRoom::Free(keep) } else { NoRoom::Limit(limit) })
    }
}

/// The number in `sockets.NNNNNN.jsonl`.
#[must_use]
pub fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("sockets.")?.strip_suffix(".jsonl")?;
    (number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| number.parse().ok())?
}

fn lines_in(path: &Path) -> io::Result<u64> {
    let mut file = open_to_read(path)?;
    let mut chunk = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(lines),
            got => lines += chunk[..got].iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }
}
