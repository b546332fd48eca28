//! Patterns: which rank sends to which, level by level.

use crate::CongestionError;
use netsim::kernel::random::{below, draw};
use std::fmt;
use std::str::FromStr;

/// A message: the ranks of its sender and its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
}

/// The names of all patterns.
pub(crate) const NAMES: [&str; 14] = [
    "null",
    "rand",
    "bisect",
    "bisect_fb_sym",
    "tree",
    "bruck",
    "gather",
    "scatter",
    "ring",
    "recdbl",
    "2neighbor",
    "4neighbor",
    "6neighbor",
    "shift:N",
];

/// Who sends to whom, among `n` ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nobody sends.
    Null,
    /// A permutation without fixed points, all equally likely, drawn for each run.
    Rand,
    /// Rank 2i + 1 sends to 2i.
    Bisect,
    /// Ranks 2i and 2i + 1 send to each other.
    BisectBoth,
    /// A binomial tree: in level l, i sends to i + 2^l for all i < 2^l.
    Tree,
    /// In level l, i sends to i + 2^l, modulo n.
    Bruck,
    /// All send to rank 0.
    Gather,
    /// Rank 0 sends to all.
    Scatter,
    /// In level j, j sends to its successor.
    Ring,
    /// Recursive doubling: in level l, ranks that differ in bit l alone send to each other.
    RecursiveDoubling,
    /// Each rank exchanges with up to so many others: a rank that has fewer takes the lowest above it that has fewer.
    Neighbor(u32),
    /// In its one level, i sends to i + N, modulo n; nobody if that is itself.
    Shift(u32),
}

/// ⌈log2 n⌉.
const fn log2(n: u32) -> usize {
    if n <= 1 { 0 } else { (u32::BITS - (n - 1).leading_zeros()) as usize }
}

impl Pattern {
    /// How many levels it has among `n` ranks.
    #[must_use]
    pub const fn levels(self, n: u32) -> usize {
        match self {
            Self::Null => 0,
            Self::Tree | Self::Bruck | Self::RecursiveDoubling => log2(n),
            Self::Ring => n as usize,
            _ => 1,
        }
    }

    /// Appends the messages of `level` among `n` ranks, whose numbers begin at `first`; `seed` and `run` decide what is drawn.
    pub fn level(self, level: usize, n: u32, first: u32, seed: u64, run: u64, pairs: &mut Vec<Pair>) {
        let mut add = |from: u32, to: u32| pairs.push(Pair { from: first + from, to: first + to });
        let step = 1u32.checked_shl(u32::try_from(level).unwrap_or(u32::MAX)).unwrap_or(u32::MAX);
        let around = |rank: u32, by: u32| u32::try_from((u64::from(rank) + u64::from(by)) % u64::from(n)).unwrap_or(0);
        match self {
            Self::Null => {}
            Self::Rand => derangement(n, seed, run).into_iter().zip(0..).for_each(|(to, from)| add(from, to)),
            Self::Bisect => (0..n / 2).for_each(|i| add(2 * i + 1, 2 * i)),
            Self::BisectBoth => (0..n / 2).for_each(|i| {
                add(2 * i + 1, 2 * i);
                add(2 * i, 2 * i + 1);
            }),
            Self::Tree => (0..step.min(n.saturating_sub(step))).for_each(|i| add(i, i + step)),
            Self::Bruck => (0..n).for_each(|i| add(i, around(i, step))),
            Self::Gather => (1..n).for_each(|i| add(i, 0)),
            Self::Scatter => (1..n).for_each(|i| add(0, i)),
            Self::Ring => {
                let from = u32::try_from(level).unwrap_or(0);
                add(from, around(from, 1));
            }
            Self::RecursiveDoubling => (0..n.saturating_sub(step)).filter(|k| k & step == 0).for_each(|k| {
                add(k, k + step);
                add(k + step, k);
            }),
            Self::Neighbor(most) => neighbors(n, most as usize, add),
            Self::Shift(by) => (0..n).filter(|_| by % n != 0).for_each(|i| add(i, around(i, by))),
        }
    }
}

/// A permutation without fixed points: one is drawn until it has none, 2.7 times in the mean.
fn derangement(n: u32, seed: u64, run: u64) -> Vec<u32> {
    let mut to: Vec<u32> = (0..n).collect();
    for attempt in 0u64.. {
        shuffle(&mut to, draw(seed, run, attempt));
        if n < 2 || to.iter().zip(0..).all(|(to, from)| *to != from) {
            break;
        }
    }
    to
}

/// Brings `items` into an order that `seed` alone decides; all are equally likely (Fisher and Yates).
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    for last in (1..items.len()).rev() {
        let other = below(draw(seed, 0, last as u64), last as u64 + 1);
        items.swap(last, usize::try_from(other).unwrap_or(last));
    }
}

/// Joins each rank with the lowest above it until it has `most` partners.
fn neighbors(n: u32, most: usize, mut add: impl FnMut(u32, u32)) {
    let mut joined = vec![Vec::<u32>::new(); n as usize];
    // All below have as many as they may.
    let mut open = 0;
    for i in 0..n {
        let mut j = open.max(i + 1);
        while joined[i as usize].len() < most && j < n {
            if joined[j as usize].len() < most && !joined[i as usize].contains(&j) {
                joined[i as usize].push(j);
                joined[j as usize].push(i);
                add(i, j);
                add(j, i);
            }
            j += 1;
        }
        while open < n && joined[open as usize].len() >= most {
            open += 1;
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Rand => f.write_str("rand"),
            Self::Bisect => f.write_str("bisect"),
            Self::BisectBoth => f.write_str("bisect_fb_sym"),
            Self::Tree => f.write_str("tree"),
            Self::Bruck => f.write_str("bruck"),
            Self::Gather => f.write_str("gather"),
            Self::Scatter => f.write_str("scatter"),
            Self::Ring => f.write_str("ring"),
            Self::RecursiveDoubling => f.write_str("recdbl"),
            Self::Neighbor(most) => write!(f, "{most}neighbor"),
            Self::Shift(by) => write!(f, "shift:{by}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = CongestionError;

    fn from_str(name: &str) -> Result<Self, CongestionError> {
        let unknown = || CongestionError::Pattern { name: name.to_owned(), known: &NAMES };
        Ok(match name {
            "null" => Self::Null,
            "rand" => Self::Rand,
            "bisect" => Self::Bisect,
            "bisect_fb_sym" => Self::BisectBoth,
            "tree" => Self::Tree,
            "bruck" => Self::Bruck,
            "gather" => Self::Gather,
            "scatter" => Self::Scatter,
            "ring" => Self::Ring,
            "recdbl" => Self::RecursiveDoubling,
            "2neighbor" => Self::Neighbor(2),
            "4neighbor" => Self::Neighbor(4),
            "6neighbor" => Self::Neighbor(6),
            other => match other.strip_prefix("shift:") {
                Some(by) => Self::Shift(by.parse().map_err(|_| unknown())?),
                None => return Err(unknown()),
            },
        })
    }
}

/// A pattern, and perhaps a second one beside it (`ptrnvsptrn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The pattern that is measured.
    pub first: Pattern,
    /// The number of the first pattern's ranks, and what all others do meanwhile; it begins again as long as the first goes on.
    pub against: Option<(u32, Pattern)>,
}

impl Joined {
    /// How many ranks of `n` are the first pattern's.
    #[must_use]
    pub fn part(&self, n: u32) -> u32 {
        self.against.map_or(n, |(part, _)| part.min(n))
    }

    /// How many levels it has among `n` ranks: those of the first pattern.
    #[must_use]
    pub fn levels(&self, n: u32) -> usize {
        self.first.levels(self.part(n))
    }

    /// The messages of `level` among `n` ranks in `pairs`, the first pattern's in front; `seed` and `run` decide what is drawn.
    pub fn level(&self, level: usize, n: u32, seed: u64, run: u64, pairs: &mut Vec<Pair>) {
        pairs.clear();
        let part = self.part(n);
        self.first.level(level, part, 0, seed, run, pairs);
        if let Some((_, second)) = self.against {
            let levels = second.levels(n - part);
            if levels > 0 {
                second.level(level % levels, n - part, part, !seed, run, pairs);
            }
        }
    }
}
