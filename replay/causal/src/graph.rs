//! The part of a trace's causal graph that belongs to one job, ready to be replayed.

use std::sync::{Arc, OnceLock};

use trace::ids::{EventId, HostId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, ConnectionRow, DependencyRow, EventKind, EventRow, Evidence, JobRow, On, TaskRow, Trace};

use super::check;
use super::error::CausalError;
use super::options::{Causality, Options, scaled_ps};
use super::time::JobTime;
use super::trace_graph::TraceGraph;

/// Marks of work on bytes that goes on while they wait for the network, as the merger names them.
const HIDDEN_WORK: [&str; 4] = ["block.produced", "block.consumed", "block.received", "served"];

/// Loops of a job that pause before they ask first: a task's reporter, and a master's allocator.
const PAUSES_FIRST: [&str; 3] = ["allocate", "ping", "statusUpdate"];

/// When an event was recorded, in relation to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPeriod {
    /// Recorded before the job was submitted: it happened when it was recorded.
    Before,
    /// Recorded during the job: it is replayed.
    During,
    /// Recorded after the job's end: left out.
    After,
}

/// One job of a trace: its events, their dependencies in both directions, and how long each of them thinks.
#[derive(Debug)]
pub struct JobGraph<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// The job.
    pub job: &'t JobRow,
    /// When it was submitted: time 0 of the simulation. Nanoseconds since the epoch.
    pub submit_ns: u64,
    /// When it was recorded to be finished.
    pub finish_ns: u64,
    /// The event that says that it is finished.
    pub finish: EventId,
    /// How the trace is replayed.
    pub options: Options,
    submit: Option<EventId>,
    all: Arc<TraceGraph<'t>>,
    thinking: OnceLock<Thinking>,
}

/// How long the process of each event thinks before it. A job of which nothing is executed needs none of it.
#[derive(Debug)]
struct Thinking {
    delays_ps: Vec<u64>,
    /// The sends before which a connection is opened; empty = none is.
    opens: Vec<bool>,
}

impl<'t> JobGraph<'t> {
    /// Chooses a job of `trace` by its id (`None`: the one that moved most bytes in its shuffle, the last of these) and
    /// prepares its replay.
    ///
    /// # Errors
    /// If the trace has no such job, or no causal graph, or a row refers to one that is not there.
    pub fn new(trace: &'t Trace, job: Option<&str>, options: Options) -> Result<Self, CausalError> {
        Self::of(&Arc::new(TraceGraph::new(trace)?), job, options)
    }

    /// As [`JobGraph::new`], of a trace with many jobs: what does not depend on the job is there already.
    ///
    /// # Errors
    /// As [`JobGraph::new`].
    pub fn of(all: &Arc<TraceGraph<'t>>, job: Option<&str>, options: Options) -> Result<Self, CausalError> {
        let trace = all.trace;
        check::factors(trace, &options)?;
        let job = choose_job(trace, job)?;
        if trace.events.is_empty() {
            return Err(CausalError::NoEvents);
        }
        let submit = all.submission_of(job);
        let finish = all.finish_of(job).ok_or_else(|| CausalError::NoFinish { job: job.id.clone() })?;
        let graph = Self {
            trace,
            job,
            submit_ns: submit.map_or(job.submit_ns, |submit| trace.events[submit.index()].recorded_ns),
            finish_ns: trace.events[finish.index()].recorded_ns,
            finish,
            options,
            submit,
            all: Arc::clone(all),
            thinking: OnceLock::new(),
        };
        if graph.period(finish) != JobPeriod::During {
            let reason = format!("job.finish of {} was recorded before it was submitted", graph.job.id);
            return Err(CausalError::Senseless { table: "events", row: finish.index(), reason });
        }
        if graph.finish_ns - graph.submit_ns > check::MAX_NS {
            let reason = format!("{} would have taken longer than 30 days", graph.job.id);
            return Err(CausalError::Senseless { table: "events", row: finish.index(), reason });
        }
        graph.check_order()?;
        Ok(graph)
    }

    /// When an event was recorded. The submission is before the job; other events at its instant, and at the finish, are during it.
    #[must_use]
    pub fn period(&self, event: EventId) -> JobPeriod {
        let recorded_ns = self.trace.events[event.index()].recorded_ns;
        if recorded_ns < self.submit_ns || self.submit == Some(event) {
            JobPeriod::Before
        } else if recorded_ns > self.finish_ns {
            JobPeriod::After
        } else {
            JobPeriod::During
        }
    }

    /// The events that are replayed.
    pub fn during(&self) -> impl Iterator<Item = &'t EventRow> + '_ {
        self.trace.events.iter().filter(|event| self.period(event.event) == JobPeriod::During)
    }

    /// Numbers of the dependencies of an event.
    #[must_use]
    pub fn causes(&self, event: EventId) -> &[u32] {
        self.all.causes(event)
    }

    /// Numbers of the dependencies on an event.
    #[must_use]
    pub fn waiters(&self, event: EventId) -> &[u32] {
        self.all.waiters(event)
    }

    /// A dependency by its number.
    #[must_use]
    pub fn dependency(&self, number: u32) -> &'t DependencyRow {
        &self.trace.dependencies[number as usize]
    }

    /// An event's row.
    #[must_use]
    pub fn event(&self, event: EventId) -> &'t EventRow {
        &self.trace.events[event.index()]
    }

    /// From the latest of its causes to the event, scaled by the CPU factor, less a handshake that is simulated.
    #[must_use]
    pub fn delay_ps(&self, event: EventId) -> u64 {
        self.thinking().delays_ps[event.index()]
    }

    /// The same as it was recorded: not scaled, but less a handshake that is simulated.
    #[must_use]
    pub fn recorded_delay_ps(&self, event: EventId) -> u64 {
        let row = self.event(event);
        let opened = row.connection.filter(|_| self.opens_connection(event));
        let handshake_ns = opened.and_then(|connection| self.trace.connections[connection.index()].handshake_ns);
        row.delay_ns.saturating_sub(handshake_ns.unwrap_or(0)).saturating_mul(1_000)
    }

    /// The process of a task whose computing an event's delay is; `None` for pauses of timers, waits for containers, and what
    /// daemons, masters and clients do, which mostly is waiting.
    #[must_use]
    pub fn computing(&self, event: EventId) -> Option<ProcessId> {
        let row = self.event(event);
        let process = row.process.filter(|process| self.trace.processes[process.index()].attempt.is_some())?;
        let waits = |number: &u32| self.dependency(*number).evidence == Evidence::Slot;
        (!self.is_beat(row) && !self.causes(event).iter().any(waits)).then_some(process)
    }

    /// Whether this send is the first of its connection, which has to be opened in the simulated network before.
    #[must_use]
    pub fn opens_connection(&self, event: EventId) -> bool {
        self.thinking().opens.get(event.index()).is_some_and(|opens| *opens)
    }

    /// A recorded time, nanoseconds since the epoch, as a time of the job.
    #[must_use]
    pub fn job_time(&self, recorded_ns: u64) -> JobTime {
        JobTime::from_ns(i128::from(recorded_ns) - i128::from(self.submit_ns))
    }

    /// Bytes of the message of which a send is a piece.
    #[must_use]
    pub fn message_bytes(&self, event: &EventRow) -> u64 {
        event.message.map_or(event.bytes, |message| self.trace.messages[message.index()].bytes)
    }

    /// When it was recorded what a dependency waits for, nanoseconds since the epoch.
    #[must_use]
    pub fn recorded_news_ns(&self, dependency: &DependencyRow) -> u64 {
        let on = self.event(dependency.on_event);
        if dependency.on == On::Sent { on.recorded_ns } else { on.recorded_delivered_ns }
    }

    /// Which half of a beat a send of a timer is: requests go from the client.
    #[must_use]
    pub fn half_of_beat(event: &EventRow) -> Carrier {
        if event.from_client { Carrier::Request } else { Carrier::Response }
    }

    /// Source and destination of a send.
    #[must_use]
    pub fn ends(&self, event: &EventRow) -> Option<(HostId, HostId)> {
        let connection = &self.trace.connections[event.connection?.index()];
        Some(if event.from_client {
            (connection.client_host, connection.server_host)
        } else {
            (connection.server_host, connection.client_host)
        })
    }

    /// The attempts of this job.
    pub fn tasks(&self) -> impl Iterator<Item = &'t TaskRow> + '_ {
        self.trace.tasks.iter().filter(|task| task.job == self.job.job)
    }

    /// Whether a mark tells about one of this job's successful attempts, so that the replay has to wait for it.
    #[must_use]
    pub fn is_wanted_mark(&self, event: &EventRow) -> bool {
        event.kind == EventKind::Mark
            && event.task.is_some_and(|TaskId(task)| {
                let task = &self.trace.tasks[task as usize];
                task.job == self.job.job && task.succeeded
            })
    }

    fn scaled_delay_ps(&self, event: &EventRow) -> u64 {
        if !self.options.production && is_hidden_work(event) {
            return 0;
        }
        self.scaled_ps(event, event.delay_ns.saturating_mul(1_000))
    }

    /// A time of an event's thinking, scaled; the pauses of timers are no thinking.
    fn scaled_ps(&self, event: &EventRow, ps: u64) -> u64 {
        if self.is_beat(event) { ps } else { scaled_ps(ps, self.factor(event) * self.chance(event)) }
    }

    /// What chance makes of an event's thinking; exactly 1 where there is none.
    fn chance(&self, event: &EventRow) -> f64 {
        let jitter = self.options.jitter;
        if jitter.share > 0.0 { jitter.factor(event.event.0) } else { 1.0 }
    }

    /// Whether an event is the request of a beat, which leaves after a pause. The first of a loop that asks at once leaves when its
    /// process has got there.
    #[must_use]
    pub fn is_beat(&self, event: &EventRow) -> bool {
        let after_pause = |number: &u32| self.dependency(*number).evidence == Evidence::Timer;
        let asks_at_once = |timer: TimerId| {
            event.beat == Some(0) && !PAUSES_FIRST.contains(&self.trace.timers[timer.index()].name.as_str())
        };
        let is_request = Self::half_of_beat(event) == Carrier::Request;
        event.timer.is_some_and(|timer| is_request && !asks_at_once(timer))
            || self.causes(event.event).iter().any(after_pause)
    }

    /// The CPU factor of an event's thinking.
    fn factor(&self, event: &EventRow) -> f64 {
        let by_kind = &self.options.cpu.by_kind;
        let of_task = event.task.and_then(|task| by_kind.get(self.trace.tasks[task.index()].kind.as_str()));
        let of_role = || event.process.and_then(|process| by_kind.get(&self.trace.processes[process.index()].role));
        of_task.or_else(of_role).copied().unwrap_or(self.options.cpu.all)
    }

    /// The CPU factor of the process at the server's end of a connection.
    #[must_use]
    pub fn server_factor(&self, connection: &ConnectionRow) -> f64 {
        let role = connection.server_process.map(|process| &self.trace.processes[process.index()].role);
        role.and_then(|role| self.options.cpu.by_kind.get(role)).copied().unwrap_or(self.options.cpu.all)
    }

    #[inline]
    fn thinking(&self) -> &Thinking {
        self.thinking.get_or_init(|| {
            let delays_ps = self.trace.events.iter().map(|event| self.scaled_delay_ps(event)).collect();
            let mut thinking = Thinking { delays_ps, opens: Vec::new() };
            if self.options.handshakes && self.options.causality == Causality::Trace {
                self.find_handshakes(&mut thinking);
            }
            thinking
        })
    }

    /// Finds the sends before which a connection is opened, and takes the recorded handshake out of their delay.
    ///
    /// A connection whose first bytes came sooner after their cause than its handshake took was opened ahead of the
    /// need: nobody waited for it.
    fn find_handshakes(&self, thinking: &mut Thinking) {
        thinking.opens = vec![false; self.trace.events.len()];
        let mut first: Vec<Option<EventId>> = vec![None; self.trace.connections.len()];
        for event in &self.trace.events {
            let (EventKind::Send, Some(connection)) = (event.kind, event.connection) else { continue };
            let known = &mut first[connection.index()];
            if known.is_none_or(|known| event.recorded_ns < self.trace.events[known.index()].recorded_ns) {
                *known = Some(event.event);
            }
        }
        for (connection, first) in self.trace.connections.iter().zip(first) {
            let (Some(first), Some(handshake_ns)) = (first, connection.handshake_ns) else { continue };
            let in_time = connection.syn_seen && connection.first_ns >= self.submit_ns && !connection.loopback;
            let event = &self.trace.events[first.index()];
            let waited = event.from_client && event.delay_ns >= handshake_ns && !self.causes(first).is_empty();
            if in_time && waited && self.period(first) == JobPeriod::During {
                thinking.opens[first.index()] = true;
                let thinking_ps = (event.delay_ns - handshake_ns).saturating_mul(1_000);
                thinking.delays_ps[first.index()] = self.scaled_ps(event, thinking_ps);
            }
        }
    }

    /// Refuses dependencies on what was recorded after the job, which the replay will never see.
    fn check_order(&self) -> Result<(), CausalError> {
        for row in self.all.on_later_events() {
            let dependency = &self.trace.dependencies[row];
            if self.period(dependency.event) == JobPeriod::During
                && self.period(dependency.on_event) == JobPeriod::After
            {
                let reason = format!(
                    "event {} waits for event {}, which was recorded later, after the end of {}",
                    dependency.event, dependency.on_event, self.job.id
                );
                return Err(CausalError::Senseless { table: "dependencies", row, reason });
            }
        }
        Ok(())
    }
}

/// Whether an event is the end of work on bytes that goes on while they wait for the network.
#[must_use]
pub fn is_hidden_work(event: &EventRow) -> bool {
    event.kind == EventKind::Mark && HIDDEN_WORK.contains(&event.name.as_str())
}

/// The job that is asked for, or the one with the largest shuffle.
fn choose_job<'t>(trace: &'t Trace, wanted: Option<&str>) -> Result<&'t JobRow, CausalError> {
    let largest = || trace.jobs.iter().max_by_key(|job| (job.succeeded, job.shuffle_bytes, job.submit_ns));
    match wanted {
        None => largest().ok_or(CausalError::NoJob),
        Some(_) if trace.jobs.is_empty() => Err(CausalError::NoJob),
        Some(id) => trace.jobs.iter().find(|job| job.id == id).ok_or_else(|| CausalError::UnknownJob {
            wanted: id.to_owned(),
            known: trace.jobs.iter().map(|job| format!("{} ({})", job.id, job.name)).collect::<Vec<_>>().join(", "),
        }),
    }
}
