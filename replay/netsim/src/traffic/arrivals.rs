//! The gaps between the messages of a host, by inversion: one draw a message, however rare it is.

use std::f64::consts::LN_2;

use super::config::Arrivals;
use super::plan::Plan;
use super::{Drawn, draw, unit};

/// When the messages of hosts are handed over.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaps {
    arrivals: Arrivals,
    seed: u64,
    gap_ps: f64,
    /// Bernoulli: ln(1 - probability in a flit time); -infinity where every flit time has a message.
    ln_none: f64,
    geometric: Option<Geometric>,
    exponential: Option<Exponential>,
}

/// When the next message is handed over: in picoseconds, or by the number of its flit time.
pub type Moment = u64;

impl Gaps {
    /// The gaps of a plan.
    #[must_use]
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let probability = (plan.link.flit_ps() / plan.gap_ps).min(1.0);
        let ln_none = libm::log1p(-probability);
        let is_geometric = plan.arrivals == Arrivals::Bernoulli && ln_none < 0.0 && ln_none.is_finite();
        let geometric = is_geometric.then(|| Geometric::new(ln_none));
        let exponential = (plan.arrivals == Arrivals::Exponential).then(Exponential::new);
        Self { arrivals: plan.arrivals, seed, gap_ps: plan.gap_ps, ln_none, geometric, exponential }
    }

    /// The moment of message `count` of `host`; `before` is that of the message before, 0 at the start.
    #[must_use]
    #[inline]
    pub fn next(&self, host: u32, count: u64, before: Moment) -> Moment {
        self.moment(host, count, before, self.drawn(host, count))
    }

    /// What is drawn for message `count` of `host`: the gap in front of it in picoseconds, or the flit times before it that have none; with `fixed`
    /// nothing.
    #[must_use]
    #[inline]
    pub fn drawn(&self, host: u32, count: u64) -> u64 {
        match self.arrivals {
            Arrivals::Bernoulli => self.failures(host, count),
            Arrivals::Exponential => {
                let bits = draw(self.seed, Drawn::Gap, host, count);
                let gap = self.exponential.as_ref().and_then(|known| known.gap(bits >> SPARE_BITS, self.gap_ps));
                gap.unwrap_or_else(|| gap_of(unit(bits), self.gap_ps))
            }
            Arrivals::Fixed => 0,
        }
    }

    /// The moment of message `count` of `host`, for which this was `drawn`; `before` is that of the message before, 0 at the start.
    #[must_use]
    #[inline]
    pub fn moment(&self, host: u32, count: u64, before: Moment, drawn: u64) -> Moment {
        match self.arrivals {
            // Flit times are numbered from 0; the first may have a message, too.
            Arrivals::Bernoulli if count == 0 => drawn,
            Arrivals::Bernoulli => before.saturating_add(drawn).saturating_add(1),
            Arrivals::Exponential => before.saturating_add(drawn),
            Arrivals::Fixed => {
                let phase = unit(draw(self.seed, Drawn::Phase, host, 0));
                #[expect(clippy::cast_precision_loss, reason = "2^53 messages of a host are out of reach")]
                let number = count as f64;
                rounded((phase + number) * self.gap_ps)
            }
        }
    }

    /// How many flit times without a message come before the one with message `count`: geometric.
    #[inline]
    fn failures(&self, host: u32, count: u64) -> u64 {
        if self.ln_none == f64::NEG_INFINITY {
            return 0;
        }
        let bits = draw(self.seed, Drawn::Gap, host, count);
        let known = self.geometric.as_ref().and_then(|geometric| geometric.look_up(bits >> SPARE_BITS));
        known.unwrap_or_else(|| failures_of(unit(bits), self.ln_none))
    }
}

/// The failures before a success that a number in [0, 1) stands for, where each is ln(1 - probability) likely.
fn failures_of(drawn: f64, ln_none: f64) -> u64 {
    floored(libm::log1p(-drawn) / ln_none)
}

/// The gap that a number in [0, 1) stands for, where the mean one is `mean`.
#[inline(never)]
fn gap_of(drawn: f64, mean: f64) -> u64 {
    rounded(-libm::log1p(-drawn) * mean)
}

/// Bits of a drawn number of which [`unit`] makes nothing.
const SPARE_BITS: u32 = 11;

/// The first numbers of failures by what is drawn for them, in place of a logarithm. Where rounding could decide there is none.
#[derive(Clone, Debug, PartialEq)]
struct Geometric {
    /// From which number of 53 bits on there are 0, 1, ... failures.
    begins: Vec<u64>,
    /// By the upper bits of such a number: the fewest failures that it may stand for.
    fewest: Vec<u8>,
}

impl Geometric {
    /// Numbers of failures that are kept, and the bits by which they are found.
    const KEPT: usize = 128;
    const FOUND_BITS: u32 = 8;
    /// Around the begin of a number so many are left to the logarithm. Rounding is off by less than 8.
    const UNSURE: u64 = 64;
    /// So many steps are made from the fewest on.
    const STEPS: usize = 4;

    fn new(ln_none: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^53")]
        let begin = |failures: u32| (-libm::expm1(f64::from(failures) * ln_none) * (1u64 << 53) as f64) as u64;
        let begins: Vec<u64> = (0..).take(Self::KEPT).map(begin).collect();
        let fewest = (0..1u64 << Self::FOUND_BITS).map(|upper| {
            let first = upper << (53 - Self::FOUND_BITS);
            let behind = begins.partition_point(|begin| *begin <= first);
            u8::try_from(behind.saturating_sub(1)).unwrap_or(u8::MAX)
        });
        Self { fewest: fewest.collect(), begins }
    }

    /// The failures for which a number of 53 bits stands, if that is known.
    #[inline]
    fn look_up(&self, number: u64) -> Option<u64> {
        let fewest = usize::from(self.fewest[(number >> (53 - Self::FOUND_BITS)) as usize]);
        let begins = self.begins.get(fewest..fewest + Self::STEPS)?;
        let steps = begins.iter().skip(1).take_while(|begin| **begin <= number).count();
        let (begin, end) = (begins[steps], *begins.get(steps + 1)?);
        let is_sure = number - begin >= Self::UNSURE && end - number > Self::UNSURE;
        (is_sure || (fewest + steps == 0 && end - number > Self::UNSURE)).then_some((fewest + steps) as u64)
    }
}

/// Logarithms of parts of [1, 2), from which those of drawn numbers are reckoned in fewer steps than `log1p` takes. Where rounding could decide
/// there is none.
#[derive(Clone, Debug, PartialEq)]
struct Exponential {
    /// Of each part: the reciprocal of a number in its middle, and its logarithm.
    parts: Vec<(f64, f64)>,
}

impl Exponential {
    /// The upper bits of a mantissa by which its part is found.
    const PART_BITS: u32 = 7;
    /// Gaps nearer than this, times the mean one, to where rounding changes are left to `log1p`. Both ways differ by less than 2^-45: by the
    /// roundings of logarithms up to 37, by those of their products with the mean, and by the terms left out.
    const UNSURE: f64 = 1.0 / (1u64 << 44) as f64;

    fn new() -> Self {
        let parts = f64::from(1 << Self::PART_BITS);
        let part = |number: u32| {
            let reciprocal = 1.0 / (1.0 + (f64::from(number) + 0.5) / parts);
            (reciprocal, libm::log(reciprocal))
        };
        Self { parts: (0..1 << Self::PART_BITS).map(part).collect() }
    }

    /// The gap for which a number of 53 bits stands, if that is known.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "53 bits are exact; where gaps have more, half of one is unsure"
    )]
    fn gap(&self, number: u64, mean: f64) -> Option<u64> {
        const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
        // From 1 to 2^53: what is left to 1, times 2^53.
        let bits = ((1u64 << f64::MANTISSA_DIGITS).wrapping_sub(number) as f64).to_bits();
        let exponent = (bits >> MANTISSA_BITS) as u32;
        let halvings = f64::from((1023 + f64::MANTISSA_DIGITS).wrapping_sub(exponent));
        let mantissa = f64::from_bits((bits & MANTISSA) | 1.0f64.to_bits());
        let part = (bits >> (MANTISSA_BITS - Self::PART_BITS)) as usize % (1 << Self::PART_BITS);
        let (reciprocal, ln_reciprocal) = self.parts[part];
        // Smaller than 2^-8: the next term is below 2^-50. Terms are added in pairs, which the processor reckons side by side.
        let above = mantissa * reciprocal - 1.0;
        let square = above * above;
        let ln_above =
            above - square * ((1.0 / 2.0 - above * (1.0 / 3.0)) + square * (1.0 / 4.0 - above * (1.0 / 5.0)));
        let gap = (halvings * LN_2 + ln_reciprocal - ln_above) * mean;
        // 0 or more, or less than 0 by rounding.
        let whole = gap as i64;
        let behind = gap - whole as f64;
        ((behind - 0.5).abs() > Self::UNSURE * mean).then_some(whole as u64 + u64::from(behind >= 0.5))
    }
}

/// To the nearest whole number, halves up; too large ones become the largest. Quicker than `round`, a call where the processor may be any.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "from 0 on; casts saturate; what has a fraction is below 2^53"
)]
#[inline]
fn rounded(value: f64) -> u64 {
    let whole = value as u64;
    whole.saturating_add(u64::from(value - whole as f64 >= 0.5))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on; casts saturate")]
#[inline]
fn floored(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Anywhere, and where another number of failures begins.
        #[test]
        fn failures_that_are_looked_up_are_those_of_the_logarithm(
            probability in prop_oneof![1e-6f64..1.0, Just(0.5), Just(0.0625), Just(1.0 - 1e-9)],
            number in 0u64..1 << 53,
            failures in 0usize..Geometric::KEPT,
            beside in -200i64..200,
        ) {
            let ln_none = libm::log1p(-probability);
            let geometric = Geometric::new(ln_none);
            let at_begin = geometric.begins[failures].saturating_add_signed(beside).min((1 << 53) - 1);
            for number in [number, at_begin] {
                let expected = failures_of(unit(number << SPARE_BITS), ln_none);
                prop_assert!(geometric.look_up(number).is_none_or(|found| found == expected), "{number}: {expected}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        /// Anywhere, near 0 and near 1.
        #[test]
        fn gaps_that_are_reckoned_are_those_of_the_logarithm(
            mean in prop_oneof![1.0f64..1e5, 1e5f64..1e9, 1e9f64..1e15],
            number in 0u64..1 << 53,
            bits in 0u32..53,
        ) {
            let exponential = Exponential::new();
            let near = number >> bits;
            for number in [number, near, (1 << 53) - 1 - near] {
                let expected = gap_of(unit(number << SPARE_BITS), mean);
                prop_assert!(exponential.gap(number, mean).is_none_or(|gap| gap == expected), "{number}: {expected}");
            }
        }
    }

    #[test]
    fn most_gaps_are_reckoned() {
        let exponential = Exponential::new();
        let unknown = |mean: f64| {
            let drawn = (0..10_000).map(|count| draw(1, Drawn::Gap, 2, count) >> SPARE_BITS);
            drawn.filter(|number| exponential.gap(*number, mean).is_none()).count()
        };
        assert_eq!([1e3, 1e6, 1e9].map(unknown), [0, 0, 0]);
        assert!((500..2_000).contains(&unknown(1e12)) && unknown(1e15) == 10_000);
        assert_eq!(exponential.gap(0, 1e6), Some(0));
    }

    #[test]
    fn few_failures_are_looked_up() {
        let geometric = Geometric::new(libm::log1p(-0.5));
        assert_eq!([1 << 51, 5 << 50, 27 << 48].map(|number| geometric.look_up(number)), [Some(0), Some(1), Some(2)]);
        assert_eq!(geometric.look_up(1 << 52), None);
    }
}
