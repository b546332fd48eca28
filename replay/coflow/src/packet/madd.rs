//! One coflow after the other: each gets the least rates with which all its flows end together at its bottleneck's time
//! (minimum allocation for desired duration, Varys), then what is left goes to those behind.

use super::{ActiveCoflow, ActiveFlow, Loads, RateAllocator};

/// Which coflow comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that arrived first (FIFO).
    Arrival,
    /// The one with the smallest bottleneck of what is left (SEBF of Varys).
    LeftBottleneck,
    /// The one with the smallest bottleneck when it began (SEBF as `CoflowSim` has it).
    FirstBottleneck,
}

/// Rates for coflows in an order. What no coflow takes goes first in equal shares to those that got nothing, then to all flows
/// by arrival.
#[derive(Clone, Copy, Debug)]
pub struct Madd {
    /// Which coflow comes first.
    pub order: Order,
}

/// What ports have to give, bytes a second; less than `nothing` is nothing.
struct Free {
    sends: Vec<f64>,
    receives: Vec<f64>,
    nothing: f64,
}

impl Free {
    fn of(&self, flow: &ActiveFlow) -> f64 {
        let least = self.sends[flow.from.index()].min(self.receives[flow.to.index()]);
        if least <= self.nothing { 0.0 } else { least }
    }

    fn take(&mut self, flow: &ActiveFlow, rate: f64) {
        self.sends[flow.from.index()] -= rate;
        self.receives[flow.to.index()] -= rate;
    }

    /// How long a coflow takes with all that is free; `None` if it cannot go on everywhere.
    fn time_of(&self, flows: &[ActiveFlow]) -> Option<f64> {
        let loads = Loads::of(flows, self.sends.len());
        let sides = loads.sends.iter().zip(&self.sends).chain(loads.receives.iter().zip(&self.receives));
        sides
            .filter(|(left, _)| **left > 0.0)
            .try_fold(0.0, |longest: f64, (left, free)| (*free > self.nothing).then(|| longest.max(left / free)))
    }
}

impl RateAllocator for Madd {
    fn is_at_ends_of_flows(&self) -> bool {
        false
    }

    fn allocate(&mut self, coflows: &mut [ActiveCoflow], ports: usize, port_rate: f64) {
        let mut free =
            Free { sends: vec![port_rate; ports], receives: vec![port_rate; ports], nothing: port_rate * 1e-12 };
        let mut skipped = Vec::new();
        for place in self.places(coflows, ports) {
            let flows = &mut coflows[place].flows;
            let Some(time) = free.time_of(flows) else {
                flows.iter_mut().for_each(|flow| flow.rate = 0.0);
                skipped.push(place);
                continue;
            };
            for flow in &mut *flows {
                flow.rate = (flow.left / time).min(free.of(flow));
            }
            flows.iter().for_each(|flow| free.take(flow, flow.rate));
        }
        share_evenly(coflows, &skipped, &mut free);
        for flow in coflows.iter_mut().flat_map(|coflow| &mut coflow.flows) {
            let more = free.of(flow);
            flow.rate += more;
            free.take(flow, more);
        }
    }
}

impl Madd {
    fn places(self, coflows: &[ActiveCoflow], ports: usize) -> Vec<usize> {
        let key = |coflow: &ActiveCoflow| match self.order {
            Order::Arrival => 0.0,
            Order::FirstBottleneck => coflow.bottleneck,
            Order::LeftBottleneck => Loads::of(&coflow.flows, ports).greatest(),
        };
        let keys: Vec<f64> = coflows.iter().map(key).collect();
        let mut places: Vec<usize> = (0..coflows.len()).collect();
        places.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
        places
    }
}

/// Gives each flow of these coflows the smaller of its ports' even shares of what is free.
fn share_evenly(coflows: &mut [ActiveCoflow], places: &[usize], free: &mut Free) {
    let (mut sends, mut receives) = (vec![0_u32; free.sends.len()], vec![0_u32; free.sends.len()]);
    for &place in places {
        for flow in coflows[place].flows.iter().filter(|flow| free.of(flow) > 0.0) {
            sends[flow.from.index()] += 1;
            receives[flow.to.index()] += 1;
        }
    }
    for &place in places {
        for flow in &mut coflows[place].flows {
            if free.of(flow) > 0.0 {
                let (from, to) = (flow.from.index(), flow.to.index());
                flow.rate =
                    (free.sends[from] / f64::from(sends[from])).min(free.receives[to] / f64::from(receives[to]));
            }
        }
    }
    for &place in places {
        coflows[place].flows.iter().for_each(|flow| free.take(flow, flow.rate));
    }
}
