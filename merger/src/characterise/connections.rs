//! Connections: how long they live, how large they are, how far they go.

use std::collections::BTreeMap;

use trace::rows::ConnectionRow;

use super::quantiles::Sorted;
use super::tables::{LocalityRow, ProtocolRow, SizeRow};
use super::view::{View, payload, protocol};
use crate::sums::add;

/// Connections of one protocol.
#[derive(Default)]
struct Connections {
    sizes: Vec<u64>,
    lives_ns: Vec<u64>,
}

/// Connections by protocol.
#[must_use]
pub fn protocols(view: &View<'_>) -> Vec<ProtocolRow> {
    let mut all: BTreeMap<&str, Connections> = BTreeMap::new();
    for row in view.connections() {
        let connections = all.entry(protocol(row)).or_default();
        connections.sizes.push(payload(row));
        if row.syn_seen && row.end_seen {
            connections.lives_ns.push(row.last_ns.saturating_sub(row.first_ns));
        }
    }
    let mut rows: Vec<ProtocolRow> = all
        .into_iter()
        .map(|(protocol, connections)| {
            let (sizes, lives) = (Sorted::new(connections.sizes), Sorted::new(connections.lives_ns));
            ProtocolRow {
                protocol: protocol.to_owned(),
                connections: sizes.len(),
                whole: lives.len(),
                bytes: sizes.sum(),
                p50_bytes: sizes.percentile(50).unwrap_or(0),
                p99_bytes: sizes.percentile(99).unwrap_or(0),
                max_bytes: sizes.max().unwrap_or(0),
                life_p50_ns: lives.percentile(50),
                life_p99_ns: lives.percentile(99),
                life_max_ns: lives.max(),
            }
        })
        .collect();
    rows.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.protocol.cmp(&other.protocol)));
    rows
}

/// Sizes of connections and of messages.
#[must_use]
pub fn sizes(view: &View<'_>) -> Vec<SizeRow> {
    let connections = view.connections().map(payload).filter(|bytes| *bytes > 0).collect();
    let messages = view.messages().map(|(message, _)| message.bytes).filter(|bytes| *bytes > 0).collect();
    [("connections", connections), ("messages", messages)]
        .into_iter()
        .flat_map(|(unit, sizes)| distribution(unit, &Sorted::new(sizes)))
        .collect()
}

/// A row a percent. The share is that of all that are not larger than the size.
fn distribution(unit: &str, sizes: &Sorted) -> Vec<SizeRow> {
    let all = sizes.sum() as f64;
    let mut rows = Vec::new();
    let (mut passed, mut bytes_passed) = (0_usize, 0_u64);
    for percent in 1..=100 {
        let Some(bytes) = sizes.percentile(percent) else { break };
        while let Some(size) = sizes.values().get(passed).filter(|size| **size <= bytes) {
            passed += 1;
            add(&mut bytes_passed, *size);
        }
        rows.push(SizeRow { unit: unit.to_owned(), percent, bytes, share_of_bytes: bytes_passed as f64 / all });
    }
    rows
}

/// Payload by how far it went.
#[must_use]
pub fn locality(view: &View<'_>) -> Vec<LocalityRow> {
    let mut all: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for row in view.connections() {
        let (connections, bytes) = all.entry((scope(view, row), protocol(row))).or_default();
        *connections += 1;
        add(bytes, payload(row));
    }
    let row = |((scope, protocol), (connections, bytes)): ((&str, &str), (u64, u64))| LocalityRow {
        scope: scope.to_owned(),
        protocol: protocol.to_owned(),
        connections,
        bytes,
    };
    all.into_iter().map(row).collect()
}

fn scope(view: &View<'_>, row: &ConnectionRow) -> &'static str {
    let rack = |host: trace::ids::HostId| {
        view.trace.hosts.get(host.index()).map(|host| host.rack.as_str()).filter(|rack| !rack.is_empty())
    };
    if row.loopback || row.client_host == row.server_host {
        return "host";
    }
    match (rack(row.client_host), rack(row.server_host)) {
        (Some(one), Some(other)) if one == other => "rack",
        (Some(_), Some(_)) => "racks",
        _ => "unknown",
    }
}
