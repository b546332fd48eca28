//! Speculative execution: a task that is too slow gets a second attempt, the first to finish counts, and the other is killed.
//!
//! Who gets one is decided as by `DefaultSpeculator` with `LegacyTaskRuntimeEstimator` (2.10.2 and 3.4.2): by what attempts report
//! of themselves, and the mean time of those of their kind that have finished.

use netsim::time::SimTime;
use trace::ids::TaskId;
use trace::rows::{Carrier, Evidence, TaskKind};

use super::attempts::{Watched, kind_index};
use super::capacity::ContainerId;
use super::plan::Actor;
use super::running::Running;
use super::state::{Continuation, Model, Task, TimerOwner};
use crate::kernel::{Cause, StepId, Work};
use crate::sizes::{STATUS_UPDATE, STOP_CONTAINERS};
use crate::world::{RESOURCE_MANAGER, node_manager};

const PS_A_MS: u64 = 1_000_000_000;
/// Parts of a map's progress: its computing, and the merge of its spills (`MapTask.run`).
const MAP_PHASE: f64 = 0.667;
const SORT_PHASE: f64 = 0.333;
/// A smaller progress counts as this much (`LegacyTaskRuntimeEstimator.updateAttempt`).
const MIN_PROGRESS: f64 = 0.0001;
/// No task of a kind is too slow before this share of them has finished (`StartEndTimesBase`).
const MIN_COMPLETE_SHARE: f64 = 0.05;

/// What the speculator thinks of a task.
enum Verdict {
    NotRunning,
    HasTwo,
    OnSchedule,
    /// A second attempt would end so much earlier, picoseconds.
    TooSlow(u64),
}

impl Model {
    /// A master begins to look at its tasks.
    pub(super) fn start_speculator(&mut self, app: u32) {
        if [TaskKind::Map, TaskKind::Reduce].iter().any(|kind| self.file.hadoop.speculates(*kind)) {
            self.kernel.set_alarm(self.file.hadoop.retry_after_no_speculate_ms * PS_A_MS, Continuation::Scan(app));
        }
    }

    /// A task begins to report.
    pub(super) fn watch(&mut self, task: TaskId, assignment: StepId) {
        let state = &self.tasks[task.index()];
        let (Some(process), Some(master)) = (state.process, self.master_of(task)) else { return };
        if !self.file.hadoop.speculates(state.kind) {
            return;
        }
        let pause_ps = self.file.hadoop.progress_report_ms * PS_A_MS;
        let after_ps = pause_ps + self.behaviour(task).task_start_ps;
        let cause = Some(Cause::delivered(assignment, Evidence::Thread));
        let owner = TimerOwner::Report(task);
        let timer = self.start_timer((process, master), STATUS_UPDATE, pause_ps, owner, cause, after_ps);
        let (pieces, merges) = (Vec::new(), Vec::new());
        let watched = Watched { timer, pieces, merges, sorted: None, reported: 0.0, estimate_ps: None };
        self.watched.insert(task, watched);
    }

    /// The steps by which the progress of an attempt is known.
    pub(super) fn watch_steps(
        &mut self,
        running: Running,
        pieces: &[StepId],
        merges: &[StepId],
        sorted: Option<StepId>,
    ) {
        let watched = running.actor.task.and_then(|task| self.watched.get_mut(&task));
        if let Some(watched) = watched {
            watched.pieces.extend_from_slice(pieces);
            watched.merges.extend_from_slice(merges);
            watched.sorted = watched.sorted.or(sorted);
        }
    }

    fn unwatch(&mut self, task: TaskId) {
        if let Some(watched) = self.watched.remove(&task) {
            self.kernel.end_timer(watched.timer);
        }
    }

    /// How far an attempt is, as it reports it.
    fn progress_of(&self, task: TaskId) -> f64 {
        let Some(watched) = self.watched.get(&task) else { return 0.0 };
        // They happen one after the other.
        let share = |steps: &[StepId]| {
            let happened = steps.partition_point(|step| self.kernel.step(*step).has_happened());
            if steps.is_empty() { 0.0 } else { happened as f64 / steps.len() as f64 }
        };
        let state = &self.tasks[task.index()];
        if state.kind != TaskKind::Reduce {
            // `MapTask.run`: without reduces the map phase is all.
            if self.apps[state.app as usize].reduces == 0 {
                return share(&watched.pieces);
            }
            return MAP_PHASE * share(&watched.pieces) + SORT_PHASE * share(&watched.merges);
        }
        let maps = f64::from(self.apps[state.app as usize].maps.max(1));
        let copied = match &self.reduces[task.index()] {
            Some(reduce) => reduce.fetched as f64 / maps,
            None => f64::from(u8::from(state.shuffle_end.is_some())),
        };
        (copied + share(watched.sorted.as_slice()) + share(&watched.pieces)) / 3.0
    }

    /// A report leaves, and arrives.
    pub(super) fn report(&mut self, task: TaskId, is_there: bool) {
        let progress = self.progress_of(task);
        let started = self.tasks[task.index()].start.map(|start| self.kernel.step(start).happened);
        let now = self.kernel.now;
        let Some(watched) = self.watched.get_mut(&task) else { return };
        if !is_there {
            watched.reported = progress;
        } else if let Some(started) = started.filter(|started| *started < now) {
            let estimate = now.since_ps(started) as f64 / watched.reported.max(MIN_PROGRESS);
            watched.estimate_ps = Some(estimate as u64);
        }
    }

    /// The speculator looks at all tasks of a job: at most one of each kind gets a second attempt.
    pub(super) fn scan(&mut self, app: u32) {
        if self.apps[app as usize].finish.is_some() {
            return;
        }
        let mut found = false;
        for kind in [TaskKind::Map, TaskKind::Reduce] {
            if self.file.hadoop.speculates(kind)
                && let Some(task) = self.slowest(app, kind)
            {
                self.want_second(app, task);
                found = true;
            }
        }
        let hadoop = &self.file.hadoop;
        let pause_ms = if found { hadoop.retry_after_speculate_ms } else { hadoop.retry_after_no_speculate_ms };
        self.kernel.set_alarm(pause_ms * PS_A_MS, Continuation::Scan(app));
    }

    /// The task of a kind that gains most by a second attempt, if one may be started (`maybeScheduleASpeculation`).
    fn slowest(&self, app: u32, kind: TaskKind) -> Option<TaskId> {
        let state = &self.apps[app as usize];
        let (first, count) = match kind {
            TaskKind::Reduce => (state.first_task + state.maps, state.reduces),
            TaskKind::Map | TaskKind::Other => (state.first_task, state.maps),
        };
        let (finished, took_ps) = state.speculation.finished[kind_index(kind)];
        if finished == 0 || (finished as f64) < MIN_COMPLETE_SHARE * f64::from(count) {
            return None;
        }
        // While one waits for a container, none gets a second one.
        let has_container = |task: TaskId| self.happened(self.tasks[task.index()].start).is_some();
        let tasks = || (first..first + count).map(TaskId);
        let mut seconds = state.speculation.seconds.iter().filter(|(task, _)| self.tasks[task.index()].kind == kind);
        if !tasks().all(has_container) || seconds.any(|(_, second)| !second.is_some_and(has_container)) {
            return None;
        }
        let mean_ps = (took_ps / u128::from(finished)) as u64;
        let (mut running, mut twice) = (0u64, 0u64);
        let mut slowest: Option<(u64, TaskId)> = None;
        for task in tasks() {
            match self.judge(task, mean_ps) {
                Verdict::NotRunning => continue,
                Verdict::OnSchedule => {}
                Verdict::HasTwo => twice += 1,
                Verdict::TooSlow(gain_ps) => {
                    if slowest.is_none_or(|(most_ps, _)| gain_ps > most_ps) {
                        slowest = Some((gain_ps, task));
                    }
                }
            }
            running += 1;
        }
        let hadoop = &self.file.hadoop;
        let of_total = (hadoop.speculative_cap_total * f64::from(count)) as u64;
        let of_running = (hadoop.speculative_cap_running * running as f64) as u64;
        let allowed = hadoop.speculative_minimum.max(of_total).max(of_running);
        slowest.filter(|_| allowed > twice).map(|(_, task)| task)
    }

    /// Whether a task is too slow (`speculationValue`).
    fn judge(&self, task: TaskId, mean_ps: u64) -> Verdict {
        let state = &self.tasks[task.index()];
        if state.is_done {
            return Verdict::NotRunning;
        }
        if self.apps[state.app as usize].speculation.seconds.contains_key(&task) {
            return Verdict::HasTwo;
        }
        let estimate_ps = self.watched.get(&task).and_then(|watched| watched.estimate_ps);
        let (Some(start), Some(estimate_ps)) = (self.happened(state.start), estimate_ps) else {
            return Verdict::OnSchedule;
        };
        let end = start.plus_ps(estimate_ps);
        let end_of_second = self.kernel.now.plus_ps(mean_ps);
        // An attempt that should have ended by now counts as one that is about to.
        if end < self.kernel.now || end_of_second >= end {
            return Verdict::OnSchedule;
        }
        Verdict::TooSlow(end.since_ps(end_of_second))
    }

    fn happened(&self, step: Option<StepId>) -> Option<SimTime> {
        step.map(|step| self.kernel.step(step)).filter(|step| step.has_happened()).map(|step| step.happened)
    }

    /// A master wants a second attempt, and asks for its container with its next beat.
    fn want_second(&mut self, app: u32, task: TaskId) {
        let state = &mut self.apps[app as usize];
        let (Some(master), Some(timer), Some(launch)) = (state.master, state.timer, state.launch) else { return };
        state.speculation.seconds.insert(task, None);
        // The speculator's clock began with the job.
        let since_ps = self.kernel.now.since_ps(self.kernel.step(launch).happened);
        let cause = Cause::sent(launch, Evidence::Timer);
        let wanted = self.mark("attempt.wanted", Actor::daemon(master), Work::Delay(since_ps), None, &[cause]);
        let news = Cause::sent(wanted, Evidence::Protocol).by(timer, Carrier::Request);
        let then = Some(Continuation::SecondAsked(task));
        self.mark("attempt.asked", Actor::daemon(RESOURCE_MANAGER), Work::Delay(0), then, &[news]);
    }

    /// The ResourceManager knows that a task shall have a second attempt.
    pub(super) fn second_is_asked(&mut self, task: TaskId, asked: StepId) {
        let Task { app, kind, number, .. } = self.tasks[task.index()];
        if !self.apps[app as usize].speculation.seconds.contains_key(&task) {
            return;
        }
        let locality = self.file.jobs[app as usize].locality;
        let state = &mut self.apps[app as usize];
        if kind == TaskKind::Reduce {
            state.pending.reduces.push_back((task, asked));
        } else {
            let hosts = state.input[number as usize].split_hosts(locality);
            state.pending.add_map(task, asked, hosts, &self.world);
        }
    }

    /// The attempt of a task that gets a container: its first one, or if that has one already, its second.
    pub(super) fn next_attempt(&mut self, task: TaskId) -> TaskId {
        let first = &self.tasks[task.index()];
        if first.container.is_none() {
            return task;
        }
        let second = TaskId(self.tasks.len() as u32);
        let state = Task::new(first.app, first.kind, first.number, (task, 1));
        self.apps[state.app as usize].speculation.seconds.insert(task, Some(second));
        self.tasks.push(state);
        self.reduces.push(None);
        second
    }

    /// The master knows that an attempt is done: whether it is the first of its task. The other one is killed.
    pub(super) fn is_first_to_finish(&mut self, task: TaskId, done: StepId) -> bool {
        let state = &self.tasks[task.index()];
        if state.killed.is_some() {
            return false;
        }
        let (app, kind, first) = (state.app as usize, state.kind, state.first);
        let started = self.happened(state.start);
        self.tasks[first.index()].is_done = true;
        self.unwatch(task);
        let speculation = &mut self.apps[app].speculation;
        if let Some(started) = started {
            let (count, took_ps) = &mut speculation.finished[kind_index(kind)];
            *count += 1;
            *took_ps += u128::from(self.kernel.now.since_ps(started));
        }
        match speculation.seconds.remove(&first) {
            None => {}
            Some(None) => self.apps[app].pending.withdraw(first, &self.world),
            Some(Some(second)) => self.kill_attempt(if task == first { second } else { first }, done),
        }
        true
    }

    /// A master has an attempt killed.
    fn kill_attempt(&mut self, task: TaskId, done: StepId) {
        let Task { node, container, launched, finish, app, .. } = self.tasks[task.index()];
        let state = &self.apps[app as usize];
        let (Some(master), Some(timer), Some(node), Some(container), Some(launched)) =
            (state.master, state.timer, node, container, launched)
        else {
            return;
        };
        if let Some(finish) = finish {
            self.kernel.withdraw(finish);
        }
        let cause = Cause::sent(done, Evidence::Protocol);
        if self.kernel.step(launched).has_happened() {
            let actor = Actor { process: master, task: Some(task) };
            let killed = self.mark("task.finish", actor, Work::Delay(0), None, &[cause]);
            self.tasks[task.index()].killed = Some(killed);
            let manager = node_manager(node);
            let cause = Cause::sent(killed, Evidence::Thread);
            let called = self.call((Actor::daemon(master), manager), STOP_CONTAINERS, 0, None, &[cause]);
            let cause = Cause::delivered(called.request, Evidence::Span);
            let then = Some(Continuation::Killed(task));
            self.mark("container.killed", Actor::daemon(manager), Work::Delay(0), then, &[cause]);
            return;
        }
        // Nothing runs in its container: it goes back with the next beat.
        self.kernel.withdraw(launched);
        let dropped = self.mark("attempt.dropped", Actor::daemon(master), Work::Delay(0), None, &[cause]);
        self.tasks[task.index()].killed = Some(dropped);
        self.apps[app as usize].speculation.unused.push(container);
        self.release(container, Cause::sent(dropped, Evidence::Protocol).by(timer, Carrier::Request));
    }

    fn release(&mut self, container: ContainerId, cause: Cause) {
        let then = Some(Continuation::Released(container));
        self.mark("container.released", Actor::daemon(RESOURCE_MANAGER), Work::Delay(0), then, &[cause]);
    }

    /// The NodeManager has killed the process of an attempt.
    pub(super) fn attempt_is_killed(&mut self, task: TaskId, step: StepId) {
        self.kernel.kill(task);
        self.unwatch(task);
        if let Some(reduce) = self.reduces[task.index()].take() {
            self.kernel.end_timer(reduce.timer);
        }
        if let Some(container) = self.tasks[task.index()].container {
            self.container_exits(container, step);
        }
    }

    /// A job's master has taken its leave: containers that it did not use are free.
    pub(super) fn release_unused(&mut self, app: u32, left: StepId) {
        for container in std::mem::take(&mut self.apps[app as usize].speculation.unused) {
            self.release(container, Cause::delivered(left, Evidence::Protocol));
        }
    }

    /// The ResourceManager knows that nothing runs in a container.
    pub(super) fn container_is_released(&mut self, container: ContainerId, step: StepId) {
        if self.containers[container.0 as usize].has_ended {
            return;
        }
        self.containers[container.0 as usize].has_ended = true;
        let app = self.containers[container.0 as usize].app;
        self.apps[app as usize].speculation.unused.retain(|unused| *unused != container);
        self.free(container, step);
    }
}
