//! A file that is closed under a name with a number when it has become long, and begun anew under its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::agent::AppendFile;

use crate::disk_quota::{DiskQuota, NoRoom, Removed, number_of};

/// Names that are tried for a new file.
const FRESH_NAMES: u32 = 16;

/// Such a file.
#[derive(Debug)]
pub struct Rolling {
    path: PathBuf,
    /// What each file begins with.
    header: Vec<u8>,
    file: AppendFile,
    in_file: u64,
    next_number: u64,
    quota: Option<Arc<DiskQuota>>,
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
        Self { path: path.to_owned(), header, file, in_file: 0, next_number, quota: None, rotation_error: None }
    }

    /// Keeps to the limits of `quota` from now on.
    pub fn keep_within(&mut self, quota: &Arc<DiskQuota>) {
        self.quota = Some(Arc::clone(quota));
    }

    /// The limits that are kept.
    #[must_use]
    pub fn quota(&self) -> Option<&DiskQuota> {
        self.quota.as_deref()
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
        let removed = match &self.quota {
            Some(quota) => quota.reserve(bytes)?,
            None => Removed::default(),
        };
        if let Err(error) = self.file.append(piece) {
            if let Some(quota) = &self.quota {
                quota.give_back(bytes);
            }
            return Err(error.into());
        }
        self.in_file += packets;
        Ok(removed)
    }

    fn rotate_if_long(&mut self, bytes: u64) {
        let Some(quota) = self.quota.clone() else { return };
        let limit = quota.limits().rotate_at();
        if limit == 0 || self.in_file == 0 || self.file.length() + bytes <= limit {
            return;
        }
        if let Err(error) = self.rotate(&quota) {
            self.rotation_error = Some(error);
        }
    }

    fn rotate(&mut self, quota: &DiskQuota) -> io::Result<()> {
        let (fresh_path, mut fresh) = self.begin_fresh()?;
        fresh.append(&self.header)?;
        let closed = numbered(&self.path, self.next_number);
        fs::rename(&self.path, &closed)?;
        fs::rename(&fresh_path, &self.path)?;
        quota.close(closed, self.file.length(), self.in_file);
        quota.grew(fresh.length());
        self.next_number += 1;
        self.file = fresh;
        self.in_file = 0;
        Ok(())
    }

    /// An empty file under a name of its own, whatever stands under that name or was put there.
    fn begin_fresh(&self) -> io::Result<(PathBuf, AppendFile)> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut refused = io::Error::other("no name is free for a new file");
        for number in 0..FRESH_NAMES {
            let path = self.path.with_file_name(format!(".{name}.{number}.new"));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    refused = error;
                    continue;
                }
                _ => {}
            }
            match AppendFile::open(&path) {
                Ok(file) if file.length() == 0 => return Ok((path, file)),
                Ok(_) => {}
                Err(error) => refused = error,
            }
        }
        Err(refused)
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
