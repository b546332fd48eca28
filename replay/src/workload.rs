//! A recorded job as the workload of a simulated network.

use causal::{CausalError, Chunk, Execution, JobGraph, JobTime, Outcome, Progress, Transport};
use netsim::engine::{self, Workload};
use netsim::fabric;
use netsim::network::{Delivery, FlowId, FlowKind, HostIndex, Network, Token};
use netsim::time::SimTime;
use trace::ids::{ConnectionId, HostId};
use trace::rows::ConnectionRow;

/// Between two calls of the progress function this many things happen.
const STEPS_A_REPORT: u64 = 4_096;
/// Times of a job reach no further: 106 days.
const LATEST: SimTime = SimTime(JobTime::MAX.0.unsigned_abs());

/// The flows of each connection that is used, from its client and from its server.
type Flows = Vec<Option<(FlowId, FlowId)>>;

/// A network that carries the bytes of a job.
struct Carrying<'n, 'g, N> {
    network: &'n mut N,
    flows: &'n mut Flows,
    connections: &'g [ConnectionRow],
}

/// What a connection is for, by its protocol in the trace.
fn kind(protocol: &str) -> FlowKind {
    match protocol {
        "rpc" => FlowKind::Calls,
        "data-transfer" => FlowKind::Storage,
        "shuffle" => FlowKind::Shuffle,
        _ => FlowKind::Other,
    }
}

impl<N: Network> Transport for Carrying<'_, '_, N> {
    fn connect(&mut self, connection: ConnectionId, HostId(client): HostId, HostId(server): HostId) {
        let flows = self.network.open_connection(HostIndex(client), HostIndex(server));
        let kind = kind(&self.connections[connection.index()].protocol);
        self.network.describe(flows.0, kind);
        self.network.describe(flows.1, kind);
        self.flows[connection.index()] = Some(flows);
    }

    fn send(&mut self, now: JobTime, chunk: Chunk) {
        if let Some((from_client, from_server)) = self.flows[chunk.connection.index()] {
            let flow = if chunk.from_client { from_client } else { from_server };
            self.network.send_part(SimTime(now.ps()), flow, chunk.bytes, chunk.of_bytes, Token(chunk.token.0));
        }
    }
}

/// A job under way, with whoever wants to know how far it has come.
struct RecordedJob<'g, 't, P> {
    execution: Execution<'g, 't>,
    connections: &'g [ConnectionRow],
    flows: Flows,
    progress: P,
    steps: u64,
}

impl<P: FnMut(Progress)> RecordedJob<'_, '_, P> {
    fn step_done(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_A_REPORT) {
            (self.progress)(self.execution.progress());
        }
    }
}

impl<N: Network, P: FnMut(Progress)> Workload<N> for RecordedJob<'_, '_, P> {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        self.execution.next_action().map(|at| SimTime(at.ps()))
    }

    fn tick(&mut self, _: SimTime, network: &mut N) {
        self.execution.act(&mut Carrying { network, flows: &mut self.flows, connections: self.connections });
        self.step_done();
    }

    fn delivered(&mut self, delivery: &Delivery, network: &mut N) {
        let at = JobTime::SUBMISSION.plus_ps(delivery.at.0);
        let token = causal::Token(delivery.token.0);
        let carrying = &mut Carrying { network, flows: &mut self.flows, connections: self.connections };
        self.execution.delivered(at, token, carrying);
        self.step_done();
    }

    fn is_done(&self) -> bool {
        self.execution.is_over()
    }
}

/// Replays a job over a network until it is done. `progress` is called now and then.
///
/// # Errors
/// If the network has fewer hosts than the trace, or the replay comes to a halt because events wait for what never
/// happens; the error says for what.
pub fn run<N: Network>(
    graph: &JobGraph,
    network: &mut N,
    progress: impl FnMut(Progress),
) -> Result<Outcome, CausalError> {
    let hosts = graph.trace.hosts.len();
    if (network.hosts() as usize) < hosts {
        return Err(CausalError::TooFewHosts { fabric: network.hosts(), trace: hosts });
    }
    let of_fabric = fabric::latest(network.figures().interval_ps);
    let mut flows = vec![None; graph.trace.connections.len()];
    let connections = &graph.trace.connections;
    let execution = Execution::new(graph, &mut Carrying { network, flows: &mut flows, connections });
    let mut job = RecordedJob { execution, connections, flows, progress, steps: 0 };
    let latest = of_fabric.min(LATEST);
    engine::run(network, &mut job, latest);
    let next = engine::next_time(network, &job);
    let RecordedJob { execution, mut progress, .. } = job;
    if execution.is_done() {
        progress(execution.progress());
        return Ok(execution.into_outcome());
    }
    let why = match next {
        Some(next) if next > latest && latest < LATEST => {
            "the traffic over time would have more than 4194304 intervals (fabric.interval)"
        }
        Some(next) if next > latest => "no replay goes on for more than 106 days",
        Some(_) if execution.in_flight() > 0 => "for a day none has arrived",
        _ => return Err(execution.halt()),
    };
    Err(CausalError::Endless { at: execution.now().to_string(), in_flight: execution.in_flight(), why })
}
