//! Timers: which beat carries which news, and the beats that go on when the recorded ones have run out.

use std::collections::HashMap;

use trace::ids::{EventId, TimerId};
use trace::rows::{Carrier, EventKind};

use super::graph::{JobGraph, JobPeriod};
use super::outcome::{CarrierId, Piggyback, SyntheticHeartbeat};
use super::time::JobTime;

/// Between beats that go on there is at least this pause: a recorded pause of nothing (a client that asks again at once)
/// would stop the simulated time.
const MIN_PAUSE_NS: u64 = 1_000_000;

/// One half (requests or responses) of a timer's beats.
#[derive(Debug, Default)]
struct TimerHalf {
    /// Beats before the job, in order of time.
    before: Vec<(JobTime, EventId)>,
    /// The last beat that happened during the job.
    last: Option<(JobTime, CarrierId)>,
    /// Numbers of the dependencies whose news waits for the next beat.
    waiting: Vec<u32>,
    /// Recorded beats of the job that have not happened (requests) or not arrived (responses).
    left: u32,
}

#[derive(Debug, Default)]
struct Timer {
    request: TimerHalf,
    response: TimerHalf,
    /// Dependencies of the job that travel by this timer and have not yielded.
    wanted: u32,
    /// News that is there and has not arrived.
    under_way: u32,
    /// Whether its recorded beats have run out, and others go on.
    synthetic: bool,
    /// The last recorded beat whose request is sent during the job, and whether its response is recorded too.
    last_request: Option<(u64, EventId)>,
    last_is_answered: bool,
}

/// What has to be done after a beat was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHeartbeat {
    /// None is made up: the recorded ones go on.
    Recorded,
    /// The server answers, after so many picoseconds.
    Response(u64),
    /// The next request leaves, after so many picoseconds.
    Request(u64),
}

/// All timers of a job.
#[derive(Debug)]
pub(crate) struct HeartbeatTimers {
    timers: Vec<Timer>,
    in_flight: HashMap<CarrierId, Vec<u32>>,
    /// News by dependency.
    pub(crate) piggybacked: HashMap<u32, Piggyback>,
    /// Beats that go on.
    pub(crate) synthetic: Vec<SyntheticHeartbeat>,
    /// News under way with timers whose recorded beats have run out: it will arrive.
    pub(crate) certain_arrivals: u64,
    /// For each timer the pause before a request and the time of service, picoseconds.
    pace_ps: Vec<(u64, u64)>,
}

impl HeartbeatTimers {
    pub(crate) fn new(graph: &JobGraph) -> Self {
        let mut timers: Vec<Timer> = graph.trace.timers.iter().map(|_| Timer::default()).collect();
        for dependency in &graph.trace.dependencies {
            if let Some(timer) = dependency.timer
                && graph.period(dependency.event) == JobPeriod::During
            {
                timers[timer.index()].wanted += 1;
            }
        }
        count_recorded(graph, &mut timers);
        let pace_ps = graph.trace.timers.iter().map(|row| {
            let server = graph.server_factor(&graph.trace.connections[row.connection.index()]);
            let service_ps = super::options::scaled_ps(row.service_ns.saturating_mul(1_000), server);
            (row.pause_ns.max(MIN_PAUSE_NS).saturating_mul(1_000), service_ps)
        });
        Self {
            pace_ps: pace_ps.collect(),
            timers,
            in_flight: HashMap::new(),
            piggybacked: HashMap::new(),
            synthetic: Vec::new(),
            certain_arrivals: 0,
        }
    }

    /// News for `dependency` is there at `at`. Returns the carrier if it has left already.
    pub(crate) fn announce(
        &mut self,
        dependency: u32,
        timer: TimerId,
        half: Carrier,
        at: JobTime,
    ) -> Option<CarrierId> {
        let timer = &mut self.timers[timer.index()];
        timer.under_way += 1;
        self.certain_arrivals += u64::from(timer.synthetic);
        let half = match half {
            Carrier::Request => &mut timer.request,
            Carrier::Response => &mut timer.response,
        };
        let before = half.before.partition_point(|(sent, _)| *sent < at);
        let left_already = match half.before.get(before) {
            Some((_, event)) => Some(CarrierId::Event(*event)),
            // A beat of this very instant still takes it.
            None => half.last.filter(|(sent, _)| *sent >= at).map(|(_, carrier)| carrier),
        };
        match left_already {
            Some(carrier) => {
                self.piggybacked.insert(dependency, Piggyback { at, carrier });
                self.in_flight.entry(carrier).or_default().push(dependency);
            }
            None => {
                half.waiting.push(dependency);
                self.piggybacked.insert(dependency, Piggyback { at, carrier: CarrierId::Synthetic(u32::MAX) });
            }
        }
        left_already
    }

    /// Half a beat leaves: it takes all news that waits.
    pub(crate) fn leaves(&mut self, timer: TimerId, half: Carrier, carrier: CarrierId, at: JobTime) {
        let timer = &mut self.timers[timer.index()];
        let half_state = match half {
            Carrier::Request => &mut timer.request,
            Carrier::Response => &mut timer.response,
        };
        half_state.last = Some((at, carrier));
        if half == Carrier::Request && matches!(carrier, CarrierId::Event(_)) {
            half_state.left = half_state.left.saturating_sub(1);
        }
        let taken = std::mem::take(&mut half_state.waiting);
        for dependency in &taken {
            if let Some(piggybacked) = self.piggybacked.get_mut(dependency) {
                piggybacked.carrier = carrier;
            }
        }
        if !taken.is_empty() {
            self.in_flight.entry(carrier).or_default().extend(taken);
        }
    }

    /// A carrier has arrived: returns the dependencies that now yield.
    pub(crate) fn arrives(&mut self, timer: TimerId, carrier: CarrierId) -> Vec<u32> {
        let piggybacked = self.in_flight.remove(&carrier).unwrap_or_default();
        let arrived = u32::try_from(piggybacked.len()).unwrap_or(u32::MAX);
        let timer = &mut self.timers[timer.index()];
        timer.under_way = timer.under_way.saturating_sub(arrived);
        timer.wanted = timer.wanted.saturating_sub(arrived);
        if timer.synthetic {
            self.certain_arrivals = self.certain_arrivals.saturating_sub(u64::from(arrived));
        }
        piggybacked
    }

    /// What follows when a recorded half of a beat has arrived: nothing as long as recorded beats are left.
    pub(crate) fn after_recorded(&mut self, timer: TimerId, half: Carrier, event: EventId) -> NextHeartbeat {
        let (pause_ps, service_ps) = self.pace_ps[timer.index()];
        let state = &mut self.timers[timer.index()];
        if half == Carrier::Response {
            state.response.left = state.response.left.saturating_sub(1);
        }
        let last_request = state.last_request.is_some_and(|(_, last)| last == event);
        if state.synthetic || state.request.left > 0 {
            return NextHeartbeat::Recorded;
        }
        let next = match half {
            Carrier::Request if last_request && !state.last_is_answered => NextHeartbeat::Response(service_ps),
            Carrier::Response
                if state.response.left == 0 && (state.last_is_answered || state.last_request.is_none()) =>
            {
                NextHeartbeat::Request(pause_ps)
            }
            _ => return NextHeartbeat::Recorded,
        };
        self.go_on(timer);
        next
    }

    /// A half of a beat that goes on has arrived: what follows.
    pub(crate) fn after_synthetic(&self, timer: TimerId, half: Carrier) -> NextHeartbeat {
        let (pause_ps, service_ps) = self.pace_ps[timer.index()];
        match half {
            Carrier::Request => NextHeartbeat::Response(service_ps),
            Carrier::Response => NextHeartbeat::Request(pause_ps),
        }
    }

    /// Timers that something of the job waits for and that have no recorded beat during the job, with the time of their
    /// first beat: in step with the last one before the job. They go on from now.
    pub(crate) fn start_silent(&mut self, graph: &JobGraph) -> Vec<(TimerId, JobTime)> {
        let mut started = Vec::new();
        for row in &graph.trace.timers {
            let state = &self.timers[row.timer.index()];
            if state.wanted == 0 || state.request.left > 0 || state.response.left > 0 {
                continue;
            }
            let (pause_ps, service_ps) = self.pace_ps[row.timer.index()];
            let last = state.response.before.last().or(state.request.before.last());
            let delivered = last
                .map_or(JobTime::SUBMISSION, |(_, event)| graph.job_time(graph.event(*event).recorded_delivered_ns));
            let period_ps = i128::from(pause_ps) + i128::from(service_ps);
            let first = i128::from(delivered.0) + i128::from(pause_ps);
            let first = if first < 0 { first.rem_euclid(period_ps) } else { first };
            started.push((row.timer, JobTime(i64::try_from(first).unwrap_or(i64::MAX))));
            self.go_on(row.timer);
        }
        started
    }

    /// Whether anything still waits, or will wait, for this timer.
    pub(crate) fn is_wanted(&self, timer: TimerId) -> bool {
        self.timers[timer.index()].wanted > 0
    }

    /// Whether the timer's recorded beats have run out.
    pub(crate) fn is_synthetic(&self, timer: TimerId) -> bool {
        self.timers[timer.index()].synthetic
    }

    fn go_on(&mut self, timer: TimerId) {
        let state = &mut self.timers[timer.index()];
        state.synthetic = true;
        self.certain_arrivals += u64::from(state.under_way);
    }
}

/// Notes the recorded beats: those before the job in order, those of the job by number.
fn count_recorded(graph: &JobGraph, timers: &mut [Timer]) {
    let mut answered = HashMap::new();
    for event in &graph.trace.events {
        let (EventKind::Send, Some(timer)) = (event.kind, event.timer) else { continue };
        let state = &mut timers[timer.index()];
        let half = JobGraph::half_of_beat(event);
        let period = graph.period(event.event);
        let half_state = match half {
            Carrier::Request => &mut state.request,
            Carrier::Response => &mut state.response,
        };
        match period {
            JobPeriod::Before => half_state.before.push((graph.job_time(event.recorded_ns), event.event)),
            JobPeriod::During => {
                half_state.left += 1;
                if half == Carrier::Response {
                    answered.insert((timer, event.beat), ());
                } else if state.last_request.is_none_or(|(recorded_ns, _)| recorded_ns <= event.recorded_ns) {
                    state.last_request = Some((event.recorded_ns, event.event));
                }
            }
            JobPeriod::After => {}
        }
    }
    for (row, state) in graph.trace.timers.iter().zip(timers) {
        state.request.before.sort_unstable();
        state.response.before.sort_unstable();
        let beat = state.last_request.map(|(_, event)| graph.event(event).beat);
        state.last_is_answered = beat.is_some_and(|beat| answered.contains_key(&(row.timer, beat)));
    }
}
