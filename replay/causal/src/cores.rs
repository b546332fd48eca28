//! Processors for which tasks compete: processor sharing, with what the recording shows of it taken out first.
//!
//! While `n` processes of tasks compute for `c` processors, each gets on at a rate of `min(1, c / n)`. A process counts once,
//! however many of its events are being computed. How much work an event is, is read from the recording: its delay there, at the
//! rates of those that computed at the same time. So on the recorded network every delay is the recorded one, to the picosecond.
//!
//! What the network itself takes of the processors ([`NetworkWork`](super::options::NetworkWork)) is one more process, which has work
//! from the delivery of bytes on, until it is done.

use std::collections::{BTreeMap, BTreeSet};

use trace::ids::{EventId, HostId, ProcessId};
use trace::rows::{EventKind, EventRow, StepKind};

use super::graph::{JobGraph, JobPeriod};
use super::options::{Causality, CoreSharing, NetworkWork};
use super::recorded::recorded;
use super::time::JobTime;

/// Work of a processor in a picosecond. So many processes can share one without work being lost in rounding.
const UNIT: u128 = 1 << 20;
/// Femtoseconds of a picosecond.
const FS_OF_PS: u128 = 1_000;

/// The processors of one host, or of all.
#[derive(Clone, Debug)]
struct Processors {
    cores: u128,
    at: JobTime,
    /// What each process would have done that computed all the time.
    progress: u128,
    /// Events of each process that computes.
    computing: BTreeMap<ProcessId, u32>,
    /// The progress at which the network's work on all that was delivered is done.
    network_done: u128,
}

impl Processors {
    fn new(cores: u32) -> Self {
        Self {
            cores: u128::from(cores.max(1)),
            at: JobTime::SUBMISSION,
            progress: 0,
            computing: BTreeMap::new(),
            network_done: 0,
        }
    }

    /// A process gets so many units on in so many picoseconds, while the network has work or has none.
    fn rate(&self, with_network: bool) -> (u128, u128) {
        let processes = self.computing.len() as u128 + u128::from(with_network);
        if processes <= self.cores { (UNIT, 1) } else { (self.cores * UNIT, processes) }
    }

    /// What a process gets on in a time.
    fn gain(&self, ps: u64, with_network: bool) -> u128 {
        let (units, of_ps) = self.rate(with_network);
        u128::from(ps) * units / of_ps
    }

    /// How long a process takes to get so much on, picoseconds.
    fn takes_ps(&self, units: u128, with_network: bool) -> u64 {
        let (rate, of_ps) = self.rate(with_network);
        u64::try_from((units * of_ps).div_ceil(rate)).unwrap_or(u64::MAX)
    }

    /// When the network will have done its work, and the progress then; `None` if it has none.
    fn network_idle(&self) -> Option<(JobTime, u128)> {
        let left = self.network_done.checked_sub(self.progress).filter(|left| *left > 0)?;
        let ps = self.takes_ps(left, true);
        Some((self.at.plus_ps(ps), self.progress + self.gain(ps, true)))
    }

    fn advance(&mut self, to: JobTime) {
        if let Some(idle) = self.network_idle().filter(|(idle, _)| *idle <= to) {
            (self.at, self.progress) = idle;
        }
        self.progress += self.gain(to.since_ps(self.at), self.network_done > self.progress);
        self.at = self.at.max(to);
    }

    /// When the progress is reached, if nothing begins or ends before.
    fn reaches(&self, progress: u128) -> JobTime {
        let (at, from, with_network) = match self.network_idle() {
            Some((at, idle)) if idle < progress => (at, idle, false),
            idle => (self.at, self.progress, idle.is_some()),
        };
        at.plus_ps(self.takes_ps(progress.saturating_sub(from), with_network))
    }

    /// The network gets so much more to do.
    fn add_network_work(&mut self, at: JobTime, units: u128) {
        self.advance(at);
        self.network_done = self.network_done.max(self.progress) + units;
    }

    fn begin(&mut self, process: ProcessId) {
        *self.computing.entry(process).or_default() += 1;
    }

    fn end(&mut self, process: ProcessId) {
        if let Some(events) = self.computing.get_mut(&process) {
            *events -= 1;
            if *events == 0 {
                self.computing.remove(&process);
            }
        }
    }
}

/// What an event has to compute.
#[derive(Clone, Copy, Debug)]
struct Work {
    process: ProcessId,
    /// Which processors it needs.
    place: usize,
    /// Units of work.
    units: u128,
    /// How long it takes alone, picoseconds.
    alone_ps: u64,
}

/// All that tasks compute.
#[derive(Clone, Debug)]
pub(crate) struct Computing {
    sharing: CoreSharing,
    work: BTreeMap<EventId, Work>,
    places: Vec<Processors>,
    /// By place: the progress at which each event is done.
    under_way: Vec<BTreeSet<(u128, EventId)>>,
    /// When the next event of each place is done.
    next: BTreeSet<(JobTime, usize)>,
    next_of: Vec<Option<JobTime>>,
}

impl Computing {
    /// The work of a job's events; `None` where tasks do not compete.
    pub fn new(graph: &JobGraph) -> Option<Self> {
        let sharing = graph.options.cores.filter(|_| graph.options.causality == Causality::Trace)?;
        let places = sharing.places(graph);
        let processors = vec![Processors::new(sharing.cores); places];
        Some(Self {
            sharing,
            work: work(graph, sharing, &processors),
            under_way: vec![BTreeSet::new(); places],
            next_of: vec![None; places],
            next: BTreeSet::new(),
            places: processors,
        })
    }

    /// Lets an event be computed whose causes had happened at `caused`. False if there is nothing to compute.
    pub fn begin(&mut self, event: EventId, caused: JobTime, now: JobTime) -> bool {
        let Some(work) = self.work.get(&event).copied() else { return false };
        let passed_ps = now.since_ps(caused.max(JobTime::SUBMISSION)).min(work.alone_ps);
        let units = part(work.units, work.alone_ps - passed_ps, work.alone_ps);
        if units == 0 {
            return false;
        }
        let processors = &mut self.places[work.place];
        processors.advance(now);
        processors.begin(work.process);
        self.under_way[work.place].insert((processors.progress + units, event));
        self.plan(work.place);
        true
    }

    /// Bytes have come from one host to another, which takes processors of both.
    pub fn delivered(&mut self, ends: (HostId, HostId), bytes: u64, now: JobTime) {
        for (place, units) in self.sharing.network_work(ends, bytes, self.sharing.network.replayed_fs) {
            self.places[place].add_network_work(now, units);
            self.plan(place);
        }
    }

    /// When the next event is done.
    pub fn next(&self) -> Option<JobTime> {
        self.next.first().map(|(at, _)| *at)
    }

    /// The events that are done at a time, which is not later than the next.
    pub fn done(&mut self, at: JobTime) -> Vec<EventId> {
        let mut done = Vec::new();
        while let Some((_, place)) = self.next.first().copied().filter(|(next, _)| *next <= at) {
            let processors = &mut self.places[place];
            processors.advance(at);
            while let Some((_, event)) =
                self.under_way[place].first().copied().filter(|(progress, _)| *progress <= processors.progress)
            {
                self.under_way[place].pop_first();
                if let Some(work) = self.work.get(&event) {
                    processors.end(work.process);
                }
                done.push(event);
            }
            self.plan(place);
        }
        done
    }

    fn plan(&mut self, place: usize) {
        let next = self.under_way[place].first().map(|(progress, _)| self.places[place].reaches(*progress));
        if let Some(before) = self.next_of[place].take() {
            self.next.remove(&(before, place));
        }
        self.next_of[place] = next;
        self.next.extend(next.map(|next| (next, place)));
    }
}

/// An event that a task's process computed in the recording, or its end.
struct Edge {
    at: JobTime,
    is_end: bool,
    event: EventId,
}

/// Ends and beginnings of what was computed, in the order of time, and what of it is known: where, and for how long.
fn computed(graph: &JobGraph, sharing: CoreSharing) -> (Vec<Edge>, BTreeMap<EventId, Work>) {
    let outcome = recorded(graph);
    let mut edges: Vec<Edge> = Vec::new();
    let mut work: BTreeMap<EventId, Work> = BTreeMap::new();
    for row in graph.during().filter(|row| graph.period(row.event) == JobPeriod::During) {
        let Some(process) = graph.computing(row.event) else { continue };
        let (caused, long_ps) = (outcome.event(row.event).caused(), graph.recorded_delay_ps(row.event));
        let (from, to) = (caused.max(JobTime::SUBMISSION), caused.plus_ps(long_ps));
        let alone_ps = to.since_ps(from);
        if alone_ps > 0 {
            let host = graph.trace.processes[process.index()].host;
            let place = sharing.place(host);
            work.insert(row.event, Work { process, place, units: 0, alone_ps });
            edges.push(Edge { at: from, is_end: false, event: row.event });
            edges.push(Edge { at: to, is_end: true, event: row.event });
        }
    }
    edges.sort_unstable_by_key(|edge| (edge.at, edge.is_end, edge.event));
    (edges, work)
}

/// What the network had to do in the recording: when, on which processors, and how much.
fn recorded_network_work(graph: &JobGraph, sharing: CoreSharing) -> Vec<(JobTime, usize, u128)> {
    if sharing.network == NetworkWork::default() {
        return Vec::new();
    }
    let of_event = |row: &EventRow| {
        let at = graph.job_time(row.recorded_delivered_ns);
        let arrives = match graph.period(row.event) {
            JobPeriod::Before => at > JobTime::SUBMISSION,
            JobPeriod::During => true,
            JobPeriod::After => false,
        };
        let ends = graph.ends(row).filter(|_| arrives && row.kind == EventKind::Send);
        let work = ends.map(|ends| sharing.network_work(ends, row.bytes, sharing.network.recorded_fs));
        work.into_iter().flatten().map(move |(place, units)| (at, place, units))
    };
    let mut all: Vec<_> = graph.trace.events.iter().flat_map(of_event).collect();
    all.sort_unstable();
    all
}

/// How much each event is to compute, from how long it took beside all others of the recording.
fn work(graph: &JobGraph, sharing: CoreSharing, processors: &[Processors]) -> BTreeMap<EventId, Work> {
    let (edges, mut work) = computed(graph, sharing);
    let mut processors = processors.to_vec();
    let mut network = recorded_network_work(graph, sharing).into_iter().peekable();
    for edge in edges {
        while let Some((at, place, units)) = network.next_if(|(at, ..)| *at <= edge.at) {
            processors[place].add_network_work(at, units);
        }
        let Some(work) = work.get_mut(&edge.event) else { continue };
        let processors = &mut processors[work.place];
        processors.advance(edge.at);
        if edge.is_end {
            processors.end(work.process);
            work.units = processors.progress - work.units;
        } else {
            processors.begin(work.process);
            work.units = processors.progress;
        }
    }
    for (event, work) in &mut work {
        let scaled = |value| part(value, graph.delay_ps(*event), graph.recorded_delay_ps(*event));
        work.units = scaled(work.units);
        work.alone_ps = u64::try_from(scaled(u128::from(work.alone_ps))).unwrap_or(u64::MAX);
    }
    work.retain(|_, work| work.units > 0 && work.alone_ps > 0);
    work
}

/// Ends and beginnings of the job's tasks' work on what they read, as agents measured it: also where no event waits for that work.
fn consumed(graph: &JobGraph) -> impl Iterator<Item = (JobTime, bool, ProcessId)> {
    let tasks: BTreeSet<ProcessId> = graph.tasks().filter_map(|task| task.process).collect();
    let (from, to) = (graph.job.submit_ns, graph.job.finish_ns);
    let steps = graph.trace.steps.iter().filter(move |step| {
        let is_during = step.begin_ns >= from && step.end_ns <= to;
        step.kind == StepKind::Consume
            && step.work_ns > 0
            && step.begin_ns < step.end_ns
            && is_during
            && tasks.contains(&step.process)
    });
    steps.flat_map(|step| {
        let begin = step.end_ns.saturating_sub(step.work_ns).max(step.begin_ns);
        [(graph.job_time(begin), false, step.process), (graph.job_time(step.end_ns), true, step.process)]
    })
}

/// What a process that computed got of the processors in the recording, over time; what the network took is not looked at.
#[derive(Clone, Debug)]
pub struct RecordedCores {
    sharing: CoreSharing,
    /// By place: what a process that computes all the time has done at a time. Straight lines lie between the points.
    progress: Vec<Vec<(JobTime, u128)>>,
}

impl RecordedCores {
    /// The processors of a recorded job.
    #[must_use]
    pub fn new(graph: &JobGraph, sharing: CoreSharing) -> Self {
        let places = sharing.places(graph);
        let mut processors = vec![Processors::new(sharing.cores); places];
        let mut progress = vec![vec![(JobTime::SUBMISSION, 0)]; places];
        let (edges, work) = computed(graph, sharing);
        let of_events =
            edges.into_iter().filter_map(|edge| Some((edge.at, edge.is_end, work.get(&edge.event)?.process)));
        let mut all: Vec<(JobTime, bool, ProcessId)> = of_events.chain(consumed(graph)).collect();
        all.sort_unstable();
        for (at, is_end, process) in all {
            let place = sharing.place(graph.trace.processes[process.index()].host);
            let processors = &mut processors[place];
            processors.advance(at);
            progress[place].push((processors.at, processors.progress));
            if is_end {
                processors.end(process);
            } else {
                processors.begin(process);
            }
        }
        Self { sharing, progress }
    }

    /// What a process on a host that computed between two times would have taken for it alone, picoseconds.
    #[must_use]
    pub fn alone_ps(&self, host: HostId, from: JobTime, to: JobTime) -> u64 {
        let Some(progress) = self.progress.get(self.sharing.place(host)) else { return to.since_ps(from) };
        let at = |time: JobTime| {
            let next = progress.partition_point(|(at, _)| *at < time);
            let (before, done) = progress[next.saturating_sub(1)];
            let passed_ps = u128::from(time.since_ps(before));
            match progress.get(next).filter(|(after, _)| *after > before) {
                Some((after, more)) => done + (more - done) * passed_ps / u128::from(after.since_ps(before)),
                None => done + passed_ps * UNIT,
            }
        };
        u64::try_from((at(to) - at(from).min(at(to))) / UNIT).unwrap_or(u64::MAX)
    }
}

impl CoreSharing {
    /// Which of the processors a host has.
    const fn place(self, host: HostId) -> usize {
        if self.shared { 0 } else { host.index() }
    }

    /// What bytes from one host to another take, by place: half at each end, nothing within a host.
    fn network_work(
        self,
        (source, destination): (HostId, HostId),
        bytes: u64,
        fs: u64,
    ) -> impl Iterator<Item = (usize, u128)> {
        let units = u128::from(bytes) * u128::from(fs) * UNIT / (2 * FS_OF_PS);
        let ends = [source, destination].map(|host| (self.place(host), units));
        ends.into_iter().filter(move |(_, units)| source != destination && *units > 0)
    }

    /// How many processors there are, each of a host or one of all.
    fn places(self, graph: &JobGraph) -> usize {
        if self.shared { 1 } else { graph.trace.hosts.len().max(1) }
    }
}

/// `value * of / whole`; to the unit where both are the same.
fn part(value: u128, of: u64, whole: u64) -> u128 {
    if of == whole || whole == 0 {
        return value;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is scaled is an estimate: 52 bits are enough"
    )]
    let part = (value as f64 * (of as f64 / whole as f64)).round() as u128;
    part
}
