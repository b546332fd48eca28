//! Messages as they are read, connection by connection, until they are put into the order of time.

use std::cmp::Ordering;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use trace::ids::{ConnectionId, MessageId};

use super::messages::{Message, MessageRecord, Messages};
use crate::spilled::{Reader, Record, RecordLog, Sorter, Writer};
use crate::words::Words;

/// Takes the messages of connections in, from several threads.
#[derive(Debug, Default)]
pub(crate) struct MessageLog(Mutex<(RecordLog<MessageRecord>, Words)>);

impl MessageLog {
    /// Takes those of one connection in, made by `of` with the words that there are, and says where they lie and which word its
    /// protocol is.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn take<D>(
        &self,
        protocol: &str,
        drafts: impl IntoIterator<Item = D>,
        of: impl Fn(D, &mut Words) -> MessageRecord,
    ) -> io::Result<(Range<usize>, u32)> {
        let (log, words) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = log.len();
        drafts.into_iter().try_for_each(|draft| log.push(of(draft, words)))?;
        Ok((first..log.len(), words.number_of(protocol)))
    }

    /// A word by its number.
    pub fn word(&self, number: u32) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.text(number).to_owned()
    }

    /// All of them; `parts` say where those of each connection lie.
    pub fn read(self, parts: Vec<Range<usize>>) -> ReadMessages {
        let (log, words) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        ReadMessages { log, words, parts }
    }
}

/// The messages of all connections, ordered by connection. They have no numbers yet.
#[derive(Debug, Default)]
pub(crate) struct ReadMessages {
    log: RecordLog<MessageRecord>,
    words: Words,
    parts: Vec<Range<usize>>,
}

impl ReadMessages {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Message<'_>> {
        self.records().map(|record| record.view(MessageId(0), &self.words))
    }

    fn records(&self) -> impl Iterator<Item = MessageRecord> {
        self.parts.iter().flat_map(|part| self.log.part(part.clone()))
    }

    /// Puts those that are `wanted` into the order of time. What `complete` makes with the words that there are changes each of them.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn in_order<C: Fn(&mut MessageRecord)>(
        mut self,
        wanted: impl Fn(&MessageRecord) -> bool,
        complete: impl FnOnce(&mut Words) -> C,
    ) -> io::Result<Messages> {
        let complete = complete(&mut self.words);
        let mut sorter = Sorter::default();
        let wanted = self.records().filter(wanted);
        wanted.zip(0..).try_for_each(|(record, place)| sorter.push(Ordered { record, place }))?;
        self.log.check()?;
        drop(self.log);
        let sorted = sorter.sorted()?;
        let mut messages = Messages::with_words(self.words);
        for Ordered { mut record, .. } in sorted.iter() {
            complete(&mut record);
            messages.push_record(record);
        }
        sorted.check()?;
        messages.check()?;
        Ok(messages)
    }
}

/// A message, and its place among those that were read: there those of one time stay in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ordered {
    record: MessageRecord,
    place: u64,
}

impl Ordered {
    fn key(&self) -> ((u64, ConnectionId, bool, u64), u64) {
        (self.record.order(), self.place)
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Record for Ordered {
    const BLANK: Self = Self { record: MessageRecord::BLANK, place: 0 };
    const BYTES: usize = MessageRecord::BYTES + u64::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.record.write(out);
        self.place.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { record: MessageRecord::read(input), place: input.u64() }
    }
}
