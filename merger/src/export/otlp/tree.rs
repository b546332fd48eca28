//! Whose child each span is, and by that to which job it belongs.
//!
//! What is served is a child of the call that asked for it. Everything else is a child of what its thread was at, else of the task that its process
//! ran, else of the job whose master it is. What is left begins a trace of its own job: none.

use std::cmp::Reverse;
use std::collections::HashMap;

use trace::ids::{JobId, MessageId, ProcessId, TaskId};
use trace::rows::{SpanRow, Trace};

use super::ids::Node;
use super::schema::SpanKind;

/// The spans of a trace and what they are part of.
pub struct Tree<'t> {
    trace: &'t Trace,
    /// By row of `spans`: its parent, and its job.
    spans: Vec<(Option<Node>, Option<JobId>)>,
}

impl<'t> Tree<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let parents = parents(trace);
        let mut tree = Self { trace, spans: parents.iter().map(|parent| (*parent, None)).collect() };
        tree.find_jobs();
        tree
    }

    /// The parent of a span, and its job.
    pub fn of_span(&self, row: u32) -> (Option<Node>, Option<JobId>) {
        self.spans.get(row as usize).copied().unwrap_or_default()
    }

    /// The job of a task, if the trace has it.
    pub fn job_of_task(&self, task: TaskId) -> Option<JobId> {
        let job = self.trace.tasks.get(task.index())?.job;
        self.trace.jobs.get(job.index()).map(|_| job)
    }

    /// Follows the parents of each span to a job or to the last. Spans that are each other's parents, as a damaged trace may have
    /// them, have none.
    fn find_jobs(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            No,
            Now,
            Done,
        }
        let mut seen = vec![Visit::No; self.spans.len()];
        for first in 0..self.spans.len() {
            let mut way = Vec::new();
            let mut at = first;
            let job = loop {
                match seen[at] {
                    Visit::Done => break self.spans[at].1,
                    Visit::Now => {
                        self.spans[at].0 = None;
                        break None;
                    }
                    Visit::No => {}
                }
                seen[at] = Visit::Now;
                way.push(at);
                match self.spans[at].0 {
                    Some(Node::Span(parent)) => at = parent as usize,
                    Some(Node::Job(job)) => break Some(job),
                    Some(Node::Task(task) | Node::Phase(task, _)) => break self.job_of_task(task),
                    None => break None,
                }
            };
            for at in way {
                seen[at] = Visit::Done;
                self.spans[at].1 = job;
            }
        }
    }
}

/// What a span is to others.
pub fn kind(span: &SpanRow) -> SpanKind {
    match span.kind.as_str() {
        "rpc" | "block" | "shuffle" => SpanKind::Server,
        "call" | "block-read" | "block-write" | "fetch" => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}

/// The end of a span, no earlier than its begin.
pub fn end(span: &SpanRow) -> u64 {
    span.end_ns.max(span.begin_ns)
}

fn parents(trace: &Trace) -> Vec<Option<Node>> {
    let is_hadoop = |process: ProcessId| trace.processes.get(process.index()).is_some_and(|row| row.hadoop);
    let mut asked: HashMap<MessageId, (u32, ProcessId)> = HashMap::new();
    for (row, span) in (0..).zip(&trace.spans) {
        if let Some(request) = span.request.filter(|_| kind(span) == SpanKind::Client && is_hadoop(span.process)) {
            asked.entry(request).or_insert((row, span.process));
        }
    }
    let around = around(trace);
    let works = Works::new(trace);
    (0..)
        .zip(&trace.spans)
        .map(|(row, span)| {
            let call = span.request.filter(|_| kind(span) == SpanKind::Server);
            let call = call.and_then(|request| asked.get(&request)).filter(|(_, by)| *by != span.process);
            let within = || around.get(&row).map(|around| Node::Span(*around));
            call.map(|(call, _)| Node::Span(*call)).or_else(within).or_else(|| works.of(span))
        })
        .collect()
}

/// By span the one within which its thread had it. Thread 0 is not known.
fn around(trace: &Trace) -> HashMap<u32, u32> {
    let mut order: Vec<u32> =
        (0..).zip(&trace.spans).filter(|(_, span)| span.thread != 0).map(|(row, _)| row).collect();
    let span = |row: u32| &trace.spans[row as usize];
    order.sort_by_key(|row| {
        (span(*row).process, span(*row).thread, span(*row).begin_ns, Reverse(end(span(*row))), *row)
    });
    let mut found = HashMap::new();
    let mut open: Vec<u32> = Vec::new();
    for row in order {
        let this = span(row);
        let is_around = |other: &SpanRow| {
            (other.process, other.thread) == (this.process, this.thread)
                && end(other) >= end(this)
                && end(other) > this.begin_ns
        };
        while let Some(last) = open.last()
            && !is_around(span(*last))
        {
            open.pop();
        }
        if let Some(last) = open.last() {
            found.insert(row, *last);
        }
        open.push(row);
    }
    found
}

/// What processes were there for.
struct Works<'t> {
    trace: &'t Trace,
    /// In the order of their starts.
    tasks: HashMap<ProcessId, Vec<TaskId>>,
    jobs: HashMap<&'t str, JobId>,
}

impl<'t> Works<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut tasks: HashMap<ProcessId, Vec<TaskId>> = HashMap::new();
        let mut in_order: Vec<_> = trace.tasks.iter().collect();
        in_order.sort_by_key(|task| (task.start_ns, task.task));
        for task in in_order {
            if let Some(process) = task.process {
                tasks.entry(process).or_default().push(task.task);
            }
        }
        let jobs = trace.jobs.iter().filter_map(|job| Some((job.id.strip_prefix("job_")?, job.job))).collect();
        Self { trace, tasks, jobs }
    }

    /// The task that its process ran then, or the job whose container it is in.
    fn of(&self, span: &SpanRow) -> Option<Node> {
        if let Some(tasks) = self.tasks.get(&span.process) {
            let start = |task: &TaskId| self.trace.tasks.get(task.index()).map_or(0, |row| row.start_ns);
            let begun = tasks.iter().rev().find(|task| start(task) <= span.begin_ns);
            return begun.or(tasks.first()).map(|task| Node::Task(*task));
        }
        let container = self.trace.processes.get(span.process.index())?.container.as_deref()?;
        self.jobs.get(application(container)?).map(|job| Node::Job(*job))
    }
}

/// `container_TIME_NUMBER_...`, or `container_eEPOCH_TIME_NUMBER_...`, to `TIME_NUMBER`.
fn application(container: &str) -> Option<&str> {
    let rest = container.strip_prefix("container_")?;
    let rest = if rest.starts_with('e') { rest.split_once('_')?.1 } else { rest };
    let (at, _) = rest.match_indices('_').nth(1)?;
    rest.get(..at)
}
