//! Merge passes, as Hadoop's `Merger.MergeQueue` does them: with at most `factor` segments at a
//! time, the smallest first, and the first pass with so few that all later ones are full.

/// How many segments the first pass over `segments` takes (`getPassFactor`): so that every later one takes `factor`.
const fn first_pass(segments: usize, factor: usize) -> usize {
    if segments <= factor {
        return segments;
    }
    match (segments - 1) % (factor - 1) {
        0 => factor,
        rest => rest + 1,
    }
}

/// The bytes that each pass but the last writes, until at most `factor` of `segments` (in bytes) are left; and the segments
/// that are left for the last one. `factor` is at least 2.
#[must_use]
pub fn merge_passes(segments: &[u64], factor: usize) -> (Vec<u64>, Vec<u64>) {
    let factor = factor.max(2);
    let mut left = segments.to_vec();
    let mut written = Vec::new();
    let mut is_first = true;
    while left.len() > factor {
        left.sort_unstable();
        let taken = if is_first { first_pass(left.len(), factor) } else { factor };
        let merged = left.drain(..taken).fold(0, u64::saturating_add);
        written.push(merged);
        left.push(merged);
        is_first = false;
    }
    (written, left)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn up_to_the_factor_there_is_no_pass_but_the_last() {
        assert_eq!(merge_passes(&[7; 10], 10), (vec![], vec![7; 10]));
        assert_eq!(merge_passes(&[], 10), (vec![], vec![]));
    }

    #[test]
    fn the_first_pass_leaves_full_ones() {
        // 12 segments, factor 10: 3 first, so that 10 are left (White, Hadoop: The Definitive Guide, with 40: 4, 10, 10, 10).
        assert_eq!(merge_passes(&[1; 12], 10), (vec![3], [vec![1; 9], vec![3]].concat()));
        let (written, left) = merge_passes(&[1; 40], 10);
        assert_eq!(written, [4, 10, 10, 10]);
        assert_eq!(left.len(), 10);
        assert_eq!(left.iter().sum::<u64>(), 40);
    }

    #[test]
    fn the_smallest_are_merged_first() {
        let (written, _) = merge_passes(&[100, 1, 2, 50], 3);
        assert_eq!(written, [3]);
    }
}
