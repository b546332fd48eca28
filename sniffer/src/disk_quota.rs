//! The disk quota: how much packet files may take, and what happens when they have taken it.
//!
//! Only files that an agent of this user made are counted and removed, by what they take on the disk; and none is removed
//! where that cannot make room enough.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use trace::budget::free_bytes;

/// How often the free space is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);

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

/// Why there is no room.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// The limit is reached, and the recording ends there.
    #[error("the packet files have reached their limit of {limit} bytes")]
    Limit {
        /// The limit.
        limit: u64,
    },
    /// The file system has to keep more free.
    #[error("{free} bytes are free on the file system of the packet files, {wanted} are to stay free")]
    Free {
        /// Free bytes.
        free: u64,
        /// As it was told.
        wanted: u64,
    },
}

/// Older files that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub files: u64,
    /// Packets in them, as far as it is known: those of this run.
    pub packets: u64,
}

#[derive(Debug)]
struct Closed {
    path: PathBuf,
    bytes: u64,
    packets: u64,
}

#[derive(Debug, Default)]
struct State {
    closed: VecDeque<Closed>,
    used: u64,
    removed: Removed,
    free: u64,
    asked: Option<Instant>,
}

/// Keeps the limits, for all interfaces of a run.
#[derive(Debug)]
pub struct DiskQuota {
    folder: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

impl DiskQuota {
    /// Counts what is in the folder.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn new(folder: &Path, limits: Limits) -> io::Result<Self> {
        let mut state = State::default();
        let mut closed = Vec::new();
        let me = nix::unistd::geteuid().as_raw();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A file that has gone meanwhile takes nothing.
            let Ok(about) = entry.metadata() else { continue };
            if !about.is_file() || about.uid() != me || about.nlink() != 1 || !is_packet_file(&name) {
                continue;
            }
            let bytes = on_disk(&about);
            state.used += bytes;
            if number_of(&name).is_some() {
                closed.push((about.modified()?, Closed { path: entry.path(), bytes, packets: 0 }));
            }
        }
        closed.sort_by_key(|(modified, closed)| (*modified, closed.path.clone()));
        state.closed = closed.into_iter().map(|(_, closed)| closed).collect();
        Ok(Self { folder: folder.to_owned(), limits, state: Mutex::new(state) })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes of all packet files, and what was removed so far.
    #[must_use]
    pub fn used(&self) -> (u64, Removed) {
        self.state.lock().map(|state| (state.used, state.removed)).unwrap_or_default()
    }

    /// Room for so many bytes more; older files are removed for it, if that was told.
    ///
    /// # Errors
    /// If there is none.
    pub fn reserve(&self, bytes: u64) -> Result<Removed, NoRoom> {
        let Ok(mut state) = self.state.lock() else { return Ok(Removed::default()) };
        let mut removed = Removed::default();
        while let Err(refused) = self.check(&mut state, bytes) {
            if self.limits.when_full == WhenFull::Stop || !self.may_help(&state, bytes) {
                return Err(refused);
            }
            let Some(oldest) = state.closed.pop_front() else { return Err(refused) };
            // One that somebody else has removed has made room as well.
            let _ = fs::remove_file(&oldest.path);
            state.used = state.used.saturating_sub(oldest.bytes);
            state.free = state.free.saturating_add(oldest.bytes);
            removed.files += 1;
            removed.packets += oldest.packets;
        }
        state.used += bytes;
        state.free = state.free.saturating_sub(bytes);
        state.removed.files += removed.files;
        state.removed.packets += removed.packets;
        Ok(removed)
    }

    /// A file was begun, with so many bytes of header.
    pub fn grew(&self, bytes: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.used += bytes;
        }
    }

    /// A reservation was not used after all.
    pub fn give_back(&self, bytes: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.used = state.used.saturating_sub(bytes);
        }
    }

    /// A file was closed; it may be removed from now on.
    pub fn close(&self, path: PathBuf, bytes: u64, packets: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.closed.push_back(Closed { path, bytes, packets });
        }
    }

    /// Whether there was room enough without all closed files. If not, none of them is removed for nothing.
    fn may_help(&self, state: &State, bytes: u64) -> bool {
        let closed: u64 = state.closed.iter().map(|closed| closed.bytes).sum();
        let fits = self.limits.disk_bytes == 0 || state.used.saturating_sub(closed) + bytes <= self.limits.disk_bytes;
        let wanted = self.limits.keep_free_bytes;
        fits && (wanted == 0 || state.free.saturating_add(closed) >= wanted.saturating_add(bytes))
    }

    fn check(&self, state: &mut State, bytes: u64) -> Result<(), NoRoom> {
        if self.limits.disk_bytes > 0 && state.used + bytes > self.limits.disk_bytes {
            return Err(NoRoom::Limit { limit: self.limits.disk_bytes });
        }
        let wanted = self.limits.keep_free_bytes;
        if wanted > 0 {
            if state.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                // One that does not tell has as much as is wanted.
                state.free = free_bytes(&self.folder).unwrap_or(u64::MAX);
                state.asked = Some(Instant::now());
            }
            if state.free < wanted.saturating_add(bytes) {
                return Err(NoRoom::Free { free: state.free, wanted });
            }
        }
        Ok(())
    }
}

/// Bytes that a file takes: of one with holes less than its length.
fn on_disk(about: &fs::Metadata) -> u64 {
    about.len().min(about.blocks().saturating_mul(512))
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
    (number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| number.parse().ok())?
}
