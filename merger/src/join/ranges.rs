//! Sets of byte ranges.

/// Ranges of offsets, ordered, apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    /// Adds `start..end` and hands the parts that were not there before to `fresh`, in their order.
    pub fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // Nearly all bytes come in order.
        match self.ranges.last_mut() {
            Some(last) if last.1 == start => {
                last.1 = end;
                return fresh(start, end);
            }
            Some(last) if start >= last.0 => {
                if end <= last.1 {
                    return;
                }
                if start < last.1 {
                    let from = std::mem::replace(&mut last.1, end);
                    return fresh(from, end);
                }
            }
            _ => {}
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let behind = self.ranges.partition_point(|range| range.0 <= end);
        let mut at = start;
        for &(range_start, range_end) in &self.ranges[first..behind] {
            if at < range_start {
                fresh(at, range_start.min(end));
            }
            at = at.max(range_end);
        }
        if at < end {
            fresh(at, end);
        }
        let touched = &self.ranges[first..behind];
        let whole = (
            touched.first().map_or(start, |range| range.0.min(start)),
            touched.last().map_or(end, |range| range.1.max(end)),
        );
        self.ranges.splice(first..behind, [whole]);
    }

    /// Up to where everything from `from` on is there.
    pub fn reaches(&self, from: u64) -> u64 {
        let at = self.ranges.partition_point(|range| range.1 < from);
        match self.ranges.get(at) {
            Some(range) if range.0 <= from => range.1.max(from),
            _ => from,
        }
    }

    /// Bytes in all.
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|range| range.1 - range.0).sum()
    }

    /// End of the last range; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_the_set_of_its_bytes(pieces in prop::collection::vec((0u64..200, 0u64..40), 0..40)) {
            let mut ranges = Ranges::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, length) in pieces {
                let mut fresh = 0;
                ranges.insert(start, start + length, |from, to| fresh += to - from);
                let before = bytes.len();
                bytes.extend(start..start + length);
                prop_assert_eq!(fresh, (bytes.len() - before) as u64);
                prop_assert_eq!(ranges.total(), bytes.len() as u64);
                let mut reach = 0;
                while bytes.contains(&reach) { reach += 1; }
                prop_assert_eq!(ranges.reaches(0), reach);
            }
        }
    }
}
