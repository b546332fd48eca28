//! INSEE's traces (`trc`): `c TASK TIME`, `s FROM TO TAG BYTES`, `r FROM TO TAG BYTES` a line, `#` for comments.
//!
//! In an `r` line the sender stands first as well. Times are nanoseconds. A message of 0 bytes counts as 1 byte.

use std::io::{self, BufRead, Write};

use crate::builder::{MatchBy, Operation, RankId};
use crate::lines::{ParseError, each_line, number};
use crate::sequences::Sequences;

/// Nanoseconds that a calculation may take: 100 days.
const MAX_NS: u64 = 100 * 24 * 3_600 * 1_000_000_000;

/// Reads a trace.
///
/// # Errors
/// If it cannot be read, a line is something else, or there is none.
pub fn read(file: impl BufRead) -> Result<Sequences, ParseError> {
    let mut read: Option<Sequences> = None;
    each_line(file, |line| {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        let words: Vec<&str> = code.split_ascii_whitespace().collect();
        let (rank, other, operation) = match words[..] {
            [] => return Ok(()),
            ["c", rank, time] => {
                let (rank, ns) = (number(rank, "task")?, number(time, "number of nanoseconds")?);
                if ns > MAX_NS {
                    return Err(format!("{ns} ns: a calculation may take 100 days"));
                }
                (rank, rank, Operation::Calculate { ns })
            }
            ["s", from, to, tag, bytes] => {
                let (from, to) = (number(from, "task")?, number(to, "task")?);
                let operation = Operation::Send { to: RankId(to), tag: number(tag, "tag")?, bytes: size(bytes)? };
                (from, to, operation)
            }
            ["r", from, to, tag, bytes] => {
                let (from, to) = (number(from, "task")?, number(to, "task")?);
                let (tag, bytes) = (number(tag, "tag")?, size(bytes)?);
                (to, from, Operation::Receive { from: Some(RankId(from)), tag, bytes })
            }
            _ => {
                return Err(format!(
                    "\"{code}\" is no step; there are \"c TASK TIME\", \"s FROM TO TAG BYTES\" and \"r FROM TO TAG BYTES\""
                ));
            }
        };
        let sequences = match &mut read {
            Some(sequences) => sequences,
            None => read.insert(Sequences::new(1, MatchBy::TagAndBytes)?),
        };
        sequences.grow_to(RankId(rank.max(other)))?;
        sequences.push(RankId(rank), operation)
    })?;
    read.ok_or_else(|| ParseError::End("there is no step of a task in it".to_owned()))
}

fn size(word: &str) -> Result<u64, String> {
    Ok(number::<u64>(word, "number of bytes")?.max(1))
}

/// Writes a trace, rank by rank.
///
/// # Errors
/// If it cannot be written, or a receive takes anybody's message, which the form cannot say.
pub fn write(sequences: &Sequences, mut file: impl Write) -> io::Result<()> {
    for (rank, operations) in sequences.ranks().iter().enumerate() {
        for operation in operations {
            match operation {
                Operation::Calculate { ns } => writeln!(file, "c {rank} {ns}")?,
                Operation::Send { to, bytes, tag } => writeln!(file, "s {rank} {} {tag} {bytes}", to.0)?,
                Operation::Receive { from: Some(from), bytes, tag } => {
                    writeln!(file, "r {} {rank} {tag} {bytes}", from.0)?;
                }
                Operation::Receive { from: None, .. } => {
                    return Err(io::Error::other(format!("rank {rank} receives from anybody: trc cannot say that")));
                }
            }
        }
    }
    Ok(())
}
