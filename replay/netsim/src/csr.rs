//! Compressed sparse rows: lists of different lengths one behind the other, in two vectors.

use crate::count::count;

/// Rows of items. There are at most 2^32 - 1 items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Csr<T> {
    /// Where each row begins, and the end of the last.
    begins: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Csr<T> {
    fn default() -> Self {
        Self { begins: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Csr<T> {
    /// `rows` rows; `items` are pairs of a row and an item, which keep their order within the row.
    pub fn grouped(rows: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Self {
        let mut begins = vec![0u32; rows + 1];
        items.clone().for_each(|(row, _)| begins[row + 1] += 1);
        for row in 0..rows {
            begins[row + 1] += begins[row];
        }
        let mut next = begins.clone();
        let mut sorted: Vec<T> = items.clone().map(|(_, item)| item).collect();
        for (row, item) in items {
            sorted[next[row] as usize] = item;
            next[row] += 1;
        }
        Self { begins, items: sorted }
    }

    /// Adds items to the row that is being filled, the one behind those that have ended.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    /// Ends the row that is being filled.
    pub fn end_row(&mut self) {
        self.begins.push(count(self.items.len()));
    }

    /// The items of a row.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        &self.items[self.begins[row] as usize..self.begins[row + 1] as usize]
    }

    /// Where a row begins among all items.
    #[inline]
    pub fn begin(&self, row: usize) -> u32 {
        self.begins[row]
    }

    /// All items, row by row.
    #[inline]
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_hold_what_was_put_into_them_in_order(items in prop::collection::vec((0usize..6, any::<u8>()), 0..40)) {
            let grouped = Csr::grouped(6, items.iter().copied());
            let mut filled = Csr::default();
            for row in 0..6 {
                let expected: Vec<u8> = items.iter().filter(|(its, _)| *its == row).map(|(_, item)| *item).collect();
                prop_assert_eq!(grouped.row(row), &expected[..]);
                filled.extend(expected);
                filled.end_row();
                prop_assert_eq!(filled.row(row), grouped.row(row));
                prop_assert_eq!(filled.begin(row), grouped.begin(row));
            }
            prop_assert_eq!(filled.items(), grouped.items());
        }
    }
}
