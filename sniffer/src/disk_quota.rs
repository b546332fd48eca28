//! The disk quota: how much packet files may take, and what happens when they have taken it.
//!
//! The limits are kept by [`trace::disk_quota`], for all interfaces together.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trace::disk_quota::{ClosedFile, DiskLimits, DiskQuota as Quota, file_number, own_files};
pub use trace::disk_quota::{NoRoom, Removed};

/// `IFNAMSIZ` without its end.
const MAX_INTERFACE_NAME: usize = 15;

/// What to do when there is no more room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The recording ends.
    #[default]
    Stop,
    /// The oldest packet files are removed.
    DropOldest,
}

/// Limits of what packet files take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// All packet files of the folder together, bytes; 0 = no limit.
    pub disk_bytes: u64,
    /// What has to stay free on the file system, bytes.
    pub keep_free_bytes: u64,
    /// A file is closed and another one begun when it has so many bytes; 0 = never.
    pub file_bytes: u64,
    /// What happens at `disk_bytes` or `keep_free_bytes`.
    pub when_full: WhenFull,
}

impl Limits {
    /// The size at which files are rotated: as told, else so that removing the oldest one leaves most of the others.
    #[must_use]
    pub fn rotate_at(&self) -> u64 {
        match (self.file_bytes, self.when_full, self.disk_bytes) {
            (0, WhenFull::DropOldest, 0) => 256 << 20,
            (0, WhenFull::DropOldest, limit) => (limit / 16).max(64 << 10),
            (bytes, ..) => bytes,
        }
    }
}

/// Keeps the limits, for all interfaces of a run.
#[derive(Debug)]
pub struct DiskQuota {
    limits: Limits,
    quota: Mutex<Quota>,
}

impl DiskQuota {
    /// Counts what is in the folder.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn new(folder: &Path, limits: Limits) -> io::Result<Self> {
        let mut files = own_files(folder)?;
        files.retain(|file| is_packet_file(&file.name));
        files.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        // Those that are written, now or by an earlier run that ended at once, are not removed.
        let (closed, written): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| number_of(&file.name).is_some());
        // Packets of earlier runs are not counted when their file goes.
        let closed = closed.into_iter().map(|file| ClosedFile { path: file.path, bytes: file.bytes, records: None });
        let shared = DiskLimits {
            disk_bytes: limits.disk_bytes,
            keep_free_bytes: limits.keep_free_bytes,
            rest_of_block: 0,
            drop_oldest: limits.when_full == WhenFull::DropOldest,
        };
        let mut quota = Quota::new(folder, shared, closed);
        quota.grew(written.iter().map(|file| file.bytes).sum());
        Ok(Self { limits, quota: Mutex::new(quota) })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes of all packet files, and what was removed so far.
    #[must_use]
    pub fn used(&self) -> (u64, Removed) {
        self.with(|quota| (quota.used(), quota.removed()))
    }

    /// Room for so many bytes more; older files are removed for it, if that was told.
    ///
    /// # Errors
    /// If there is none.
    pub fn reserve(&self, bytes: u64) -> Result<Removed, NoRoom> {
        self.with(|quota| quota.reserve(bytes))
    }

    /// A file was begun, with so many bytes of header.
    pub fn grew(&self, bytes: u64) {
        self.with(|quota| quota.grew(bytes));
    }

    /// A reservation was not used after all.
    pub fn give_back(&self, bytes: u64) {
        self.with(|quota| quota.give_back(bytes));
    }

    /// A file was closed; it may be removed from now on.
    pub fn close(&self, path: PathBuf, bytes: u64, packets: u64) {
        self.with(|quota| quota.close(ClosedFile { path, bytes, records: Some(packets) }));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Quota) -> T) -> T {
        work(&mut self.quota.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a file of the folder is one of ours that holds packets: `packets-INTERFACE.hpk`, with a number if it was closed.
fn is_packet_file(name: &str) -> bool {
    let stem = name.strip_suffix(".hpk").or_else(|| name.strip_suffix(".pcapng"));
    let Some(interface) = stem.and_then(|stem| stem.strip_prefix("packets-")) else { return false };
    let interface = match number_of(name) {
        Some(_) => interface.rsplit_once('.').map_or("", |(interface, _)| interface),
        None => interface,
    };
    (1..=MAX_INTERFACE_NAME).contains(&interface.len())
}

/// The number in the name of a file that was closed: `packets-IFACE.NNNNNN.hpk`.
#[must_use]
pub fn number_of(name: &str) -> Option<u64> {
    let (stem, _) = name.rsplit_once('.')?;
    let (_, number) = stem.rsplit_once('.')?;
    file_number(number)
}
