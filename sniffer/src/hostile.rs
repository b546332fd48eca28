//! Files in folders into which others may write: each component is opened below the folder before it and never over a
//! link, nothing waits (a pipe would), and what is opened has to be a regular file with one name, of the owner that is
//! expected.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::dir::{Dir, OwningIter};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

/// How anything of others is opened for reading.
const FLAGS: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);

/// A folder that is open.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    /// Who owns it.
    pub owner: u32,
    /// When an entry of it was last made, renamed or removed, nanoseconds since the epoch.
    pub modified_ns: i64,
}

/// What a folder says of a name in it.
#[derive(Clone, Copy, Debug)]
pub struct FileStatus {
    /// Whether it is a regular file with one name.
    pub is_plain: bool,
    /// Who owns it.
    pub owner: u32,
    /// Number of the file on its file system.
    pub inode: u64,
    /// Bytes.
    pub length: u64,
    /// When it was last written, nanoseconds since the epoch.
    pub modified_ns: i64,
}

impl FileStatus {
    fn of(status: &FileStat) -> Self {
        let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
        Self {
            is_plain: kind == SFlag::S_IFREG && status.st_nlink == 1,
            owner: status.st_uid,
            inode: status.st_ino,
            length: u64::try_from(status.st_size).unwrap_or(0),
            modified_ns: modified_ns(status),
        }
    }

    /// # Errors
    /// If it is no regular file with one name, or not `owner`'s.
    pub fn check(&self, owner: u32) -> io::Result<()> {
        if !self.is_plain {
            return Err(io::Error::other("is no regular file with one name"));
        }
        if self.owner != owner {
            return Err(io::Error::other(format!("belongs to user {}, not to {owner}", self.owner)));
        }
        Ok(())
    }
}

fn modified_ns(status: &FileStat) -> i64 {
    status.st_mtime.saturating_mul(1_000_000_000).saturating_add(status.st_mtime_nsec)
}

impl Folder {
    /// Opens a folder; its last component is no link.
    ///
    /// # Errors
    /// If it is not there, is none, or may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(nix::fcntl::open(path, FLAGS | OFlag::O_DIRECTORY, Mode::empty())?)
    }

    /// A folder in it.
    ///
    /// # Errors
    /// If it is not there, is none, or may not be read.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        Self::of(openat(self.fd.as_fd(), name, FLAGS | OFlag::O_DIRECTORY, Mode::empty())?)
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let status = fstat(fd.as_fd())?;
        Ok(Self { owner: status.st_uid, modified_ns: modified_ns(&status), fd })
    }

    /// What stands under a name, itself if it is a link.
    ///
    /// # Errors
    /// If there is nothing.
    pub fn status(&self, name: &str) -> io::Result<FileStatus> {
        Ok(FileStatus::of(&fstatat(self.fd.as_fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
    }

    /// Opens a file of `owner` for reading.
    ///
    /// # Errors
    /// If it may not be read or is none such.
    pub fn file(&self, name: &str, owner: u32) -> io::Result<(File, FileStatus)> {
        let fd = openat(self.fd.as_fd(), name, FLAGS | OFlag::O_NOCTTY, Mode::empty())?;
        let status = FileStatus::of(&fstat(fd.as_fd())?);
        status.check(owner)?;
        Ok((File::from(fd), status))
    }

    /// Begins to list its names.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self) -> io::Result<Names> {
        let again = openat(self.fd.as_fd(), ".", FLAGS | OFlag::O_DIRECTORY, Mode::empty())?;
        Ok(Names(Dir::from_fd(again)?.into_iter()))
    }
}

/// Names in a folder, as many at a time as are asked for.
pub struct Names(OwningIter);

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Iterator for Names {
    type Item = String;

    /// The next name; one that is no text is "".
    fn next(&mut self) -> Option<String> {
        let entry = self.0.next()?.ok()?;
        Some(entry.file_name().to_str().unwrap_or_default().to_owned())
    }
}

/// Reads a file of root's, of our own user's or, with `anybody`, of whomever's: at most `most` bytes, without waiting.
///
/// # Errors
/// If it may not be read, is no regular file, is another's, or is longer.
pub fn read_small(path: &Path, most: u64, anybody: bool) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let flags = if anybody { flags } else { flags | OFlag::O_NOFOLLOW };
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let me = nix::unistd::geteuid().as_raw();
    if !anybody && ![0, me].contains(&status.uid()) {
        let owner = status.uid();
        return Err(io::Error::other(format!("belongs to user {owner}, neither to root nor to us (user {me})")));
    }
    let too_long = || io::Error::other(format!("has more than {most} bytes"));
    if status.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Names of the folder at `path` that end with `suffix`, sorted, the first `most` of them.
///
/// # Errors
/// If it cannot be listed.
pub fn names_ending(path: &Path, suffix: &str, most: usize) -> io::Result<Vec<std::path::PathBuf>> {
    let ends = |name: &OsStr| name.to_string_lossy().ends_with(suffix);
    let entries = fs::read_dir(path)?.flatten().filter(|entry| ends(&entry.file_name()));
    let mut paths: Vec<_> = entries.take(most).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
