//! Dimemas' traces (`.dim`): CPU bursts, sends and receives of tasks of one thread.
//!
//! A send is eager, whatever its synchronisation says; a receive that does not wait (`irecv`) is passed over, and its `wait` receives. Events are
//! passed over. Collective operations become sends and receives; those of a communicator take part in its operations one after the other.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use crate::builder::{MatchBy, Operation, RankId};
use crate::collectives::{CollectiveKind, Member, expand};
use crate::lines::{ParseError, each_line, number};
use crate::sequences::{MAX_OPERATIONS, Sequences};

/// Seconds that a burst may take: 100 days.
const MAX_SECONDS: f64 = 100.0 * 24.0 * 3_600.0;

/// Records that are kept until all is read: 5 GiB of memory.
const MAX_RECORDS: usize = 1 << 26;

/// Tags of collective operations are behind those of messages, so many apart.
const COLLECTIVES: u64 = 1 << 63;
const TAGS_OF_ONE: u64 = 1 << 21;

/// What a rank does in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    kind: CollectiveKind,
    root: RankId,
    sent: u64,
    received: u64,
}

/// What a rank does: an operation of its own, or its next part in the operations of a communicator.
#[derive(Clone, Copy)]
enum Step {
    Own(Operation),
    Together(u32),
}

/// By communicator and rank, what that does in each operation.
type Expanded = BTreeMap<(u32, RankId), Vec<Vec<Operation>>>;

/// The records of all ranks, in the order of the file.
struct Records {
    ranks: u32,
    steps: Vec<(RankId, Step)>,
    /// By communicator and rank.
    parts: BTreeMap<u32, BTreeMap<RankId, Vec<Part>>>,
}

impl Records {
    fn push(&mut self, rank: RankId, step: Step) -> Result<(), String> {
        if rank.0 >= self.ranks {
            return Err(format!("rank {}: there are {} ranks, from 0", rank.0, self.ranks));
        }
        if self.steps.len() >= MAX_RECORDS {
            return Err(format!("more than {MAX_RECORDS} records"));
        }
        self.steps.push((rank, step));
        Ok(())
    }

    /// Refuses a rank at the other end of a message that is not there.
    fn known_rank(&self, operation: &Operation) -> Result<(), String> {
        match *operation {
            Operation::Send { to: RankId(other), .. } | Operation::Receive { from: Some(RankId(other)), .. }
                if other >= self.ranks =>
            {
                Err(format!("rank {other}: there are {} ranks, from 0", self.ranks))
            }
            _ => Ok(()),
        }
    }

    /// What each rank does in each operation of its communicators, in their order.
    fn expanded(&self) -> Result<Expanded, String> {
        let of_first = |ranks: &BTreeMap<RankId, Vec<Part>>| {
            let parts = ranks.values().next().into_iter().flatten();
            parts.map(|part| part.kind.operations(ranks.len())).fold(0, usize::saturating_add)
        };
        let operations = self.parts.values().map(of_first).fold(0, usize::saturating_add);
        if operations > MAX_OPERATIONS {
            return Err(format!(
                "its collective operations are {operations} sends and receives, and {MAX_OPERATIONS} are possible"
            ));
        }
        let (mut all, mut tag) = (BTreeMap::new(), COLLECTIVES);
        for (communicator, ranks) in &self.parts {
            let count = ranks.values().map(Vec::len).max().unwrap_or(0);
            if let Some((rank, parts)) = ranks.iter().find(|(_, parts)| parts.len() < count) {
                let (rank, parts) = (rank.0, parts.len());
                return Err(format!(
                    "communicator {communicator}: rank {rank} takes part in {parts} collective operations, others in {count}"
                ));
            }
            for number in 0..count {
                let of_rank = |(rank, parts): (&RankId, &Vec<Part>)| (*rank, parts[number]);
                let parts: Vec<(RankId, Part)> = ranks.iter().map(of_rank).collect();
                let Some((_, first)) = parts.first() else { continue };
                let wrong =
                    |why: String| format!("collective operation {number} of communicator {communicator}: {why}");
                if parts.iter().any(|(_, part)| (part.kind, part.root) != (first.kind, first.root)) {
                    return Err(wrong("its ranks call it by different names, or with different roots".to_owned()));
                }
                let root = parts.iter().position(|(rank, _)| *rank == first.root);
                let root = root.ok_or_else(|| wrong(format!("its root, rank {}, does not take part", first.root.0)))?;
                let member =
                    |(rank, part): &(RankId, Part)| Member { rank: *rank, sent: part.sent, received: part.received };
                let members: Vec<Member> = parts.iter().map(member).collect();
                let steps = expand(first.kind, Some(root), &members, tag).map_err(wrong)?;
                tag += TAGS_OF_ONE;
                for (member, steps) in members.iter().zip(steps) {
                    all.entry((*communicator, member.rank)).or_insert_with(Vec::new).push(steps);
                }
            }
        }
        Ok(all)
    }

    fn sequences(self) -> Result<Sequences, String> {
        let mut sequences = Sequences::new(self.ranks, MatchBy::Tag)?;
        let expanded = self.expanded()?;
        let mut done: BTreeMap<(u32, RankId), usize> = BTreeMap::new();
        for (rank, step) in self.steps {
            match step {
                Step::Own(operation) => sequences.push(rank, operation)?,
                Step::Together(communicator) => {
                    let number = done.entry((communicator, rank)).or_default();
                    let steps = expanded.get(&(communicator, rank)).and_then(|all| all.get(*number));
                    *number += 1;
                    steps.into_iter().flatten().try_for_each(|operation| sequences.push(rank, *operation))?;
                }
            }
        }
        Ok(sequences)
    }
}

/// Reads a trace.
///
/// # Errors
/// If it cannot be read, a line is something else, or tasks have several threads.
pub fn read(file: impl BufRead) -> Result<Sequences, ParseError> {
    let mut read: Option<Records> = None;
    each_line(file, |line| {
        let Some(records) = &mut read else {
            let ranks = tasks(line)?;
            Sequences::new(ranks, MatchBy::Tag)?;
            read = Some(Records { ranks, steps: Vec::new(), parts: BTreeMap::new() });
            return Ok(());
        };
        let words: Vec<&str> = line.split(':').collect();
        match words[..] {
            [""] | ["d" | "s", ..] | ["20", ..] => Ok(()),
            ["1", task, thread, seconds] => {
                let rank = rank(task, thread)?;
                records.push(rank, Step::Own(Operation::Calculate { ns: burst(seconds)? }))
            }
            ["2", task, thread, to, to_thread, bytes, tag, communicator, _] => {
                let operation = Operation::Send {
                    to: rank(to, to_thread)?,
                    bytes: number(bytes, "size")?,
                    tag: known(tag, communicator)?,
                };
                records.known_rank(&operation)?;
                records.push(rank(task, thread)?, Step::Own(operation))
            }
            ["3", _, _, _, _, _, _, _, "1"] => Ok(()),
            ["3", task, thread, from, from_thread, bytes, tag, communicator, "0" | "2"] => {
                let from = if from == "-1" { None } else { Some(rank(from, from_thread)?) };
                let operation =
                    Operation::Receive { from, bytes: number(bytes, "size")?, tag: known(tag, communicator)? };
                records.known_rank(&operation)?;
                records.push(rank(task, thread)?, Step::Own(operation))
            }
            ["10", task, thread, kind, communicator, root, root_thread, sent, received, ..] => {
                let (task, communicator) = (rank(task, thread)?, number(communicator, "communicator")?);
                let part = Part {
                    kind: CollectiveKind::of_dimemas(kind)?,
                    root: rank(root, root_thread)?,
                    sent: number(sent, "size")?,
                    received: number(received, "size")?,
                };
                records.push(task, Step::Together(communicator))?;
                records.parts.entry(communicator).or_default().entry(task).or_default().push(part);
                Ok(())
            }
            _ => Err(format!("\"{line}\" is no record of a burst, send, receive, collective operation or event")),
        }
    })?;
    let records = read.ok_or_else(|| ParseError::End("there is no header (#DIMEMAS:...) in it".to_owned()))?;
    records.sequences().map_err(ParseError::End)
}

/// The number of tasks of a header, `#DIMEMAS:"name":1,OFFSET:TASKS(1,1,...),COMMUNICATORS`.
fn tasks(line: &str) -> Result<u32, String> {
    let wrong = || "the first line has to be #DIMEMAS:NAME:OFFSETS:TASKS(THREADS,...),COMMUNICATORS".to_owned();
    let rest = line.strip_prefix("#DIMEMAS:").ok_or_else(wrong)?;
    let rest = match rest.strip_prefix('"') {
        Some(name) => name.split_once('"').ok_or_else(wrong)?.1,
        None => rest,
    };
    let (count, threads) = rest.split(':').nth(2).and_then(|tasks| tasks.split_once('(')).ok_or_else(wrong)?;
    let threads = threads.split_once(')').ok_or_else(wrong)?.0;
    if threads.split(',').any(|threads| threads.trim() != "1") {
        return Err(format!("tasks of {threads} threads: each has to have 1"));
    }
    number(count, "number of tasks")
}

fn rank(task: &str, thread: &str) -> Result<RankId, String> {
    match thread {
        "0" | "-1" => Ok(RankId(number(task, "task")?)),
        _ => Err(format!("thread {thread}: each task has thread 0 alone")),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100 days in nanoseconds")]
fn burst(seconds: &str) -> Result<u64, String> {
    let length: f64 = number(seconds, "number of seconds")?;
    if !(0.0..=MAX_SECONDS).contains(&length) {
        return Err(format!("{seconds} s: a burst may take from 0 s to 100 days"));
    }
    Ok((length * 1e9).round() as u64)
}

/// Tags of different communicators are different ones; those of communicator 1, which has all tasks, are as they are.
fn known(tag: &str, communicator: &str) -> Result<u64, String> {
    let (tag, communicator): (u32, u32) = (number(tag, "tag")?, number(communicator, "communicator")?);
    Ok(u64::from(communicator ^ 1) << 32 | u64::from(tag))
}

/// Writes a trace, with all ranks in communicator 1.
///
/// # Errors
/// If it cannot be written, or a tag has more than 31 bits or a message 2^31 bytes, which Dimemas cannot say.
pub fn write(sequences: &Sequences, name: &str, mut file: impl Write) -> io::Result<()> {
    let mut body = Vec::new();
    let mut tail = Vec::new();
    let ranks = sequences.ranks().len();
    let members = (0..ranks).map(|rank| rank.to_string()).collect::<Vec<_>>().join(":");
    writeln!(body, "d:1:1:{ranks}:{members}")?;
    let threads = vec!["1"; ranks].join(",");
    let name = name.replace(['"', '\n'], "'");
    // As long for any offset: the form has blanks at the header's end for that.
    let header = |offset: u64| {
        let header = format!("#DIMEMAS:\"{name}\":1,{offset}:{ranks}({threads}),1");
        format!("{header:<width$}\n", width = name.chars().count() + threads.len() + 60)
    };
    let begin = header(0).len() as u64;
    let fits = |value: u64, what: &str| {
        i32::try_from(value).map_err(|_| io::Error::other(format!("{what} of {value}: Dimemas has numbers below 2^31")))
    };
    for (rank, operations) in sequences.ranks().iter().enumerate() {
        writeln!(tail, "s:{rank}:{}", begin + body.len() as u64)?;
        for operation in operations {
            match *operation {
                Operation::Calculate { ns } => {
                    writeln!(body, "1:{rank}:0:{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)?;
                }
                Operation::Send { to, bytes, tag } => {
                    let (bytes, tag) = (fits(bytes, "a message")?, fits(tag, "a tag")?);
                    writeln!(body, "2:{rank}:0:{}:-1:{bytes}:{tag}:1:2", to.0)?;
                }
                Operation::Receive { from, bytes, tag } => {
                    let from = from.map_or("-1".to_owned(), |from| from.0.to_string());
                    let (bytes, tag) = (fits(bytes, "a message")?, fits(tag, "a tag")?);
                    writeln!(body, "3:{rank}:0:{from}:-1:{bytes}:{tag}:1:0")?;
                }
            }
        }
    }
    file.write_all(header(begin + body.len() as u64).as_bytes())?;
    file.write_all(&body)?;
    file.write_all(&tail)
}
