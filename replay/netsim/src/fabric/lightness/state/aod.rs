//! What the backplane of architecture on demand knows.

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
    pub config: AodConfig,
    pub ports: u32,
    pub joins: Vec<Join>,
    /// Packets that need a ToR's join: from their first start until they are answered (there) or out (here).
    pub used: Vec<u32>,
    /// Pairs of ToRs that are to be joined, and channels that wait for one.
    pub wanted: BTreeSet<(u32, u32)>,
    /// Pairs that were granted and have not been tried since: neither ToR is given up before.
    pub promised: BTreeSet<(u32, u32)>,
    pub waiting: BTreeSet<u32>,
    /// For when there is an answer to come: of this instant, and after a refusal.
    pub asked_at: Option<SimTime>,
    pub retry_at: Option<SimTime>,
    /// The pair that was granted last; the next ones behind it come first.
    pub last: (u32, u32),
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

    pub fn is_joined(&self, rack: u32) -> bool {
        matches!(self.joins[rack as usize], Join::Joined(_))
    }

    pub fn is_promised(&self, rack: u32) -> bool {
        self.promised.iter().any(|pair| pair.0 == rack || pair.1 == rack)
    }

    /// ToRs that could be given up for `pair`.
    pub fn idle(&self, now: SimTime, pair: (u32, u32)) -> impl Iterator<Item = u32> + '_ {
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
