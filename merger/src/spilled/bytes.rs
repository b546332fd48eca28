//! Records of any length, packed one behind the other: the last ones in memory, those before in a temporary file that all share.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::temporary::TemporaryFile;

/// The file in which blocks of all logs lie, while there are any: there may be more logs than files that may be open.
static SHARED: Mutex<Weak<SharedFile>> = Mutex::new(Weak::new());

/// Bytes of the last records of logs that are complete, and how many may lie in memory.
static SETTLED: AtomicU64 = AtomicU64::new(0);
const MAX_SETTLED: u64 = 2 << 20;

/// Fewer stay in memory: to name their place takes nearly as much.
const SMALL_BYTES: usize = 128;

#[derive(Debug)]
struct SharedFile {
    file: TemporaryFile,
    end: AtomicU64,
}

impl SharedFile {
    fn get() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.upgrade() {
            return Ok(known);
        }
        let new = Arc::new(Self { file: TemporaryFile::new()?, end: AtomicU64::new(0) });
        *shared = Arc::downgrade(&new);
        Ok(new)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at)?;
        Ok(at)
    }
}

/// Packed records. What is read ends where the file cannot be read, which [`ByteLog::check`] tells.
#[derive(Debug)]
pub(crate) struct ByteLog {
    file: Option<Arc<SharedFile>>,
    blocks: Vec<Block>,
    /// Bytes of all blocks.
    filed: usize,
    /// What follows on them.
    tail: Vec<u8>,
    /// Of that at most, but for a record.
    max_tail: usize,
    /// Of that, counted among those of complete logs.
    settled: u64,
    failed: Mutex<Option<io::Error>>,
}

/// Whole records in the file.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Bytes in front of it.
    begin: usize,
    /// Its place in the file.
    at: u64,
}

impl Clone for ByteLog {
    fn clone(&self) -> Self {
        let mut copy = Self::within(self.max_tail);
        for (_, part) in self.parts() {
            copy.tail.extend_from_slice(&part);
            copy.end_record();
        }
        copy
    }
}

impl Drop for ByteLog {
    fn drop(&mut self) {
        SETTLED.fetch_sub(self.settled, Ordering::Relaxed);
    }
}

impl ByteLog {
    /// An empty one that holds about so many bytes in memory at most.
    pub fn within(max_tail: usize) -> Self {
        Self {
            file: None,
            blocks: Vec::new(),
            filed: 0,
            tail: Vec::new(),
            max_tail,
            settled: 0,
            failed: Mutex::new(None),
        }
    }

    /// Where the next record is appended; then [`ByteLog::end_record`] is called.
    #[inline]
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// A record is complete.
    #[inline]
    pub fn end_record(&mut self) {
        if self.tail.len() >= self.max_tail {
            self.file();
        }
    }

    fn file(&mut self) {
        let failed = self.failed.get_mut().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return;
        }
        let file = match &self.file {
            Some(file) => Ok(Arc::clone(file)),
            None => SharedFile::get(),
        };
        match file.and_then(|file| Ok((file.append(&self.tail)?, file))) {
            Ok((at, file)) => {
                self.file = Some(file);
                self.blocks.push(Block { begin: self.filed, at });
                self.filed += self.tail.len();
                self.tail.clear();
                self.tail.shrink_to(self.max_tail);
            }
            // What cannot leave memory stays there.
            Err(error) => *failed = Some(error),
        }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.filed + self.tail.len()
    }

    /// All of them in parts of whole records, each with its place.
    pub fn parts(&self) -> impl Iterator<Item = (usize, Cow<'_, [u8]>)> {
        let blocks = (0..self.blocks.len()).map_while(|number| {
            let (begin, end) = self.bounds(number);
            Some((begin, Cow::<[u8]>::Owned(self.read(number, begin, end)?)))
        });
        let tail = (self.filed, Cow::Borrowed(&self.tail[..]));
        blocks.chain((!self.tail.is_empty()).then_some(tail))
    }

    /// Bytes from the begin of a record on: at least so many, or those up to the end of its part.
    pub fn window(&self, place: usize, bytes: usize) -> Option<Cow<'_, [u8]>> {
        if let Some(at) = place.checked_sub(self.filed) {
            return self.tail.get(at..).map(Cow::Borrowed);
        }
        let number = self.blocks.partition_point(|block| block.begin <= place).checked_sub(1)?;
        let (_, end) = self.bounds(number);
        Some(Cow::Owned(self.read(number, place, end.min(place.saturating_add(bytes)))?))
    }

    /// No more records come for now: gives back what only helps to append, and memory where all logs take much.
    pub fn settle(&mut self) {
        SETTLED.fetch_sub(std::mem::take(&mut self.settled), Ordering::Relaxed);
        let bytes = self.tail.len() as u64;
        if self.tail.len() > SMALL_BYTES && SETTLED.load(Ordering::Relaxed) + bytes > MAX_SETTLED {
            self.file();
        } else {
            SETTLED.fetch_add(bytes, Ordering::Relaxed);
            self.settled = bytes;
        }
        self.tail.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }

    /// Whether all could be written and read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn bounds(&self, number: usize) -> (usize, usize) {
        (self.blocks[number].begin, self.blocks.get(number + 1).map_or(self.filed, |next| next.begin))
    }

    /// Bytes of a block from one place to another.
    fn read(&self, number: usize, from: usize, to: usize) -> Option<Vec<u8>> {
        let (block, file) = (self.blocks[number], self.file.as_ref()?);
        let mut bytes = vec![0; to - from];
        match file.file.read_exact_at(&mut bytes, block.at + (from - block.begin) as u64) {
            Ok(()) => Some(bytes),
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_as_they_were_appended(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..60),
            max in 0usize..200, bytes in 0usize..60,
        ) {
            let (mut log, mut other, mut places) = (ByteLog::within(max), ByteLog::within(max), Vec::new());
            for record in &records {
                places.push(log.len());
                log.tail().extend_from_slice(record);
                log.end_record();
                // Another one's blocks lie between.
                other.tail().push(7);
                other.end_record();
            }
            for log in [&log, &log.clone()] {
                let all: Vec<u8> = log.parts().flat_map(|(_, part)| part.into_owned()).collect();
                prop_assert_eq!(&all, &records.concat());
                let mut begin = 0;
                for (place, part) in log.parts() {
                    prop_assert!(place == begin && (place == all.len() || places.contains(&place)));
                    begin += part.len();
                }
                for place in &places {
                    let part = log.window(*place, bytes).unwrap();
                    prop_assert!(all[*place..].starts_with(&part));
                    let ends_part = *place + part.len() == all.len() || places.contains(&(place + part.len()));
                    prop_assert!(part.len() >= bytes || ends_part);
                }
                prop_assert!(log.tail.len() < max.max(1) && log.check().is_ok());
            }
            prop_assert!(other.parts().all(|(_, part)| part.iter().all(|byte| *byte == 7)));
        }
    }

    #[test]
    fn what_the_file_lost_is_told() {
        let mut log = ByteLog::within(4);
        log.tail().extend_from_slice(&[1, 2, 3, 4, 5]);
        log.end_record();
        assert!(log.parts().count() == 1 && log.check().is_ok());
        // Its block lies where there is nothing.
        log.blocks[0].at = u64::MAX >> 2;
        assert!(log.parts().count() == 0 && log.check().is_err());
        assert!(log.window(0, 5).is_none() && log.check().is_err());
    }
}
