//! Records that come in any order, and are read in theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::list::RecordList;
use super::log::{RecordLog, grow};
use super::record::Record;

/// Records that are sorted at once, bytes of memory.
const RUN_BYTES: usize = 4 << 20;
/// Records on their way to the file, bytes of memory.
const TAIL_BYTES: usize = 32 << 10;

/// Takes records in, and sorts as many at a time as may lie in memory.
#[derive(Debug)]
pub(crate) struct Sorter<T> {
    run: Vec<T>,
    max_run: usize,
    written: Runs<T>,
}

/// Takes records in from several threads: whoever fills a run sorts it, while others fill the next one.
#[derive(Debug)]
pub(crate) struct SharedSorter<T> {
    run: Mutex<Vec<T>>,
    max_run: usize,
    written: Mutex<Runs<T>>,
}

/// Sorted runs, one behind the other.
#[derive(Debug)]
struct Runs<T> {
    log: RecordLog<T>,
    runs: Vec<Range<usize>>,
}

/// Records in their order.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    written: Runs<T>,
    /// The last run.
    held: Vec<T>,
}

impl<T: Record + Ord + Send> Default for Sorter<T> {
    fn default() -> Self {
        Self::within(RUN_BYTES)
    }
}

impl<T: Record + Ord + Send> Sorter<T> {
    /// Without records; about so many bytes are sorted at once.
    pub fn within(bytes: usize) -> Self {
        Self { run: Vec::new(), max_run: max_run::<T>(bytes), written: Runs::new() }
    }

    /// Takes a record in.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    #[inline]
    pub fn push(&mut self, record: T) -> io::Result<()> {
        if self.run.len() == self.max_run {
            self.run.sort_unstable();
            self.written.append(self.run.drain(..))?;
        }
        grow(&mut self.run, self.max_run);
        self.run.push(record);
        Ok(())
    }

    /// All that were taken in.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub fn sorted(self) -> io::Result<Sorted<T>> {
        let Self { run, written, .. } = self;
        Ok(Sorted::of(run, written))
    }
}

impl<T: Record + Ord + Send> Default for SharedSorter<T> {
    fn default() -> Self {
        Self::within(RUN_BYTES)
    }
}

impl<T: Record + Ord + Send> SharedSorter<T> {
    /// Without records; about so many bytes are sorted at once.
    pub fn within(bytes: usize) -> Self {
        let (run, written) = (Mutex::new(Vec::new()), Mutex::new(Runs::new()));
        Self { run, max_run: max_run::<T>(bytes), written }
    }

    /// Takes records in.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn extend(&self, records: impl IntoIterator<Item = T>) -> io::Result<()> {
        let mut records = records.into_iter();
        while let Some(mut full) = self.fill(&mut records) {
            // By this thread alone: one that waits for others to sort does their work meanwhile, and may come here again.
            full.sort_unstable();
            self.written.lock().unwrap_or_else(PoisonError::into_inner).append(full.drain(..))?;
            let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
            if run.capacity() == 0 {
                *run = full;
            }
        }
        Ok(())
    }

    /// All that were taken in.
    pub fn sorted(self) -> Sorted<T> {
        let run = self.run.into_inner().unwrap_or_else(PoisonError::into_inner);
        Sorted::of(run, self.written.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes records until there are no more, or a run is full, which is taken out.
    fn fill(&self, records: &mut impl Iterator<Item = T>) -> Option<Vec<T>> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        while run.len() < self.max_run {
            let record = records.next()?;
            grow(&mut run, self.max_run);
            run.push(record);
        }
        Some(std::mem::take(&mut *run))
    }
}

fn max_run<T>(bytes: usize) -> usize {
    (bytes / size_of::<T>()).max(1)
}

impl<T: Record> Runs<T> {
    fn new() -> Self {
        Self { log: RecordLog::within(TAIL_BYTES), runs: Vec::new() }
    }

    fn append(&mut self, sorted: impl Iterator<Item = T>) -> io::Result<()> {
        let begin = self.log.len();
        sorted.into_iter().try_for_each(|record| self.log.push(record))?;
        self.runs.push(begin..self.log.len());
        Ok(())
    }
}

impl<T: Record + Ord> Sorted<T> {
    fn of(mut last: Vec<T>, written: Runs<T>) -> Self {
        last.sort_unstable();
        Self { written, held: last }
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let written = &self.written;
        let (mut runs, mut held): (Vec<_>, _) =
            (written.runs.iter().map(|run| written.log.part(run.clone())).collect(), self.held.iter().copied());
        // The last run has the last number.
        let mut next_of = move |number: usize| match runs.get_mut(number) {
            Some(run) => run.next(),
            None => held.next(),
        };
        let first = (0..=written.runs.len()).filter_map(|number| Some(Reverse((next_of(number)?, number))));
        let mut next: BinaryHeap<Reverse<(T, usize)>> = first.collect();
        std::iter::from_fn(move || {
            let mut least = next.peek_mut()?;
            let Reverse((record, number)) = *least;
            match next_of(number) {
                Some(behind) => *least = Reverse((behind, number)),
                None => _ = PeekMut::pop(least),
            }
            Some(record)
        })
    }

    /// All of them as a list in their order, which takes about so many bytes of memory at most.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn into_list(self, bytes: usize) -> io::Result<RecordList<T>> {
        let mut list = RecordList::within(bytes);
        self.iter().for_each(|record| list.push(record));
        self.check().and(list.check())?;
        Ok(list)
    }

    /// Whether all could be read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.written.log.check()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_come_in_their_order(
            mut records in prop::collection::vec((0u64..50, any::<u32>()), 0..2000), bytes in 0usize..20_000,
        ) {
            let mut sorter = Sorter::within(bytes);
            records.iter().for_each(|record| sorter.push(*record).unwrap());
            let sorted = sorter.sorted().unwrap();
            records.sort_unstable();
            prop_assert_eq!(sorted.iter().collect::<Vec<_>>(), &records[..]);
            // Once more.
            prop_assert_eq!(sorted.iter().collect::<Vec<_>>(), &records[..]);
            prop_assert!(sorted.check().is_ok());
            let list = sorted.into_list(bytes).unwrap();
            prop_assert_eq!((0..list.len()).map(|place| list.get(place)).collect::<Vec<_>>(), records);
        }
    }

    #[test]
    fn what_several_threads_gave_comes_in_order() {
        let sorter = SharedSorter { max_run: 100, ..SharedSorter::default() };
        // Runs of several threads are full at the same time, and one is filled several times by what comes at once.
        (0..64u64).into_par_iter().for_each(|part| {
            let records = (0..257u64).map(|number| (number * 7919 % 257, part as u32));
            sorter.extend(records).unwrap();
        });
        let sorted = sorter.sorted();
        assert!(sorted.written.runs.len() == 64 * 257 / 100 && sorted.held.len() == 64 * 257 % 100);
        let expected = (0..257u64).flat_map(|number| (0..64u32).map(move |part| (number, part)));
        assert!(sorted.iter().eq(expected) && sorted.check().is_ok());
    }
}
