//! Dimemas' traces (`.dim`): CPU bursts, sends and receives of tasks of one thread.
//!
//! A send is eager, whatever its synchronisation says; a receive that does not wait (`irecv`) is passed over, and its `wait` receives. Events are
//! passed over. Collective operations are refused: they have to be expanded.

use std::io::{self, BufRead, Write};

use crate::builder::{MatchBy, Operation, RankId};
use crate::lines::{ParseError, each_line, number};
use crate::sequences::Sequences;

/// Seconds that a burst may take: 100 days.
const MAX_SECONDS: f64 = 100.0 * 24.0 * 3_600.0;

/// Reads a trace.
///
/// # Errors
/// If it cannot be read, a line is something else, or tasks have several threads.
pub fn read(file: impl BufRead) -> Result<Sequences, ParseError> {
    let mut read: Option<Sequences> = None;
    each_line(file, |line| {
        let Some(sequences) = &mut read else {
            read = Some(Sequences::new(tasks(line)?, MatchBy::Tag)?);
            return Ok(());
        };
        let words: Vec<&str> = line.split(':').collect();
        match words[..] {
            [""] | ["d" | "s", ..] | ["20", ..] => Ok(()),
            ["1", task, thread, seconds] => {
                let rank = rank(task, thread)?;
                sequences.push(rank, Operation::Calculate { ns: burst(seconds)? })
            }
            ["2", task, thread, to, to_thread, bytes, tag, communicator, _] => {
                let operation = Operation::Send {
                    to: rank(to, to_thread)?,
                    bytes: number(bytes, "size")?,
                    tag: known(tag, communicator)?,
                };
                sequences.push(rank(task, thread)?, operation)
            }
            ["3", _, _, _, _, _, _, _, "1"] => Ok(()),
            ["3", task, thread, from, from_thread, bytes, tag, communicator, "0" | "2"] => {
                let from = if from == "-1" { None } else { Some(rank(from, from_thread)?) };
                let operation =
                    Operation::Receive { from, bytes: number(bytes, "size")?, tag: known(tag, communicator)? };
                sequences.push(rank(task, thread)?, operation)
            }
            ["10", ..] => {
                Err("a collective operation: Dimemas' traces are read with these expanded to sends and receives"
                    .to_owned())
            }
            _ => Err(format!("\"{line}\" is no record of a burst, send, receive or event")),
        }
    })?;
    read.ok_or_else(|| ParseError::End("there is no header (#DIMEMAS:...) in it".to_owned()))
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
