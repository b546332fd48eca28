//! Numbers of things by what is looked up of them: eight bytes each, whatever the key.

use std::hash::{BuildHasher as _, Hash};

use foldhash::quality::FixedState;

/// Stands for the end of a chain.
const END: u32 = u32::MAX;

/// Numbers `0..count` in chains by the hash of their keys. Who looks something up compares the keys himself.
pub(crate) struct Chains {
    /// The last number of each chain.
    last: Vec<u32>,
    /// In front of each number the one before it in its chain.
    before: Vec<u32>,
}

impl Chains {
    /// Of so many numbers; those without a key are left out.
    pub fn new<K: Hash>(count: usize, key_of: impl Fn(usize) -> Option<K>) -> Self {
        let mut chains = Self { last: vec![END; count.next_power_of_two()], before: vec![END; count] };
        for number in 0..count.min(END as usize) {
            if let Some(key) = key_of(number) {
                let place = chains.place(&key);
                chains.before[number] = std::mem::replace(&mut chains.last[place], number as u32);
            }
        }
        chains
    }

    /// All numbers that may have a key, the greatest first.
    pub fn of<K: Hash>(&self, key: &K) -> impl Iterator<Item = usize> + use<'_, K> {
        let mut next = self.last[self.place(key)];
        std::iter::from_fn(move || {
            let number = next as usize;
            next = *self.before.get(number)?;
            Some(number)
        })
    }

    fn place(&self, key: &impl Hash) -> usize {
        FixedState::default().hash_one(key) as usize & (self.last.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_numbers_of_a_key_are_found_backwards(keys in prop::collection::vec(prop::option::of(0u8..9), 0..60)) {
            let chains = Chains::new(keys.len(), |number| keys[number]);
            for key in 0u8..10 {
                let found: Vec<usize> = chains.of(&key).filter(|number| keys[*number] == Some(key)).collect();
                let there = (0..keys.len()).rev().filter(|number| keys[*number] == Some(key));
                prop_assert!(there.eq(found));
            }
        }
    }
}
