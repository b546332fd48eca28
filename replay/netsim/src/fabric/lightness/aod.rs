//! Architecture on demand (AoD): a backplane circuit switch between the ToRs and the packet switch.
//!
//! A ToR's fibres are not wired to the packet switch: the backplane joins them to it when they are needed, and can serve
//! more ToRs than the packet switch has ports. A packet needs its own ToR and its destination's to be joined. Both are
//! asked for together and granted together or not at all, so that no two pairs wait for each other's half.

use super::state::aod::Join;
use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::time::SimTime;

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
