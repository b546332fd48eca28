//! The parameters of a job's like: what `replay generate` makes such a job from.
//!
//! All is of one job, that with the largest shuffle. A rate is a median over tasks; where a network may have held a task back, only
//! what was not on the network counts: maps whose block lay on their own host, and of reduces the thinking on the critical
//! path to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use causal::{JobGraph, Options, Outcome, PathKind, critical_path_to, recorded};
use trace::ids::{EventId, HostId, ProcessId, TaskId};
use trace::rows::{EventKind, JobRow, MessageKind, MessageRow, TaskKind, TaskRow, Trace};

/// What was learned of a job. Times are nanoseconds, rates bytes a second; `None` = the trace does not tell.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct JobParameters {
    /// The job's id.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Hosts with a DataNode, a NodeManager or a task.
    pub nodes: usize,
    /// Racks of these.
    pub racks: usize,
    /// Tasks that ran on one node at once, at most.
    pub tasks_at_once: usize,
    /// Maps that completed.
    pub maps: u32,
    /// Reduces that completed.
    pub reduces: u32,
    /// Bytes that its maps read.
    pub input_bytes: u64,
    /// Map output by input.
    pub map_output: f64,
    /// Output by what reduces fetched.
    pub reduce_output: f64,
    /// Copies of its output.
    pub replication: u32,
    /// Share of the maps that were done when reduces were asked for.
    pub slow_start: f64,
    /// Exponent of the reduces' shares.
    pub skew: f64,
    /// From a task's start to its first call.
    pub container_start_ns: Option<u64>,
    /// From the answer to that to its first read or question for map outputs.
    pub task_start_ns: Option<u64>,
    /// From the start of the master's container to its registration.
    pub master_start_ns: Option<u64>,
    /// What a map reads and computes on.
    pub map_rate: Option<f64>,
    /// What it puts out, over the time from the end of its input to its own end.
    pub sort_rate: Option<f64>,
    /// What a reduce has fetched, over the time of its sort.
    pub merge_rate: Option<f64>,
    /// The same over its thinking from then to its end.
    pub reduce_rate: Option<f64>,
    /// What the trace could not tell, in words.
    pub notes: Vec<String>,
}

/// Learns them; `None` if the trace has no job that can be replayed, or none with maps and reduces.
#[must_use]
pub fn parameters(trace: &Trace) -> Option<JobParameters> {
    let graph = JobGraph::new(trace, None, Options::default()).ok()?;
    let of = Learning::new(trace, &graph);
    let job = graph.job;
    let input_bytes = job.hdfs_bytes_read.filter(|bytes| *bytes > 0)?;
    let fetched = job.shuffle_bytes?;
    if job.maps == 0 || job.reduces == 0 {
        return None;
    }
    let written = job.hdfs_bytes_written.unwrap_or(0);
    let mut notes = Vec::new();
    let map_rate = of.map_rate(&mut notes);
    Some(JobParameters {
        job: job.id.clone(),
        name: job.name.clone(),
        nodes: of.nodes.len(),
        racks: of.racks().max(1),
        tasks_at_once: of.tasks_at_once(),
        maps: job.maps,
        reduces: job.reduces,
        input_bytes,
        map_output: fetched as f64 / input_bytes as f64,
        reduce_output: if fetched > 0 { written as f64 / fetched as f64 } else { 0.0 },
        replication: of.replication(),
        slow_start: of.slow_start(job),
        skew: of.skew(),
        container_start_ns: of.median_ns(TaskKind::ALL, |task| of.container_start(task)),
        task_start_ns: of.median_ns(TaskKind::ALL, |task| of.task_start(task)),
        master_start_ns: of.master_start(job),
        map_rate,
        sort_rate: of.median_rate(&[TaskKind::Map], |task| {
            Some((fetched / u64::from(job.maps), of.sent(task, "done")?.saturating_sub(of.input(task)?.1.delivered_ns)))
        }),
        merge_rate: of.median_rate(&[TaskKind::Reduce], |task| {
            Some((of.fetched(task), task.sort_end_ns?.saturating_sub(task.shuffle_end_ns?)))
        }),
        reduce_rate: of
            .median_rate(&[TaskKind::Reduce], |task| Some((of.fetched(task), of.thinking_after_sort(task)?))),
        notes,
    })
}

/// A trace with its messages by process.
struct Learning<'a> {
    trace: &'a Trace,
    graph: &'a JobGraph<'a>,
    tasks: Vec<&'a TaskRow>,
    nodes: BTreeSet<HostId>,
    by_process: BTreeMap<ProcessId, Vec<&'a MessageRow>>,
    outcome: Outcome,
    /// The event by which each task has ended.
    ends: BTreeMap<TaskId, EventId>,
}

impl<'a> Learning<'a> {
    fn new(trace: &'a Trace, graph: &'a JobGraph<'a>) -> Self {
        let tasks: Vec<&TaskRow> = graph.tasks().filter(|task| task.succeeded).collect();
        let marks = trace.events.iter().filter(|event| event.kind == EventKind::Mark && event.name == "task.finish");
        let ends = marks.filter_map(|event| Some((event.task?, event.event))).collect();
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
        Self { trace, graph, tasks, nodes, by_process, outcome: recorded(graph), ends }
    }

    fn messages(&self, task: &TaskRow) -> impl Iterator<Item = &'a MessageRow> + '_ {
        let of = task.process.and_then(|process| self.by_process.get(&process));
        of.into_iter().flatten().copied()
    }

    /// When a task's call of this name was sent first.
    fn sent(&self, task: &TaskRow, name: &str) -> Option<u64> {
        self.call(task, name, MessageKind::RpcRequest).map(|message| message.sent_ns)
    }

    fn call(&self, task: &TaskRow, name: &str, kind: MessageKind) -> Option<&'a MessageRow> {
        self.messages(task).find(|message| message.name == name && message.kind == kind)
    }

    /// The first and the last data that a map read.
    fn input(&self, task: &TaskRow) -> Option<(&'a MessageRow, &'a MessageRow)> {
        let mut data =
            self.messages(task).filter(|message| message.kind == MessageKind::BlockData && message.name == "read");
        let first = data.next()?;
        Some((first, data.last().unwrap_or(first)))
    }

    fn fetched(&self, task: &TaskRow) -> u64 {
        let outputs = self.messages(task).filter(|message| message.kind == MessageKind::ShuffleResponse);
        outputs.map(|message| message.app_bytes).fold(0, u64::saturating_add)
    }

    fn racks(&self) -> usize {
        let racks = self.nodes.iter().filter_map(|host| self.trace.hosts.get(host.index()));
        racks.map(|host| host.rack.as_str()).filter(|rack| !rack.is_empty()).collect::<BTreeSet<_>>().len()
    }

    /// Tasks of the job on one node at once.
    fn tasks_at_once(&self) -> usize {
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

    fn replication(&self) -> u32 {
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

    fn slow_start(&self, job: &JobRow) -> f64 {
        let kind = |kind| self.tasks.iter().filter(move |task| task.kind == kind);
        let first = kind(TaskKind::Reduce).map(|task| task.start_ns).min().unwrap_or(0);
        // The master asks with one heartbeat and is answered with the next.
        let pause = self.trace.timers.iter().find(|timer| timer.name == "allocate").map_or(0, |timer| timer.pause_ns);
        let asked = first.saturating_sub(pause.saturating_mul(2));
        let done = kind(TaskKind::Map).filter(|task| task.finish_ns <= asked.max(job.submit_ns)).count();
        (done as f64 / f64::from(job.maps.max(1))).min(1.0)
    }

    /// The slope of the parts' logarithms over those of their ranks; 0 where they are much alike.
    fn skew(&self) -> f64 {
        let reduces = self.tasks.iter().filter(|task| task.kind == TaskKind::Reduce);
        let mut parts: Vec<f64> = reduces.map(|task| self.fetched(task) as f64).filter(|part| *part > 0.0).collect();
        parts.sort_by(|a, b| b.total_cmp(a));
        let points: Vec<(f64, f64)> =
            (1u32..).zip(&parts).map(|(rank, part)| (f64::from(rank).ln(), part.ln())).collect();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
            (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
        });
        let skew = if below > 0.0 { -above / below } else { 0.0 };
        if skew > 0.05 { (skew * 100.0).round() / 100.0 } else { 0.0 }
    }

    fn container_start(&self, task: &TaskRow) -> Option<u64> {
        Some(self.sent(task, "getTask")?.saturating_sub(task.start_ns))
    }

    fn task_start(&self, task: &TaskRow) -> Option<u64> {
        let told = self.call(task, "getTask", MessageKind::RpcResponse)?.delivered_ns;
        let begins = match task.kind {
            TaskKind::Reduce => self.sent(task, "getMapCompletionEvents")?,
            TaskKind::Map | TaskKind::Other => self.input(task)?.0.sent_ns,
        };
        Some(begins.saturating_sub(told))
    }

    fn master_start(&self, job: &JobRow) -> Option<u64> {
        let during = |message: &&MessageRow| (job.submit_ns..job.finish_ns).contains(&message.sent_ns);
        let calls = |name| {
            let named = move |message: &&MessageRow| message.name == name && message.kind == MessageKind::RpcRequest;
            self.trace.messages.iter().filter(during).filter(named)
        };
        let registered = calls("registerApplicationMaster").next()?.sent_ns;
        let started = calls("startContainers").find(|message| message.sent_ns <= registered)?.delivered_ns;
        Some(registered.saturating_sub(started))
    }

    fn map_rate(&self, notes: &mut Vec<String>) -> Option<f64> {
        let is_local = |message: &MessageRow| {
            self.trace.connections.get(message.connection.index()).is_some_and(|connection| connection.loopback)
        };
        let rate = |only_local: bool| {
            self.median_rate(&[TaskKind::Map], |task| {
                let (first, last) = self.input(task).filter(|(first, _)| !only_local || is_local(first))?;
                let data = self
                    .messages(task)
                    .filter(|message| message.kind == MessageKind::BlockData && message.name == "read");
                let bytes = data.map(|message| message.app_bytes).fold(0, u64::saturating_add);
                Some((bytes, last.delivered_ns.saturating_sub(first.sent_ns)))
            })
        };
        rate(true).or_else(|| {
            notes.push(
                "map_rate: no map read a block of its own host; the network may have held all of them back".to_owned(),
            );
            rate(false)
        })
    }

    /// What a reduce thinks on the critical path from the end of its sort to its own end.
    fn thinking_after_sort(&self, task: &TaskRow) -> Option<u64> {
        let from = self.graph.job_time(task.sort_end_ns?).ps();
        let path = critical_path_to(self.graph, &self.outcome, *self.ends.get(&task.task)?, from);
        Some(path.total_of_ps(PathKind::Think) / 1_000)
    }

    fn median_ns(&self, kinds: &[TaskKind], of: impl Fn(&TaskRow) -> Option<u64>) -> Option<u64> {
        let mut found: Vec<u64> =
            self.tasks.iter().filter(|task| kinds.contains(&task.kind)).filter_map(|task| of(task)).collect();
        found.sort_unstable();
        found.get(found.len() / 2).copied()
    }

    /// The median of bytes over nanoseconds, as bytes a second.
    fn median_rate(&self, kinds: &[TaskKind], of: impl Fn(&TaskRow) -> Option<(u64, u64)>) -> Option<f64> {
        let tasks = self.tasks.iter().filter(|task| kinds.contains(&task.kind));
        let some = |(bytes, ns): (u64, u64)| (bytes > 0 && ns > 0).then(|| bytes as f64 * 1e9 / ns as f64);
        let mut rates: Vec<f64> = tasks.filter_map(|task| of(task).and_then(some)).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

impl JobParameters {
    /// As a job file for `replay generate`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let rate = |rate: Option<f64>| match rate {
            Some(bytes) => format!("\"{}bps\"", (bytes * 8.0).round().max(8.0)),
            None => "\"unlimited\"                # not in the trace".to_owned(),
        };
        let time = |ns: Option<u64>| match ns {
            Some(ns) => format!("\"{}ms\"", ns / 1_000_000),
            None => "\"0ps\"                      # not in the trace".to_owned(),
        };
        let plain = |text: &str| text.replace(|letter: char| letter.is_control(), " ");
        let mut text = format!("# The like of {} ({}).\n", plain(&self.job), plain(&self.name));
        for note in &self.notes {
            let _ = writeln!(text, "# {}", plain(note));
        }
        let share = |value: f64| (value * 1e6).round() / 1e6;
        let _ = write!(
            text,
            "\n[cluster]\nnodes = {}\nracks = {}\n\
             # A trace does not tell cores and disks; what they took is in the rates below.\n\
             cores = {}\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
             container_start = {}\ntask_start = {}\nmaster_start = {}\n\
             \n[hadoop]\n# The input by the maps.\ndfs.blocksize = {}\ndfs.replication = {}\n\
             # As many tasks at once as one node had at most; a master takes the place of none.\n\
             yarn.nodemanager.resource.memory-mb = {}\nyarn.scheduler.minimum-allocation-mb = 1\n\
             yarn.app.mapreduce.am.resource.mb = 1\n\
             mapreduce.job.reduce.slowstart.completedmaps = {}\n\
             \n[[job]]\nname = \"job\"\ninput = \"{}B\"\nreduces = {}\nmap_output = {:?}\nreduce_output = {:?}\n\
             map_rate = {}\nsort_rate = {}\nmerge_rate = {}\nreduce_rate = {}\nskew = {:?}\n",
            self.nodes,
            self.racks,
            self.tasks_at_once,
            time(self.container_start_ns),
            time(self.task_start_ns),
            time(self.master_start_ns),
            self.input_bytes.div_ceil(u64::from(self.maps.max(1))),
            self.replication,
            1_024 * self.tasks_at_once + 1,
            share(self.slow_start),
            self.input_bytes,
            self.reduces,
            share(self.map_output),
            share(self.reduce_output),
            rate(self.map_rate),
            rate(self.sort_rate),
            rate(self.merge_rate),
            rate(self.reduce_rate),
            self.skew,
        );
        text
    }
}
