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

/// Counts one link's traffic as it happens: the interval that was counted last here, all others apart. So what each packet changes lies
/// together, and in few bytes.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct LinkMeter {
    /// When the interval begins that is counted here, its bytes and its packets.
    begin_ps: u64,
    bytes_now: u64,
    packets_now: u32,
    /// How often the intervals were made twice as long.
    doublings: u8,
    /// Whether an interval is counted here yet.
    counts: bool,
    /// Whether a queue was told of in that interval, and the longest.
    has_queue: bool,
    queue_now: u64,
    past: Box<PastIntervals>,
}

/// What a link's meter does not count at present.
#[derive(Clone, Debug, Default)]
struct PastIntervals {
    bytes: u64,
    packets: u64,
    drops: u64,
    queue_max_bytes: u64,
    by_interval: Vec<u64>,
    drops_by_interval: Vec<u64>,
    queue_by_interval: Vec<u64>,
    /// The number of the interval that is counted at present.
    index: usize,
}

impl PastIntervals {
    /// Takes in the interval that was counted.
    fn take_in(&mut self, bytes: u64, packets: u32, queue: Option<u64>) {
        self.bytes += bytes;
        self.packets += u64::from(packets);
        *of_interval(&mut self.by_interval, self.index) += bytes;
        if let Some(bytes) = queue {
            self.queued(self.index, bytes);
        }
    }

    fn queued(&mut self, interval: usize, bytes: u64) {
        self.queue_max_bytes = self.queue_max_bytes.max(bytes);
        let longest = of_interval(&mut self.queue_by_interval, interval);
        *longest = (*longest).max(bytes);
    }
}

impl LinkMeter {
    /// A packet of `bytes` has left (or is certain to leave) over the link at `at`.
    #[inline]
    pub fn crossed(&mut self, at: SimTime, bytes: u64, interval_ps: u64) {
        // Mostly it is the same interval as before, and dividing takes long.
        if !self.is_counted(at, interval_ps) || self.packets_now == u32::MAX {
            self.turn_to(at, interval_ps);
        }
        self.bytes_now += bytes;
        self.packets_now += 1;
    }

    /// `packets` packets of `bytes` together have left over the link, in the interval of `at`.
    pub fn all_crossed(&mut self, at: SimTime, bytes: u64, packets: u64, interval_ps: u64) {
        self.crossed(at, bytes, interval_ps);
        self.past.packets += packets - 1;
    }

    #[inline]
    const fn is_counted(&self, at: SimTime, interval_ps: u64) -> bool {
        self.counts && at.0.wrapping_sub(self.begin_ps) < interval_ps << self.doublings
    }

    /// Makes the interval of `at` the one that is counted.
    #[cold]
    fn turn_to(&mut self, at: SimTime, interval_ps: u64) {
        if self.counts {
            self.past.take_in(self.bytes_now, self.packets_now, self.has_queue.then_some(self.queue_now));
            (self.bytes_now, self.packets_now, self.has_queue, self.queue_now) = (0, 0, false, 0);
        }
        self.counts = true;
        self.past.index = self.interval_of(at, interval_ps);
        let width = interval_ps.max(1) << self.doublings;
        self.begin_ps = at.0 / width * width;
    }

    /// The number of the interval in which `at` lies, all of them made longer where there would be too many.
    fn interval_of(&mut self, at: SimTime, interval_ps: u64) -> usize {
        let number = (at.0 / interval_ps.max(1)).min(MAX_INTERVALS);
        while number >> self.doublings >= MAX_KEPT {
            let past = &mut *self.past;
            double(&mut past.by_interval, |first, second| first + second);
            double(&mut past.drops_by_interval, |first, second| first + second);
            double(&mut past.queue_by_interval, u64::max);
            past.index /= 2;
            self.doublings += 1;
            let width = interval_ps.max(1) << self.doublings;
            self.begin_ps = self.begin_ps / width * width;
        }
        usize::try_from(number >> self.doublings).unwrap_or(usize::MAX)
    }

    /// A packet was lost in front of the link at `at`.
    pub fn dropped(&mut self, at: SimTime, interval_ps: u64) {
        let interval = self.interval_of(at, interval_ps);
        self.past.drops += 1;
        *of_interval(&mut self.past.drops_by_interval, interval) += 1;
    }

    /// The queue in front of the link holds `bytes` from `at` on.
    #[inline]
    pub fn queued(&mut self, at: SimTime, bytes: u64, interval_ps: u64) {
        // What is queued mostly crosses in the interval that is counted.
        if self.is_counted(at, interval_ps) {
            self.queue_now = self.queue_now.max(bytes);
            self.has_queue = true;
        } else {
            let interval = self.interval_of(at, interval_ps);
            self.past.queued(interval, bytes);
        }
    }

    /// Bytes that crossed so far, or are certain to.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.past.bytes + self.bytes_now
    }

    /// Packets that were lost so far.
    #[must_use]
    pub const fn drops(&self) -> u64 {
        self.past.drops
    }

    /// What was counted, as the figures of link `name` with `rate`.
    #[must_use]
    pub fn figures(&self, name: &str, rate: Rate) -> LinkFigures {
        let mut past = PastIntervals::clone(&self.past);
        if self.counts {
            past.take_in(self.bytes_now, self.packets_now, self.has_queue.then_some(self.queue_now));
        }
        LinkFigures {
            name: name.into(),
            rate_bps: rate.bps().unwrap_or(0),
            bytes: past.bytes,
            packets: past.packets,
            drops: past.drops,
            queue_max_bytes: past.queue_max_bytes,
            intervals: Some(Box::new(LinkIntervals {
                bytes: past.by_interval,
                drops: past.drops_by_interval,
                queue: past.queue_by_interval,
                doublings: self.doublings.into(),
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
