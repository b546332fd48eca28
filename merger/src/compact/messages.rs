//! Messages in the order of time.

use std::io;

use trace::ids::{ConnectionId, MessageId};
use trace::rows::{MessageKind, MessageRow};

use crate::spilled::{Reader, Record, SharedList, Writer, variant};
use crate::words::Words;

/// A [`MessageRow`] whose texts lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'w> {
    /// Row number, in order of `sent_ns`.
    pub message: MessageId,
    /// Its connection.
    pub connection: ConnectionId,
    /// True from client to server.
    pub from_client: bool,
    /// What it is.
    pub kind: MessageKind,
    /// RPC method, operation, path; "" = none.
    pub name: &'w str,
    /// Call id, or number of the exchange on its connection.
    pub call: i64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Application data among them.
    pub app_bytes: u64,
    /// Its first byte left, nanoseconds since the epoch.
    pub sent_ns: u64,
    /// Its last byte left.
    pub sent_end_ns: u64,
    /// Its last byte had arrived.
    pub delivered_ns: u64,
    /// Block id.
    pub block: Option<u64>,
    /// Task attempt that it is for.
    pub attempt: Option<&'w str>,
    /// Map attempt.
    pub map: Option<&'w str>,
    /// Reduce.
    pub reduce: Option<u32>,
    /// Hop of a pipeline.
    pub hop: Option<u32>,
    /// Application data that nobody took.
    pub unread_bytes: Option<u64>,
    /// How it was delimited.
    pub evidence: &'w str,
}

impl From<Message<'_>> for MessageRow {
    fn from(message: Message<'_>) -> Self {
        Self {
            message: message.message,
            connection: message.connection,
            from_client: message.from_client,
            kind: message.kind,
            name: message.name.to_owned(),
            call: message.call,
            offset: message.offset,
            bytes: message.bytes,
            app_bytes: message.app_bytes,
            sent_ns: message.sent_ns,
            sent_end_ns: message.sent_end_ns,
            delivered_ns: message.delivered_ns,
            block: message.block,
            attempt: message.attempt.map(str::to_owned),
            map: message.map.map(str::to_owned),
            reduce: message.reduce,
            hop: message.hop,
            unread_bytes: message.unread_bytes,
            evidence: message.evidence.to_owned(),
        }
    }
}

/// Memory that messages take at most, texts apart, bytes: some of them are looked up all the time.
const MAX_BYTES: usize = 4 << 20;

/// All messages, by their row numbers. What a temporary file did not give back are messages of nothing, until
/// [`Messages::check`] tells.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    records: SharedList<MessageRecord>,
    words: Words,
}

impl Messages {
    /// None yet; `words` are those of the records that come.
    pub(crate) fn with_words(words: Words) -> Self {
        Self { records: SharedList::within(MAX_BYTES), words }
    }

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

    /// A message.
    #[must_use]
    pub fn get(&self, message: MessageId) -> Message<'_> {
        self.records.get(message.index()).view(message, &self.words)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Message<'_>> {
        let numbered = self.records.iter().enumerate();
        numbered.map(|(number, record)| record.view(MessageId(number as u32), &self.words))
    }

    /// Appends a message; its number is its place.
    pub fn push(&mut self, row: &MessageRow) {
        let record = MessageRecord::of(row, &mut self.words);
        self.records.push(record);
    }

    /// Appends a message whose words are known.
    pub(crate) fn push_record(&mut self, record: MessageRecord) {
        self.records.push(record);
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

/// A message with the numbers of its words; its own is its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRecord {
    pub connection: ConnectionId,
    pub from_client: bool,
    pub kind: MessageKind,
    pub name: u32,
    pub call: i64,
    pub offset: u64,
    pub bytes: u64,
    pub app_bytes: u64,
    pub sent_ns: u64,
    pub sent_end_ns: u64,
    pub delivered_ns: u64,
    pub block: Option<u64>,
    pub attempt: Option<u32>,
    pub map: Option<u32>,
    pub reduce: Option<u32>,
    pub hop: Option<u32>,
    pub unread_bytes: Option<u64>,
    pub evidence: u32,
}

impl MessageRecord {
    fn of(row: &MessageRow, words: &mut Words) -> Self {
        Self {
            connection: row.connection,
            from_client: row.from_client,
            kind: row.kind,
            name: words.number_of(&row.name),
            call: row.call,
            offset: row.offset,
            bytes: row.bytes,
            app_bytes: row.app_bytes,
            sent_ns: row.sent_ns,
            sent_end_ns: row.sent_end_ns,
            delivered_ns: row.delivered_ns,
            block: row.block,
            attempt: row.attempt.as_deref().and_then(|attempt| words.number_if_kept(attempt)),
            map: row.map.as_deref().and_then(|map| words.number_if_kept(map)),
            reduce: row.reduce,
            hop: row.hop,
            unread_bytes: row.unread_bytes,
            evidence: words.number_of(&row.evidence),
        }
    }

    /// With its texts.
    pub fn view(self, message: MessageId, words: &Words) -> Message<'_> {
        Message {
            message,
            connection: self.connection,
            from_client: self.from_client,
            kind: self.kind,
            name: words.text(self.name),
            call: self.call,
            offset: self.offset,
            bytes: self.bytes,
            app_bytes: self.app_bytes,
            sent_ns: self.sent_ns,
            sent_end_ns: self.sent_end_ns,
            delivered_ns: self.delivered_ns,
            block: self.block,
            attempt: self.attempt.map(|attempt| words.text(attempt)),
            map: self.map.map(|map| words.text(map)),
            reduce: self.reduce,
            hop: self.hop,
            unread_bytes: self.unread_bytes,
            evidence: words.text(self.evidence),
        }
    }

    /// In order of time those of one connection and direction stay in that of their bytes.
    pub fn order(&self) -> (u64, ConnectionId, bool, u64) {
        (self.sent_ns, self.connection, !self.from_client, self.offset)
    }
}

impl Record for MessageRecord {
    const BLANK: Self = Self {
        connection: ConnectionId(0),
        from_client: false,
        kind: MessageKind::Unknown,
        name: u32::MAX,
        call: 0,
        offset: 0,
        bytes: 0,
        app_bytes: 0,
        sent_ns: 0,
        sent_end_ns: 0,
        delivered_ns: 0,
        block: None,
        attempt: None,
        map: None,
        reduce: None,
        hop: None,
        unread_bytes: None,
        evidence: u32::MAX,
    };
    const BYTES: usize = 2 + 7 * 4 + 9 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        let there = [
            self.from_client,
            self.block.is_some(),
            self.attempt.is_some(),
            self.map.is_some(),
            self.reduce.is_some(),
            self.hop.is_some(),
            self.unread_bytes.is_some(),
        ];
        let flags = there.into_iter().rev().fold(0, |flags, is| flags << 1 | u8::from(is));
        out.bytes([flags, self.kind as u8]);
        let (attempt, map) = (self.attempt.unwrap_or(0), self.map.unwrap_or(0));
        let (reduce, hop) = (self.reduce.unwrap_or(0), self.hop.unwrap_or(0));
        let small = [self.connection.0, self.name, attempt, map, reduce, hop, self.evidence];
        small.into_iter().for_each(|number| number.write(out));
        let (block, unread) = (self.block.unwrap_or(0), self.unread_bytes.unwrap_or(0));
        let times = [self.sent_ns, self.sent_end_ns, self.delivered_ns];
        let large = [self.call.cast_unsigned(), self.offset, self.bytes, self.app_bytes, block, unread];
        large.into_iter().chain(times).for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (flags, kind) = (input.u8(), input.u8());
        let is = |bit: u8| flags & (1 << bit) != 0;
        let [connection, name, attempt, map, reduce, hop, evidence] = std::array::from_fn(|_| input.u32());
        let [call, offset, bytes, app_bytes, block, unread] = std::array::from_fn(|_| input.u64());
        let [sent_ns, sent_end_ns, delivered_ns] = std::array::from_fn(|_| input.u64());
        Self {
            connection: ConnectionId(connection),
            from_client: is(0),
            kind: variant(MessageKind::ALL, kind).unwrap_or(MessageKind::Unknown),
            name,
            call: call.cast_signed(),
            offset,
            bytes,
            app_bytes,
            sent_ns,
            sent_end_ns,
            delivered_ns,
            block: is(1).then_some(block),
            attempt: is(2).then_some(attempt),
            map: is(3).then_some(map),
            reduce: is(4).then_some(reduce),
            hop: is(5).then_some(hop),
            unread_bytes: is(6).then_some(unread),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    prop_compose! {
        fn message()(
            (from_client, kind) in (any::<bool>(), 0..MessageKind::ALL.len()),
            (words, call, times) in (any::<[u32; 3]>(), any::<i64>(), any::<[u64; 6]>()),
            (block, unread_bytes) in (any::<Option<u64>>(), any::<Option<u64>>()),
            (attempt, map, reduce, hop) in any::<(Option<u32>, Option<u32>, Option<u32>, Option<u32>)>(),
        ) -> MessageRecord {
            let [offset, bytes, app_bytes, sent_ns, sent_end_ns, delivered_ns] = times;
            let (connection, kind) = (ConnectionId(words[2]), MessageKind::ALL[kind]);
            let (name, evidence) = (words[0], words[1]);
            MessageRecord {
                connection, from_client, kind, name, call, offset, bytes, app_bytes, sent_ns, sent_end_ns, delivered_ns,
                block, attempt, map, reduce, hop, unread_bytes, evidence,
            }
        }
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(message in message()) {
            prop_assert_eq!(read_back(&message), message);
        }
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let row = MessageRow {
            message: MessageId(1),
            connection: ConnectionId(2),
            from_client: true,
            kind: MessageKind::ShuffleResponse,
            name: "/mapOutput".into(),
            call: -3,
            offset: 4,
            bytes: 5,
            app_bytes: 6,
            sent_ns: 7,
            sent_end_ns: 8,
            delivered_ns: 9,
            block: None,
            attempt: Some("attempt_1_0001_r_000000_0".into()),
            map: Some("attempt_1_0001_m_000000_0".into()),
            reduce: Some(0),
            hop: None,
            unread_bytes: Some(10),
            evidence: "framing".into(),
        };
        let mut messages = Messages::default();
        [&MessageRow { message: MessageId(0), ..row.clone() }, &row].into_iter().for_each(|row| messages.push(row));
        assert_eq!(MessageRow::from(messages.get(MessageId(1))), row);
        assert!(messages.iter().map(|message| message.message.0).eq(0..2) && messages.check().is_ok());
    }
}
