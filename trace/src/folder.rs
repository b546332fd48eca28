//! Folders in which others may write: what is in them is opened without following links and without waiting.
//!
//! A path that is looked up anew for each step can change in between. A [`Folder`] holds the open folder, and everything
//! below it is opened relative to that.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// Names in a folder that are looked at, at most: far more than hosts of a cluster, or JVMs of a host in a capture.
pub const MAX_NAMES: usize = 100_000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Without following a link, without waiting for who writes into a FIFO, and not as the terminal of this process.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What has a name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A FIFO, a socket, a device.
    Other,
}

/// The names in a folder, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// At most [`MAX_NAMES`] of them, those that are no UTF-8 left out.
    pub names: Vec<String>,
    /// Names that were left out.
    pub left_out: u64,
}

impl Folder {
    /// Opens a folder that a person named: links on the way to it are followed.
    ///
    /// # Errors
    /// If it is not there, is no folder or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = openat(CWD, path, FOLDER, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Where it was when it was opened; for people.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The user whose it is.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(fstat(&self.fd)?.st_uid)
    }

    /// A folder in it, if that is one itself and no link to one.
    ///
    /// # Errors
    /// If it is anything else, or cannot be read.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let fd = openat(&self.fd, plain(name)?, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { fd, path: self.path.join(name) })
    }

    /// Opens a file in it for reading, if it is a regular one.
    ///
    /// # Errors
    /// If it is a link, a FIFO, a device or a folder, or cannot be read.
    pub fn file(&self, name: &str) -> io::Result<File> {
        regular(openat(&self.fd, plain(name)?, FILE, Mode::empty()))
    }

    /// What has this name in it; `None` = nothing.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn kind(&self, name: &str) -> io::Result<Option<Kind>> {
        match statat(&self.fd, plain(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Folder,
                FileType::Symlink => Kind::Link,
                _ => Kind::Other,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What is in it, by name.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Names> {
        let mut names = Names::default();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) if names.names.len() < MAX_NAMES => names.names.push(name.to_owned()),
                _ => names.left_out += 1,
            }
        }
        names.names.sort();
        Ok(names)
    }
}

/// Opens a file that is no link itself and a regular one; the folders on the way to it are taken as they are.
///
/// # Errors
/// If it is anything else, or cannot be read.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(openat(CWD, path, FILE, Mode::empty()))
}

/// Opens a regular file that a person named: links to it are followed. Waits for nobody who would write into a FIFO.
///
/// # Errors
/// If it is anything else, or cannot be read.
pub fn open_named(path: &Path) -> io::Result<File> {
    regular(openat(CWD, path, FILE.difference(OFlags::NOFOLLOW), Mode::empty()))
}

/// What a regular file of `limit` bytes at most holds, which a person named. A longer one is not read.
///
/// # Errors
/// If it is anything else, longer, or cannot be read.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_named(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= limit {
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    let length = length.max(bytes.len() as u64);
    if length > limit {
        let reason =
            format!("it has {length} bytes, and {limit} at most are read: name another file, or a shorter one");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

fn regular(opened: Result<OwnedFd, Errno>) -> io::Result<File> {
    let file = match opened {
        Ok(fd) => File::from(fd),
        Err(Errno::LOOP) => return Err(not_regular("a link")),
        // A socket cannot be opened at all.
        Err(Errno::NXIO) => return Err(not_regular("a socket or a device")),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    if about.is_file() {
        Ok(file)
    } else {
        Err(not_regular(if about.is_dir() { "a folder" } else { "a FIFO or a device" }))
    }
}

fn not_regular(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}; only regular files are read"))
}

/// A name that stands for something in the folder itself.
fn plain(name: &str) -> io::Result<&OsStr> {
    let leads_elsewhere = name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']);
    if leads_elsewhere {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("\"{name}\" is no name of a file in a folder"),
        ));
    }
    Ok(OsStr::from_bytes(name.as_bytes()))
}
