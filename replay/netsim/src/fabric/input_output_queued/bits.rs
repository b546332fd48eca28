//! Sets of bits of a switch: of VCs of its inputs, or of its outputs.

/// A set of numbers below [`Bits::MAX`]. Two words take less than one of twice the length, for mostly one of them is looked at. What is done to
/// it without `WIDE` looks at the first one alone: all numbers are below 64 there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits([u64; 2]);

impl Bits {
    pub const NONE: Self = Self([0; 2]);
    pub const ALL: Self = Self([u64::MAX; 2]);
    /// So many numbers there are, and so many without `WIDE`.
    pub const MAX: u32 = 2 * u64::BITS;
    pub const MAX_NARROW: u32 = u64::BITS;

    /// The word of a number, and its bit there.
    #[inline(always)]
    const fn place<const WIDE: bool>(number: u32) -> (usize, u64) {
        (if WIDE { (number >> 6 & 1) as usize } else { 0 }, 1 << (number & 63))
    }

    #[inline(always)]
    pub fn put<const WIDE: bool>(&mut self, number: u32) {
        let (word, bit) = Self::place::<WIDE>(number);
        self.0[word] |= bit;
    }

    #[inline(always)]
    pub fn remove<const WIDE: bool>(&mut self, number: u32) {
        let (word, bit) = Self::place::<WIDE>(number);
        self.0[word] &= !bit;
    }

    /// Puts in `number`, and among those `again` if it was there.
    #[inline(always)]
    pub fn put_again<const WIDE: bool>(&mut self, number: u32, again: &mut Self) {
        let (word, bit) = Self::place::<WIDE>(number);
        again.0[word] |= self.0[word] & bit;
        self.0[word] |= bit;
    }

    #[inline(always)]
    pub const fn is_empty<const WIDE: bool>(&self) -> bool {
        self.0[0] | if WIDE { self.0[1] } else { 0 } == 0
    }

    /// Takes out the least.
    #[inline(always)]
    pub fn take_least<const WIDE: bool>(&mut self) -> Option<u32> {
        let word = usize::from(WIDE && self.0[0] == 0);
        let bits = self.0[word];
        self.0[word] = bits & bits.wrapping_sub(1);
        (bits != 0).then(|| ((word as u32) << 6) | bits.trailing_zeros())
    }

    /// Those from `first` on, as bits from the lowest one on: as many as 64 at least.
    #[inline(always)]
    pub const fn from<const WIDE: bool>(&self, first: u32) -> u64 {
        let place = first & 63;
        if !WIDE {
            return self.0[0] >> place;
        }
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

    /// What is done to a set is done to a long word as well: the same comes of it.
    fn is_a_word<const WIDE: bool>(steps: Vec<(bool, u32)>, first: u32, max: u32) -> Result<(), TestCaseError> {
        let (mut bits, mut again, mut word, mut word_again) = (Bits::NONE, Bits::NONE, 0u128, 0u128);
        for (put, number) in steps {
            let number = number % max;
            if put {
                bits.put_again::<WIDE>(number, &mut again);
                word_again |= word & 1 << number;
                word |= 1 << number;
            } else {
                bits.remove::<WIDE>(number);
                word &= !(1 << number);
            }
        }
        prop_assert_eq!(bits.is_empty::<WIDE>(), word == 0);
        let first = first % max;
        prop_assert_eq!(bits.from::<WIDE>(first), (word >> first) as u64);
        for (mut bits, word) in [(bits, word), (again, word_again)] {
            let mut copy = Bits::NONE;
            for number in (0..max).filter(|number| word >> number & 1 == 1) {
                copy.put::<WIDE>(number);
                prop_assert_eq!(bits.take_least::<WIDE>(), Some(number));
            }
            prop_assert_eq!(bits.take_least::<WIDE>(), None);
            prop_assert_eq!(copy.is_empty::<WIDE>(), word == 0);
        }
        prop_assert_eq!(Bits::ALL.from::<WIDE>(0), u64::MAX);
        Ok(())
    }

    proptest! {
        #[test]
        fn sets_of_bits_are_what_one_long_word_is(
            steps in prop::collection::vec((any::<bool>(), 0..Bits::MAX), 0..200),
            first in 0..Bits::MAX,
        ) {
            is_a_word::<true>(steps.clone(), first, Bits::MAX)?;
            is_a_word::<false>(steps, first, Bits::MAX_NARROW)?;
        }
    }
}
