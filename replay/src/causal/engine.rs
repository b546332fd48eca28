//! The event loop of a causal replay: it takes turns with the network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace::ids::{ConnectionId, EventId, TimerId};
use trace::rows::{Carrier, EventKind, On};

use super::error::CausalError;
use super::graph::{JobGraph, Place};
use super::halt;
use super::heartbeats::{HeartbeatTimers, NextHeartbeat};
use super::options::Causality;
use super::outcome::{CarrierId, EventOutcome, NEVER, Outcome, SyntheticHeartbeat};
use netsim::fabric;
use netsim::network::{Delivery, FlowId, HostIndex, Network, Token};
use netsim::time::SimTime;

/// A replay in which nothing real has happened for so long has come to a halt, whatever still beats: one day.
const PATIENCE_PS: u64 = 86_400 * 1_000_000_000_000;
/// Between two calls of the progress function this many steps are taken.
const STEPS_A_REPORT: u64 = 4_096;

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time since the job was submitted.
    pub now: SimTime,
    /// How long the job took in the recording.
    pub recorded: SimTime,
    /// Events of the causal graph that have happened.
    pub causal_events: u64,
}

/// What the engine does at a time of its own choice. The order of the variants decides ties.
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

/// A connection in the simulated network.
#[derive(Clone, Debug)]
struct Line {
    flows: (FlowId, FlowId),
    /// Sends that wait until it is open; `None` = it is open or nobody opens it.
    opening: Option<Vec<EventId>>,
}

/// What the network calls a send.
enum Name {
    Event(EventId),
    Synthetic(u32),
    /// The first half of a handshake, and the second.
    Syn(ConnectionId),
    SynAck(ConnectionId),
}

impl Name {
    const KIND_BITS: u32 = 32;

    const fn token(&self) -> Token {
        let (kind, number) = match self {
            Self::Event(event) => (0u64, event.0),
            Self::Synthetic(number) => (1, *number),
            Self::Syn(connection) => (2, connection.0),
            Self::SynAck(connection) => (3, connection.0),
        };
        Token(kind << Self::KIND_BITS | number as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the token is the number")]
    const fn of(token: Token) -> Self {
        let number = token.0 as u32;
        match token.0 >> Self::KIND_BITS {
            0 => Self::Event(EventId(number)),
            1 => Self::Synthetic(number),
            2 => Self::Syn(ConnectionId(number)),
            _ => Self::SynAck(ConnectionId(number)),
        }
    }
}

/// Replays a job over a network until it is done.
///
/// `progress` is called now and then.
///
/// # Errors
/// If the network has fewer hosts than the trace, or the replay comes to a halt because events wait for what never
/// happens; the error says for what.
pub fn run<N: Network>(
    graph: &JobGraph,
    network: &mut N,
    mut progress: impl FnMut(Progress),
) -> Result<Outcome, CausalError> {
    let mut engine = Engine::new(graph, network)?;
    engine.begin();
    let mut steps = 0u64;
    while !engine.is_done() {
        if !engine.step() {
            if let Some(error) = engine.has_no_end() {
                return Err(error);
            }
            let diagnosis = halt::diagnose(graph, &engine.events, &engine.yielded, &engine.heartbeats);
            return Err(CausalError::Halt { at: engine.now.to_string(), diagnosis });
        }
        steps += 1;
        if steps.is_multiple_of(STEPS_A_REPORT) {
            progress(engine.progress());
        }
    }
    progress(engine.progress());
    Ok(engine.into_outcome())
}

struct Engine<'g, 't, 'n, N> {
    graph: &'g JobGraph<'t>,
    network: &'n mut N,
    now: SimTime,
    queue: BinaryHeap<Reverse<(SimTime, Action)>>,
    deliveries: Vec<Delivery>,
    events: Vec<EventOutcome>,
    waiting: Vec<u32>,
    yielded: Vec<bool>,
    lines: Vec<Option<Line>>,
    heartbeats: HeartbeatTimers,
    /// Real actions in the queue and real sends under way: without any, and without news that will surely arrive,
    /// nothing can happen any more.
    live: u64,
    /// Sends of the job that are under way.
    in_flight: u64,
    /// The simulation goes no further.
    latest: SimTime,
    last_real: SimTime,
    wanted_marks: u32,
    finished: bool,
    causal_events: u64,
    bytes: u64,
}

impl<'g, 't, 'n, N: Network> Engine<'g, 't, 'n, N> {
    fn new(graph: &'g JobGraph<'t>, network: &'n mut N) -> Result<Self, CausalError> {
        let trace = graph.trace;
        if (network.hosts() as usize) < trace.hosts.len() {
            return Err(CausalError::TooFewHosts { fabric: network.hosts(), trace: trace.hosts.len() });
        }
        let lines = open_lines(graph, network);
        let waiting = trace.events.iter().map(|event| count(graph.causes(event.event).len())).collect();
        let marks = graph.during().filter(|event| graph.is_wanted_mark(event)).count();
        Ok(Self {
            graph,
            now: SimTime::ZERO,
            queue: BinaryHeap::new(),
            deliveries: Vec::new(),
            events: vec![EventOutcome::NOTHING; trace.events.len()],
            waiting,
            yielded: vec![false; trace.dependencies.len()],
            lines,
            heartbeats: HeartbeatTimers::new(graph),
            live: 0,
            in_flight: 0,
            latest: fabric::latest(network.figures().interval_ps),
            last_real: SimTime::ZERO,
            wanted_marks: count(marks),
            finished: false,
            causal_events: 0,
            bytes: 0,
            network,
        })
    }

    /// Lets everything before the job have happened, and schedules what waits for nothing else.
    fn begin(&mut self) {
        let recorded = self.graph.options.causality == Causality::Recorded;
        let mut from_before = Vec::new();
        for event in &self.graph.trace.events {
            if self.graph.place(event.event) != Place::Before {
                continue;
            }
            let sent_ps = self.graph.since_submit_ps(event.recorded_ns);
            let delivered_ps = self.graph.since_submit_ps(event.recorded_delivered_ns);
            let outcome = &mut self.events[event.event.index()];
            outcome.happened_ps = sent_ps;
            outcome.caused_ps = sent_ps;
            outcome.ready_ps = sent_ps;
            if delivered_ps <= 0 {
                outcome.delivered_ps = delivered_ps;
            } else {
                self.schedule(SimTime(delivered_ps.unsigned_abs()), Action::ArriveFromBefore(event.event));
            }
            from_before.push(event.event);
        }
        if !recorded {
            for event in from_before {
                let outcome = self.events[event.index()];
                self.tell_waiters(event, On::Sent, outcome.happened_ps);
                if outcome.delivered_ps != NEVER {
                    self.tell_waiters(event, On::Delivered, outcome.delivered_ps);
                }
            }
        }
        for event in self.graph.during() {
            if recorded || self.graph.causes(event.event).is_empty() {
                self.make_ready(event.event);
            }
        }
        if !recorded {
            for (timer, first_ps) in self.heartbeats.start_silent(self.graph) {
                self.schedule(SimTime(first_ps), Action::Request(timer));
            }
        }
    }

    fn progress(&self) -> Progress {
        let recorded_ps = self.graph.since_submit_ps(self.graph.finish_ns);
        Progress {
            now: self.now,
            recorded: SimTime(u64::try_from(recorded_ps).unwrap_or(0)),
            causal_events: self.causal_events,
        }
    }

    /// The job is done, and so are its tasks, as far as they can be.
    fn is_done(&self) -> bool {
        self.finished && (self.wanted_marks == 0 || !self.can_go_on())
    }

    fn can_go_on(&self) -> bool {
        self.live + self.heartbeats.certain_arrivals > 0 && self.now.since_ps(self.last_real) <= PATIENCE_PS
    }

    /// Takes one step: the network's next delivery or the engine's next action. False if nothing can happen any more.
    fn step(&mut self) -> bool {
        if !self.can_go_on() {
            return false;
        }
        let own = self.queue.peek().map(|Reverse((at, _))| *at);
        let of_network = self.network.next_event();
        match (own, of_network) {
            (None, None) => return false,
            _ if own.into_iter().chain(of_network).min() > Some(self.latest) => return false,
            (own, Some(of_network)) if own.is_none_or(|own| of_network <= own) => {
                self.let_network_advance(own.unwrap_or(self.latest).min(self.latest));
            }
            _ => {
                if let Some(Reverse((at, action))) = self.queue.pop() {
                    self.now = at;
                    self.perform(action);
                }
            }
        }
        true
    }

    /// Why no further step is taken, where messages are still under way.
    fn has_no_end(&self) -> Option<CausalError> {
        let next = self.queue.peek().map(|Reverse((at, _))| *at).into_iter().chain(self.network.next_event()).min();
        let why = if next.is_some_and(|next| next > self.latest) && self.latest < SimTime::LATEST {
            "the traffic over time would have more than 4194304 intervals (fabric.interval)"
        } else if next.is_some_and(|next| next > self.latest) {
            "no run is simulated for more than 150 days"
        } else if self.in_flight > 0 && next.is_some() {
            "for a day none has arrived"
        } else {
            return None;
        };
        Some(CausalError::Endless { at: self.now.to_string(), in_flight: self.in_flight, why })
    }

    fn let_network_advance(&mut self, until: SimTime) {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        self.network.advance(until, &mut deliveries);
        for delivery in deliveries.drain(..) {
            self.now = delivery.at;
            self.deliver(Name::of(delivery.token));
        }
        self.deliveries = deliveries;
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::ArriveFromBefore(event) => {
                self.real_step_done();
                self.arrive(event);
            }
            Action::Happen(event) => {
                self.real_step_done();
                self.happen_when_open(event);
            }
            Action::Request(timer) => {
                if self.heartbeats.is_wanted(timer) {
                    self.send_synthetic(timer, Carrier::Request);
                }
            }
            Action::Response(timer) => self.send_synthetic(timer, Carrier::Response),
        }
    }

    fn deliver(&mut self, name: Name) {
        match name {
            Name::Event(event) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.real_step_done();
                self.arrive(event);
            }
            Name::Synthetic(number) => self.arrive_synthetic(number),
            Name::Syn(connection) => {
                if let Some(line) = &self.lines[connection.index()] {
                    self.network.send(self.now, line.flows.1, 0, Name::SynAck(connection).token());
                }
            }
            Name::SynAck(connection) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.real_step_done();
                let line = self.lines[connection.index()].as_mut();
                let waiting = line.and_then(|line| line.opening.take()).unwrap_or_default();
                for event in waiting {
                    self.happen(event);
                }
            }
        }
    }

    /// Something that is no synthetic beat has come to pass.
    fn real_step_done(&mut self) {
        self.live = self.live.saturating_sub(1);
        self.last_real = self.now;
    }

    fn schedule(&mut self, at: SimTime, action: Action) {
        if matches!(action, Action::ArriveFromBefore(_) | Action::Happen(_)) {
            self.live += 1;
        }
        self.queue.push(Reverse((at, action)));
    }

    /// All that the event waited for has happened: it will happen after its delay.
    fn make_ready(&mut self, event: EventId) {
        let row = self.graph.event(event);
        let recorded_ps = self.graph.since_submit_ps(row.recorded_ns);
        let recorded = self.graph.options.causality == Causality::Recorded;
        let outcome = &mut self.events[event.index()];
        if recorded || outcome.caused_ps == NEVER {
            outcome.caused_ps = recorded_ps;
        }
        let delay_ps = if recorded { 0 } else { self.graph.delay_ps(event) };
        let ready_ps = outcome.caused_ps.saturating_add(i64::try_from(delay_ps).unwrap_or(i64::MAX));
        let at = SimTime(u64::try_from(ready_ps).unwrap_or(0)).max(self.now);
        outcome.ready_ps = to_signed(at);
        self.schedule(at, Action::Happen(event));
    }

    /// The event happens, unless its connection has to be opened first.
    fn happen_when_open(&mut self, event: EventId) {
        let opens = self.graph.opens_connection(event);
        let connection = self.graph.event(event).connection;
        if let Some(connection) = connection
            && let Some(line) = &mut self.lines[connection.index()]
        {
            if let Some(waiting) = &mut line.opening {
                waiting.push(event);
                return;
            }
            if opens {
                line.opening = Some(vec![event]);
                self.live += 1;
                self.in_flight += 1;
                self.network.send(self.now, line.flows.0, 0, Name::Syn(connection).token());
                return;
            }
        }
        self.happen(event);
    }

    fn happen(&mut self, event: EventId) {
        let row = self.graph.event(event);
        let now_ps = to_signed(self.now);
        self.causal_events += 1;
        self.events[event.index()].happened_ps = now_ps;
        if row.kind == EventKind::Send {
            self.bytes = self.bytes.saturating_add(row.bytes);
            if let Some(line) = row.connection.and_then(|connection| self.lines[connection.index()].as_ref()) {
                let flow = if row.from_client { line.flows.0 } else { line.flows.1 };
                self.live += 1;
                self.in_flight += 1;
                let of_bytes = self.graph.message_bytes(row);
                self.network.send_part(self.now, flow, row.bytes, of_bytes, Name::Event(event).token());
            }
            if let Some(timer) = row.timer {
                self.heartbeats.leaves(timer, JobGraph::half_of_beat(row), CarrierId::Event(event), now_ps);
            }
        }
        self.tell_waiters(event, On::Sent, now_ps);
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
        let now_ps = to_signed(self.now);
        self.events[event.index()].delivered_ps = now_ps;
        self.tell_waiters(event, On::Delivered, now_ps);
        let row = self.graph.event(event);
        let Some(timer) = row.timer.filter(|_| row.kind == EventKind::Send) else { return };
        for dependency in self.heartbeats.arrives(timer, CarrierId::Event(event)) {
            self.yields(dependency, now_ps);
        }
        if self.graph.place(event) == Place::During && self.graph.options.causality == Causality::Trace {
            let next = self.heartbeats.after_recorded(timer, JobGraph::half_of_beat(row), event);
            self.schedule_beat(timer, next);
        }
    }

    fn send_synthetic(&mut self, timer: TimerId, half: Carrier) {
        let row = &self.graph.trace.timers[timer.index()];
        let Some(line) = &self.lines[row.connection.index()] else { return };
        let number = count(self.heartbeats.synthetic.len());
        let (flow, bytes) = match half {
            Carrier::Request => (line.flows.0, row.request_bytes),
            Carrier::Response => (line.flows.1, row.response_bytes),
        };
        let sent_ps = to_signed(self.now);
        self.heartbeats.synthetic.push(SyntheticHeartbeat { timer, half, sent_ps, delivered_ps: None });
        self.causal_events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.network.send(self.now, flow, bytes, Name::Synthetic(number).token());
        self.heartbeats.leaves(timer, half, CarrierId::Synthetic(number), sent_ps);
    }

    fn arrive_synthetic(&mut self, number: u32) {
        let now_ps = to_signed(self.now);
        let beat = &mut self.heartbeats.synthetic[number as usize];
        beat.delivered_ps = Some(now_ps);
        let (timer, half) = (beat.timer, beat.half);
        for dependency in self.heartbeats.arrives(timer, CarrierId::Synthetic(number)) {
            self.last_real = self.now;
            self.yields(dependency, now_ps);
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
    fn tell_waiters(&mut self, event: EventId, moment: On, at_ps: i64) {
        if self.graph.options.causality == Causality::Recorded {
            return;
        }
        let graph = self.graph;
        for number in graph.waiters(event) {
            let dependency = graph.dependency(*number);
            if dependency.on != moment || graph.place(dependency.event) != Place::During {
                continue;
            }
            match dependency.timer.zip(dependency.carrier) {
                None => self.yields(*number, at_ps),
                Some((timer, half)) => self.announce(*number, timer, half, at_ps),
            }
        }
    }

    /// News waits for a beat, or goes with one that has just left.
    fn announce(&mut self, dependency: u32, timer: TimerId, half: Carrier, at_ps: i64) {
        let Some(carrier) = self.heartbeats.announce(dependency, timer, half, at_ps) else { return };
        let delivered_ps = match carrier {
            CarrierId::Event(event) => self.events[event.index()].delivered_ps(),
            CarrierId::Synthetic(number) => self.heartbeats.synthetic[number as usize].delivered_ps,
        };
        if let Some(delivered_ps) = delivered_ps {
            for dependency in self.heartbeats.arrives(timer, carrier) {
                self.yields(dependency, delivered_ps);
            }
        }
    }

    /// A dependency has been met at `at_ps`.
    fn yields(&mut self, dependency: u32, at_ps: i64) {
        let event = self.graph.dependency(dependency).event;
        self.yielded[dependency as usize] = true;
        let outcome = &mut self.events[event.index()];
        if outcome.caused_ps < at_ps {
            outcome.caused_ps = at_ps;
            outcome.cause = dependency;
        }
        let waiting = &mut self.waiting[event.index()];
        *waiting = waiting.saturating_sub(1);
        if *waiting == 0 {
            self.make_ready(event);
        }
    }

    fn into_outcome(self) -> Outcome {
        let finish_ps = self.events[self.graph.finish.index()].happened_ps;
        Outcome {
            job_time_ps: u64::try_from(finish_ps).unwrap_or(0),
            events: self.events,
            piggybacked: self.heartbeats.piggybacked,
            synthetic: self.heartbeats.synthetic,
            causal_events: self.causal_events,
            bytes: self.bytes,
        }
    }
}

/// Opens all connections on which something is sent during the job, in their order.
fn open_lines<N: Network>(graph: &JobGraph, network: &mut N) -> Vec<Option<Line>> {
    let mut used = vec![false; graph.trace.connections.len()];
    let sends = graph.during().filter_map(|event| event.connection);
    for connection in sends.chain(graph.trace.timers.iter().map(|timer| timer.connection)) {
        used[connection.index()] = true;
    }
    let connections = graph.trace.connections.iter().zip(used);
    connections
        .map(|(connection, used)| {
            used.then(|| {
                let ends = (HostIndex(connection.client_host.0), HostIndex(connection.server_host.0));
                Line { flows: network.open_connection(ends.0, ends.1), opening: None }
            })
        })
        .collect()
}

fn to_signed(at: SimTime) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
