//! The steps of a job in simulated time: what each waits for, which resource it takes, and when it happened.
//!
//! A step becomes an event of the causal graph, and what it waits for its dependencies, with the meaning that `trace::rows`
//! gives them: a replay of the graph over the same network does the same at the same times. The kernel knows no Hadoop: it
//! fires a hook when a step has happened or its bytes have arrived, and whoever owns it adds further steps.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use netsim::time::SimTime;
use trace::ids::{ConnectionId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, Evidence, On};

/// Number of a step, in the order in which steps were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StepId(pub(crate) u32);

/// Number of a message, in the order in which messages were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DraftId(pub(crate) u32);

/// Number of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceId(pub(crate) u32);

/// Stands for no step, link or cause.
const NONE: u32 = u32::MAX;
/// Stands for a time that has not come.
const NEVER: SimTime = SimTime::MAX;
const PS_A_NS: u64 = 1_000;

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Something happens in a process.
    Mark(&'static str),
    /// Bytes of a message are handed to its connection.
    Send { connection: ConnectionId, from_client: bool, bytes: u64, message: DraftId },
}

/// Something that a step waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) on: StepId,
    pub(crate) moment: On,
    /// The timer by whose next beat the news travels.
    pub(crate) by: Option<(TimerId, Carrier)>,
    pub(crate) evidence: Evidence,
}

impl Cause {
    pub(crate) const fn sent(on: StepId, evidence: Evidence) -> Self {
        Self { on, moment: On::Sent, by: None, evidence }
    }

    pub(crate) const fn delivered(on: StepId, evidence: Evidence) -> Self {
        Self { on, moment: On::Delivered, by: None, evidence }
    }

    pub(crate) const fn by(self, timer: TimerId, half: Carrier) -> Self {
        Self { by: Some((timer, half)), ..self }
    }
}

/// How long a step takes once all that it waits for has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// So many picoseconds.
    Delay(u64),
    /// So many picoseconds of a resource, behind those that asked for it before.
    Of(ResourceId, u64),
}

/// When the hook of a step fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fires {
    Never,
    Once(On),
    Twice,
}

/// A step to be added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewStep<H> {
    pub(crate) action: Action,
    pub(crate) process: ProcessId,
    pub(crate) task: Option<TaskId>,
    pub(crate) work: Work,
    pub(crate) hook: Option<(On, H)>,
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<H> {
    pub(crate) action: Action,
    pub(crate) process: ProcessId,
    pub(crate) task: Option<TaskId>,
    pub(crate) beat: Option<(TimerId, u32)>,
    work: Work,
    fires: Fires,
    hook: Option<H>,
    waiting: u32,
    first_waiter: u32,
    /// When the latest of its causes came; of a step without any, when it happened.
    caused: SimTime,
    has_causes: bool,
    pub(crate) happened: SimTime,
    pub(crate) delivered: SimTime,
}

impl<H> Step<H> {
    pub(crate) fn has_happened(&self) -> bool {
        self.happened != NEVER
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.delivered != NEVER
    }

    /// From the latest of its causes to the step, nanoseconds.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.happened.0.saturating_sub(self.caused.0) / PS_A_NS
    }
}

/// What a step waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dependency {
    pub(crate) step: StepId,
    pub(crate) cause: Cause,
}

/// A dependency in the list of those that wait for a moment of a step.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    dependency: u32,
    moment: On,
    next: u32,
    /// Whether the news is there and only its carrier has to arrive.
    is_carried: bool,
}

/// Who takes what is free, the others in the order of their asking.
#[derive(Debug)]
struct Resource {
    free: u32,
    queue: VecDeque<StepId>,
    /// Who has had it for so long, and is not done, goes to the end of the queue; `None` = who has it keeps it until it is done.
    turn_ps: Option<u64>,
}

/// A loop that sends on its own account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerPlan<H> {
    pub(crate) name: &'static str,
    pub(crate) process: ProcessId,
    pub(crate) server: ProcessId,
    pub(crate) connection: ConnectionId,
    pub(crate) pause_ps: u64,
    pub(crate) service_ps: u64,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    /// Fired when a half of a beat is sent and when it has arrived.
    pub(crate) hook: Option<fn(TimerId, Carrier) -> H>,
}

/// A timer and its beats so far.
#[derive(Debug)]
pub(crate) struct Timer<H> {
    pub(crate) plan: TimerPlan<H>,
    stopped: bool,
    /// Its process is gone: not even the request that was planned leaves.
    ended: bool,
    requests: Vec<StepId>,
    responses: Vec<StepId>,
    /// Dependencies whose news waits for the next request, and for the next response.
    waiting: [Vec<u32>; 2],
}

impl<H> Timer<H> {
    /// Requests that were sent.
    pub(crate) fn beats(&self) -> u32 {
        self.requests.len() as u32
    }
}

const fn half_index(half: Carrier) -> usize {
    match half {
        Carrier::Request => 0,
        Carrier::Response => 1,
    }
}

/// What the network has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) connection: ConnectionId,
    pub(crate) from_client: bool,
    pub(crate) bytes: u64,
    pub(crate) message: DraftId,
    pub(crate) step: StepId,
}

/// A hook that fired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired<H> {
    pub(crate) hook: H,
    pub(crate) step: StepId,
    pub(crate) moment: On,
}

#[derive(Debug)]
pub(crate) struct Kernel<H> {
    pub(crate) now: SimTime,
    pub(crate) steps: Vec<Step<H>>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) timers: Vec<Timer<H>>,
    /// Steps in the order in which they happened.
    pub(crate) order: Vec<StepId>,
    waiters: Vec<Waiter>,
    resources: Vec<Resource>,
    queue: BinaryHeap<Reverse<(SimTime, u64, StepId)>>,
    scheduled: u64,
    outgoing: Vec<Outgoing>,
    fired: VecDeque<Fired<H>>,
    drafts: u32,
    /// Hooks that fire at a time, without a step.
    alarms: BTreeSet<Alarm>,
    alarm_hooks: Vec<H>,
    /// Tasks whose processes were killed: their steps happen no more.
    killed: BTreeSet<TaskId>,
    /// Further steps that do not happen.
    withdrawn: BTreeSet<StepId>,
}

/// When a hook fires, and which one.
type Alarm = (SimTime, usize);

impl<H: Copy> Kernel<H> {
    pub(crate) fn new() -> Self {
        Self {
            now: SimTime::ZERO,
            steps: Vec::new(),
            dependencies: Vec::new(),
            timers: Vec::new(),
            order: Vec::new(),
            waiters: Vec::new(),
            resources: Vec::new(),
            queue: BinaryHeap::new(),
            scheduled: 0,
            outgoing: Vec::new(),
            fired: VecDeque::new(),
            drafts: 0,
            alarms: BTreeSet::new(),
            alarm_hooks: Vec::new(),
            killed: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
        }
    }

    pub(crate) fn step(&self, StepId(step): StepId) -> &Step<H> {
        &self.steps[step as usize]
    }

    /// A resource that `servers` steps can have at a time, each until it is done, or for turns of `turn_ps`.
    pub(crate) fn add_resource(&mut self, servers: u32, turn_ps: Option<u64>) -> ResourceId {
        self.resources.push(Resource { free: servers, queue: VecDeque::new(), turn_ps });
        ResourceId(self.resources.len() as u32 - 1)
    }

    /// The number of a message whose bytes will be sent.
    pub(crate) fn plan_message(&mut self) -> DraftId {
        self.drafts += 1;
        DraftId(self.drafts - 1)
    }

    /// Adds a step. It happens when all of `causes` have and its work is done; without causes its work begins now.
    pub(crate) fn add(&mut self, new: NewStep<H>, causes: &[Cause]) -> StepId {
        let fires = new.hook.map_or(Fires::Never, |(moment, _)| Fires::Once(moment));
        self.insert(new, fires, None, causes)
    }

    fn insert(&mut self, new: NewStep<H>, fires: Fires, beat: Option<(TimerId, u32)>, causes: &[Cause]) -> StepId {
        let id = StepId(self.steps.len() as u32);
        self.steps.push(Step {
            action: new.action,
            process: new.process,
            task: new.task,
            beat,
            work: new.work,
            fires,
            hook: new.hook.map(|(_, hook)| hook),
            // One more, so that it is not ready before all its causes are known.
            waiting: causes.len() as u32 + 1,
            first_waiter: NONE,
            caused: if causes.is_empty() { self.now } else { SimTime::ZERO },
            has_causes: !causes.is_empty(),
            happened: NEVER,
            delivered: NEVER,
        });
        for cause in causes {
            let dependency = self.dependencies.len() as u32;
            self.dependencies.push(Dependency { step: id, cause: *cause });
            let on = self.step(cause.on);
            let at = if cause.moment == On::Sent { on.happened } else { on.delivered };
            if at == NEVER {
                self.wait(cause.on, dependency, cause.moment, false);
            } else {
                self.announce(dependency, at);
            }
        }
        self.met(id);
        id
    }

    fn wait(&mut self, StepId(on): StepId, dependency: u32, moment: On, is_carried: bool) {
        let step = &mut self.steps[on as usize];
        let next = std::mem::replace(&mut step.first_waiter, self.waiters.len() as u32);
        self.waiters.push(Waiter { dependency, moment, next, is_carried });
    }

    /// The moment that a dependency waits for came at `at`: it yields, or its news waits for a beat.
    fn announce(&mut self, dependency: u32, at: SimTime) {
        let Some((timer, half)) = self.dependencies[dependency as usize].cause.by else {
            return self.yields(dependency, at);
        };
        match self.carrier(timer, half, at) {
            Some(carrier) => match self.step(carrier).delivered {
                NEVER => self.wait(carrier, dependency, On::Delivered, true),
                delivered => self.yields(dependency, delivered),
            },
            None => self.timers[timer.index()].waiting[half_index(half)].push(dependency),
        }
    }

    /// The first half of a beat that was sent at or after `at`.
    fn carrier(&self, timer: TimerId, half: Carrier, at: SimTime) -> Option<StepId> {
        let timer = &self.timers[timer.index()];
        let beats = if half == Carrier::Request { &timer.requests } else { &timer.responses };
        beats.get(beats.partition_point(|beat| self.step(*beat).happened < at)).copied()
    }

    fn yields(&mut self, dependency: u32, at: SimTime) {
        let id = self.dependencies[dependency as usize].step;
        let step = &mut self.steps[id.0 as usize];
        step.caused = step.caused.max(at);
        self.met(id);
    }

    /// One thing less to wait for.
    fn met(&mut self, id: StepId) {
        let step = &mut self.steps[id.0 as usize];
        step.waiting -= 1;
        if step.waiting > 0 {
            return;
        }
        let work = step.work;
        if self.is_off(id) {
            return;
        }
        let step = &self.steps[id.0 as usize];
        match work {
            Work::Delay(ps) => {
                let at = step.caused.plus_ps(ps);
                self.schedule(id, at);
            }
            Work::Of(number, _) => {
                let resource = &mut self.resources[number.0 as usize];
                if resource.free > 0 {
                    resource.free -= 1;
                    self.serve(id);
                } else {
                    resource.queue.push_back(id);
                }
            }
        }
    }

    /// A step has its resource: until it is done, or for a turn.
    fn serve(&mut self, id: StepId) {
        let Work::Of(resource, ps) = self.step(id).work else { return };
        match self.resources[resource.0 as usize].turn_ps {
            None => self.schedule(id, self.now.plus_ps(ps)),
            Some(turn_ps) => {
                let turn_ps = turn_ps.min(ps);
                self.steps[id.0 as usize].work = Work::Of(resource, ps - turn_ps);
                if turn_ps == ps {
                    self.schedule(id, self.now.plus_ps(ps));
                } else {
                    self.scheduled += 1;
                    self.queue.push(Reverse((self.now.plus_ps(turn_ps), self.scheduled, id)));
                }
            }
        }
    }

    /// What a step has left to do when its turn is over; `None` if it is done, or needs no resource that is had by turns.
    fn left(&self, id: StepId) -> Option<ResourceId> {
        let Work::Of(resource, left_ps) = self.step(id).work else { return None };
        (left_ps > 0 && self.resources[resource.0 as usize].turn_ps.is_some()).then_some(resource)
    }

    /// A step happens at the first whole nanosecond after its cause that is neither before `at` nor past.
    fn schedule(&mut self, id: StepId, at: SimTime) {
        let caused = self.step(id).caused;
        let delay_ps = at.max(self.now).0.saturating_sub(caused.0).div_ceil(PS_A_NS).saturating_mul(PS_A_NS);
        self.scheduled += 1;
        self.queue.push(Reverse((caused.plus_ps(delay_ps), self.scheduled, id)));
    }

    /// When the next step happens, or the next alarm goes off.
    pub(crate) fn next(&self) -> Option<SimTime> {
        let step = self.queue.peek().map(|Reverse((at, ..))| *at);
        let alarm = self.alarms.first().map(|(at, _)| *at);
        step.into_iter().chain(alarm).min()
    }

    /// Fires a hook `after_ps` from now. No step: a trace knows nothing of it.
    pub(crate) fn set_alarm(&mut self, after_ps: u64, hook: H) {
        self.alarms.insert((self.now.plus_ps(after_ps), self.alarm_hooks.len()));
        self.alarm_hooks.push(hook);
    }

    /// How many alarms were set so far.
    pub(crate) const fn alarms_set(&self) -> usize {
        self.alarm_hooks.len()
    }

    /// The process of a task is gone: its steps, and what others do for it, happen no more. A step that has a resource keeps it
    /// until it would have happened.
    pub(crate) fn kill(&mut self, task: TaskId) {
        self.killed.insert(task);
    }

    pub(crate) fn is_killed(&self, task: TaskId) -> bool {
        self.killed.contains(&task)
    }

    /// A step does not happen.
    pub(crate) fn withdraw(&mut self, step: StepId) {
        self.withdrawn.insert(step);
    }

    fn is_off(&self, id: StepId) -> bool {
        let step = self.step(id);
        let is_killed = !self.killed.is_empty() && step.task.is_some_and(|task| self.killed.contains(&task));
        let is_beat_of_ended = || {
            let is_request = matches!(step.action, Action::Send { from_client: true, .. });
            step.beat.is_some_and(|(timer, _)| is_request && self.timers[timer.index()].ended)
        };
        is_killed || is_beat_of_ended() || (!self.withdrawn.is_empty() && self.withdrawn.contains(&id))
    }

    /// Lets the next step happen, or the next alarm go off.
    pub(crate) fn act(&mut self) {
        let step_at = self.queue.peek().map(|Reverse((at, ..))| *at);
        if let Some((at, number)) = self.alarms.first().copied()
            && step_at.is_none_or(|step_at| at < step_at)
        {
            self.alarms.pop_first();
            self.now = at;
            self.fired.push_back(Fired { hook: self.alarm_hooks[number], step: StepId(NONE), moment: On::Sent });
            return;
        }
        let Some(Reverse((at, _, id))) = self.queue.pop() else { return };
        self.now = at;
        if self.is_off(id) {
            if let Work::Of(resource, _) = self.step(id).work {
                self.release(resource);
            }
            return;
        }
        if let Some(resource) = self.left(id) {
            self.resources[resource.0 as usize].queue.push_back(id);
            self.release(resource);
            return;
        }
        self.order.push(id);
        let step = &mut self.steps[id.0 as usize];
        step.happened = at;
        if !step.has_causes {
            step.caused = at;
        }
        let (action, beat, work) = (step.action, step.beat, step.work);
        if let Work::Of(resource, _) = work {
            self.release(resource);
        }
        match action {
            Action::Send { connection, from_client, bytes, message } => {
                self.outgoing.push(Outgoing { connection, from_client, bytes, message, step: id });
                if let Some((timer, _)) = beat {
                    self.beat_leaves(timer, from_client, id);
                }
                self.reach(id, On::Sent);
            }
            Action::Mark(_) => {
                self.steps[id.0 as usize].delivered = at;
                self.reach(id, On::Sent);
                self.reach(id, On::Delivered);
            }
        }
    }

    fn release(&mut self, resource: ResourceId) {
        while let Some(next) = self.resources[resource.0 as usize].queue.pop_front() {
            if self.is_off(next) {
                continue;
            }
            self.serve(next);
            return;
        }
        self.resources[resource.0 as usize].free += 1;
    }

    /// The bytes of a step have arrived.
    pub(crate) fn delivered(&mut self, at: SimTime, id: StepId) {
        self.now = at;
        self.steps[id.0 as usize].delivered = at;
        self.reach(id, On::Delivered);
        if let Some((timer, beat)) = self.step(id).beat {
            self.beat_arrives(timer, beat, id);
        }
    }

    /// A moment of a step has come: its hook fires, and who waits for it is told.
    fn reach(&mut self, id: StepId, moment: On) {
        let step = &mut self.steps[id.0 as usize];
        let fires = step.fires == Fires::Twice || step.fires == Fires::Once(moment);
        if let Some(hook) = step.hook.filter(|_| fires) {
            self.fired.push_back(Fired { hook, step: id, moment });
        }
        let mut ready = Vec::new();
        let (mut kept, mut next) = (NONE, std::mem::replace(&mut step.first_waiter, NONE));
        while next != NONE {
            let waiter = self.waiters[next as usize];
            if waiter.moment == moment {
                ready.push(waiter);
            } else {
                self.waiters[next as usize].next = kept;
                kept = next;
            }
            next = waiter.next;
        }
        self.steps[id.0 as usize].first_waiter = kept;
        // Newest first in the list.
        ready.sort_unstable_by_key(|waiter| waiter.dependency);
        for waiter in ready {
            if waiter.is_carried {
                self.yields(waiter.dependency, self.now);
            } else {
                self.announce(waiter.dependency, self.now);
            }
        }
    }

    /// Takes what the network has to do.
    pub(crate) fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    pub(crate) fn next_fired(&mut self) -> Option<Fired<H>> {
        self.fired.pop_front()
    }

    /// Starts a timer. Its first request leaves `after_ps` after `cause`, or from now on.
    pub(crate) fn start_timer(&mut self, plan: TimerPlan<H>, cause: Option<Cause>, after_ps: u64) -> TimerId {
        let id = TimerId(self.timers.len() as u32);
        self.timers.push(Timer {
            plan,
            stopped: false,
            ended: false,
            requests: Vec::new(),
            responses: Vec::new(),
            waiting: [Vec::new(), Vec::new()],
        });
        self.add_beat(id, Carrier::Request, 0, cause, after_ps);
        id
    }

    /// The timer beats no more once its last response has arrived.
    pub(crate) fn stop_timer(&mut self, timer: TimerId) {
        self.timers[timer.index()].stopped = true;
    }

    /// The timer's process is gone: it sends no further request.
    pub(crate) fn end_timer(&mut self, timer: TimerId) {
        let timer = &mut self.timers[timer.index()];
        (timer.stopped, timer.ended) = (true, true);
    }

    fn add_beat(&mut self, timer: TimerId, half: Carrier, beat: u32, cause: Option<Cause>, after_ps: u64) {
        let plan = self.timers[timer.index()].plan;
        let message = self.plan_message();
        let from_client = half == Carrier::Request;
        let bytes = if from_client { plan.request_bytes } else { plan.response_bytes };
        let new = NewStep {
            action: Action::Send { connection: plan.connection, from_client, bytes, message },
            process: if from_client { plan.process } else { plan.server },
            task: None,
            work: Work::Delay(after_ps),
            hook: plan.hook.map(|hook| (On::Sent, hook(timer, half))),
        };
        let fires = if new.hook.is_some() { Fires::Twice } else { Fires::Never };
        self.insert(new, fires, Some((timer, beat)), cause.as_slice());
    }

    /// Half a beat takes all news that waits for it.
    fn beat_leaves(&mut self, timer: TimerId, is_request: bool, id: StepId) {
        let state = &mut self.timers[timer.index()];
        let half = if is_request { Carrier::Request } else { Carrier::Response };
        if is_request {
            state.requests.push(id);
        } else {
            state.responses.push(id);
        }
        for dependency in std::mem::take(&mut state.waiting[half_index(half)]) {
            self.wait(id, dependency, On::Delivered, true);
        }
    }

    fn beat_arrives(&mut self, timer: TimerId, beat: u32, id: StepId) {
        let Action::Send { from_client, .. } = self.step(id).action else { return };
        let state = &self.timers[timer.index()];
        if from_client {
            let cause = Cause::delivered(id, Evidence::CallId);
            self.add_beat(timer, Carrier::Response, beat, Some(cause), state.plan.service_ps);
        } else if !state.stopped {
            let cause = Cause::delivered(id, Evidence::Timer);
            self.add_beat(timer, Carrier::Request, beat + 1, Some(cause), state.plan.pause_ps);
        }
    }
}
