//! The seam between an execution and what carries its bytes: a simulated network, or any other.

use trace::ids::{ConnectionId, EventId, HostId};

use super::time::JobTime;

/// What carries the bytes of a job. Whoever has it tells the execution ([`Execution::delivered`](crate::Execution::delivered))
/// when the last byte of a send has arrived.
pub trait Transport {
    /// Sets up a connection. Each one that is sent on is set up once, before the first send, in the order of the trace.
    fn connect(&mut self, connection: ConnectionId, client: HostId, server: HostId);

    /// Hands bytes over at `now`, which is never earlier than the time of the send before.
    fn send(&mut self, now: JobTime, chunk: Chunk);
}

/// Bytes that are handed to a connection. The bytes of a connection's direction are delivered in the order of their sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// On which.
    pub connection: ConnectionId,
    /// True from client to server.
    pub from_client: bool,
    /// How many; 0 is allowed.
    pub bytes: u64,
    /// How many the application's message has of which these are a part.
    pub of_bytes: u64,
    /// Given back with their delivery.
    pub token: Token,
}

/// What an execution calls a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The bytes of an event.
    Event(EventId),
    /// Half a beat that goes on after the recorded ones, by number.
    Synthetic(u32),
    /// The first half of a handshake.
    Syn(ConnectionId),
    /// The second.
    SynAck(ConnectionId),
}

impl Sent {
    const KIND_BITS: u32 = 32;

    pub(crate) const fn token(self) -> Token {
        let (kind, number) = match self {
            Self::Event(event) => (0u64, event.0),
            Self::Synthetic(number) => (1, number),
            Self::Syn(connection) => (2, connection.0),
            Self::SynAck(connection) => (3, connection.0),
        };
        Token(kind << Self::KIND_BITS | number as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the token is the number")]
    pub(crate) const fn of(token: Token) -> Self {
        let number = token.0 as u32;
        match token.0 >> Self::KIND_BITS {
            0 => Self::Event(EventId(number)),
            1 => Self::Synthetic(number),
            2 => Self::Syn(ConnectionId(number)),
            _ => Self::SynAck(ConnectionId(number)),
        }
    }
}
