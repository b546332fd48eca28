//! What becomes of the messages of each service level, where they have several.

use serde::{Deserialize, Serialize};

use super::Histogram;
use crate::fabric::packet::ServiceLevel;
use crate::network::Token;
use crate::traffic::LevelShares;

/// What packets of one service level do in the measurement; loads are bytes on the hosts' links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelCount {
    /// Its number.
    pub level: u8,
    /// Handed over in the measurement.
    pub offered_bytes: u64,
    /// Arrived in it, whenever it was handed over.
    pub accepted_bytes: u64,
    /// Packets that count and were lost.
    pub lost: u64,
    /// From hand-over to arrival, of the packets that count, in picoseconds.
    pub packet: Histogram,
    /// From leaving the source host to arrival.
    pub network: Histogram,
}

/// Counts by service levels that are drawn for messages: a packet's is drawn again from its message's number.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    seed: u64,
    /// Each level with the upper end of its share.
    shares: Vec<(ServiceLevel, f64)>,
    drawn: LevelShares,
    /// By share: the place of its level in `counts`.
    places: Vec<usize>,
    counts: Vec<LevelCount>,
}

impl Levels {
    /// Nothing is counted yet of the levels of `shares`, which `seed` decides.
    pub fn new(shares: &[(ServiceLevel, f64)], seed: u64) -> Self {
        let count = |(level, _): &(ServiceLevel, f64)| LevelCount { level: level.0, ..LevelCount::default() };
        let mut counts: Vec<LevelCount> = shares.iter().map(count).collect();
        counts.sort_unstable_by_key(|count| count.level);
        let place = |(level, _): &(ServiceLevel, f64)| counts.iter().position(|count| count.level == level.0);
        let places = shares.iter().map(|share| place(share).unwrap_or(0)).collect();
        Self { seed, shares: shares.to_vec(), drawn: LevelShares::new(shares), places, counts }
    }

    /// The same with nothing counted.
    pub fn emptied(&self) -> Self {
        Self::new(&self.shares, self.seed)
    }

    /// What was counted of the level of message `token`.
    #[inline]
    pub fn of(&mut self, token: Token) -> &mut LevelCount {
        let (host, count) = (u32::try_from(token.0 >> 40).unwrap_or(u32::MAX), token.0 & ((1 << 40) - 1));
        &mut self.counts[self.places[self.drawn.place(self.seed, host, count)]]
    }

    /// Adds what others have counted of the same levels.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            mine.offered_bytes += theirs.offered_bytes;
            mine.accepted_bytes += theirs.accepted_bytes;
            mine.lost += theirs.lost;
            mine.packet.add(&theirs.packet);
            mine.network.add(&theirs.network);
        }
    }

    /// What was counted, by level.
    pub fn counts(&self) -> &[LevelCount] {
        &self.counts
    }
}
