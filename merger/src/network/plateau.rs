//! What a link carries in many windows and hardly ever exceeds.

/// Windows are as full as each other within this share.
const WIDTH: f64 = 0.03;
/// So many windows make a plateau.
const MIN_WINDOWS: usize = 10;

/// A plateau of what a link carries in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plateau {
    /// Bytes in a window: the median of the plateau's.
    pub bytes: u64,
}

impl Plateau {
    /// Whether a window lies on it, or above.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes as f64 >= self.bytes as f64 * (1.0 - WIDTH)
    }
}

/// The plateau of windows that the fullest of all, `most`, exceeds by no more than `burst` bytes: after a pause a token bucket lets so much pass at once. The
/// one with most windows; `None` where there is none.
pub(super) fn plateau(windows: impl Iterator<Item = u64>, most: u64, burst: u64) -> Option<Plateau> {
    let mut bytes: Vec<u64> = windows.filter(|bytes| *bytes > 0).collect();
    bytes.sort_unstable_by(|a, b| b.cmp(a));
    let mut behind = 0;
    let mut best: Option<(usize, u64)> = None;
    for first in 0..bytes.len() {
        let least = bytes[first] as f64 * (1.0 - WIDTH) / (1.0 + WIDTH);
        behind = behind.max(first);
        while behind < bytes.len() && bytes[behind] as f64 >= least {
            behind += 1;
        }
        let count = behind - first;
        let middle = bytes[first + count / 2];
        if most.saturating_sub(burst) as f64 > middle as f64 * (1.0 + WIDTH) {
            break;
        }
        if count >= MIN_WINDOWS && best.is_none_or(|(largest, _)| count > largest) {
            best = Some((count, middle));
        }
    }
    best.map(|(_, bytes)| Plateau { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_link_has_a_plateau_and_its_bursts_do_not_raise_it() {
        let full = (0..40u64).map(|n| 1_250_000 + n % 7 * 1_500);
        let bursts = [1_300_000, 1_310_000, 1_320_000];
        let slow = (0..100u64).map(|n| n * 9_000);
        let found = plateau(full.chain(bursts).chain(slow), 1_320_000, 65_536).map(|plateau| plateau.bytes);
        assert!(found.is_some_and(|bytes| bytes.abs_diff(1_254_500) < 12_000), "{found:?}");
    }

    #[test]
    fn a_link_that_is_never_full_has_none() {
        assert_eq!(plateau((1..200u64).map(|n| n * n * 1_000), 39_601_000, 65_536), None);
        assert_eq!(plateau([1_000; 9].into_iter(), 1_000, 65_536), None);
        assert_eq!(plateau(std::iter::empty(), 0, 65_536), None);
    }

    #[test]
    fn a_link_that_carried_more_once_than_a_burst_has_none_below() {
        let often = || [1_000_000; 40].into_iter();
        assert_eq!(plateau(often(), 1_090_000, 65_536), Some(Plateau { bytes: 1_000_000 }));
        assert_eq!(plateau(often(), 1_200_000, 65_536), None);
    }
}
