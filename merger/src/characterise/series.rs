//! Payload by time, and by phase of a job.

use std::collections::BTreeMap;

use trace::ids::JobId;
use trace::rows::{JobRow, MessageRow, TaskKind, Trace};

use super::plane::{Bytes, Plane};
use super::tables::{PhaseRow, SeriesRow};
use super::view::View;

/// Intervals of a series at most.
const MAX_INTERVALS: u64 = 300;
/// The shortest interval, nanoseconds.
const MIN_INTERVAL_NS: u64 = 10_000_000;

/// Intervals of equal, round length that cover a trace's messages.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    begin_ns: u64,
    length_ns: u64,
    number: u64,
}

impl Intervals {
    /// Those of a trace; none where it has no message.
    #[must_use]
    pub fn of(view: &View<'_>) -> Self {
        let begin_ns = view.messages().map(|(message, _)| message.sent_ns).min().unwrap_or(0);
        let end_ns = view.messages().map(|(message, _)| message.sent_end_ns.max(message.sent_ns)).max();
        let Some(end_ns) = end_ns else { return Self { begin_ns, length_ns: MIN_INTERVAL_NS, number: 0 } };
        let span_ns = end_ns.saturating_sub(begin_ns).saturating_add(1);
        let least_ns = span_ns.div_ceil(MAX_INTERVALS).max(MIN_INTERVAL_NS);
        let length_ns = round(least_ns);
        Self { begin_ns, length_ns, number: span_ns.div_ceil(length_ns) }
    }

    /// How many.
    #[must_use]
    pub fn len(self) -> usize {
        usize::try_from(self.number).unwrap_or(0)
    }

    /// Seconds of one.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.length_ns as f64 / 1e9
    }

    fn edge(self, number: u64) -> u64 {
        self.begin_ns.saturating_add(self.length_ns.saturating_mul(number))
    }

    /// Parts of a message's bytes by interval, spread evenly from its first byte to its last.
    pub fn spread(self, message: &MessageRow) -> impl Iterator<Item = (usize, u64)> {
        let (from_ns, to_ns) = (message.sent_ns, message.sent_end_ns.max(message.sent_ns));
        let number = move |at_ns: u64| at_ns.saturating_sub(self.begin_ns) / self.length_ns;
        let bytes = message.bytes;
        // Bytes before a moment.
        let until = move |at_ns: u64| {
            let part = u128::from(at_ns.clamp(from_ns, to_ns) - from_ns);
            let whole = u128::from((to_ns - from_ns).max(1));
            u64::try_from(u128::from(bytes) * part / whole).unwrap_or(bytes)
        };
        let last = number(to_ns);
        (number(from_ns)..=last).filter_map(move |interval| {
            let end = if interval == last { bytes } else { until(self.edge(interval + 1)) };
            let begin = if interval == number(from_ns) { 0 } else { until(self.edge(interval)) };
            Some((usize::try_from(interval).ok()?, end - begin))
        })
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [1, 2, 5] {
            let length = power.saturating_mul(step);
            if length >= least {
                return length;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// All payload by time.
#[must_use]
pub fn series(view: &View<'_>, intervals: Intervals) -> Vec<SeriesRow> {
    let mut sums = vec![Bytes::default(); intervals.len()];
    for (message, _) in view.messages() {
        for (interval, bytes) in intervals.spread(message) {
            if let Some(sum) = sums.get_mut(interval) {
                sum.add(Plane::of(message.kind), bytes);
            }
        }
    }
    (0_u64..)
        .zip(sums)
        .map(|(number, sum)| SeriesRow {
            begin_ns: intervals.edge(number),
            end_ns: intervals.edge(number + 1),
            control_bytes: sum.control,
            data_bytes: sum.data,
            unknown_bytes: sum.unknown,
        })
        .collect()
}

/// The phases of a job, one after the other, nanoseconds.
struct Phases<'a> {
    job: &'a JobRow,
    /// Name, and its end.
    ends: [(&'static str, u64); 5],
}

impl<'a> Phases<'a> {
    fn of(trace: &'a Trace, job: &'a JobRow) -> Self {
        let tasks = || trace.tasks.iter().filter(|task| task.job == job.job);
        let maps = || tasks().filter(|task| task.kind == TaskKind::Map);
        let ends = [
            ("setup", maps().map(|task| task.start_ns).min()),
            ("map", maps().map(|task| task.finish_ns).max()),
            ("shuffle", tasks().filter_map(|task| task.shuffle_end_ns).max()),
            ("reduce", tasks().map(|task| task.finish_ns).max()),
            ("commit", Some(job.finish_ns)),
        ];
        let mut last_ns = job.submit_ns;
        // A phase that a job does not have takes no time; none ends after the job.
        let ends = ends.map(|(name, end_ns)| {
            last_ns = end_ns.unwrap_or(last_ns).clamp(last_ns, job.finish_ns.max(last_ns));
            (name, last_ns)
        });
        Self { job, ends }
    }

    /// The phase of a moment.
    fn at(&self, at_ns: u64) -> Option<usize> {
        (at_ns >= self.job.submit_ns).then(|| self.ends.iter().position(|(_, end_ns)| at_ns < *end_ns)).flatten()
    }
}

/// What was sent in each phase of each job.
#[must_use]
pub fn phases(view: &View<'_>) -> Vec<PhaseRow> {
    let mut jobs: Vec<&JobRow> = view.trace.jobs.iter().collect();
    jobs.sort_by_key(|job| (job.submit_ns, job.job));
    let jobs: Vec<Phases<'_>> = jobs.into_iter().map(|job| Phases::of(view.trace, job)).collect();
    let mut sums: BTreeMap<Option<(JobId, usize)>, (u64, Bytes)> = BTreeMap::new();
    for (message, _) in view.messages() {
        let phase = jobs.iter().find_map(|job| Some((job.job.job, job.at(message.sent_ns)?)));
        let (messages, bytes) = sums.entry(phase).or_default();
        *messages += 1;
        bytes.add(Plane::of(message.kind), message.bytes);
    }
    let mut row = |key: Option<(JobId, usize)>, job: &str, phase: &str, seconds: f64| {
        let (messages, bytes) = sums.remove(&key).unwrap_or_default();
        PhaseRow {
            job: job.to_owned(),
            phase: phase.to_owned(),
            seconds,
            messages,
            control_bytes: bytes.control,
            data_bytes: bytes.data,
            unknown_bytes: bytes.unknown,
        }
    };
    let mut rows = Vec::new();
    for job in &jobs {
        let mut from_ns = job.job.submit_ns;
        for (number, (name, end_ns)) in job.ends.iter().enumerate() {
            let seconds = end_ns.saturating_sub(from_ns) as f64 / 1e9;
            let row = row(Some((job.job.job, number)), &job.job.id, name, seconds);
            // Such as the shuffle of a job without reduces.
            if *end_ns > from_ns || row.messages > 0 {
                rows.push(row);
            }
            from_ns = *end_ns;
        }
    }
    let manifest = &view.trace.manifest;
    let outside_ns = outside(&jobs, manifest.start_ns, manifest.end_ns);
    rows.push(row(None, "", "outside", outside_ns as f64 / 1e9));
    rows
}

/// How long no job ran; jobs in the order of their submission.
fn outside(jobs: &[Phases<'_>], start_ns: u64, end_ns: u64) -> u64 {
    let (mut outside_ns, mut until_ns) = (0_u64, start_ns);
    for Phases { job, .. } in jobs {
        outside_ns = outside_ns.saturating_add(job.submit_ns.min(end_ns).saturating_sub(until_ns));
        until_ns = until_ns.max(job.finish_ns);
    }
    outside_ns.saturating_add(end_ns.saturating_sub(until_ns))
}

#[cfg(test)]
mod tests {
    use super::{Intervals, round};
    use trace::ids::{ConnectionId, MessageId};
    use trace::rows::{MessageKind, MessageRow};

    fn message(sent_ns: u64, sent_end_ns: u64, bytes: u64) -> MessageRow {
        MessageRow {
            message: MessageId(0),
            connection: ConnectionId(0),
            from_client: true,
            kind: MessageKind::BlockData,
            name: String::new(),
            call: 0,
            offset: 0,
            bytes,
            app_bytes: bytes,
            sent_ns,
            sent_end_ns,
            delivered_ns: sent_end_ns,
            block: None,
            attempt: None,
            map: None,
            reduce: None,
            hop: None,
            unread_bytes: None,
            evidence: String::new(),
        }
    }

    fn spread(from_ns: u64, to_ns: u64, bytes: u64) -> Vec<(usize, u64)> {
        let intervals = Intervals { begin_ns: 1000, length_ns: 100, number: 10 };
        intervals.spread(&message(from_ns, to_ns, bytes)).collect()
    }

    #[test]
    fn bytes_are_spread_evenly_and_none_is_lost() {
        assert_eq!(spread(1000, 1000, 7), [(0, 7)]);
        assert_eq!(spread(1150, 1350, 200), [(1, 50), (2, 100), (3, 50)]);
        assert_eq!(spread(1150, 1350, 1), [(1, 0), (2, 0), (3, 1)]);
        for (from, to, bytes) in [(1003, 1999, 12_345), (1000, 1100, 3), (1099, 1101, u64::MAX), (1500, 1501, 9)] {
            let sum: u128 = spread(from, to, bytes).into_iter().map(|(_, part)| u128::from(part)).sum();
            assert_eq!(sum, u128::from(bytes), "{from} to {to}");
        }
    }

    #[test]
    fn intervals_are_of_round_length() {
        assert_eq!([1, 2, 3, 10, 11, 21, 51, 999].map(round), [1, 2, 5, 10, 20, 50, 100, 1000]);
        assert_eq!(round(u64::MAX), u64::MAX);
    }
}
