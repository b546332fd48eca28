//! Architecture on demand (AoD): a backplane circuit switch between the ToRs and the packet switch.
//!
//! A ToR's fibres are not wired to the packet switch: the backplane joins them to it when they are needed, and can serve
//! more ToRs than the packet switch has ports. A packet needs its own ToR and its destination's to be joined. Both are
//! asked for together and granted together or not at all, so that no two pairs wait for each other's half.

use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::time::SimTime;
use crate::units::DurationPs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The keys of the backplane: the `[fabric.aod]` table. The deliverable announces it and gives no values but the time of
/// configuring a circuit switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AodConfig {
    /// From asking for a ToR's join until it can be used. Default: `753ms`, as for the OCS (the deliverable's chapter 4
    /// shows the cost of configuring the AoD there).
    pub delay: DurationPs,
    /// ToRs that can be joined to the packet switch at once. Default: all (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
    /// An idle join is given up for another ToR once it has been up for so long. Default: `10ms` (ours).
    pub hold: DurationPs,
    /// From a refusal until it is asked again. Default: `1ms` (ours).
    pub retry: DurationPs,
    /// Whether all ToRs are joined from the start, which needs a port for each. Default: false.
    pub configured: bool,
}

impl Default for AodConfig {
    fn default() -> Self {
        Self {
            delay: DurationPs::from_ms(753),
            ports: None,
            hold: DurationPs::from_ms(10),
            retry: DurationPs::from_ms(1),
            configured: false,
        }
    }
}

/// How far a ToR's join to the packet switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Apart,
    Configuring,
    /// Since then.
    Joined(SimTime),
}

/// The backplane.
pub struct Aod {
    config: AodConfig,
    ports: u32,
    joins: Vec<Join>,
    /// Packets that need a ToR's join: from their first start until they are answered (there) or out (here).
    used: Vec<u32>,
    /// Pairs of ToRs that are to be joined, and channels that wait for one.
    wanted: BTreeSet<(u32, u32)>,
    /// Pairs that were granted and have not been tried since: neither ToR is given up before.
    promised: BTreeSet<(u32, u32)>,
    waiting: BTreeSet<u32>,
    /// For when there is an answer to come: of this instant, and after a refusal.
    asked_at: Option<SimTime>,
    retry_at: Option<SimTime>,
    /// The pair that was granted last; the next ones behind it come first.
    last: (u32, u32),
}

impl Aod {
    pub fn new(config: &AodConfig, racks: usize) -> Self {
        let racks_count = crate::count::count(racks);
        let start = if config.configured { Join::Joined(SimTime::ZERO) } else { Join::Apart };
        Self {
            ports: config.ports.unwrap_or(racks_count),
            joins: vec![start; racks],
            used: vec![0; racks],
            wanted: BTreeSet::new(),
            promised: BTreeSet::new(),
            waiting: BTreeSet::new(),
            asked_at: None,
            retry_at: None,
            last: (0, 0),
            config: config.clone(),
        }
    }

    fn is_joined(&self, rack: u32) -> bool {
        matches!(self.joins[rack as usize], Join::Joined(_))
    }

    fn is_promised(&self, rack: u32) -> bool {
        self.promised.iter().any(|pair| pair.0 == rack || pair.1 == rack)
    }

    /// ToRs that could be given up for `pair`.
    fn idle(&self, now: SimTime, pair: (u32, u32)) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.joins).filter_map(move |(rack, join)| match join {
            Join::Joined(since)
                if rack != pair.0
                    && rack != pair.1
                    && self.used[rack as usize] == 0
                    && !self.is_promised(rack)
                    && now.since_ps(*since) >= self.config.hold.ps() =>
            {
                Some(rack)
            }
            _ => None,
        })
    }
}

impl Lightness {
    /// Whether a channel's next packet, which goes to `to`, finds its way to the packet switch and from there to the
    /// destination's ToR joined. If not, both are asked for, and the channel is tried again when they are.
    pub(super) fn is_joined(&mut self, now: SimTime, channel: u32, to: u32) -> bool {
        let from = channel / self.tor_channels;
        let place = self.aod_place();
        let Some(aod) = &mut self.aod else { return true };
        if aod.is_joined(from) && aod.is_joined(to) {
            return true;
        }
        aod.waiting.insert(channel);
        let apart = [from, to].into_iter().any(|rack| aod.joins[rack as usize] == Join::Apart);
        if apart && aod.wanted.insert((from, to)) && aod.asked_at != Some(now) {
            aod.asked_at = Some(now);
            self.queue.schedule(now, Phase::Decide, place, Event::AodDecides);
        }
        false
    }

    /// A packet begins (or ceases) to need a ToR's join.
    pub(super) fn use_join(&mut self, rack: u32, begins: bool) {
        if let Some(aod) = &mut self.aod {
            let used = &mut aod.used[rack as usize];
            *used = if begins { *used + 1 } else { used.saturating_sub(1) };
        }
    }

    /// The control plane answers what was asked for: in turn, behind what was granted last.
    pub(super) fn aod_decides(&mut self, now: SimTime) {
        // Who was joined in this instant must be used before it can be given up.
        self.aod_try(now);
        let Some(aod) = &mut self.aod else { return };
        aod.retry_at = aod.retry_at.filter(|at| *at > now);
        let behind: Vec<_> = aod.wanted.range(..=aod.last).copied().collect();
        let pairs: Vec<_> = aod.wanted.iter().copied().filter(|pair| *pair > aod.last).chain(behind).collect();
        let mut refused = false;
        for pair in pairs {
            refused |= !self.answer_pair(now, pair);
        }
        let place = self.aod_place();
        if let Some(aod) = &mut self.aod
            && refused
            && aod.retry_at.is_none()
        {
            let again = now.plus_ps(aod.config.retry.ps());
            aod.retry_at = Some(again);
            self.queue.schedule(again, Phase::Decide, place, Event::AodDecides);
        }
    }

    /// Joins both ToRs of a pair if there are ports for them. Returns whether nothing more is to be asked for it.
    fn answer_pair(&mut self, now: SimTime, pair: (u32, u32)) -> bool {
        let place = self.aod_place();
        let Some(aod) = &mut self.aod else { return true };
        let missing: Vec<u32> =
            [pair.0, pair.1].into_iter().filter(|rack| aod.joins[*rack as usize] == Join::Apart).collect();
        let taken = crate::count::count(aod.joins.iter().filter(|join| **join != Join::Apart).count());
        let short = (taken + crate::count::count(missing.len())).saturating_sub(aod.ports);
        let given_up: Vec<u32> = aod.idle(now, pair).take(short as usize).collect();
        self.counters.aod_requests += 1;
        if given_up.len() < short as usize {
            self.counters.aod_refused += 1;
            return false;
        }
        for rack in given_up {
            aod.joins[rack as usize] = Join::Apart;
            self.counters.aod_evicted += 1;
        }
        aod.wanted.remove(&pair);
        aod.promised.insert(pair);
        if !missing.is_empty() {
            aod.last = pair;
        }
        let up = now.plus_ps(aod.config.delay.ps());
        for rack in missing {
            aod.joins[rack as usize] = Join::Configuring;
            self.counters.aod_joins += 1;
            self.queue.schedule(up, Phase::Arrive, place, Event::AodJoined(rack));
        }
        true
    }

    /// A ToR is joined: the channels that waited are tried once all joins of the instant are there.
    pub(super) fn aod_joined(&mut self, now: SimTime, rack: u32) {
        let place = self.aod_place();
        if let Some(aod) = &mut self.aod {
            aod.joins[rack as usize] = Join::Joined(now);
            self.queue.schedule(now, Phase::Decide, place, Event::AodTry);
        }
    }

    /// Channels that waited for joins try again.
    pub(super) fn aod_try(&mut self, now: SimTime) {
        let waiting = self.aod.as_mut().map(|aod| std::mem::take(&mut aod.waiting)).unwrap_or_default();
        for channel in waiting {
            self.try_channel(now, channel);
        }
        if let Some(aod) = &mut self.aod {
            let mut promised = std::mem::take(&mut aod.promised);
            promised.retain(|pair| !(aod.is_joined(pair.0) && aod.is_joined(pair.1)));
            aod.promised = promised;
        }
    }
}
