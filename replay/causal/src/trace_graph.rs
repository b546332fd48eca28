//! The causal graph of a trace, checked and indexed once for all of its jobs.

use trace::ids::EventId;
use trace::rows::{EventKind, JobRow, Trace};

use super::check;
use super::error::CausalError;

/// Neighbours by row number: for each row a list of numbers.
#[derive(Clone, Debug, Default)]
struct Adjacency {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Adjacency {
    /// Groups the numbers of `keys` by key; numbers stay in order.
    fn of(keys: impl Iterator<Item = usize> + Clone, rows: usize) -> Self {
        let mut starts = vec![0u32; rows + 1];
        for key in keys.clone() {
            starts[key + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut items = vec![0u32; starts[rows] as usize];
        for (number, key) in (0u32..).zip(keys) {
            items[next[key] as usize] = number;
            next[key] += 1;
        }
        Self { starts, items }
    }

    fn of_row(&self, row: usize) -> &[u32] {
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// A mark of a submission or an end.
#[derive(Debug)]
struct JobMark {
    event: EventId,
    /// When it was recorded, nanoseconds since the epoch.
    recorded_ns: u64,
    /// How far it is from that of any job at least, nanoseconds.
    nearest_ns: u64,
}

/// All events of a trace with their dependencies in both directions.
#[derive(Debug)]
pub struct TraceGraph<'t> {
    /// The trace.
    pub trace: &'t Trace,
    causes: Adjacency,
    waiters: Adjacency,
    submissions: Vec<JobMark>,
    finishes: Vec<JobMark>,
    on_later_events: Vec<u32>,
}

impl<'t> TraceGraph<'t> {
    /// Of a trace.
    ///
    /// # Errors
    /// If a row refers to one that is not there.
    pub fn new(trace: &'t Trace) -> Result<Self, CausalError> {
        check::references(trace)?;
        let rows = trace.events.len();
        let recorded_ns = |event: EventId| trace.events[event.index()].recorded_ns;
        let numbered = (0u32..).zip(&trace.dependencies);
        let later = numbered.filter(|(_, row)| recorded_ns(row.on_event) > recorded_ns(row.event));
        Ok(Self {
            trace,
            causes: Adjacency::of(trace.dependencies.iter().map(|row| row.event.index()), rows),
            waiters: Adjacency::of(trace.dependencies.iter().map(|row| row.on_event.index()), rows),
            submissions: marks(trace, "job.submit", |job| job.submit_ns),
            finishes: marks(trace, "job.finish", |job| job.finish_ns),
            on_later_events: later.map(|(number, _)| number).collect(),
        })
    }

    /// Numbers of the dependencies of an event.
    #[must_use]
    pub fn causes(&self, event: EventId) -> &[u32] {
        self.causes.of_row(event.index())
    }

    /// Numbers of the dependencies on an event.
    #[must_use]
    pub fn waiters(&self, event: EventId) -> &[u32] {
        self.waiters.of_row(event.index())
    }

    /// Numbers of the dependencies on what was recorded later than the event that waits.
    pub(crate) fn on_later_events(&self) -> impl Iterator<Item = usize> + '_ {
        self.on_later_events.iter().map(|number| *number as usize)
    }

    /// The mark of a job's submission.
    pub(crate) fn submission_of(&self, job: &JobRow) -> Option<EventId> {
        mark_near(&self.submissions, job.submit_ns)
    }

    /// The mark of a job's end.
    pub(crate) fn finish_of(&self, job: &JobRow) -> Option<EventId> {
        mark_near(&self.finishes, job.finish_ns)
    }
}

/// The marks of this name; `of` is the time of which a job's tells.
fn marks(trace: &Trace, name: &str, of: impl Fn(&JobRow) -> u64) -> Vec<JobMark> {
    let mut times: Vec<u64> = trace.jobs.iter().map(of).collect();
    times.sort_unstable();
    let named = trace.events.iter().filter(|event| event.kind == EventKind::Mark && event.name == name);
    let mark = named.map(|event| {
        let recorded_ns = event.recorded_ns;
        let behind = times.partition_point(|time| *time < recorded_ns);
        let around = &times[behind.saturating_sub(1)..times.len().min(behind + 1)];
        let nearest_ns = around.iter().map(|time| time.abs_diff(recorded_ns)).min().unwrap_or(u64::MAX);
        JobMark { event: event.event, recorded_ns, nearest_ns }
    });
    mark.collect()
}

/// The mark nearest to `at_ns`, a job's time, that is nearer to no other job; the first of several.
fn mark_near(marks: &[JobMark], at_ns: u64) -> Option<EventId> {
    let distance = |mark: &&JobMark| mark.recorded_ns.abs_diff(at_ns);
    let own = marks.iter().filter(|mark| distance(mark) <= mark.nearest_ns);
    own.min_by_key(distance).map(|mark| mark.event)
}
