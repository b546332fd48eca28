//! Temporary files without names, and how much lies in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// What lies in the temporary files of this process, bytes, and the most that ever lay there.
static HELD: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

/// A file in `TMPDIR` that nobody else can open; it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: File,
    /// Bytes, as far as they were written.
    length: AtomicU64,
}

impl TemporaryFile {
    /// An empty one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, length: AtomicU64::new(0) })
    }

    /// Writes bytes at a place.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)?;
        let end = at.saturating_add(bytes.len() as u64);
        let more = end.saturating_sub(self.length.fetch_max(end, Ordering::Relaxed));
        if more > 0 {
            let held = HELD.fetch_add(more, Ordering::Relaxed) + more;
            PEAK.fetch_max(held, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Fills `bytes` from a place on.
    ///
    /// # Errors
    /// If so many cannot be read.
    pub fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Loses what lies behind so many bytes.
    #[cfg(test)]
    pub fn cut(&self, length: u64) {
        let _ = self.file.set_len(length);
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        HELD.fetch_sub(*self.length.get_mut(), Ordering::Relaxed);
    }
}

/// Appends to a file from a place on.
pub(crate) struct Appending<'f> {
    pub file: &'f TemporaryFile,
    pub at: u64,
}

impl io::Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The most that has lain in this process's temporary files at one time, bytes.
#[must_use]
pub fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed)
}

/// What lies in temporary files now, bytes.
#[must_use]
pub fn held_bytes() -> u64 {
    HELD.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_written_is_counted_while_it_lies_there() {
        let file = TemporaryFile::new().unwrap();
        let mut out = Appending { file: &file, at: 3 };
        out.write_all(&[7; 1000]).unwrap();
        file.write_all_at(&[8; 10], 500).unwrap();
        let mut read = [0; 4];
        file.read_exact_at(&mut read, 498).unwrap();
        assert_eq!((read, file.length.load(Ordering::Relaxed)), ([7, 7, 8, 8], 1003));
        assert!(peak_bytes() >= 1003 && file.read_exact_at(&mut read, 1000).is_err());
    }
}
