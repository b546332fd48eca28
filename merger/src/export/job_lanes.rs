//! What the end of a job waits for, on lanes of processes: for exports whose programs do one thing after the other.
//!
//! What a process did at the same time lies in several lanes. Where the owner of a connection is not known, all that is
//! unknown on its host is one process. News that waited for a beat of a timer waits for the beat that carried it in the
//! recording. Events that wait for nothing of the job follow one another by the clock.

use std::collections::BTreeMap;

use causal::{JobGraph, JobPeriod, Options, RecordedBeats};
use trace::ids::{EventId, HostId, ProcessId};
use trace::rows::{EventKind, EventRow, On, Trace};

use super::file::ExportError;

/// Whose events a lane has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    Process(ProcessId),
    /// All processes of a host that are not known.
    UnknownOn(HostId),
    /// Marks of no known process.
    Nobody,
}

/// The lanes of a process: the number of each, and when it is free again.
#[derive(Default)]
struct Lanes {
    numbers: Vec<(usize, u64)>,
    /// The lane of what nobody waits for.
    rest: Option<usize>,
    /// The last event that waits for nothing, and when it was.
    clock: Option<(EventId, u64)>,
}

/// What has to end before something begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Before {
    pub event: EventId,
    /// Its delivery, and not only that it happened.
    pub is_delivery: bool,
}

/// An event on its lane.
pub(super) struct Placed {
    /// Number of the lane.
    pub lane: usize,
    /// How long it computes before it happens.
    pub length_ns: u64,
    /// What has to end before.
    pub after: Vec<Before>,
}

/// The lanes of a job's processes.
pub(super) struct JobLanes<'t> {
    pub graph: JobGraph<'t>,
    beats: RecordedBeats,
    /// Which events the job's end waits for.
    is_needed: Vec<bool>,
    lanes: BTreeMap<Owner, Lanes>,
    /// Whose each lane is.
    pub owners: Vec<Owner>,
}

impl<'t> JobLanes<'t> {
    /// The lanes of a job, given by its id; without one the job that moved most bytes in its shuffle is taken.
    ///
    /// # Errors
    /// If there is no such job.
    pub fn new(trace: &'t Trace, job: Option<&str>) -> Result<Self, ExportError> {
        let graph = JobGraph::new(trace, job, Options::default())?;
        let mut lanes = Self {
            beats: RecordedBeats::new(&graph.trace.events),
            is_needed: vec![false; graph.trace.events.len()],
            lanes: BTreeMap::new(),
            owners: Vec::new(),
            graph,
        };
        lanes.mark_needed();
        Ok(lanes)
    }

    /// Events of the time of the job for which its end does not wait.
    pub fn left_out(&self) -> u64 {
        (self.graph.during().count() - self.needed().len()) as u64
    }

    /// Follows the job's end back to its submission.
    fn mark_needed(&mut self) {
        let mut open = vec![self.graph.finish];
        self.is_needed[self.graph.finish.index()] = true;
        while let Some(event) = open.pop() {
            for before in self.causes(event) {
                if !std::mem::replace(&mut self.is_needed[before.event.index()], true) {
                    open.push(before.event);
                }
            }
        }
    }

    /// The events that the job's end waits for, by their number.
    pub fn needed(&self) -> Vec<&'t EventRow> {
        self.graph.trace.events.iter().filter(|event| self.is_needed[event.event.index()]).collect()
    }

    /// What an event waits for that happened within the job, as it was recorded: news that waited for a beat wait for that.
    pub fn causes(&self, event: EventId) -> Vec<Before> {
        let cause = |number: &u32| {
            let row = self.graph.dependency(*number);
            // What was recorded later than its effect is no cause.
            (row.on_event < event).then_some(())?;
            let carrier = self.beats.carrier(&self.graph, row);
            let is_delivery = carrier.is_some() || row.on == On::Delivered;
            let event = carrier.unwrap_or(row.on_event);
            let is_sent = self.graph.event(event).kind == EventKind::Send;
            (self.graph.period(event) == JobPeriod::During)
                .then_some(Before { event, is_delivery: is_delivery && is_sent })
        };
        self.graph.causes(event).iter().filter_map(cause).collect()
    }

    /// Puts an event on a lane of whose it is; events come by their number.
    pub fn place(&mut self, event: &EventRow) -> Placed {
        let owner = sender(self.graph.trace, event);
        let causes = self.causes(event.event);
        let (begin_ns, length_ns, clock) = if causes.is_empty() {
            let lanes = self.lanes.entry(owner).or_default();
            let clock = lanes.clock.replace((event.event, event.recorded_ns));
            let since_ns = clock.map_or(self.graph.submit_ns, |(_, at_ns)| at_ns);
            (since_ns, event.recorded_ns.saturating_sub(since_ns), clock)
        } else {
            (event.recorded_ns.saturating_sub(event.delay_ns), event.delay_ns, None)
        };
        let lane = self.lane(owner, begin_ns, begin_ns.saturating_add(length_ns));
        let clock = clock.map(|(event, _)| Before { event, is_delivery: false });
        Placed { lane, length_ns, after: causes.into_iter().chain(clock).collect() }
    }

    /// The first lane of a process that is free at a moment.
    fn lane(&mut self, owner: Owner, begin_ns: u64, end_ns: u64) -> usize {
        let new = self.owners.len();
        let lanes = self.lanes.entry(owner).or_default();
        if let Some((number, until_ns)) = lanes.numbers.iter_mut().find(|(_, until_ns)| *until_ns <= begin_ns) {
            *until_ns = end_ns;
            return *number;
        }
        lanes.numbers.push((new, end_ns));
        self.owners.push(owner);
        new
    }

    /// Where a process gets what nobody waits for.
    pub fn rest(&mut self, owner: Owner) -> usize {
        let new = self.owners.len();
        let number = *self.lanes.entry(owner).or_default().rest.get_or_insert(new);
        if number == new {
            self.owners.push(owner);
        }
        number
    }
}

/// Whose an event is.
pub(super) fn sender(trace: &Trace, event: &EventRow) -> Owner {
    let connection = event.connection.and_then(|connection| trace.connections.get(connection.index()));
    let (process, host) = match connection {
        Some(row) if event.from_client => (row.client_process, Some(row.client_host)),
        Some(row) => (row.server_process, Some(row.server_host)),
        None => (None, None),
    };
    owner(event.process.or(process), host)
}

/// Who gets what an event sends.
pub(super) fn receiver(trace: &Trace, event: &EventRow) -> Option<Owner> {
    let row = trace.connections.get(event.connection?.index()).filter(|_| event.kind == EventKind::Send)?;
    Some(if event.from_client {
        owner(row.server_process, Some(row.server_host))
    } else {
        owner(row.client_process, Some(row.client_host))
    })
}

fn owner(process: Option<ProcessId>, host: Option<HostId>) -> Owner {
    match (process, host) {
        (Some(process), _) => Owner::Process(process),
        (None, Some(host)) => Owner::UnknownOn(host),
        (None, None) => Owner::Nobody,
    }
}
