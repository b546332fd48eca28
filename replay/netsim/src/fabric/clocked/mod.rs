//! What clocked routers share: the cycle of their links, a calendar of cycles, numbered ports, packets, separable allocators, and what makes them
//! packet fabrics.

pub(in crate::fabric) mod calendar;
pub(in crate::fabric) mod matching;
pub(in crate::fabric) mod network;
pub(in crate::fabric) mod packet;
pub(in crate::fabric) mod ports;
pub(in crate::fabric) mod separable;
pub(in crate::fabric) mod ways;

use super::FabricError;
use super::cycle::Cycle;
use super::packet::LinkTime;
use crate::time::SimTime;
use crate::topology::{LinkId, Topology};
use crate::units::{Bytes, DurationPs, Rate};
use typed_index_collections::TiVec;

/// So many cycles ahead something may be under way.
pub(in crate::fabric) const MAX_AHEAD: u64 = 1 << 22;

/// The clock of the switches: a flit's time on the links, which all have one rate.
pub(in crate::fabric) fn clock(
    flit: Bytes,
    mtu: Bytes,
    headers: Bytes,
    topology: &Topology,
) -> Result<LinkTime, FabricError> {
    let wrong = |value: String, allowed| FabricError::Value { key: "topology", value, allowed };
    let mut links = topology.links().iter().filter(|link| !link.absent);
    let rate = links.next().map_or(Rate::UNLIMITED, |link| link.rate);
    if let Some(link) = links.find(|link| link.rate != rate) {
        let value = format!("rates of {rate} and {}", link.rate);
        return Err(wrong(value, "links of one rate: a flit's time on them is the cycle of the switches"));
    }
    if topology.links().iter().any(|link| link.burst_bytes > 0) {
        return Err(wrong("a burst".to_owned(), "wires: a link with credits has no token bucket (burst)"));
    }
    let clock = LinkTime::new(rate, flit, mtu, headers);
    if clock.cycle_ps(1) == 0 {
        return Err(wrong(format!("a rate of {rate}"), "rates at which a flit takes a picosecond at least"));
    }
    Ok(LinkTime { whole_flits: true, ..clock })
}

/// Whole cycles that each link takes, beside that in which a flit is sent: its delay, and `more`.
pub(in crate::fabric) fn delays(
    more: u32,
    topology: &Topology,
    clock: &LinkTime,
) -> Result<TiVec<LinkId, u32>, FabricError> {
    let delay = |delay_ps: u64| {
        let cycles = Cycle::from(SimTime(delay_ps), clock).0;
        u32::try_from(cycles).ok().and_then(|cycles| cycles.checked_add(more))
    };
    let delays = topology.links().iter().map(|link| {
        delay(link.delay_ps).ok_or_else(|| FabricError::Value {
            key: "topology",
            value: format!("a delay of {}", DurationPs(link.delay_ps)),
            allowed: "delays of less than 4294967296 cycles, latency.link among them",
        })
    });
    delays.collect()
}

/// Refuses what is more than [`MAX_AHEAD`] cycles ahead.
pub(in crate::fabric) fn check_ahead(ahead: u64) -> Result<usize, FabricError> {
    usize::try_from(ahead).ok().filter(|_| ahead <= MAX_AHEAD).ok_or_else(|| FabricError::Value {
        key: "topology",
        value: format!("{ahead} cycles under way on the slowest link"),
        allowed: "delays, buffers and latencies of at most 4194304 cycles together",
    })
}
