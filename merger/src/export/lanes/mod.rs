//! Processes in lanes, for programs that show one activity (and what is within it) a row: what went on at the same time stands
//! in lanes of its own.

mod activity;
mod nesting;

pub use activity::{Activity, ActivityKind, State};
pub use nesting::changes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use trace::ids::{MessageId, ProcessId};
use trace::rows::{MessageRow, ProcessRow, Trace};

use self::activity::{MAIN_THREAD, activities};
use self::nesting::{Strip, strips};
use super::file::ExportError;

/// A row of a process. The first of each is its main thread, to which also belongs what is of no known thread.
#[derive(Debug, Default)]
pub struct Lane<'a> {
    /// Activities in order; any two are apart or one within the other.
    pub activities: Vec<Activity<'a>>,
    /// The only thread of the lane; `None`: there are several, or it is not known.
    pub thread: Option<u64>,
    /// CPU, from 1.
    pub cpu: usize,
}

/// A Hadoop process and its lanes.
#[derive(Debug)]
pub struct Task<'a> {
    /// The process.
    pub process: &'a ProcessRow,
    /// Node, from 1.
    pub node: usize,
    /// First sign of life, nanoseconds since the epoch.
    pub begin: u64,
    /// Last sign of life.
    pub end: u64,
    /// At least one.
    pub lanes: Vec<Lane<'a>>,
}

/// A row: its task and its lane within it, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskLane {
    /// Task.
    pub task: usize,
    /// Lane.
    pub lane: usize,
}

/// All rows.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// Processes, by node.
    pub tasks: Vec<Task<'a>>,
    /// CPUs of each node: a lane's each, at least one.
    pub cpus: Vec<usize>,
    task_of: HashMap<ProcessId, usize>,
    lane_of_span: HashMap<usize, usize>,
    /// The span of a process that sends or gets a message.
    span_of_message: HashMap<(MessageId, ProcessId), usize>,
}

impl<'a> Lanes<'a> {
    /// Finds the rows of a trace, `max_rows` at most: where there would be more, a process has one row for each activity that
    /// goes on at the same time, whatever its thread.
    pub fn new(trace: &'a Trace, max_rows: usize) -> Result<Self, ExportError> {
        let mut activities = activities(trace);
        let mut processes: Vec<&ProcessRow> = trace.processes.iter().filter(|process| process.hadoop).collect();
        if processes.is_empty() {
            return Err(ExportError::NoProcesses);
        }
        processes.sort_by_key(|process| (process.host, process.first_seen_ns, process.process));
        let mut lanes = Self {
            tasks: Vec::new(),
            cpus: Vec::new(),
            task_of: HashMap::new(),
            lane_of_span: HashMap::new(),
            span_of_message: spans_of_messages(trace),
        };
        for (node, host) in trace.hosts.iter().enumerate() {
            for process in processes.iter().filter(|process| process.host == host.host) {
                let threads = activities.remove(&process.process).unwrap_or_default();
                lanes.add(process, node + 1, by_thread(threads));
            }
        }
        if lanes.rows() > max_rows {
            for task in &mut lanes.tasks {
                task.pool();
            }
        }
        if lanes.rows() > max_rows {
            return Err(ExportError::TooManyRows { found: lanes.rows(), max: max_rows });
        }
        lanes.number(trace.hosts.len());
        Ok(lanes)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.tasks.iter().map(|task| task.lanes.len()).sum()
    }

    /// The first row of a process.
    pub fn of_process(&self, process: ProcessId) -> Option<TaskLane> {
        self.task_of.get(&process).map(|&task| TaskLane { task, lane: 0 })
    }

    /// From where to where a message went: the rows whose spans sent and got it, or else the first of their processes.
    /// `None` if not both are processes of Hadoop.
    pub fn of_message(&self, trace: &Trace, message: &MessageRow) -> Option<(TaskLane, TaskLane)> {
        let connection = trace.connections.get(message.connection.index())?;
        let (client, server) = (connection.client_process?, connection.server_process?);
        let (from, to) = if message.from_client { (client, server) } else { (server, client) };
        let place = |process: ProcessId| {
            let span = self.span_of_message.get(&(message.message, process));
            let lane = span.and_then(|span| self.lane_of_span.get(span));
            let task = *self.task_of.get(&process)?;
            Some(TaskLane { task, lane: lane.copied().unwrap_or(0) })
        };
        place(from).zip(place(to))
    }

    fn add(&mut self, process: &'a ProcessRow, node: usize, lanes: Vec<Lane<'a>>) {
        let all = || lanes.iter().flat_map(|lane| &lane.activities);
        let begin = all().map(|activity| activity.begin).min().unwrap_or(u64::MAX).min(process.first_seen_ns);
        let end = all().map(|activity| activity.end).max().unwrap_or(0).max(process.last_seen_ns).max(begin);
        self.task_of.insert(process.process, self.tasks.len());
        self.tasks.push(Task { process, node, begin, end, lanes });
    }

    /// Gives each lane its CPU, and finds the lanes of spans.
    fn number(&mut self, nodes: usize) {
        let mut cpu = 0;
        for node in 1..=nodes {
            let first = cpu;
            for task in self.tasks.iter_mut().filter(|task| task.node == node) {
                for (number, lane) in task.lanes.iter_mut().enumerate() {
                    cpu += 1;
                    lane.cpu = cpu;
                    let spans = lane.activities.iter().filter_map(|activity| activity.span);
                    self.lane_of_span.extend(spans.map(|span| (span, number)));
                }
            }
            cpu = cpu.max(first + 1);
            self.cpus.push(cpu - first);
        }
    }
}

impl Lane<'_> {
    /// Its name beside its process'; `number` is its place there.
    pub fn name(&self, number: usize) -> String {
        match (number, self.thread) {
            (0, _) => "main".to_owned(),
            (_, Some(thread)) => format!("thread {thread}"),
            (number, None) => format!("lane {number}"),
        }
    }
}

impl Task<'_> {
    /// Host, task attempt or role, process id.
    pub fn name(&self, trace: &Trace) -> String {
        let host = trace.hosts.get(self.node - 1).map_or("?", |host| host.name.as_str());
        let what = self.process.attempt.as_deref().unwrap_or(&self.process.role);
        format!("{host} {what} {}", self.process.pid)
    }

    /// As few lanes as there were activities at the same time.
    fn pool(&mut self) {
        let all = self.lanes.drain(..).flat_map(|lane| lane.activities).map(Strip::of);
        self.lanes = pooled(all.map(|strip| (None, strip)).collect());
        if self.lanes.is_empty() {
            self.lanes.push(Lane::default());
        }
    }
}

fn spans_of_messages(trace: &Trace) -> HashMap<(MessageId, ProcessId), usize> {
    let mut spans = HashMap::new();
    for (index, span) in trace.spans.iter().enumerate() {
        for message in [span.request, span.response].into_iter().flatten() {
            spans.entry((message, span.process)).or_insert(index);
        }
    }
    spans
}

/// The main thread first; then lanes of threads, each of which has its lane from its first activity to its last.
fn by_thread(mut threads: BTreeMap<u64, Vec<Activity<'_>>>) -> Vec<Lane<'_>> {
    let unknown = threads.remove(&0).unwrap_or_default();
    let mut main = strips(threads.remove(&MAIN_THREAD).unwrap_or_default()).into_iter();
    let first = main.next().unwrap_or_default();
    let mut rest: Vec<(Option<u64>, Strip<'_>)> = main.map(|strip| (Some(MAIN_THREAD), strip)).collect();
    for (thread, activities) in threads {
        rest.extend(strips(activities).into_iter().map(|strip| (Some(thread), strip)));
    }
    rest.extend(unknown.into_iter().map(|activity| (None, Strip::of(activity))));
    let mut lanes = vec![Lane { activities: first.activities, thread: Some(MAIN_THREAD), cpu: 0 }];
    lanes.append(&mut pooled(rest));
    lanes
}

/// Puts each strip into the lowest lane that is free from its begin on: as few lanes as strips last at the same time.
fn pooled(mut strips: Vec<(Option<u64>, Strip<'_>)>) -> Vec<Lane<'_>> {
    strips.sort_by_key(|(thread, strip)| (strip.extent(), *thread));
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    for (thread, strip) in strips {
        let (begin, end) = strip.extent();
        while let Some(&Reverse((until, lane))) = busy.peek()
            && until <= begin
        {
            busy.pop();
            free.push(Reverse(lane));
        }
        let lane = free.pop().map_or(lanes.len(), |Reverse(lane)| lane);
        busy.push(Reverse((end, lane)));
        match lanes.get_mut(lane) {
            Some(known) => {
                known.thread = known.thread.filter(|own| Some(*own) == thread);
                known.activities.extend(strip.activities);
            }
            None => lanes.push(Lane { activities: strip.activities, thread, cpu: 0 }),
        }
    }
    lanes
}
