//! Traces of MPICH's logging library (`alog`), as INSEE takes them: `EVENT PROCESS TASK OTHER TASK TIMESTAMP TAG BYTES` a line.
//!
//! Event -101 is a send, -102 a receive; all others are passed over, and what a process says to itself. Times are not used, so that nothing is
//! calculated. Collective operations have no events of their own: a trace has to have what they send and receive. A message of 0 bytes counts as 1 byte.

use std::io::{self, BufRead, Write};

use crate::builder::{MatchBy, Operation, RankId};
use crate::lines::{ParseError, each_line, number};
use crate::sequences::Sequences;

const SEND: &str = "-101";
const RECEIVE: &str = "-102";

/// Reads a trace.
///
/// # Errors
/// If it cannot be read, a send or receive has other fields, or there is none.
pub fn read(file: impl BufRead) -> Result<Sequences, ParseError> {
    let mut read: Option<Sequences> = None;
    each_line(file, |line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (event, process, other, tag, bytes) = match words[..] {
            [event @ (SEND | RECEIVE), process, _, other, _, _, tag, bytes, ..] => (event, process, other, tag, bytes),
            [SEND | RECEIVE, ..] => {
                return Err(format!(
                    "\"{line}\" is too short: sends and receives are \"EVENT PROCESS TASK OTHER TASK TIMESTAMP TAG BYTES\""
                ));
            }
            _ => return Ok(()),
        };
        let (process, other) = (RankId(number(process, "process")?), RankId(number(other, "process")?));
        let (tag, bytes) = (number(tag, "tag")?, number::<u64>(bytes, "number of bytes")?.max(1));
        let operation = match event {
            SEND => Operation::Send { to: other, tag, bytes },
            _ => Operation::Receive { from: Some(other), tag, bytes },
        };
        let sequences = match &mut read {
            Some(sequences) => sequences,
            None => read.insert(Sequences::new(1, MatchBy::TagAndBytes)?),
        };
        sequences.grow_to(RankId(process.0.max(other.0)))?;
        sequences.push(process, operation)
    })?;
    read.ok_or_else(|| ParseError::End(format!("there is no send ({SEND}) or receive ({RECEIVE}) in it")))
}

/// Writes a trace, process by process, with 0 for tasks and times. What is calculated is left out, which the form cannot say.
///
/// # Errors
/// If it cannot be written, or a receive takes anybody's message, which the form cannot say.
pub fn write(sequences: &Sequences, mut file: impl Write) -> io::Result<()> {
    for (rank, operations) in sequences.ranks().iter().enumerate() {
        for operation in operations {
            match operation {
                Operation::Calculate { .. } => {}
                Operation::Send { to, bytes, tag } => writeln!(file, "{SEND} {rank} 0 {} 0 0 {tag} {bytes}", to.0)?,
                Operation::Receive { from: Some(from), bytes, tag } => {
                    writeln!(file, "{RECEIVE} {rank} 0 {} 0 0 {tag} {bytes}", from.0)?;
                }
                Operation::Receive { from: None, .. } => {
                    return Err(io::Error::other(format!("rank {rank} receives from anybody: alog cannot say that")));
                }
            }
        }
    }
    Ok(())
}
