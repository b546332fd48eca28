//! When a link was full.

use super::plateau::Plateau;
use super::windows::{Carried, WINDOW_NS};

/// Windows to either side that are looked at together: bursts of 64 KiB fall into one of two.
const AROUND: u64 = 2;
/// A full link carries at least such a share of its plateau, over all of these.
const FULL: f64 = 0.95;

/// Times, nanoseconds since the epoch: begins and ends, in order, without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullTimes(Vec<(u64, u64)>);

impl FullTimes {
    /// Of a link on a plateau, from all windows in their order. A window counts with those around it.
    pub(super) fn of(plateau: Plateau, windows: &[Carried]) -> Self {
        let least = (plateau.bytes * (2 * AROUND + 1)) as f64 * FULL;
        let mut times: Vec<(u64, u64)> = Vec::new();
        let mut behind = 0;
        for Carried { window, .. } in windows {
            behind += windows[behind..].partition_point(|other| other.window + AROUND < *window);
            let around = windows[behind..].iter().take_while(|other| other.window <= window + AROUND);
            if (around.map(|other| other.bytes).sum::<u64>() as f64) < least {
                continue;
            }
            let (begin, end) = (window * WINDOW_NS, (window + 1) * WINDOW_NS);
            match times.last_mut().filter(|last| last.1 == begin) {
                Some(last) => last.1 = end,
                None => times.push((begin, end)),
            }
        }
        Self(times)
    }

    /// Whether a time is one of them.
    #[must_use]
    pub fn holds(&self, at_ns: u64) -> bool {
        let next = self.0.partition_point(|(begin, _)| *begin <= at_ns);
        next > 0 && at_ns < self.0[next - 1].1
    }

    /// All of one stretch.
    #[must_use]
    pub fn between(begin_ns: u64, end_ns: u64) -> Self {
        Self(vec![(begin_ns, end_ns)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_that_fall_into_one_window_or_two_fill_a_link() {
        let windows = [(10, 20), (11, 130), (12, 65), (13, 130), (14, 195), (15, 105), (16, 125), (17, 125), (30, 125)];
        let windows = windows.map(|(window, bytes)| Carried { window, bytes: bytes * 1_000, is_even: false });
        let times = FullTimes::of(Plateau { bytes: 125_000 }, &windows);
        let full: Vec<u64> = (8..32).filter(|window| times.holds(window * WINDOW_NS + 1)).collect();
        assert_eq!(full, [13, 14, 15]);
        assert!(
            !FullTimes::default().holds(0) && FullTimes::between(5, 7).holds(6) && !FullTimes::between(5, 7).holds(7)
        );
    }
}
