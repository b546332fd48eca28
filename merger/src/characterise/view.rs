//! A trace as it is characterised: the connections that count, and who is at their ends.

use std::collections::HashSet;

use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{ConnectionRow, MessageRow, Trace};

use crate::check::counted;

/// Role of a process that is not known.
const UNKNOWN: &str = "unknown";

/// A trace without what is not Hadoop's.
pub struct View<'a> {
    /// The whole of it.
    pub trace: &'a Trace,
    counted: HashSet<ConnectionId>,
}

impl<'a> View<'a> {
    /// Of a trace.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        Self { trace, counted: counted(trace) }
    }

    /// Connections that have an end of Hadoop's, or one that nobody knows.
    pub fn connections(&self) -> impl Iterator<Item = &'a ConnectionRow> {
        self.trace.connections.iter().filter(|row| self.counted.contains(&row.connection))
    }

    /// Their messages, each with its connection.
    pub fn messages(&self) -> impl Iterator<Item = (&'a MessageRow, &'a ConnectionRow)> {
        let of = |row: &'a MessageRow| Some((row, self.trace.connections.get(row.connection.index())?));
        self.trace.messages.iter().filter(|row| self.counted.contains(&row.connection)).filter_map(of)
    }

    /// Role of a process.
    #[must_use]
    pub fn role(&self, process: Option<ProcessId>) -> &'a str {
        let role = process.and_then(|process| self.trace.processes.get(process.index())).map(|row| row.role.as_str());
        role.filter(|role| !role.is_empty()).unwrap_or(UNKNOWN)
    }

    /// Name of a host.
    #[must_use]
    pub fn host(&self, host: trace::ids::HostId) -> &'a str {
        self.trace.hosts.get(host.index()).map_or(UNKNOWN, |row| row.name.as_str())
    }
}

/// A connection's protocol by a name that is never empty.
#[must_use]
pub fn protocol(row: &ConnectionRow) -> &str {
    if row.protocol.is_empty() { UNKNOWN } else { &row.protocol }
}

/// Payload of a connection, both directions.
#[must_use]
pub fn payload(row: &ConnectionRow) -> u64 {
    row.client_bytes.saturating_add(row.server_bytes)
}
