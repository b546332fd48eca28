//! What connections carry on which both sides negotiate first: by TLS, or by SASL.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use trace::ids::ConnectionId;
use trace::rows::{MessageKind, Trace};

use super::report::{Negotiated, named};
use crate::sums::add;

/// Negotiated connections, by protocol.
pub(super) fn of(trace: &Trace, counted: &HashSet<ConnectionId>) -> BTreeMap<String, Negotiated> {
    let mine = || trace.messages.iter().filter(|row| counted.contains(&row.connection));
    let ids: BTreeSet<ConnectionId> =
        mine().filter(|row| row.kind == MessageKind::Sasl).map(|row| row.connection).collect();
    let mut all: BTreeMap<String, Negotiated> = BTreeMap::new();
    let protocol = |id: ConnectionId| named(trace.connections.get(id.index()).map_or("", |row| &row.protocol));
    for id in &ids {
        all.entry(protocol(*id)).or_default().connections += 1;
    }
    for row in mine().filter(|row| ids.contains(&row.connection)) {
        let entry = all.entry(protocol(row.connection)).or_default();
        add(&mut entry.bytes, row.bytes);
        add(&mut entry.app_bytes, row.app_bytes);
        add(&mut entry.negotiation_bytes, if row.kind == MessageKind::Sasl { row.bytes } else { 0 });
    }
    all
}
