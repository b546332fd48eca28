//! What lies ahead, by windows of time: lists in chunks that are used again.

use std::ops::Range;

use super::ahead::{Ahead, SLOTS};
use crate::count::count;

/// Items of a chunk.
const CHUNK: usize = 128;

/// A list of items: the number behind that of its last item, 0 if there is none. Where a chunk ends there is no room.
#[derive(Clone, Copy, Default)]
pub(super) struct Bucket(u32);

impl Bucket {
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The chunk of its last item; 0 if there is none.
    const fn last_chunk(self) -> usize {
        (self.0 as usize).div_ceil(CHUNK).saturating_sub(1)
    }
}

/// Items by window and block.
pub(super) struct Calendar<T> {
    blocks: usize,
    /// The lists of near windows: slot, then block.
    near: Vec<Bucket>,
    ahead: Ahead<(u32, T)>,
    /// All chunks, one behind the other: an item's number is its place here. Chunk 0 is not used.
    items: Vec<T>,
    /// For each chunk, the one of its list that was full before it; 0 if there is none.
    before: Vec<u32>,
    spare: Vec<u32>,
}

impl<T: Copy> Calendar<T> {
    /// An empty calendar for `blocks` blocks. So many items have room before all are moved for more: no memory is taken before it is used.
    pub fn new(blocks: usize, room: usize) -> Self {
        Self {
            blocks,
            near: vec![Bucket::default(); SLOTS * blocks],
            ahead: Ahead::default(),
            items: Vec::with_capacity(room),
            before: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Puts `item` into a window that is not over. Inlined, so that an item is not made in one place and copied from there.
    #[inline(always)]
    pub fn push(&mut self, window: u64, block: u32, item: T) {
        self.push_copy(window, block, &item);
    }

    /// Puts a copy of `item` in, as [`Self::push`] does; it is not copied to somewhere else on the way.
    #[inline(always)]
    pub fn push_copy(&mut self, window: u64, block: u32, item: &T) {
        match self.place_for(window, block, |_| *item) {
            Some(place) => self.items[place] = *item,
            None => self.ahead.keep(window, (block, *item)),
        }
    }

    /// Puts the item with a number in once more, as `change` makes it, into a window that is not over.
    #[inline(always)]
    pub fn push_again(&mut self, number: usize, window: u64, block: u32, change: impl FnOnce(&mut T)) {
        match self.place_for(window, block, |items| items[number]) {
            Some(place) => {
                let mut item = self.items[number];
                change(&mut item);
                self.items[place] = item;
            }
            None => {
                let mut item = self.items[number];
                change(&mut item);
                self.ahead.keep(window, (block, item));
            }
        }
    }

    /// The number of the next item of a list, if its window is near; `like` tells what an item looks like.
    #[inline(always)]
    fn place_for(&mut self, window: u64, block: u32, like: impl FnOnce(&[T]) -> T) -> Option<usize> {
        if !self.ahead.is_near(window) {
            return None;
        }
        let list = Ahead::<T>::slot(window).wrapping_mul(self.blocks).wrapping_add(block as usize);
        let mut number = self.near[list].0;
        if (number as usize).is_multiple_of(CHUNK) {
            // An empty list has no room either.
            self.ahead.mark(window);
            number = self.grow(list, like(&self.items));
        }
        self.near[list] = Bucket(number.wrapping_add(1));
        Some(number as usize)
    }

    /// Gives a list another chunk; `item` is what an item looks like. Returns the number of its next item.
    #[cold]
    fn grow(&mut self, list: usize, item: T) -> u32 {
        let chunk = self.spare.pop().unwrap_or_else(|| {
            self.before.resize((self.before.len() + 1).max(2), 0);
            self.items.resize(self.before.len() * CHUNK, item);
            count(self.before.len() - 1)
        });
        self.before[chunk as usize] = count(self.near[list].last_chunk());
        chunk * CHUNK as u32
    }

    /// The first window from `from` on, the present one, that has items.
    pub fn next_window(&self, from: u64) -> Option<u64> {
        self.ahead.next_window(from)
    }

    /// The items of windows behind `window`, the present one or a later one, those of the next ones first.
    pub fn behind(&self, window: u64) -> impl Iterator<Item = &T> {
        let near = self.ahead.near_behind(window).flat_map(|window| {
            let first = Ahead::<T>::slot(window) * self.blocks;
            self.near[first..first + self.blocks].iter().flat_map(|bucket| self.numbers(*bucket))
        });
        near.flat_map(|numbers| self.items(numbers)).chain(self.ahead.far_behind(window).map(|(_, item)| item))
    }

    /// Makes `window` the present one, all of whose lists are taken then: those before it are over, and empty.
    pub fn turn_to(&mut self, window: u64) {
        for (window, (block, item)) in self.ahead.turn_to(window) {
            self.push(window, block, item);
        }
        self.ahead.take(window);
    }

    /// Takes the list of a block in the present window, to be given back.
    pub fn take(&mut self, window: u64, block: usize) -> Bucket {
        std::mem::take(&mut self.near[Ahead::<T>::slot(window) * self.blocks + block])
    }

    /// The numbers of a list's items, chunk by chunk.
    pub fn numbers(&self, bucket: Bucket) -> impl Iterator<Item = Range<usize>> {
        let (mut chunk, mut end) = (bucket.last_chunk(), bucket.0 as usize);
        std::iter::from_fn(move || {
            let numbers = (chunk > 0).then_some(chunk * CHUNK..end)?;
            chunk = self.before[chunk] as usize;
            end = (chunk + 1) * CHUNK;
            Some(numbers)
        })
    }

    /// An item, by its number.
    #[inline]
    pub fn get(&self, number: usize) -> &T {
        &self.items[number]
    }

    /// Items, by their numbers.
    #[inline]
    pub fn items(&self, numbers: Range<usize>) -> &[T] {
        &self.items[numbers]
    }

    /// Takes back the chunks of a list that is done with.
    pub fn give_back(&mut self, bucket: Bucket) {
        let mut chunk = bucket.last_chunk();
        while chunk > 0 {
            self.spare.push(count(chunk));
            chunk = self.before[chunk] as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Beside a sorted list: everything comes out in its window, once, however far ahead it lay.
        #[test]
        fn gives_back_in_each_window_what_was_put_there(
            ahead in prop::collection::vec((0u64..4, prop_oneof![1u64..5, 1u64..300, 1u64..100_000]), 1..300),
            times in 1usize..300,
        ) {
            let mut calendar = Calendar::new(4, 100);
            let mut plain: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
            let mut window = 0;
            for (id, (block, ahead)) in ahead.into_iter().enumerate() {
                for time in 0..times {
                    let item = id * times + time;
                    calendar.push(window + ahead, u32::try_from(block).unwrap(), item);
                    plain.entry((window + ahead, block)).or_default().push(id * times + time);
                }
                if id % 3 == 0 {
                    let next = calendar.next_window(window).unwrap();
                    let first = *plain.first_key_value().unwrap().0;
                    prop_assert_eq!(next, first.0);
                    window = next;
                    calendar.turn_to(window);
                    for block in 0..4 {
                        let bucket = calendar.take(window, block);
                        let numbers: Vec<usize> = calendar.numbers(bucket).flatten().collect();
                        prop_assert_eq!(bucket.is_empty(), numbers.is_empty());
                        let mut got: Vec<usize> = numbers.iter().map(|number| *calendar.get(*number)).collect();
                        got.sort_unstable();
                        let mut expected = plain.remove(&(window, block as u64)).unwrap_or_default();
                        expected.sort_unstable();
                        prop_assert_eq!(&got, &expected);
                        // One of them goes on.
                        if let Some(number) = numbers.first() {
                            let again = *calendar.get(*number) + (1 << 40);
                            calendar.push_again(*number, window + ahead, count(block), |item| *item += 1 << 40);
                            plain.entry((window + ahead, block as u64)).or_default().push(again);
                        }
                        calendar.give_back(bucket);
                    }
                    let last = window + ahead % 300;
                    let mut behind: Vec<usize> = calendar.behind(last).copied().collect();
                    behind.sort_unstable();
                    let mut expected: Vec<usize> = plain.range((last + 1, 0)..).flat_map(|(_, items)| items).copied().collect();
                    expected.sort_unstable();
                    prop_assert_eq!(behind, expected);
                    if plain.is_empty() {
                        prop_assert_eq!(calendar.next_window(window), None);
                        break;
                    }
                }
            }
        }
    }
}
