//! A characterisation on a terminal.

use pages::format::{bytes, count, rate, seconds};

use super::tables::{Characteristics, LocalityRow, PhaseRow};
use crate::check::table_parts::plain;

/// Rows of a table that are shown.
const SHOWN: usize = 12;

/// The most of it, as tables.
#[must_use]
pub fn show(found: &Characteristics) -> String {
    let totals = &found.totals;
    let mut out = format!(
        "{} of payload in {} messages on {} connections between {} hosts, in {}: control {}, data {}, unknown {}\n",
        bytes(totals.payload_bytes),
        count(totals.messages),
        count(totals.connections),
        totals.hosts,
        seconds(totals.seconds),
        bytes(totals.control_bytes),
        bytes(totals.data_bytes),
        bytes(totals.unknown_bytes)
    );
    let mut add = |heads: &[&str], rows: Vec<Vec<String>>| {
        let all = rows.len();
        let mut table = plain();
        table.set_header(heads);
        for row in rows.into_iter().take(SHOWN) {
            table.add_row(row);
        }
        out += &format!("\n{table}\n");
        if all > SHOWN {
            out += &format!("and {} more: --out DIR writes all, --json prints them\n", all - SHOWN);
        }
    };
    let roles = found.roles.iter().map(|row| {
        let sizes = [row.bytes, row.control_bytes, row.data_bytes].map(bytes).to_vec();
        let rates = [row.mean_bps, row.peak_bps].map(bits).to_vec();
        [vec![format!("{} > {}", row.from_role, row.to_role), count(row.messages)], sizes, rates].concat()
    });
    add(&["from > to", "messages", "bytes", "control", "data", "mean", "peak"], roles.collect());
    let phases = found.phases.iter().map(phase_cells);
    add(&["job", "phase", "time", "messages", "control", "data", "unknown"], phases.collect());
    let calls = found.calls.iter().map(|row| {
        vec![
            row.protocol.clone(),
            row.name.clone(),
            count(row.requests),
            bytes(row.request_p50_bytes),
            bytes(row.response_p50_bytes),
            nanoseconds(row.service_p50_ns),
            nanoseconds(row.gap_p50_ns),
        ]
    });
    add(&["protocol", "call", "requests", "request, median", "response", "service", "gap"], calls.collect());
    let protocols = found.protocols.iter().map(|row| {
        let sizes = [row.bytes, row.p50_bytes, row.max_bytes].map(bytes).to_vec();
        let lives = [row.life_p50_ns, row.life_max_ns].map(nanoseconds).to_vec();
        [vec![row.protocol.clone(), count(row.connections)], sizes, lives].concat()
    });
    add(&["protocol", "connections", "bytes", "median", "largest", "life, median", "longest"], protocols.collect());
    let locality = found.locality.iter().map(locality_cells);
    add(&["within", "protocol", "connections", "bytes"], locality.collect());
    let shuffles = found.shuffles.iter().map(|row| {
        vec![
            row.job.clone(),
            count(row.maps),
            count(row.reduces),
            bytes(row.app_bytes),
            format!("{:.2}", row.reduce_skew),
            format!("{:.1}%", row.local_share * 100.0),
        ]
    });
    add(&["shuffle of", "maps", "reduces", "bytes", "largest reduce / mean", "on its host"], shuffles.collect());
    out
}

/// A row of `phases`: job, phase, time, messages, control, data, unknown.
pub(super) fn phase_cells(row: &PhaseRow) -> Vec<String> {
    let sizes = [row.control_bytes, row.data_bytes, row.unknown_bytes].map(bytes).to_vec();
    [vec![row.job.clone(), row.phase.clone(), seconds(row.seconds), count(row.messages)], sizes].concat()
}

/// A row of `locality`: scope, protocol, connections, bytes.
pub(super) fn locality_cells(row: &LocalityRow) -> Vec<String> {
    vec![row.scope.clone(), row.protocol.clone(), count(row.connections), bytes(row.bytes)]
}

/// A time, or a dash.
pub(super) fn nanoseconds(time: Option<u64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| seconds(time as f64 / 1e9))
}

/// A rate.
pub(super) fn bits(bps: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for people; saturates")]
    rate(bps as u64)
}
