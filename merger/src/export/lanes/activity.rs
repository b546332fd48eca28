//! What the threads of processes did, and when.

use std::collections::BTreeMap;

use trace::ids::ProcessId;
use trace::rows::{SpanRow, TaskKind, TaskRow, Trace};

/// Java's main thread: in a task's JVM it runs the task.
pub const MAIN_THREAD: u64 = 1;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing that the trace knows of.
    Idle,
    /// It works on a message, or runs a task.
    Running,
    /// The process has not begun, or is over.
    NotCreated,
    /// It waits for an answer, for a block or for map outputs.
    Waiting,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivityKind {
    /// Phase of a task.
    Phase,
    /// RPC that is served.
    RpcServed,
    /// RPC that is called.
    RpcCalled,
    /// Operation of the data transfer protocol that a DataNode carries out.
    BlockServed,
    /// Block that is read from a DataNode.
    BlockRead,
    /// Block that is written to a pipeline.
    BlockWritten,
    /// Map output that is served.
    OutputServed,
    /// Map output that is fetched.
    OutputFetched,
    /// Work of a kind that this program does not know.
    Other,
}

impl ActivityKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Phase,
        Self::RpcServed,
        Self::RpcCalled,
        Self::BlockServed,
        Self::BlockRead,
        Self::BlockWritten,
        Self::OutputServed,
        Self::OutputFetched,
        Self::Other,
    ];

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phase => "Phase of a task",
            Self::RpcServed => "RPC served",
            Self::RpcCalled => "RPC called",
            Self::BlockServed => "Block operation served",
            Self::BlockRead => "Block read",
            Self::BlockWritten => "Block written",
            Self::OutputServed => "Map output served",
            Self::OutputFetched => "Map output fetched",
            Self::Other => "Other work",
        }
    }
}

/// A stretch of time in which a thread did something.
#[derive(Clone, Copy, Debug)]
pub struct Activity<'a> {
    /// Begin, nanoseconds since the epoch.
    pub begin: u64,
    /// End, no earlier.
    pub end: u64,
    /// What it did.
    pub kind: ActivityKind,
    /// Which method, operation or phase.
    pub name: &'a str,
    /// State of the thread meanwhile, where nothing within it says otherwise.
    pub state: State,
    /// Index of its span; `None` for a phase of a task.
    pub span: Option<usize>,
}

/// Activities of each process by thread; thread 0 is not known.
pub fn activities(trace: &Trace) -> BTreeMap<ProcessId, BTreeMap<u64, Vec<Activity<'_>>>> {
    let mut found: BTreeMap<ProcessId, BTreeMap<u64, Vec<Activity<'_>>>> = BTreeMap::new();
    for (index, span) in trace.spans.iter().enumerate() {
        let threads = found.entry(span.process).or_default();
        threads.entry(span.thread).or_default().push(of_span(span, index));
    }
    for task in &trace.tasks {
        if let Some(process) = task.process {
            let threads = found.entry(process).or_default();
            threads.entry(MAIN_THREAD).or_default().extend(phases(task));
        }
    }
    found
}

fn of_span(span: &SpanRow, index: usize) -> Activity<'_> {
    let (kind, state) = match span.kind.as_str() {
        "rpc" => (ActivityKind::RpcServed, State::Running),
        "call" => (ActivityKind::RpcCalled, State::Waiting),
        "block" => (ActivityKind::BlockServed, State::Running),
        "block-read" => (ActivityKind::BlockRead, State::Waiting),
        "block-write" => (ActivityKind::BlockWritten, State::Running),
        "shuffle" => (ActivityKind::OutputServed, State::Running),
        "fetch" => (ActivityKind::OutputFetched, State::Waiting),
        _ => (ActivityKind::Other, State::Running),
    };
    let name = if span.name.is_empty() { &span.kind } else { &span.name };
    Activity { begin: span.begin_ns, end: span.end_ns.max(span.begin_ns), kind, name, state, span: Some(index) }
}

/// A task's main thread works in each of its phases but the shuffle, in which it waits for map outputs that other
/// threads fetch.
fn phases(task: &TaskRow) -> Vec<Activity<'_>> {
    let phase = |begin: u64, end: u64, name: &'static str| {
        let state = if name == "shuffle" { State::Waiting } else { State::Running };
        Activity { begin, end: end.max(begin), kind: ActivityKind::Phase, name, state, span: None }
    };
    match (task.kind, task.shuffle_end_ns) {
        (TaskKind::Reduce, Some(shuffle_end)) => {
            let sort_end = task.sort_end_ns.unwrap_or(shuffle_end);
            vec![
                phase(task.start_ns, shuffle_end, "shuffle"),
                phase(shuffle_end, sort_end, "sort"),
                phase(sort_end, task.finish_ns, "reduce"),
            ]
        }
        (kind, _) => vec![phase(task.start_ns, task.finish_ns, kind.as_str())],
    }
}
