//! What an agent's files may take of the disk, and which of them go for it: its own, the oldest first, and only where that
//! makes room enough.
//!
//! Behind feature `agent`. Each agent says which files are its own, and in which order they were closed.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::budget::free_bytes;

/// How often the free space is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// What an agent's files may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskLimits {
    /// All of them together, bytes; 0 = no limit.
    pub disk_bytes: u64,
    /// What has to stay free on the file system, bytes; 0 = nothing.
    pub keep_free_bytes: u64,
    /// What each closed file and the one that is written take beyond their length, bytes: the rest of a block.
    pub rest_of_block: u64,
    /// Whether the oldest closed files are removed for room; if not, there is none at a limit.
    pub drop_oldest: bool,
}

/// Why there is no room.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// The agent's own files have reached their limit.
    #[error("the files have reached their limit of {limit} bytes (--disk-limit)")]
    Limit {
        /// The limit.
        limit: u64,
    },
    /// The file system has to keep more free.
    #[error("{free} bytes are free on the file system of the files, {wanted} are to stay free (--keep-free)")]
    Free {
        /// Free bytes.
        free: u64,
        /// Bytes that are to stay free.
        wanted: u64,
    },
}

/// Files that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub files: u64,
    /// Records in them, as far as it is known.
    pub records: u64,
}

/// A file that nobody writes any more.
#[derive(Clone, Debug)]
pub struct ClosedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it takes, bytes.
    pub bytes: u64,
    /// Records in it; `None` = of an earlier run, and counted when it goes, by [`DiskQuota::with_counting`].
    pub records: Option<u64>,
}

/// A regular file that an agent of this user made: no link, and no other name for it.
#[derive(Clone, Debug)]
pub struct OwnFile {
    /// Its name in the folder.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// What it takes on the disk: of a file with holes less than its length, bytes.
    pub bytes: u64,
    /// When it was written last.
    pub modified: SystemTime,
}

/// The files of a folder that belong to this user. One that goes meanwhile is passed over.
///
/// # Errors
/// If the folder cannot be listed.
pub fn own_files(folder: &Path) -> io::Result<Vec<OwnFile>> {
    let me = nix::unistd::geteuid().as_raw();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        if about.is_file() && about.uid() == me && about.nlink() == 1 {
            files.push(OwnFile {
                name: entry.file_name().to_string_lossy().into_owned(),
                path: entry.path(),
                bytes: about.len().min(about.blocks().saturating_mul(512)),
                modified: about.modified()?,
            });
        }
    }
    Ok(files)
}

/// The number of a closed file, of the digits in its name: six at least.
#[must_use]
pub fn file_number(digits: &str) -> Option<u64> {
    (digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Keeps the limits.
#[derive(Debug)]
pub struct DiskQuota {
    folder: PathBuf,
    limits: DiskLimits,
    closed: VecDeque<ClosedFile>,
    used: u64,
    removed: Removed,
    free: u64,
    asked: Option<Instant>,
    count: fn(&Path) -> u64,
}

impl DiskQuota {
    /// The quota of files in `folder`, of which those that were closed are `closed`, oldest first.
    #[must_use]
    pub fn new(folder: &Path, limits: DiskLimits, closed: impl IntoIterator<Item = ClosedFile>) -> Self {
        let closed: VecDeque<_> = closed.into_iter().collect();
        let used = closed.iter().map(|file| file.bytes).sum();
        Self {
            folder: folder.to_owned(),
            limits,
            closed,
            used,
            removed: Removed::default(),
            free: 0,
            asked: None,
            count: |_| 0,
        }
    }

    /// Counts the records of files of earlier runs by `count` when they go.
    #[must_use]
    pub fn with_counting(self, count: fn(&Path) -> u64) -> Self {
        Self { count, ..self }
    }

    /// Bytes of all files.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// What was removed so far.
    #[must_use]
    pub const fn removed(&self) -> Removed {
        self.removed
    }

    /// Room for so many bytes more. What was removed for it, if that was wanted.
    ///
    /// # Errors
    /// If there is none. Files are only removed if that makes enough.
    pub fn reserve(&mut self, bytes: u64) -> Result<Removed, NoRoom> {
        let (missing, why) = self.missing(bytes);
        let removable: u64 = match self.limits.drop_oldest {
            true => self.closed.iter().map(|file| file.bytes + self.limits.rest_of_block).sum(),
            false => 0,
        };
        if missing > removable {
            return Err(why);
        }
        let before = self.removed;
        let mut made = 0;
        while made < missing {
            let Some(freed) = self.remove_oldest() else { return Err(why) };
            made += freed;
        }
        self.used += bytes;
        self.free = self.free.saturating_sub(bytes);
        let Removed { files, records } = self.removed;
        Ok(Removed { files: files - before.files, records: records - before.records })
    }

    /// Removes the oldest file: how much room that makes, bytes; `None` if it cannot be removed.
    fn remove_oldest(&mut self) -> Option<u64> {
        let oldest = self.closed.front()?;
        let records = oldest.records.unwrap_or_else(|| (self.count)(&oldest.path));
        match fs::remove_file(&oldest.path) {
            // One that somebody else has removed has made room as well.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return None,
            _ => {}
        }
        let bytes = oldest.bytes;
        self.closed.pop_front();
        self.used = self.used.saturating_sub(bytes);
        self.free = self.free.saturating_add(bytes);
        self.removed.files += 1;
        self.removed.records += records;
        Some(bytes + self.limits.rest_of_block)
    }

    /// What is written or was there already, without having been reserved.
    pub fn grew(&mut self, bytes: u64) {
        self.used += bytes;
    }

    /// A reservation was not used after all.
    pub fn give_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// A file was closed, and may go from now on; its bytes were reserved.
    pub fn close(&mut self, file: ClosedFile) {
        self.closed.push_back(file);
    }

    /// How many bytes are missing for so many more, and which limit it is.
    fn missing(&mut self, bytes: u64) -> (u64, NoRoom) {
        let limit = self.limits.disk_bytes;
        let rests = (self.closed.len() as u64 + 1).saturating_mul(self.limits.rest_of_block);
        let takes = self.used.saturating_add(bytes).saturating_add(rests);
        let over = if limit > 0 { takes.saturating_sub(limit) } else { 0 };
        let wanted = self.limits.keep_free_bytes;
        let mut short = 0;
        if wanted > 0 {
            if self.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                // One that does not tell has as much as is wanted.
                self.free = free_bytes(&self.folder).unwrap_or(u64::MAX);
                self.asked = Some(Instant::now());
            }
            short = wanted.saturating_add(bytes).saturating_sub(self.free);
        }
        let why = if short > over { NoRoom::Free { free: self.free, wanted } } else { NoRoom::Limit { limit } };
        (over.max(short), why)
    }
}
