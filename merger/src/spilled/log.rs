//! A list whose records are appended, and read one after the other.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::record::{Record, read, write};
use crate::temporary::TemporaryFile;

/// Records in memory, bytes at most.
const MAX_BYTES: usize = 4 << 20;
/// Records for which room is made at first.
const MIN_GROWTH: usize = 4;
/// Bytes that are read or written at once.
const AT_ONCE_BYTES: usize = 32 << 10;

/// Records in their order. What is read ends where the file cannot be read, which [`RecordLog::check`] tells.
#[derive(Clone, Debug)]
pub(crate) struct RecordLog<T> {
    file: Option<Arc<TemporaryFile>>,
    /// Records in the file.
    written: usize,
    /// Those that follow.
    tail: Vec<T>,
    /// Of these at most.
    max_tail: usize,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl<T: Record> Default for RecordLog<T> {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

/// Makes room for one more, and never for more than `most`.
#[inline]
pub(super) fn grow<T>(records: &mut Vec<T>, most: usize) {
    let length = records.len();
    if length == records.capacity() {
        records.reserve_exact(length.max(MIN_GROWTH).min(most.saturating_sub(length)).max(1));
    }
}

impl<T: Record> RecordLog<T> {
    /// Records that are read or written at once.
    const AT_ONCE: usize = if T::BYTES > AT_ONCE_BYTES { 1 } else { AT_ONCE_BYTES / T::BYTES };

    /// An empty one that takes about so many bytes of memory at most.
    pub fn within(bytes: usize) -> Self {
        let max_tail = (bytes / size_of::<T>()).max(1);
        Self { file: None, written: 0, tail: Vec::new(), max_tail, failed: Arc::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.written + self.tail.len()
    }

    /// Appends a record.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    #[inline]
    pub fn push(&mut self, record: T) -> io::Result<()> {
        grow(&mut self.tail, self.max_tail);
        self.tail.push(record);
        if self.tail.len() < self.max_tail { Ok(()) } else { self.spill() }
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(Arc::new(TemporaryFile::new()?)),
        };
        let at_once = Self::AT_ONCE.min(self.tail.len());
        let mut bytes = vec![0; at_once * T::BYTES];
        for records in self.tail.chunks(at_once.max(1)) {
            let bytes = &mut bytes[..records.len() * T::BYTES];
            bytes.chunks_exact_mut(T::BYTES).zip(records).for_each(|(bytes, record)| write(record, bytes));
            file.write_all_at(bytes, (self.written * T::BYTES) as u64)?;
            self.written += records.len();
        }
        self.tail.clear();
        Ok(())
    }

    /// All of them.
    pub fn iter(&self) -> Records<'_, T> {
        self.part(0..self.len())
    }

    /// Those between two places.
    pub fn part(&self, places: Range<usize>) -> Records<'_, T> {
        Records { log: self, next: places.start, end: places.end.min(self.len()), read: Vec::new(), at: 0 }
    }

    /// Whether all could be read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn read(&self, from: usize, to: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        bytes.resize((to - from) * T::BYTES, 0);
        file.read_exact_at(bytes, (from * T::BYTES) as u64)
    }
}

/// Records of a log, one after the other.
pub(crate) struct Records<'l, T> {
    log: &'l RecordLog<T>,
    /// The place of the first that is not read.
    next: usize,
    end: usize,
    /// Those that were read at once, and where the next of them begins.
    read: Vec<u8>,
    at: usize,
}

impl<T: Record> Iterator for Records<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if let Some(record) = self.next_read() {
            return Some(record);
        }
        if self.next >= self.end {
            return None;
        }
        if let Some(place) = self.next.checked_sub(self.log.written) {
            self.next += 1;
            return self.log.tail.get(place).copied();
        }
        let to = self.end.min(self.log.written).min(self.next + RecordLog::<T>::AT_ONCE);
        self.at = 0;
        match self.log.read(self.next, to, &mut self.read) {
            Ok(()) => self.next = to,
            Err(error) => {
                (self.next, self.read) = (self.end, Vec::new());
                self.log.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
        self.next_read()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.read.len() - self.at) / T::BYTES + self.end.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl<T: Record> Records<'_, T> {
    #[inline]
    fn next_read(&mut self) -> Option<T> {
        let bytes = self.read.get(self.at..self.at + T::BYTES)?;
        self.at += T::BYTES;
        Some(read(bytes))
    }
}

impl<T: Record> ExactSizeIterator for Records<'_, T> {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_as_they_were_appended(
            records in prop::collection::vec(any::<(u64, u32)>(), 0..3000), bytes in 0usize..60_000,
            from in 0usize..3000, count in 0usize..3000,
        ) {
            let mut log = RecordLog::within(bytes);
            records.iter().for_each(|record| log.push(*record).unwrap());
            prop_assert!(log.len() == records.len() && log.iter().len() == records.len());
            prop_assert!(log.tail.len() <= log.max_tail);
            prop_assert_eq!(log.iter().collect::<Vec<_>>(), &records[..]);
            let part: Vec<(u64, u32)> = records.iter().skip(from).take(count).copied().collect();
            prop_assert_eq!(log.part(from.min(records.len())..from + count).collect::<Vec<_>>(), part);
            prop_assert!(log.check().is_ok());
        }
    }

    #[test]
    fn what_the_file_lost_is_told() {
        let mut log = RecordLog::within(8);
        (0..10u64).for_each(|value| log.push(value).unwrap());
        log.file.as_ref().unwrap().cut(16);
        assert_eq!(log.part(0..2).sum::<u64>(), 1);
        assert!(log.check().is_ok() && log.iter().count() == 0 && log.check().is_err());
    }
}
