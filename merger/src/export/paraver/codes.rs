//! Paraver's numbers for states and events.

use crate::export::lanes::{ActivityKind, State};

/// All states, in the order of their numbers.
pub const STATES: [State; 4] = [State::Idle, State::Running, State::NotCreated, State::Waiting];

/// Number, name and colour (red, green, blue) of a state: those that Extrae writes, which Paraver's own views expect.
pub const fn of_state(state: State) -> (u32, &'static str, [u8; 3]) {
    match state {
        State::Idle => (0, "Idle", [117, 195, 255]),
        State::Running => (1, "Running", [0, 0, 255]),
        State::NotCreated => (2, "Not created", [255, 255, 255]),
        State::Waiting => (3, "Waiting a message", [255, 0, 0]),
    }
}

/// What an event is of. Each kind of activity has a type of its own, so that a call within a call of another kind closes
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Begin or end of an activity.
    Activity(ActivityKind),
    /// Job, from its submission to its end.
    Job,
    /// Role of the process.
    Role,
    /// Kind of a message that is sent.
    Sent,
    /// Its bytes.
    SentBytes,
    /// Kind of a message that has arrived.
    Received,
    /// Its bytes.
    ReceivedBytes,
}

impl EventType {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Job, Self::Role, Self::Sent, Self::SentBytes, Self::Received, Self::ReceivedBytes];
        ActivityKind::ALL.into_iter().map(Self::Activity).chain(others)
    }

    /// Paraver's number: below 2^31, so that it can have labels; the range of 60 million is that of users' own events
    /// in Extrae.
    pub const fn number(self) -> u32 {
        use ActivityKind as A;
        60_000_000
            + match self {
                Self::Activity(A::Phase) => 1,
                Self::Activity(A::RpcServed) => 2,
                Self::Activity(A::RpcCalled) => 3,
                Self::Activity(A::BlockServed) => 4,
                Self::Job => 5,
                Self::Activity(A::BlockRead) => 6,
                Self::Activity(A::BlockWritten) => 7,
                Self::Activity(A::OutputServed) => 8,
                Self::Activity(A::OutputFetched) => 9,
                Self::Activity(A::Other) => 10,
                Self::Role => 11,
                Self::Sent => 12,
                Self::SentBytes => 13,
                Self::Received => 14,
                Self::ReceivedBytes => 15,
            }
    }

    /// Name in Paraver.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activity(kind) => kind.name(),
            Self::Job => "Job",
            Self::Role => "Role",
            Self::Sent => "Message sent",
            Self::SentBytes => "Bytes of the message sent",
            Self::Received => "Message received",
            Self::ReceivedBytes => "Bytes of the message received",
        }
    }

    /// Whether its values are plain numbers, without labels.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::SentBytes | Self::ReceivedBytes)
    }
}
