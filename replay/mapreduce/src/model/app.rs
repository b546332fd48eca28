//! A job from its submission to its end.

use std::collections::{BTreeMap, BTreeSet};

use trace::ids::{ProcessId, TaskId};
use trace::rows::{Carrier, Evidence, TaskKind};

use super::attempts::Speculation;
use super::capacity::ContainerId;
use super::plan::Actor;
use super::requests::Pending;
use super::state::{App, Block, Continuation, Model, Task, TimerOwner};
use crate::kernel::{Cause, StepId, TimerPlan, Work};
use crate::sizes::{ALLOCATE, Call, JOB_REPORT, REGISTER, SUBMIT, UNREGISTER};
use crate::world::{CLIENT, NodeId, RESOURCE_MANAGER, node_manager};

const PS_A_MS: u64 = 1_000_000_000;
const MASTER: &str = "org.apache.hadoop.mapreduce.v2.app.MRAppMaster";

impl Model {
    /// All jobs in the order of the file; those that wait for no other are submitted.
    pub(super) fn plan_apps(&mut self) {
        for number in 0..self.file.jobs.len() {
            let job = self.file.jobs[number].clone();
            self.apps.push(App {
                submit: None,
                launch: None,
                finish: None,
                first_task: 0,
                maps: 0,
                reduces: job.reduces,
                input: Vec::new(),
                map_samples: Vec::new(),
                reduce_samples: Vec::new(),
                fetches: BTreeMap::new(),
                share_ends: Vec::new(),
                output: Vec::new(),
                master: None,
                timer: None,
                client_timer: None,
                asked_master: None,
                has_master: false,
                localized: BTreeSet::new(),
                pending: Pending::default(),
                completed: Vec::new(),
                completed_seen: 0,
                reduces_done: Vec::new(),
                speculation: Speculation::default(),
                reduces_asked: 0,
                client_knows: false,
            });
            if let Some(input) = job.input {
                let (blocks, samples) = self.place_input(number, input.0);
                self.submit(number as u32, blocks, samples, None);
            }
        }
    }

    /// The client submits a job, at once or because of `after`.
    fn submit(&mut self, app: u32, input: Vec<Block>, map_samples: Vec<u32>, after: Option<Cause>) {
        let number = app as usize;
        let (maps, reduces) = (input.len() as u32, self.apps[number].reduces);
        let first_task = self.tasks.len() as u32;
        let task = |kind, number, place| Task::new(app, kind, number, (TaskId(place), 0));
        self.tasks.extend((0..maps).map(|number| task(TaskKind::Map, number, first_task + number)));
        self.tasks.extend((0..reduces).map(|number| task(TaskKind::Reduce, number, first_task + maps + number)));
        self.reduces.resize_with(self.tasks.len(), || None);
        let reduce_samples = self.deal_reduces(number);
        let share_ends = self.share_ends(number, &reduce_samples);
        let client = Actor::daemon(CLIENT);
        let delay = Work::Delay(self.file.jobs[number].submit.ps());
        let submit = self.mark("job.submit", client, delay, None, after.as_slice());
        let state = &mut self.apps[number];
        (state.submit, state.input, state.maps, state.first_task) = (Some(submit), input, maps, first_task);
        (state.map_samples, state.reduce_samples, state.share_ends) = (map_samples, reduce_samples, share_ends);
        let cause = Cause::sent(submit, Evidence::Thread);
        let called = self.call((client, RESOURCE_MANAGER), SUBMIT, 0, None, &[cause]);
        let known = Cause::delivered(called.request, Evidence::Span);
        let then = Some(Continuation::Submitted(app));
        self.mark("application.submitted", Actor::daemon(RESOURCE_MANAGER), Work::Delay(0), then, &[known]);
    }

    /// The node has started the container of a job's master because of `started`.
    pub(super) fn start_master(&mut self, app: u32, node: NodeId, started: StepId) {
        let master = self.world.start_process(node, "MRAppMaster", MASTER, None);
        self.apps[app as usize].master = Some(master);
        self.apps[app as usize].localized.insert(node);
        let cause = Cause::delivered(started, Evidence::ThreadStart);
        let start_ps = self.file.cluster.master_start.ps();
        let then = Some(Continuation::Registered(app));
        self.call((Actor::daemon(master), RESOURCE_MANAGER), REGISTER, start_ps, then, &[cause]);
    }

    /// The master begins to beat, and asks for its maps.
    pub(super) fn ask_maps(&mut self, app: u32, registered: StepId) {
        let Some(master) = self.apps[app as usize].master else { return };
        let actor = Actor::daemon(master);
        let cause = Cause::delivered(registered, Evidence::Thread);
        let wanted = self.mark("maps.wanted", actor, Work::Delay(0), None, &[cause]);
        self.apps[app as usize].launch = Some(wanted);
        let pause_ps = self.file.hadoop.am_heartbeat_ms * PS_A_MS;
        let first = Cause::sent(wanted, Evidence::Thread);
        let timer = self.start_timer(
            (master, RESOURCE_MANAGER),
            ALLOCATE,
            pause_ps,
            TimerOwner::App(app),
            Some(first),
            pause_ps,
        );
        self.apps[app as usize].timer = Some(timer);
        let news = Cause::sent(wanted, Evidence::Protocol).by(timer, Carrier::Request);
        let then = Some(Continuation::MapsAsked(app));
        self.mark("maps.asked", Actor::daemon(RESOURCE_MANAGER), Work::Delay(0), then, &[news]);
        let poll_ps = self.file.hadoop.client_poll_ms * PS_A_MS;
        let client = self.start_timer((CLIENT, master), JOB_REPORT, poll_ps, TimerOwner::Nobody, Some(first), poll_ps);
        self.apps[app as usize].client_timer = Some(client);
        self.start_speculator(app);
        self.finish_if_written(app, Some(Cause::sent(wanted, Evidence::Thread)));
    }

    /// A loop of calls; the first leaves `after_ps` after `cause`.
    pub(super) fn start_timer(
        &mut self,
        (process, server): (ProcessId, ProcessId),
        call: Call,
        pause_ps: u64,
        owner: TimerOwner,
        cause: Option<Cause>,
        after_ps: u64,
    ) -> trace::ids::TimerId {
        let call = self.call_sizes.of(call);
        let plan = TimerPlan {
            name: call.name,
            process,
            server,
            connection: self.world.rpc(process, server),
            pause_ps,
            service_ps: call.service_ps,
            request_bytes: call.request,
            response_bytes: call.response,
            hook: (!matches!(owner, TimerOwner::Nobody)).then_some(Continuation::Beat),
        };
        self.owners.push(owner);
        self.kernel.start_timer(plan, cause, after_ps)
    }

    /// The master's beat is answered: what it knows of its maps at this time counts when the answer is there.
    pub(super) fn master_response_leaves(&mut self, app: u32) {
        let app = &mut self.apps[app as usize];
        app.completed_seen = app.completed.len();
    }

    /// The master asks for reduces, as `RMContainerAllocator.scheduleReduces` does after each of its beats: none before the
    /// slow start, all when no map waits for a container any more, and else as many as their share of the memory allows.
    pub(super) fn ramp_up_reduces(&mut self, app: u32, response: StepId) {
        let state = &self.apps[app as usize];
        let (Some(timer), Some(master)) = (state.timer, state.master) else { return };
        let hadoop = &self.file.hadoop;
        let needed = (hadoop.slow_start * f64::from(state.maps)).ceil() as usize;
        let seen = state.completed_seen;
        if state.reduces_asked == state.reduces || seen < needed || !state.pending.is_asked() {
            return;
        }
        let wanted = if state.pending.maps_left() == 0 {
            state.reduces
        } else {
            let done = seen as f64 / f64::from(state.maps.max(1));
            let memory = self.nodes.len() as f64 * hadoop.node_memory_mb as f64;
            let limit = done.min(hadoop.reduce_rampup) * memory;
            ((limit / hadoop.container_mb(hadoop.reduce_memory_mb) as f64) as u32).min(state.reduces)
        };
        let more = wanted.saturating_sub(state.reduces_asked);
        if more == 0 {
            return;
        }
        let last =
            needed.max(1).min(seen).checked_sub(1).and_then(|last| state.completed.get(last)).map(|(_, step)| *step);
        let response = Cause::delivered(response, Evidence::Protocol);
        let news = last.map_or(response, |done| Cause::sent(done, Evidence::Protocol).by(timer, Carrier::Response));
        self.apps[app as usize].reduces_asked += more;
        let ramped = self.mark("reduces.wanted", Actor::daemon(master), Work::Delay(0), None, &[news]);
        let asked = Cause::sent(ramped, Evidence::Protocol).by(timer, Carrier::Request);
        let then = Some(Continuation::ReducesAsked(app, more));
        self.mark("reduces.asked", Actor::daemon(RESOURCE_MANAGER), Work::Delay(0), then, &[asked]);
    }

    /// The master knows that an attempt is done.
    pub(super) fn task_done(&mut self, task: TaskId, done: StepId) {
        if !self.is_first_to_finish(task, done) {
            return;
        }
        let app = self.app_of(task);
        let kind = self.tasks[task.index()].kind;
        let state = &mut self.apps[app as usize];
        if kind == TaskKind::Map {
            state.completed.push((task, done));
            if state.reduces > 0 {
                return;
            }
        } else {
            state.reduces_done.push(done);
        }
        self.finish_if_written(app, None);
    }

    /// A job is done when the last task that writes is, or at once if it has none, and its master has committed the output.
    fn finish_if_written(&mut self, app: u32, registered: Option<Cause>) {
        let state = &self.apps[app as usize];
        let (Some(master), true) = (state.master, state.all_written()) else { return };
        let maps = state.completed.iter().map(|(_, step)| step).filter(|_| state.reduces == 0);
        let done = maps.chain(&state.reduces_done).map(|step| Cause::sent(*step, Evidence::Protocol));
        let causes: Vec<Cause> = registered.into_iter().chain(done).collect();
        let then = Some(Continuation::JobFinished(app));
        let commit = Work::Delay(self.file.cluster.job_commit.ps());
        self.mark("job.finish", Actor::daemon(master), commit, then, &causes);
    }

    /// The master takes its leave, and the client hears of the end with its next question.
    pub(super) fn job_finished(&mut self, app: u32, finish: StepId) {
        let state = &mut self.apps[app as usize];
        state.finish = Some(finish);
        let (Some(master), Some(timer), Some(client)) = (state.master, state.timer, state.client_timer) else { return };
        self.kernel.stop_timer(timer);
        let cause = Cause::sent(finish, Evidence::Thread);
        let left = self.call((Actor::daemon(master), RESOURCE_MANAGER), UNREGISTER, 0, None, &[cause]);
        self.release_unused(app, left.request);
        let news = cause.by(client, Carrier::Response);
        self.mark("client.knows", Actor::daemon(CLIENT), Work::Delay(0), Some(Continuation::ClientKnows(app)), &[news]);
        let container = self.containers.iter().position(|container| container.app == app && container.task.is_none());
        if let Some(container) = container {
            let node = self.containers[container].node;
            let then = Some(Continuation::Exited(ContainerId(container as u32)));
            let cause = Cause::delivered(left.response, Evidence::Thread);
            self.mark("container.exit", Actor::daemon(node_manager(node)), Work::Delay(0), then, &[cause]);
        }
    }

    /// The client submits the jobs that waited for this one.
    pub(super) fn client_knows(&mut self, app: u32, knows: StepId) {
        let state = &mut self.apps[app as usize];
        state.client_knows = true;
        if let Some(timer) = state.client_timer {
            self.kernel.stop_timer(timer);
        }
        let name = self.file.jobs[app as usize].name.clone();
        let next: Vec<u32> = (0u32..)
            .zip(&self.file.jobs)
            .filter(|(_, job)| job.input_of.as_deref() == Some(&name))
            .map(|(number, _)| number)
            .collect();
        for next in next {
            let written = self.apps[app as usize].output.iter();
            let kept = written.filter(|(task, block)| block.bytes > 0 && self.tasks[task.index()].killed.is_none());
            let input: Vec<Block> = kept.map(|(_, block)| block.clone()).collect();
            let samples = self.deal_maps(next as usize, input.len());
            self.submit(next, input, samples, Some(Cause::sent(knows, Evidence::Thread)));
        }
    }
}
