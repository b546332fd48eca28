//! Time on a link, in whole picoseconds, without accumulating: `docs/fabric.md`, "Time on a link".

use crate::topology::Link;
use crate::units::Rate;

/// Bits times picoseconds per second of one byte.
const BYTE_PS: u64 = 8_000_000_000_000;

/// How long flits take on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    /// Bits per second.
    pub rate: u64,
    /// What a flit takes, its gap included, in 1 / rate of a picosecond.
    flit: u64,
    /// The gap, in the same unit.
    gap: u64,
    /// Propagation delay, and that of the cable's other direction.
    pub delay: u64,
    pub back: u64,
}

impl Wire {
    /// The times of `link`, whose cable's other direction has the delay `back`; `None` if a packet of `flits` flits
    /// takes longer than can be counted, or the link has no rate.
    pub fn new(link: &Link, back: u64, flit_bytes: u64, flit_gap: u64, flits: u64) -> Option<Self> {
        let rate = link.rate.bps()?;
        let gap = flit_gap.checked_mul(rate)?;
        let flit = flit_bytes.checked_mul(BYTE_PS)?.checked_add(gap)?;
        // Room for a remainder, and for a picosecond more.
        flit.checked_mul(flits)?.checked_add(rate.checked_mul(2)?)?;
        Some(Self { rate, flit, gap, delay: link.delay_ps, back })
    }

    /// T(flits), with remainder `rest`.
    pub fn time(&self, flits: u32, rest: u64) -> u64 {
        (u64::from(flits) * self.flit + rest - self.gap) / self.rate
    }

    /// T(flits), with remainder `rest`, and the remainder that is left then.
    pub fn packet(&self, flits: u32, rest: u64) -> (u64, u64) {
        let all = u64::from(flits) * self.flit + rest - self.gap;
        let time = all / self.rate;
        (time, all - time * self.rate)
    }

    /// How many flits have left `ps` picoseconds after the start, of a packet that takes longer than that.
    pub fn flits_by(&self, ps: u64, rest: u64) -> u64 {
        // T(i) <= ps  <=>  i flit + rest - gap < (ps + 1) rate
        ((ps + 1) * self.rate - rest - 1 + self.gap) / self.flit
    }

    /// Whether it is faster than `other`.
    pub const fn faster_than(&self, other: &Self) -> bool {
        self.rate > other.rate
    }
}

/// The rate above which a byte would take no time.
pub(super) const FASTEST: Rate = Rate::from_bps(8_000_000_000_000);
