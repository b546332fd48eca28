//! A pipe: what a flow hands over comes out in order, after the bytes' time and a fixed latency, whatever others do.
//!
//! It is the whole of an ideal network, and a host's loopback in the others.

use crate::time::SimTime;
use crate::units::{DurationPs, Rate};
use serde::{Deserialize, Serialize};

/// What a pipe does to bytes: `latency + bytes / rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipeConfig {
    /// From the last byte's departure to its arrival.
    pub latency: DurationPs,
    /// What each flow gets.
    pub rate: Rate,
}

impl Default for PipeConfig {
    /// A host's loopback: 30 Gbit/s and 30 us a message, as measured over `lo` of a 2-core machine with Linux 6.18
    /// (tens of Gbit/s for a stream with its default offloads, 20 to 40 us for a message to a waiting reader).
    fn default() -> Self {
        Self { latency: DurationPs::from_us(30), rate: Rate::from_bps(30_000_000_000) }
    }
}

/// One flow's pipe.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    free_at: SimTime,
}

impl Pipe {
    /// Hands over `bytes` at `now`: when the last of them is through.
    pub fn hand_over(&mut self, now: SimTime, bytes: u64, config: &PipeConfig) -> SimTime {
        self.free_at = self.free_at.max(now).plus_ps(config.rate.time_ps(bytes));
        self.free_at.plus_ps(config.latency.ps())
    }
}
