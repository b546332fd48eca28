//! Who sent how much to whom, and in messages of what kind.

use std::collections::{BTreeMap, BTreeSet};

use trace::ids::ProcessId;
use trace::rows::{ConnectionRow, MessageKind};

use super::plane::{Bytes, Plane};
use super::quantiles::Sorted;
use super::series::Intervals;
use super::tables::{FanRow, KindRow, RoleRow};
use super::view::View;
use crate::sums::add;

/// What went from a role to another.
#[derive(Default)]
struct Sent {
    connections: u64,
    messages: u64,
    planes: Bytes,
    bytes: u64,
    by_interval: Vec<u64>,
}

/// Roles by roles. `seconds` is how long the trace is.
#[must_use]
pub fn roles(view: &View<'_>, intervals: Intervals, seconds: f64) -> Vec<RoleRow> {
    let mut all: BTreeMap<(&str, &str), Sent> = BTreeMap::new();
    let ends = |row: &ConnectionRow, from_client: bool| {
        let (client, server) = (view.role(row.client_process), view.role(row.server_process));
        if from_client { (client, server) } else { (server, client) }
    };
    for row in view.connections() {
        for (from_client, bytes) in [(true, row.client_bytes), (false, row.server_bytes)] {
            if bytes > 0 {
                let sent = all.entry(ends(row, from_client)).or_default();
                sent.connections += 1;
                add(&mut sent.bytes, bytes);
            }
        }
    }
    for (message, row) in view.messages() {
        let sent = all.entry(ends(row, message.from_client)).or_default();
        sent.messages += 1;
        sent.planes.add(Plane::of(message.kind), message.bytes);
        sent.by_interval.resize(intervals.len(), 0);
        for (interval, bytes) in intervals.spread(message) {
            if let Some(sum) = sent.by_interval.get_mut(interval) {
                add(sum, bytes);
            }
        }
    }
    let bps = |bytes: u64, seconds: f64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let mut rows: Vec<RoleRow> = all
        .into_iter()
        .map(|((from, to), sent)| RoleRow {
            from_role: from.to_owned(),
            to_role: to.to_owned(),
            connections: sent.connections,
            messages: sent.messages,
            control_bytes: sent.planes.control,
            data_bytes: sent.planes.data,
            unknown_bytes: sent.planes.unknown,
            bytes: sent.bytes,
            mean_bps: bps(sent.bytes, seconds),
            peak_bps: bps(sent.by_interval.into_iter().max().unwrap_or(0), intervals.seconds()),
        })
        .collect();
    rows.sort_by(|one, other| {
        other
            .bytes
            .cmp(&one.bytes)
            .then_with(|| (&one.from_role, &one.to_role).cmp(&(&other.from_role, &other.to_role)))
    });
    rows
}

/// Messages by kind.
#[must_use]
pub fn kinds(view: &View<'_>) -> Vec<KindRow> {
    let mut all: BTreeMap<MessageKind, (u64, Vec<u64>)> = BTreeMap::new();
    for (message, _) in view.messages() {
        let (app_bytes, sizes) = all.entry(message.kind).or_default();
        add(app_bytes, message.app_bytes);
        sizes.push(message.bytes);
    }
    let mut rows: Vec<KindRow> = all
        .into_iter()
        .map(|(kind, (app_bytes, sizes))| {
            let sizes = Sorted::new(sizes);
            KindRow {
                kind: kind.as_str().to_owned(),
                plane: Plane::of(kind).as_str().to_owned(),
                messages: sizes.len(),
                bytes: sizes.sum(),
                app_bytes,
                p50_bytes: sizes.percentile(50).unwrap_or(0),
                p99_bytes: sizes.percentile(99).unwrap_or(0),
                max_bytes: sizes.max().unwrap_or(0),
            }
        })
        .collect();
    rows.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.kind.cmp(&other.kind)));
    rows
}

/// Processes that one opens connections to, and those from which it has them.
#[derive(Default)]
struct Peers {
    out: BTreeSet<ProcessId>,
    back: BTreeSet<ProcessId>,
}

/// With how many others processes speak.
#[must_use]
pub fn fans(view: &View<'_>) -> Vec<FanRow> {
    let mut peers: BTreeMap<ProcessId, Peers> = BTreeMap::new();
    for row in view.connections() {
        let (Some(client), Some(server)) = (row.client_process, row.server_process) else { continue };
        peers.entry(client).or_default().out.insert(server);
        peers.entry(server).or_default().back.insert(client);
    }
    let mut roles: BTreeMap<&str, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for (process, peers) in peers {
        let (out, back) = roles.entry(view.role(Some(process))).or_default();
        out.push(peers.out.len() as u64);
        back.push(peers.back.len() as u64);
    }
    roles
        .into_iter()
        .map(|(role, (out, back))| {
            let (out, back) = (Sorted::new(out), Sorted::new(back));
            FanRow {
                role: role.to_owned(),
                processes: out.len(),
                fan_out_p50: out.percentile(50).unwrap_or(0),
                fan_out_max: out.max().unwrap_or(0),
                fan_in_p50: back.percentile(50).unwrap_or(0),
                fan_in_max: back.max().unwrap_or(0),
            }
        })
        .collect()
}
