//! Counting what crosses a link.

use crate::network::{LinkFigures, SimTime};
use crate::units::Rate;

/// Counts one link's traffic as it happens.
#[derive(Clone, Debug, Default)]
pub struct LinkMeter {
    bytes: u64,
    packets: u64,
    drops: u64,
    queue_max_bytes: u64,
    by_interval: Vec<u64>,
}

impl LinkMeter {
    /// A packet of `bytes` has left (or is certain to leave) over the link at `at`.
    pub fn crossed(&mut self, at: SimTime, bytes: u64, interval_ps: u64) {
        self.bytes += bytes;
        self.packets += 1;
        let index = usize::try_from(at.0 / interval_ps.max(1)).unwrap_or(usize::MAX);
        if index >= self.by_interval.len() {
            self.by_interval.resize(index + 1, 0);
        }
        self.by_interval[index] += bytes;
    }

    /// A packet was lost in front of the link.
    pub fn dropped(&mut self) {
        self.drops += 1;
    }

    /// The queue in front of the link holds `bytes` now.
    pub fn queued(&mut self, bytes: u64) {
        self.queue_max_bytes = self.queue_max_bytes.max(bytes);
    }

    /// Bytes that crossed so far, or are certain to.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that were lost so far.
    #[must_use]
    pub const fn drops(&self) -> u64 {
        self.drops
    }

    /// What was counted, as the figures of link `name` with `rate`.
    #[must_use]
    pub fn figures(&self, name: &str, rate: Rate) -> LinkFigures {
        LinkFigures {
            name: name.to_owned(),
            rate_bps: rate.bps().unwrap_or(0),
            bytes: self.bytes,
            packets: self.packets,
            drops: self.drops,
            queue_max_bytes: self.queue_max_bytes,
            bytes_by_interval: self.by_interval.clone(),
        }
    }
}
