//! What is known of MapReduce on YARN (read in the sources of Hadoop 3.4): how a job comes to its containers, and its
//! tasks to their news.
//!
//! A job is submitted; with the next heartbeat of a node the scheduler assigns a container to its application master,
//! and the resource manager's launcher starts it there. The master asks for containers with its next `allocate`; the
//! scheduler assigns each with the next heartbeat of the node where it will be (when there is room: when a container
//! that ended there was reported by a heartbeat); the master learns of it with the response to its next `allocate` and
//! has it started. Reduces are scheduled after the response of an `allocate` that follows the completion of enough maps
//! (`mapreduce.job.reduce.slowstart.completedmaps`), and asked for with the next. A reduce learns of completed maps by
//! polling. The job is finished when the master has committed it.

use trace::ids::{HostId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, Evidence, TaskKind};

use super::beats::Beat;
use super::clients::{self, LastPolls};
use super::draft::{Cause, Draft};
use super::index::{Call, receiver_host, role, sender};
use super::rules::CauseInference;
use super::slots::{Container, Slots};
use super::tasks::{JobOf, Work};
use crate::history::{Histories, SLOW_START};
use crate::maps::HashMap;

/// Share of completed maps at which reduces are scheduled, where the configuration does not say
/// (mapred-default.xml of Hadoop 3.4).
const DEFAULT_SLOW_START: f64 = 0.05;

/// Two sources that tell of one thing (a history in milliseconds, a packet) differ by less than this.
const NEAR_NS: u64 = 5_000_000_000;

/// Marks of one job.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// End of each attempt, as the master learns it.
    pub finish: HashMap<TaskId, Draft>,
    /// All map outputs are there.
    pub shuffle_end: HashMap<TaskId, Draft>,
    /// They are merged.
    pub sort_end: HashMap<TaskId, Draft>,
    /// End of each job.
    pub job_finish: Vec<Draft>,
}

/// Tells the causes of everything that YARN decides, and sets the marks of jobs and tasks.
pub fn infer(inference: &mut CauseInference<'_>, work: &Work<'_>, histories: &Histories) -> Marks {
    let mut marks = Marks::default();
    let mut starts: HashMap<TaskId, Call> = HashMap::default();
    for job in &work.of {
        starts.extend(match_starts(inference, work, job));
    }
    for job in &work.of {
        finish_tasks(inference, work, job, &mut marks);
    }
    let slots = Slots::of(&end_containers(inference, work, &starts, &marks));
    let masters = MasterStarts::find(inference);
    let requests = work.shuffle_requests(inference.joined, inference.index);
    let submissions = deliveries(inference, "submitApplication");
    for job in &work.of {
        let submit = submit(inference, work, job, &submissions);
        start_master(inference, job, &masters, submit);
        start_tasks(inference, work, job, histories, &starts, &slots, &marks);
        phases(inference, work, job, &mut marks);
        fetches(inference, work, job, requests.get(&job.job), &marks);
    }
    clients::follow(inference);
    marks
}

/// Marks of jobs' ends; to be set when everything else is woven, because anything may have led to them.
pub fn finish_jobs(inference: &mut CauseInference<'_>, work: &Work<'_>, marks: &mut Marks) {
    let polls = LastPolls::find(inference);
    for job in &work.of {
        let row = &work.jobs[job.job.index()];
        if row.finish_ns == 0 {
            continue;
        }
        let mut causes: Vec<Cause> = job
            .attempts
            .iter()
            .filter_map(|(task, _)| marks.finish.get(task))
            .filter(|finish| inference.graph.happened(**finish) <= row.finish_ns)
            .map(|finish| Cause::sent(*finish, Evidence::Protocol))
            .collect();
        causes.extend(job.master.and_then(|master| inference.heuristic(master, row.finish_ns)));
        let mark = inference.graph.mark("job.finish", job.master, None, row.finish_ns, &causes);
        marks.job_finish.push(mark);
        polls.tell(inference, mark);
    }
}

/// The call that started each attempt's container: of the master's calls to the attempt's host, the one whose response
/// came nearest to the attempt's start.
fn match_starts(inference: &CauseInference<'_>, work: &Work<'_>, job: &JobOf<'_>) -> HashMap<TaskId, Call> {
    let mut starts = HashMap::default();
    let Some(master) = job.master else { return starts };
    let mut calls: Vec<(HostId, u64, Call)> = inference
        .index
        .calls_by(master, "startContainers")
        .filter_map(|call| {
            let host = receiver_host(inference.joined, &inference.joined.message(call.request));
            Some((host, inference.joined.message(call.response?).delivered_ns, call))
        })
        .collect();
    let mut attempts: Vec<_> = job.attempts.iter().map(|(task, _)| &work.tasks[task.index()]).collect();
    attempts.sort_by_key(|task| (task.start_ns, task.task));
    for task in attempts {
        let nearest = calls
            .iter()
            .enumerate()
            .filter(|(_, (host, at, _))| Some(*host) == task.host && at.abs_diff(task.start_ns) < NEAR_NS)
            .min_by_key(|(_, (_, at, _))| at.abs_diff(task.start_ns))
            .map(|(place, _)| place);
        if let Some(place) = nearest {
            starts.insert(task.task, calls.remove(place).2);
        }
    }
    starts
}

/// `task.finish`: the master has got the attempt's `done`.
fn finish_tasks(inference: &mut CauseInference<'_>, work: &Work<'_>, job: &JobOf<'_>, marks: &mut Marks) {
    for (task, _) in &job.attempts {
        let row = &work.tasks[task.index()];
        let done = row.process.and_then(|process| last_call(inference, process, "done", row.finish_ns + 1_000_000_000));
        let mut causes = Vec::new();
        if let Some(done) = done {
            causes.push(Cause::delivered(inference.pieces.last(done.request), Evidence::Protocol));
        } else if let Some(cause) = job.master.and_then(|master| inference.heuristic(master, row.finish_ns)) {
            causes.push(cause);
        }
        let mark = inference.graph.mark("task.finish", job.master, Some(*task), row.finish_ns, &causes);
        marks.finish.insert(*task, mark);
    }
}

/// The last call of `method` that a process made and that was delivered until `until`.
pub(super) fn last_call(
    inference: &CauseInference<'_>,
    process: ProcessId,
    method: &'static str,
    until: u64,
) -> Option<Call> {
    let mut calls = inference.index.calls_by(process, method).rev();
    calls.find(|call| inference.joined.message(call.request).delivered_ns <= until)
}

/// Marks "container.end": a task's JVM has ended, after its `done` was answered.
fn end_containers(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    starts: &HashMap<TaskId, Call>,
    marks: &Marks,
) -> Vec<Container> {
    let mut containers = Vec::new();
    for task in &work.tasks {
        let (Some(host), Some(start)) = (task.host, starts.get(&task.task)) else { continue };
        let begin = inference.joined.message(start.request).delivered_ns;
        let (end, cause) = match task.process {
            Some(process) => {
                let end = inference.ends.of_task(&inference.joined.processes[process.index()], task.finish_ns);
                (end, inference.threads.received(process, end).map(|moment| moment.cause))
            }
            None => (task.finish_ns, None),
        };
        let finish = marks.finish.get(&task.task).map(|finish| Cause::sent(*finish, Evidence::Protocol));
        let causes: Vec<Cause> = cause.or(finish).into_iter().collect();
        let mark = inference.graph.mark("container.end", task.process, Some(task.task), end, &causes);
        containers.push(Container { host, begin, end: inference.graph.happened(mark), mark });
    }
    containers
}

/// Calls of a method, and when each had been delivered.
pub(super) fn deliveries(inference: &CauseInference<'_>, method: &str) -> Vec<(u64, Call)> {
    let calls = inference.index.calls_of(method);
    calls.map(|call| (inference.joined.message(call.request).delivered_ns, call)).collect()
}

/// `job.submit`: the master of the cluster has got the job, with one of the `submissions`.
pub(super) fn submit(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    job: &JobOf<'_>,
    submissions: &[(u64, Call)],
) -> Draft {
    let at = work.jobs[job.job.index()].submit_ns;
    let nearest = submissions.iter().min_by_key(|(delivered_ns, _)| delivered_ns.abs_diff(at));
    let near = nearest.filter(|(delivered_ns, _)| delivered_ns.abs_diff(at) < NEAR_NS).map(|(_, call)| *call);
    let causes: Vec<Cause> = near
        .map(|call| Cause::delivered(inference.pieces.last(call.request), Evidence::Protocol))
        .into_iter()
        .collect();
    inference.graph.mark("job.submit", near.and_then(|call| call.server), None, at, &causes)
}

/// The calls of resource managers that start application masters, by the host that they go to, in order of requests.
struct MasterStarts {
    by_host: HashMap<HostId, Vec<Call>>,
}

impl MasterStarts {
    fn find(inference: &CauseInference<'_>) -> Self {
        let mut by_host: HashMap<HostId, Vec<Call>> = HashMap::default();
        for call in inference.index.calls_of("startContainers") {
            if role(inference.joined, call.client) == "ResourceManager" {
                let request = &inference.joined.message(call.request);
                by_host.entry(receiver_host(inference.joined, request)).or_default().push(call);
            }
        }
        Self { by_host }
    }

    /// The last that was sent at `from` or later and delivered until `until`.
    fn last(&self, inference: &CauseInference<'_>, host: HostId, from: u64, until: u64) -> Option<Call> {
        let calls = self.by_host.get(&host)?;
        let request = |call: &Call| inference.joined.message(call.request);
        let sent_until = calls.partition_point(|call| request(call).sent_ns <= until);
        let sent = calls[..sent_until].iter().rev().take_while(|call| request(call).sent_ns >= from);
        sent.copied().find(|call| request(call).delivered_ns <= until)
    }
}

/// The application master's container: assigned with a heartbeat of its node, started by the resource manager.
fn start_master(inference: &mut CauseInference<'_>, job: &JobOf<'_>, starts: &MasterStarts, submit: Draft) {
    let Some(master) = job.master else { return };
    let process = &inference.joined.processes[master.index()];
    let (host, first_seen) = (process.host, process.first_seen_ns);
    let start = starts.last(inference, host, inference.graph.happened(submit), first_seen);
    let Some(start) = start else {
        inference.threads.set_origin(master, Cause::sent(submit, Evidence::Protocol));
        return;
    };
    let request = &inference.joined.message(start.request);
    let assigned = match node_timer(inference, start.server) {
        Some(node) => {
            let news = Cause::sent(submit, Evidence::Protocol).carried(node, Carrier::Request);
            let at = last_arrival(inference, node, Carrier::Request, request.sent_ns);
            let in_time = inference.graph.yielded(news).is_some_and(|at| at <= request.sent_ns);
            let news = if in_time { news } else { Cause { by: None, ..news } };
            Cause::sent(inference.graph.mark("container.assigned", start.client, None, at, &[news]), Evidence::Protocol)
        }
        None => Cause::sent(submit, Evidence::Protocol),
    };
    inference.call_because(request, assigned);
    start_process(inference, master, start, None);
}

/// Containers of tasks: asked for, assigned, started.
fn start_tasks(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    job: &JobOf<'_>,
    histories: &Histories,
    starts: &HashMap<TaskId, Call>,
    slots: &Slots,
    marks: &Marks,
) {
    let mut assignments = Assignments::new(inference, job, histories, marks, work);
    let mut attempts: Vec<TaskId> = job.attempts.iter().map(|(task, _)| *task).collect();
    attempts.sort_by_key(|task| (work.tasks[task.index()].start_ns, *task));
    for task in attempts {
        let row = &work.tasks[task.index()];
        let Some(start) = starts.get(&task).copied() else {
            let causes: Vec<Cause> =
                job.master.and_then(|master| inference.heuristic(master, row.start_ns)).into_iter().collect();
            let mark = inference.graph.mark("task.start", job.master, Some(task), row.start_ns, &causes);
            if let Some(process) = row.process {
                inference.threads.set_origin(process, Cause::sent(mark, Evidence::Protocol));
            }
            continue;
        };
        let request = &inference.joined.message(start.request);
        if let Some(cause) = assignments.of(inference, row.kind, start, task, slots) {
            inference.call_because(request, cause);
        }
        let launched = start.response.map(|answer| Cause::delivered(inference.pieces.last(answer), Evidence::Protocol));
        inference.graph.mark("task.start", job.master, Some(task), row.start_ns, &Vec::from_iter(launched));
        if let Some(process) = row.process {
            start_process(inference, process, start, Some(task));
        }
    }
}

/// Mark "process.start": a container's JVM begins, after its start was asked for and its files were fetched.
fn start_process(inference: &mut CauseInference<'_>, process: ProcessId, start: Call, task: Option<TaskId>) {
    let asked = inference.pieces.last(start.request);
    let mut causes = vec![Cause::delivered(asked, Evidence::Protocol)];
    let row = &inference.joined.processes[process.index()];
    let at = inference.index.first_sent.get(&process).map_or(row.first_seen_ns, |sent| row.first_seen_ns.min(*sent));
    if let Some(node) = start.server {
        let fetched = inference
            .threads
            .received_between(node, inference.graph.arrived(asked), at)
            .rev()
            .find(|moment| !inference.graph.is_from_client(moment.cause.event));
        causes.extend(fetched.map(|moment| Cause { evidence: Evidence::Protocol, ..moment.cause }));
    }
    causes.retain(|cause| inference.graph.yielded(*cause).is_some_and(|yielded| yielded <= at));
    let mark = inference.graph.mark("process.start", Some(process), task, at, &causes);
    inference.threads.set_origin(process, Cause::sent(mark, Evidence::Protocol));
}

/// How containers of one job are asked for and assigned.
struct Assignments {
    allocate: Option<TimerId>,
    maps_asked: Option<Draft>,
    reduces_asked: Option<Draft>,
}

impl Assignments {
    fn new(
        inference: &mut CauseInference<'_>,
        job: &JobOf<'_>,
        histories: &Histories,
        marks: &Marks,
        work: &Work<'_>,
    ) -> Self {
        let allocate = job.master.and_then(|master| inference.timers.of(master, "allocate"));
        let mut this = Self { allocate, maps_asked: None, reduces_asked: None };
        let (Some(allocate), Some(master)) = (allocate, job.master) else { return this };
        let server = inference.graph.beats.of(allocate).first().map(|beat| inference.graph.process(beat.response));
        let server = server.flatten();
        let finish_of_maps = map_finishes(inference, job, marks, work);
        let first_start = inference
            .index
            .calls_by(master, "startContainers")
            .map(|call| inference.joined.message(call.request).sent_ns)
            .min();
        if let Some(first_start) = first_start {
            this.maps_asked = ask_for_maps(inference, master, allocate, server, first_start);
        }
        let share = histories
            .setting(&job.history.id, SLOW_START)
            .and_then(|value| value.parse::<f64>().ok())
            .unwrap_or(DEFAULT_SLOW_START);
        let enough = enough_maps(share, finish_of_maps.len());
        if let Some(last) = enough.checked_sub(1).and_then(|last| finish_of_maps.get(last)) {
            this.reduces_asked = ask_for_reduces(inference, *last, allocate, master, server);
        } else {
            this.reduces_asked = this.maps_asked;
        }
        this
    }

    /// What the start of a container waits for.
    fn of(
        &mut self,
        inference: &mut CauseInference<'_>,
        kind: TaskKind,
        start: Call,
        task: TaskId,
        slots: &Slots,
    ) -> Option<Cause> {
        let allocate = self.allocate?;
        let node = node_timer(inference, start.server)?;
        let request = &inference.joined.message(start.request);
        let beats = inference.graph.beats.of(allocate);
        let learnt =
            beats.partition_point(|beat| inference.graph.arrived(beat.response) <= request.sent_ns).checked_sub(1)?;
        let response = beats.get(learnt)?.response;
        let learnt_at = inference.graph.happened(response);
        let before = learnt.checked_sub(1).and_then(|before| beats.get(before));
        let learnt_before = before.map_or(0, |before| inference.graph.happened(before.response));
        let manager = inference.graph.process(response);
        let reported = last_arrival(inference, node, Carrier::Request, learnt_at);
        let at = reported.max(learnt_before + 1).min(learnt_at);
        let asked = if kind == TaskKind::Reduce { self.reduces_asked } else { self.maps_asked };
        let asked = asked.filter(|asked| inference.graph.happened(*asked) <= at).or(self.maps_asked);
        let mut causes = Vec::new();
        if let Some(asked) = asked.filter(|asked| inference.graph.happened(*asked) <= at) {
            causes.push(in_time(inference, Cause::sent(asked, Evidence::Protocol).carried(node, Carrier::Request), at));
            let host = receiver_host(inference.joined, request);
            let since = inference.graph.happened(asked);
            if let Some(freed) = slots.freed(host, since, at) {
                let freed = Cause::sent(freed, Evidence::Slot).carried(node, Carrier::Request);
                causes.push(in_time(inference, freed, at));
            }
        }
        let assigned = inference.graph.mark("container.assigned", manager, Some(task), at, &causes);
        Some(Cause::sent(assigned, Evidence::Protocol).carried(allocate, Carrier::Response))
    }
}

/// Without its timer, if the news would come too late by it.
pub(super) fn in_time(inference: &CauseInference<'_>, cause: Cause, at: u64) -> Cause {
    let late = inference.graph.yielded(cause).is_none_or(|yielded| yielded > at);
    if late { Cause { by: None, ..cause } } else { cause }
}

/// Mark "maps.asked": the master asks for its maps with the first `allocate` after it knows them, which is the last
/// one that reached the resource manager before the response that brought the first container was sent.
fn ask_for_maps(
    inference: &mut CauseInference<'_>,
    master: ProcessId,
    allocate: TimerId,
    server: Option<ProcessId>,
    first_start: u64,
) -> Option<Draft> {
    let beats = inference.graph.beats.of(allocate);
    let learnt = beats.partition_point(|beat| inference.graph.arrived(beat.response) <= first_start).checked_sub(1)?;
    let asked = beats.get(learnt.saturating_sub(1))?.request;
    let (sent, arrived) = (inference.graph.happened(asked), inference.graph.arrived(asked));
    let answers = inference.threads.received_between(master, 0, sent).rev();
    let ready = answers.map(|moment| moment.cause).find(|cause| !inference.graph.is_from_client(cause.event));
    let ready = ready.or_else(|| inference.threads.origin(master))?;
    let news = in_time(inference, ready.carried(allocate, Carrier::Request), arrived);
    Some(inference.graph.mark("maps.asked", server, None, arrived, &[news]))
}

/// Marks "reduces.scheduled" and "reduces.asked", after the last map that has to be done before. None where the master
/// had no more to ask for: the maps were all there was.
fn ask_for_reduces(
    inference: &mut CauseInference<'_>,
    last: Draft,
    allocate: TimerId,
    master: ProcessId,
    server: Option<ProcessId>,
) -> Option<Draft> {
    let heard = Cause::sent(last, Evidence::Protocol).carried(allocate, Carrier::Response);
    let at = inference.graph.yielded(heard)?;
    let scheduled = inference.graph.mark("reduces.scheduled", Some(master), None, at, &[heard]);
    let asked = Cause::sent(scheduled, Evidence::Protocol).carried(allocate, Carrier::Request);
    let at = inference.graph.yielded(asked)?;
    Some(inference.graph.mark("reduces.asked", server, None, at, &[asked]))
}

/// How many maps must have completed before reduces are scheduled.
pub(super) fn enough_maps(share: f64, maps: usize) -> usize {
    (1..=maps).find(|done| *done as f64 >= share * maps as f64).filter(|_| share > 0.0).unwrap_or(0)
}

pub(super) fn map_finishes(
    inference: &CauseInference<'_>,
    job: &JobOf<'_>,
    marks: &Marks,
    work: &Work<'_>,
) -> Vec<Draft> {
    let mut finishes: Vec<Draft> = job
        .attempts
        .iter()
        .filter(|(task, _)| {
            let row = &work.tasks[task.index()];
            row.kind == TaskKind::Map && row.succeeded
        })
        .filter_map(|(task, _)| marks.finish.get(task).copied())
        .collect();
    finishes.sort_by_key(|finish| inference.graph.happened(*finish));
    finishes
}

/// The heartbeat of a node manager.
fn node_timer(inference: &CauseInference<'_>, node: Option<ProcessId>) -> Option<TimerId> {
    inference.timers.of(node?, "nodeHeartbeat")
}

/// When the last beat that arrived until `until` arrived; 0 = none did.
fn last_arrival(inference: &CauseInference<'_>, timer: TimerId, carrier: Carrier, until: u64) -> u64 {
    let half = |beat: &Beat| match carrier {
        Carrier::Request => beat.request,
        Carrier::Response => beat.response,
    };
    let beats = inference.graph.beats.of(timer);
    let after = beats.partition_point(|beat| inference.graph.arrived(half(beat)) <= until);
    let last = after.checked_sub(1).and_then(|last| beats.get(last));
    last.map_or(0, |last| inference.graph.arrived(half(&last)))
}

/// `task.shuffle_end` and `task.sort_end`, and what the task's threads know by them.
pub(super) fn phases(inference: &mut CauseInference<'_>, work: &Work<'_>, job: &JobOf<'_>, marks: &mut Marks) {
    for (task, _) in &job.attempts {
        let row = &work.tasks[task.index()];
        let (Some(process), Some(shuffle_end)) = (row.process, row.shuffle_end_ns) else { continue };
        let outputs = inference.index.map_outputs.get(&process).into_iter().flatten();
        let fetched: Vec<Cause> = outputs
            .map(|output| Cause::delivered(inference.pieces.last(*output), Evidence::Protocol))
            .filter(|cause| inference.graph.arrived(cause.event) <= shuffle_end + 1_000_000)
            .collect();
        let shuffled = inference.graph.mark("task.shuffle_end", Some(process), Some(*task), shuffle_end, &fetched);
        marks.shuffle_end.insert(*task, shuffled);
        let sort_end = row.sort_end_ns.unwrap_or(shuffle_end);
        let merged = Cause::sent(shuffled, Evidence::Thread);
        let sorted = inference.graph.mark("task.sort_end", Some(process), Some(*task), sort_end, &[merged]);
        marks.sort_end.insert(*task, sorted);
        for begin in inference.index.phases.get(&process).into_iter().flatten() {
            let mark = if begin.phase == "reduce" { sorted } else { shuffled };
            let at = begin.at_ns.max(inference.graph.happened(mark));
            inference.threads.reach((process, begin.thread), at, Cause::sent(mark, Evidence::Thread));
        }
    }
}

/// A fetch waits for the news that its maps are done, which the reduce's poll brings, and for its fetcher.
fn fetches(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    job: &JobOf<'_>,
    requests: Option<&Vec<MessageId>>,
    marks: &Marks,
) {
    for request in requests.into_iter().flatten() {
        let message = &inference.joined.message(*request);
        let Some(process) = sender(inference.joined, message) else { continue };
        let Some(exchange) = inference.index.exchange(message) else { continue };
        let poll = inference.timers.of(process, "getMapCompletionEvents");
        for data in exchange.data() {
            let map = inference.joined.message(*data).map;
            let Some(row) = map.and_then(|map| work.task_of(map)).filter(|row| row.job == job.job) else { continue };
            let Some(finish) = marks.finish.get(&row.task) else { continue };
            let news = Cause::sent(*finish, Evidence::Protocol);
            inference.wait(message, poll.map_or(news, |poll| news.carried(poll, Carrier::Response)));
        }
        inference.request(message);
    }
}
