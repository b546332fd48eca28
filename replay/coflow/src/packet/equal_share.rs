//! Each port divides its rate evenly among its flows, and a flow takes the smaller of its two parts.

use super::{ActiveCoflow, RateAllocator};

/// Per-flow fairness as `CoflowSim` has it (`FAIR`). What a flow cannot take of its part stays unused, unlike with
/// [`MaxMin`](super::MaxMin).
#[derive(Clone, Copy, Debug, Default)]
pub struct EqualShare;

impl RateAllocator for EqualShare {
    fn is_at_ends_of_flows(&self) -> bool {
        true
    }

    fn allocate(&mut self, coflows: &mut [ActiveCoflow], ports: usize, port_rate: f64) {
        let (mut sends, mut receives) = (vec![0_u32; ports], vec![0_u32; ports]);
        for flow in coflows.iter().flat_map(|coflow| &coflow.flows) {
            sends[flow.from.index()] += 1;
            receives[flow.to.index()] += 1;
        }
        for flow in coflows.iter_mut().flat_map(|coflow| &mut coflow.flows) {
            flow.rate = port_rate / f64::from(sends[flow.from.index()].max(receives[flow.to.index()]));
        }
    }
}
