//! Identifiers. Each is a type of its own, so that one cannot be taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into the table of which this is the row number.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A host of the trace: the row of `hosts`.
    HostId
}
id! {
    /// A process (pid and start time on a host): the row of `processes`.
    ProcessId
}
id! {
    /// A TCP connection, seen from both sides as one: the row of `connections`.
    ConnectionId
}
id! {
    /// What an application meant as one unit, in one direction: the row of `messages`.
    MessageId
}
id! {
    /// A node of the causal graph: the row of `events`.
    EventId
}
id! {
    /// A loop that sends on its own account, again and again: the row of `timers`.
    TimerId
}
id! {
    /// An attempt of a task: the row of `tasks`.
    TaskId
}
id! {
    /// A job: the row of `jobs`.
    JobId
}
