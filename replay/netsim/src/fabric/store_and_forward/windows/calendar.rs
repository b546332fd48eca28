//! What lies ahead, by windows of time: lists in chunks that are used again.

use std::collections::BTreeMap;

/// Items of a chunk.
const CHUNK: usize = 128;

/// Windows of an epoch. The present epoch and the next one have lists of their own; what lies beyond waits by epochs.
const EPOCH: u64 = 64;

/// A list in chunks.
pub(super) struct Bucket<T> {
    /// Chunks that are full.
    full: Vec<Vec<T>>,
    /// The one that is being filled.
    last: Vec<T>,
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<T> Bucket<T> {
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().flatten().chain(&self.last)
    }

    pub const fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }

    #[inline]
    pub fn get(&self, index: usize) -> &T {
        self.full.get(index / CHUNK).map_or_else(|| &self.last[index % CHUNK], |chunk| &chunk[index % CHUNK])
    }

    #[inline]
    fn push(&mut self, item: T, spare: &mut Vec<Vec<T>>) {
        if self.last.len() == self.last.capacity() {
            self.grow(spare);
        }
        self.last.push(item);
    }

    #[cold]
    fn grow(&mut self, spare: &mut Vec<Vec<T>>) {
        let chunk = spare.pop().unwrap_or_else(|| {
            let mut chunk = Vec::new();
            chunk.reserve_exact(CHUNK);
            chunk
        });
        let full = std::mem::replace(&mut self.last, chunk);
        if !full.is_empty() {
            self.full.push(full);
        }
    }
}

/// Items by window and block. Windows are numbered from the start of the simulation on.
pub(super) struct Calendar<T> {
    blocks: usize,
    /// The lists of the present epoch and the next: window modulo 2 x `EPOCH`, then block.
    near: Vec<Bucket<T>>,
    /// How many items each window of these has.
    counts: Vec<u64>,
    epoch: u64,
    far: BTreeMap<u64, Vec<(u64, u32, T)>>,
    spare: Vec<Vec<T>>,
}

impl<T: Copy> Calendar<T> {
    /// An empty calendar for `blocks` blocks, in epoch 0.
    pub fn new(blocks: usize) -> Self {
        let windows = 2 * usize::try_from(EPOCH).unwrap_or(1);
        Self {
            blocks,
            near: std::iter::repeat_with(Bucket::default).take(windows * blocks).collect(),
            counts: vec![0; windows],
            epoch: 0,
            far: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    const fn slot(window: u64) -> usize {
        (window % (2 * EPOCH)) as usize
    }

    /// Puts `item` into a window that is not over.
    #[inline]
    pub fn push(&mut self, window: u64, block: u32, item: T) {
        let slot = Self::slot(window);
        if window / EPOCH <= self.epoch + 1 {
            self.counts[slot] += 1;
            self.near[slot * self.blocks + block as usize].push(item, &mut self.spare);
        } else {
            self.far.entry(window / EPOCH).or_default().push((window, block, item));
        }
    }

    /// The first window from `from` on, the present one, that has items.
    pub fn next_window(&self, from: u64) -> Option<u64> {
        let end = (self.epoch + 2) * EPOCH;
        let near = (from..end).find(|window| self.counts[Self::slot(*window)] > 0);
        let far = || self.far.values().next()?.iter().map(|(window, ..)| *window).min();
        near.or_else(far)
    }

    /// Makes `window` the present one: those before it are over, and empty.
    pub fn turn_to(&mut self, window: u64) {
        self.epoch = self.epoch.max(window / EPOCH);
        while let Some((first, _)) = self.far.first_key_value()
            && *first <= self.epoch + 1
            && let Some((_, items)) = self.far.pop_first()
        {
            for (window, block, item) in items {
                self.push(window, block, item);
            }
        }
    }

    /// Takes the items of a block in a window.
    pub fn take(&mut self, window: u64, block: usize) -> Bucket<T> {
        let slot = Self::slot(window);
        let bucket = std::mem::take(&mut self.near[slot * self.blocks + block]);
        self.counts[slot] -= bucket.len() as u64;
        bucket
    }

    /// Takes back the chunks of a list that is done with.
    pub fn recycle(&mut self, bucket: Bucket<T>) {
        for mut chunk in bucket.full.into_iter().chain([bucket.last]) {
            if chunk.capacity() == CHUNK {
                chunk.clear();
                self.spare.push(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a sorted list: everything comes out in its window, once, however far ahead it lay.
        #[test]
        fn gives_back_in_each_window_what_was_put_there(
            ahead in prop::collection::vec((0u64..4, prop_oneof![1u64..5, 1u64..300, 1u64..100_000]), 1..300)
        ) {
            let mut calendar = Calendar::new(4);
            let mut plain: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
            let mut window = 0;
            for (id, (block, ahead)) in ahead.into_iter().enumerate() {
                calendar.push(window + ahead, u32::try_from(block).unwrap(), id);
                plain.entry((window + ahead, block)).or_default().push(id);
                if id % 3 == 0 {
                    let next = calendar.next_window(window).unwrap();
                    let first = *plain.first_key_value().unwrap().0;
                    prop_assert_eq!(next, first.0);
                    window = next;
                    calendar.turn_to(window);
                    for block in 0..4 {
                        let bucket = calendar.take(window, block);
                        let mut got: Vec<usize> = bucket.iter().copied().collect();
                        prop_assert_eq!(bucket.len(), got.len());
                        prop_assert!((0..got.len()).all(|place| *bucket.get(place) == got[place]));
                        got.sort_unstable();
                        prop_assert_eq!(got, plain.remove(&(window, block as u64)).unwrap_or_default());
                        calendar.recycle(bucket);
                    }
                    if plain.is_empty() {
                        prop_assert_eq!(calendar.next_window(window), None);
                        break;
                    }
                }
            }
        }
    }
}
