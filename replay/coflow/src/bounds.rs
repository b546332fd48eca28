//! What no scheduler can beat.

use std::collections::BTreeMap;

use netsim::units::{DurationPs, Rate};

use crate::demand::{Coflow, PortId, time_of};

/// The least completion time of a coflow that has the switch to itself: what the busiest port has to send or to receive.
#[must_use]
pub fn packet_bound(coflow: &Coflow, rate: Rate) -> DurationPs {
    let mut bytes: BTreeMap<(bool, PortId), f64> = BTreeMap::new();
    for flow in &coflow.flows {
        *bytes.entry((true, flow.from)).or_default() += flow.bytes;
        *bytes.entry((false, flow.to)).or_default() += flow.bytes;
    }
    time_of(bytes.into_values().fold(0.0, f64::max), rate)
}

/// The same over circuits: the busiest port pays `delay` for each port that it has to be connected with.
#[must_use]
pub fn circuit_bound(coflow: &Coflow, rate: Rate, delay: DurationPs) -> DurationPs {
    let mut pairs: BTreeMap<(PortId, PortId), f64> = BTreeMap::new();
    for flow in &coflow.flows {
        *pairs.entry((flow.from, flow.to)).or_default() += flow.bytes;
    }
    let mut times: BTreeMap<(bool, PortId), u64> = BTreeMap::new();
    for ((from, to), bytes) in pairs {
        let time = (time_of(bytes, rate) + delay).ps();
        *times.entry((true, from)).or_default() += time;
        *times.entry((false, to)).or_default() += time;
    }
    DurationPs(times.into_values().max().unwrap_or(0))
}
