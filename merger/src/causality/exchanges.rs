//! Exchanges of the data transfer protocol and of HTTP: a request and what follows on it.

use std::io;

use trace::ids::{ConnectionId, MessageId};
use trace::rows::MessageKind;

use super::event::number;
use super::places::Places;
use crate::compact::Message;
use crate::maps::HashMap;

/// What messages of an exchange are.
const KINDS: usize = 4;

/// What one exchange consists of. There are many: all messages lie one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    messages: Box<[MessageId]>,
    /// Where those of the first kinds end.
    ends: [u32; KINDS - 1],
}

impl Exchange {
    fn of(messages: &[Vec<MessageId>; KINDS]) -> Self {
        let mut end = 0;
        let ends = std::array::from_fn(|kind| {
            end += messages[kind].len();
            number(end)
        });
        Self { messages: messages.concat().into(), ends }
    }

    /// Requests (one).
    pub fn requests(&self) -> &[MessageId] {
        self.of_kind(0)
    }

    /// First answers.
    pub fn responses(&self) -> &[MessageId] {
        self.of_kind(1)
    }

    /// Block data, map outputs, HTTP bodies.
    pub fn data(&self) -> &[MessageId] {
        self.of_kind(2)
    }

    /// Acknowledgements.
    pub fn acks(&self) -> &[MessageId] {
        self.of_kind(3)
    }

    fn of_kind(&self, kind: usize) -> &[MessageId] {
        let end = |kind: usize| self.ends.get(kind).map_or(self.messages.len(), |end| *end as usize);
        let begin = kind.checked_sub(1).map_or(0, end);
        &self.messages[begin..end(kind)]
    }
}

/// Which kind of an exchange's messages a message is of; `None` = it belongs to an exchange and is none of these.
fn kind_of(kind: MessageKind) -> Option<Option<usize>> {
    match kind {
        MessageKind::BlockRequest | MessageKind::ShuffleRequest | MessageKind::HttpRequest => Some(Some(0)),
        MessageKind::BlockResponse => Some(Some(1)),
        MessageKind::BlockData | MessageKind::ShuffleResponse | MessageKind::HttpResponse => Some(Some(2)),
        MessageKind::BlockAck => Some(Some(3)),
        MessageKind::BlockStatus => Some(None),
        _ => None,
    }
}

/// The exchanges of a connection, by their numbers on it: each with its number among all, and its messages by kind.
type OfConnection = HashMap<i64, (u32, [Vec<MessageId>; KINDS])>;

/// All exchanges.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    all: Vec<Exchange>,
    /// By message the exchange to which it belongs.
    of: Places,
    /// Those of connections of which messages are still to come.
    open: HashMap<ConnectionId, OfConnection>,
}

impl Exchanges {
    /// None yet, of so many messages.
    pub fn of(messages: usize) -> Self {
        Self { of: Places::of(messages), ..Self::default() }
    }

    /// Adds a message to its exchange, if it belongs to any.
    pub fn add(&mut self, message: &Message<'_>) {
        let Some(kind) = kind_of(message.kind) else { return };
        let of_connection = self.open.entry(message.connection).or_default();
        let (exchange, messages) = of_connection.entry(message.call).or_insert_with(|| {
            self.all.push(Exchange::default());
            (number(self.all.len() - 1), <[Vec<MessageId>; KINDS]>::default())
        });
        self.of.set(message.message, *exchange);
        if let Some(kind) = kind {
            messages[kind].push(message.message);
        }
    }

    /// Of a connection all messages have come.
    pub fn close(&mut self, connection: ConnectionId) {
        for (exchange, messages) in self.open.remove(&connection).into_iter().flat_map(HashMap::into_values) {
            self.all[exchange as usize] = Exchange::of(&messages);
        }
    }

    /// That of a message.
    pub fn get(&self, message: MessageId) -> Option<&Exchange> {
        self.of.get(message).map(|exchange| &self.all[exchange])
    }

    /// Gives back what only helps to append.
    pub fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.of.check()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn messages_lie_by_kind() {
        let ids = |numbers: &[u32]| numbers.iter().map(|number| MessageId(*number)).collect::<Vec<_>>();
        let exchange = Exchange::of(&[ids(&[1]), ids(&[]), ids(&[2, 4]), ids(&[3, 5, 6])]);
        assert_eq!((exchange.requests(), exchange.responses()), (&ids(&[1])[..], &[][..]));
        assert_eq!((exchange.data(), exchange.acks()), (&ids(&[2, 4])[..], &ids(&[3, 5, 6])[..]));
        assert!(Exchange::default().acks().is_empty());
    }
}
