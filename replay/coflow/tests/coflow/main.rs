//! Coflows over the ports of one switch: files, rates, circuits, and figures that others published.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod benchmark_files;
mod by_hand;
mod circuits;
mod extremes;
mod over_packets;
mod plain_sunflow;
mod published;
mod rates;

use coflow::{Coflow, Flow, PortId, Workload};
use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};
use proptest::prelude::*;

/// At this rate a byte takes a millisecond.
pub const RATE: Rate = Rate::from_bps(8_000);
/// A millisecond.
pub const MS: DurationPs = DurationPs::from_ms(1);

/// A coflow of flows `(from, to, bytes)`.
pub fn coflow(id: u32, arrival_ms: u64, flows: &[(u16, u16, f64)]) -> Coflow {
    let flow = |&(from, to, bytes): &(u16, u16, f64)| Flow { from: PortId(from), to: PortId(to), bytes };
    Coflow {
        id: id.to_string(),
        arrival: SimTime::from_ns(arrival_ms * 1_000_000),
        flows: flows.iter().map(flow).collect(),
    }
}

prop_compose! {
    /// Up to 6 coflows over up to 6 ports.
    pub fn workloads()(ports in 1..=6_u16)(
        coflows in prop::collection::vec((0..200_u64, prop::collection::vec((0..ports, 0..ports, 1..60_u32), 1..12)), 1..=6),
        ports in Just(ports),
    ) -> Workload {
        let coflows = coflows.into_iter().zip(1..).map(|((arrival, flows), id)| {
            let flows: Vec<_> = flows.into_iter().map(|(from, to, bytes)| (from, to, f64::from(bytes))).collect();
            coflow(id, arrival, &flows)
        });
        Workload::new(usize::from(ports), coflows.collect()).unwrap()
    }
}
