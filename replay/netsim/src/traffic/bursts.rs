//! Bursts: every host hands over so many messages at once, and the next ones when all have arrived.

use serde::{Deserialize, Serialize};

use super::config::{TrafficConfig, TrafficError};
use crate::statistics::MAX_ROWS;

/// Messages of a host in a burst, at most.
const MAX_BURST: u64 = 1 << 20;

/// Bursts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstPlan {
    /// How many there are.
    pub bursts: u64,
    /// Messages of each host in each of them.
    pub messages: u64,
}

/// A burst that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// When it was handed over, in picoseconds.
    pub from_ps: u64,
    /// When its last packet arrived or was lost.
    pub until_ps: u64,
    /// Packets that arrived.
    pub accepted: u64,
    /// Packets that were lost.
    pub lost: u64,
}

impl TrafficConfig {
    /// Refuses what contradicts bursts.
    pub(super) fn check_bursts(&self) -> Result<(), TrafficError> {
        let Some(bursts) = self.bursts else {
            return match self.burst {
                Some(_) => Err(TrafficError::key("burst", "it belongs to traffic.bursts".to_owned())),
                None => Ok(()),
            };
        };
        if !(1..=MAX_ROWS as u64).contains(&bursts) {
            return Err(TrafficError::value("bursts", bursts, &format!("1 to {MAX_ROWS}")));
        }
        if let Some(messages) = self.burst
            && !(1..=MAX_BURST).contains(&messages)
        {
            return Err(TrafficError::value("burst", messages, &format!("1 to {MAX_BURST} messages of each host")));
        }
        for (key, given) in [
            ("table", self.table.is_some()),
            ("load", self.load.is_some()),
            ("interval", self.interval.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("count", self.count.is_some()),
            ("warm_up", self.warm_up.is_some()),
            ("measurement", self.measurement.is_some()),
            ("drain", self.drain.is_some()),
            ("injection_queue", self.injection_queue.is_some()),
            ("network_limit", self.network_limit.is_some()),
            ("react", self.react.is_some()),
        ] {
            if given {
                let reason =
                    "with traffic.bursts hosts hand over all at once, and wait until it has arrived; leave this out";
                return Err(TrafficError::key(key, reason.to_owned()));
            }
        }
        Ok(())
    }

    /// What the keys come to for `hosts` hosts.
    pub(super) fn burst_plan(&self, hosts: u32) -> Option<BurstPlan> {
        let messages = self.burst.unwrap_or_else(|| u64::from(hosts)).min(MAX_BURST);
        Some(BurstPlan { bursts: self.bursts?, messages })
    }
}
