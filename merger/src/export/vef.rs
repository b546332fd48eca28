//! A job as a VEF trace, the text that OpaSim takes: what the end of a job waits for, as messages that wait for one message each.
//!
//! A rank is a process. A message leaves so long after its cause, which is a message that its rank received, or the begin. Where an event waits for
//! several, the one that is last where each message takes as long as it took is its cause, and the others are counted. What waits for an event of another process, without
//! a message between the two, gets a message of 0 bytes; so does the job's end.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;

use trace::ids::EventId;
use trace::rows::{EventRow, Trace};

use super::file::{ExportError, with_extension, write};
use super::job_lanes::{Before, JobLanes, Owner, receiver, sender};
use super::nodes::Nodes;
use crate::sums::add;

/// How much was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Vef {
    /// Processes.
    pub ranks: u64,
    /// Messages, or pieces of these, from a process to another.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages of 0 bytes for an order that no message says, and for the job's end.
    pub signals: u64,
    /// Causes that are there earlier than another one of the same event: left out.
    pub causes_left_out: u64,
    /// Events of the time of the job for which its end does not wait.
    pub left_out: u64,
    /// Nodes that the mapping takes the fabric to have.
    pub nodes: u64,
    /// Racks of these, filled one by one.
    pub racks: u64,
}

/// A moment of a rank: so long after the begin, or after the rank received a message.
#[derive(Clone, Copy)]
struct Moment {
    received: Option<u64>,
    ns: u64,
}

impl Moment {
    const fn later(self, ns: u64) -> Self {
        Self { ns: self.ns.saturating_add(ns), ..self }
    }
}

struct Message {
    from: usize,
    to: usize,
    bytes: u64,
    leaves: Moment,
}

struct Program<'t> {
    lanes: JobLanes<'t>,
    ranks: BTreeMap<Owner, usize>,
    owners: Vec<Owner>,
    messages: Vec<Message>,
    /// When each event happens, on whose rank.
    happens: HashMap<EventId, (usize, Moment)>,
    /// The same in nanoseconds since the begin, where each message takes as long as it took in the recording.
    executed_ns: HashMap<EventId, u64>,
    /// The message of each event that sends one to another rank.
    sent: HashMap<EventId, u64>,
    /// Messages of 0 bytes that tell a rank of something.
    signals: HashMap<(Before, usize), u64>,
    written: Vef,
}

/// Writes what the end of a job waits for; `OUT.ranks` has `rank node` in each line, `OUT.hosts` number, name and rack of each node. Without `job` the
/// one that moved most bytes in its shuffle is taken.
///
/// # Errors
/// If there is no such job, or a file cannot be written.
pub fn vef(trace: &Trace, job: Option<&str>, out: &Path) -> Result<Vef, ExportError> {
    let lanes = JobLanes::new(trace, job)?;
    let written = Vef { left_out: lanes.left_out(), ..Vef::default() };
    let mut program = Program {
        lanes,
        ranks: BTreeMap::new(),
        owners: Vec::new(),
        messages: Vec::new(),
        happens: HashMap::new(),
        executed_ns: HashMap::new(),
        sent: HashMap::new(),
        signals: HashMap::new(),
        written,
    };
    for event in program.lanes.needed() {
        program.add(event);
    }
    program.end();
    let nodes = Nodes::new(trace);
    let (ranks, messages) = (program.owners.len(), program.messages.len());
    write(out, |file| {
        // No collective operations. What the last word is for, no source says; a public reader (taz) takes nothing but TRUE.
        writeln!(file, "VEF {ranks} {messages} 1 0 0 TRUE")?;
        let members: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
        writeln!(file, "C0 {}", members.join(" "))?;
        for (id, Message { from, to, bytes, leaves }) in program.messages.iter().enumerate() {
            let Moment { received, ns } = leaves;
            match received {
                Some(cause) => writeln!(file, "{id} {from} {to} {bytes} 2 {ns} {cause}")?,
                None => writeln!(file, "{id} {from} {to} {bytes} 0 {ns} -1")?,
            }
        }
        Ok(())
    })?;
    write(&with_extension(out, "ranks"), |file| {
        program
            .owners
            .iter()
            .enumerate()
            .try_for_each(|(rank, owner)| writeln!(file, "{rank} {}", nodes.of(trace, *owner)))
    })?;
    write(&with_extension(out, "hosts"), |file| nodes.write(trace, file))?;
    Ok(Vef { ranks: ranks as u64, nodes: nodes.count() as u64, racks: nodes.racks as u64, ..program.written })
}

impl Program<'_> {
    fn rank(&mut self, owner: Owner) -> usize {
        let new = self.owners.len();
        let rank = *self.ranks.entry(owner).or_insert(new);
        if rank == new {
            self.owners.push(owner);
        }
        rank
    }

    /// An event, after all that it waits for, and its message.
    fn add(&mut self, event: &EventRow) {
        let trace = self.lanes.graph.trace;
        let rank = self.rank(sender(trace, event));
        let causes = self.lanes.causes(event.event);
        add(&mut self.written.causes_left_out, (causes.len() as u64).saturating_sub(1));
        let last = causes.into_iter().map(|cause| (self.cause_ns(cause), cause)).max();
        let (at_ns, moment) = match last {
            Some((at_ns, cause)) => {
                (at_ns.saturating_add(event.delay_ns), self.after(cause, rank).later(event.delay_ns))
            }
            None => {
                let ns = event.recorded_ns.saturating_sub(self.lanes.graph.submit_ns);
                (ns, Moment { received: None, ns })
            }
        };
        self.executed_ns.insert(event.event, at_ns);
        self.happens.insert(event.event, (rank, moment));
        let Some(to) = receiver(trace, event) else { return };
        let to = self.rank(to);
        if to != rank {
            let message = self.send(rank, to, event.bytes, moment);
            self.sent.insert(event.event, message);
            self.written.messages += 1;
            add(&mut self.written.bytes, event.bytes);
        }
    }

    /// When that is for which an event waits, where each message takes as long as it took.
    fn cause_ns(&self, cause: Before) -> u64 {
        let at_ns = self.executed_ns.get(&cause.event).copied().unwrap_or(0);
        if cause.is_delivery { at_ns.saturating_add(self.way_ns(cause.event)) } else { at_ns }
    }

    fn way_ns(&self, event: EventId) -> u64 {
        let event = self.lanes.graph.event(event);
        event.recorded_delivered_ns.saturating_sub(event.recorded_ns)
    }

    /// The moment at which a rank knows of a cause.
    fn after(&mut self, cause: Before, rank: usize) -> Moment {
        let begin = Moment { received: None, ns: 0 };
        let (at, moment) = match (self.sent.get(&cause.event), self.happens.get(&cause.event)) {
            (Some(message), _) if cause.is_delivery => {
                let to = self.messages.get(*message as usize).map_or(rank, |message| message.to);
                (to, Moment { received: Some(*message), ns: 0 })
            }
            (_, Some((at, moment))) => {
                // What a process sends to itself takes as long as it took.
                (*at, if cause.is_delivery { moment.later(self.way_ns(cause.event)) } else { *moment })
            }
            (_, None) => (rank, begin),
        };
        if at == rank {
            return moment;
        }
        let message = match self.signals.get(&(cause, rank)) {
            Some(message) => *message,
            None => {
                let message = self.send(at, rank, 0, moment);
                self.written.signals += 1;
                self.signals.insert((cause, rank), message);
                message
            }
        };
        Moment { received: Some(message), ns: 0 }
    }

    fn send(&mut self, from: usize, to: usize, bytes: u64, leaves: Moment) -> u64 {
        self.messages.push(Message { from, to, bytes, leaves });
        self.messages.len() as u64 - 1
    }

    /// The job's end as the last message: to the first other rank, for a trace has nothing but messages.
    fn end(&mut self) {
        let end = self.happens.get(&self.lanes.graph.finish).copied();
        if let (Some((from, moment)), true) = (end, self.owners.len() > 1) {
            self.send(from, usize::from(from == 0), 0, moment);
            self.written.signals += 1;
        }
    }
}
