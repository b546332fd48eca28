//! Max-min fairness among flows, by progressive filling.

use super::{ActiveCoflow, RateAllocator};

/// No flow can get more without another that has no more than it getting less.
#[derive(Clone, Debug, Default)]
pub struct MaxMin {
    /// Flows of each pair of ports that have no rate yet, by sender.
    waiting: Vec<u32>,
    /// Rate of a flow of each pair, by sender.
    rates: Vec<f64>,
}

/// A port's rate that is not given away, and its flows without one.
#[derive(Clone, Copy)]
struct PortShare {
    free: f64,
    flows: u32,
}

impl PortShare {
    fn share(self) -> f64 {
        if self.flows == 0 { f64::INFINITY } else { self.free.max(0.0) / f64::from(self.flows) }
    }

    fn give(&mut self, flows: u32, rate: f64) {
        self.free -= f64::from(flows) * rate;
        self.flows -= flows;
    }
}

impl RateAllocator for MaxMin {
    fn is_at_ends_of_flows(&self) -> bool {
        true
    }

    fn allocate(&mut self, coflows: &mut [ActiveCoflow], ports: usize, port_rate: f64) {
        self.waiting.clear();
        self.waiting.resize(ports * ports, 0);
        self.rates.resize(ports * ports, 0.0);
        // Senders, then receivers.
        let mut sides = vec![PortShare { free: port_rate, flows: 0 }; 2 * ports];
        for flow in coflows.iter().flat_map(|coflow| &coflow.flows) {
            let (from, to) = (flow.from.index(), flow.to.index());
            self.waiting[from * ports + to] += 1;
            sides[from].flows += 1;
            sides[ports + to].flows += 1;
        }
        // All flows of the port with the least to give each get that.
        while let Some(tightest) = (0..sides.len())
            .filter(|&side| sides[side].flows > 0)
            .min_by(|&a, &b| sides[a].share().total_cmp(&sides[b].share()))
        {
            let share = sides[tightest].share();
            for other in 0..ports {
                let (from, to) = if tightest < ports { (tightest, other) } else { (other, tightest - ports) };
                let flows = std::mem::take(&mut self.waiting[from * ports + to]);
                if flows > 0 {
                    self.rates[from * ports + to] = share;
                    sides[from].give(flows, share);
                    sides[ports + to].give(flows, share);
                }
            }
        }
        for flow in coflows.iter_mut().flat_map(|coflow| &mut coflow.flows) {
            flow.rate = self.rates[flow.from.index() * ports + flow.to.index()];
        }
    }
}
