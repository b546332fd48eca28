//! Checks of a causal graph that need no simulator.

use std::io;

use causal::JobGraph;
use trace::ids::TimerId;
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow, Evidence, On};

use crate::maps::HashMap;
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
    replay(events.iter().cloned(), dependencies.iter().cloned())
}

/// The beats of timers so far, by the half that carries news.
#[derive(Default)]
struct Beats {
    /// The latest time at which any until then happened, and when this one was delivered.
    of: HashMap<(TimerId, Carrier), Vec<(u64, u64)>>,
}

impl Beats {
    fn add(&mut self, timer: TimerId, half: Carrier, happened: u64, delivered: u64) {
        let beats = self.of.entry((timer, half)).or_default();
        let latest = beats.last().map_or(0, |(latest, _)| *latest);
        beats.push((latest.max(happened), delivered));
    }

    /// When the first beat was delivered that happened at `news` or later.
    fn delivers(&self, timer: TimerId, half: Carrier, news: u64) -> Option<u64> {
        let beats = self.of.get(&(timer, half))?;
        beats.get(beats.partition_point(|(latest, _)| *latest < news)).map(|(_, delivered)| *delivered)
    }
}

/// As [`verify`], of rows that are made as they are looked at.
pub(super) fn replay(
    events: impl ExactSizeIterator<Item = EventRow>,
    dependencies: impl Iterator<Item = DependencyRow>,
) -> io::Result<Report> {
    let (mut report, mut beats) = (Report::default(), Beats::default());
    let count = events.len();
    // When each event happened, and when it was delivered.
    let mut times: RecordList<(u64, u64)> = RecordList::default();
    let mut edges = dependencies.peekable();
    for (number, event) in events.enumerate() {
        let mut latest = None;
        // What only the network paced may be handed over earlier than it left, and work hidden behind it be done so.
        let (mut forced, mut stream) = (event.delay_ns == 0 || event.kind == EventKind::Mark, false);
        while let Some(edge) = edges.next_if(|edge| edge.event.index() <= number) {
            if edge.event.index() != number || edge.on_event.index() >= count {
                report.dangling += 1;
                continue;
            }
            if edge.on_event.index() >= number {
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
    }
    report.dangling += edges.count() as u64;
    times.check()?;
    Ok(report)
}
