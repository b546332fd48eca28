//! The recording as an outcome: what everything waited for on the network that was there.

use std::borrow::Borrow;
use std::collections::HashMap;

use trace::ids::{EventId, TimerId};
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow};

use super::graph::JobGraph;
use super::outcome::{CarrierId, EventOutcome, NO_CAUSE, Outcome, Piggyback};

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

/// The outcome that was recorded: nothing is executed. A send that left later than its causes and its delay explain was
/// paced by the network. Causes that were recorded later than their effect do not count.
#[must_use]
pub fn recorded(graph: &JobGraph) -> Outcome {
    let events = &graph.trace.events;
    let beats = RecordedBeats::new(events);
    let mut piggybacked = HashMap::new();
    let outcomes = events.iter().map(|event| {
        let happened_ns = event.recorded_ns;
        let (mut cause, mut caused_ns) = (NO_CAUSE, happened_ns);
        let mut latest_ns = None;
        for number in graph.causes(event.event) {
            let dependency = graph.dependency(*number);
            if dependency.on_event >= event.event {
                continue;
            }
            let news_ns = graph.recorded_news_ns(dependency);
            let carrier = beats.carrier(graph, dependency);
            if let Some(beat) = carrier {
                let piggyback = Piggyback { at: graph.job_time(news_ns), carrier: CarrierId::Event(beat) };
                piggybacked.insert(*number, piggyback);
            }
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
    });
    Outcome {
        events: outcomes.collect(),
        piggybacked,
        synthetic: Vec::new(),
        job_time_ps: graph.job_time(graph.finish_ns).ps(),
        causal_events: graph.during().count() as u64,
        bytes: graph
            .during()
            .filter(|event| event.kind == EventKind::Send)
            .fold(0, |sum, event| sum.saturating_add(event.bytes)),
    }
}
