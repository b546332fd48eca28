//! A check for people.

use comfy_table::{ContentArrangement, Table, presets};

use super::{IncompleteConnection, Report, limits, target};
use crate::loss::NEVER_CAPTURED;
use trace::manifest::Loss;

/// Connections that are shown to people at most.
const SHOWN: usize = 20;

/// Figures that have a target, and a line in the first table.
const FIGURES: [&str; 8] = [
    "owned_both_ends_share",
    "owned_connections_share",
    "in_known_message_share",
    "causality_violations",
    "captured_vs_kernel_error",
    "shuffle_bytes_error",
    "hdfs_read_bytes_error",
    "hdfs_write_bytes_error",
];

/// The report as tables and lines: whether it is well, and each thing that is not, once.
#[must_use]
pub fn show(report: &Report) -> String {
    let mut out = format!("{}\n", report.verdict());
    let in_table = |missed: &&String| FIGURES.iter().any(|figure| missed.starts_with(figure));
    for missed in report.missed.iter().filter(|missed| !in_table(missed)) {
        out += &format!("MISSED: {missed}\n");
    }
    out += "\n";
    let mut table = plain();
    table.set_header(["figure", "value", "wanted", ""]);
    let verdict = |name: &str| {
        let missed = report.missed.iter().any(|missed| missed.starts_with(name));
        if missed { "MISSED" } else { "" }
    };
    let mut line = |name: &str, value: Option<String>, wanted: String| {
        let why = report.reasons.get(name).map_or(verdict(name).to_owned(), Clone::clone);
        table.add_row([name.to_owned(), value.unwrap_or_else(|| "-".to_owned()), wanted, why]);
    };
    let percent = |share: f64| format!("{:.4}%", share * 100.0);
    let signed = |share: f64| format!("{:+.4}%", share * 100.0).replace("-0.0000%", "+0.0000%");
    line("payload_bytes", Some(bytes(report.payload_bytes)), String::new());
    let owned = report.owned_both_ends_share.map(percent);
    line("owned_both_ends_share", owned, format!(">= {}", percent(target::OWNED)));
    let owned = report.owned_connections_share.map(percent);
    line("owned_connections_share", owned, format!(">= {}", percent(target::OWNED_CONNECTIONS)));
    let known = report.in_known_message_share.map(percent);
    line("in_known_message_share", known, format!(">= {}", percent(target::KNOWN)));
    line("causality_violations", Some(report.causality_violations.to_string()), "0".to_owned());
    for (name, value, most) in [
        ("captured_vs_kernel_error", report.captured_vs_kernel_error, target::KERNEL),
        ("shuffle_bytes_error", report.shuffle_bytes_error, target::COUNTERS),
        ("hdfs_read_bytes_error", report.hdfs_read_bytes_error, target::COUNTERS),
        ("hdfs_write_bytes_error", report.hdfs_write_bytes_error, target::COUNTERS),
    ] {
        line(name, value.map(signed), format!("+-{}", percent(most)));
    }
    out += &format!("{table}\n");
    let detail = &report.detail;
    let mut kinds = plain();
    kinds.set_header(["kind of message", "messages", "bytes"]);
    for (kind, bytes_of_kind) in &detail.bytes_by_kind {
        let count = detail.messages_by_kind.get(kind).copied().unwrap_or(0);
        kinds.add_row([kind.clone(), count.to_string(), bytes(*bytes_of_kind)]);
    }
    out += &format!("\n{kinds}\n");
    let mut sources = plain();
    sources.set_header(["known from", "messages", "", "bytes", ""]);
    for (source, known) in &detail.known_by {
        sources.add_row([
            source.clone(),
            known.messages.to_string(),
            percent(known.message_share),
            bytes(known.bytes),
            percent(known.byte_share),
        ]);
    }
    out += &format!("\n{sources}\n");
    if !detail.negotiated.is_empty() {
        let mut negotiated = plain();
        negotiated.set_header(["negotiated (TLS, SASL)", "connections", "bytes", "of negotiations", "data", "other"]);
        for (protocol, all) in &detail.negotiated {
            let numbers = [all.connections, all.bytes, all.negotiation_bytes, all.app_bytes, all.other_bytes()];
            negotiated.add_row([vec![protocol.clone()], numbers.map(bytes).to_vec()].concat());
        }
        out += &format!("\n{negotiated}\n");
    }
    let volumes = &detail.volumes;
    let mut data = plain();
    data.set_header(["application data", "captured", "counter"]);
    let mut row = |name: String, captured: u64, counter: Option<u64>| {
        data.add_row([name, bytes(captured), counter.map_or_else(String::new, bytes)]);
    };
    row("shuffle, successful reduces".into(), volumes.shuffle_bytes, Some(volumes.shuffle_counter));
    row("read, successful attempts".into(), volumes.read_bytes, Some(volumes.read_counter));
    row("  delivered to them but not taken".into(), volumes.read_unread_bytes, None);
    row("written, successful attempts, first hop".into(), volumes.written_bytes, Some(volumes.written_counter));
    row("written, later hops".into(), volumes.later_hops_bytes, None);
    row("shuffle, others".into(), volumes.other_shuffle_bytes, None);
    for (role, &captured) in &volumes.other_read_bytes {
        row(format!("read, others: {role}"), captured, None);
    }
    for (role, &captured) in &volumes.other_written_bytes {
        row(format!("written, others: {role}"), captured, None);
    }
    out += &format!("\n{data}\n");
    let kernel = &detail.kernel;
    out += &format!(
        "\nkernel: {} ends compared, captured {}, counted {}, differences {} in all; {} ends with payload without counters\n",
        kernel.ends,
        bytes(kernel.captured_bytes),
        bytes(kernel.kernel_bytes),
        bytes(kernel.absolute_difference_bytes),
        kernel.unknown_ends
    );
    if let Some(text) = limits::text(&detail.limits) {
        out += &format!("{text}\n");
    }
    if !detail.without_owner.is_empty() {
        let shown = &detail.without_owner[..detail.without_owner.len().min(SHOWN)];
        out += &format!(
            "\nwithout an owner or role at one end, {} of {} connections:\n{}\n",
            bytes(detail.connections_without_owner),
            bytes(detail.counted_connections),
            lacks(shown)
        );
        if detail.connections_without_owner > shown.len() as u64 {
            out += &format!("and {} more, in --json\n", detail.connections_without_owner - shown.len() as u64);
        }
    }
    for (title, lacking) in [
        ("in messages of unknown kind", &detail.in_unknown_messages),
        ("different from the kernel's count", &kernel.largest),
    ] {
        if !lacking.is_empty() {
            out += &format!("\nbytes {title}:\n{}\n", lacks(lacking));
        }
    }
    for (evidence, share) in &detail.dependency_share_by_evidence {
        out += &format!("dependencies by {evidence}: {}\n", percent(*share));
    }
    for path in &detail.critical_paths {
        out += &format!(
            "{}: {:.1} s, of which network {}, thinking {}, timers {}, without a known cause {}\n",
            path.job,
            path.seconds,
            percent(path.network_share),
            percent(path.thinking_share),
            percent(path.timer_share),
            percent(path.outside_share)
        );
    }
    out += &format!(
        "events that wait for nothing: {} of {}\n",
        detail.root_events,
        detail.rows.get("events").unwrap_or(&0)
    );
    // A target says how much of the payload was never captured.
    let is_shown = |loss: &&Loss| {
        loss.what == NEVER_CAPTURED && report.missed.iter().any(|missed| missed.contains("never captured"))
    };
    for loss in detail.losses.iter().filter(|loss| !is_shown(loss)) {
        let by = if loss.writer.is_empty() { String::new() } else { format!(" by {}", loss.writer) };
        out += &format!("lost{by}: {}: {} {}\n", loss.what, loss.count, loss.unit);
    }
    for note in &detail.notes {
        out += &format!("note: {note}\n");
    }
    out
}

fn lacks(lacking: &[IncompleteConnection]) -> Table {
    let mut table = plain();
    table.set_header(["connection", "client", "server", "protocol", "bytes", "reason"]);
    for lack in lacking {
        table.add_row([
            lack.connection.to_string(),
            lack.client.clone(),
            lack.server.clone(),
            lack.protocol.clone(),
            bytes(lack.bytes),
            lack.reason.clone(),
        ]);
    }
    table
}

/// A table without lines, as wide as the terminal at most.
#[must_use]
pub(crate) fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// Thousands apart, to read large counts.
#[must_use]
pub(crate) fn bytes(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
