//! Job histories of Hadoop 2 and later (`*.jhist`), event by event.
//!
//! Line 1 is `Avro-Json` or `Avro-Binary` (what Hadoop 3.x writes unless `mapreduce.jobhistory.jhist.format` says
//! `json`), line 2 the schema. Then come the events, as JSON one a line, in binary one right behind the other. Both come
//! out of here in the form of Avro's JSON: `{"type":"AM_STARTED","event":{"org...AMStarted":{"startTime":1000}}}`.
//!
//! A history that was cut off, such as a running job's, gives all its whole events. One event never takes more than a
//! few times [`MAX_EVENT_BYTES`] of memory, whatever the file says of its lengths.

mod avro;
mod input;

use std::io::{self, BufRead};

use serde_json::Value;

use avro::{Datum, Schema, Stop};
use input::Input;

/// What one event (or a schema) may take, in the file and likewise of names and values in memory; the largest real ones,
/// ends of attempts with all their counters, are some KiB long.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

const BINARY: &[u8] = b"Avro-Binary";
/// How the line of the schema begins, in histories of either kind.
const SCHEMA: &[u8] = b"{\"type\":\"record\"";

/// What could not be used of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Bytes at the end that are no whole event: the writer had not written more, or was killed.
    pub truncated_bytes: u64,
    /// Lines that are no event.
    pub malformed_lines: u64,
    /// Lines that are longer than any event may be.
    pub overlong_lines: u64,
    /// Why the file could not be read to its end: packed data that is cut off, damaged, or grows beyond all measure.
    pub broken_off: Option<String>,
    /// Binary only, where nothing tells where the next event begins: what is wrong, and the bytes from there on.
    pub damaged: Option<(String, u64)>,
}

/// The events of a history, in the order of the file. Several files put together are read as one.
///
/// An error is one of the input; what is wrong with the history itself is told by [`Events::losses`] at the end.
#[derive(Debug)]
pub struct Events<R> {
    input: Input<R>,
    /// That of the binary events that come next; none: lines come next.
    schema: Option<Schema>,
    line: Vec<u8>,
    /// Where the next event begins, for messages.
    offset: u64,
    ended: bool,
    losses: Losses,
}

impl<R: BufRead> Events<R> {
    /// Reads from the beginning of a history.
    pub fn new(input: R) -> Self {
        Self {
            input: Input::new(input),
            schema: None,
            line: Vec::new(),
            offset: 0,
            ended: false,
            losses: Losses::default(),
        }
    }

    /// What could not be used until now.
    #[must_use]
    pub fn losses(&self) -> Losses {
        Losses { broken_off: self.input.broken_off(), ..self.losses.clone() }
    }

    fn event(&mut self) -> io::Result<Option<Value>> {
        while !self.ended {
            // No binary event begins with this byte (its type would be number -33): another file was appended.
            let event = match self.schema.take() {
                Some(schema) if self.peek()? != Some(b'A') => self.binary(schema)?,
                _ => self.json()?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// The event of the next line; none if it is no event.
    fn json(&mut self) -> io::Result<Option<Value>> {
        let length = self.read_line()?;
        let whole = self.line.last() == Some(&b'\n');
        if self.line.trim_ascii_end() == BINARY && whole {
            self.read_schema()?;
        } else if length > self.line.len() as u64 {
            self.losses.overlong_lines += 1;
        } else if self.line.first() == Some(&b'{') && !self.line.starts_with(SCHEMA) {
            match serde_json::from_slice(&self.line) {
                Ok(event) => return Ok(Some(event)),
                Err(_) if self.ended => self.losses.truncated_bytes += length,
                Err(_) => self.losses.malformed_lines += 1,
            }
        }
        Ok(None)
    }

    fn read_schema(&mut self) -> io::Result<()> {
        let length = self.read_line()?;
        if self.ended {
            self.losses.truncated_bytes += length;
            return Ok(());
        }
        match Schema::parse(&self.line) {
            Ok(schema) => self.schema = Some(schema),
            Err(reason) => self.give_up(&format!("the schema in line 2: {reason}"), 0)?,
        }
        Ok(())
    }

    fn binary(&mut self, schema: Schema) -> io::Result<Option<Value>> {
        if self.peek()?.is_none() {
            self.ended = true;
            return Ok(None);
        }
        let mut datum = Datum::new(&mut self.input, MAX_EVENT_BYTES);
        let event = datum.read(&schema);
        let length = datum.length();
        match event {
            Ok(event) => {
                self.offset += length;
                self.schema = Some(schema);
                Ok(Some(event))
            }
            Err(Stop::CutOff) => {
                self.losses.truncated_bytes += length;
                self.ended = true;
                Ok(None)
            }
            Err(Stop::Damaged(reason)) => {
                self.give_up(&format!("the event at byte {}: {reason}", self.offset), length)?;
                Ok(None)
            }
            Err(Stop::Io(error)) => Err(error),
        }
    }

    /// Leaves the rest unread; `length` bytes of it were taken from the input already.
    fn give_up(&mut self, reason: &str, length: u64) -> io::Result<()> {
        let mut left = length;
        while !self.ended {
            left += self.read_line()?;
        }
        self.losses.damaged = Some((reason.to_owned(), left));
        Ok(())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.next_bytes()?.first().copied())
    }

    /// Reads a line with its end, of which `self.line` holds no more than [`MAX_EVENT_BYTES`]; returns its length.
    fn read_line(&mut self) -> io::Result<u64> {
        self.line.clear();
        let begin = self.offset;
        loop {
            let bytes = self.input.next_bytes()?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            let kept = taken.min(MAX_EVENT_BYTES - self.line.len());
            self.line.extend_from_slice(&bytes[..kept]);
            self.input.consume(taken);
            self.offset += taken as u64;
            self.ended = taken == 0;
            if end.is_some() || self.ended {
                return Ok(self.offset - begin);
            }
        }
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.event().transpose()?;
        self.ended |= event.is_err();
        Some(event)
    }
}
