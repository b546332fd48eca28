//! VEF traces (RAAP's VEF-TraceLib, used by OpaSim): messages that wait for messages.
//!
//! `VEF... RANKS MESSAGES COMMUNICATORS GLOBAL LOCAL ONLY_SEND`, communicators `C<i> RANK...`, messages `ID SOURCE DESTINATION BYTES KIND TIME_NS
//! DEPENDENCY`, collective operations `G<i> COMMUNICATOR OPERATION RANK SENT RECEIVED KIND TIME_NS DEPENDENCY`, a line for each rank. KIND is 0 (independent, DEPENDENCY -1), 1
//! (after that message was sent), 2 (after it was received) or 3 (after collective operation `G<n>`).

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use netsim::time::SimTime;

use crate::builder::{MatchBy, Milestone, Operation, OperationId, Placed, Program, RankId};
use crate::collectives::{CollectiveKind, Member, expand};
use crate::lines::{ParseError, each_line, number};

/// Nanoseconds that a message may wait: 100 days.
const MAX_NS: u64 = 100 * 24 * 3_600 * 1_000_000_000;
/// The highest number of a collective operation: its messages' tags begin at 2^32 times the next one.
const MAX_COLLECTIVE: u64 = (1 << 31) - 1;

/// Reads a trace.
///
/// # Errors
/// If it cannot be read, a line is something else, names what is not there or not that rank's, or counts differ from the header's.
pub fn read(file: impl BufRead) -> Result<Program, ParseError> {
    let mut reader: Option<Reader> = None;
    each_line(file, |line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match (&mut reader, &words[..]) {
            (_, []) => Ok(()),
            (None, words) => {
                reader = Some(Reader::new(words)?);
                Ok(())
            }
            (Some(reader), words) => reader.line(words),
        }
    })?;
    match reader {
        Some(reader) => reader.finish().map_err(ParseError::End),
        None => Err(ParseError::End("there is no header (VEF...) in it".to_owned())),
    }
}

/// What a message or a rank's part of a collective operation waits for.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Independent,
    Sent(u64),
    Received(u64),
    Collective(u64),
}

/// A message of the file, or a rank's begin of a collective operation: an operation of `rank` that waits for a cause.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    operation: OperationId,
    rank: RankId,
    cause: Cause,
    line_of: u64,
}

/// A rank's part of a collective operation.
#[derive(Clone, Copy, Debug)]
struct Part {
    begin: OperationId,
    member: Member,
}

#[derive(Debug)]
struct Communicator {
    ranks: Vec<RankId>,
    /// Where each rank stands among them.
    places: HashMap<RankId, usize>,
}

#[derive(Debug)]
struct Collective {
    communicator: usize,
    kind: CollectiveKind,
    /// By the rank's place in the communicator.
    parts: BTreeMap<usize, Part>,
}

struct Reader {
    program: Program,
    expected_messages: u64,
    communicators: Vec<Communicator>,
    expected_communicators: usize,
    /// By message: where it was sent from and to, its send and its receive.
    messages: Vec<(RankId, OperationId, RankId, OperationId)>,
    collectives: HashMap<u64, Collective>,
    /// In the order of the file.
    collective_ids: Vec<u64>,
    waiting: Vec<Waiting>,
    lines: u64,
}

impl Reader {
    fn new(words: &[&str]) -> Result<Self, String> {
        let [version, ranks, messages, communicators, _, _, _] = words else {
            return Err("the first line has to be VEF RANKS MESSAGES COMMUNICATORS GLOBAL LOCAL ONLY_SEND".to_owned());
        };
        if !version.starts_with("VEF") {
            return Err(format!("\"{version}\": the first line has to begin with VEF"));
        }
        let mut program = Program::new(MatchBy::Tag);
        program.set_ranks(number(ranks, "number of ranks")?)?;
        Ok(Self {
            program,
            expected_messages: number(messages, "number of messages")?,
            communicators: Vec::new(),
            expected_communicators: number(communicators, "number of communicators")?,
            messages: Vec::new(),
            collectives: HashMap::new(),
            collective_ids: Vec::new(),
            waiting: Vec::new(),
            lines: 1,
        })
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        self.lines += 1;
        match words {
            [name, ranks @ ..] if name.starts_with('C') => self.communicator(&name[1..], ranks),
            [id, communicator, operation, rank, sent, received, kind, time, dependency] if id.starts_with('G') => {
                let member = Member {
                    rank: self.rank(rank)?,
                    sent: number(sent, "number of bytes")?,
                    received: number(received, "number of bytes")?,
                };
                let (ns, cause) = (time_ns(time)?, cause(kind, dependency)?);
                self.collective(number(&id[1..], "collective operation")?, communicator, operation, member, ns, cause)
            }
            [id, from, to, bytes, kind, time, dependency] => {
                let (from, to) = (self.rank(from)?, self.rank(to)?);
                let bytes = number(bytes, "number of bytes")?;
                self.message(number(id, "message")?, from, to, bytes, time_ns(time)?, cause(kind, dependency)?)
            }
            _ => Err(format!("\"{}\" is no communicator, message or collective operation", words.join(" "))),
        }
    }

    fn rank(&self, word: &str) -> Result<RankId, String> {
        let rank: u32 = number(word, "rank")?;
        if rank >= self.program.ranks() {
            return Err(format!("rank {rank}: there are {} ranks, from 0", self.program.ranks()));
        }
        Ok(RankId(rank))
    }

    fn communicator(&mut self, number_of: &str, ranks: &[&str]) -> Result<(), String> {
        let next = self.communicators.len();
        if number::<usize>(number_of, "communicator")? != next {
            return Err(format!("communicator {number_of}: the next one is {next}"));
        }
        let ranks: Vec<RankId> = ranks.iter().map(|word| self.rank(word)).collect::<Result<_, _>>()?;
        let places: HashMap<RankId, usize> = ranks.iter().enumerate().map(|(place, rank)| (*rank, place)).collect();
        if places.len() != ranks.len() || ranks.is_empty() {
            return Err(format!("communicator {number_of} has no rank, or one twice"));
        }
        self.communicators.push(Communicator { ranks, places });
        Ok(())
    }

    fn message(&mut self, id: u64, from: RankId, to: RankId, bytes: u64, ns: u64, cause: Cause) -> Result<(), String> {
        if id != self.messages.len() as u64 {
            return Err(format!("message {id}: the next one is {}", self.messages.len()));
        }
        let send = self.begin(from, Operation::Send { to, bytes, tag: id }, ns, cause)?;
        let receive = self.program.add(Placed::new(to, Operation::Receive { from: Some(from), bytes, tag: id }))?;
        self.messages.push((from, send, to, receive));
        Ok(())
    }

    /// An operation that begins `ns` after its cause.
    fn begin(&mut self, rank: RankId, operation: Operation, ns: u64, cause: Cause) -> Result<OperationId, String> {
        let placed = match cause {
            Cause::Independent => Placed { earliest: SimTime::from_ns(ns), ..Placed::new(rank, operation) },
            _ => Placed { delay_ns: ns, ..Placed::new(rank, operation) },
        };
        let operation = self.program.add(placed)?;
        self.waiting.push(Waiting { operation, rank, cause, line_of: self.lines });
        Ok(operation)
    }

    fn collective(
        &mut self,
        id: u64,
        communicator: &str,
        operation: &str,
        member: Member,
        ns: u64,
        cause: Cause,
    ) -> Result<(), String> {
        let communicator: usize = number(communicator.trim_start_matches('C'), "communicator")?;
        let found = self.communicators.get(communicator);
        let found = found.ok_or_else(|| format!("communicator {communicator} is not there"))?;
        let Some(place) = found.places.get(&member.rank).copied() else {
            return Err(format!("rank {} is not of communicator {communicator}", member.rank.0));
        };
        let kind = CollectiveKind::of_vef(operation)?;
        if id > MAX_COLLECTIVE {
            return Err(format!("G{id}: collective operations are numbered up to {MAX_COLLECTIVE}"));
        }
        let begin = self.begin(member.rank, Operation::Calculate { ns: 0 }, ns, cause)?;
        let ids = &mut self.collective_ids;
        let of = self.collectives.entry(id).or_insert_with(|| {
            ids.push(id);
            Collective { communicator, kind, parts: BTreeMap::new() }
        });
        if of.communicator != communicator || of.kind != kind {
            return Err(format!("G{id} has another communicator or operation in an earlier line"));
        }
        match of.parts.insert(place, Part { begin, member }) {
            Some(_) => Err(format!("rank {} stands in an earlier line of G{id}", member.rank.0)),
            None => Ok(()),
        }
    }

    /// Expands the collective operations and connects what waits with what it waits for.
    fn finish(mut self) -> Result<Program, String> {
        if self.messages.len() as u64 != self.expected_messages {
            return Err(format!(
                "the header says {} messages, there are {}",
                self.expected_messages,
                self.messages.len()
            ));
        }
        if self.communicators.len() != self.expected_communicators {
            let found = self.communicators.len();
            return Err(format!("the header says {} communicators, there are {found}", self.expected_communicators));
        }
        let mut ends: HashMap<(u64, RankId), OperationId> = HashMap::new();
        for id in std::mem::take(&mut self.collective_ids) {
            let Some(collective) = self.collectives.remove(&id) else { continue };
            let ranks = &self.communicators[collective.communicator].ranks;
            let part = |(place, rank): (usize, &RankId)| {
                let part = collective.parts.get(&place).copied();
                part.ok_or_else(|| format!("G{id} has no line of rank {}", rank.0))
            };
            let parts = ranks.iter().enumerate().map(part).collect::<Result<Vec<Part>, String>>()?;
            let members: Vec<Member> = parts.iter().map(|part| part.member).collect();
            // Tags of messages are their numbers, those of collective operations lie above.
            let steps =
                expand(collective.kind, None, &members, (id + 1) << 32).map_err(|why| format!("G{id}: {why}"))?;
            for (part, steps) in parts.iter().zip(steps) {
                let mut before = part.begin;
                for operation in steps {
                    let next = self.program.add(Placed::new(part.member.rank, operation))?;
                    self.program.wait(next, Milestone::Ended, before)?;
                    before = next;
                }
                ends.insert((id, part.member.rank), before);
            }
        }
        for waiting in std::mem::take(&mut self.waiting) {
            let before = self.before(&waiting, &ends).map_err(|why| format!("line {}: {why}", waiting.line_of))?;
            if let Some(before) = before {
                self.program.wait(waiting.operation, Milestone::Ended, before)?;
            }
        }
        Ok(self.program.finish())
    }

    fn before(
        &self,
        waiting: &Waiting,
        ends: &HashMap<(u64, RankId), OperationId>,
    ) -> Result<Option<OperationId>, String> {
        let rank = waiting.rank;
        let message = |id: u64| {
            let found = usize::try_from(id).ok().and_then(|id| self.messages.get(id));
            found.ok_or_else(|| format!("message {id} is not there"))
        };
        let of = |id: u64, other: RankId, operation: OperationId, what: &str| {
            if other == rank {
                Ok(Some(operation))
            } else {
                Err(format!("rank {} waits for message {id}, which rank {} {what}", rank.0, other.0))
            }
        };
        match waiting.cause {
            Cause::Independent => Ok(None),
            Cause::Sent(id) => message(id).and_then(|(from, send, ..)| of(id, *from, *send, "sent")),
            Cause::Received(id) => message(id).and_then(|(_, _, to, receive)| of(id, *to, *receive, "receives")),
            Cause::Collective(id) => match ends.get(&(id, rank)) {
                Some(end) => Ok(Some(*end)),
                None => Err(format!("rank {} takes no part in G{id}", rank.0)),
            },
        }
    }
}

fn time_ns(word: &str) -> Result<u64, String> {
    let ns = number(word, "number of nanoseconds")?;
    if ns > MAX_NS { Err(format!("{ns} ns: a message may wait 100 days")) } else { Ok(ns) }
}

fn cause(kind: &str, dependency: &str) -> Result<Cause, String> {
    match kind {
        "0" => Ok(Cause::Independent),
        "1" => Ok(Cause::Sent(number(dependency, "message")?)),
        "2" => Ok(Cause::Received(number(dependency, "message")?)),
        "3" => {
            Ok(Cause::Collective(number(dependency.strip_prefix('G').unwrap_or(dependency), "collective operation")?))
        }
        _ => Err(format!("dependency kind \"{kind}\": there are 0 (none), 1 (sent), 2 (received) and 3 (collective)")),
    }
}
