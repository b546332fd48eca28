//! The gaps between the messages of a host, by inversion: one draw a message, however rare it is.

use super::config::Arrivals;
use super::plan::Plan;
use super::{Drawn, draw, unit};

/// When the messages of hosts are handed over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    arrivals: Arrivals,
    seed: u64,
    gap_ps: f64,
    /// Bernoulli: ln(1 - probability in a flit time); -infinity where every flit time has a message.
    ln_none: f64,
}

/// When the next message is handed over: in picoseconds, or by the number of its flit time.
pub type Moment = u64;

impl Gaps {
    /// The gaps of a plan.
    #[must_use]
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let probability = (plan.link.flit_ps() / plan.gap_ps).min(1.0);
        Self { arrivals: plan.arrivals, seed, gap_ps: plan.gap_ps, ln_none: (-probability).ln_1p() }
    }

    /// The moment of message `count` of `host`; `before` is that of the message before, 0 at the start.
    #[must_use]
    #[inline]
    pub fn next(&self, host: u32, count: u64, before: Moment) -> Moment {
        match self.arrivals {
            // Flit times are numbered from 0; the first may have a message, too.
            Arrivals::Bernoulli => {
                let gap = self.failures(host, count);
                if count == 0 { gap } else { before.saturating_add(gap).saturating_add(1) }
            }
            Arrivals::Exponential => {
                let gap = -(-unit(draw(self.seed, Drawn::Gap, host, count))).ln_1p() * self.gap_ps;
                before.saturating_add(rounded(gap))
            }
            Arrivals::Fixed => {
                let phase = unit(draw(self.seed, Drawn::Phase, host, 0));
                #[expect(clippy::cast_precision_loss, reason = "2^53 messages of a host are out of reach")]
                let number = count as f64;
                rounded((phase + number) * self.gap_ps)
            }
        }
    }

    /// How many flit times without a message come before the one with message `count`: geometric.
    fn failures(&self, host: u32, count: u64) -> u64 {
        if self.ln_none == f64::NEG_INFINITY {
            return 0;
        }
        let gap = (-unit(draw(self.seed, Drawn::Gap, host, count))).ln_1p() / self.ln_none;
        floored(gap)
    }
}

/// To the nearest whole number, halves up; too large ones become the largest. Quicker than `round`, a call where the processor may be any.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "from 0 on; casts saturate; what has a fraction is below 2^53"
)]
fn rounded(value: f64) -> u64 {
    let whole = value as u64;
    whole.saturating_add(u64::from(value - whole as f64 >= 0.5))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on; casts saturate")]
fn floored(value: f64) -> u64 {
    value as u64
}
