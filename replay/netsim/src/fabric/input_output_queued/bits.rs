//! Sets of bits of a switch: of VCs of its inputs, or of its outputs.

/// A set of numbers below [`Bits::MAX`]. Two words take less than one of twice the length, for mostly one of them is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits([u64; 2]);

impl Bits {
    pub const NONE: Self = Self([0; 2]);
    pub const ALL: Self = Self([u64::MAX; 2]);
    /// So many numbers there are.
    pub const MAX: u32 = 2 * u64::BITS;

    /// The word of a number, and its bit there.
    #[inline(always)]
    const fn place(number: u32) -> (usize, u64) {
        ((number >> 6 & 1) as usize, 1 << (number & 63))
    }

    #[inline(always)]
    pub fn put(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.0[word] |= bit;
    }

    #[inline(always)]
    pub fn remove(&mut self, number: u32) {
        let (word, bit) = Self::place(number);
        self.0[word] &= !bit;
    }

    /// Puts in `number`, and among those `again` if it was there.
    #[inline(always)]
    pub fn put_again(&mut self, number: u32, again: &mut Self) {
        let (word, bit) = Self::place(number);
        again.0[word] |= self.0[word] & bit;
        self.0[word] |= bit;
    }

    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    /// Takes out the least.
    #[inline(always)]
    pub fn take_least(&mut self) -> Option<u32> {
        let word = usize::from(self.0[0] == 0);
        let bits = self.0[word];
        self.0[word] = bits & bits.wrapping_sub(1);
        (bits != 0).then(|| ((word as u32) << 6) | bits.trailing_zeros())
    }

    /// Those from `first` on, as bits from the lowest one on: as many as 64 at least.
    #[inline(always)]
    pub const fn from(&self, first: u32) -> u64 {
        let place = first & 63;
        match first >> 6 {
            0 => self.0[0] >> place | self.0[1] << 1 << (63 - place),
            1 => self.0[1] >> place,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_of_bits_are_what_one_long_word_is(
            steps in prop::collection::vec((any::<bool>(), 0..Bits::MAX), 0..200),
            first in 0..Bits::MAX,
        ) {
            let (mut bits, mut again, mut word, mut word_again) = (Bits::NONE, Bits::NONE, 0u128, 0u128);
            for (put, number) in steps {
                if put {
                    bits.put_again(number, &mut again);
                    word_again |= word & 1 << number;
                    word |= 1 << number;
                } else {
                    bits.remove(number);
                    word &= !(1 << number);
                }
            }
            prop_assert_eq!(bits.is_empty(), word == 0);
            prop_assert_eq!(bits.from(first), (word >> first) as u64);
            for (mut bits, word) in [(bits, word), (again, word_again)] {
                let mut copy = Bits::NONE;
                for number in (0..Bits::MAX).filter(|number| word >> number & 1 == 1) {
                    copy.put(number);
                    prop_assert_eq!(bits.take_least(), Some(number));
                }
                prop_assert_eq!(bits.take_least(), None);
                prop_assert_eq!(copy.is_empty(), word == 0);
            }
            prop_assert_eq!(Bits::ALL.from(0), u64::MAX);
        }
    }
}
