//! A list whose records are looked up and changed anywhere, mostly near to each other.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;

use super::record::{Record, read, write};
use crate::temporary::TemporaryFile;

/// Records of a page.
const PAGE: usize = 256;
/// Memory that a list may take, bytes.
const MAX_BYTES: usize = 1 << 20;
/// Records for which room is made in a list's first page at first: there are many lists of a few.
const MIN_GROWTH: usize = 4;
/// Pages in memory at the least.
const MIN_FRAMES: usize = 8;
/// Stands for a page that lies in the file, and for one that lies nowhere: its records are blank.
const NONE: u32 = u32::MAX;
const BLANK: u32 = u32::MAX - 1;

/// Records by their places, in memory as in the file: of one that is looked at only what is asked for is unpacked. What a file did not give
/// back reads as [`Record::BLANK`], until [`RecordList::check`] tells.
pub(crate) struct RecordList<T> {
    pages: RefCell<Pages<T>>,
}

impl<T: Record> Default for RecordList<T> {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

impl<T> fmt::Debug for RecordList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records", self.pages.borrow().length)
    }
}

impl<T: Record> RecordList<T> {
    /// An empty one that takes about so many bytes of memory at most.
    pub fn within(bytes: usize) -> Self {
        let max_frames = (bytes / Pages::<T>::PAGE_BYTES).max(MIN_FRAMES);
        let (frame_of, frames) = (Vec::new(), Vec::new());
        let pages =
            Pages { length: 0, frame_of, frames, max_frames, hand: 0, file: None, failed: None, of: PhantomData };
        Self { pages: RefCell::new(pages) }
    }

    /// So many blank records, which take about so many bytes of memory at most. They lie nowhere until one of their page is changed.
    pub fn blank(length: usize, bytes: usize) -> Self {
        let mut list = Self::within(bytes);
        let pages = list.pages.get_mut();
        (pages.length, pages.frame_of) = (length, vec![BLANK; length.div_ceil(PAGE)]);
        list
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.borrow().length
    }

    /// Appends a record.
    pub fn push(&mut self, record: T) {
        let pages = self.pages.get_mut();
        if pages.length.is_multiple_of(PAGE) {
            pages.add();
        }
        let frame = pages.frame(pages.length / PAGE);
        let end = frame.bytes.len();
        if frame.bytes.capacity() - end < T::BYTES {
            frame.bytes.reserve_exact(end.max(MIN_GROWTH * T::BYTES).min(Pages::<T>::PAGE_BYTES - end));
        }
        frame.bytes.resize(end + T::BYTES, 0);
        write(&record, &mut frame.bytes[end..]);
        frame.changed = true;
        pages.length += 1;
    }

    /// A record.
    #[inline]
    pub fn get(&self, place: usize) -> T {
        let mut pages = self.pages.borrow_mut();
        let frame = pages.frame(place / PAGE);
        frame.bytes.get(lies_at::<T>(place)).map_or(T::BLANK, read)
    }

    /// How many records lie in front of the first that is not before something; all that are lie in front.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.partition_point_in(0..self.len(), is_before)
    }

    /// The place of the first record of some places that is not before something; behind them where all are.
    pub fn partition_point_in(&self, places: Range<usize>, is_before: impl Fn(&T) -> bool) -> usize {
        let Range { start: mut first, end: mut behind } = places;
        while first < behind {
            let middle = first + (behind - first) / 2;
            if is_before(&self.get(middle)) { first = middle + 1 } else { behind = middle }
        }
        first
    }

    /// The records of some places.
    pub fn part(&self, places: Range<usize>) -> Vec<T> {
        places.map(|place| self.get(place)).collect()
    }

    /// The records of a page, by its number; [`PAGE`] of them but in the last one.
    pub(super) fn page(&self, page: usize) -> Vec<T> {
        let mut pages = self.pages.borrow_mut();
        if page >= pages.frame_of.len() {
            return Vec::new();
        }
        pages.frame(page).bytes.chunks_exact(T::BYTES).map(read).collect()
    }

    /// Changes a record.
    #[inline]
    pub fn change(&mut self, place: usize, change: impl FnOnce(&mut T)) {
        let frame = self.pages.get_mut().frame(place / PAGE);
        frame.changed = true;
        if let Some(bytes) = frame.bytes.get_mut(lies_at::<T>(place)) {
            let mut record = read(bytes);
            change(&mut record);
            write(&record, bytes);
        }
    }

    /// Whether all could be written and read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.pages.borrow_mut().failed.take().map_or(Ok(()), Err)
    }
}

/// Where a record lies in its page.
fn lies_at<T: Record>(place: usize) -> Range<usize> {
    let begin = place % PAGE * T::BYTES;
    begin..begin + T::BYTES
}

struct Pages<T> {
    /// Records of all pages.
    length: usize,
    /// By page the frame in which it lies; [`NONE`] or [`BLANK`] = in none.
    frame_of: Vec<u32>,
    frames: Vec<Frame>,
    max_frames: usize,
    /// The frame that is asked next whether it is in use.
    hand: usize,
    file: Option<TemporaryFile>,
    failed: Option<io::Error>,
    of: PhantomData<T>,
}

struct Frame {
    page: usize,
    /// Its records.
    bytes: Vec<u8>,
    /// Since it was last asked.
    in_use: bool,
    /// Since it was read.
    changed: bool,
    /// Whether its page lies in the file, too, as it was when it was read.
    filed: bool,
}

impl<T: Record> Pages<T> {
    const PAGE_BYTES: usize = PAGE * T::BYTES;

    #[inline]
    fn frame(&mut self, page: usize) -> &mut Frame {
        let known = self.frame_of[page];
        let place = if known >= BLANK { self.fetch(page) } else { known as usize };
        let frame = &mut self.frames[place];
        frame.in_use = true;
        frame
    }

    /// Adds an empty page behind the others.
    fn add(&mut self) {
        let page = self.frame_of.len();
        let place = self.free_frame(page);
        self.frames[place].bytes.clear();
        self.frame_of.push(place as u32);
    }

    #[cold]
    fn fetch(&mut self, page: usize) -> usize {
        let place = self.free_frame(page);
        let known = std::mem::replace(&mut self.frame_of[page], place as u32);
        let frame = &mut self.frames[place];
        frame.filed = known == NONE;
        frame.bytes.resize(Self::PAGE_BYTES, 0);
        let read = match &self.file {
            _ if known == BLANK => Ok(false),
            Some(file) => file.read_exact_at(&mut frame.bytes, (page * Self::PAGE_BYTES) as u64).map(|()| true),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        if !matches!(read, Ok(true)) {
            frame.bytes.chunks_exact_mut(T::BYTES).for_each(|bytes| write(&T::BLANK, bytes));
        }
        if let Err(error) = read {
            self.failed.get_or_insert(error);
        }
        // The last page may have less records.
        frame.bytes.truncate((self.length - page * PAGE).min(PAGE) * T::BYTES);
        place
    }

    /// A frame for a page, with whatever bytes.
    fn free_frame(&mut self, page: usize) -> usize {
        if self.frames.len() < self.max_frames {
            let bytes = if page == 0 { Vec::new() } else { Vec::with_capacity(Self::PAGE_BYTES) };
            self.frames.push(Frame { page, bytes, in_use: true, changed: false, filed: false });
            return self.frames.len() - 1;
        }
        while std::mem::take(&mut self.frames[self.hand].in_use) {
            self.hand = (self.hand + 1) % self.frames.len();
        }
        let place = self.hand;
        self.hand = (self.hand + 1) % self.frames.len();
        if self.frames[place].changed
            && let Err(error) = self.file_frame(place)
        {
            self.failed.get_or_insert(error);
        }
        let frame = &mut self.frames[place];
        self.frame_of[frame.page] = if frame.changed || frame.filed { NONE } else { BLANK };
        (frame.page, frame.changed, frame.filed) = (page, false, false);
        place
    }

    fn file_frame(&mut self, place: usize) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(TemporaryFile::new()?),
        };
        let Frame { page, bytes, .. } = &mut self.frames[place];
        // Whole pages are read back.
        bytes.resize(Self::PAGE_BYTES, 0);
        file.write_all_at(bytes, (*page * Self::PAGE_BYTES) as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Change(usize, u64),
        Look(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = 0..usize::MAX;
        prop_oneof![
            any::<u64>().prop_map(Step::Push),
            (place.clone(), any::<u64>()).prop_map(|(place, value)| Step::Change(place, value)),
            place.prop_map(Step::Look),
        ]
    }

    proptest! {
        #[test]
        fn a_list_is_as_a_vector_is(
            blank in prop_oneof![Just(0), 0..(3 * MIN_FRAMES * PAGE)],
            begin in prop::collection::vec(any::<u64>(), 0..(3 * MIN_FRAMES * PAGE)),
            steps in prop::collection::vec(step(), 0..2000),
        ) {
            let mut list = RecordList::blank(blank, 0);
            let mut plain = vec![0; blank];
            plain.extend(&begin);
            begin.into_iter().for_each(|value| list.push((value, value as u32)));
            for step in steps {
                match step {
                    Step::Push(value) => {
                        list.push((value, value as u32));
                        plain.push(value);
                    }
                    Step::Change(place, value) if !plain.is_empty() => {
                        let place = place % plain.len();
                        list.change(place, |record| *record = (value, value as u32));
                        plain[place] = value;
                    }
                    Step::Look(place) if !plain.is_empty() => {
                        let place = place % plain.len();
                        prop_assert_eq!(list.get(place), (plain[place], plain[place] as u32));
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(list.len(), plain.len());
            for (place, value) in plain.iter().enumerate() {
                prop_assert_eq!(list.get(place).0, *value);
            }
            prop_assert!(list.check().is_ok());
        }
    }

    #[test]
    fn no_more_pages_lie_in_memory_than_may() {
        let mut list = RecordList::within(0);
        (0..100_000u64).for_each(|value| list.push(value));
        let pages = list.pages.borrow();
        assert!(
            pages.frames.len() == MIN_FRAMES
                && pages.frames.iter().all(|frame| frame.bytes.capacity() == PAGE * u64::BYTES)
        );
    }

    #[test]
    fn what_the_file_lost_is_told() {
        let mut list = RecordList::within(0);
        (0..100_000u64).for_each(|value| list.push(value + 1));
        // Nothing is left to be written.
        assert!((0..100_000).all(|place| list.get(place) > 0));
        list.pages.borrow().file.as_ref().unwrap().cut(0);
        assert_eq!((list.get(0), list.get(99_999)), (0, 100_000));
        assert!(list.check().is_err());
    }
}
