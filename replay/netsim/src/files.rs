//! Files that people name: regular ones, up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Without waiting for who writes into a FIFO, and not as the terminal of this process.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The byte order mark, with which some editors begin a file.
const MARK: &str = "\u{feff}";

/// Opens a regular file; links to it are followed.
///
/// # Errors
/// If it is anything else, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let file = match rustix::fs::open(path, FLAGS, Mode::empty()) {
        Ok(fd) => File::from(fd),
        // A socket cannot be opened at all.
        Err(Errno::NXIO) => return Err(not_regular("a socket or a device")),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    match (about.is_file(), about.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(not_regular("a folder")),
        (false, false) => Err(not_regular("a FIFO or a device")),
    }
}

/// The text of a regular file of `limit` bytes at most, without a byte order mark. A longer one is not read.
///
/// # Errors
/// If it is anything else, longer, no UTF-8, or cannot be read.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= limit {
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    // It may have grown, and of some files the system does not know how long they are.
    let length = length.max(bytes.len() as u64);
    if length > limit {
        let reason =
            format!("it has {length} bytes, and {limit} at most are read: name another file, or a shorter one");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    if bytes.starts_with(MARK.as_bytes()) {
        bytes.drain(..MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let reason =
            format!("from byte {} on it is no text in UTF-8: name another file", error.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

fn not_regular(what: &str) -> io::Error {
    let reason = format!("it is {what}; only regular files are read: name one, or write what it says into one");
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
