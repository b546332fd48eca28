//! How sure a predicted time is: an interval for the time of one more run, from what is known to spread it.
//!
//! All is reckoned in logarithms, for times differ by shares. With `k` captures, `m` seeds of each, and `y[i][j]` the logarithm
//! of the time that capture `i` gives with seed `j`:
//!
//! - the estimate is the mean of all `y`;
//! - *captures*: `s_b`, the standard deviation of the captures' means, counts `s_b^2 (1 + 1/k)`, with `k - 1` degrees of freedom.
//!   With fewer than [`ENOUGH_CAPTURES`] it is pooled with a noise floor: what real runs of one job on one network were seen to differ by;
//! - *chance*: `s_w`, the standard deviation between the seeds of a capture, counts `s_w^2 (1 - 1/m)`, for the captures' means have
//!   `s_w^2 / m` in them already;
//! - *model*: the mean square of the errors on the recorded network, with a degree of freedom for each capture.
//!
//! The sum of the three has the degrees of freedom of Welch and Satterthwaite, and the interval reaches as far as Student's
//! distribution with them says.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// From so many captures on, their own spread says what runs differ by.
pub const ENOUGH_CAPTURES: usize = 3;

/// What runs of one job on one network differ by, where too few captures tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Standard deviation, as a share of the time.
    pub deviation: f64,
    /// From how many runs it is, less one for each group of them.
    pub freedom: f64,
}

impl Default for NoiseFloor {
    /// Of 17 terasorts of 256 MB in the lab, five unshaped and four each at 200, 100 and 50 Mbit/s: standard deviations of 7.7, 8.1, 5.2
    /// and 7.6%, pooled.
    fn default() -> Self {
        Self { deviation: 0.073, freedom: 13.0 }
    }
}

/// A part of what makes a prediction unsure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// The standard deviation that it adds, as a share of the time.
    pub deviation: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

/// Why a prediction is unsure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Captures of the job give different times.
    Captures,
    /// Too few captures: real runs were seen to differ so much, as far as the captures do not tell.
    NoiseFloor,
    /// Seeds give different times.
    Chance,
    /// The replay on the recorded network does not take the recorded time.
    Model,
}

impl SourceKind {
    /// For people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Captures => "captures differ",
            Self::NoiseFloor => "runs differ (noise floor)",
            Self::Chance => "chance (seeds)",
            Self::Model => "replay's own error",
        }
    }
}

/// A time, and between which times another run will lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The geometric mean, in the unit of the samples.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What makes it unsure.
    pub sources: Vec<Source>,
}

impl Interval {
    /// The interval that holds another run with probability `level`, of times by capture and seed (each at least one, all above 0).
    /// `own_errors` are logarithms: replayed over recorded time, on the recorded network. `None` without times.
    #[must_use]
    pub fn of(times: &[Vec<f64>], own_errors: &[f64], floor: NoiseFloor, level: f64) -> Option<Self> {
        let logs: Vec<Vec<f64>> = times.iter().map(|of| of.iter().map(|time| libm::log(*time)).collect()).collect();
        let means: Vec<f64> = logs.iter().filter_map(|logs| mean(logs)).collect();
        let centre = mean(&means)?;
        let sources: Vec<Source> = [between(&means, floor), chance(&logs), model(own_errors)]
            .into_iter()
            .flatten()
            .filter(|source| source.deviation > 0.0)
            .collect();
        let variance: f64 = sources.iter().map(|source| source.deviation.powi(2)).sum();
        let reach = if variance > 0.0 {
            let parts = sources.iter().map(|source| source.deviation.powi(4) / source.freedom);
            let freedom = variance.powi(2) / parts.sum::<f64>();
            quantile(0.5 + level / 2.0, freedom)? * variance.sqrt()
        } else {
            0.0
        };
        let (low, high) = (libm::exp(centre - reach), libm::exp(centre + reach));
        Some(Self { estimate: libm::exp(centre), low, high, sources })
    }
}

/// The quantile of Student's distribution.
fn quantile(probability: f64, freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(probability))
}

fn between(means: &[f64], floor: NoiseFloor) -> Option<Source> {
    let own_freedom = (means.len() - 1) as f64;
    let own = variance(means).unwrap_or(0.0);
    let (kind, variance, freedom) = if means.len() >= ENOUGH_CAPTURES {
        (SourceKind::Captures, own, own_freedom)
    } else {
        let freedom = own_freedom + floor.freedom;
        let pooled = (own * own_freedom + floor.deviation.powi(2) * floor.freedom) / freedom;
        (SourceKind::NoiseFloor, pooled, freedom)
    };
    Some(Source { kind, deviation: (variance * (1.0 + 1.0 / means.len() as f64)).sqrt(), freedom })
}

fn chance(logs: &[Vec<f64>]) -> Option<Source> {
    let several: Vec<&Vec<f64>> = logs.iter().filter(|logs| logs.len() > 1).collect();
    let freedom: f64 = several.iter().map(|logs| (logs.len() - 1) as f64).sum();
    let squares: f64 = several.iter().filter_map(|logs| Some(variance(logs)? * (logs.len() - 1) as f64)).sum();
    let seeds = several.iter().map(|logs| logs.len()).min()? as f64;
    let variance = squares / freedom * (1.0 - 1.0 / seeds);
    Some(Source { kind: SourceKind::Chance, deviation: variance.sqrt(), freedom })
}

fn model(own_errors: &[f64]) -> Option<Source> {
    let squares: Vec<f64> = own_errors.iter().map(|error| error.powi(2)).collect();
    let deviation = mean(&squares)?.sqrt();
    Some(Source { kind: SourceKind::Model, deviation, freedom: own_errors.len() as f64 })
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The geometric mean of values above 0.
pub(super) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    mean(&values.into_iter().map(libm::log).collect::<Vec<_>>()).map(libm::exp)
}

/// Of a sample; `None` of fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    Some(values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use std::f64::consts::TAU;

    const NO_FLOOR: NoiseFloor = NoiseFloor { deviation: 0.0, freedom: 1.0 };

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10, for 80% (both sides).
        for (freedom, expected) in [(1.0, 3.078), (2.0, 1.886), (4.0, 1.533), (13.0, 1.350), (120.0, 1.289)] {
            assert!((quantile(0.9, freedom).unwrap() - expected).abs() < 6e-4, "{freedom}");
        }
    }

    #[test]
    fn three_captures_without_chance_give_students_prediction_interval() {
        let times = [90.0f64, 100.0, 110.0].map(|time| vec![time]);
        let found = Interval::of(&times, &[], NO_FLOOR, 0.8).unwrap();
        let logs = [90.0, 100.0, 110.0].map(libm::log);
        let centre = logs.iter().sum::<f64>() / 3.0;
        let deviation = (logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / 2.0).sqrt();
        let reach = 1.885_618 * deviation * (4.0f64 / 3.0).sqrt();
        assert!((found.estimate - libm::exp(centre)).abs() < 1e-9);
        assert!(
            (libm::log(found.low) - (centre - reach)).abs() < 1e-5
                && (libm::log(found.high) - (centre + reach)).abs() < 1e-5
        );
    }

    #[test]
    fn one_capture_has_the_noise_floor_twice_for_it_and_the_next_run_are_both_chance() {
        let found = Interval::of(&[vec![50.0]], &[], NoiseFloor::default(), 0.8).unwrap();
        let reach = 1.350_171 * 0.073 * 2.0f64.sqrt();
        assert!((found.high / 50.0 - libm::exp(reach)).abs() < 1e-5, "{found:?}");
        assert_eq!(found.sources.len(), 1);
        assert_eq!(found.sources[0].kind, SourceKind::NoiseFloor);
    }

    #[test]
    fn what_is_sure_has_no_width_and_nothing_gives_nothing() {
        let found = Interval::of(&[vec![7.0], vec![7.0], vec![7.0]], &[0.0], NO_FLOOR, 0.8).unwrap();
        assert!((found.low, found.high).eq(&(found.estimate, found.estimate)) && found.sources.is_empty());
        assert_eq!(Interval::of(&[], &[], NO_FLOOR, 0.8), None);
    }

    /// A normal deviate from two uniform ones (Box and Muller), by number.
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            (-2.0 * libm::log(self.uniform())).sqrt() * libm::cos(TAU * self.uniform())
        }
    }

    /// How often the interval holds the time of another run, where the truth is known: runs differ by `run`, seeds by `seed`, the
    /// model errs by `error`.
    fn coverage(captures: usize, seeds: usize, [run, seed, error]: [f64; 3], floor: NoiseFloor) -> f64 {
        const TRIALS: u32 = 20_000;
        let mut normal = Normal(captures as u64 * 1_000 + seeds as u64);
        let held = (0..TRIALS).filter(|_| {
            let bias = error * normal.next();
            let times: Vec<Vec<f64>> = (0..captures)
                .map(|_| {
                    let own = bias + run * normal.next();
                    (0..seeds).map(|_| libm::exp(4.0 + own + seed * normal.next())).collect()
                })
                .collect();
            let errors: Vec<f64> = (0..captures).map(|_| error * normal.next()).collect();
            let real = libm::exp(4.0 + (run.powi(2) + seed.powi(2)).sqrt() * normal.next());
            let found = Interval::of(&times, &errors, floor, 0.8).unwrap();
            (found.low..=found.high).contains(&real)
        });
        held.count() as f64 / f64::from(TRIALS)
    }

    #[test]
    fn four_of_five_runs_lie_within_the_interval() {
        let floor = NoiseFloor { deviation: 0.07, freedom: 1_000.0 };
        let cases = [
            (3, 1, [0.07, 0.0, 0.0]),
            (5, 1, [0.03, 0.0, 0.0]),
            (5, 4, [0.05, 0.05, 0.0]),
            (5, 3, [0.05, 0.02, 0.05]),
            (8, 5, [0.07, 0.02, 0.02]),
            (1, 1, [0.07, 0.0, 0.0]),
            (2, 1, [0.07, 0.0, 0.0]),
        ];
        for (captures, seeds, spreads) in cases {
            let found = coverage(captures, seeds, spreads, floor);
            assert!((0.77..0.84).contains(&found), "{captures} captures, {seeds} seeds, {spreads:?}: {found}");
        }
    }

    #[test]
    fn a_floor_that_is_too_low_covers_too_little_so_the_check_can_fail() {
        let floor = NoiseFloor { deviation: 0.02, freedom: 1_000.0 };
        assert!(coverage(1, 1, [0.07, 0.0, 0.0], floor) < 0.5);
    }
}
