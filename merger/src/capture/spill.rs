//! Packets of a host beyond what memory may hold: in temporary files, each of which goes when all of its packets have been taken.

use std::io;
use std::sync::Arc;

use crate::temporary::{Appending, TemporaryFile};

/// A file gets no more once it has so many bytes, and such a share of all: however long a capture is, few files are open.
const MIN_FILE_BYTES: u64 = 32 << 20;
const SHARE_OF_ALL: u64 = 16;

/// Where bytes lie: their place in all files one behind the other, and how many there are. They lie in one file.
pub(super) type Part = (u64, u32);

/// Files one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Spill {
    files: Vec<SpillFile>,
    /// Bytes of all.
    length: u64,
    min_file: u64,
}

impl Default for Spill {
    fn default() -> Self {
        Self { files: Vec::new(), length: 0, min_file: MIN_FILE_BYTES }
    }
}

#[derive(Clone, Debug)]
struct SpillFile {
    /// Bytes of the files before.
    begin: u64,
    /// `None` = all of it has been taken.
    file: Option<Arc<TemporaryFile>>,
    /// Bytes that are not taken.
    left: u64,
}

impl Spill {
    /// Has `write` append to a file, which hands back how many bytes it wrote. It is told their place, and with them the begin of their file.
    ///
    /// # Errors
    /// If no file can be made, or `write` fails.
    pub fn append(&mut self, write: impl FnOnce(Appending<'_>, u64, u64) -> io::Result<u64>) -> io::Result<()> {
        let max_bytes = (self.length / SHARE_OF_ALL).max(self.min_file);
        let begin = match self.files.last() {
            Some(SpillFile { begin, file: Some(_), .. }) if self.length - begin < max_bytes => *begin,
            _ => {
                let file = Some(Arc::new(TemporaryFile::new()?));
                self.files.push(SpillFile { begin: self.length, file, left: 0 });
                self.length
            }
        };
        let Some(SpillFile { file: Some(file), left, .. }) = self.files.last_mut() else { return Ok(()) };
        let written = write(Appending { file, at: self.length - begin }, self.length, begin)?;
        *left += written;
        self.length += written;
        Ok(())
    }

    /// Reads a part.
    ///
    /// # Errors
    /// If it cannot be read, or all of its file has been taken.
    pub fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let lies_in = self.file_of(at).and_then(|number| self.files.get(number));
        let Some(SpillFile { begin, file: Some(file), .. }) = lies_in else {
            return Err(io::ErrorKind::NotFound.into());
        };
        file.read_exact_at(bytes, at - begin)
    }

    /// The files in which parts lie, to be read once more: they are not asked for again.
    pub fn take(&mut self, parts: &[Part]) -> Self {
        let mut taken = Self { files: Vec::new(), ..*self };
        for &(at, length) in parts {
            let Some(number) = self.file_of(at) else { continue };
            let lies_in = &mut self.files[number];
            if taken.files.last().is_none_or(|last| last.begin < lies_in.begin) {
                taken.files.push(lies_in.clone());
            }
            lies_in.left = lies_in.left.saturating_sub(u64::from(length));
            if lies_in.left == 0 {
                lies_in.file = None;
            }
        }
        taken
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn file_of(&self, at: u64) -> Option<usize> {
        self.files.partition_point(|file| file.begin <= at).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::io::Write as _;

    use super::*;

    /// Appends pieces of so many bytes, which all hold their number, eight to a file at least; hands back where each lies.
    fn spilled(pieces: u32, bytes: u32) -> (Spill, Vec<Part>) {
        let (mut spill, mut parts) = (Spill { min_file: 8 * u64::from(bytes), ..Spill::default() }, Vec::new());
        for number in 0..pieces {
            let piece = number.to_le_bytes().repeat(bytes as usize / 4);
            let append = |mut out: Appending<'_>, at: u64, _: u64| {
                parts.push((at, bytes));
                out.write_all(&piece).map(|()| u64::from(bytes))
            };
            spill.append(append).unwrap();
        }
        (spill, parts)
    }

    fn number_at(spill: &Spill, (at, length): Part) -> io::Result<u32> {
        let mut bytes = vec![0; length as usize];
        spill.read_exact_at(&mut bytes, at)?;
        Ok(u32::from_le_bytes(bytes[bytes.len() - 4..].try_into().unwrap()))
    }

    #[test]
    fn a_file_goes_when_its_last_part_has_been_taken_and_read() {
        let (mut spill, parts) = spilled(40, 4096);
        assert_eq!(spill.files.len(), 5);
        for (number, part) in (0..).zip(&parts) {
            assert_eq!(number_at(&spill, *part).unwrap(), number);
        }
        let file = Arc::downgrade(spill.files[1].file.as_ref().unwrap());
        // One lies behind it, and is taken with the first.
        let lone = spill.take(&[parts[8], parts[16]]);
        for part in &parts[9..16] {
            assert!(file.upgrade().is_some() && number_at(&spill, *part).is_ok());
            spill.take(&[*part]);
        }
        assert_eq!(number_at(&spill, parts[9]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(number_at(&spill, parts[17]).is_ok() && number_at(&spill, parts[7]).is_ok());
        assert_eq!((number_at(&lone, parts[8]).unwrap(), number_at(&lone, parts[16]).unwrap()), (8, 16));
        drop(lone);
        assert!(file.upgrade().is_none());
    }

    #[test]
    fn files_grow_with_what_they_hold() {
        let (spill, _) = spilled(12_800, 64);
        // Eight pieces each until there are 128, then a sixteenth of all more each, to a hundred times as many.
        let most = 16.0 + libm::log(100.0) / libm::log(17.0 / 16.0);
        assert!(spill.files.len() > 50 && spill.files.len() as f64 <= most, "{} of {most}", spill.files.len());
    }
}
