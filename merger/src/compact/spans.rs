//! Processing spans in the order of their begins.

use std::io;

use trace::ids::{ConnectionId, MessageId, ProcessId};
use trace::rows::SpanRow;

use crate::spilled::{Reader, Record, SharedList, Writer};
use crate::words::Words;

/// A [`SpanRow`] whose texts lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessingSpan<'w> {
    /// Process.
    pub process: ProcessId,
    /// Thread; 0 = not told.
    pub thread: u64,
    /// What was done, as in [`SpanRow`].
    pub kind: &'w str,
    /// Method, operation, map.
    pub name: &'w str,
    /// Connection, if known.
    pub connection: Option<ConnectionId>,
    /// Its request, if found.
    pub request: Option<MessageId>,
    /// Its response, if found.
    pub response: Option<MessageId>,
    /// When what it works on was there, nanoseconds since the epoch.
    pub received_ns: u64,
    /// Begin.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
}

impl From<ProcessingSpan<'_>> for SpanRow {
    fn from(span: ProcessingSpan<'_>) -> Self {
        Self {
            process: span.process,
            thread: span.thread,
            kind: span.kind.to_owned(),
            name: span.name.to_owned(),
            connection: span.connection,
            request: span.request,
            response: span.response,
            received_ns: span.received_ns,
            begin_ns: span.begin_ns,
            end_ns: span.end_ns,
        }
    }
}

/// All spans, by their row numbers. What a temporary file did not give back are spans of nothing, until [`Spans::check`] tells.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    records: SharedList<SpanRecord>,
    words: Words,
}

impl Spans {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A span by its row number.
    #[must_use]
    pub fn get(&self, number: usize) -> ProcessingSpan<'_> {
        self.records.get(number).view(&self.words)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ProcessingSpan<'_>> {
        self.records.iter().map(|record| record.view(&self.words))
    }

    /// Appends a span.
    pub fn push(&mut self, row: &SpanRow) {
        let (kind, name) = (self.words.number_of(&row.kind), self.words.number_of(&row.name));
        self.records.push(SpanRecord {
            process: row.process,
            thread: row.thread,
            kind,
            name,
            connection: row.connection,
            request: row.request,
            response: row.response,
            received_ns: row.received_ns,
            begin_ns: row.begin_ns,
            end_ns: row.end_ns,
        });
    }

    /// How many names their rows lack, as there was no room for them.
    pub(crate) fn names_left_out(&self) -> u64 {
        self.words.left_out()
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.records.check()
    }
}

impl Extend<SpanRow> for Spans {
    fn extend<R: IntoIterator<Item = SpanRow>>(&mut self, rows: R) {
        rows.into_iter().for_each(|row| self.push(&row));
    }
}

/// A span with the numbers of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpanRecord {
    process: ProcessId,
    thread: u64,
    kind: u32,
    name: u32,
    connection: Option<ConnectionId>,
    request: Option<MessageId>,
    response: Option<MessageId>,
    received_ns: u64,
    begin_ns: u64,
    end_ns: u64,
}

impl SpanRecord {
    fn view(self, words: &Words) -> ProcessingSpan<'_> {
        ProcessingSpan {
            process: self.process,
            thread: self.thread,
            kind: words.text(self.kind),
            name: words.text(self.name),
            connection: self.connection,
            request: self.request,
            response: self.response,
            received_ns: self.received_ns,
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
        }
    }
}

impl Record for SpanRecord {
    const BLANK: Self = Self {
        process: ProcessId(0),
        thread: 0,
        kind: u32::MAX,
        name: u32::MAX,
        connection: None,
        request: None,
        response: None,
        received_ns: 0,
        begin_ns: 0,
        end_ns: 0,
    };
    const BYTES: usize = 1 + 6 * 4 + 4 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        let there = [self.connection.is_some(), self.request.is_some(), self.response.is_some()];
        let ids = [self.connection.map(|it| it.0), self.request.map(|it| it.0), self.response.map(|it| it.0)];
        out.bytes([there.into_iter().rev().fold(0, |flags, is| flags << 1 | u8::from(is))]);
        [self.process.0, self.kind, self.name].into_iter().for_each(|number| number.write(out));
        ids.into_iter().for_each(|id| id.unwrap_or(0).write(out));
        let large = [self.thread, self.received_ns, self.begin_ns, self.end_ns];
        large.into_iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let flags = input.u8();
        let [process, kind, name, connection, request, response] = std::array::from_fn(|_| input.u32());
        let [thread, received_ns, begin_ns, end_ns] = std::array::from_fn(|_| input.u64());
        Self {
            process: ProcessId(process),
            thread,
            kind,
            name,
            connection: (flags & 1 != 0).then_some(ConnectionId(connection)),
            request: (flags & 2 != 0).then_some(MessageId(request)),
            response: (flags & 4 != 0).then_some(MessageId(response)),
            received_ns,
            begin_ns,
            end_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spilled::read_back;

    #[test]
    fn spans_are_read_as_they_were_written() {
        for there in 0..8u32 {
            let id = |bit: u32| (there >> bit & 1 != 0).then_some(bit);
            let span = SpanRecord {
                process: ProcessId(7),
                thread: 1 << 40,
                kind: 8,
                name: 9,
                connection: id(0).map(ConnectionId),
                request: id(1).map(MessageId),
                response: id(2).map(MessageId),
                received_ns: 10,
                begin_ns: u64::MAX,
                end_ns: 11,
            };
            assert_eq!(read_back(&span), span);
        }
    }
}
