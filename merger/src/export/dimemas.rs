//! A job as a program of messages for Dimemas: what the end of a job waits for, as CPU bursts, sends and receives of tasks.
//!
//! A task of Dimemas does one thing after the other, so it is a lane of a process: an event is the receives that it waits
//! for, a burst as long as its delay, and its send. A delivery that nobody waits for, or that several lanes wait for, is received by a
//! task of its connection and direction, which tells those lanes. What waits for an event of another lane, without a message between the
//! two, gets a message of 0 bytes. Sends are eager and immediate. Every task is a node of Dimemas, so that the network is asked for each
//! message; which host a task is on stands in a mapping file, for the server of the network.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::Path;

use trace::ids::{ConnectionId, EventId};
use trace::rows::{EventRow, Trace};

use super::file::{ExportError, one_line, with_extension, write};
use super::job_lanes::{Before, JobLanes, Owner, receiver};
use super::nodes::Nodes;
use crate::sums::add;

/// What Dimemas' sizes, signed 32-bit numbers, can say.
const MAX_BYTES: u64 = i32::MAX as u64;
/// Dimemas' own network where it asks no other: 10 Gbit/s. Ours.
const BANDWIDTH_MB_S: f64 = 1_192.1;

/// How much was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Dimemas {
    /// Lanes of processes, and receivers of connections.
    pub tasks: u64,
    /// CPU bursts.
    pub bursts: u64,
    /// Messages, or pieces of these, from a task to another.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages of 0 bytes for an order that no message says.
    pub signals: u64,
    /// Events of the time of the job for which its end does not wait.
    pub left_out: u64,
    /// Nodes that the mapping takes the fabric to have.
    pub nodes: u64,
    /// Racks of these, filled one by one.
    pub racks: u64,
}

/// One end of a message.
struct Transfer {
    /// Task at the other end.
    task: usize,
    bytes: u64,
    tag: u64,
}

/// What an event is on its task: receives, a burst, sends.
#[derive(Default)]
struct Block {
    receives: Vec<Transfer>,
    burst_ns: u64,
    sends: Vec<Transfer>,
}

/// A block of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BlockPlace {
    task: usize,
    block: usize,
}

struct Program<'t> {
    lanes: JobLanes<'t>,
    /// By task: lanes of processes first.
    tasks: Vec<Vec<Block>>,
    /// Whose the tasks are that receive what is left of a connection.
    receivers: Vec<Owner>,
    placed: HashMap<EventId, BlockPlace>,
    written: Dimemas,
}

/// Writes what the end of a job waits for: `OUT.dim` for Dimemas, `OUT.cfg` for it with as many nodes as tasks, `OUT.tasks` with
/// `task node` in each line for the server of the network, `OUT.hosts` with number, name and rack of each node. Without `job` the one
/// that moved most bytes in its shuffle is taken.
///
/// # Errors
/// If there is no such job, a message is larger than Dimemas can say, or a file cannot be written.
pub fn dimemas(trace: &Trace, job: Option<&str>, out: &Path) -> Result<Dimemas, ExportError> {
    let mut program = Program::new(JobLanes::new(trace, job)?);
    let waits = program.place();
    program.connect(&waits)?;
    let nodes = Nodes::new(trace);
    let written = Dimemas {
        tasks: program.tasks.len() as u64,
        nodes: nodes.count() as u64,
        racks: nodes.racks as u64,
        ..program.written.clone()
    };
    let dim = with_extension(out, "dim");
    let name = dim.file_name().map_or_else(String::new, |name| one_line(&name.to_string_lossy()).replace('"', "'"));
    let text = program.text();
    write(&dim, |file| file.write_all(&text))?;
    write(&with_extension(out, "cfg"), |file| configuration(file, program.tasks.len(), &name))?;
    let owners = program.lanes.owners.iter().chain(&program.receivers);
    write(&with_extension(out, "tasks"), |file| {
        owners.enumerate().try_for_each(|(task, owner)| writeln!(file, "{task} {}", nodes.of(trace, *owner)))
    })?;
    write(&with_extension(out, "hosts"), |file| nodes.write(trace, file))?;
    Ok(written)
}

impl<'t> Program<'t> {
    fn new(lanes: JobLanes<'t>) -> Self {
        let written = Dimemas { left_out: lanes.left_out(), ..Dimemas::default() };
        Self { lanes, tasks: Vec::new(), receivers: Vec::new(), placed: HashMap::new(), written }
    }

    /// Puts the events on their lanes; says what each waits for, by the waiting event's number.
    fn place(&mut self) -> Vec<(EventId, Before)> {
        let mut waits = Vec::new();
        for event in self.lanes.needed() {
            let placed = self.lanes.place(event);
            self.tasks.resize_with(self.lanes.owners.len(), Vec::new);
            let blocks = &mut self.tasks[placed.lane];
            self.placed.insert(event.event, BlockPlace { task: placed.lane, block: blocks.len() });
            blocks.push(Block { burst_ns: placed.length_ns, ..Block::default() });
            self.written.bursts += u64::from(placed.length_ns > 0);
            waits.extend(placed.after.into_iter().map(|before| (event.event, before)));
        }
        waits
    }

    /// The messages of all events, and those of 0 bytes.
    fn connect(&mut self, waits: &[(EventId, Before)]) -> Result<(), ExportError> {
        let trace = self.lanes.graph.trace;
        let mut of_delivery: BTreeMap<EventId, Vec<BlockPlace>> = BTreeMap::new();
        let mut named = BTreeSet::new();
        for (waiting, before) in waits {
            let (Some(&waiting), Some(&cause)) = (self.placed.get(waiting), self.placed.get(&before.event)) else {
                continue;
            };
            if before.is_delivery && receiver(trace, self.lanes.graph.event(before.event)).is_some() {
                of_delivery.entry(before.event).or_default().push(waiting);
            } else if cause.task != waiting.task && named.insert((before.event, waiting.task)) {
                self.signal(cause, waiting);
            }
        }
        let mut connections = BTreeMap::new();
        for event in self.lanes.needed() {
            if let Some(to) = receiver(trace, event) {
                let waiting = of_delivery.remove(&event.event).unwrap_or_default();
                self.send(event, to, first_of_each_task(&waiting), &mut connections)?;
            }
        }
        Ok(())
    }

    /// Sends what an event sends: to the lane that waits for it, or to the task that receives for its connection.
    fn send(
        &mut self,
        event: &EventRow,
        to: Owner,
        waiting: Vec<BlockPlace>,
        connections: &mut BTreeMap<(Option<ConnectionId>, bool), usize>,
    ) -> Result<(), ExportError> {
        let (Some(&from), tag) = (self.placed.get(&event.event), u64::from(event.event.0)) else {
            return Ok(());
        };
        if event.bytes > MAX_BYTES {
            return Err(ExportError::MessageTooLarge { bytes: event.bytes, max: MAX_BYTES });
        }
        self.written.messages += 1;
        add(&mut self.written.bytes, event.bytes);
        if let [only] = waiting[..]
            && only.task != from.task
            && self.lanes.owners[only.task] == to
        {
            self.transfer(from, only, event.bytes, tag);
            return Ok(());
        }
        let new = self.tasks.len();
        let task = *connections.entry((event.connection, event.from_client)).or_insert(new);
        if task == new {
            self.tasks.push(Vec::new());
            self.receivers.push(to);
        }
        let at = BlockPlace { task, block: self.tasks[task].len() };
        self.tasks[task].push(Block::default());
        self.transfer(from, at, event.bytes, tag);
        for waiting in waiting {
            self.signal(at, waiting);
        }
        Ok(())
    }

    /// A message of 0 bytes; tags of events are below their number.
    fn signal(&mut self, from: BlockPlace, to: BlockPlace) {
        let tag = self.lanes.graph.trace.events.len() as u64 + self.written.signals;
        self.written.signals += 1;
        self.transfer(from, to, 0, tag);
    }

    fn transfer(&mut self, from: BlockPlace, to: BlockPlace, bytes: u64, tag: u64) {
        self.tasks[from.task][from.block].sends.push(Transfer { task: to.task, bytes, tag });
        self.tasks[to.task][to.block].receives.push(Transfer { task: from.task, bytes, tag });
    }

    /// The file: a header, the communicator of all tasks, their records, and where those of each begin.
    fn text(&self) -> Vec<u8> {
        let tasks = self.tasks.len();
        let threads = vec!["1"; tasks].join(",");
        let job = one_line(&self.lanes.graph.job.id).replace(['"', ':'], "'");
        let header = |offset: usize| format!("#DIMEMAS:\"{job}\":1,{offset}:{tasks}({threads}),1");
        // Its length must not depend on the number in it.
        let width = header(usize::MAX).len();
        let mut body = format!("d:1:1:{tasks}");
        (0..tasks).for_each(|task| body += &format!(":{task}"));
        body.push('\n');
        let mut offsets = String::new();
        for (task, blocks) in self.tasks.iter().enumerate() {
            offsets += &format!("s:{task}:{}\n", width + 1 + body.len());
            // Dimemas leaves out a task that does not begin with a burst.
            if blocks.first().is_some_and(|block| block.burst_ns == 0 || !block.receives.is_empty()) {
                body += &format!("1:{task}:0:0.000000000\n");
            }
            blocks.iter().for_each(|block| block.write(task, &mut body));
        }
        let header = header(width + 1 + body.len());
        format!("{header:width$}\n{body}{offsets}").into_bytes()
    }
}

impl Block {
    fn write(&self, task: usize, text: &mut String) {
        for Transfer { task: from, bytes, tag } in &self.receives {
            *text += &format!("3:{task}:0:{from}:-1:{bytes}:{tag}:1:0\n");
        }
        if self.burst_ns > 0 {
            *text += &format!("1:{task}:0:{}.{:09}\n", self.burst_ns / 1_000_000_000, self.burst_ns % 1_000_000_000);
        }
        // Bit 1: immediate; without bit 0: no rendezvous.
        for Transfer { task: to, bytes, tag } in &self.sends {
            *text += &format!("2:{task}:0:{to}:-1:{bytes}:{tag}:1:2\n");
        }
    }
}

/// Of the blocks that wait, which come by their events' numbers, the first of each task.
fn first_of_each_task(waiting: &[BlockPlace]) -> Vec<BlockPlace> {
    let mut tasks = BTreeSet::new();
    waiting.iter().copied().filter(|place| tasks.insert(place.task)).collect()
}

/// As many nodes as tasks, each with one processor, and a network without latency and limits that Dimemas uses where it asks
/// no other.
fn configuration(file: &mut impl Write, tasks: usize, trace: &str) -> io::Result<()> {
    let bandwidth = BANDWIDTH_MB_S;
    writeln!(
        file,
        "#DIMEMAS_CONFIGURATION\n\n\
         \"wide area network information\" {{\"\", 1, 0, 4, 0.0, 0.0, 1}};;\n\n\
         \"environment information\" {{\"\", 0, \"\", {tasks}, {bandwidth:.1}, 0, 1}};;\n\n\
         \"multi node information\" {{0, {tasks}, \"\", 1, 1.0, 0.0, 0.0, 1, 1, 0, 0.0, 1, 1, 0.0}};;\n\n\
         \"predefined mapping information\" {{\"{trace}\", \"1 TASKS_PER_NODE\"}};;\n\n\
         \"configuration files\" {{\"\", \"\", \"\", \"\"}};;\n\n\
         \"file system parameters\" {{0.0, 0.0, 8.0, 0, 1.0}};;"
    )
}
