//! What the files of dumpingd's records may take of the disk, and which of them go for it: its own, the oldest first, and
//! only where that makes room enough.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use trace::agent::open_to_read;
use trace::disk_quota::{ClosedFile, DiskLimits, DiskQuota, file_number, own_files};
pub use trace::disk_quota::{NoRoom, Removed};

/// The file that is being written; those that were closed have a number before the last dot.
pub const RECORDS: &str = "sockets.jsonl";
/// What a file takes on the disk comes in such steps, bytes: ext4, XFS and Btrfs by default.
const BLOCK: u64 = 4096;
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

/// Keeps the limits, and numbers the files that are closed.
#[derive(Debug)]
pub struct Quota {
    folder: PathBuf,
    limits: Limits,
    quota: DiskQuota,
    next_number: u64,
}

impl Quota {
    /// Counts our files in the folder.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn new(folder: &Path, limits: Limits) -> io::Result<Self> {
        // Whoever a file belongs to: its name is not used again.
        let names = fs::read_dir(folder)?.flatten().map(|entry| entry.file_name());
        let last = names.filter_map(|name| number_of(name.to_str()?)).max().unwrap_or(0);
        let mut closed: Vec<_> =
            own_files(folder)?.into_iter().filter_map(|file| Some((number_of(&file.name)?, file))).collect();
        closed.sort_by_key(|(number, _)| *number);
        let closed =
            closed.into_iter().map(|(_, file)| ClosedFile { path: file.path, bytes: file.bytes, records: None });
        let Limits { disk_bytes, keep_free_bytes } = limits;
        let shared = DiskLimits { disk_bytes, keep_free_bytes, rest_of_block: BLOCK, drop_oldest: true };
        let quota = DiskQuota::new(folder, shared, closed).with_counting(lines_in_file);
        Ok(Self { folder: folder.to_owned(), limits, quota, next_number: last.saturating_add(1) })
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.quota.used()
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
        self.quota.reserve(bytes)
    }

    /// What is there already, in the file that is written.
    pub fn grew(&mut self, bytes: u64) {
        self.quota.grew(bytes);
    }

    /// A reservation was not used after all.
    pub fn give_back(&mut self, bytes: u64) {
        self.quota.give_back(bytes);
    }

    /// Where the file that is written goes when it is closed.
    #[must_use]
    pub fn next_name(&self) -> PathBuf {
        self.folder.join(format!("sockets.{:06}.jsonl", self.next_number))
    }

    /// It was closed under [`Quota::next_name`], and may go from now on.
    pub fn close(&mut self, bytes: u64, records: u64) {
        self.quota.close(ClosedFile { path: self.next_name(), bytes, records: Some(records) });
        self.next_number = self.next_number.saturating_add(1);
    }
}

/// The number in `sockets.NNNNNN.jsonl`.
#[must_use]
pub fn number_of(name: &str) -> Option<u64> {
    file_number(name.strip_prefix("sockets.")?.strip_suffix(".jsonl")?)
}

fn lines_in_file(path: &Path) -> u64 {
    lines_in(path).unwrap_or(0)
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
