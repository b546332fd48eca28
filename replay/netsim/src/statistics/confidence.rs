//! Confidence intervals from a few independent values.

use super::float;

/// A mean, and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95% confidence interval.
    pub half: f64,
    /// The mean's standard error.
    pub error: f64,
}

/// Student's t for 95%, both sides, by degrees of freedom from 1 on (Abramowitz and Stegun, table 26.10).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The normal distribution's, to which Student's comes.
const NORMAL: f64 = 1.959_964;

/// Student's t for 95%, both sides, with so many degrees of freedom (at least 1).
fn student(deadlock_freedom: usize) -> f64 {
    STUDENT.get(deadlock_freedom.saturating_sub(1)).copied().unwrap_or_else(|| {
        // Two terms of its expansion: right to 0.0002 from 31 on (Abramowitz and Stegun, 26.7.5).
        let (z, deadlock_freedom) = (NORMAL, float(deadlock_freedom as u64));
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        z + first / deadlock_freedom + second / deadlock_freedom.powi(2)
    })
}

/// The mean of independent values with its 95% interval; `None` for fewer than two.
#[must_use]
pub fn interval(values: &[f64]) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let count = float(values.len() as u64);
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    Some(Interval { mean, half: student(values.len() - 1) * error, error })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // 5 values: mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
        let found = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((found.mean - 3.0).abs() < 1e-12);
        assert!((found.error - 0.5f64.sqrt()).abs() < 1e-12);
        assert!((found.half - 2.776 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn student_comes_down_to_the_normal_distribution() {
        assert!((student(31) - 2.0395).abs() < 2e-4 && (student(60) - 2.0003).abs() < 2e-4);
        assert!((2..2_000).all(|deadlock_freedom| student(deadlock_freedom) < student(deadlock_freedom - 1)));
    }
}
