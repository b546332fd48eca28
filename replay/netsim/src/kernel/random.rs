//! Counter-based randomness: a number is a function of seed, place and time (or count), never of the order of calls.
//!
//! So a component more or a thread more does not shift what the others draw.

/// The finalizer of SplitMix64: every bit of the input reaches every bit of the output.
#[must_use]
#[inline]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The number drawn with `seed` at `place` for `count` (a time, or how many were drawn there before).
#[must_use]
#[inline]
pub const fn draw(seed: u64, place: u64, count: u64) -> u64 {
    let place = mix(seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mix(place ^ count.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// A number below `bound` (which must not be 0) from 64 random bits, by multiplication; its bias is below `bound` / 2^64.
#[must_use]
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(bits) * u128::from(bound)) >> 64).unwrap_or(0)
}

/// A number in [0, 1) from 64 random bits: the first 53 of them.
#[must_use]
#[inline]
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn draws_are_even_over_places_and_counts() {
        let mut counts = [0u32; 10];
        for place in 0..100 {
            for count in 0..1_000 {
                counts[usize::try_from(below(draw(7, place, count), 10)).unwrap()] += 1;
            }
        }
        // 10,000 expected each, standard deviation 95.
        assert!(counts.iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
    }

    #[test]
    fn another_seed_place_or_count_draws_another_number() {
        let base = draw(1, 2, 3);
        assert_ne!(base, draw(2, 2, 3));
        assert_ne!(base, draw(1, 3, 3));
        assert_ne!(base, draw(1, 2, 4));
        assert_eq!(base, draw(1, 2, 3));
    }
}
