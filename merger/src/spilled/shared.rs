//! A list whose records are appended, and then read by several threads.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::list::RecordList;
use super::record::Record;

/// Records by their places, as in a [`RecordList`].
#[derive(Debug)]
pub(crate) struct SharedList<T>(Mutex<RecordList<T>>);

/// Memory that a list may take, bytes.
const MAX_BYTES: usize = 2 << 20;

impl<T: Record> Default for SharedList<T> {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

impl<T> From<RecordList<T>> for SharedList<T> {
    fn from(list: RecordList<T>) -> Self {
        Self(Mutex::new(list))
    }
}

impl<T: Record> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        let mut list = Self::default();
        self.iter().for_each(|record| list.push(record));
        list
    }
}

impl<T: Record> SharedList<T> {
    /// An empty one that takes about so many bytes of memory at most.
    pub fn within(bytes: usize) -> Self {
        Self(Mutex::new(RecordList::within(bytes)))
    }

    /// So many blank records, as [`RecordList::blank`] has them.
    pub fn blank(length: usize, bytes: usize) -> Self {
        Self(Mutex::new(RecordList::blank(length, bytes)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.with(RecordList::len)
    }

    /// Appends a record.
    #[inline]
    pub fn push(&mut self, record: T) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// Changes a record.
    pub fn change(&mut self, place: usize, change: impl FnOnce(&mut T)) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).change(place, change);
    }

    /// A record.
    #[inline]
    pub fn get(&self, place: usize) -> T {
        self.with(|list| list.get(place))
    }

    /// All of them.
    pub fn iter(&self) -> Records<'_, T> {
        Records { list: self, page: 0, read: Vec::new().into_iter(), left: self.len() }
    }

    /// How many records lie in front of the first that is not before something; all that are lie in front.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.with(|list| list.partition_point(is_before))
    }

    /// As [`SharedList::partition_point`], of the records of some places.
    pub fn partition_point_in(&self, places: Range<usize>, is_before: impl Fn(&T) -> bool) -> usize {
        self.with(|list| list.partition_point_in(places, is_before))
    }

    /// The last of the records that are before something; all that are lie in front.
    pub fn last_before(&self, is_before: impl Fn(&T) -> bool) -> Option<T> {
        self.with(|list| list.partition_point(is_before).checked_sub(1).map(|place| list.get(place)))
    }

    /// The records behind those that are before something, up to the last that is before or at it; all lie in this order.
    pub fn between(&self, is_before: impl Fn(&T) -> bool, is_before_or_at: impl Fn(&T) -> bool) -> Vec<T> {
        self.with(|list| {
            let first = list.partition_point(is_before);
            list.part(first..list.partition_point_in(first..list.len(), is_before_or_at))
        })
    }

    /// Whether all could be written and read.
    ///
    /// # Errors
    /// If not, the first error.
    pub fn check(&self) -> io::Result<()> {
        self.with(RecordList::check)
    }

    fn with<R>(&self, at: impl FnOnce(&RecordList<T>) -> R) -> R {
        at(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Records of a list, one after the other.
pub(crate) struct Records<'l, T> {
    list: &'l SharedList<T>,
    /// The page that is read next.
    page: usize,
    read: std::vec::IntoIter<T>,
    left: usize,
}

impl<T: Record> Iterator for Records<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        if self.read.len() == 0 {
            self.read = self.list.with(|list| list.page(self.page)).into_iter();
            self.page += 1;
        }
        self.read.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Record> ExactSizeIterator for Records<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_read_what_was_appended() {
        let mut list = SharedList::within(0);
        (0..10_000u64).for_each(|value| list.push(value));
        assert_eq!((list.len(), list.iter().len()), (10_000, 10_000));
        let (forwards, backwards) = rayon::join(
            || list.iter().eq(0..10_000),
            || (0..10_000).rev().all(|place| list.get(place) == place as u64),
        );
        assert!(forwards && backwards && list.check().is_ok());
        assert!(list.clone().iter().eq(0..10_000));
        assert!(SharedList::<u64>::default().iter().next().is_none());
    }
}
