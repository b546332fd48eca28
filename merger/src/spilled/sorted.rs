//! Records that come in any order, and are read in theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::ops::Range;

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
    log: RecordLog<T>,
    runs: Vec<Range<usize>>,
}

/// Records in their order.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    /// Sorted runs, one behind the other.
    log: RecordLog<T>,
    runs: Vec<Range<usize>>,
    /// The last one.
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
        let max_run = (bytes / size_of::<T>()).max(1);
        Self { run: Vec::new(), max_run, log: RecordLog::within(TAIL_BYTES), runs: Vec::new() }
    }

    /// Takes a record in.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    #[inline]
    pub fn push(&mut self, record: T) -> io::Result<()> {
        if self.run.len() == self.max_run {
            self.end_run()?;
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
        let Self { run: mut held, log, runs, .. } = self;
        held.sort_unstable();
        Ok(Sorted { log, runs, held })
    }

    fn end_run(&mut self) -> io::Result<()> {
        // By this thread alone: one that waits for others to sort does their work meanwhile, and may come here again, where whoever
        // holds this is waited for.
        self.run.sort_unstable();
        let begin = self.log.len();
        self.run.drain(..).try_for_each(|record| self.log.push(record))?;
        self.runs.push(begin..self.log.len());
        Ok(())
    }
}

impl<T: Record + Ord> Sorted<T> {
    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let (mut runs, mut held): (Vec<_>, _) =
            (self.runs.iter().map(|run| self.log.part(run.clone())).collect(), self.held.iter().copied());
        // The last run has the last number.
        let mut next_of = move |number: usize| match runs.get_mut(number) {
            Some(run) => run.next(),
            None => held.next(),
        };
        let first = (0..=self.runs.len()).filter_map(|number| Some(Reverse((next_of(number)?, number))));
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
        self.log.check()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

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
}
