//! The records of a `.prv` file, in the order of time.

use std::io::{self, Write};

use chrono::DateTime;
use trace::rows::{MessageKind, Trace};

use super::codes::{EventType, of_state};
use super::labels::Labels;
use crate::export::lanes::{Lanes, State, Task, TaskLane, changes};

/// What a line says.
enum Body {
    State { end: u64, state: State },
    Event { kind: EventType, value: u64 },
    Message { end: u64, to: TaskLane, bytes: u64, tag: u64 },
}

impl Body {
    /// States stand before events and events before communications of the same time.
    const fn rank(&self) -> u8 {
        match self {
            Self::State { .. } => 1,
            Self::Event { .. } => 2,
            Self::Message { .. } => 3,
        }
    }
}

/// A line. Times are nanoseconds since the trace's start.
struct Record {
    time: u64,
    place: TaskLane,
    body: Body,
}

/// All lines and the labels of their values.
pub struct Records {
    /// Names of events' values.
    pub labels: Labels,
    records: Vec<Record>,
    start_ns: u64,
    end_ns: u64,
}

impl Records {
    /// Makes the records of a trace.
    pub fn new(trace: &Trace, lanes: &Lanes<'_>) -> Self {
        let (start_ns, end_ns) = (trace.manifest.start_ns, end(trace, lanes));
        let mut all = Self { labels: Labels::default(), records: Vec::new(), start_ns, end_ns };
        for (number, task) in lanes.tasks.iter().enumerate() {
            all.event(TaskLane { task: number, lane: 0 }, task.begin, EventType::Role, &task.process.role);
            for lane in 0..task.lanes.len() {
                all.lane(TaskLane { task: number, lane }, task);
            }
        }
        all.jobs(trace, lanes);
        all.messages(trace, lanes);
        // Stable: what happens at one time in one row stays in its order.
        all.records.sort_by_key(|record| (record.time, record.body.rank(), record.place));
        all
    }

    /// Number of lines but the header.
    pub const fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// Writes the header and all lines.
    pub fn write(&self, lanes: &Lanes<'_>, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.header(lanes))?;
        for record in &self.records {
            let (from, time) = (object(lanes, record.place), record.time);
            match &record.body {
                Body::State { end, state } => writeln!(out, "1:{from}:{time}:{end}:{}", of_state(*state).0)?,
                Body::Event { kind, value } => writeln!(out, "2:{from}:{time}:{}:{value}", kind.number())?,
                Body::Message { end, to, bytes, tag } => {
                    let to = object(lanes, *to);
                    writeln!(out, "3:{from}:{time}:{time}:{to}:{end}:{end}:{bytes}:{tag}")?;
                }
            }
        }
        Ok(())
    }

    fn header(&self, lanes: &Lanes<'_>) -> String {
        let end = self.time(self.end_ns);
        let started = i64::try_from(self.start_ns).unwrap_or(0);
        let date = DateTime::from_timestamp_nanos(started).format("%d/%m/%y at %H:%M");
        let cpus: Vec<String> = lanes.cpus.iter().map(ToString::to_string).collect();
        let tasks: Vec<String> = lanes.tasks.iter().map(|task| format!("{}:{}", task.lanes.len(), task.node)).collect();
        format!("#Paraver ({date}):{end}_ns:{}({}):1:{}({})", cpus.len(), cpus.join(","), tasks.len(), tasks.join(","))
    }

    fn time(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.start_ns)
    }

    fn push(&mut self, place: TaskLane, at: u64, body: Body) {
        self.records.push(Record { time: self.time(at), place, body });
    }

    fn event(&mut self, place: TaskLane, at: u64, kind: EventType, name: &str) {
        let value = self.labels.value(kind, name);
        self.push(place, at, Body::Event { kind, value });
    }

    fn state(&mut self, place: TaskLane, begin: u64, end: u64, state: State) {
        if end > begin {
            self.push(place, begin, Body::State { end: self.time(end), state });
        }
    }

    /// A lane's states from the trace's start to its end, without a gap, and its activities as events.
    fn lane(&mut self, place: TaskLane, task: &Task<'_>) {
        let activities = &task.lanes[place.lane].activities;
        self.state(place, self.start_ns, task.begin, State::NotCreated);
        let (mut since, mut state) = (task.begin.max(self.start_ns), State::Idle);
        for change in changes(activities) {
            let now = change.state.unwrap_or(State::Idle);
            if now != state {
                self.state(place, since, change.at, state);
                (since, state) = (change.at.max(since), now);
            }
            let kind = EventType::Activity(change.activity.kind);
            if change.begins {
                self.event(place, change.at, kind, change.activity.name);
            } else {
                self.push(place, change.at, Body::Event { kind, value: 0 });
            }
        }
        self.state(place, since, task.end, state);
        self.state(place, task.end.max(self.start_ns), self.end_ns, State::NotCreated);
    }

    fn jobs(&mut self, trace: &Trace, lanes: &Lanes<'_>) {
        for mark in trace.events.iter().filter(|event| event.name == "job.submit" || event.name == "job.finish") {
            let Some(place) = mark.process.and_then(|process| lanes.of_process(process)) else { continue };
            if mark.name == "job.submit" {
                self.event(place, mark.recorded_ns, EventType::Job, "job");
            } else {
                self.push(place, mark.recorded_ns, Body::Event { kind: EventType::Job, value: 0 });
            }
        }
    }

    fn messages(&mut self, trace: &Trace, lanes: &Lanes<'_>) {
        for message in &trace.messages {
            let Some((from, to)) = lanes.of_message(trace, message) else { continue };
            let (sent, received) = (message.sent_ns, message.delivered_ns.max(message.sent_ns));
            let tag = tag(message.kind);
            self.labels.name(EventType::Sent, tag, message.kind.as_str());
            self.labels.name(EventType::Received, tag, message.kind.as_str());
            self.push(from, sent, Body::Event { kind: EventType::Sent, value: tag });
            self.push(from, sent, Body::Event { kind: EventType::SentBytes, value: message.bytes });
            self.push(to, received, Body::Event { kind: EventType::Received, value: tag });
            self.push(to, received, Body::Event { kind: EventType::ReceivedBytes, value: message.bytes });
            self.push(from, sent, Body::Message { end: self.time(received), to, bytes: message.bytes, tag });
        }
    }
}

/// When the last of all that is shown is over.
fn end(trace: &Trace, lanes: &Lanes<'_>) -> u64 {
    let tasks = lanes.tasks.iter().map(|task| task.end);
    let messages = trace.messages.iter().map(|message| message.delivered_ns.max(message.sent_ns));
    let marks = trace.events.iter().map(|event| event.recorded_ns);
    tasks.chain(messages).chain(marks).max().unwrap_or(0).max(trace.manifest.end_ns).max(trace.manifest.start_ns)
}

/// `cpu:appl:task:thread` of a row.
fn object(lanes: &Lanes<'_>, place: TaskLane) -> String {
    let cpu = lanes.tasks[place.task].lanes[place.lane].cpu;
    format!("{cpu}:1:{}:{}", place.task + 1, place.lane + 1)
}

/// A message's kind as its place in the list of kinds, from 1.
fn tag(kind: MessageKind) -> u64 {
    MessageKind::ALL.iter().zip(1..).find(|(other, _)| **other == kind).map_or(0, |(_, tag)| tag)
}
