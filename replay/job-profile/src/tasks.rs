//! A job's tasks and calls, one by one.

use std::collections::{BTreeMap, HashMap};

use causal::{JobGraph, Options};
use trace::ids::{ConnectionId, HostId, TimerId};
use trace::rows::{EventRow, MessageKind, MessageRow, TaskKind, TaskRow, TimerRow, Trace};

use crate::Learn;
use crate::fetches::fetches;
use crate::parameters::{JobParameters, parameters_of};
use crate::recording::Recording;

/// A recorded job, task by task.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProfile {
    /// Medians.
    pub parameters: JobParameters,
    /// Workers. A map's `node` counts them from 0, dealt over the racks in turn.
    pub nodes: usize,
    /// Maps that read something, by attempt.
    pub maps: Vec<MapProfile>,
    /// Reduces, by attempt.
    pub reduces: Vec<ReduceProfile>,
    /// By number of the fetch (a NodeManager's first, its second, ...), what each NodeManager took from the request to the first
    /// byte of an output, in the order of nodes; the 33rd is the median of all later ones.
    pub fetches_ns: Vec<Vec<u64>>,
    /// RPC calls by name: medians.
    pub calls: BTreeMap<String, CallProfile>,
    /// Calls that a daemon or a client repeats on its own: the time between an answer and the next request, by name, median over
    /// those who repeat it.
    pub pauses_ns: BTreeMap<String, u64>,
    /// Whether a map read from another host than its own.
    pub reads_elsewhere: bool,
}

/// A map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapProfile {
    /// What it read.
    pub input_bytes: u64,
    /// What reduces fetched of it, or, without reduces, what it wrote to HDFS, each byte once.
    pub output_bytes: u64,
    /// The worker from which it read.
    pub node: Option<usize>,
    /// How long it waited for the job's files, as the first of the job on its node.
    pub localization_ns: Option<u64>,
    /// From then to its first call.
    pub container_start_ns: Option<u64>,
    /// From the answer to that until it read.
    pub task_start_ns: Option<u64>,
    /// What it computed of its input while it read, or, without reduces, until its output was made; `None` as well where a network fed it and nothing tells of its work.
    pub computing_ns: Option<u64>,
    /// From the end of its input to its end; `None` as well without reduces.
    pub sorting_ns: Option<u64>,
}

/// A reduce.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceProfile {
    /// What it fetched.
    pub input_bytes: u64,
    /// What of it lay in its memory when all was there: what its sort merges.
    pub in_memory_bytes: u64,
    /// What it wrote to HDFS, each byte once.
    pub output_bytes: u64,
    /// From its container's start to its first call.
    pub container_start_ns: Option<u64>,
    /// From the answer to that until it asked for map outputs.
    pub task_start_ns: Option<u64>,
    /// Its sort.
    pub merging_ns: Option<u64>,
    /// What it and whom it waits for compute from its first to its last output, over a network that takes no time.
    pub computing_ns: Option<u64>,
}

/// An RPC call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallProfile {
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the response.
    pub response_bytes: u64,
    /// From the request's arrival to the response.
    pub service_ns: u64,
}

/// Profiles a job; `None` if the trace has no job that can be replayed, or none whose maps read what they work on from HDFS. Where the sharing of processors is told, times are what tasks would have taken with a processor of their own.
#[must_use]
pub fn profile(trace: &Trace, learn: Learn<'_>) -> Option<JobProfile> {
    let graph = JobGraph::new(trace, learn.job, Options::default()).ok()?;
    let of = Recording::new(trace, &graph, learn.sharing);
    let parameters = parameters_of(&of, graph.job, learn)?;
    let nodes = of.ordered_nodes();
    let kind = |kind: TaskKind| {
        let mut tasks: Vec<&TaskRow> = of.tasks.iter().filter(|task| task.kind == kind).copied().collect();
        tasks.sort_by(|a, b| a.attempt.cmp(&b.attempt));
        tasks
    };
    let maps = kind(TaskKind::Map);
    Some(JobProfile {
        parameters,
        nodes: nodes.len(),
        maps: maps.iter().filter_map(|task| map_profile(&of, task, &nodes)).collect(),
        reduces: kind(TaskKind::Reduce).iter().map(|task| reduce_profile(&of, task, learn)).collect(),
        fetches_ns: fetches(&of, &nodes),
        calls: calls(trace),
        pauses_ns: pauses(trace),
        reads_elsewhere: maps.iter().any(|task| of.reads_elsewhere(task)),
    })
}

fn map_profile(of: &Recording<'_>, task: &TaskRow, nodes: &[HostId]) -> Option<MapProfile> {
    let input_bytes = of.read_bytes(task);
    let node = of.block_host(task).and_then(|host| nodes.iter().position(|node| *node == host));
    let is_sorted = of.graph.job.reduces > 0;
    (input_bytes > 0).then(|| MapProfile {
        input_bytes,
        output_bytes: if is_sorted { of.output(task) } else { of.written(task) },
        node,
        localization_ns: of.waited_for_files(task),
        container_start_ns: of.container_start(task),
        task_start_ns: of.task_start(task),
        computing_ns: of.computing_ns(task),
        sorting_ns: if is_sorted { of.sorting_ns(task) } else { None },
    })
}

fn reduce_profile(of: &Recording<'_>, task: &TaskRow, learn: Learn<'_>) -> ReduceProfile {
    ReduceProfile {
        input_bytes: of.fetched(task),
        in_memory_bytes: of.in_memory(task, learn.reduce_heap),
        output_bytes: of.written(task),
        container_start_ns: of.container_start(task),
        task_start_ns: of.task_start(task),
        merging_ns: task.sort_end_ns.zip(task.shuffle_end_ns).map(|(end, begin)| of.alone_ns(task, begin, end)),
        computing_ns: of.computing_of(task).map(|computing| computing.output_ns),
    }
}

/// Pauses of the loops that call on their own, by the call's name: from one request to the next in the mean, without the answer's
/// time, so that a loop that asks twice a second comes out as often.
fn pauses(trace: &Trace) -> BTreeMap<String, u64> {
    let mut beats: BTreeMap<TimerId, (u64, u64, u64)> = BTreeMap::new();
    let is_request = |event: &&EventRow| event.from_client && event.beat.is_some();
    for event in trace.events.iter().filter(is_request) {
        let Some(timer) = event.timer else { continue };
        let (first, last, count) = beats.entry(timer).or_insert((event.recorded_ns, event.recorded_ns, 0));
        (*first, *last) = ((*first).min(event.recorded_ns), (*last).max(event.recorded_ns));
        *count += 1;
    }
    let pause = |timer: &TimerRow| {
        let (first, last, count) = beats.get(&timer.timer).filter(|(_, _, count)| *count > 1)?;
        Some(((last - first) / (count - 1)).saturating_sub(timer.service_ns))
    };
    let mut by_name: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for timer in &trace.timers {
        by_name.entry(&timer.name).or_default().extend(pause(timer));
    }
    let known = by_name.into_iter().filter(|(_, pauses)| !pauses.is_empty());
    known.map(|(name, pauses)| (name.to_owned(), median(pauses))).collect()
}

/// Medians of the RPC calls.
fn calls(trace: &Trace) -> BTreeMap<String, CallProfile> {
    let mut open: HashMap<(ConnectionId, i64), &MessageRow> = HashMap::new();
    let mut found: BTreeMap<&str, [Vec<u64>; 3]> = BTreeMap::new();
    for message in &trace.messages {
        let key = (message.connection, message.call);
        if message.kind == MessageKind::RpcRequest {
            open.insert(key, message);
        } else if message.kind == MessageKind::RpcResponse
            && let Some(request) = open.remove(&key)
        {
            let [requests, responses, services] = found.entry(&request.name).or_default();
            requests.push(request.bytes);
            responses.push(message.bytes);
            services.push(message.sent_ns.saturating_sub(request.delivered_ns));
        }
    }
    let calls = found.into_iter().map(|(name, [requests, responses, services])| {
        let call = CallProfile {
            request_bytes: median(requests),
            response_bytes: median(responses),
            service_ns: median(services),
        };
        (name.to_owned(), call)
    });
    calls.collect()
}

/// Of values of which there is at least one.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}
