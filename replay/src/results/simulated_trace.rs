//! A replay as a trace: the rows of the recorded one, at the times of the simulated world.
//!
//! Events, messages, and what begins or ends with them (spans, phases of tasks, the job) have the times of the replay. What
//! is not part of the causal graph keeps its distance from what its process did or got last. What had not happened when the
//! job ended in the replay (later jobs, and heartbeats that a faster network leaves over) goes on from there at the recorded
//! pace. Sizes, owners, causes and the figures of timers are those of the recording.

use std::collections::BTreeMap;

use causal::{JobGraph, JobPeriod, JobTime, Outcome};
use trace::ids::{EventId, MessageId, ProcessId};
use trace::rows::{EventKind, EventRow, On, SpanRow, TaskRow, Trace};

/// The trace of a replay. Times are nanoseconds since the epoch; the job is submitted when it was.
#[must_use]
pub fn simulated_trace(graph: &JobGraph, outcome: &Outcome) -> Trace {
    let clock = Clock::new(graph, outcome);
    let mut trace = graph.trace.clone();
    // What was measured of the recording is no part of another world.
    trace.steps.clear();
    move_events(&mut trace, &clock);
    move_messages(&mut trace, &clock);
    move_spans(&mut trace, graph.trace, &clock);
    move_connections(&mut trace, graph.trace);
    for task in &mut trace.tasks {
        move_task(task, &clock);
    }
    move_jobs(&mut trace, graph, &clock);
    for process in &mut trace.processes {
        process.first_seen_ns = clock.at(Some(process.process), process.first_seen_ns);
        process.last_seen_ns = clock.at(Some(process.process), process.last_seen_ns).max(process.first_seen_ns);
    }
    let ends = trace.events.iter().map(|event| event.recorded_delivered_ns);
    trace.manifest.end_ns = ends.max().unwrap_or(0).max(clock.at(None, graph.trace.manifest.end_ns));
    trace.manifest.notes.insert(0, format!("simulated: a replay of {}, not a recording", graph.job.id));
    renumber(&mut trace);
    trace
}

/// Recorded times to simulated ones.
struct Clock {
    /// Sent or happened, and delivered, by event.
    events: Vec<(u64, u64)>,
    /// By process: when it sent or got something in the recording, and how much later that was in the replay; in order.
    shifts: BTreeMap<ProcessId, Vec<(u64, i64)>>,
    /// How much later than in the recording the job ended in the replay.
    job_shift: i64,
    /// From when on in the recording nothing is known of the replay, and how much later all of that happens.
    rest: (u64, i64),
    /// By task and name of the mark.
    marks: BTreeMap<(u32, String), u64>,
}

impl Clock {
    fn new(graph: &JobGraph, outcome: &Outcome) -> Self {
        let trace = graph.trace;
        let absolute = |at: JobTime| {
            let ns = at.0.div_euclid(1_000);
            graph.submit_ns.saturating_add_signed(ns)
        };
        let simulated: Vec<(Option<u64>, Option<u64>)> = trace
            .events
            .iter()
            .map(|event| {
                let result = outcome.event(event.event);
                (result.happened().map(absolute), result.delivered().map(absolute))
            })
            .collect();
        let mut shifts: BTreeMap<ProcessId, Vec<(u64, i64)>> = BTreeMap::new();
        let mut know = |process: Option<ProcessId>, recorded: u64, simulated: Option<u64>| {
            if let (Some(process), Some(simulated)) = (process, simulated) {
                shifts.entry(process).or_default().push((recorded, difference(simulated, recorded)));
            }
        };
        let mut marks = BTreeMap::new();
        for (event, (happened, delivered)) in trace.events.iter().zip(&simulated) {
            know(event.process, event.recorded_ns, *happened);
            if let Some(connection) = event.connection.and_then(|connection| trace.connections.get(connection.index()))
            {
                let receiver = if event.from_client { connection.server_process } else { connection.client_process };
                know(receiver, event.recorded_delivered_ns, *delivered);
            }
            if let (EventKind::Mark, Some(task), Some(at)) = (event.kind, event.task, happened) {
                marks.insert((task.0, event.name.clone()), *at);
            }
        }
        let finish = simulated[graph.finish.index()].0.unwrap_or(graph.finish_ns);
        let job_shift = difference(finish, graph.finish_ns);
        let is_left = |event: &EventRow| {
            simulated[event.event.index()].0.is_none() && graph.period(event.event) != JobPeriod::Before
        };
        let first = trace.events.iter().filter(|event| is_left(event)).map(|event| event.recorded_ns).min();
        let mut rest = (first.unwrap_or(graph.finish_ns), job_shift);
        if let Some(first) = first {
            rest.1 = difference(finish.saturating_add(1), first);
        }
        // No answer to what is still under way leaves before that has arrived.
        for event in trace.events.iter().filter(|event| is_left(event)) {
            for number in graph.causes(event.event) {
                let cause = graph.dependency(*number);
                let on = graph.event(cause.on_event);
                let (Some(happened), delivered) = simulated[on.event.index()] else { continue };
                let known = if cause.on == On::Sent { happened } else { arrival(on, happened, delivered) };
                rest.1 = rest.1.max(difference(known, event.recorded_ns));
            }
        }
        for event in trace.events.iter().filter(|event| is_left(event)) {
            know(event.process, event.recorded_ns, Some(event.recorded_ns.saturating_add_signed(rest.1)));
        }
        for shifts in shifts.values_mut() {
            shifts.sort_unstable();
        }
        let mut clock = Self { events: Vec::new(), shifts, job_shift, rest, marks };
        clock.place_events(graph, &simulated);
        clock
    }

    /// What is left when the job ends goes on at the recorded pace; what was before it stays where it was.
    fn place_events(&mut self, graph: &JobGraph, simulated: &[(Option<u64>, Option<u64>)]) {
        for (event, (happened, delivered)) in graph.trace.events.iter().zip(simulated) {
            let happened = happened.unwrap_or_else(|| {
                let before = graph.period(event.event) == JobPeriod::Before;
                event.recorded_ns.saturating_add_signed(if before { 0 } else { self.rest.1 })
            });
            self.events.push((happened, arrival(event, happened, *delivered)));
        }
    }

    /// A time at which something happened in a process, as far from what the process did or got last as in the recording.
    fn at(&self, process: Option<ProcessId>, recorded: u64) -> u64 {
        let known = process.and_then(|process| self.shifts.get(&process));
        let shift = known.and_then(|known| {
            let next = known.partition_point(|(at, _)| *at <= recorded);
            known.get(next.saturating_sub(1))
        });
        let of_rest = if recorded >= self.rest.0 { self.rest.1 } else { 0 };
        recorded.saturating_add_signed(shift.map_or(of_rest, |(_, shift)| *shift))
    }

    fn mark(&self, task: &TaskRow, name: &str, recorded: u64) -> u64 {
        let mark = self.marks.get(&(task.task.0, name.to_owned()));
        mark.copied().unwrap_or_else(|| self.at(task.process, recorded))
    }
}

/// When what `event` sends at `happened` arrives; where the replay does not know, after as long as in the recording.
fn arrival(event: &EventRow, happened: u64, delivered: Option<u64>) -> u64 {
    let took = event.recorded_delivered_ns.saturating_sub(event.recorded_ns);
    delivered.unwrap_or_else(|| happened.saturating_add(took)).max(happened)
}

fn difference(later: u64, earlier: u64) -> i64 {
    i64::try_from(i128::from(later) - i128::from(earlier)).unwrap_or(0)
}

fn move_events(trace: &mut Trace, clock: &Clock) {
    for (event, (happened, delivered)) in trace.events.iter_mut().zip(&clock.events) {
        event.recorded_ns = *happened;
        event.recorded_delivered_ns = *delivered;
    }
}

/// A message leaves with the first of its events, has left with the last and arrives with the latest.
fn move_messages(trace: &mut Trace, clock: &Clock) {
    let mut times: BTreeMap<MessageId, (u64, u64, u64)> = BTreeMap::new();
    for (event, (happened, delivered)) in trace.events.iter().zip(&clock.events) {
        let Some(message) = event.message else { continue };
        let known = times.entry(message).or_insert((*happened, *happened, *delivered));
        *known = (known.0.min(*happened), known.1.max(*happened), known.2.max(*delivered));
    }
    let connections = &trace.connections;
    for message in &mut trace.messages {
        let (sent, last, delivered) = times.get(&message.message).copied().unwrap_or_else(|| {
            let connection = connections.get(message.connection.index());
            let client = connection.and_then(|connection| connection.client_process);
            let server = connection.and_then(|connection| connection.server_process);
            let sender = if message.from_client { client } else { server };
            let sent = clock.at(sender, message.sent_ns);
            let later = |ns: u64| sent.saturating_add(ns.saturating_sub(message.sent_ns));
            (sent, later(message.sent_end_ns), later(message.delivered_ns))
        });
        message.sent_ns = sent;
        message.delivered_ns = delivered.max(sent);
        message.sent_end_ns = last.clamp(sent, message.delivered_ns);
    }
}

/// Spans begin as long after their request, and end as long after (or before) their response, as they did. What a process
/// sends is there for it from its first byte to its last: the nearer of both counts.
fn move_spans(trace: &mut Trace, recorded: &Trace, clock: &Clock) {
    let shift = |span: &SpanRow, message: Option<MessageId>, near: u64| -> Option<i64> {
        let (was, is) = (&recorded.messages[message?.index()], &trace.messages[message?.index()]);
        let connection = recorded.connections.get(was.connection.index())?;
        let sender = if was.from_client { connection.client_process } else { connection.server_process };
        if sender != Some(span.process) {
            return Some(difference(is.delivered_ns, was.delivered_ns));
        }
        let ends = near.abs_diff(was.sent_end_ns) < near.abs_diff(was.sent_ns);
        Some(if ends { difference(is.sent_end_ns, was.sent_end_ns) } else { difference(is.sent_ns, was.sent_ns) })
    };
    let moved: Vec<(u64, u64, u64)> = trace
        .spans
        .iter()
        .map(|span| {
            let by = |shift: Option<i64>, ns: u64| {
                shift.map_or_else(|| clock.at(Some(span.process), ns), |shift| ns.saturating_add_signed(shift))
            };
            let request = shift(span, span.request, span.begin_ns);
            let begin = by(request, span.begin_ns);
            let end = by(shift(span, span.response, span.end_ns), span.end_ns).max(begin);
            (by(request, span.received_ns).min(begin), begin, end)
        })
        .collect();
    for (span, (received, begin, end)) in trace.spans.iter_mut().zip(moved) {
        (span.received_ns, span.begin_ns, span.end_ns) = (received, begin, end);
    }
}

/// A connection begins as long before its first message, and ends as long after its last, as it did.
fn move_connections(trace: &mut Trace, recorded: &Trace) {
    let mut ends: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for (was, is) in recorded.messages.iter().zip(&trace.messages) {
        let last = difference(is.delivered_ns, was.delivered_ns);
        let known = ends.entry(was.connection.index()).or_insert((difference(is.sent_ns, was.sent_ns), last));
        known.1 = last;
    }
    for (number, connection) in trace.connections.iter_mut().enumerate() {
        let Some((first, last)) = ends.get(&number) else { continue };
        connection.first_ns = connection.first_ns.saturating_add_signed(*first);
        connection.last_ns = connection.last_ns.saturating_add_signed(*last).max(connection.first_ns);
    }
}

fn move_task(task: &mut TaskRow, clock: &Clock) {
    let start = clock.mark(task, "task.start", task.start_ns);
    let shuffle_end = task.shuffle_end_ns.map(|at| clock.mark(task, "task.shuffle_end", at).max(start));
    let sort_end = task.sort_end_ns.map(|at| clock.mark(task, "task.sort_end", at).max(shuffle_end.unwrap_or(start)));
    let finish = clock.mark(task, "task.finish", task.finish_ns).max(sort_end.or(shuffle_end).unwrap_or(start));
    (task.start_ns, task.shuffle_end_ns, task.sort_end_ns, task.finish_ns) = (start, shuffle_end, sort_end, finish);
}

fn move_jobs(trace: &mut Trace, graph: &JobGraph, clock: &Clock) {
    let master = graph.event(graph.finish).process;
    for job in &mut trace.jobs {
        let own = job.job == graph.job.job;
        let moved = |ns: u64| clock.at(if own { master } else { None }, ns);
        (job.submit_ns, job.launch_ns, job.finish_ns) = if own {
            (job.submit_ns, moved(job.launch_ns), job.finish_ns.saturating_add_signed(clock.job_shift))
        } else {
            (moved(job.submit_ns), moved(job.launch_ns), moved(job.finish_ns))
        };
    }
}

/// Gives messages and events numbers in the order of their new times, as a trace has them.
fn renumber(trace: &mut Trace) {
    trace.messages.sort_by_key(|message| (message.sent_ns, message.message));
    let messages = new_numbers(trace.messages.iter().map(|message| message.message.index()));
    for (message, number) in trace.messages.iter_mut().zip(0..) {
        message.message = MessageId(number);
    }
    trace.events.sort_by_key(|event| (event.recorded_ns, event.event));
    let events = new_numbers(trace.events.iter().map(|event| event.event.index()));
    for (event, number) in trace.events.iter_mut().zip(0..) {
        event.event = EventId(number);
        event.message = event.message.map(|message| MessageId(messages[message.index()]));
    }
    for span in &mut trace.spans {
        span.request = span.request.map(|message| MessageId(messages[message.index()]));
        span.response = span.response.map(|message| MessageId(messages[message.index()]));
    }
    for dependency in &mut trace.dependencies {
        dependency.event = EventId(events[dependency.event.index()]);
        dependency.on_event = EventId(events[dependency.on_event.index()]);
    }
    trace.dependencies.sort_by_key(|dependency| (dependency.event, dependency.on_event));
}

/// By old number the new one, of rows that stand in their new order.
fn new_numbers(old: impl ExactSizeIterator<Item = usize>) -> Vec<u32> {
    let mut new = vec![0; old.len()];
    for (number, old) in (0..).zip(old) {
        new[old] = number;
    }
    new
}
