//! The execution of a job: a state machine that says what is sent when, and is told when it has arrived. It has no network
//! of its own; a driver moves it and a [`Transport`] on in time, the earlier of the two first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace::ids::{ConnectionId, EventId, TimerId};
use trace::rows::{Carrier, EventKind, On};

use super::cores::Computing;
use super::error::CausalError;
use super::graph::{JobGraph, JobPeriod};
use super::halt;
use super::heartbeats::{HeartbeatTimers, NextHeartbeat};
use super::options::Causality;
use super::outcome::{CarrierId, EventOutcome, Outcome, SyntheticHeartbeat};
use super::time::JobTime;
use super::transport::{Chunk, Sent, Token, Transport};

/// An execution in which nothing real has happened for so long has come to a halt, whatever still beats: one day.
const PATIENCE_PS: u64 = 86_400 * 1_000_000_000_000;

/// How far an execution has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Time of the job.
    pub now: JobTime,
    /// When the job ended in the recording.
    pub recorded: JobTime,
    /// Events of the causal graph that have happened.
    pub causal_events: u64,
}

/// What the execution does at a time of its own choice. The order of the variants decides ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// A send from before the job arrives, as recorded.
    ArriveFromBefore(EventId),
    /// An event happens.
    Happen(EventId),
    /// The request of a beat that goes on leaves.
    Request(TimerId),
    /// Its response leaves.
    Response(TimerId),
}

/// A connection that is used.
#[derive(Clone, Debug, Default)]
struct ConnectionState {
    /// Sends that wait until it is open; `None` = it is open or nobody opens it.
    opening: Option<Vec<EventId>>,
}

/// One job under way.
///
/// Until [`Execution::is_over`], a driver tells it what has been [delivered](Execution::delivered) and lets it
/// [act](Execution::act) at [its own times](Execution::next_action); of one instant, deliveries first.
#[derive(Debug)]
pub struct Execution<'g, 't> {
    graph: &'g JobGraph<'t>,
    now: JobTime,
    queue: BinaryHeap<Reverse<(JobTime, Action)>>,
    events: Vec<EventOutcome>,
    waiting: Vec<u32>,
    yielded: Vec<bool>,
    connections: Vec<Option<ConnectionState>>,
    heartbeats: HeartbeatTimers,
    /// What tasks compute, where they compete for processors.
    computing: Option<Computing>,
    /// Real actions in the queue and real sends under way: without any, and without news that will surely arrive,
    /// nothing can happen any more.
    live: u64,
    /// Sends of the job that are under way.
    in_flight: u64,
    last_real: JobTime,
    wanted_marks: u32,
    finished: bool,
    causal_events: u64,
    bytes: u64,
}

impl<'g, 't> Execution<'g, 't> {
    /// Sets up the connections of a job, lets everything before it have happened, and schedules what waits for nothing else.
    pub fn new(graph: &'g JobGraph<'t>, transport: &mut impl Transport) -> Self {
        let trace = graph.trace;
        let waiting = trace.events.iter().map(|event| count(graph.causes(event.event).len())).collect();
        let marks = graph.during().filter(|event| graph.is_wanted_mark(event)).count();
        let mut execution = Self {
            graph,
            now: JobTime::SUBMISSION,
            queue: BinaryHeap::new(),
            events: vec![EventOutcome::NOTHING; trace.events.len()],
            waiting,
            yielded: vec![false; trace.dependencies.len()],
            connections: connect(graph, transport),
            heartbeats: HeartbeatTimers::new(graph),
            computing: Computing::new(graph),
            live: 0,
            in_flight: 0,
            last_real: JobTime::SUBMISSION,
            wanted_marks: count(marks),
            finished: false,
            causal_events: 0,
            bytes: 0,
        };
        execution.begin();
        execution
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let recorded = self.graph.job_time(self.graph.finish_ns);
        Progress { now: self.now, recorded, causal_events: self.causal_events }
    }

    /// The time of the last thing that happened.
    #[must_use]
    pub const fn now(&self) -> JobTime {
        self.now
    }

    /// Sends that have not arrived, those of beats that go on apart.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The job is done, and so are its tasks, as far as they can be.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.finished && (self.wanted_marks == 0 || !self.can_go_on())
    }

    /// It is done, or has come to a halt.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_done() || !self.can_go_on()
    }

    fn can_go_on(&self) -> bool {
        self.live + self.heartbeats.certain_arrivals > 0 && self.now.since_ps(self.last_real) <= PATIENCE_PS
    }

    /// When it next does something of its own accord.
    #[must_use]
    pub fn next_action(&self) -> Option<JobTime> {
        let computed = self.computing.as_ref().and_then(Computing::next);
        let queued = self.queue.peek().map(|Reverse((at, _))| *at);
        computed.into_iter().chain(queued).min()
    }

    /// Does what is next, at its time.
    pub fn act(&mut self, transport: &mut impl Transport) {
        let Some(at) = self.next_action() else { return };
        for event in self.computing.as_mut().map(|computing| computing.done(at)).unwrap_or_default() {
            self.events[event.index()].ready = at;
            self.queue.push(Reverse((at, Action::Happen(event))));
        }
        let Some(Reverse((at, action))) = self.queue.pop() else { return };
        self.now = at;
        self.perform(action, transport);
    }

    /// The last byte of a chunk has arrived.
    pub fn delivered(&mut self, at: JobTime, token: Token, transport: &mut impl Transport) {
        self.now = at;
        match Sent::of(token) {
            Sent::Event(event) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.real_step_done();
                self.arrive(event);
            }
            Sent::Synthetic(number) => self.arrive_synthetic(number),
            Sent::Syn(connection) => {
                transport.send(at, empty(connection, false, Sent::SynAck(connection)));
            }
            Sent::SynAck(connection) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.real_step_done();
                let state = self.connections[connection.index()].as_mut();
                let waiting = state.and_then(|state| state.opening.take()).unwrap_or_default();
                for event in waiting {
                    self.happen(event, transport);
                }
            }
        }
    }

    /// Why nothing can happen any more, though the job is not done.
    #[must_use]
    pub fn halt(&self) -> CausalError {
        let diagnosis = halt::diagnose(self.graph, &self.events, &self.yielded, &self.heartbeats);
        CausalError::Halt { at: self.now.to_string(), diagnosis }
    }

    /// Lets everything before the job have happened, and schedules what waits for nothing else.
    fn begin(&mut self) {
        let recorded = self.graph.options.causality == Causality::Recorded;
        let mut from_before = Vec::new();
        for event in &self.graph.trace.events {
            if self.graph.period(event.event) != JobPeriod::Before {
                continue;
            }
            let sent = self.graph.job_time(event.recorded_ns);
            let delivered = self.graph.job_time(event.recorded_delivered_ns);
            let outcome = &mut self.events[event.event.index()];
            outcome.happened = sent;
            outcome.caused = sent;
            outcome.ready = sent;
            if delivered <= JobTime::SUBMISSION {
                outcome.delivered = delivered;
            } else {
                self.schedule(delivered, Action::ArriveFromBefore(event.event));
            }
            from_before.push(event.event);
        }
        if !recorded {
            for event in from_before {
                let outcome = self.events[event.index()];
                self.tell_waiters(event, On::Sent, outcome.happened);
                if outcome.delivered != JobTime::NEVER {
                    self.tell_waiters(event, On::Delivered, outcome.delivered);
                }
            }
        }
        for event in self.graph.during() {
            if recorded || self.graph.causes(event.event).is_empty() {
                self.make_ready(event.event);
            }
        }
        if !recorded {
            for (timer, first) in self.heartbeats.start_silent(self.graph) {
                self.schedule(first, Action::Request(timer));
            }
        }
    }

    fn perform(&mut self, action: Action, transport: &mut impl Transport) {
        match action {
            Action::ArriveFromBefore(event) => {
                self.real_step_done();
                self.arrive(event);
            }
            Action::Happen(event) => {
                self.real_step_done();
                self.happen_when_open(event, transport);
            }
            Action::Request(timer) => {
                if self.heartbeats.is_wanted(timer) {
                    self.send_synthetic(timer, Carrier::Request, transport);
                }
            }
            Action::Response(timer) => self.send_synthetic(timer, Carrier::Response, transport),
        }
    }

    /// Something that is no synthetic beat has come to pass.
    fn real_step_done(&mut self) {
        self.live = self.live.saturating_sub(1);
        self.last_real = self.now;
    }

    fn schedule(&mut self, at: JobTime, action: Action) {
        if matches!(action, Action::ArriveFromBefore(_) | Action::Happen(_)) {
            self.live += 1;
        }
        self.queue.push(Reverse((at, action)));
    }

    /// All that the event waited for has happened: it will happen after its delay.
    fn make_ready(&mut self, event: EventId) {
        let row = self.graph.event(event);
        let recorded_at = self.graph.job_time(row.recorded_ns);
        let recorded = self.graph.options.causality == Causality::Recorded;
        let outcome = &mut self.events[event.index()];
        if recorded || outcome.caused == JobTime::NEVER {
            outcome.caused = recorded_at;
        }
        let delay_ps = if recorded { 0 } else { self.graph.delay_ps(event) };
        let at = outcome.caused.plus_ps(delay_ps).max(self.now);
        outcome.ready = at;
        let caused = outcome.caused;
        if let Some(computing) = &mut self.computing
            && computing.begin(event, caused, self.now)
        {
            self.live += 1;
            return;
        }
        self.schedule(at, Action::Happen(event));
    }

    /// The event happens, unless its connection has to be opened first.
    fn happen_when_open(&mut self, event: EventId, transport: &mut impl Transport) {
        let opens = self.graph.opens_connection(event);
        let connection = self.graph.event(event).connection;
        if let Some(connection) = connection
            && let Some(state) = &mut self.connections[connection.index()]
        {
            if let Some(waiting) = &mut state.opening {
                waiting.push(event);
                return;
            }
            if opens {
                state.opening = Some(vec![event]);
                self.live += 1;
                self.in_flight += 1;
                transport.send(self.now, empty(connection, true, Sent::Syn(connection)));
                return;
            }
        }
        self.happen(event, transport);
    }

    fn happen(&mut self, event: EventId, transport: &mut impl Transport) {
        let row = self.graph.event(event);
        self.causal_events += 1;
        self.events[event.index()].happened = self.now;
        if row.kind == EventKind::Send {
            self.bytes = self.bytes.saturating_add(row.bytes);
            if let Some(connection) = row.connection {
                self.live += 1;
                self.in_flight += 1;
                let (from_client, bytes, of_bytes) = (row.from_client, row.bytes, self.graph.message_bytes(row));
                let token = Sent::Event(event).token();
                transport.send(self.now, Chunk { connection, from_client, bytes, of_bytes, token });
            }
            if let Some(timer) = row.timer {
                self.heartbeats.leaves(timer, JobGraph::half_of_beat(row), CarrierId::Event(event), self.now);
            }
        }
        self.tell_waiters(event, On::Sent, self.now);
        if row.kind == EventKind::Mark {
            self.arrive(event);
            self.note_mark(event);
        }
    }

    fn note_mark(&mut self, event: EventId) {
        if event == self.graph.finish {
            self.finished = true;
        }
        if self.graph.is_wanted_mark(self.graph.event(event)) {
            self.wanted_marks = self.wanted_marks.saturating_sub(1);
        }
    }

    /// The last byte of an event's send is there (or the mark itself).
    fn arrive(&mut self, event: EventId) {
        self.events[event.index()].delivered = self.now;
        self.tell_waiters(event, On::Delivered, self.now);
        let row = self.graph.event(event);
        if row.kind != EventKind::Send {
            return;
        }
        if let Some((computing, ends)) = self.computing.as_mut().zip(self.graph.ends(row)) {
            computing.delivered(ends, row.bytes, self.now);
        }
        let Some(timer) = row.timer else { return };
        for dependency in self.heartbeats.arrives(timer, CarrierId::Event(event)) {
            self.yields(dependency, self.now);
        }
        if self.graph.period(event) == JobPeriod::During && self.graph.options.causality == Causality::Trace {
            let next = self.heartbeats.after_recorded(timer, JobGraph::half_of_beat(row), event);
            self.schedule_beat(timer, next);
        }
    }

    fn send_synthetic(&mut self, timer: TimerId, half: Carrier, transport: &mut impl Transport) {
        let row = &self.graph.trace.timers[timer.index()];
        let number = count(self.heartbeats.synthetic.len());
        let (from_client, bytes) = match half {
            Carrier::Request => (true, row.request_bytes),
            Carrier::Response => (false, row.response_bytes),
        };
        self.heartbeats.synthetic.push(SyntheticHeartbeat { timer, half, sent: self.now, delivered: None });
        self.causal_events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let (connection, token) = (row.connection, Sent::Synthetic(number).token());
        transport.send(self.now, Chunk { connection, from_client, bytes, of_bytes: bytes, token });
        self.heartbeats.leaves(timer, half, CarrierId::Synthetic(number), self.now);
    }

    fn arrive_synthetic(&mut self, number: u32) {
        let beat = &mut self.heartbeats.synthetic[number as usize];
        beat.delivered = Some(self.now);
        let (timer, half) = (beat.timer, beat.half);
        for dependency in self.heartbeats.arrives(timer, CarrierId::Synthetic(number)) {
            self.last_real = self.now;
            self.yields(dependency, self.now);
        }
        let next = self.heartbeats.after_synthetic(timer, half);
        self.schedule_beat(timer, next);
    }

    fn schedule_beat(&mut self, timer: TimerId, next: NextHeartbeat) {
        match next {
            NextHeartbeat::Recorded => {}
            NextHeartbeat::Response(after_ps) => self.schedule(self.now.plus_ps(after_ps), Action::Response(timer)),
            NextHeartbeat::Request(after_ps) => self.schedule(self.now.plus_ps(after_ps), Action::Request(timer)),
        }
    }

    /// Tells all dependencies on this moment of an event that it has come.
    fn tell_waiters(&mut self, event: EventId, moment: On, at: JobTime) {
        if self.graph.options.causality == Causality::Recorded {
            return;
        }
        let graph = self.graph;
        for number in graph.waiters(event) {
            let dependency = graph.dependency(*number);
            if dependency.on != moment || graph.period(dependency.event) != JobPeriod::During {
                continue;
            }
            match dependency.timer.zip(dependency.carrier).filter(|_| graph.options.timers) {
                None => self.yields(*number, at),
                Some((timer, half)) => self.announce(*number, timer, half, at),
            }
        }
    }

    /// News waits for a beat, or goes with one that has just left.
    fn announce(&mut self, dependency: u32, timer: TimerId, half: Carrier, at: JobTime) {
        let Some(carrier) = self.heartbeats.announce(dependency, timer, half, at) else { return };
        let delivered = match carrier {
            CarrierId::Event(event) => self.events[event.index()].delivered(),
            CarrierId::Synthetic(number) => self.heartbeats.synthetic[number as usize].delivered,
        };
        if let Some(delivered) = delivered {
            for dependency in self.heartbeats.arrives(timer, carrier) {
                self.yields(dependency, delivered);
            }
        }
    }

    /// A dependency has been met at `at`.
    fn yields(&mut self, dependency: u32, at: JobTime) {
        let event = self.graph.dependency(dependency).event;
        self.yielded[dependency as usize] = true;
        let outcome = &mut self.events[event.index()];
        if outcome.caused < at {
            outcome.caused = at;
            outcome.cause = dependency;
        }
        let waiting = &mut self.waiting[event.index()];
        *waiting = waiting.saturating_sub(1);
        if *waiting == 0 {
            self.make_ready(event);
        }
    }

    /// What came out.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        let finish = self.events[self.graph.finish.index()].happened;
        Outcome {
            job_time_ps: finish.ps(),
            events: self.events,
            piggybacked: self.heartbeats.piggybacked,
            synthetic: self.heartbeats.synthetic,
            causal_events: self.causal_events,
            bytes: self.bytes,
        }
    }
}

/// Sets up all connections on which something is sent during the job, in their order.
fn connect(graph: &JobGraph, transport: &mut impl Transport) -> Vec<Option<ConnectionState>> {
    let mut used = vec![false; graph.trace.connections.len()];
    let sends = graph.during().filter_map(|event| event.connection);
    for connection in sends.chain(graph.trace.timers.iter().map(|timer| timer.connection)) {
        used[connection.index()] = true;
    }
    let connections = (0u32..).map(ConnectionId).zip(&graph.trace.connections).zip(used);
    connections
        .map(|((connection, row), used)| {
            used.then(|| {
                transport.connect(connection, row.client_host, row.server_host);
                ConnectionState::default()
            })
        })
        .collect()
}

/// An empty segment of a handshake.
const fn empty(connection: ConnectionId, from_client: bool, sent: Sent) -> Chunk {
    Chunk { connection, from_client, bytes: 0, of_bytes: 0, token: sent.token() }
}

fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
