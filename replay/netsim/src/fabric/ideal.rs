//! `ideal`: a network in which nobody is in another's way.
//!
//! Every flow is a pipe of its own: a message is delivered `latency + bytes / rate` after it was handed over, behind
//! the flow's earlier ones. With its defaults it takes no time at all: the bound that no fabric can pass.

use super::figures::LinkMeter;
use super::instant::collect_instant;
use super::pipe::{Pipe, PipeConfig};
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use crate::topology::HostPlace;
use crate::units::{DurationPs, Rate};
use serde::{Deserialize, Serialize};

/// The keys of an ideal network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdealConfig {
    /// From the last byte's departure to its arrival. Default: `0ps` (an infinitely fast network).
    pub latency: DurationPs,
    /// What each flow gets. Default: `unlimited` (an infinitely fast network).
    pub rate: Rate,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for IdealConfig {
    fn default() -> Self {
        Self { latency: DurationPs(0), rate: Rate::UNLIMITED, interval: super::figures::DEFAULT_INTERVAL }
    }
}

struct IdealFlow {
    pipe: Pipe,
    source: u32,
}

/// A network in which nobody is in another's way.
pub struct Ideal {
    pipe: PipeConfig,
    interval_ps: u64,
    names: Vec<String>,
    flows: Vec<IdealFlow>,
    queue: EventQueue<Token>,
    meters: Vec<LinkMeter>,
}

impl Ideal {
    /// The network of `config` for `hosts`.
    #[must_use]
    pub fn new(config: &IdealConfig, hosts: &[HostPlace]) -> Self {
        Self {
            pipe: PipeConfig { latency: config.latency, rate: config.rate },
            interval_ps: config.interval.ps(),
            names: hosts.iter().map(|host| host.name.clone()).collect(),
            flows: Vec::new(),
            queue: EventQueue::new(1 << 34),
            meters: vec![LinkMeter::default(); hosts.len()],
        }
    }
}

impl Simulation for Ideal {
    fn hosts(&self) -> u32 {
        crate::count::count(self.names.len())
    }

    fn next_event(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        collect_instant(
            self,
            until,
            deliveries,
            |network| &mut network.queue,
            |_, at, token, out| {
                out.push(Delivery { token, at });
            },
        )
    }

    fn figures(&self) -> NetworkFigures {
        let links = self.names.iter().zip(&self.meters);
        NetworkFigures {
            circuits: Vec::new(),
            events: self.queue.processed(),
            interval_ps: self.interval_ps,
            links: links.map(|(name, meter)| meter.figures(&format!("{name}->"), self.pipe.rate)).collect(),
            ..NetworkFigures::default()
        }
    }
}

impl Network for Ideal {
    fn open_flow(&mut self, source: HostIndex, _destination: HostIndex) -> FlowId {
        self.flows.push(IdealFlow { pipe: Pipe::default(), source: source.0 });
        FlowId(crate::count::count(self.flows.len() - 1))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        let IdealFlow { pipe, source } = &mut self.flows[flow.0 as usize];
        let at = pipe.hand_over(now, bytes, &self.pipe);
        self.meters[*source as usize].crossed(now, bytes, self.interval_ps);
        self.queue.schedule(at, Phase::Arrive, Place(flow.0), token);
    }
}
