//! The keys that say which packets' ways are logged.

use super::config::{TrafficConfig, TrafficError};
use super::plan::span_ps;
use crate::fabric::hop_records::{LogWanted, MAX_LOGGED_PACKETS};
use crate::fabric::packet::LinkTime;
use crate::time::SimTime;

impl TrafficConfig {
    pub(super) fn check_log(&self) -> Result<(), TrafficError> {
        let Some(log) = &self.log else { return Ok(()) };
        if log.packets == 0 || log.packets > MAX_LOGGED_PACKETS {
            return Err(TrafficError::value("log.packets", log.packets, &format!("1 to {MAX_LOGGED_PACKETS}")));
        }
        Ok(())
    }

    /// What of the traffic of `hosts` hosts with such links is logged, if anything is.
    pub(super) fn log_wanted(&self, link: &LinkTime, hosts: u32) -> Result<Option<LogWanted>, TrafficError> {
        let Some(log) = &self.log else { return Ok(None) };
        if let Some(host) = log.hosts.iter().find(|host| **host >= hosts) {
            return Err(TrafficError::value("log.hosts", host, &format!("hosts below {hosts}")));
        }
        let from = log.from.map(|from| span_ps("log.from", from, link)).transpose()?;
        Ok(Some(LogWanted {
            packets: log.packets,
            from: SimTime(from.unwrap_or(0)),
            hosts: log.hosts.iter().copied().collect(),
            numbers: log.numbers.iter().copied().collect(),
            flits: log.flits,
        }))
    }
}
