//! Which hosts have something to do in which window: a bit each, so that they come in the order in which they lie in memory.

use super::ahead::{Ahead, SLOTS};

/// Hosts of a word.
pub(super) const WORD: usize = 64;

/// Hosts of a part by windows, each in at most one.
pub(super) struct Due {
    words: usize,
    /// The words of each near window, slot by slot.
    bits: Vec<u64>,
    ahead: Ahead<u32>,
}

impl Due {
    /// For `hosts` hosts, none of which has anything to do yet.
    pub fn new(hosts: usize) -> Self {
        let words = hosts.div_ceil(WORD);
        Self { words, bits: vec![0; SLOTS * words], ahead: Ahead::default() }
    }

    /// How many words a window has.
    pub const fn words(&self) -> usize {
        self.words
    }

    /// Host `host` has something to do in `window`, which is not over.
    #[inline]
    pub fn put(&mut self, window: u64, host: u32) {
        if self.ahead.is_near(window) {
            self.ahead.mark(window);
            let word = Ahead::<u32>::slot(window) * self.words + host as usize / WORD;
            self.bits[word] |= 1 << (host as usize % WORD);
        } else {
            self.ahead.keep(window, host);
        }
    }

    /// The first window from `from` on, the present one, in which a host has something to do.
    pub fn next_window(&self, from: u64) -> Option<u64> {
        self.ahead.next_window(from)
    }

    /// Makes `window` the present one, all of whose words are taken then: those before it are over.
    pub fn turn_to(&mut self, window: u64) {
        self.ahead.turn_to(window).into_iter().for_each(|(window, host)| self.put(window, host));
        self.ahead.take(window);
    }

    /// Takes the hosts of a word that have something to do in `window`, the present one.
    #[inline]
    pub fn take(&mut self, window: u64, word: usize) -> u64 {
        std::mem::take(&mut self.bits[Ahead::<u32>::slot(window) * self.words + word])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Beside a sorted set: each host comes in its window, once, however far ahead that lay.
        #[test]
        fn each_host_comes_in_its_window(
            ahead in prop::collection::vec(prop_oneof![1u64..5, 1u64..300, 1u64..100_000], 1..200)
        ) {
            let hosts = u32::try_from(ahead.len()).unwrap();
            let (mut due, mut plain) = (Due::new(ahead.len()), BTreeSet::new());
            let put = |due: &mut Due, plain: &mut BTreeSet<(u64, u32)>, window, host| {
                due.put(window, host);
                plain.insert((window, host));
            };
            (0..hosts).for_each(|host| put(&mut due, &mut plain, ahead[host as usize], host));
            for round in 0..200 {
                let Some((first, _)) = plain.first().copied() else { break };
                let window = due.next_window(first.saturating_sub(1)).unwrap();
                prop_assert_eq!(window, first);
                due.turn_to(window);
                for word in 0..due.words() {
                    let mut bits = due.take(window, word);
                    while bits != 0 {
                        let host = u32::try_from(word * WORD).unwrap() + bits.trailing_zeros();
                        bits &= bits - 1;
                        prop_assert!(plain.remove(&(window, host)));
                        if host % 3 != round % 3 {
                            put(&mut due, &mut plain, window + ahead[(host + round) as usize % ahead.len()], host);
                        }
                    }
                }
                prop_assert!(plain.first().is_none_or(|(next, _)| *next > window));
            }
        }
    }
}
