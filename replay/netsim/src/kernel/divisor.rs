//! Division by a number that stays the same, by multiplication.

/// A number to divide by; of numbers that are not too large one multiplication gives the quotient.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u64,
    /// 2^64 / divisor, rounded down, and one more. Its product with a number n is too large by less than n x divisor / 2^64 parts of the
    /// divisor: below n = 2^64 / divisor the quotient is exact. 0 for the divisor 1, whose reciprocal would take 65 bits.
    reciprocal: u64,
    /// What of a number is its quotient as it is: all bits for the divisor 1, else none.
    whole: u64,
    /// Numbers up to here are divided by multiplication.
    limit: u64,
}

impl Divisor {
    /// `divisor` must not be 0; it is taken for 1 then.
    #[must_use]
    pub const fn new(divisor: u64) -> Self {
        match divisor {
            0 | 1 => Self { divisor: 1, reciprocal: 0, whole: u64::MAX, limit: u64::MAX },
            _ => {
                let limit = u64::MAX / divisor;
                Self { divisor, reciprocal: limit.wrapping_add(1), whole: 0, limit }
            }
        }
    }

    /// How often it is contained in `number`.
    #[must_use]
    #[inline(always)]
    pub const fn quotient(&self, number: u64) -> u64 {
        if number <= self.limit {
            let product = (number as u128).wrapping_mul(self.reciprocal as u128);
            return (product >> u64::BITS) as u64 | (number & self.whole);
        }
        number / self.divisor
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides_as_the_machine_does(
            (divisor, shift) in (1u64.., 0u32..64),
            (number, right) in (any::<u64>(), 0u32..64),
            multiple in any::<u64>(),
        ) {
            let divisor = (divisor >> shift).max(1);
            let by = Divisor::new(divisor);
            let edge = (u64::MAX / divisor).saturating_add(multiple % 3).saturating_sub(1);
            let near = (multiple % (u64::MAX / divisor).max(1)) * divisor;
            for number in [number >> right, edge, near, near.saturating_sub(1), near.saturating_add(1)] {
                prop_assert_eq!(by.quotient(number), number / divisor, "{} / {}", number, divisor);
            }
        }
    }
}
