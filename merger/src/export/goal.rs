//! A schedule in GOAL, the text that LogGOPSim and ATLAHS take (`txt2bin`): ranks, each with calculations, sends, receives and
//! what has to end before what begins.
//!
//! It is what the end of one job waits for, so that the last rank to finish tells the job's time; what else was on the network is
//! not in it. A rank is a lane of a process, for LogGOPSim lets an operation begin before one of another CPU of its rank has
//! ended for which it waits.
//!
//! An event is a calculation as long as its delay, and then its send; where it is waited for is a receive with the event's
//! number as tag. What waits for an event of another lane, without a message between the two, gets a message of 0 bytes.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;

use trace::ids::{EventId, HostId};
use trace::rows::{EventRow, Trace};

use super::file::{ExportError, one_line, write};
use super::job_lanes::{Before, JobLanes, Owner, Placed, receiver};
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

/// The text of a rank.
#[derive(Default)]
struct Rank {
    operations: Vec<String>,
    requirements: Vec<String>,
}

struct Schedule<'t> {
    lanes: JobLanes<'t>,
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
    let mut schedule = Schedule::new(JobLanes::new(trace, job)?);
    for event in schedule.lanes.needed() {
        schedule.add(event);
    }
    schedule.send_all();
    let Schedule { lanes: JobLanes { graph, owners, .. }, ranks, written, .. } = schedule;
    write(out, |file| {
        writeln!(file, "// {}, recorded in {} ns", one_line(&graph.job.id), graph.finish_ns - graph.submit_ns)?;
        writeln!(file, "num_ranks {}", ranks.len())?;
        for (number, (rank, owner)) in ranks.iter().zip(owners).enumerate() {
            writeln!(file, "\n// {}\nrank {number} {{", one_line(&name(trace, owner)))?;
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
    fn new(lanes: JobLanes<'t>) -> Self {
        Self {
            ranks: Vec::new(),
            happens: HashMap::new(),
            taken: HashMap::new(),
            signals: HashMap::new(),
            written: Goal { left_out: lanes.left_out(), ..Goal::default() },
            lanes,
        }
    }

    fn trace(&self) -> &'t Trace {
        self.lanes.graph.trace
    }

    /// An event: what it calculates, and what has to end before.
    fn add(&mut self, event: &EventRow) {
        let Placed { lane: rank, length_ns, after } = self.lanes.place(event);
        self.make_ranks();
        self.happens.insert(event.event, rank);
        self.calculate(rank, &format!("c{}", event.event), length_ns);
        for before in after {
            let label = self.label(before, rank);
            self.ranks[rank].requirements.push(format!("c{} requires {label}", event.event));
        }
    }

    /// A rank for each lane.
    fn make_ranks(&mut self) {
        self.ranks.resize_with(self.lanes.owners.len(), Rank::default);
    }

    fn calculate(&mut self, rank: usize, label: &str, length_ns: u64) {
        self.ranks[rank].operations.push(format!("{label}: calc {length_ns}"));
        self.written.calculations += 1;
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
        let tag = self.trace().events.len() as u64 + self.written.signals;
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
        let to = receiver(self.trace(), self.lanes.graph.event(event)).filter(|to| *to != self.lanes.owners[rank]);
        let at = to.map_or(rank, |to| self.rest(to));
        self.taken.insert(event, at);
        at
    }

    /// The sends of all events, to where they are waited for.
    fn send_all(&mut self) {
        for event in self.lanes.needed() {
            let (Some(to), Some(from)) = (receiver(self.trace(), event), self.happens.get(&event.event).copied())
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
        let rank = self.lanes.rest(owner);
        self.make_ranks();
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
