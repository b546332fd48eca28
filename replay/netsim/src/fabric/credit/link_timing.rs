//! Time on a link, in whole picoseconds, without accumulating: `docs/fabric.md`, "Time on a link".

use crate::topology::{Link, LinkId};
use crate::units::{DurationPs, Rate};

/// Bits times picoseconds per second of one byte.
const BYTE_PS: u64 = 8_000_000_000_000;

/// How long flits take on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkTiming {
    /// Bits per second.
    pub rate: u64,
    /// What a flit takes without its gap, in 1 / rate of a picosecond.
    flit: u64,
    /// The gap behind a flit.
    gap: DurationPs,
    /// T(1), and what is left of a picosecond then, without a remainder from before; as dividing takes long.
    one: (DurationPs, u64),
    /// The same of the largest packet, and how many flits that has.
    largest: (DurationPs, u64),
    largest_flits: u32,
    /// Propagation delay, and that of the cable's other direction.
    pub delay: DurationPs,
    pub back: DurationPs,
}

/// The wires of all links; links that take the same times share one.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkTimings {
    pub timings: Vec<LinkTiming>,
    /// The wire of each link.
    pub of: Vec<u16>,
}

impl LinkTimings {
    /// Adds a link with the times of `timing`; `None` if there are too many different ones.
    pub fn push(&mut self, timing: LinkTiming) -> Option<()> {
        // Neighbours in a topology mostly have the same times.
        let known = self.timings.iter().rposition(|other| *other == timing);
        let index = known.unwrap_or_else(|| {
            self.timings.push(timing);
            self.timings.len() - 1
        });
        self.of.push(u16::try_from(index).ok()?);
        Some(())
    }
}

impl LinkTimings {
    /// Those of some links, in their order.
    pub fn of(&self, links: impl Iterator<Item = LinkId>) -> Self {
        Self { timings: self.timings.clone(), of: links.map(|link| self.of[usize::from(link)]).collect() }
    }

    /// The times of `link`.
    pub fn get(&self, link: LinkId) -> &LinkTiming {
        &self.timings[usize::from(self.of[usize::from(link)])]
    }
}

impl LinkTiming {
    /// The times of `link`, whose cable's other direction has the delay `back`, for packets of `flits` flits at most;
    /// `None` if such a packet takes longer than can be counted, or the link has no rate.
    pub fn new(link: Link, back: DurationPs, flit_bytes: u64, flit_gap: DurationPs, flits: u32) -> Option<Self> {
        let rate = link.rate.bps()?;
        let flit = flit_bytes.checked_mul(BYTE_PS)?;
        // Room for a remainder, and for a picosecond more.
        flit.checked_mul(flits.into())?.checked_add(rate.checked_mul(2)?)?;
        let gaps = flit_gap.ps().checked_mul(u64::from(flits).saturating_sub(1))?;
        let parts = |flits: u64, gaps: u64| (DurationPs(flits * flit / rate + gaps), flits * flit % rate);
        let (one, largest) = (parts(1, 0), parts(flits.into(), gaps));
        Some(Self {
            rate,
            flit,
            gap: flit_gap,
            one,
            largest,
            largest_flits: flits,
            delay: DurationPs(link.delay_ps),
            back,
        })
    }

    /// T(flits), with remainder `rest`.
    #[inline]
    pub fn time(&self, flits: u32, rest: u64) -> DurationPs {
        self.packet(flits, rest).0
    }

    /// How long after the start flit `number`, from 0 on, begins to leave: behind the one before it and a gap.
    pub fn begins(&self, number: u32, rest: u64) -> DurationPs {
        if number == 0 { DurationPs::ZERO } else { DurationPs(self.time(number, rest).ps() + self.gap.ps()) }
    }

    /// T(1), if that is a whole number of picoseconds, and T(n) is n times as long.
    pub fn whole_flit(&self) -> Option<DurationPs> {
        let all = DurationPs(self.one.0.ps().checked_mul(self.largest_flits.into())?);
        (self.one.1 == 0 && self.largest == (all, 0)).then_some(self.one.0)
    }

    /// T(1), with remainder `rest`.
    #[inline]
    pub const fn first(&self, rest: u64) -> DurationPs {
        self.carry(self.one, rest).0
    }

    /// T(flits), with remainder `rest`, and the remainder that is left then.
    #[inline(always)]
    pub fn packet(&self, flits: u32, rest: u64) -> (DurationPs, u64) {
        if flits == self.largest_flits {
            return self.carry(self.largest, rest);
        }
        if flits == 1 {
            return self.carry(self.one, rest);
        }
        self.divided(flits, rest)
    }

    /// The same of any number of flits.
    #[inline(never)]
    fn divided(&self, flits: u32, rest: u64) -> (DurationPs, u64) {
        let flits = u64::from(flits);
        let all = flits * self.flit + rest;
        let time = all / self.rate;
        (DurationPs(time + flits.saturating_sub(1) * self.gap.ps()), all - time * self.rate)
    }

    /// What `parts` become with remainder `rest`, which is below the rate as theirs is.
    #[inline]
    const fn carry(&self, parts: (DurationPs, u64), rest: u64) -> (DurationPs, u64) {
        let rest = parts.1 + rest;
        if rest >= self.rate { (DurationPs(parts.0.ps() + 1), rest - self.rate) } else { (parts.0, rest) }
    }

    /// How many flits have left `after` the start, of a packet that takes longer than that.
    #[inline]
    pub fn flits_by(&self, after: DurationPs, rest: u64) -> u64 {
        let ps = after.ps();
        // T(i) <= ps  <=>  i (flit + gap rate) + rest - gap rate < (ps + 1) rate
        if self.gap == DurationPs::ZERO {
            return ((ps + 1) * self.rate - rest - 1) / self.flit;
        }
        let [ps, rate, rest, gap, flit] = [ps, self.rate, rest, self.gap.ps(), self.flit].map(u128::from);
        let flits = ((ps + 1 + gap) * rate - rest - 1) / (flit + gap * rate);
        u64::try_from(flits).unwrap_or(u64::MAX)
    }

    /// Whether it is faster than `other`.
    #[inline]
    pub const fn faster_than(&self, other: &Self) -> bool {
        self.rate > other.rate
    }
}

/// The rate above which a byte would take no time.
pub(super) const FASTEST: Rate = Rate::from_bps(8_000_000_000_000);
