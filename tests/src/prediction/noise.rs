//! What chance alone does to a prediction: the error of a simulator that makes none.

use netsim::kernel::random;

/// Draws a noise floor is made of.
const DRAWS: u64 = 20_000;

/// Errors of a perfect simulator, as shares of the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// The median of the absolute errors.
    pub median: f64,
    /// Their 95th percentile.
    pub p95: f64,
}

/// A perfect simulator turns each capture into one more real run on the other network. Its prediction is the geometric mean of
/// `captures` such runs, and it is held against the median of as many real runs as were made. Both are drawn from the real runs,
/// with replacement. `None` with fewer than two runs.
#[must_use]
pub fn noise_floor(runs_s: &[f64], captures: usize) -> Option<NoiseFloor> {
    if runs_s.len() < 2 || captures == 0 {
        return None;
    }
    let mut errors: Vec<f64> = (0..DRAWS).map(|draw| one_error(runs_s, captures, draw)).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share).round() as usize];
    Some(NoiseFloor { median: at(0.5), p95: at(0.95) })
}

fn one_error(runs_s: &[f64], captures: usize, draw: u64) -> f64 {
    let run = |number: usize| runs_s[random::below(random::draw(0, number as u64, draw), runs_s.len() as u64) as usize];
    let predicted = (0..captures).map(|number| libm::log(run(number))).sum::<f64>() / captures as f64;
    let mut measured: Vec<f64> = (captures..captures + runs_s.len()).map(run).collect();
    (libm::exp(predicted) / median(&mut measured) - 1.0).abs()
}

/// The median; not a number without any. Sorts the values.
#[must_use]
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn equal_runs_leave_no_noise() {
        let floor = noise_floor(&[40.0; 5], 3).unwrap();
        assert!(floor.median < 1e-12 && floor.p95 < 1e-12);
        assert_eq!(noise_floor(&[40.0], 3), None);
    }

    /// Two runs of 1 and 2 s, one capture: the measured median is 1, 1.5, 1.5 or 2, so the error is 0, 1/3, 1/3, 1/2 where 1 was
    /// drawn, and 1, 1/3, 1/3, 0 where 2 was.
    #[test]
    fn two_runs_give_the_errors_that_can_be_counted() {
        let floor = noise_floor(&[1.0, 2.0], 1).unwrap();
        assert!((floor.median - 1.0 / 3.0).abs() < 1e-9, "{floor:?}");
        assert!((floor.p95 - 1.0).abs() < 1e-9, "{floor:?}");
    }

    #[test]
    fn more_captures_leave_less_noise() {
        let runs = [36.2, 38.4, 39.9, 41.1, 44.3];
        assert!(noise_floor(&runs, 3).unwrap().median < noise_floor(&runs, 1).unwrap().median);
    }
}
