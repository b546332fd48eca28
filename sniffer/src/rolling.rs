//! A file that is closed under a name with a number when it has become long, and begun anew under its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::agent::AppendFile;

use crate::room::{NoRoom, Removed, Room, number_of};

/// Such a file.
#[derive(Debug)]
pub struct Rolling {
    path: PathBuf,
    /// What each file begins with.
    header: Vec<u8>,
    file: AppendFile,
    in_file: u64,
    next_number: u64,
    room: Option<Arc<Room>>,
    rotation_error: Option<io::Error>,
}

/// Why a piece was not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A limit was reached.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Rolling {
    /// Goes on with `file`, which stands at `path`; files that follow begin with `header`.
    #[must_use]
    pub fn new(path: &Path, file: AppendFile, header: Vec<u8>) -> Self {
        let next_number = next_number(path);
        Self { path: path.to_owned(), header, file, in_file: 0, next_number, room: None, rotation_error: None }
    }

    /// Keeps to the limits of `room` from now on.
    pub fn keep_within(&mut self, room: &Arc<Room>) {
        self.room = Some(Arc::clone(room));
    }

    /// The limits that are kept.
    #[must_use]
    pub fn room(&self) -> Option<&Room> {
        self.room.as_deref()
    }

    /// Why no new file could be begun, if that happened since the last call; the old one got longer then.
    pub fn take_rotation_error(&mut self) -> Option<io::Error> {
        self.rotation_error.take()
    }

    /// Appends a piece with so many packets, whole or not at all. Returns what had to be removed for it.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn append(&mut self, piece: &[u8], packets: u64) -> Result<Removed, AppendError> {
        let bytes = piece.len() as u64;
        self.rotate_if_long(bytes);
        let removed = match &self.room {
            Some(room) => room.reserve(bytes)?,
            None => Removed::default(),
        };
        if let Err(error) = self.file.append(piece) {
            if let Some(room) = &self.room {
                room.give_back(bytes);
            }
            return Err(error.into());
        }
        self.in_file += packets;
        Ok(removed)
    }

    fn rotate_if_long(&mut self, bytes: u64) {
        let Some(room) = self.room.clone() else { return };
        let limit = room.limits().rotate_at();
        if limit == 0 || self.in_file == 0 || self.file.length() + bytes <= limit {
            return;
        }
        if let Err(error) = self.rotate(&room) {
            self.rotation_error = Some(error);
        }
    }

    fn rotate(&mut self, room: &Room) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fresh_path = self.path.with_file_name(format!(".{name}.new"));
        let mut fresh = AppendFile::open(&fresh_path)?;
        fresh.truncate(0)?;
        fresh.append(&self.header)?;
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
    let extension = path.extension().unwrap_or_default();
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let highest = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = name.strip_prefix(&stem).is_some_and(|rest| rest.starts_with('.'))
                && Path::new(&name).extension() == Some(extension);
            number_of(&name).filter(|_| is_ours)
        })
        .max();
    highest.map_or(1, |highest| highest + 1)
}
