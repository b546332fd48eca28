//! A schedule in GOAL, the text that LogGOPSim and ATLAHS take (`txt2bin`): ranks, each with calculations, sends, receives and
//! what has to end before what begins.
//!
//! It is what the end of one job waits for, so that the last rank to finish tells the job's time; what else was on the network is
//! not in it. A rank is a lane of a process: what a process did at the same time lies in several, for LogGOPSim lets an
//! operation begin before one of another CPU of its rank has ended for which it waits. Where the owner of a connection is
//! not known, all that is unknown on its host is one process.
//!
//! An event is a calculation as long as its delay, and then its send; where it is waited for is a receive with the event's
//! number as tag. News that waited for a beat of a timer waits for the beat that carried it in the recording: GOAL knows no timers.
//! What waits for an event of another lane, without a message between the two, gets a message of 0 bytes. Events that wait
//! for nothing of the job follow one another by the clock.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;

use causal::{JobGraph, Options, Place, RecordedBeats};
use trace::ids::{EventId, HostId, ProcessId};
use trace::rows::{EventKind, EventRow, On, Trace};

use super::file::{ExportError, one_line, write};
use crate::sums::add;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Goal {
    /// Lanes of processes.
    pub ranks: u64,
    /// Calculations.
    pub calculations: u64,
    /// Messages, or pieces of these, from a rank to another.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages of 0 bytes for an order that no message says.
    pub signals: u64,
    /// Events of the time of the job for which its end does not wait.
    pub left_out: u64,
}

/// Whose events a rank has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Owner {
    Process(ProcessId),
    UnknownOn(HostId),
    /// Marks of no known process.
    Nobody,
}

/// The lanes of a process: the rank of each, and when it is free again.
#[derive(Default)]
struct Lanes {
    ranks: Vec<(usize, u64)>,
    /// The lane of what nobody waits for.
    rest: Option<usize>,
    /// The last event that waits for nothing, and when it was.
    clock: Option<(EventId, u64)>,
}

/// The text of a rank.
struct Rank {
    owner: Owner,
    operations: Vec<String>,
    requirements: Vec<String>,
}

/// What has to end before something begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Before {
    event: EventId,
    /// Its delivery, and not only that it happened.
    is_delivery: bool,
}

struct Schedule<'t> {
    graph: JobGraph<'t>,
    beats: RecordedBeats,
    /// Which events the job's end waits for.
    is_needed: Vec<bool>,
    lanes: BTreeMap<Owner, Lanes>,
    ranks: Vec<Rank>,
    /// Where each event happens.
    happens: HashMap<EventId, usize>,
    /// Where a delivery is taken; others hear of it from there.
    taken: HashMap<EventId, usize>,
    signals: HashMap<(Before, usize), String>,
    written: Goal,
}

/// Writes what the end of a job waits for as a schedule, from its submission on; times are nanoseconds. `job` is its id; without
/// one the job that moved most bytes in its shuffle is taken.
///
/// # Errors
/// If there is no such job, or the file cannot be written.
pub fn goal(trace: &Trace, job: Option<&str>, out: &Path) -> Result<Goal, ExportError> {
    let mut schedule = Schedule::new(JobGraph::new(trace, job, Options::default())?);
    for event in schedule.needed() {
        schedule.add(event);
    }
    schedule.send_all();
    let Schedule { graph, ranks, written, .. } = schedule;
    write(out, |file| {
        writeln!(file, "// {}, recorded in {} ns", one_line(&graph.job.id), graph.finish_ns - graph.submit_ns)?;
        writeln!(file, "num_ranks {}", ranks.len())?;
        for (number, rank) in ranks.iter().enumerate() {
            writeln!(file, "\n// {}\nrank {number} {{", one_line(&name(trace, rank.owner)))?;
            for line in rank.operations.iter().chain(&rank.requirements) {
                writeln!(file, "{line}")?;
            }
            writeln!(file, "}}")?;
        }
        Ok(())
    })?;
    Ok(Goal { ranks: ranks.len() as u64, ..written })
}

impl<'t> Schedule<'t> {
    fn new(graph: JobGraph<'t>) -> Self {
        let mut schedule = Self {
            beats: RecordedBeats::new(&graph.trace.events),
            is_needed: vec![false; graph.trace.events.len()],
            lanes: BTreeMap::new(),
            ranks: Vec::new(),
            happens: HashMap::new(),
            taken: HashMap::new(),
            signals: HashMap::new(),
            written: Goal::default(),
            graph,
        };
        schedule.mark_needed();
        schedule.written.left_out = (schedule.graph.during().count() - schedule.needed().len()) as u64;
        schedule
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

    fn needed(&self) -> Vec<&'t EventRow> {
        self.graph.trace.events.iter().filter(|event| self.is_needed[event.event.index()]).collect()
    }

    /// What an event waits for that happened within the job, as it was recorded: news that waited for a beat wait for that.
    fn causes(&self, event: EventId) -> Vec<Before> {
        let cause = |number: &u32| {
            let row = self.graph.dependency(*number);
            // What was recorded later than its effect is no cause.
            (row.on_event < event).then_some(())?;
            let carrier = self.beats.carrier(&self.graph, row);
            let is_delivery = carrier.is_some() || row.on == On::Delivered;
            let event = carrier.unwrap_or(row.on_event);
            let is_sent = self.graph.event(event).kind == EventKind::Send;
            (self.graph.place(event) == Place::During).then_some(Before { event, is_delivery: is_delivery && is_sent })
        };
        self.graph.causes(event).iter().filter_map(cause).collect()
    }

    /// An event: what it calculates, and what has to end before.
    fn add(&mut self, event: &EventRow) {
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
        let rank = self.lane(owner, begin_ns, begin_ns.saturating_add(length_ns));
        self.happens.insert(event.event, rank);
        self.calculate(rank, &format!("c{}", event.event), length_ns);
        let clock = clock.map(|(event, _)| Before { event, is_delivery: false });
        for before in causes.into_iter().chain(clock) {
            let label = self.label(before, rank);
            self.ranks[rank].requirements.push(format!("c{} requires {label}", event.event));
        }
    }

    fn calculate(&mut self, rank: usize, label: &str, length_ns: u64) {
        self.ranks[rank].operations.push(format!("{label}: calc {length_ns}"));
        self.written.calculations += 1;
    }

    /// The first lane of a process that is free at a moment.
    fn lane(&mut self, owner: Owner, begin_ns: u64, end_ns: u64) -> usize {
        let new = self.ranks.len();
        let lanes = self.lanes.entry(owner).or_default();
        if let Some((rank, until_ns)) = lanes.ranks.iter_mut().find(|(_, until_ns)| *until_ns <= begin_ns) {
            *until_ns = end_ns;
            return *rank;
        }
        lanes.ranks.push((new, end_ns));
        self.ranks.push(Rank { owner, operations: Vec::new(), requirements: Vec::new() });
        new
    }

    /// The label in a rank of what has to end before: there itself, or the receive of a message that tells of it.
    fn label(&mut self, before: Before, rank: usize) -> String {
        let Before { event, is_delivery } = before;
        let from = self.happens.get(&event).copied().unwrap_or(rank);
        let at = if is_delivery { self.taken_at(event, rank) } else { from };
        if at == rank {
            return if is_delivery { format!("r{event}") } else { format!("c{event}") };
        }
        if let Some(known) = self.signals.get(&(before, rank)) {
            return known.clone();
        }
        // Tags of events are below their number.
        let tag = self.graph.trace.events.len() as u64 + self.written.signals;
        self.written.signals += 1;
        let on = if is_delivery { format!("r{event}") } else { format!("c{event}") };
        self.ranks[at].operations.push(format!("s{tag}: send 0b to {rank} tag {tag}"));
        self.ranks[at].requirements.push(format!("s{tag} requires {on}"));
        self.ranks[rank].operations.push(format!("r{tag}: recv 0b from {at} tag {tag}"));
        let label = format!("r{tag}");
        self.signals.insert((before, rank), label.clone());
        label
    }

    /// Where a delivery is taken: where it is waited for first, if that is in the process that gets it.
    fn taken_at(&mut self, event: EventId, rank: usize) -> usize {
        if let Some(known) = self.taken.get(&event) {
            return *known;
        }
        let to = receiver(self.graph.trace, self.graph.event(event)).filter(|to| *to != self.ranks[rank].owner);
        let at = to.map_or(rank, |to| self.rest(to));
        self.taken.insert(event, at);
        at
    }

    /// The sends of all events, to where they are waited for.
    fn send_all(&mut self) {
        for event in self.needed() {
            let (Some(to), Some(from)) = (receiver(self.graph.trace, event), self.happens.get(&event.event).copied())
            else {
                continue;
            };
            let to = self.taken.get(&event.event).copied().unwrap_or_else(|| self.rest(to));
            let (number, bytes) = (event.event, event.bytes);
            if to == from {
                // Nobody sends to himself: it takes as long as it took.
                let way_ns = event.recorded_delivered_ns.saturating_sub(event.recorded_ns);
                self.calculate(from, &format!("r{number}"), way_ns);
                self.ranks[from].requirements.push(format!("r{number} requires c{number}"));
                continue;
            }
            self.ranks[from].operations.push(format!("s{number}: send {bytes}b to {to} tag {number}"));
            self.ranks[from].requirements.push(format!("s{number} requires c{number}"));
            self.ranks[to].operations.push(format!("r{number}: recv {bytes}b from {from} tag {number}"));
            self.written.messages += 1;
            add(&mut self.written.bytes, bytes);
        }
    }

    /// Where a process gets what nobody waits for.
    fn rest(&mut self, owner: Owner) -> usize {
        let new = self.ranks.len();
        let rank = *self.lanes.entry(owner).or_default().rest.get_or_insert(new);
        if rank == new {
            self.ranks.push(Rank { owner, operations: Vec::new(), requirements: Vec::new() });
        }
        rank
    }
}

/// What a rank is called in a comment.
fn name(trace: &Trace, owner: Owner) -> String {
    let host = |host: HostId| trace.hosts.get(host.index()).map_or("", |host| host.name.as_str());
    match owner {
        Owner::Process(process) => trace
            .processes
            .get(process.index())
            .map_or_else(String::new, |row| format!("{} {} {}", row.role, row.pid, host(row.host))),
        Owner::UnknownOn(id) => format!("unknown {}", host(id)),
        Owner::Nobody => "unknown".to_owned(),
    }
}

/// Whose an event is.
fn sender(trace: &Trace, event: &EventRow) -> Owner {
    let connection = event.connection.and_then(|connection| trace.connections.get(connection.index()));
    let (process, host) = match connection {
        Some(row) if event.from_client => (row.client_process, Some(row.client_host)),
        Some(row) => (row.server_process, Some(row.server_host)),
        None => (None, None),
    };
    owner(event.process.or(process), host)
}

/// Who gets what an event sends.
fn receiver(trace: &Trace, event: &EventRow) -> Option<Owner> {
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
