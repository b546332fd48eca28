//! Traffic beside the one that is measured.

use super::config::{Pattern, TrafficConfig, TrafficError};
use super::plan::Plan;
use super::{Destinations, Drawing, Drawn, draw};
use crate::fabric::packet::LinkTime;
use crate::network::Token;

/// The bit of a token that messages of the background have: no host hands over so many.
pub(crate) const BACKGROUND: u64 = 1 << 39;

/// Whether `token` is of a message of the background.
pub(crate) const fn is_background(token: Token) -> bool {
    token.0 & BACKGROUND != 0
}

/// `error` of a key below `traffic.background`.
fn below(error: TrafficError) -> TrafficError {
    match error {
        TrafficError::Value { key, value, allowed } => {
            TrafficError::Value { key: format!("background.{key}"), value, allowed }
        }
        TrafficError::Key { key, reason } => TrafficError::Key { key: format!("background.{key}"), reason },
        table @ TrafficError::Table(_) => table,
    }
}

impl TrafficConfig {
    /// Refuses a background that says more than who sends how much to whom.
    pub(super) fn check_background(&self) -> Result<(), TrafficError> {
        let Some(background) = &self.background else { return Ok(()) };
        let said = "traffic beside the background says it";
        let measured = "the background is not measured";
        for (key, given, reason) in [
            ("hosts", background.hosts.is_some(), said),
            ("racks", background.racks.is_some(), said),
            ("injection_queue", background.injection_queue.is_some(), said),
            ("full_queue", background.full_queue.is_some(), said),
            ("blocked_head", background.blocked_head.is_some(), said),
            ("network_limit", background.network_limit.is_some(), said),
            ("count", background.count.is_some(), "it goes on until the other traffic is through"),
            ("bursts", background.bursts.is_some(), "it goes on until the other traffic is through"),
            ("react", background.react.is_some(), "it does not answer"),
            ("warm_up", background.warm_up.is_some(), measured),
            ("measurement", background.measurement.is_some(), measured),
            ("drain", background.drain.is_some(), measured),
            ("convergence", background.convergence.is_some(), measured),
            ("batches", background.batches.is_some(), measured),
            ("evolution", background.evolution.is_some(), measured),
            ("offered_hops", background.offered_hops, measured),
            ("occupancy", background.occupancy, measured),
            ("log", background.log.is_some(), measured),
            ("background", background.background.is_some(), "there is one background"),
            ("pattern", background.is_ping_pong(), "a ping-pong is measured"),
            ("pattern", background.pattern == Pattern::Table, "it has a pattern and a load"),
        ] {
            if given {
                return Err(below(TrafficError::key(key, format!("{reason}; leave this out"))));
            }
        }
        background.check().map_err(below)
    }

    /// How the background's messages are drawn on hosts with such links, until the run of `plan` ends.
    pub(super) fn background(
        &self,
        link: LinkTime,
        plan: &Plan,
        seed: u64,
    ) -> Result<Option<Box<Drawing>>, TrafficError> {
        let Some(background) = &self.background else { return Ok(None) };
        let destinations = Destinations::new(background, plan.hosts).map_err(below)?;
        let mut own = background.plan(link, plan.hosts, None).map_err(below)?;
        // A host that is full hands nothing over of either, and both end together.
        own.end_ps = plan.end_ps;
        (own.injection_queue, own.network_limit) = (plan.injection_queue, plan.network_limit);
        // Its hosts draw by themselves.
        let seed = draw(seed, Drawn::Background, 0, 0);
        Ok(Some(Box::new(Drawing::new(&own, destinations, seed))))
    }
}
