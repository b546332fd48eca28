//! A job over a network that takes no time: what is left is what its processes take.

use std::collections::VecDeque;

use causal::{Chunk, Execution, JobGraph, JobTime, Outcome, Token, Transport};
use trace::ids::{ConnectionId, HostId};

/// Delivers at once.
#[derive(Default)]
struct Instant {
    arrived: VecDeque<(JobTime, Token)>,
}

impl Transport for Instant {
    fn connect(&mut self, _: ConnectionId, _: HostId, _: HostId) {}

    fn send(&mut self, now: JobTime, chunk: Chunk) {
        self.arrived.push_back((now, chunk.token));
    }
}

/// The job over such a network; `None` if it comes to a halt there.
pub(super) fn outcome(graph: &JobGraph<'_>) -> Option<Outcome> {
    let mut network = Instant::default();
    let mut execution = Execution::new(graph, &mut network);
    loop {
        while let Some((at, token)) = network.arrived.pop_front() {
            execution.delivered(at, token, &mut network);
        }
        if execution.is_over() || execution.next_action().is_none() {
            break;
        }
        execution.act(&mut network);
    }
    execution.is_done().then(|| execution.into_outcome())
}
