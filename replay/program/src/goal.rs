//! A schedule in GOAL, the text from which LogGOPSim's `txt2bin` makes its input.
//!
//! `num_ranks N`, then for each rank `rank R {`, lines, `}`. A line is an operation, `LABEL: calc NS`, `LABEL: send Bb to R tag T` or `LABEL: recv
//! Bb from R tag T`, or an order, `A requires B` (A begins when B has ended) or `A irequires B` (when B has begun). `cpu C` and `nic N` may
//! follow an operation; without `cpu` it is on CPU 0. A label is of its rank and stands before its use. `from -1` is any rank. `//` begins a comment.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use crate::builder::{MatchBy, Milestone, Operation, OperationId, Placed, Program, RankId};
use crate::lines::{ParseError, each_line, number};
use crate::sequences::Sequences;

/// Nanoseconds that a calculation may take: 100 days.
const MAX_NS: u64 = 100 * 24 * 3_600 * 1_000_000_000;

/// Reads a schedule.
///
/// # Errors
/// If it cannot be read, a line is something else, names what is not there, or a rank is missing.
pub fn read(file: impl BufRead) -> Result<Program, ParseError> {
    let mut reader =
        Reader { program: Program::new(MatchBy::Tag), rank: None, is_done: Vec::new(), labels: HashMap::new() };
    each_line(file, |line| reader.line(line))?;
    if let Some(rank) = reader.rank {
        return Err(ParseError::End(format!("it ends within rank {}", rank.0)));
    }
    match reader.is_done.iter().position(|is_done| !is_done) {
        _ if reader.is_done.is_empty() => Err(ParseError::End("there is no line \"num_ranks N\"".to_owned())),
        Some(rank) => Err(ParseError::End(format!("rank {rank} of {} is missing", reader.is_done.len()))),
        None => Ok(reader.program.finish()),
    }
}

struct Reader {
    program: Program,
    /// Whose lines these are.
    rank: Option<RankId>,
    /// Which ranks were read.
    is_done: Vec<bool>,
    /// Labels of the rank.
    labels: HashMap<String, OperationId>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let words: Vec<&str> = code.split_ascii_whitespace().collect();
        match (self.rank, &words[..]) {
            (_, []) => Ok(()),
            (None, ["num_ranks", ranks]) if self.is_done.is_empty() => {
                self.program.set_ranks(number(ranks, "number of ranks")?)?;
                self.is_done = vec![false; self.program.ranks() as usize];
                Ok(())
            }
            (None, ["rank", rank, "{"]) => self.begin(number(rank, "rank")?),
            (Some(rank), ["}"]) => {
                self.is_done[rank.0 as usize] = true;
                self.rank = None;
                Ok(())
            }
            (Some(_), [waiting, "requires", before]) => self.order(waiting, Milestone::Ended, before),
            (Some(_), [waiting, "irequires", before]) => self.order(waiting, Milestone::Begun, before),
            (Some(rank), [label, rest @ ..]) => self.operation(rank, label, rest),
            (None, _) => Err(format!("\"{code}\" stands outside of a rank; write \"num_ranks N\", then \"rank 0 {{\"")),
        }
    }

    fn begin(&mut self, rank: u32) -> Result<(), String> {
        match self.is_done.get(rank as usize) {
            _ if self.is_done.is_empty() => Err("\"num_ranks N\" has to stand before the first rank".to_owned()),
            None => Err(format!("rank {rank}: there are {} ranks, from 0", self.is_done.len())),
            Some(true) => Err(format!("rank {rank} is there already")),
            Some(false) => {
                self.rank = Some(RankId(rank));
                self.labels.clear();
                Ok(())
            }
        }
    }

    fn order(&mut self, waiting: &str, moment: Milestone, before: &str) -> Result<(), String> {
        let find = |label: &str| {
            self.labels
                .get(label)
                .copied()
                .ok_or_else(|| format!("no operation {label} stands before this in the rank"))
        };
        let (waiting, before) = (find(waiting)?, find(before)?);
        self.program.wait(waiting, moment, before)
    }

    fn operation(&mut self, rank: RankId, label: &str, words: &[&str]) -> Result<(), String> {
        let Some(name) = label.strip_suffix(':').filter(|name| !name.is_empty()) else {
            return Err(format!("\"{label}\" is no label; write \"LABEL: calc NS\", or \"A requires B\""));
        };
        let (operation, rest) = match words {
            ["calc", ns, rest @ ..] => {
                let ns = number(ns, "number of nanoseconds")?;
                if ns > MAX_NS {
                    return Err(format!("{ns} ns: a calculation may take 100 days"));
                }
                (Operation::Calculate { ns }, rest)
            }
            ["send", bytes, "to", to, rest @ ..] => {
                let (tag, rest) = tag(rest)?;
                (Operation::Send { to: self.peer(to)?, bytes: size(bytes)?, tag }, rest)
            }
            ["recv", bytes, "from", from, rest @ ..] => {
                let (tag, rest) = tag(rest)?;
                let from = if *from == "-1" { None } else { Some(self.peer(from)?) };
                (Operation::Receive { from, bytes: size(bytes)?, tag }, rest)
            }
            _ => {
                return Err(format!(
                    "\"{}\" is no operation; there are \"calc NS\", \"send Bb to R tag T\" and \"recv Bb from R tag T\"",
                    words.join(" ")
                ));
            }
        };
        let placed = Placed { cpu: cpu(rest)?, ..Placed::new(rank, operation) };
        let id = self.program.add(placed)?;
        if self.labels.insert(name.to_owned(), id).is_some() {
            return Err(format!("the rank has an operation {name} already"));
        }
        Ok(())
    }

    fn peer(&self, word: &str) -> Result<RankId, String> {
        let rank: u32 = number(word, "rank")?;
        if rank >= self.program.ranks() {
            return Err(format!("rank {rank}: there are {} ranks, from 0", self.program.ranks()));
        }
        Ok(RankId(rank))
    }
}

fn size(word: &str) -> Result<u64, String> {
    number(word.strip_suffix('b').unwrap_or(word), "number of bytes")
}

/// The tag, 0 without one, and what follows it.
fn tag<'w, 't>(words: &'w [&'t str]) -> Result<(u64, &'w [&'t str]), String> {
    match words {
        ["tag", tag, rest @ ..] => Ok((number(tag, "tag")?, rest)),
        rest => Ok((0, rest)),
    }
}

/// The CPU; the NIC has no meaning here, as a rank's messages go by the one link of its host.
fn cpu(mut words: &[&str]) -> Result<u32, String> {
    let mut cpu = 0;
    loop {
        match words {
            [] => return Ok(cpu),
            ["cpu", number_of, rest @ ..] => (cpu, words) = (number(number_of, "CPU")?, rest),
            ["nic", nic, rest @ ..] => {
                number::<u32>(nic, "NIC")?;
                words = rest;
            }
            _ => {
                return Err(format!("\"{}\" follows the operation; only \"cpu C\" and \"nic N\" may", words.join(" ")));
            }
        }
    }
}

/// Writes a schedule in which each operation of a rank requires the one before.
///
/// # Errors
/// If it cannot be written.
pub fn write(sequences: &Sequences, mut file: impl Write) -> io::Result<()> {
    writeln!(file, "num_ranks {}", sequences.ranks().len())?;
    for (rank, operations) in sequences.ranks().iter().enumerate() {
        writeln!(file, "rank {rank} {{")?;
        for (number, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Calculate { ns } => writeln!(file, "l{number}: calc {ns}")?,
                Operation::Send { to, bytes, tag } => writeln!(file, "l{number}: send {bytes}b to {} tag {tag}", to.0)?,
                Operation::Receive { from, bytes, tag } => {
                    let from = from.map_or("-1".to_owned(), |from| from.0.to_string());
                    writeln!(file, "l{number}: recv {bytes}b from {from} tag {tag}")?;
                }
            }
            if number > 0 {
                writeln!(file, "l{number} requires l{}", number - 1)?;
            }
        }
        writeln!(file, "}}")?;
    }
    Ok(())
}
