//! Checks of a causal graph that need no simulator.

use std::collections::BTreeMap;

use trace::ids::ProcessId;
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow, Evidence, On};

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
#[must_use]
pub fn verify(events: &[EventRow], dependencies: &[DependencyRow]) -> Report {
    let mut report = Report::default();
    let mut happened = vec![0u64; events.len()];
    let mut delivered = vec![0u64; events.len()];
    let beats = Beats::new(events);
    let mut edges = dependencies.iter().peekable();
    for (number, event) in events.iter().enumerate() {
        let mut latest = None;
        // What only the network paced may be handed over earlier than it left, and work hidden behind it be done so.
        let (mut forced, mut stream) = (event.delay_ns == 0 || event.kind == EventKind::Mark, false);
        while let Some(edge) = edges.next_if(|edge| edge.event.index() <= number) {
            if edge.event.index() != number || edge.on_event.index() >= events.len() {
                report.dangling += 1;
                continue;
            }
            if edge.on_event.index() >= number {
                report.backward += 1;
                continue;
            }
            stream |= edge.evidence == Evidence::Stream;
            forced &= matches!(edge.evidence, Evidence::Stream | Evidence::Pipeline | Evidence::Exchange);
            let news = if edge.on == On::Sent { &happened } else { &delivered }[edge.on_event.index()];
            let yielded = match (edge.timer, edge.carrier) {
                (Some(timer), Some(carrier)) => {
                    beats.carry(timer.index(), carrier, news, &happened, &delivered, number)
                }
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
        happened[number] = at;
        delivered[number] = event.recorded_delivered_ns.saturating_add(late);
        let error = if stream && forced { late } else { at.abs_diff(event.recorded_ns) };
        report.off += u64::from(error > 1_000_000);
        if report.worst.as_ref().is_none_or(|(worst, _)| *worst < error) {
            report.worst = Some((error, event.clone()));
        }
    }
    report.dangling += edges.count() as u64;
    report
}

/// Events of the beats of each timer, by carrier.
struct Beats {
    of: Vec<[Vec<usize>; 2]>,
}

impl Beats {
    fn new(events: &[EventRow]) -> Self {
        let timers = events.iter().filter_map(|event| event.timer).map(|timer| timer.index() + 1).max().unwrap_or(0);
        let mut of = vec![[Vec::new(), Vec::new()]; timers];
        for (number, event) in events.iter().enumerate() {
            if let Some(timer) = event.timer {
                of[timer.index()][usize::from(!event.from_client)].push(number);
            }
        }
        Self { of }
    }

    /// The first beat that happened at or after `news`; only beats before event `until` are known.
    fn carrier(&self, timer: usize, carrier: Carrier, news: u64, happened: &[u64], until: usize) -> Option<usize> {
        let beats = &self.of.get(timer)?[usize::from(carrier == Carrier::Response)];
        let known = beats.partition_point(|beat| *beat < until);
        beats[..known].iter().copied().find(|beat| happened[*beat] >= news)
    }

    /// When that beat was delivered.
    fn carry(
        &self,
        timer: usize,
        carrier: Carrier,
        news: u64,
        happened: &[u64],
        delivered: &[u64],
        until: usize,
    ) -> Option<u64> {
        self.carrier(timer, carrier, news, happened, until).map(|beat| delivered[beat])
    }
}

/// What a share of time went into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Bytes on their way.
    pub network_ns: u64,
    /// Thinking, computing, reading disks.
    pub thinking_ns: u64,
    /// Pauses of timers, and waiting for their next beat.
    pub timer_ns: u64,
    /// Of the thinking, what each process did, where it is known.
    pub thinkers: BTreeMap<ProcessId, u64>,
}

/// Walks back from an event along what it waited for last, and says what the time on this way was spent on.
///
/// Stops at an event without causes, or at one that happened no later than `from_ns`.
#[must_use]
pub fn critical_path(
    events: &[EventRow],
    dependencies: &[DependencyRow],
    end: usize,
    from_ns: u64,
) -> (Shares, Vec<usize>) {
    let mut shares = Shares::default();
    let mut path = vec![end];
    let mut at = end;
    let beats = Beats::new(events);
    let recorded: Vec<u64> = events.iter().map(|event| event.recorded_ns).collect();
    let arrived: Vec<u64> = events.iter().map(|event| event.recorded_delivered_ns).collect();
    while events[at].recorded_ns > from_ns {
        let first = dependencies.partition_point(|edge| edge.event.index() < at);
        let edges = dependencies[first..].iter().take_while(|edge| edge.event.index() == at);
        let latest = edges
            .filter(|edge| edge.on_event.index() < at)
            .map(|edge| {
                let on = edge.on_event.index();
                let news = if edge.on == On::Sent { recorded[on] } else { arrived[on] };
                let carrier = edge
                    .timer
                    .zip(edge.carrier)
                    .and_then(|(timer, half)| beats.carrier(timer.index(), half, news, &recorded, at));
                (carrier.map_or(news, |beat| arrived[beat]), news, carrier, edge)
            })
            .max_by_key(|(yielded, ..)| *yielded);
        let Some((yielded, news, carrier, edge)) = latest else { break };
        // What the network paced was handed over at once and left later.
        let left_later = events[at].recorded_ns.saturating_sub(yielded);
        let thought = left_later.min(events[at].delay_ns);
        shares.network_ns += left_later - thought;
        if edge.evidence == Evidence::Timer {
            shares.timer_ns += thought;
        } else {
            shares.thinking_ns += thought;
            if let Some(process) = events[at].process {
                *shares.thinkers.entry(process).or_default() += thought;
            }
        }
        // News that was there before the loop began did not hold anything up: the loop's beginning did.
        let first_beat = carrier.filter(|beat| events[*beat].beat == Some(0));
        at = first_beat.unwrap_or(edge.on_event.index());
        if first_beat.is_some() {
            shares.network_ns += yielded.saturating_sub(recorded[at]);
        } else {
            shares.timer_ns += yielded.saturating_sub(news);
            shares.network_ns += news.saturating_sub(recorded[at]);
        }
        path.push(at);
    }
    (shares, path)
}
