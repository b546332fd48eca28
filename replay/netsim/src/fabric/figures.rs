//! Counting what crosses a link.

use super::FabricError;
use crate::network::{LinkFigures, LinkIntervals, double};
use crate::time::SimTime;
use crate::units::{DurationPs, Rate};

/// So many intervals of traffic over time there are: no run goes on beyond them, and what is already certain to cross a
/// link later is counted in the last one.
pub(super) const MAX_INTERVALS: u64 = 1 << 22;

/// So many are kept of a link: where there are more, each is made twice as long.
const MAX_KEPT: u64 = 1 << 16;

/// Width of the intervals of the traffic over time, where a configuration names none.
pub(super) const DEFAULT_INTERVAL: DurationPs = DurationPs::from_ms(100);

/// Refuses an interval so small that a second of traffic would fill the memory.
pub(super) fn check_interval(interval: DurationPs) -> Result<(), FabricError> {
    if interval < DurationPs::from_us(1) {
        return Err(FabricError::Value {
            key: "interval",
            value: interval.to_string(),
            allowed: "at least 1us; the width of the intervals of the traffic over time",
        });
    }
    Ok(())
}

/// Counts one link's traffic as it happens.
#[derive(Clone, Debug, Default)]
pub struct LinkMeter {
    bytes: u64,
    packets: u64,
    drops: u64,
    queue_max_bytes: u64,
    by_interval: Vec<u64>,
    drops_by_interval: Vec<u64>,
    queue_by_interval: Vec<u64>,
    /// How often the intervals were made twice as long.
    doublings: u32,
    /// The interval that was counted last: its begin and its index.
    begin_ps: u64,
    index: usize,
}

impl LinkMeter {
    /// A packet of `bytes` has left (or is certain to leave) over the link at `at`.
    #[inline]
    pub fn crossed(&mut self, at: SimTime, bytes: u64, interval_ps: u64) {
        self.bytes += bytes;
        self.packets += 1;
        // Mostly it is the same interval as before, and dividing takes long.
        if at.0.wrapping_sub(self.begin_ps) >= interval_ps << self.doublings || self.by_interval.is_empty() {
            self.turn_to(at, interval_ps);
        }
        self.by_interval[self.index] += bytes;
    }

    /// `packets` packets of `bytes` together have left over the link, in the interval of `at`.
    pub fn all_crossed(&mut self, at: SimTime, bytes: u64, packets: u64, interval_ps: u64) {
        self.crossed(at, bytes, interval_ps);
        self.packets += packets - 1;
    }

    /// Makes the interval of `at` the one that is counted.
    fn turn_to(&mut self, at: SimTime, interval_ps: u64) {
        self.index = self.interval_of(at, interval_ps);
        let width = interval_ps.max(1) << self.doublings;
        self.begin_ps = at.0 / width * width;
        if self.index >= self.by_interval.len() {
            self.by_interval.resize(self.index + 1, 0);
        }
    }

    /// The number of the interval in which `at` lies, all of them made longer where there would be too many.
    fn interval_of(&mut self, at: SimTime, interval_ps: u64) -> usize {
        let number = (at.0 / interval_ps.max(1)).min(MAX_INTERVALS);
        while number >> self.doublings >= MAX_KEPT {
            double(&mut self.by_interval, |first, second| first + second);
            double(&mut self.drops_by_interval, |first, second| first + second);
            double(&mut self.queue_by_interval, u64::max);
            self.doublings += 1;
            self.index /= 2;
            let width = interval_ps.max(1) << self.doublings;
            self.begin_ps = self.begin_ps / width * width;
        }
        usize::try_from(number >> self.doublings).unwrap_or(usize::MAX)
    }

    /// A packet was lost in front of the link at `at`.
    pub fn dropped(&mut self, at: SimTime, interval_ps: u64) {
        self.drops += 1;
        let interval = self.interval_of(at, interval_ps);
        *of_interval(&mut self.drops_by_interval, interval) += 1;
    }

    /// The queue in front of the link holds `bytes` from `at` on.
    #[inline]
    pub fn queued(&mut self, at: SimTime, bytes: u64, interval_ps: u64) {
        self.queue_max_bytes = self.queue_max_bytes.max(bytes);
        // Dividing takes long, and what is queued mostly crosses in the interval that is counted.
        let counted = at.0.wrapping_sub(self.begin_ps) < interval_ps << self.doublings
            && self.index < self.queue_by_interval.len();
        let interval = if counted { self.index } else { self.interval_of(at, interval_ps) };
        let longest = of_interval(&mut self.queue_by_interval, interval);
        *longest = (*longest).max(bytes);
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
            intervals: Some(Box::new(LinkIntervals {
                bytes: self.by_interval.clone(),
                drops: self.drops_by_interval.clone(),
                queue: self.queue_by_interval.clone(),
                doublings: self.doublings,
            })),
        }
    }
}

/// What `list` holds for an interval, from now on.
fn of_interval(list: &mut Vec<u64>, interval: usize) -> &mut u64 {
    if interval >= list.len() {
        list.resize(interval + 1, 0);
    }
    &mut list[interval]
}

#[cfg(test)]
mod tests {
    use super::LinkMeter;
    use crate::time::SimTime;
    use crate::units::Rate;

    #[test]
    fn losses_and_longest_queues_are_told_by_interval() {
        let mut meter = LinkMeter::default();
        meter.queued(SimTime(5), 700, 10);
        meter.crossed(SimTime(12), 100, 10);
        meter.queued(SimTime(13), 300, 10);
        meter.queued(SimTime(14), 200, 10);
        meter.queued(SimTime(9), 900, 10);
        meter.dropped(SimTime(35), 10);
        meter.dropped(SimTime(36), 10);
        let figures = meter.figures("a->b", Rate::from_bps(8));
        assert_eq!(figures.queue_by_interval(), [900, 300]);
        assert_eq!(figures.drops_by_interval(), [0, 0, 0, 2]);
        assert_eq!((figures.queue_max_bytes, figures.drops), (900, 2));
    }
}
