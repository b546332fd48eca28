//! What a trace tells of a job's tasks, one by one.

use std::collections::{BTreeMap, BTreeSet};

use causal::{CoreSharing, JobGraph, JobTime, Outcome, RecordedCores, recorded};
use trace::ids::{ConnectionId, EventId, HostId, MessageId, ProcessId, TaskId};
use trace::rows::{EventKind, JobRow, MessageKind, MessageRow, TaskKind, TaskRow, Trace};

use crate::instant_network;
use crate::output_events::{completion_retries, inputs_read, outputs_written};
use crate::reduce_memory::{DEFAULT_HEAP, left_in_memory};
use crate::spills::Consumption;

/// What is smaller than such a part of the largest read is no input.
const SMALL_READ: u64 = 16;

/// A trace with its messages by process.
pub(super) struct Recording<'a> {
    pub(super) trace: &'a Trace,
    pub(super) graph: &'a JobGraph<'a>,
    /// Tasks of the job that completed.
    pub(super) tasks: Vec<&'a TaskRow>,
    nodes: BTreeSet<HostId>,
    by_process: BTreeMap<ProcessId, Vec<&'a MessageRow>>,
    /// Bytes that reduces fetched of each map attempt.
    outputs: BTreeMap<&'a str, u64>,
    pub(super) recorded: Outcome,
    /// The job over a network that takes no time, if it can be replayed.
    pub(super) instant: Option<Outcome>,
    /// The marks by which each task's sort, and it itself, has ended.
    pub(super) sort_ends: BTreeMap<TaskId, EventId>,
    /// Marks of what each process computed of the blocks that it read.
    consumed: BTreeMap<ProcessId, Vec<EventId>>,
    pub(super) ends: BTreeMap<TaskId, EventId>,
    /// The first and the last piece that each process wrote to HDFS.
    pub(super) outputs_written: BTreeMap<ProcessId, (EventId, EventId)>,
    /// When data that was read from HDFS began to come; of jobs without reduces.
    inputs_read: BTreeMap<MessageId, EventId>,
    /// The first task on each node but that of the job's master.
    first_on_node: BTreeSet<TaskId>,
    /// Marks of when each process was there.
    process_starts: BTreeMap<ProcessId, EventId>,
    /// Requests before which HDFS's client has slept.
    pub(super) completion_retries: BTreeSet<EventId>,
    /// The processors for which tasks competed; `None` = how long something took is what it is.
    cores: Option<RecordedCores>,
    /// What its maps took of their blocks, and when.
    pub(super) consumption: Consumption<'a>,
}

impl<'a> Recording<'a> {
    pub(super) fn new(trace: &'a Trace, graph: &'a JobGraph<'a>, sharing: Option<CoreSharing>) -> Self {
        let tasks: Vec<&TaskRow> = graph.tasks().filter(|task| task.succeeded).collect();
        let marks = |name: &str| -> BTreeMap<TaskId, EventId> {
            let named = trace.events.iter().filter(|event| event.kind == EventKind::Mark && event.name == name);
            named.filter_map(|event| Some((event.task?, event.event))).collect()
        };
        let starts = trace.events.iter().filter(|event| event.name == "process.start");
        let process_starts = starts.filter_map(|event| Some((event.process?, event.event))).collect();
        let mut consumed: BTreeMap<ProcessId, Vec<EventId>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| event.name == "block.consumed") {
            if let Some(process) = event.process {
                consumed.entry(process).or_default().push(event.event);
            }
        }
        let is_worker = |role: &str| matches!(role, "DataNode" | "NodeManager" | "TaskTracker");
        let workers = trace.processes.iter().filter(|process| is_worker(&process.role)).map(|process| process.host);
        let nodes = workers.chain(tasks.iter().filter_map(|task| task.host)).collect();
        let mut by_process: BTreeMap<ProcessId, Vec<&MessageRow>> = BTreeMap::new();
        for message in &trace.messages {
            if let Some(connection) = trace.connections.get(message.connection.index()) {
                for process in [connection.client_process, connection.server_process].into_iter().flatten() {
                    by_process.entry(process).or_default().push(message);
                }
            }
        }
        let mut outputs: BTreeMap<&str, u64> = BTreeMap::new();
        // Reduces that were killed fetched outputs once more.
        let lost: BTreeSet<&str> =
            graph.tasks().filter(|task| !task.succeeded).map(|task| task.attempt.as_str()).collect();
        let is_lost = |message: &MessageRow| message.attempt.as_deref().is_some_and(|attempt| lost.contains(attempt));
        let responses = trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse);
        for message in responses.filter(|message| !is_lost(message)) {
            let bytes = outputs.entry(message.map.as_deref().unwrap_or_default()).or_default();
            *bytes = bytes.saturating_add(message.app_bytes);
        }
        let maps: Vec<&TaskRow> = tasks.iter().filter(|task| task.kind == TaskKind::Map).copied().collect();
        let consumption = Consumption::new(&trace.steps, &maps);
        let cores = sharing.map(|sharing| RecordedCores::new(graph, sharing));
        let first_on_node = first_on_node(&tasks, master_of(trace, graph));
        Self {
            outputs,
            trace,
            graph,
            tasks,
            nodes,
            by_process,
            recorded: recorded(graph),
            instant: instant_network::outcome(graph),
            sort_ends: marks("task.sort_end"),
            consumed,
            ends: marks("task.finish"),
            outputs_written: outputs_written(trace),
            inputs_read: if graph.job.reduces == 0 { inputs_read(trace) } else { BTreeMap::new() },
            first_on_node,
            process_starts,
            completion_retries: completion_retries(trace),
            cores,
            consumption,
        }
    }

    /// What a task took from one recorded time to another, if it had a processor of its own.
    pub(super) fn alone_ns(&self, task: &TaskRow, from_ns: u64, to_ns: u64) -> u64 {
        let alone_ps = self.alone_ps(task, self.graph.job_time(from_ns), self.graph.job_time(to_ns));
        alone_ps.map_or_else(|| to_ns.saturating_sub(from_ns), |ps| ps / 1_000)
    }

    fn alone_ps(&self, task: &TaskRow, from: JobTime, to: JobTime) -> Option<u64> {
        Some(self.cores.as_ref()?.alone_ps(task.host?, from, to))
    }

    fn messages(&self, task: &TaskRow) -> impl Iterator<Item = &'a MessageRow> + '_ {
        let of = task.process.and_then(|process| self.by_process.get(&process));
        of.into_iter().flatten().copied()
    }

    /// When a task's call of this name was sent first.
    pub(super) fn sent(&self, task: &TaskRow, name: &str) -> Option<u64> {
        self.call(task, name, MessageKind::RpcRequest).map(|message| message.sent_ns)
    }

    fn call(&self, task: &TaskRow, name: &str, kind: MessageKind) -> Option<&'a MessageRow> {
        self.messages(task).find(|message| message.name == name && message.kind == kind)
    }

    /// The first and the last data that a map read of its input. A map reads where its split is, too.
    pub(super) fn input(&self, task: &TaskRow) -> Option<(&'a MessageRow, &'a MessageRow)> {
        let largest = self.read(task).map(|message| message.app_bytes).max()?;
        let mut data = self.read(task).filter(|message| message.app_bytes >= largest / SMALL_READ);
        let first = data.next()?;
        Some((first, data.last().unwrap_or(first)))
    }

    /// The event by which the first data of a map's input was sent; `None` if its job has reduces.
    pub(super) fn first_input(&self, task: &TaskRow) -> Option<EventId> {
        let (first, _) = self.input(task)?;
        self.inputs_read.get(&first.message).copied()
    }

    fn read(&self, task: &TaskRow) -> impl Iterator<Item = &'a MessageRow> + '_ {
        self.messages(task).filter(|message| message.kind == MessageKind::BlockData && message.name == "read")
    }

    /// Bytes that a map read.
    pub(super) fn read_bytes(&self, task: &TaskRow) -> u64 {
        self.read(task).map(|message| message.app_bytes).fold(0, u64::saturating_add)
    }

    /// The host of the DataNode from which a map read first.
    pub(super) fn block_host(&self, task: &TaskRow) -> Option<HostId> {
        let (first, _) = self.input(task)?;
        self.trace.connections.get(first.connection.index()).map(|connection| connection.server_host)
    }

    /// Whether a map read its input from another host.
    pub(super) fn reads_elsewhere(&self, task: &TaskRow) -> bool {
        let Some((first, _)) = self.input(task) else { return false };
        self.trace.connections.get(first.connection.index()).is_some_and(|connection| !connection.loopback)
    }

    /// Bytes of a map's output, as reduces fetched them.
    pub(super) fn output(&self, task: &TaskRow) -> u64 {
        self.outputs.get(task.attempt.as_str()).copied().unwrap_or(0)
    }

    /// Fetches of the job's reduces: the NodeManager's host, when its request was there, and from then to the first byte of an
    /// output, nanoseconds.
    pub(super) fn fetches(&self) -> Vec<(HostId, u64, u64)> {
        let mut asked: BTreeMap<(ConnectionId, i64), u64> = BTreeMap::new();
        let mut fetches = Vec::new();
        for message in self.tasks.iter().flat_map(|task| self.messages(task)) {
            let key = (message.connection, message.call);
            if message.kind == MessageKind::ShuffleRequest {
                asked.insert(key, message.delivered_ns);
            } else if message.kind == MessageKind::ShuffleResponse
                && let Some(asked_ns) = asked.remove(&key)
                && let Some(connection) = self.trace.connections.get(message.connection.index())
            {
                fetches.push((connection.server_host, asked_ns, message.sent_ns.saturating_sub(asked_ns)));
            }
        }
        fetches
    }

    /// Bytes that a task wrote to HDFS, each once.
    pub(super) fn written(&self, task: &TaskRow) -> u64 {
        let written = |message: &&MessageRow| {
            message.kind == MessageKind::BlockData && message.name == "write" && message.hop == Some(1)
        };
        self.messages(task).filter(written).map(|message| message.app_bytes).fold(0, u64::saturating_add)
    }

    /// The workers, dealt over racks in turn as job files have them.
    pub(super) fn ordered_nodes(&self) -> Vec<HostId> {
        let rack = |host: &HostId| self.trace.hosts.get(host.index()).map_or("", |row| row.rack.as_str());
        let mut of_rack: BTreeMap<&str, usize> = BTreeMap::new();
        let mut nodes: Vec<(usize, &str, HostId)> = Vec::new();
        for host in &self.nodes {
            let seen = of_rack.entry(rack(host)).or_default();
            nodes.push((*seen, rack(host), *host));
            *seen += 1;
        }
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, _, host)| host).collect()
    }

    pub(super) const fn nodes(&self) -> &BTreeSet<HostId> {
        &self.nodes
    }

    pub(super) fn fetched(&self, task: &TaskRow) -> u64 {
        self.outputs(task).fold(0, u64::saturating_add)
    }

    /// Sizes of the map outputs that a reduce has fetched.
    fn outputs(&self, task: &TaskRow) -> impl Iterator<Item = u64> + '_ {
        let outputs = self.messages(task).filter(|message| message.kind == MessageKind::ShuffleResponse);
        outputs.map(|message| message.app_bytes)
    }

    /// What of them lay in memory when all were there.
    pub(super) fn in_memory(&self, task: &TaskRow, heap: Option<u64>) -> u64 {
        left_in_memory(heap.unwrap_or(DEFAULT_HEAP), self.outputs(task))
    }

    pub(super) fn racks(&self) -> usize {
        let racks = self.nodes.iter().filter_map(|host| self.trace.hosts.get(host.index()));
        racks.map(|host| host.rack.as_str()).filter(|rack| !rack.is_empty()).collect::<BTreeSet<_>>().len()
    }

    /// Tasks of the job on one node at once.
    pub(super) fn tasks_at_once(&self) -> usize {
        let mut changes: BTreeMap<HostId, Vec<(u64, i32)>> = BTreeMap::new();
        for task in &self.tasks {
            if let Some(host) = task.host {
                changes.entry(host).or_default().extend([(task.start_ns, 1), (task.finish_ns, -1)]);
            }
        }
        let most = changes.into_values().map(|mut of_host| {
            // An end at the instant of a start comes first.
            of_host.sort_unstable();
            let running = of_host.iter().scan(0, |running, (_, change)| {
                *running += change;
                Some(*running)
            });
            running.max().unwrap_or(0)
        });
        most.max().and_then(|most| usize::try_from(most).ok()).unwrap_or(1).max(1)
    }

    pub(super) fn replication(&self) -> u32 {
        let processes: BTreeSet<ProcessId> = self.tasks.iter().filter_map(|task| task.process).collect();
        let of_reduces = self.trace.messages.iter().filter(|message| {
            let client = self.trace.connections.get(message.connection.index()).and_then(|row| row.client_process);
            message.hop == Some(1) && client.is_some_and(|client| processes.contains(&client))
        });
        let blocks: BTreeSet<u64> = of_reduces.filter_map(|message| message.block).collect();
        let hops =
            self.trace.messages.iter().filter(|message| message.block.is_some_and(|block| blocks.contains(&block)));
        hops.filter_map(|message| message.hop).max().unwrap_or(1)
    }

    pub(super) fn slow_start(&self, job: &JobRow) -> f64 {
        let kind = |kind| self.tasks.iter().filter(move |task| task.kind == kind);
        let first = kind(TaskKind::Reduce).map(|task| task.start_ns).min().unwrap_or(0);
        // The master asks with one heartbeat and is answered with the next.
        let pause = self.trace.timers.iter().find(|timer| timer.name == "allocate").map_or(0, |timer| timer.pause_ns);
        let asked = first.saturating_sub(pause.saturating_mul(2));
        let done = kind(TaskKind::Map).filter(|task| task.finish_ns <= asked.max(job.submit_ns)).count();
        (done as f64 / f64::from(job.maps.max(1))).min(1.0)
    }

    /// The slope of the parts' logarithms over those of their ranks; 0 where they are much alike.
    pub(super) fn skew(&self) -> f64 {
        let reduces = self.tasks.iter().filter(|task| task.kind == TaskKind::Reduce);
        let mut parts: Vec<f64> = reduces.map(|task| self.fetched(task) as f64).filter(|part| *part > 0.0).collect();
        parts.sort_by(|a, b| b.total_cmp(a));
        let points: Vec<(f64, f64)> =
            (1u32..).zip(&parts).map(|(rank, part)| (libm::log(f64::from(rank)), libm::log(*part))).collect();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
            (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
        });
        let skew = if below > 0.0 { -above / below } else { 0.0 };
        if skew > 0.05 { (skew * 100.0).round() / 100.0 } else { 0.0 }
    }

    /// Whether a task of a kind had two attempts, of which one succeeded.
    pub(super) fn had_second_attempts(&self, kind: TaskKind) -> bool {
        let task = |attempt: &'a str| attempt.rsplit_once('_').map_or(attempt, |(task, _)| task);
        let done: BTreeSet<&str> = self.tasks.iter().map(|row| task(&row.attempt)).collect();
        let mut others = self.graph.tasks().filter(|row| row.kind == kind && !row.succeeded);
        others.any(|row| done.contains(task(&row.attempt)))
    }

    /// From a task's start to its first call, without what it waited for the job's files.
    pub(super) fn container_start(&self, task: &TaskRow) -> Option<u64> {
        let begin = task.start_ns.saturating_add(self.waited_for_files(task).unwrap_or(0));
        Some(self.alone_ns(task, begin, self.sent(task, "getTask")?))
    }

    /// From the start of the first task on a node until its process began to start; `None` for other tasks.
    pub(super) fn waited_for_files(&self, task: &TaskRow) -> Option<u64> {
        let started = task.process.filter(|_| self.first_on_node.contains(&task.task));
        let begins = self.recorded.event(*self.process_starts.get(&started?)?).caused();
        Some(begins.since_ps(self.graph.job_time(task.start_ns)) / 1_000)
    }

    /// How long the first task of the job waits on a node for its files; `None` if there is no such task.
    pub(super) fn localization(&self) -> Option<u64> {
        self.median_ns(TaskKind::ALL, |task| self.waited_for_files(task))
    }

    pub(super) fn task_start(&self, task: &TaskRow) -> Option<u64> {
        let assigned = self.call(task, "getTask", MessageKind::RpcResponse)?.delivered_ns;
        let begins = match task.kind {
            TaskKind::Reduce => self.sent(task, "getMapCompletionEvents")?,
            TaskKind::Map | TaskKind::Other => self.input(task)?.0.sent_ns,
        };
        Some(self.alone_ns(task, assigned, begins))
    }

    pub(super) fn master_start(&self, job: &JobRow) -> Option<u64> {
        let during = |message: &&MessageRow| (job.submit_ns..job.finish_ns).contains(&message.sent_ns);
        let calls = |name| {
            let named = move |message: &&MessageRow| message.name == name && message.kind == MessageKind::RpcRequest;
            self.trace.messages.iter().filter(during).filter(named)
        };
        let registered = calls("registerApplicationMaster").next()?.sent_ns;
        let started = calls("startContainers").find(|message| message.sent_ns <= registered)?.delivered_ns;
        Some(registered.saturating_sub(started))
    }

    /// What the master took when all tasks of a kind were done, which write the output.
    pub(super) fn job_commit(&self, job: &JobRow, writers: TaskKind) -> Option<u64> {
        let ends = self.tasks.iter().filter(|task| task.kind == writers).map(|task| task.finish_ns);
        Some(job.finish_ns.saturating_sub(ends.max()?))
    }

    pub(super) fn map_rate(&self, notes: &mut Vec<String>) -> Option<f64> {
        let known = self.median_rate(&[TaskKind::Map], |task| Some((self.read_bytes(task), self.computing_ns(task)?)));
        known.or_else(|| {
            notes.push(
                "map_rate: no map read a block of its own host; the network may have held all of them back".to_owned(),
            );
            self.median_rate(&[TaskKind::Map], |task| {
                let (first, last) = self.input(task)?;
                Some((self.read_bytes(task), self.alone_ns(task, first.sent_ns, last.delivered_ns)))
            })
        })
    }

    /// What an event's delay would have been with a processor of its own.
    pub(super) fn event_alone_ps(&self, event: EventId) -> u64 {
        let (from, took_ps) = (self.recorded.event(event).caused(), self.graph.recorded_delay_ps(event));
        let alone = self.cores.as_ref().zip(self.graph.computing(event)).map(|(cores, process)| {
            cores.alone_ps(self.trace.processes[process.index()].host, from, from.plus_ps(took_ps))
        });
        alone.unwrap_or(took_ps)
    }

    /// What a map computed of its input while it read: its own work where the trace has that, or else how long it read from its own
    /// host; `None` where a network fed it and nothing tells of its work.
    fn reading_ns(&self, task: &TaskRow) -> Option<u64> {
        let (first, last) = self.input(task)?;
        if let Some(ns) = self.consumption.computing_ns(task, |from, to| self.alone_ns(task, from, to)) {
            return Some(ns);
        }
        match self.consumed_by(task) {
            [] => (!self.reads_elsewhere(task)).then(|| self.alone_ns(task, first.sent_ns, last.delivered_ns)),
            marks => Some(marks.iter().map(|mark| self.event_alone_ps(*mark)).fold(0, u64::saturating_add) / 1_000),
        }
    }

    /// What a map computed of its input: where there are no reduces, until all of its output was made.
    pub(super) fn computing_ns(&self, task: &TaskRow) -> Option<u64> {
        let to_output = if self.graph.job.reduces == 0 { self.map_to_output_ns(task) } else { None };
        to_output.or_else(|| self.reading_ns(task))
    }

    /// What a map took for its spills: from the end of its input to its own end, and what a full buffer shows of earlier ones.
    pub(super) fn sorting_ns(&self, task: &TaskRow) -> Option<u64> {
        let marks = self.consumed_by(task).iter().map(|mark| self.graph.event(*mark).recorded_ns);
        let read = marks.chain([self.input(task)?.1.delivered_ns]).max()?;
        let alone = |from, to| self.alone_ns(task, from, to);
        let (spilling_ns, next) = self.consumption.spilling_ns(task, alone);
        let begin = next.map_or(read, |next| next.min(read));
        let since = alone(begin, self.sent(task, "done")?);
        let other_thread_ns = self.consumption.contended_ns(task, (begin, read), alone);
        Some(since.saturating_sub(other_thread_ns).saturating_add(spilling_ns))
    }

    fn consumed_by(&self, task: &TaskRow) -> &[EventId] {
        task.process.and_then(|process| self.consumed.get(&process)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn median_ns(&self, kinds: &[TaskKind], of: impl Fn(&TaskRow) -> Option<u64>) -> Option<u64> {
        let mut found: Vec<u64> =
            self.tasks.iter().filter(|task| kinds.contains(&task.kind)).filter_map(|task| of(task)).collect();
        found.sort_unstable();
        let [lower, upper] = middle(&found)?;
        Some(lower + (upper - lower) / 2)
    }

    /// The median of bytes over nanoseconds, as bytes a second.
    pub(super) fn median_rate(&self, kinds: &[TaskKind], of: impl Fn(&TaskRow) -> Option<(u64, u64)>) -> Option<f64> {
        let tasks = self.tasks.iter().filter(|task| kinds.contains(&task.kind));
        let some = |(bytes, ns): (u64, u64)| (bytes > 0 && ns > 0).then(|| bytes as f64 * 1e9 / ns as f64);
        let mut rates: Vec<f64> = tasks.filter_map(|task| of(task).and_then(some)).collect();
        rates.sort_by(f64::total_cmp);
        let [lower, upper] = middle(&rates)?;
        Some(f64::midpoint(lower, upper))
    }
}

fn first_on_node(tasks: &[&TaskRow], master: Option<HostId>) -> BTreeSet<TaskId> {
    let mut first: BTreeMap<HostId, (u64, TaskId)> = BTreeMap::new();
    for task in tasks {
        if let Some(host) = task.host.filter(|host| Some(*host) != master) {
            let of_task = (task.start_ns, task.task);
            let earliest = first.entry(host).or_insert(of_task);
            *earliest = of_task.min(*earliest);
        }
    }
    first.into_values().map(|(_, task)| task).collect()
}

/// The host of the process that registered during the job.
fn master_of(trace: &Trace, graph: &JobGraph<'_>) -> Option<HostId> {
    let during = |message: &&MessageRow| (graph.job.submit_ns..graph.job.finish_ns).contains(&message.sent_ns);
    let registered = trace
        .messages
        .iter()
        .filter(during)
        .find(|message| message.name == "registerApplicationMaster" && message.kind == MessageKind::RpcRequest)?;
    trace.connections.get(registered.connection.index()).map(|connection| connection.client_host)
}

/// The two values in the middle, which are one of an odd number.
fn middle<T: Copy>(sorted: &[T]) -> Option<[T; 2]> {
    let last = sorted.len().checked_sub(1)?;
    Some([sorted[last / 2], sorted[last.div_ceil(2)]])
}
