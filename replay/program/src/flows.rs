//! A list of flows, `SOURCE DESTINATION BYTES START_NS` a line, hosts from 0, as htsim and its kin take.

use std::io::BufRead;

use netsim::time::SimTime;

use crate::builder::{MatchBy, Operation, Placed, Program, RankId};
use crate::lines::{ParseError, each_line, number};

/// Nanoseconds at which a flow may begin: 100 days.
const MAX_START_NS: u64 = 100 * 24 * 3_600 * 1_000_000_000;

/// Reads a list of flows: each is a message of its own that waits for nothing but its time. Empty lines are passed over.
///
/// # Errors
/// If it cannot be read, or a line is something else.
pub fn read(file: impl BufRead) -> Result<Program, ParseError> {
    let mut program = Program::new(MatchBy::Nothing);
    let mut last = 0;
    each_line(file, |line| {
        if line.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [from, to, bytes, start] = words[..] else {
            return Err(format!("\"{line}\" is no flow: write SOURCE DESTINATION BYTES START_NS"));
        };
        let (from, to) = (number(from, "host")?, number(to, "host")?);
        let start_ns: u64 = number(start, "start in nanoseconds")?;
        if start_ns > MAX_START_NS {
            return Err(format!("{start_ns} ns: a flow may begin within 100 days"));
        }
        last = last.max(from).max(to);
        let operation = Operation::Send { to: RankId(to), bytes: number(bytes, "number of bytes")?, tag: 0 };
        let earliest = SimTime(start_ns * 1_000);
        program.add(Placed { earliest, ..Placed::new(RankId(from), operation) })?;
        program.set_ranks(last.checked_add(1).ok_or("that many hosts are not possible")?)
    })?;
    if program.operations() == 0 {
        return Err(ParseError::End("there are no flows in it".to_owned()));
    }
    Ok(program.finish())
}
