//! The shuffle of a recorded job as transfers between hosts.

use std::collections::BTreeMap;

use causal::{CausalError, JobGraph, Options};
use congestion::Transfer;
use trace::rows::{EventKind, MessageKind, Trace};

/// What a job shuffled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// The job.
    pub job: String,
    /// The trace's hosts: ranks are their numbers.
    pub hosts: Vec<String>,
    /// Bytes of map outputs from each host to each other one, in the order of their ranks.
    pub transfers: Vec<Transfer>,
    /// Bytes that stayed on their host.
    pub local_bytes: u64,
}

impl Shuffle {
    /// The map outputs that were sent during a job of `trace` (`None`: the one that shuffled most).
    ///
    /// # Errors
    /// If the trace has no such job or no causal graph.
    pub fn of(trace: &Trace, job: Option<&str>) -> Result<Self, CausalError> {
        let graph = JobGraph::new(trace, job, Options::default())?;
        let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut local_bytes = 0u64;
        for event in graph.during().filter(|event| event.kind == EventKind::Send) {
            let kind = event.message.map(|message| trace.messages[message.index()].kind);
            let (Some(MessageKind::ShuffleResponse), Some((from, to))) = (kind, graph.ends(event)) else { continue };
            let sum = if from == to { &mut local_bytes } else { pairs.entry((from.0, to.0)).or_default() };
            *sum = sum.saturating_add(event.bytes);
        }
        Ok(Self {
            job: graph.job.id.clone(),
            hosts: trace.hosts.iter().map(|host| host.name.clone()).collect(),
            transfers: pairs.into_iter().map(|((from, to), bytes)| Transfer { from, to, bytes }).collect(),
            local_bytes,
        })
    }

    /// Bytes between hosts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.transfers.iter().map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
    }
}
