//! The switches, or hosts' outputs, at which something is to be decided: a bit each, so that they come in the order in which they lie in
//! memory.

use crate::kernel::take_lowest;

/// Bits of a word.
const WORD: u32 = u64::BITS;

/// A set of them, by number.
pub(in crate::fabric::credit) struct Working {
    /// A bit for each number.
    bits: Vec<u64>,
    /// A bit for each of these words that is not 0.
    words: Vec<u64>,
}

impl Working {
    /// None of so many.
    pub fn new(numbers: usize) -> Self {
        let words = numbers.div_ceil(WORD as usize);
        Self { bits: vec![0; words], words: vec![0; words.div_ceil(WORD as usize)] }
    }

    /// Puts one in, which may be there already.
    #[inline(always)]
    pub fn insert(&mut self, number: u32) {
        let word = number / WORD;
        self.bits[word as usize] |= 1 << (number % WORD);
        self.words[(word / WORD) as usize] |= 1 << (word % WORD);
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Puts all of them into `list`, the lowest first, and none is left.
    pub fn take_into(&mut self, list: &mut Vec<u32>) {
        for (upper, words) in (0..).zip(&mut self.words) {
            while let Some(bit) = take_lowest(words) {
                let word = upper * WORD + bit;
                let mut numbers = std::mem::take(&mut self.bits[word as usize]);
                while let Some(bit) = take_lowest(&mut numbers) {
                    list.push(word * WORD + bit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Beside a sorted set, taken out and filled again.
        #[test]
        fn they_come_once_and_in_order(rounds in prop::collection::vec(prop::collection::vec(0u32..10_000, 0..100), 1..5)) {
            let mut working = Working::new(10_000);
            for round in rounds {
                let sorted: BTreeSet<u32> = round.iter().copied().collect();
                round.iter().for_each(|number| working.insert(*number));
                prop_assert_eq!(working.is_empty(), sorted.is_empty());
                let mut list = Vec::new();
                working.take_into(&mut list);
                prop_assert!(list.iter().eq(&sorted));
                prop_assert!(working.is_empty());
            }
        }
    }
}
