//! The lines of the protocol: reading commands, writing completions.
//!
//! ASCII, one command a line. Times are decimal nanoseconds of any number of digits. Three forms of `SEND` are known: of
//! 12 words (Dimemas 5.2 to 5.5), of 11 without the tag (5.1), and of 9 without tag and applications (before). The
//! `PROTO` commands are written with a space by Dimemas, with an underscore in LIGHTNESS' deliverable.

use netsim::time::SimTime;
use thiserror::Error;

/// The latest time at which a message may leave: 100 days. Simulated times have room for 213.
pub const LATEST_SEND: SimTime = SimTime(100 * 24 * 3_600 * 1_000_000_000_000);

/// What is echoed may be so long at most; pointers are written with 18 characters.
const MAX_TOKEN: usize = 40;

/// A message as Dimemas announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it leaves.
    pub at: SimTime,
    /// Number of the sending node.
    pub source: u32,
    /// Number of the receiving node.
    pub destination: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Whether the size was negative, as that of 2 to 4 GiB is in a signed 32-bit number.
    pub wrapped: bool,
    /// Source, destination and size as they were written; for the answer.
    pub named: [String; 3],
    /// What the client wants back with the completion: event, resource, source, destination.
    pub echo: [String; 4],
}

/// A line of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A message leaves.
    Send(Message),
    /// A rendezvous was announced; nothing is to be done.
    OkToSend,
    /// Both sides of a rendezvous are ready: its message leaves.
    ReadyToRecv(Message),
    /// Simulate up to then.
    Stop(SimTime),
    /// It is the server's turn.
    End,
    /// Nothing more will come.
    Finish,
}

/// Why a line is none of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// No such command.
    #[error("\"{0}\" is no command (SEND, PROTO OK_TO_SEND, PROTO READY_TO_RECV, STOP, END, FINISH)")]
    Command(String),
    /// Too many or too few words.
    #[error("{command} has {words} words behind it; {allowed}")]
    Words {
        /// The command.
        command: &'static str,
        /// How many words follow.
        words: usize,
        /// How many may.
        allowed: &'static str,
    },
    /// A word that is not what stands there.
    #[error("{what} \"{value}\" is no {allowed}")]
    Value {
        /// Which word.
        what: &'static str,
        /// The word.
        value: String,
        /// What it must be.
        allowed: &'static str,
    },
}

fn wrong(what: &'static str, value: &str, allowed: &'static str) -> LineError {
    LineError::Value { what, value: shortened(value), allowed }
}

/// The beginning of what a client wrote, fit for a log.
#[must_use]
pub fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 80;
    let mut short: String = text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        short.push_str("...");
    }
    short
}

impl Command {
    /// Reads a line, without its line break.
    ///
    /// # Errors
    /// When it is none of the protocol; the error names word and value.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["SEND", rest @ ..] => Ok(Self::Send(message("SEND", rest)?)),
            ["PROTO", "OK_TO_SEND", rest @ ..] | ["PROTO_OK_TO_SEND", rest @ ..] => ok_to_send(rest),
            ["PROTO", "READY_TO_RECV", rest @ ..] | ["PROTO_READY_TO_RECV", rest @ ..] => {
                Ok(Self::ReadyToRecv(message("READY_TO_RECV", rest)?))
            }
            ["STOP", time] => Ok(Self::Stop(parse_time(time)?)),
            ["STOP", rest @ ..] => {
                Err(LineError::Words { command: "STOP", words: rest.len(), allowed: "1, the time, is needed" })
            }
            ["END"] => Ok(Self::End),
            ["FINISH"] => Ok(Self::Finish),
            _ => Err(LineError::Command(shortened(line))),
        }
    }
}

/// `t src dst [tag] size [src_app dst_app]`: only the time is looked at.
fn ok_to_send(words: &[&str]) -> Result<Command, LineError> {
    if !(4..=7).contains(&words.len()) {
        let allowed = "4 to 7 are possible: t src dst [tag] size [src_app dst_app]";
        return Err(LineError::Words { command: "OK_TO_SEND", words: words.len(), allowed });
    }
    parse_time(words[0])?;
    Ok(Command::OkToSend)
}

/// `t src dst [tag] size ev res src dst [src_app dst_app]`.
fn message(command: &'static str, words: &[&str]) -> Result<Message, LineError> {
    let tagged: &[&str] = match words.len() {
        8 | 10 => words,
        11 => &[&words[..3], &words[4..]].concat(),
        words => {
            let allowed = "8, 10 or 11 are possible: t src dst [tag] size ev res src dst [src_app dst_app]";
            return Err(LineError::Words { command, words, allowed });
        }
    };
    if words.len() == 11 && words[3].parse::<i64>().is_err() {
        return Err(wrong("tag", words[3], "whole number"));
    }
    let [time, source, destination, size, event, resource, source_again, destination_again, ..] = *tagged else {
        return Err(LineError::Words { command, words: words.len(), allowed: "8, 10 or 11 are possible" });
    };
    let echo = [event, resource, source_again, destination_again];
    if let Some(long) = echo.iter().find(|token| token.len() > MAX_TOKEN) {
        return Err(wrong("the token", long, "token of at most 40 characters"));
    }
    let at = parse_time(time)?;
    if at > LATEST_SEND {
        return Err(wrong("the time", time, "time within 100 days"));
    }
    let (bytes, wrapped) = parse_size(size)?;
    Ok(Message {
        at,
        source: parse_node(source)?,
        destination: parse_node(destination)?,
        bytes,
        wrapped,
        named: [source, destination, size].map(str::to_owned),
        echo: echo.map(str::to_owned),
    })
}

fn parse_node(word: &str) -> Result<u32, LineError> {
    word.parse().ok().filter(|_| word.len() <= MAX_TOKEN).ok_or_else(|| wrong("the node", word, "number from 0 on"))
}

/// A signed 32-bit number of bytes; a negative one is what was left of a size from 2 to 4 GiB.
fn parse_size(word: &str) -> Result<(u64, bool), LineError> {
    let allowed = "size in bytes (a signed number of 32 bits)";
    let size: i32 =
        word.parse().ok().filter(|_| word.len() <= MAX_TOKEN).ok_or_else(|| wrong("size", word, allowed))?;
    Ok((u64::from(size.cast_unsigned()), size < 0))
}

/// Reads decimal nanoseconds, to the nearest picosecond; what is later than [`SimTime::MAX`] becomes that, what is
/// negative 0.
///
/// # Errors
/// When the word is no decimal number.
pub fn parse_time(word: &str) -> Result<SimTime, LineError> {
    let error = || wrong("the time", word, "decimal number of nanoseconds");
    let (negative, unsigned) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().map_err(|_| error())?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(error());
    }
    if negative {
        return Ok(SimTime::ZERO);
    }
    // Picoseconds are three places more than nanoseconds.
    let places = i64::try_from(whole.len()).map_err(|_| error())? + i64::from(exponent) + 3;
    Ok(SimTime(rounded(&digits, places)))
}

/// The number whose first `places` digits of `digits` stand before the point, to the nearest.
fn rounded(digits: &[u8], places: i64) -> u64 {
    let digit =
        |place: i64| usize::try_from(place).ok().and_then(|place| digits.get(place)).map_or(0, |digit| digit - b'0');
    let Some(first) = digits.iter().position(|digit| *digit != b'0') else { return 0 };
    let mut number = 0u64;
    for place in i64::try_from(first).unwrap_or(i64::MAX)..places {
        let next = number.checked_mul(10).and_then(|number| number.checked_add(digit(place).into()));
        let Some(next) = next else { return u64::MAX };
        number = next;
    }
    number.saturating_add(u64::from(digit(places) >= 5))
}

/// Writes a time as decimal nanoseconds, exactly.
#[must_use]
pub fn format_time(time: SimTime) -> String {
    let (ns, ps) = (time.0 / 1_000, time.0 % 1_000);
    if ps == 0 {
        return ns.to_string();
    }
    format!("{ns}.{ps:03}").trim_end_matches('0').to_owned()
}

/// The line that says that `message`, which left at `left`, was complete at `at`; with its line break.
#[must_use]
pub fn completed(message: &Message, left: SimTime, at: SimTime) -> String {
    let [source, destination, size] = &message.named;
    let [event, resource, source_again, destination_again] = &message.echo;
    format!(
        "COMPLETED SEND {} {source} {destination} {size} {event} {resource} {source_again} {destination_again} {}\n",
        format_time(at),
        format_time(left)
    )
}
