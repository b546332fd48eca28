//! Coflows over a simulated fabric: each flow is a message, handed over when its coflow arrives.

use coflow::packet::Completion;
use coflow::{Coflow, Workload};
use netsim::engine::{self, End, Workload as Driver};
use netsim::fabric::{self, FabricConfig, FabricError};
use netsim::network::{Delivery, FlowKind, HostIndex, Network, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use thiserror::Error;

use super::CoflowRun;

/// Why coflows came to no end on a fabric.
#[derive(Debug, Error)]
pub enum CoflowFabricError {
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// It would take longer than can be simulated, or nothing happens any more.
    #[error("coflow {id} is not complete after {after}: is the fabric too slow for it?")]
    Endless {
        /// The first coflow that is not complete.
        id: String,
        /// How long the rest of the network was simulated.
        after: SimTime,
    },
}

/// Runs the coflows over a fabric with a host for each port, `rack_size` of them in a rack. Each flow has a connection of its own;
/// bytes are rounded up to whole ones. `complete` is called whenever a coflow is.
///
/// # Errors
/// If the fabric cannot be built, or the coflows come to no end on it.
pub fn run_on_fabric(
    workload: &Workload,
    name: &str,
    fabric: &FabricConfig,
    rack_size: usize,
    complete: impl FnMut(),
) -> Result<CoflowRun, CoflowFabricError> {
    let place = |port| HostPlace { name: format!("p{port}"), rack: format!("r{}", port / rack_size.max(1)) };
    let hosts: Vec<HostPlace> = (0..workload.ports()).map(place).collect();
    let mut network = fabric::build(fabric, &hosts)?;
    let mut driver = Coflows::new(workload.coflows(), complete);
    let end = engine::run(&mut network, &mut driver, SimTime::LATEST);
    if let (End::Limit(after), Some(left)) | (End::Done(after), Some(left)) = (end, driver.unfinished()) {
        return Err(CoflowFabricError::Endless { id: left.id.clone(), after });
    }
    if let Some(left) = driver.unfinished() {
        return Err(CoflowFabricError::Endless { id: left.id.clone(), after: SimTime::LATEST });
    }
    Ok(CoflowRun { name: name.to_owned(), over_ports: false, completions: driver.completions, circuits: None })
}

/// Sends the flows of each coflow when it arrives.
struct Coflows<'a, F> {
    coflows: &'a [Coflow],
    arrived: usize,
    complete: F,
    /// Flows of each coflow that have not arrived.
    left: Vec<usize>,
    /// Coflows with such flows.
    unfinished: usize,
    completions: Vec<Completion>,
}

impl<'a, F: FnMut()> Coflows<'a, F> {
    fn new(coflows: &'a [Coflow], complete: F) -> Self {
        let waiting = |coflow: &Coflow| Completion { start: coflow.arrival, end: coflow.arrival };
        Self {
            coflows,
            arrived: 0,
            complete,
            left: coflows.iter().map(|coflow| coflow.flows.len()).collect(),
            unfinished: coflows.len(),
            completions: coflows.iter().map(waiting).collect(),
        }
    }

    fn unfinished(&self) -> Option<&'a Coflow> {
        let first = self.left.iter().position(|left| *left > 0)?;
        self.coflows.get(first)
    }
}

impl<N: Network, F: FnMut()> Driver<N> for Coflows<'_, F> {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        self.coflows.get(self.arrived).map(|coflow| coflow.arrival)
    }

    fn tick(&mut self, now: SimTime, network: &mut N) {
        for flow in &self.coflows[self.arrived].flows {
            let way = network.open_flow(HostIndex(flow.from.0.into()), HostIndex(flow.to.0.into()));
            network.describe(way, FlowKind::Shuffle);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1e18")]
            let bytes = flow.bytes.ceil() as u64;
            network.send(now, way, bytes, Token(self.arrived as u64));
        }
        self.arrived += 1;
    }

    fn delivered(&mut self, delivery: &Delivery, _: &mut N) {
        let Ok(coflow) = usize::try_from(delivery.token.0) else { return };
        self.left[coflow] -= 1;
        if self.left[coflow] == 0 {
            self.completions[coflow].end = delivery.at;
            self.unfinished -= 1;
            (self.complete)();
        }
    }

    fn is_done(&self) -> bool {
        self.unfinished == 0
    }
}
