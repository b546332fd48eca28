//! How complete a trace is, and how sure.

mod counters;
mod limits;
mod negotiated;
mod path;
mod report;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{ConnectionRow, MessageKind, OwnerEvidence, Trace};

pub use limits::{Limited, LimitsDetail};
pub use path::PathDetail;
pub use report::{Detail, HostDetail, IncompleteConnection, KernelDetail, Known, Negotiated, Report, Short, Volumes};
use report::{error, named};
pub use table::show;
/// What other reports for people share with this one.
pub(crate) mod table_parts {
    pub(crate) use super::table::{bytes, plain};
}

use crate::framing::source_of;
use crate::loss::EarlySegments;
use crate::processes::UNKNOWN_ROLE;
use crate::sums::add;

/// What is wanted: a check that misses one of these has found something wrong.
pub mod target {
    /// Least share of payload bytes with an owner and a role at both ends.
    pub const OWNED: f64 = 0.999;
    /// Least share of connections with an owner and a role at both ends.
    pub const OWNED_CONNECTIONS: f64 = 0.99;
    /// Least share of payload bytes in messages of known kind.
    pub const KNOWN: f64 = 0.99;
    /// Largest difference to the kernel's counters.
    pub const KERNEL: f64 = 0.001;
    /// Largest share of the payload that was acknowledged and never captured.
    pub const MISSING: f64 = 0.001;
    /// Largest difference to the job's counters.
    pub const COUNTERS: f64 = 0.005;
}

/// Listings of sockets come so often at best, nanoseconds: whose a connection was that lived shorter, they need not know.
const LISTED_EVERY_NS: u64 = 1_000_000_000;
/// Connections without an owner that are listed at most.
const LISTED_WITHOUT_OWNER: usize = 10_000;

/// Checks a trace.
#[must_use]
pub fn check(trace: &Trace) -> Report {
    let mut report = Report::default();
    let counted = counted(trace);
    owners(trace, &counted, &mut report);
    messages(trace, &counted, &mut report);
    kernel(trace, &counted, &mut report);
    report.detail.limits = limits::compare(trace, &counted);
    counters::compare(trace, &mut report);
    causes(trace, &mut report);
    report.detail.critical_paths = path::follow(trace);
    for host in &trace.hosts {
        report.detail.hosts.push(HostDetail {
            name: host.name.clone(),
            captured: host.captured,
            clock_offset_ns: host.clock_offset_ns,
            clock_drift_ppb: host.clock_drift_ppb,
        });
    }
    report.detail.rows = rows(trace);
    for loss in trace.manifest.losses.iter().filter(|loss| !loss.writer.is_empty()) {
        let by_unit = report.detail.unwritten_by.entry(loss.writer.clone()).or_default();
        add(by_unit.entry(loss.unit.clone()).or_default(), loss.count);
    }
    report.detail.losses.clone_from(&trace.manifest.losses);
    report.detail.notes.clone_from(&trace.manifest.notes);
    judge(&mut report);
    report
}

/// Rows of each table.
fn rows(trace: &Trace) -> BTreeMap<String, u64> {
    [
        ("processes", trace.processes.len()),
        ("connections", trace.connections.len()),
        ("limits", trace.limits.len()),
        ("messages", trace.messages.len()),
        ("spans", trace.spans.len()),
        ("steps", trace.steps.len()),
        ("events", trace.events.len()),
        ("dependencies", trace.dependencies.len()),
        ("timers", trace.timers.len()),
        ("tasks", trace.tasks.len()),
        ("jobs", trace.jobs.len()),
    ]
    .map(|(name, rows)| (name.to_owned(), rows as u64))
    .into()
}

/// Connections that count: all but those of which both ends are known and not Hadoop's.
pub(crate) fn counted(trace: &Trace) -> HashSet<ConnectionId> {
    trace.connections.iter().filter(|row| !is_other(trace, row)).map(|row| row.connection).collect()
}

/// Whether both ends are known and not Hadoop's.
fn is_other(trace: &Trace, row: &ConnectionRow) -> bool {
    let other = |process: Option<ProcessId>| {
        process.and_then(|process| trace.processes.get(process.index())).is_some_and(|process| !process.hadoop)
    };
    other(row.client_process) && other(row.server_process)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn owners(trace: &Trace, counted: &HashSet<ConnectionId>, report: &mut Report) {
    let mut owned = 0;
    let mut lacking = Vec::new();
    // Of a process in a listing nobody knows when it began.
    let only_listings = !trace.processes.is_empty() && trace.processes.iter().all(|process| process.start_ticks == 0);
    for row in &trace.connections {
        let bytes = row.client_bytes.saturating_add(row.server_bytes);
        if !counted.contains(&row.connection) {
            add(&mut report.detail.other_bytes, bytes);
            continue;
        }
        add(&mut report.payload_bytes, bytes);
        add(report.detail.bytes_by_protocol.entry(named(&row.protocol)).or_default(), bytes);
        for evidence in [row.client_evidence, row.server_evidence] {
            add(report.detail.bytes_by_owner_evidence.entry(evidence.as_str().to_owned()).or_default(), bytes);
        }
        for (missing, resent) in [
            (row.client_missing_bytes, row.client_retransmitted_bytes),
            (row.server_missing_bytes, row.server_retransmitted_bytes),
        ] {
            add(&mut report.detail.missing_bytes, missing);
            add(&mut report.detail.retransmitted_bytes, resent);
        }
        let mut reasons = Vec::new();
        for (end, process, evidence) in
            [("client", row.client_process, row.client_evidence), ("server", row.server_process, row.server_evidence)]
        {
            match process.and_then(|process| trace.processes.get(process.index())) {
                None => reasons.push(format!("{end}: no owner")),
                Some(process) if process.role == UNKNOWN_ROLE || process.role.is_empty() => {
                    reasons.push(format!("{end}: process {} ({}) has no known role", process.pid, process.main));
                }
                Some(_) if evidence == OwnerEvidence::Unknown => reasons.push(format!("{end}: no evidence")),
                Some(_) => {}
            }
        }
        if reasons.is_empty() {
            add(&mut owned, bytes);
        } else {
            let lacks_owner = row.client_process.is_none() || row.server_process.is_none();
            if only_listings && lacks_owner && row.last_ns.saturating_sub(row.first_ns) < LISTED_EVERY_NS {
                let short = &mut report.detail.shorter_than_listings;
                short.connections += 1;
                add(&mut short.bytes, bytes);
            }
            lacking.push(lack(row, bytes, reasons.join("; ")));
        }
    }
    report.owned_both_ends_share = share(owned, report.payload_bytes);
    report.detail.counted_connections = counted.len() as u64;
    report.detail.connections_without_owner = lacking.len() as u64;
    let owned_connections = (counted.len() - lacking.len()) as u64;
    report.owned_connections_share = share(owned_connections, counted.len() as u64);
    let short = &report.detail.shorter_than_listings;
    report.could_be_owned_share = share(owned, report.payload_bytes - short.bytes);
    report.could_be_owned_connections_share = share(owned_connections, counted.len() as u64 - short.connections);
    lacking.sort_by_key(|lacking| (std::cmp::Reverse(lacking.bytes), lacking.connection));
    lacking.truncate(LISTED_WITHOUT_OWNER);
    report.detail.without_owner = lacking;
}

fn lack(row: &ConnectionRow, bytes: u64, reason: String) -> IncompleteConnection {
    IncompleteConnection {
        connection: row.connection.0,
        client: row.client.clone(),
        server: row.server.clone(),
        protocol: named(&row.protocol),
        bytes,
        reason,
    }
}

fn largest(mut lacking: Vec<IncompleteConnection>) -> Vec<IncompleteConnection> {
    lacking.retain(|lacking| lacking.bytes > 0);
    lacking.sort_by_key(|lacking| (std::cmp::Reverse(lacking.bytes), lacking.connection));
    lacking.truncate(20);
    lacking
}

fn messages(trace: &Trace, counted: &HashSet<ConnectionId>, report: &mut Report) {
    let (mut known, mut all) = (0, 0);
    let mut unknown: BTreeMap<ConnectionId, (u64, u64)> = BTreeMap::new();
    for row in trace.messages.iter().filter(|row| counted.contains(&row.connection)) {
        add(&mut all, row.bytes);
        let detail = &mut report.detail;
        add(detail.bytes_by_kind.entry(row.kind.as_str().to_owned()).or_default(), row.bytes);
        *detail.messages_by_kind.entry(row.kind.as_str().to_owned()).or_default() += 1;
        add(detail.bytes_by_delimiting.entry(row.evidence.clone()).or_default(), row.bytes);
        let source = if row.kind == MessageKind::Unknown { "nothing" } else { source_of(&row.evidence) };
        let known_by = detail.known_by.entry(source.to_owned()).or_default();
        known_by.messages += 1;
        add(&mut known_by.bytes, row.bytes);
        if row.kind == MessageKind::Unknown {
            let (bytes, count) = unknown.entry(row.connection).or_default();
            add(bytes, row.bytes);
            *count += 1;
        } else {
            add(&mut known, row.bytes);
        }
        if row.delivered_ns < row.sent_end_ns || row.sent_end_ns < row.sent_ns {
            add(&mut report.causality_violations, 1);
        }
    }
    report.in_known_message_share = share(known, all);
    report.detail.negotiated = negotiated::of(trace, counted);
    let messages: u64 = report.detail.known_by.values().map(|known| known.messages).sum();
    for known in report.detail.known_by.values_mut() {
        known.message_share = share(known.messages, messages).unwrap_or(0.0);
        known.byte_share = share(known.bytes, all).unwrap_or(0.0);
    }
    let lacking = unknown.into_iter().filter_map(|(connection, (bytes, count))| {
        let row = trace.connections.get(connection.index())?;
        Some(lack(row, bytes, format!("{count} pieces not understood")))
    });
    report.detail.in_unknown_messages = largest(lacking.collect());
}

fn kernel(trace: &Trace, counted: &HashSet<ConnectionId>, report: &mut Report) {
    let mut detail = KernelDetail::default();
    let mut differences = Vec::new();
    for row in trace.connections.iter().filter(|row| counted.contains(&row.connection)) {
        for (end, captured, counted) in [
            ("client", row.client_bytes, row.client_kernel_bytes),
            ("server", row.server_bytes, row.server_kernel_bytes),
        ] {
            let Some(counted) = counted else {
                detail.unknown_ends += u64::from(captured > 0);
                continue;
            };
            detail.ends += 1;
            add(&mut detail.captured_bytes, captured);
            add(&mut detail.kernel_bytes, counted);
            let difference = captured.abs_diff(counted);
            add(&mut detail.absolute_difference_bytes, difference);
            differences.push(lack(row, difference, format!("{end}: captured {captured}, kernel {counted}")));
        }
    }
    report.captured_vs_kernel_error = error(detail.captured_bytes, detail.kernel_bytes);
    if report.captured_vs_kernel_error.is_none() {
        let reason = "no connection has counters of the kernel (tcp_info) at its end";
        report.reasons.insert("captured_vs_kernel_error".into(), reason.into());
    }
    detail.largest = largest(differences);
    report.detail.kernel = detail;
}

fn causes(trace: &Trace, report: &mut Report) {
    for loss in &trace.manifest.losses {
        let all = match EarlySegments::of(loss) {
            Some(EarlySegments::Violations) => &mut report.causality_violations,
            Some(EarlySegments::Clamped) => &mut report.detail.clamped_segments,
            None => continue,
        };
        add(all, loss.count);
    }
    let mut waiting = BTreeSet::new();
    for dependency in &trace.dependencies {
        waiting.insert(dependency.event);
        *report.detail.dependencies_by_evidence.entry(dependency.evidence.as_str().to_owned()).or_default() += 1;
        let (event, on) = (trace.events.get(dependency.event.index()), trace.events.get(dependency.on_event.index()));
        let backwards = match (event, on) {
            (Some(event), Some(on)) => on.recorded_ns > event.recorded_ns,
            _ => true,
        };
        add(&mut report.causality_violations, u64::from(backwards));
    }
    let all = trace.dependencies.len() as f64;
    let detail = &mut report.detail;
    detail.dependency_share_by_evidence = detail
        .dependencies_by_evidence
        .iter()
        .map(|(evidence, &count)| (evidence.clone(), count as f64 / all))
        .collect();
    detail.root_events = trace.events.iter().filter(|event| !waiting.contains(&event.event)).count() as u64;
}

fn judge(report: &mut Report) {
    let mut missed = Vec::new();
    for (name, value, least) in [
        ("owned_both_ends_share", report.could_be_owned_share, target::OWNED),
        ("owned_connections_share", report.could_be_owned_connections_share, target::OWNED_CONNECTIONS),
        ("in_known_message_share", report.in_known_message_share, target::KNOWN),
    ] {
        match value {
            Some(value) if value < least => missed.push(format!("{name} is {value:.6}, wanted at least {least}")),
            Some(_) => {}
            // Nothing could be owned; the figure itself is there.
            None if name == "owned_both_ends_share" && report.payload_bytes > 0 => {}
            None if name == "owned_connections_share" && report.detail.counted_connections > 0 => {}
            None => {
                let why =
                    if name == "owned_connections_share" { "there are no connections" } else { "there is no payload" };
                report.reasons.entry(name.into()).or_insert_with(|| why.into());
            }
        }
    }
    for (name, value, most) in [
        ("captured_vs_kernel_error", report.captured_vs_kernel_error, target::KERNEL),
        ("shuffle_bytes_error", report.shuffle_bytes_error, target::COUNTERS),
        ("hdfs_read_bytes_error", report.hdfs_read_bytes_error, target::COUNTERS),
        ("hdfs_write_bytes_error", report.hdfs_write_bytes_error, target::COUNTERS),
    ] {
        if let Some(value) = value.filter(|value| value.abs() > most) {
            missed.push(format!("{name} is {value:+.6}, wanted at most {most} either way"));
        }
    }
    if report.causality_violations > 0 {
        missed.push(format!("causality_violations is {}, wanted 0", report.causality_violations));
    }
    let missing = report.detail.missing_bytes;
    if let Some(lost) = share(missing, report.payload_bytes).filter(|lost| *lost > target::MISSING) {
        let percent = lost * 100.0;
        missed.push(format!("{missing} bytes ({percent:.2}% of the payload) were acknowledged and never captured: the recording lost packets"));
    }
    missed.extend(report.detail.critical_paths.iter().filter_map(|path| path.doubt.clone()));
    report.missed = missed;
}
