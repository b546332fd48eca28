//! Checks of a causal graph that need no simulator.

use std::io;

use causal::JobGraph;
use trace::rows::{DependencyRow, EventKind, EventRow, Evidence, On};

use super::beat_chains::BeatChains;
use crate::spilled::RecordList;

/// What a check of the graph found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Edges that name an event or a timer that is not there.
    pub dangling: u64,
    /// Edges whose cause does not come before its effect: with any of them the graph could have a cycle.
    pub backward: u64,
    /// Sends that wait for nothing and so keep their recorded time.
    pub roots: u64,
    /// Bytes of these.
    pub root_bytes: u64,
    /// Bytes of all sends.
    pub bytes: u64,
    /// News for which the recorded beats ran out.
    pub without_beat: u64,
    /// Largest difference between a recorded time and the one that the graph yields on the recorded network,
    /// nanoseconds, and the event.
    pub worst: Option<(u64, EventRow)>,
    /// Events whose difference is above a millisecond.
    pub off: u64,
}

/// Replays a graph on the recorded network, and compares what comes out with what was recorded.
///
/// The recorded network delivers what is handed over in time when it did in the recording, and what is handed over
/// late as much later. A send that only the network paced may be handed over earlier than it left.
///
/// # Errors
/// If a temporary file fails: a long trace needs one.
pub fn verify(events: &[EventRow], dependencies: &[DependencyRow]) -> io::Result<Report> {
    let mut check = Check::of(Some(events.len()));
    let mut edges = dependencies.iter().cloned().peekable();
    for (number, event) in events.iter().enumerate() {
        let of_event = std::iter::from_fn(|| edges.next_if(|edge| edge.event.index() <= number));
        check.add(event.clone(), of_event);
    }
    let mut report = check.report()?;
    report.dangling += edges.count() as u64;
    Ok(report)
}

/// Memory that the times of events take at most, bytes: most causes are not long ago.
const TIMES_BYTES: usize = 2 << 20;

/// A replay on the recorded network, event by event.
pub(super) struct Check {
    /// Events, if it is known how many there are.
    count: Option<usize>,
    number: usize,
    report: Report,
    beats: BeatChains,
    /// When each event happened, and when it was delivered.
    times: RecordList<(u64, u64)>,
}

impl Check {
    /// Before the first one of so many events; `None` = it is not known how many, but all edges lead to some.
    pub fn of(count: Option<usize>) -> Self {
        Self {
            count,
            number: 0,
            report: Report::default(),
            beats: BeatChains::default(),
            times: RecordList::within(TIMES_BYTES),
        }
    }

    /// The next event, with the edges of those that wait which follow on those before.
    pub fn add(&mut self, event: EventRow, edges: impl Iterator<Item = DependencyRow>) {
        let Self { count, number, report, beats, times } = self;
        let mut latest = None;
        // What only the network paced may be handed over earlier than it left, and work hidden behind it be done so.
        let (mut forced, mut stream) = (event.delay_ns == 0 || event.kind == EventKind::Mark, false);
        for edge in edges {
            let is_there = count.is_none_or(|count| edge.on_event.index() < count);
            if edge.event.index() != *number || !is_there {
                report.dangling += 1;
                continue;
            }
            if edge.on_event.index() >= *number {
                report.backward += 1;
                continue;
            }
            stream |= edge.evidence == Evidence::Stream;
            forced &= matches!(edge.evidence, Evidence::Stream | Evidence::Pipeline | Evidence::Exchange);
            let (happened, delivered) = times.get(edge.on_event.index());
            let news = if edge.on == On::Sent { happened } else { delivered };
            let yielded = match (edge.timer, edge.carrier) {
                (Some(timer), Some(half)) => beats.delivers(timer, half, news),
                (None, None) => Some(news),
                _ => {
                    report.dangling += 1;
                    Some(news)
                }
            };
            if yielded.is_none() {
                report.without_beat += 1;
            }
            latest = latest.max(Some(yielded.unwrap_or(news)));
        }
        if event.kind == EventKind::Send {
            report.bytes += event.bytes;
            if latest.is_none() {
                report.roots += 1;
                report.root_bytes += event.bytes;
            }
        }
        let at = latest.map_or(event.recorded_ns, |latest| latest.saturating_add(event.delay_ns));
        let late = at.saturating_sub(event.recorded_ns);
        let delivered = event.recorded_delivered_ns.saturating_add(late);
        times.push((at, delivered));
        if let Some(timer) = event.timer {
            beats.add(timer, JobGraph::half_of_beat(&event), at, delivered);
        }
        let error = if stream && forced { late } else { at.abs_diff(event.recorded_ns) };
        report.off += u64::from(error > 1_000_000);
        if report.worst.as_ref().is_none_or(|(worst, _)| *worst < error) {
            report.worst = Some((error, event));
        }
        *number += 1;
    }

    /// What was found.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn report(self) -> io::Result<Report> {
        self.times.check().and(self.beats.check())?;
        Ok(self.report)
    }
}
