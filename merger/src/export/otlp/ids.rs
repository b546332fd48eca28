//! Ids of traces and spans: the same for the same trace, so that an export that is sent twice is there once.

use trace::ids::{JobId, TaskId};
use trace::rows::Trace;

/// What has a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Job(JobId),
    Task(TaskId),
    /// A phase of a reduce, from 0.
    Phase(TaskId, u8),
    /// By its row.
    Span(u32),
}

/// Ids of one export.
#[derive(Debug)]
pub struct Ids {
    jobs: Vec<u128>,
    /// Of what belongs to no job.
    rest: u128,
    seed: u64,
}

impl Ids {
    pub fn new(trace: &Trace) -> Self {
        // A replay has ids of its own, so that it can be stored beside the recording.
        let simulated = is_simulated(trace);
        let of = |id: &str, begin: u64, end: u64| {
            let words = [begin, end, trace.manifest.start_ns, trace.manifest.end_ns, u64::from(simulated)];
            let bytes = id.bytes().chain(words.iter().flat_map(|word| word.to_le_bytes()));
            // Of zeros only an id would be none.
            fnv(bytes).max(1)
        };
        let rest = of("", 0, 0);
        let jobs = trace.jobs.iter().map(|job| of(&job.id, job.submit_ns, job.finish_ns)).collect();
        Self { jobs, rest, seed: rest as u64 }
    }

    /// The trace of a job; without one, that of all that belongs to none.
    pub fn trace(&self, job: Option<JobId>) -> Vec<u8> {
        let id = job.and_then(|job| self.jobs.get(job.index())).unwrap_or(&self.rest);
        id.to_be_bytes().to_vec()
    }

    /// Different for different nodes, as good as surely: two of 2^64 numbers are one.
    pub fn span(&self, node: Node) -> Vec<u8> {
        let (kind, number) = match node {
            Node::Job(job) => (1, u64::from(job.0)),
            Node::Task(task) => (2, u64::from(task.0)),
            Node::Phase(task, phase) => (3, (u64::from(task.0) << 8) | u64::from(phase)),
            Node::Span(row) => (4, u64::from(row)),
        };
        // Of zeros only an id would be none.
        mix(self.seed.wrapping_add((kind << 48) | number)).max(1).to_be_bytes().to_vec()
    }
}

/// Whether `replay run --simulated-trace` made it.
pub fn is_simulated(trace: &Trace) -> bool {
    trace.manifest.notes.first().is_some_and(|note| note.starts_with("simulated: "))
}

/// FNV-1a of 128 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u128 {
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// The output function of `SplitMix64`, which gives different numbers for different ones.
const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
