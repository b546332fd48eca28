//! The critical path: what the job's time consists of, followed back from its end through the binding causes.

use std::collections::BTreeMap;

use trace::ids::EventId;
use trace::rows::{Carrier, EventKind, EventRow, Evidence, On};

use super::graph::{JobGraph, is_hidden_work};
use super::outcome::{CarrierId, Happened};
use super::time::JobTime;

/// What a piece of the critical path is spent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Bytes are on their way (the queue of their own connection included), wait for the network, or a connection is opened.
    Network,
    /// A process thinks, computes, reads or writes a disk.
    Think,
    /// A process works on bytes while others of them wait for the network: what a slower network hides.
    HiddenWork,
    /// News waits for the next beat of a timer.
    TimerWait,
    /// A timer pauses before its next beat.
    TimerPause,
    /// From a container's end to the start of the task that takes its place.
    Slot,
    /// Until an event whose causes are not in the trace: kept at its recorded time.
    Outside,
}

impl PathKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::Network, Self::Think, Self::HiddenWork, Self::TimerWait, Self::TimerPause, Self::Slot, Self::Outside];

    /// Its name in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Think => "think",
            Self::HiddenWork => "hidden-work",
            Self::TimerWait => "timer-wait",
            Self::TimerPause => "timer-pause",
            Self::Slot => "slot",
            Self::Outside => "outside",
        }
    }
}

/// A piece of the critical path. Times are picoseconds since the job was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is spent with.
    pub kind: PathKind,
    /// More exactly: the kind of message, the role that thinks, the timer.
    pub what: String,
    /// Where: the hosts between which bytes go, or the host that thinks.
    pub place: String,
    /// Start, picoseconds since the job was submitted.
    pub from_ps: u64,
    /// End, picoseconds since the job was submitted.
    pub to_ps: u64,
    /// How many steps of the causal graph it covers.
    pub steps: u32,
    /// The event with which it ends, or on whose way it is.
    pub event: EventId,
}

impl Piece {
    /// Its length in picoseconds.
    #[must_use]
    pub const fn length_ps(&self) -> u64 {
        self.to_ps - self.from_ps
    }

    /// The role that thinks, of a piece that is thinking: behind it stands the kind of task that it is about,
    /// "MRAppMaster (reduce)".
    #[must_use]
    pub fn role(&self) -> &str {
        self.what.split_once(" (").map_or(&self.what, |(role, _)| role)
    }
}

/// The critical path of a job, from its submission to its end, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Its pieces in the order of time; neighbours that do the same at the same place are one.
    pub pieces: Vec<Piece>,
}

impl CriticalPath {
    /// Picoseconds by kind and, within it, by what; the longest first.
    #[must_use]
    pub fn totals_ps(&self) -> Vec<(PathKind, String, u64)> {
        let mut totals: BTreeMap<(PathKind, &str), u64> = BTreeMap::new();
        for piece in &self.pieces {
            *totals.entry((piece.kind, &piece.what)).or_default() += piece.length_ps();
        }
        let mut totals: Vec<_> = totals.into_iter().map(|((kind, what), ps)| (kind, what.to_owned(), ps)).collect();
        totals.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, &a.1).cmp(&(b.0, &b.1))));
        totals
    }

    /// Picoseconds of one kind.
    #[must_use]
    pub fn total_of_ps(&self, kind: PathKind) -> u64 {
        self.pieces.iter().filter(|piece| piece.kind == kind).map(Piece::length_ps).sum()
    }
}

/// Follows the binding causes back from the job's end.
#[must_use]
pub fn critical_path(graph: &JobGraph, outcome: &impl Happened) -> CriticalPath {
    critical_path_to(graph, outcome, graph.finish, 0)
}

/// Follows the binding causes of an event back to a time, picoseconds since the job was submitted.
#[must_use]
pub fn critical_path_to(graph: &JobGraph, outcome: &impl Happened, event: EventId, from_ps: u64) -> CriticalPath {
    CriticalPath { pieces: merge(critical_steps_to(graph, outcome, event, from_ps)) }
}

/// The same, step by step: no piece stands for several events.
#[must_use]
pub fn critical_steps_to(graph: &JobGraph, outcome: &impl Happened, event: EventId, from_ps: u64) -> Vec<Piece> {
    let mut builder = Builder { graph, outcome, from_ps, at: event, pieces: Vec::new() };
    let mut event = Some(event);
    while let Some(at) = event {
        builder.at = at;
        event = builder.step_back(at);
    }
    builder.pieces.reverse();
    builder.pieces
}

struct Builder<'g, 't, O> {
    graph: &'g JobGraph<'t>,
    outcome: &'g O,
    /// Nothing before this time is wanted.
    from_ps: u64,
    /// The event whose pieces are added.
    at: EventId,
    /// In reverse order of time.
    pieces: Vec<Piece>,
}

impl<O: Happened> Builder<'_, '_, O> {
    /// Adds the pieces between an event's binding cause and the event; returns the cause.
    fn step_back(&mut self, event: EventId) -> Option<EventId> {
        let row = self.graph.event(event);
        let result = self.outcome.event(event);
        let happened = result.happened().filter(|at| at.ps() > self.from_ps)?;
        if happened > result.ready() {
            let what = if self.graph.options.handshakes { "handshake".to_owned() } else { self.message(row) };
            self.add(PathKind::Network, what, self.ends(row), result.ready(), happened);
        }
        let Some(number) = result.cause() else {
            self.add(PathKind::Outside, outside(row), self.host(row), JobTime::SUBMISSION, result.ready());
            return None;
        };
        let dependency = self.graph.dependency(number);
        let (kind, what) = self.delay(row, dependency.evidence);
        self.add(kind, what, self.host(row), result.caused(), result.ready());
        let on = self.graph.event(dependency.on_event);
        let on_result = self.outcome.event(dependency.on_event);
        let mut news = result.caused();
        if let Some(piggybacked) = self.outcome.piggyback(number) {
            let sent = self.outcome.sent(piggybacked.carrier).unwrap_or(news);
            let (what, place) = self.carrier(piggybacked.carrier, dependency.carrier);
            let name = dependency.timer.map(|timer| self.graph.trace.timers[timer.index()].name.clone());
            self.add(PathKind::Network, what, place, sent, news);
            if let CarrierId::Event(beat) = piggybacked.carrier
                && self.graph.event(beat).beat == Some(0)
            {
                // Whoever beats had only just begun: it is that which the news waited for.
                return Some(beat);
            }
            self.add(PathKind::TimerWait, name.unwrap_or_default(), self.host(on), piggybacked.at, sent);
            news = piggybacked.at;
        }
        if dependency.on == On::Delivered && on.kind == EventKind::Send {
            let sent = on_result.happened().unwrap_or(news);
            self.add(PathKind::Network, self.message(on), self.ends(on), sent, news);
        }
        Some(dependency.on_event)
    }

    fn add(&mut self, kind: PathKind, what: String, place: String, from: JobTime, to: JobTime) {
        let (from_ps, to_ps) = (from.ps().max(self.from_ps), to.ps());
        if to_ps > from_ps {
            self.pieces.push(Piece { kind, what, place, from_ps, to_ps, steps: 1, event: self.at });
        }
    }

    /// What the time between the latest cause and the event is.
    fn delay(&self, row: &EventRow, evidence: Evidence) -> (PathKind, String) {
        if evidence == Evidence::Timer {
            return (PathKind::TimerPause, self.message(row));
        }
        if evidence == Evidence::Slot {
            return (PathKind::Slot, "container".to_owned());
        }
        if is_hidden_work(row) {
            return (PathKind::HiddenWork, row.name.clone());
        }
        let role = row.process.map_or("unknown process", |process| &self.graph.trace.processes[process.index()].role);
        let what = match row.task {
            Some(task) => format!("{role} ({})", self.graph.trace.tasks[task.index()].kind),
            None => role.to_owned(),
        };
        (PathKind::Think, what)
    }

    fn message(&self, row: &EventRow) -> String {
        row.message.map_or_else(
            || "unknown message".to_owned(),
            |message| {
                let message = &self.graph.trace.messages[message.index()];
                // Paths of web pages would make a kind of each message.
                let name = if message.kind.as_str().starts_with("rpc") { message.name.as_str() } else { "" };
                format!("{} {name}", message.kind).trim_end().to_owned()
            },
        )
    }

    fn carrier(&self, carrier: CarrierId, half: Option<Carrier>) -> (String, String) {
        match carrier {
            CarrierId::Event(event) => (self.message(self.graph.event(event)), self.ends(self.graph.event(event))),
            CarrierId::Synthetic(number) => {
                let Some(beat) = self.outcome.synthetic(number) else { return <(String, String)>::default() };
                let row = &self.graph.trace.timers[beat.timer.index()];
                let half = half.unwrap_or(beat.half);
                (format!("rpc-{half} {}", row.name), String::new())
            }
        }
    }

    fn ends(&self, row: &EventRow) -> String {
        let host = |host: trace::ids::HostId| self.graph.trace.hosts[host.index()].name.as_str();
        self.graph.ends(row).map(|(from, to)| format!("{} → {}", host(from), host(to))).unwrap_or_default()
    }

    fn host(&self, row: &EventRow) -> String {
        let process = row.process.map(|process| &self.graph.trace.processes[process.index()]);
        process.map(|process| self.graph.trace.hosts[process.host.index()].name.clone()).unwrap_or_default()
    }
}

fn outside(row: &EventRow) -> String {
    if row.name.is_empty() { "a send without a known cause".to_owned() } else { row.name.clone() }
}

/// Neighbours that do the same at the same place become one piece.
fn merge(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match merged.last_mut() {
            Some(last)
                if last.kind == piece.kind
                    && last.what == piece.what
                    && last.place == piece.place
                    && last.to_ps == piece.from_ps =>
            {
                last.to_ps = piece.to_ps;
                last.steps += piece.steps;
                last.event = piece.event;
            }
            _ => merged.push(piece),
        }
    }
    merged
}
