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

    /// Puts in `number`, if it `is_wanted`, without a branch.
    #[inline(always)]
    pub fn put_if<const WIDE: bool>(&mut self, number: u32, is_wanted: bool) {
        let (word, bit) = Self::place::<WIDE>(number);
        self.0[word] |= bit & u64::from(is_wanted).wrapping_neg();
    }

    /// Takes out `number`, if it `is_wanted`, without a branch.
    #[inline(always)]
    pub fn remove_if<const WIDE: bool>(&mut self, number: u32, is_wanted: bool) {
        let (word, bit) = Self::place::<WIDE>(number);
        self.0[word] &= !(bit & u64::from(is_wanted).wrapping_neg());
    }

    /// Puts in `number`. Returns whether it was not there.
    #[inline(always)]
    pub fn put_new<const WIDE: bool>(&mut self, number: u32) -> bool {
        let (word, bit) = Self::place::<WIDE>(number);
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Puts in all of `others`.
    #[inline]
    pub fn put_all(&mut self, others: Self) {
        self.0[0] |= others.0[0];
        self.0[1] |= others.0[1];
    }

    #[inline(always)]
    pub const fn is_empty<const WIDE: bool>(&self) -> bool {
        self.0[0] | if WIDE { self.0[1] } else { 0 } == 0
    }

    /// The least.
    #[inline(always)]
    pub fn least<const WIDE: bool>(&self) -> Option<u32> {
        let word = usize::from(WIDE && self.0[0] == 0);
        (self.0[word] != 0).then(|| ((word as u32) << 6) | self.0[word].trailing_zeros())
    }

    /// Takes out those of `run`, a bit each from `first` on. Returns which were there.
    #[inline(always)]
    pub fn take_run<const WIDE: bool>(&mut self, first: u32, run: u64) -> u64 {
        let found = self.from::<WIDE>(first) & run;
        let place = first & 63;
        if !WIDE || first < u64::BITS {
            self.0[0] &= !(found << place);
            self.0[1] &= !(if WIDE { found >> 1 >> (63 - place) } else { 0 });
        } else {
            self.0[1] &= !(found << place);
        }
        found
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
    fn is_a_word<const WIDE: bool>(
        steps: Vec<(bool, u32)>,
        (first, run): (u32, u64),
        max: u32,
    ) -> Result<(), TestCaseError> {
        let (mut bits, mut word) = (Bits::NONE, 0u128);
        for (put, number) in steps {
            let number = number % max;
            if put {
                bits.put_if::<WIDE>(number, false);
                prop_assert_eq!(bits.put_new::<WIDE>(number), word & 1 << number == 0);
                bits.put_if::<WIDE>(number, true);
                word |= 1 << number;
            } else {
                bits.remove_if::<WIDE>(number, false);
                let mut copy = bits;
                copy.remove_if::<WIDE>(number, true);
                bits.remove::<WIDE>(number);
                prop_assert_eq!(copy, bits);
                word &= !(1 << number);
            }
        }
        prop_assert_eq!(bits.is_empty::<WIDE>(), word == 0);
        let first = first % max;
        prop_assert_eq!(bits.from::<WIDE>(first), (word >> first) as u64);
        prop_assert_eq!(bits.least::<WIDE>(), (word != 0).then(|| word.trailing_zeros()));
        let (run, mut rest) = (run & (u64::MAX >> first.saturating_sub(max - 64)), bits);
        prop_assert_eq!(rest.take_run::<WIDE>(first, run), (word >> first) as u64 & run);
        let kept = word & !(u128::from(run) << first);
        prop_assert_eq!(rest, Bits([kept as u64, (kept >> 64) as u64]));
        let mut copy = Bits::NONE;
        let mut all = Bits::NONE;
        all.put_all(bits);
        for number in (0..max).filter(|number| word >> number & 1 == 1) {
            copy.put::<WIDE>(number);
            prop_assert_eq!(bits.take_least::<WIDE>(), Some(number));
        }
        prop_assert_eq!(bits.take_least::<WIDE>(), None);
        prop_assert_eq!((copy.is_empty::<WIDE>(), copy), (word == 0, all));
        prop_assert_eq!(Bits::ALL.from::<WIDE>(0), u64::MAX);
        Ok(())
    }

    proptest! {
        #[test]
        fn sets_of_bits_are_what_one_long_word_is(
            steps in prop::collection::vec((any::<bool>(), 0..Bits::MAX), 0..200),
            first in 0..Bits::MAX,
            run in any::<u64>(),
        ) {
            is_a_word::<true>(steps.clone(), (first, run), Bits::MAX)?;
            is_a_word::<false>(steps, (first, run), Bits::MAX_NARROW)?;
        }
    }
}
