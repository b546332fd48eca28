//! The recording as an outcome: what everything waited for on the network that was there.

use std::borrow::Borrow;
use std::collections::HashMap;

use trace::ids::{EventId, TimerId};
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow};

use super::graph::JobGraph;
use super::outcome::{CarrierId, EventOutcome, Happened, NO_CAUSE, Outcome, Piggyback, SyntheticHeartbeat};

/// The recorded beats of timers, by the half that carries news.
#[derive(Debug)]
pub struct RecordedBeats {
    of: HashMap<(TimerId, Carrier), Vec<EventId>>,
}

impl RecordedBeats {
    /// The beats among the events of a trace.
    #[must_use]
    pub fn new(events: impl IntoIterator<Item = impl Borrow<EventRow>>) -> Self {
        let mut of: HashMap<_, Vec<EventId>> = HashMap::new();
        for (number, event) in (0u32..).map(EventId).zip(events) {
            let event: &EventRow = event.borrow();
            if let Some(timer) = event.timer {
                of.entry((timer, JobGraph::half_of_beat(event))).or_default().push(number);
            }
        }
        Self { of }
    }

    /// The beats of a timer that were recorded before an event, in the order of the trace.
    #[must_use]
    pub fn before(&self, timer: TimerId, half: Carrier, event: EventId) -> &[EventId] {
        let beats = self.of.get(&(timer, half)).map_or(&[][..], Vec::as_slice);
        &beats[..beats.partition_point(|beat| *beat < event)]
    }

    /// The beat that carried the news of a dependency in the recording; `None` where it waited for none, or no beat was left.
    #[must_use]
    pub fn carrier(&self, graph: &JobGraph, dependency: &DependencyRow) -> Option<EventId> {
        let beats = self.before(dependency.timer?, dependency.carrier?, dependency.event);
        let news_ns = graph.recorded_news_ns(dependency);
        beats.get(beats.partition_point(|beat| graph.event(*beat).recorded_ns < news_ns)).copied()
    }
}

/// A job as it was recorded: nothing is executed, and what is asked for is found then. A send that left later than its causes and its
/// delay explain was paced by the network. Causes that were recorded later than their effect do not count.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'g, 't> {
    graph: &'g JobGraph<'t>,
    beats: &'g RecordedBeats,
}

impl<'g, 't> Recording<'g, 't> {
    /// Of a job; `beats` are those of its trace.
    #[must_use]
    pub const fn new(graph: &'g JobGraph<'t>, beats: &'g RecordedBeats) -> Self {
        Self { graph, beats }
    }

    /// From the job's submission to its end, picoseconds.
    #[must_use]
    pub fn job_time_ps(&self) -> u64 {
        self.graph.job_time(self.graph.finish_ns).ps()
    }
}

impl Happened for Recording<'_, '_> {
    fn event(&self, event: EventId) -> EventOutcome {
        let Self { graph, beats } = self;
        let event = graph.event(event);
        let happened_ns = event.recorded_ns;
        let (mut cause, mut caused_ns) = (NO_CAUSE, happened_ns);
        let mut latest_ns = None;
        for number in graph.causes(event.event) {
            let dependency = graph.dependency(*number);
            if dependency.on_event >= event.event {
                continue;
            }
            let carrier = beats.carrier(graph, dependency);
            let news_ns = graph.recorded_news_ns(dependency);
            let yielded_ns = carrier.map_or(news_ns, |beat| graph.event(beat).recorded_delivered_ns);
            if latest_ns <= Some(yielded_ns) {
                latest_ns = Some(yielded_ns);
                (cause, caused_ns) = (*number, yielded_ns.min(happened_ns));
            }
        }
        let ready_ns = caused_ns.saturating_add(event.delay_ns).min(happened_ns);
        EventOutcome {
            cause,
            caused: graph.job_time(caused_ns),
            ready: graph.job_time(ready_ns),
            happened: graph.job_time(happened_ns),
            delivered: graph.job_time(event.recorded_delivered_ns),
        }
    }

    fn piggyback(&self, dependency: u32) -> Option<Piggyback> {
        let row = self.graph.dependency(dependency);
        let beat = self.beats.carrier(self.graph, row).filter(|_| row.on_event < row.event)?;
        let at = self.graph.job_time(self.graph.recorded_news_ns(row));
        Some(Piggyback { at, carrier: CarrierId::Event(beat) })
    }

    fn synthetic(&self, _: u32) -> Option<&SyntheticHeartbeat> {
        None
    }
}

/// The outcome that was recorded, as a [`Recording`] has it.
#[must_use]
pub fn recorded(graph: &JobGraph) -> Outcome {
    let beats = RecordedBeats::new(&graph.trace.events);
    let recording = Recording::new(graph, &beats);
    let dependencies = 0..graph.trace.dependencies.len() as u32;
    let during = || graph.during().filter(|event| event.kind == EventKind::Send);
    Outcome {
        events: graph.trace.events.iter().map(|event| recording.event(event.event)).collect(),
        piggybacked: dependencies.filter_map(|number| Some((number, recording.piggyback(number)?))).collect(),
        synthetic: Vec::new(),
        job_time_ps: recording.job_time_ps(),
        causal_events: graph.during().count() as u64,
        bytes: during().fold(0, |sum, event| sum.saturating_add(event.bytes)),
    }
}
