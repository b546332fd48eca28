//! Writes and reads the results of synthetic traffic.

use std::path::Path;

use trace::rows::Column;
use trace_tables::write_columns;

use super::summary::{TrafficDetail, TrafficResults, TrafficSummary};
use crate::experiment::Sweep;
use crate::results::StoreError;
use crate::results::store::{column, make_folder, read_json, write_json, write_text};
use crate::results::sweep::{Cells, write_table};
use netsim::statistics::{Histogram, LinkUse, RunFigures};
use netsim::traffic::TrafficRun;

/// Writes all but the report of the results into a folder, which is made where it is missing; `keep` writes the packets, too.
///
/// # Errors
/// If something cannot be written.
pub fn write_traffic(folder: &Path, sweep: &Sweep, results: &TrafficResults, keep: bool) -> Result<(), StoreError> {
    make_folder(folder)?;
    let summary = folder.join("summary.json");
    let value = results.summary(sweep).map_err(|source| StoreError::Json { path: summary.clone(), source })?;
    write_json(&summary, &value)?;
    write_json(&folder.join("traffic.json"), &results.detail)?;
    write_text(&folder.join("effective.toml"), &results.detail.effective)?;
    if !results.detail.axes.is_empty() {
        let points = &results.detail.points;
        let rows: Vec<_> = points.iter().map(|point| (point.values.as_slice(), &point.summary)).collect();
        write_table(folder, &results.detail.axes, &rows, &COLUMNS)?;
    }
    write_links(folder, results)?;
    write_latency(folder, results)?;
    if keep {
        write_packets(folder, results)?;
    }
    Ok(())
}

/// Reads what the report of synthetic traffic is drawn from; `None` if the folder holds none.
///
/// # Errors
/// If it cannot be understood.
pub fn read_traffic(folder: &Path) -> Result<Option<TrafficDetail>, StoreError> {
    let path = folder.join("traffic.json");
    if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
}

/// The columns of a sweep's table.
const COLUMNS: [(&str, Cells<TrafficSummary>); 24] = [
    ("saturated", Cells::Truth(|row| row.saturated)),
    ("offered_load", Cells::Figure(|row| row.offered_load)),
    ("accepted_load", Cells::Figure(|row| row.accepted_load)),
    ("packet_latency_mean_cycles", Cells::Figure(|row| row.packet_latency_mean_cycles)),
    ("network_latency_mean_cycles", Cells::Figure(|row| row.network_latency_mean_cycles)),
    ("message_latency_mean_cycles", Cells::Figure(|row| row.message_latency_mean_cycles)),
    ("packet_latency_mean_ns", Cells::Figure(|row| row.packet_latency_mean_ns)),
    ("packet_latency_deviation_ns", Cells::Figure(|row| row.latency_ns["packet"].deviation)),
    ("packet_latency_p50_ns", Cells::Figure(|row| row.latency_ns["packet"].p50)),
    ("packet_latency_p95_ns", Cells::Figure(|row| row.latency_ns["packet"].p95)),
    ("packet_latency_p99_ns", Cells::Figure(|row| row.latency_ns["packet"].p99)),
    ("packet_latency_max_ns", Cells::Figure(|row| row.latency_ns["packet"].max)),
    ("packet_latency_half_ns", Cells::Figure(|row| row.confidence.get("packet_latency_mean_ns").copied())),
    ("accepted_load_half", Cells::Figure(|row| row.confidence.get("accepted_load").copied())),
    ("hops_mean", Cells::Figure(|row| row.hops_mean)),
    ("link_utilisation_mean", Cells::Figure(|row| row.link_utilisation_mean)),
    ("link_utilisation_max", Cells::Figure(|row| row.link_utilisation_max)),
    ("wall_s", Cells::Figure(|row| Some(row.wall_s))),
    ("packets", Cells::Count(|row| row.packets)),
    ("packets_measured", Cells::Count(|row| row.packets_measured)),
    ("packets_undelivered", Cells::Count(|row| row.packets_undelivered)),
    ("drops", Cells::Count(|row| row.drops)),
    ("flit_hops", Cells::Count(|row| row.flit_hops)),
    ("events", Cells::Count(|row| row.events)),
];

/// All runs, each with the number of its combination.
fn runs(results: &TrafficResults) -> impl Iterator<Item = (u32, &TrafficRun)> {
    (0u32..).zip(&results.runs).flat_map(|(point, runs)| runs.iter().map(move |run| (point, run)))
}

fn write_links(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let rows: Vec<(u32, u64, &LinkUse)> = runs(results)
        .flat_map(|(point, run)| run.figures.links.iter().map(move |link| (point, run.figures.seed, link)))
        .collect();
    let columns = vec![
        column(&rows, "point", Column::U32, |row| row.0),
        column(&rows, "seed", Column::U64, |row| row.1),
        column(&rows, "link", Column::Text, |row| row.2.name.clone()),
        column(&rows, "rate_bps", Column::U64, |row| row.2.rate_bps),
        column(&rows, "bytes", Column::U64, |row| row.2.bytes),
        column(&rows, "utilisation", Column::F64, |row| row.2.utilisation),
        column(&rows, "packets", Column::U64, |row| row.2.packets),
        column(&rows, "drops", Column::U64, |row| row.2.drops),
        column(&rows, "queue_max_bytes", Column::U64, |row| row.2.queue_max_bytes),
    ];
    write_columns(&folder.join("links.parquet"), columns, rows.len())?;
    let lanes: Vec<(u32, u64, &str, u32, f64)> = rows
        .iter()
        .flat_map(|(point, seed, link)| {
            let lanes = (0u32..).zip(&link.lanes);
            lanes.map(move |(lane, share)| (*point, *seed, link.name.as_str(), lane, *share))
        })
        .collect();
    if lanes.is_empty() {
        return Ok(());
    }
    let columns = vec![
        column(&lanes, "point", Column::U32, |row| row.0),
        column(&lanes, "seed", Column::U64, |row| row.1),
        column(&lanes, "link", Column::Text, |row| row.2.to_owned()),
        column(&lanes, "vl", Column::U32, |row| row.3),
        column(&lanes, "utilisation", Column::F64, |row| row.4),
    ];
    Ok(write_columns(&folder.join("lanes.parquet"), columns, lanes.len())?)
}

fn write_latency(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    type Times = fn(&RunFigures) -> &Histogram;
    const KINDS: [(&str, Times); 3] =
        [("packet", |run| &run.packet), ("network", |run| &run.network), ("message", |run| &run.message)];
    let mut rows: Vec<(u32, &str, (u64, u64, u64))> = Vec::new();
    for (point, runs) in (0u32..).zip(&results.runs) {
        for (kind, times) in KINDS {
            let mut pool = Histogram::default();
            runs.iter().for_each(|run| pool.add(times(&run.figures)));
            rows.extend(pool.buckets().map(|bucket| (point, kind, bucket)));
        }
    }
    let columns = vec![
        column(&rows, "point", Column::U32, |row| row.0),
        column(&rows, "kind", Column::Text, |row| row.1.to_owned()),
        column(&rows, "from_ps", Column::U64, |row| row.2.0),
        column(&rows, "width_ps", Column::U64, |row| row.2.1),
        column(&rows, "count", Column::U64, |row| row.2.2),
    ];
    Ok(write_columns(&folder.join("latency.parquet"), columns, rows.len())?)
}

fn write_packets(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let rows: Vec<_> = runs(results)
        .flat_map(|(point, run)| run.packets.iter().map(move |packet| (point, run.figures.seed, packet)))
        .collect();
    let columns = vec![
        column(&rows, "point", Column::U32, |row| row.0),
        column(&rows, "seed", Column::U64, |row| row.1),
        column(&rows, "source", Column::U32, |row| row.2.source.0),
        column(&rows, "destination", Column::U32, |row| row.2.destination.0),
        column(&rows, "number", Column::U64, |row| row.2.number),
        column(&rows, "bytes", Column::U32, |row| row.2.bytes),
        column(&rows, "flits", Column::U32, |row| row.2.flits),
        column(&rows, "switches", Column::U32, |row| row.2.switches),
        column(&rows, "handed_over_ps", Column::U64, |row| row.2.handed_over.0),
        column(&rows, "left_ps", Column::U64, |row| row.2.left.0),
        column(&rows, "arrived_ps", Column::U64, |row| row.2.arrived.0),
    ];
    Ok(write_columns(&folder.join("packets.parquet"), columns, rows.len())?)
}
