//! What connections carry on which both sides negotiate first: by TLS, or by SASL.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use trace::ids::ConnectionId;
use trace::rows::MessageKind;
use trace_tables::Trace;

/// Negotiated connections of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// Connections.
    pub connections: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Of these, bytes of negotiations and of how they end.
    pub negotiation_bytes: u64,
    /// Of these, application data: of blocks and of map outputs.
    pub app_bytes: u64,
}

impl Negotiated {
    /// What is neither: requests, headers, checksums, and what encryption adds to them and to data.
    #[must_use]
    pub fn other_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.negotiation_bytes + self.app_bytes)
    }
}

/// All of them, by protocol.
pub(super) fn of(trace: &Trace, counted: &HashSet<ConnectionId>) -> BTreeMap<String, Negotiated> {
    let mine = || trace.messages.iter().filter(|row| counted.contains(&row.connection));
    let ids: BTreeSet<ConnectionId> =
        mine().filter(|row| row.kind == MessageKind::Sasl).map(|row| row.connection).collect();
    let mut all: BTreeMap<String, Negotiated> = BTreeMap::new();
    let protocol = |id: ConnectionId| super::named(&trace.connections[id.index()].protocol);
    for id in &ids {
        all.entry(protocol(*id)).or_default().connections += 1;
    }
    for row in mine().filter(|row| ids.contains(&row.connection)) {
        let entry = all.entry(protocol(row.connection)).or_default();
        entry.bytes += row.bytes;
        entry.app_bytes += row.app_bytes;
        entry.negotiation_bytes += if row.kind == MessageKind::Sasl { row.bytes } else { 0 };
    }
    all
}
