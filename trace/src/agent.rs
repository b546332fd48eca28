//! What the recording agents have in common: who and where they are, and files that only they can read and that a
//! kill, a full disk or a planted link cannot spoil.
//!
//! Behind feature `agent`: readers of captures need none of it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;

/// How often a lock is tried, and how long between.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(30);

/// Nanoseconds since the epoch by the wall clock; 0 for a clock before 1970.
#[must_use]
pub fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

/// The host's name, as `gethostname` has it (that of the UTS namespace).
///
/// # Errors
/// If the kernel does not tell it.
pub fn host_name() -> io::Result<String> {
    Ok(nix::unistd::gethostname()?.to_string_lossy().into_owned())
}

/// The inode of the network namespace in which this process runs.
///
/// # Errors
/// If /proc is not mounted.
pub fn network_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

/// Makes the folder into which an agent writes, for its user and group only, unless it exists.
///
/// # Errors
/// If it cannot be made, or something else has that name.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(path)
}

/// Makes the folder into which an agent writes and answers its path without links, or says why it is not to be trusted: it
/// has to be no link, to belong to root, to us or to `user`, who goes on, and nobody else may write into it.
///
/// # Errors
/// If it cannot be made, or is not to be trusted.
pub fn private_folder(path: &Path, user: u32) -> io::Result<PathBuf> {
    make_folder(path)?;
    let about = fs::symlink_metadata(path)?;
    let me = nix::unistd::geteuid().as_raw();
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !about.is_dir() {
        return refused("is a link or no folder: name the folder itself".to_owned());
    }
    if ![0, me, user].contains(&about.uid()) {
        return refused(format!(
            "belongs to user {}, who could put anything into it: choose another folder",
            about.uid()
        ));
    }
    if about.mode() & 0o022 != 0 {
        let mode = about.mode() & 0o7777;
        return refused(format!("others may write into it (mode {mode:o}): choose another folder, or chmod 0750 it"));
    }
    path.canonicalize()
}

/// What stands in a small file that an agent of this user wrote; `None` = there is none. Whatever lies there, nothing waits.
///
/// # Errors
/// If it cannot be read, is no regular file of this user with one name only, or is longer than `most` bytes.
pub fn read_own(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut content = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::other(format!("{} is longer than {most} bytes: move it away", path.display())));
    }
    Ok(Some(content))
}

/// Opens a file that an agent of this user wrote, for reading, as [`read_own`] does.
///
/// # Errors
/// If it cannot be opened or is none such.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_own(OpenOptions::new().read(true), path)
}

/// Opens a regular file of this user with one name only, over no link and without waiting for anybody (of a pipe).
fn open_own(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = how.mode(0o600).custom_flags(flags.bits()).open(path)?;
    let about = file.metadata()?;
    let me = nix::unistd::geteuid().as_raw();
    if !about.is_file() || about.uid() != me || about.nlink() != 1 {
        return Err(io::Error::other(format!(
            "is no regular file of user {me} with one name only (owner {}, {} names): move it away",
            about.uid(),
            about.nlink()
        )));
    }
    Ok(file)
}

/// A file that grows by whole pieces: a piece is in it entirely or not at all, unless the process is killed inside
/// the one system call that writes it.
///
/// It is readable by its user only, was not reached over a symbolic link, and is locked: two agents that were started
/// by mistake for one folder do not mix their records.
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    length: u64,
}

impl AppendFile {
    /// Opens or makes the file, for reading as well, standing at its beginning.
    ///
    /// # Errors
    /// If it cannot be opened, is no regular file of this user, has several names, or another process holds it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = open_own(OpenOptions::new().read(true).write(true).create(true).truncate(false), path)?;
        lock(&file)?;
        // Its length under the lock: whoever held it may have been writing still.
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }

    /// How long the file is, bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads what is there, from the beginning.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn reader(&mut self) -> io::Result<impl Read + '_> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(&mut self.file)
    }

    /// Cuts the file: what lies behind `length` was left by a run that was killed.
    ///
    /// # Errors
    /// If it cannot be cut.
    pub fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }

    /// Appends a piece, whole; when that fails (a full disk), the file is again as it was.
    ///
    /// # Errors
    /// If the piece could not be written. It may be tried again.
    pub fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        match self.file.write_all_at(piece, self.length) {
            Ok(()) => {
                self.length += piece.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }
}

/// A process that has just been killed may hold its lock for a moment still, and one that was started by whoever held it
/// has it until it becomes another program.
fn lock(file: &File) -> io::Result<()> {
    for tries_left in (0..LOCK_TRIES).rev() {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if tries_left > 0 => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("another process is writing it: stop that one first, or write to another folder"))
}

/// Writes a small file so that readers see the old or the new one and nothing between, readable by its user only.
///
/// On a full disk there is no room for both: then the old one is overwritten in place, since what an agent has to say
/// matters most where it could not write the rest.
///
/// # Errors
/// If the folder cannot be written.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path)?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&temporary, path));
    let Err(error) = written else { return Ok(()) };
    // The cause is what the caller has to know; a temporary file that stays behind does no harm.
    let _ = fs::remove_file(&temporary);
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return overwrite(path, content);
    }
    Err(error)
}

/// What is longer than before needs room, and is written first: if there is none, the old content stays whole.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = open_own(OpenOptions::new().write(true), path)?;
    let length = file.metadata()?.len();
    let begin = content.len().min(usize::try_from(length).unwrap_or(usize::MAX));
    if let Err(error) = file.write_all_at(&content[begin..], begin as u64) {
        file.set_len(length)?;
        return Err(error);
    }
    file.write_all_at(&content[..begin], 0)?;
    file.set_len(content.len() as u64)
}

fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("is no name of a file"))?;
    let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
    let temporary = path.with_file_name(name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(temporary),
    }
}
