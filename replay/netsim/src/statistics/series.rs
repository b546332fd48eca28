//! What happens in the network over time, in intervals of equal length.

use serde::{Deserialize, Serialize};
use strength_reduce::StrengthReducedU64;

use super::{float, wide};
use crate::fabric::packet::PacketRecord;
use crate::time::SimTime;

/// Intervals of a series at most: what comes later is not in it.
pub const MAX_ROWS: usize = 1 << 16;

/// Times in picoseconds: how many, their sum, the sum of their squares and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    count: u64,
    sum: u128,
    squares: u128,
    max: u64,
}

impl Times {
    pub(crate) fn record(&mut self, ps: u64) {
        self.count += 1;
        self.sum += u128::from(ps);
        self.squares = self.squares.saturating_add(u128::from(ps) * u128::from(ps));
        self.max = self.max.max(ps);
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.max = self.max.max(other.max);
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| wide(self.sum) / float(self.count))
    }

    /// Their standard deviation (of all, not of a sample).
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((wide(self.squares) / float(self.count) - mean * mean).max(0.0).sqrt())
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
}

/// What happened in one interval, to packets whenever they were handed over. Bytes are those on the hosts' links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Packets handed over.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that arrived.
    pub accepted: u64,
    /// Their bytes.
    pub accepted_bytes: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Switches that those which arrived have passed.
    pub switches: u64,
    /// From hand-over to arrival, of those which arrived.
    pub packet: Times,
    /// From when they left their hosts.
    pub network: Times,
}

impl SeriesRow {
    /// Adds what was seen elsewhere in the same interval.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.offered_bytes += other.offered_bytes;
        self.accepted += other.accepted;
        self.accepted_bytes += other.accepted_bytes;
        self.lost += other.lost;
        self.switches += other.switches;
        self.packet.add(&other.packet);
        self.network.add(&other.network);
    }
}

/// Intervals of equal length from some time on.
#[derive(Clone, Debug)]
pub struct Series {
    start: SimTime,
    length: StrengthReducedU64,
    rows: Vec<SeriesRow>,
}

impl Series {
    /// A series of intervals of `length_ps` picoseconds from `start` on.
    #[must_use]
    pub fn new(start: SimTime, length_ps: u64) -> Self {
        Self { start, length: StrengthReducedU64::new(length_ps.max(1)), rows: Vec::new() }
    }

    /// The same intervals, with nothing in them.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { rows: Vec::new(), ..self.clone() }
    }

    fn row(&mut self, at: SimTime) -> Option<&mut SeriesRow> {
        let index = usize::try_from(at.0.checked_sub(self.start.0)? / self.length).ok()?;
        if index >= MAX_ROWS {
            return None;
        }
        if index >= self.rows.len() {
            self.rows.resize(index + 1, SeriesRow::default());
        }
        self.rows.get_mut(index)
    }

    /// `packets` packets of `bytes` on the wire are handed over at `at`.
    pub fn offered(&mut self, at: SimTime, packets: u64, bytes: u64) {
        if let Some(row) = self.row(at) {
            row.offered += packets;
            row.offered_bytes += bytes;
        }
    }

    /// A packet that takes `bytes` on the wire has arrived.
    pub fn accepted(&mut self, packet: &PacketRecord, bytes: u64) {
        if let Some(row) = self.row(packet.arrived) {
            row.accepted += 1;
            row.accepted_bytes += bytes;
            row.switches += u64::from(packet.switches);
            row.packet.record(packet.arrived.since_ps(packet.handed_over));
            row.network.record(packet.arrived.since_ps(packet.left));
        }
    }

    /// `packets` packets are lost at `at`.
    pub fn lost(&mut self, at: SimTime, packets: u64) {
        if let Some(row) = self.row(at) {
            row.lost += packets;
        }
    }

    /// Adds what was seen elsewhere in the same intervals. A series with nothing in it takes over the other one's intervals.
    pub fn add(&mut self, other: &Self) {
        if self.rows.is_empty() {
            self.clone_from(other);
            return;
        }
        if self.rows.len() < other.rows.len() {
            self.rows.resize(other.rows.len(), SeriesRow::default());
        }
        for (mine, theirs) in self.rows.iter_mut().zip(&other.rows) {
            mine.add(theirs);
        }
    }

    /// Interval `index`; an empty one where nothing has happened.
    #[must_use]
    pub fn get(&self, index: usize) -> SeriesRow {
        self.rows.get(index).copied().unwrap_or_default()
    }

    /// The first `count` intervals (at most [`MAX_ROWS`]): when each begins and ends, and what happened in it.
    #[must_use]
    pub fn spans(&self, count: usize) -> Vec<SeriesSpan> {
        let length = self.length.get();
        let at = |index: usize| self.start.0.saturating_add(length.saturating_mul(index as u64));
        let span = |index| SeriesSpan { from_ps: at(index), until_ps: at(index + 1), row: self.get(index) };
        (0..count.min(MAX_ROWS)).map(span).collect()
    }

    /// How many whole intervals end by `end`.
    #[must_use]
    pub fn whole(&self, end: SimTime) -> usize {
        usize::try_from(end.0.saturating_sub(self.start.0) / self.length).unwrap_or(usize::MAX)
    }
}

/// An interval and what happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesSpan {
    /// Its begin, included, in picoseconds.
    pub from_ps: u64,
    /// Its end, not included.
    pub until_ps: u64,
    /// What happened in it.
    pub row: SeriesRow,
}
