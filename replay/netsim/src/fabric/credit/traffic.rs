//! What crosses links.

use crate::fabric::figures::LinkMeter;
use crate::time::SimTime;
use crate::topology::LinkId;
use crate::units::DurationPs;
use typed_index_collections::TiVec;

/// What crossed a link in the present interval: the part of its meter that is needed all the time.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    /// When the interval ends.
    pub end: SimTime,
    pub bytes: u64,
    pub packets: u64,
}

impl Traffic {
    /// A packet of `bytes` starts at `now` on `link`.
    #[inline]
    pub fn crossed(
        &mut self,
        now: SimTime,
        bytes: u32,
        interval: DurationPs,
        meters: &mut TiVec<LinkId, LinkMeter>,
        link: LinkId,
    ) {
        if now >= self.end {
            self.put_into(&mut meters[link], interval);
            let end = (now.0 / interval.ps() + 1).saturating_mul(interval.ps());
            *self = Self { end: SimTime(end), bytes: 0, packets: 0 };
        }
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// Adds what was counted to `meter`.
    pub fn put_into(&self, meter: &mut LinkMeter, interval: DurationPs) {
        if self.packets > 0 {
            meter.all_crossed(SimTime(self.end.0 - 1), self.bytes, self.packets, interval.ps());
        }
    }
}
