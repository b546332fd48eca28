//! What is known of MapReduce 1 (read in the sources of Hadoop 1.2): how a job comes to its slots, and its tasks to their
//! news.
//!
//! All goes by the heartbeats of TaskTrackers. A heartbeat tells the JobTracker which attempts have ended and how many
//! slots are free, and its response brings attempts to launch. A job's setup task runs first, on any tracker; maps are
//! launched when it has ended, reduces when enough maps have (`mapred.reduce.slowstart.completed.maps`), and the cleanup
//! task when all have; with its end the job is finished. A slot is free again when the attempt's JVM has ended. Trackers
//! with reduces ask the JobTracker for completed maps, and reduces ask their tracker.

use trace::ids::{MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, Evidence, TaskKind, TaskRow};

use super::clients::{self, LastPolls};
use super::draft::{Cause, Draft};
use super::index::{role, sender};
use super::rules::CauseInference;
use super::slots::{Container, Slots};
use super::tasks::{JobOf, Work};
use super::yarn::{Marks, deliveries, enough_maps, in_time, last_call, map_finishes, phases, submit};
use crate::history::{Histories, SLOW_START_1};
use crate::maps::HashMap;

/// Share of completed maps at which reduces are launched, where the configuration does not say (mapred-default.xml).
const DEFAULT_SLOW_START: f64 = 0.05;
/// Times of the history are whole milliseconds, cut off.
const MILLISECOND_NS: u64 = 1_000_000;

/// A TaskTracker and its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tracker {
    process: ProcessId,
    heartbeat: TimerId,
}

/// Whether a job is one of MapReduce 1.
pub fn is_of(inference: &CauseInference<'_>, job: &JobOf<'_>) -> bool {
    job.master.is_some_and(|master| role(inference.joined, Some(master)) == "JobTracker")
}

/// Tells the causes of everything that the JobTracker decides, and sets the marks of jobs and tasks.
pub fn infer(inference: &mut CauseInference<'_>, work: &Work<'_>, histories: &Histories) -> Marks {
    let mut marks = Marks::default();
    for job in &work.of {
        finish_tasks(inference, work, job, &mut marks);
    }
    let slots = end_attempts(inference, work, &marks);
    let requests = work.shuffle_requests(inference.joined, inference.index);
    let submissions = deliveries(inference, "submitJob");
    for job in &work.of {
        let submit = submit(inference, work, job, &submissions);
        start_tasks(inference, work, job, histories, submit, &slots, &marks);
        phases(inference, work, job, &mut marks);
        fetches(inference, work, job, requests.get(&job.job), &marks);
    }
    clients::follow(inference);
    marks
}

/// Marks of jobs' ends: the JobTracker learns of the last attempt's end with a heartbeat.
pub fn finish_jobs(inference: &mut CauseInference<'_>, work: &Work<'_>, marks: &mut Marks) {
    let polls = LastPolls::find(inference);
    for job in &work.of {
        let row = &work.jobs[job.job.index()];
        if row.finish_ns == 0 {
            continue;
        }
        let at = row.finish_ns + MILLISECOND_NS;
        let mut causes = Vec::new();
        for (task, _) in &job.attempts {
            let Some(finish) = marks.finish.get(task).copied() else { continue };
            if inference.graph.happened(finish) <= at {
                let news = reported(inference, finish, tracker_of(inference, &work.tasks[task.index()]));
                causes.push(in_time(inference, news, at));
            }
        }
        let mark = inference.graph.mark("job.finish", job.master, None, row.finish_ns, &causes);
        marks.job_finish.push(mark);
        polls.tell(inference, mark);
    }
}

/// The TaskTracker of an attempt's host.
fn tracker_of(inference: &CauseInference<'_>, task: &TaskRow) -> Option<Tracker> {
    let trackers = inference.index.trackers.iter().map(|tracker| &inference.joined.processes[tracker.index()]);
    let here = trackers.filter(|process| Some(process.host) == task.host);
    let running = here.filter(|process| process.first_seen_ns <= task.start_ns + MILLISECOND_NS);
    let process = running.max_by_key(|process| process.first_seen_ns)?.process;
    Some(Tracker { process, heartbeat: inference.timers.of(process, "heartbeat")? })
}

/// News of a tracker, as the JobTracker gets it.
fn reported(inference: &CauseInference<'_>, news: Draft, tracker: Option<Tracker>) -> Cause {
    let cause = Cause::sent(news, Evidence::Protocol);
    let carried = tracker.map(|tracker| cause.carried(tracker.heartbeat, Carrier::Request));
    carried.filter(|carried| inference.graph.yielded(*carried).is_some()).unwrap_or(cause)
}

/// `task.finish`: the tracker has got the attempt's `done`.
fn finish_tasks(inference: &mut CauseInference<'_>, work: &Work<'_>, job: &JobOf<'_>, marks: &mut Marks) {
    for (task, _) in &job.attempts {
        let row = &work.tasks[task.index()];
        let tracker = tracker_of(inference, row).map(|tracker| tracker.process);
        let done = row.process.and_then(|process| last_call(inference, process, "done", row.finish_ns + 1_000_000_000));
        let mut causes = Vec::new();
        if let Some(done) = done {
            causes.push(Cause::delivered(inference.pieces.last(done.request), Evidence::Protocol));
        } else if let Some(cause) = tracker.and_then(|tracker| inference.heuristic(tracker, row.finish_ns)) {
            causes.push(cause);
        }
        let mark = inference.graph.mark("task.finish", tracker, Some(*task), row.finish_ns, &causes);
        marks.finish.insert(*task, mark);
    }
}

/// Marks "container.end": an attempt's JVM has ended and its slot is free. Slots of reduces (true) and those of maps.
fn end_attempts(inference: &mut CauseInference<'_>, work: &Work<'_>, marks: &Marks) -> HashMap<bool, Slots> {
    let mut containers: HashMap<bool, Vec<Container>> = HashMap::default();
    for task in &work.tasks {
        let Some(host) = task.host else { continue };
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
        let end = inference.graph.happened(mark);
        let of_reduces = task.kind == TaskKind::Reduce;
        containers.entry(of_reduces).or_default().push(Container { host, begin: task.start_ns, end, mark });
    }
    containers.into_iter().map(|(of_reduces, containers)| (of_reduces, Slots::of(&containers))).collect()
}

/// What attempts of one kind wait for, apart from a slot: marks of tasks that have to be finished.
struct Order {
    setup: Vec<TaskId>,
    enough_maps: Option<Draft>,
    all: Vec<TaskId>,
}

impl Order {
    fn new(
        inference: &CauseInference<'_>,
        work: &Work<'_>,
        job: &JobOf<'_>,
        histories: &Histories,
        marks: &Marks,
    ) -> Self {
        let rows = || job.attempts.iter().map(|(task, _)| &work.tasks[task.index()]).filter(|row| row.succeeded);
        let worked = || rows().filter(|row| row.kind != TaskKind::Other);
        let first = worked().map(|row| row.start_ns).min().unwrap_or(u64::MAX);
        let setup = rows().filter(|row| row.kind == TaskKind::Other && row.start_ns < first);
        let share = histories
            .setting(&job.history.id, SLOW_START_1)
            .and_then(|value| value.parse::<f64>().ok())
            .unwrap_or(DEFAULT_SLOW_START);
        let finished = map_finishes(inference, job, marks, work);
        let enough = enough_maps(share, finished.len()).checked_sub(1).and_then(|last| finished.get(last)).copied();
        Self {
            setup: setup.map(|row| row.task).collect(),
            enough_maps: enough,
            all: worked().map(|row| row.task).collect(),
        }
    }

    /// Marks of the ends that an attempt waits for, each with the task's row.
    fn before<'w>(&self, work: &'w Work<'_>, marks: &Marks, row: &TaskRow) -> Vec<(Draft, &'w TaskRow)> {
        let ends = |tasks: &[TaskId]| -> Vec<(Draft, &'w TaskRow)> {
            tasks.iter().filter_map(|task| Some((*marks.finish.get(task)?, &work.tasks[task.index()]))).collect()
        };
        match row.kind {
            TaskKind::Other if self.setup.contains(&row.task) => Vec::new(),
            TaskKind::Other => ends(&self.all),
            TaskKind::Reduce => {
                let mut enough = ends(&self.all);
                enough.retain(|(finish, _)| Some(*finish) == self.enough_maps);
                if enough.is_empty() { ends(&self.setup) } else { enough }
            }
            TaskKind::Map => ends(&self.setup),
        }
    }
}

/// Attempts: assigned and launched with a heartbeat of their tracker, run in a JVM of their own.
fn start_tasks(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    job: &JobOf<'_>,
    histories: &Histories,
    submit: Draft,
    slots: &HashMap<bool, Slots>,
    marks: &Marks,
) {
    let order = Order::new(inference, work, job, histories, marks);
    // What the JobTracker knows of other trackers' attempts.
    let mut known: HashMap<Draft, Draft> = HashMap::default();
    let mut attempts: Vec<TaskId> = job.attempts.iter().map(|(task, _)| *task).collect();
    attempts.sort_by_key(|task| (work.tasks[task.index()].start_ns, *task));
    for task in attempts {
        let row = &work.tasks[task.index()];
        let by = row.start_ns + MILLISECOND_NS;
        let Some((tracker, at)) =
            tracker_of(inference, row).and_then(|tracker| Some((tracker, asked_at(inference, tracker, by)?)))
        else {
            let mark = inference.graph.mark("task.start", job.master, Some(task), row.start_ns, &[]);
            if let Some(process) = row.process {
                inference.threads.set_origin(process, Cause::sent(mark, Evidence::Protocol));
            }
            continue;
        };
        let mut causes = Vec::new();
        let submitted = Cause::sent(submit, Evidence::Protocol).carried(tracker.heartbeat, Carrier::Request);
        causes.push(in_time(inference, submitted, at));
        for (finish, finished) in order.before(work, marks, row) {
            if inference.graph.happened(finish) > at {
                continue;
            }
            let other = tracker_of(inference, finished);
            let news = if other == Some(tracker) {
                reported(inference, finish, other)
            } else {
                let learnt = match known.get(&finish) {
                    Some(learnt) => *learnt,
                    None => {
                        let news = reported(inference, finish, other);
                        let learnt = inference.graph.mark("task.known", job.master, Some(finished.task), 0, &[news]);
                        known.insert(finish, learnt);
                        learnt
                    }
                };
                Cause::sent(learnt, Evidence::Protocol).carried(tracker.heartbeat, Carrier::Request)
            };
            causes.push(in_time(inference, news, at));
        }
        let since = causes.iter().filter_map(|cause| inference.graph.yielded(*cause)).max().unwrap_or(0);
        let alike = slots.get(&(row.kind == TaskKind::Reduce));
        let begun = inference.graph.happened(submit);
        if let Some(freed) = row.host.and_then(|host| alike?.freed(host, begun, at)).filter(|_| since <= at) {
            let freed = Cause::sent(freed, Evidence::Slot).carried(tracker.heartbeat, Carrier::Request);
            causes.push(in_time(inference, freed, at));
        }
        let assigned = inference.graph.mark("container.assigned", job.master, Some(task), at, &causes);
        let launched = Cause::sent(assigned, Evidence::Protocol).carried(tracker.heartbeat, Carrier::Response);
        inference.graph.mark("task.start", Some(tracker.process), Some(task), row.start_ns, &[launched]);
        if let Some(process) = row.process {
            start_child(inference, process, tracker, launched, task);
        }
    }
}

/// When the beat whose response launched something until `by` had reached the JobTracker.
fn asked_at(inference: &CauseInference<'_>, tracker: Tracker, by: u64) -> Option<u64> {
    let beats = inference.graph.beats.of(tracker.heartbeat);
    let last = beats.partition_point(|beat| inference.graph.arrived(beat.response) <= by).checked_sub(1)?;
    Some(inference.graph.arrived(beats.get(last)?.request))
}

/// Mark "process.start": an attempt's JVM begins, after its launch was told and its files were fetched.
fn start_child(
    inference: &mut CauseInference<'_>,
    process: ProcessId,
    tracker: Tracker,
    launched: Cause,
    task: TaskId,
) {
    let row = &inference.joined.processes[process.index()];
    let at = inference.index.first_sent.get(&process).map_or(row.first_seen_ns, |sent| row.first_seen_ns.min(*sent));
    let mut causes = vec![launched];
    if let Some(heard) = inference.graph.yielded(launched) {
        let got = inference.threads.received_between(tracker.process, heard, at);
        let fetched = got.rev().find(|moment| !inference.graph.is_from_client(moment.cause.event));
        causes.extend(fetched.map(|moment| Cause { evidence: Evidence::Protocol, ..moment.cause }));
    }
    causes.retain(|cause| inference.graph.yielded(*cause).is_some_and(|yielded| yielded <= at));
    let mark = inference.graph.mark("process.start", Some(process), Some(task), at, &causes);
    inference.threads.set_origin(process, Cause::sent(mark, Evidence::Protocol));
}

/// A fetch waits for the news that its map is done, which comes to the JobTracker with a heartbeat, from there to the
/// reduce's tracker, and from there to the reduce, by their polls.
fn fetches(
    inference: &mut CauseInference<'_>,
    work: &Work<'_>,
    job: &JobOf<'_>,
    requests: Option<&Vec<MessageId>>,
    marks: &Marks,
) {
    let mut known: HashMap<Draft, Draft> = HashMap::default();
    let mut passed_on: HashMap<(Draft, ProcessId), Draft> = HashMap::default();
    for request in requests.into_iter().flatten() {
        let message = &inference.joined.message(*request);
        let Some(process) = sender(inference.joined, message) else { continue };
        let Some(exchange) = inference.index.exchange(message) else { continue };
        let joined = inference.joined;
        for map in exchange.data().iter().filter_map(|data| joined.message(*data).map) {
            let Some(row) = work.task_of(map).filter(|row| row.job == job.job) else { continue };
            let Some(finish) = marks.finish.get(&row.task).copied() else { continue };
            let learnt = match known.get(&finish) {
                Some(learnt) => *learnt,
                None => {
                    let news = reported(inference, finish, tracker_of(inference, row));
                    let learnt = inference.graph.mark("map.known", job.master, Some(row.task), 0, &[news]);
                    known.insert(finish, learnt);
                    learnt
                }
            };
            let mut news = Cause::sent(learnt, Evidence::Protocol);
            if let Some(tracker) = tracker_beside(inference, process)
                && let Some(asks) = inference.timers.of(tracker, "getTaskCompletionEvents")
            {
                let carried = news.carried(asks, Carrier::Response);
                if inference.graph.yielded(carried).is_some_and(|at| at <= message.sent_ns) {
                    let heard = *passed_on.entry((finish, tracker)).or_insert_with(|| {
                        inference.graph.mark("map.told", Some(tracker), Some(row.task), 0, &[carried])
                    });
                    news = Cause::sent(heard, Evidence::Protocol);
                }
            }
            let poll = inference.timers.of(process, "getMapCompletionEvents");
            inference.wait(message, poll.map_or(news, |poll| news.carried(poll, Carrier::Response)));
        }
        inference.request(message);
    }
}

/// The TaskTracker of the host of a process.
fn tracker_beside(inference: &CauseInference<'_>, process: ProcessId) -> Option<ProcessId> {
    let processes = &inference.joined.processes;
    let own = &processes[process.index()];
    let trackers = inference.index.trackers.iter().map(|tracker| &processes[tracker.index()]);
    let beside = trackers.filter(|other| other.host == own.host);
    let before = beside.filter(|other| other.first_seen_ns <= own.first_seen_ns);
    before.max_by_key(|other| other.first_seen_ns).map(|other| other.process)
}
