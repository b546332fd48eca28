//! The payload that was kept of one direction of a connection: runs of bytes, with holes between them.

/// Kept payload, by offset.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Offset of each run and its bytes; ordered, not touching.
    runs: Vec<(u64, Vec<u8>)>,
}

impl Content {
    /// Joins pieces; where two cover the same offset, the bytes of the one that begins first stand.
    #[must_use]
    pub fn new(mut pieces: Vec<(u64, &[u8])>) -> Self {
        pieces.retain(|(_, bytes)| !bytes.is_empty());
        pieces.sort_by_key(|(offset, bytes)| (*offset, std::cmp::Reverse(bytes.len())));
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (offset, bytes) in pieces {
            match runs.last_mut() {
                Some((start, run)) if offset <= *start + run.len() as u64 => {
                    let have = usize::try_from(*start + run.len() as u64 - offset).unwrap_or(usize::MAX);
                    run.extend_from_slice(bytes.get(have..).unwrap_or(&[]));
                }
                _ => runs.push((offset, bytes.to_vec())),
            }
        }
        Self { runs }
    }

    /// Whether nothing was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The bytes known from `offset` on, up to the next hole; empty if the one at `offset` is not known.
    #[must_use]
    pub fn at(&self, offset: u64) -> &[u8] {
        let behind = self.runs.partition_point(|(start, _)| *start <= offset);
        let Some((start, run)) = behind.checked_sub(1).and_then(|at| self.runs.get(at)) else { return &[] };
        usize::try_from(offset - start).ok().and_then(|skip| run.get(skip..)).unwrap_or(&[])
    }

    /// Runs that have bytes in `from..to`: offset and bytes, cut to that range.
    pub fn runs(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.runs.partition_point(|(start, run)| start + run.len() as u64 <= from);
        self.runs[first..].iter().take_while(move |(start, _)| *start < to).map(move |(start, run)| {
            let skip = usize::try_from(from.saturating_sub(*start)).unwrap_or(usize::MAX).min(run.len());
            let keep = usize::try_from(to - start).unwrap_or(usize::MAX).min(run.len());
            (start + skip as u64, &run[skip..keep.max(skip)])
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn pieces_that_touch_are_one_run_and_holes_stay() {
        let content = Content::new(vec![(10, b"cd"), (8, b"ab"), (20, b"xyz"), (9, b"bcde")]);
        assert_eq!(content.at(8), b"abcde");
        assert_eq!(content.at(12), b"e");
        assert_eq!(content.at(13), b"");
        assert_eq!(content.at(7), b"");
        assert_eq!(content.runs(9, 21).collect::<Vec<_>>(), vec![(9, &b"bcde"[..]), (20, &b"x"[..])]);
    }
}
