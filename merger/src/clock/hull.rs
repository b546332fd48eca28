//! A line below (or above) all points of a cloud, as near to them as can be.

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// A point on it.
    pub x: i64,
    /// Its height there.
    pub y: i64,
    /// Its slope.
    pub slope: f64,
}

impl Line {
    /// Its height at `x`, relative to `base`.
    pub fn height_at(&self, x: i64, base: i64) -> f64 {
        (self.y - base) as f64 + self.slope * ((x - self.x) as f64)
    }
}

/// The line below all points for which the sum of the distances is least: the edge of the lower convex hull over the
/// points' mean x (Zhang, Liu and Xia 2002). `points` must be ordered; the corners of that hull are enough. Exact: shearing the
/// cloud shears the line.
pub(super) fn line_below(points: &[(i64, i64)], mean: i128) -> Option<Line> {
    let hull = lower_hull(points);
    let after = hull.partition_point(|point| i128::from(point.0) <= mean);
    let left = hull.get(after.saturating_sub(1))?;
    let slope = hull.get(after).map_or(0.0, |right| (right.1 - left.1) as f64 / (right.0 - left.0) as f64);
    Some(Line { x: left.0, y: left.1, slope })
}

/// The line above all points, likewise.
pub(super) fn line_above(points: &[(i64, i64)], mean: i128) -> Option<Line> {
    line_below(&mirrored(points), mean).map(|line| Line { x: line.x, y: -line.y, slope: -line.slope })
}

/// The points upside down, ordered.
pub(super) fn mirrored(points: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut mirrored: Vec<_> = points.iter().map(|&(x, y)| (x, -y)).collect();
    // Nearly ordered already.
    mirrored.sort();
    mirrored
}

/// The lower hull of points, which must be ordered: Andrew's monotone chain, lower half.
pub(super) fn lower_hull(points: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for (number, &point) in points.iter().enumerate() {
        // Most lie no lower than those before and behind them, and so above the line between these.
        if let (Some(before), Some(behind)) =
            (number.checked_sub(1).map(|before| points[before]), points.get(number + 1))
            && before.0 < point.0
            && point.0 < behind.0
            && point.1 >= before.1.max(behind.1)
        {
            continue;
        }
        // Of points with one x only the lowest, which comes first, counts.
        if hull.last().is_some_and(|last| last.0 == point.0) {
            continue;
        }
        while let [.., a, b] = hull.as_slice() {
            let ab = (i128::from(b.0 - a.0), i128::from(b.1 - a.1));
            let ap = (i128::from(point.0 - a.0), i128::from(point.1 - a.1));
            if ab.0 * ap.1 - ab.1 * ap.0 > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_lies_below_all_points_and_touches() {
        let points: Vec<(i64, i64)> = (0..1000i64).map(|i| (i * 1_000, 20 + i / 10 + (i * 7919) % 300)).collect();
        let mean = points.iter().map(|point| i128::from(point.0)).sum::<i128>() / points.len() as i128;
        let line = line_below(&points, mean).unwrap();
        let least = points.iter().map(|&(x, y)| y as f64 - line.height_at(x, 0)).fold(f64::INFINITY, f64::min);
        assert!(least.abs() < 1e-6, "{least}");
        assert!((line.slope - 1e-4).abs() < 3e-5, "{}", line.slope);
    }

    proptest! {
        #[test]
        fn the_hull_has_the_corners_that_no_line_between_others_reaches(
            mut points in prop::collection::vec((0i64..40, -6i64..6), 1..30),
        ) {
            points.sort_unstable();
            let lowest: Vec<(i64, i64)> = points.chunk_by(|a, b| a.0 == b.0).map(|same| same[0]).collect();
            let lies_above = |point: &(i64, i64)| {
                let before = lowest.iter().filter(|other| other.0 < point.0);
                before.into_iter().any(|a| lowest.iter().filter(|other| other.0 > point.0).any(|b| {
                    (point.1 - a.1) * (b.0 - a.0) >= (b.1 - a.1) * (point.0 - a.0)
                }))
            };
            let corners: Vec<(i64, i64)> = lowest.iter().filter(|point| !lies_above(point)).copied().collect();
            prop_assert_eq!(lower_hull(&points), corners);
        }
    }

    #[test]
    fn one_point_gives_a_level_line() {
        let line = line_below(&[(5, 7)], 5).unwrap();
        assert_eq!((line.height_at(100, 0), line.slope), (7.0, 0.0));
        assert!(line_below(&[], 0).is_none());
    }
}
