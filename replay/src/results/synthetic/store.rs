//! Writes and reads the results of synthetic traffic.

use std::path::Path;

use trace_tables::{write_row_iter, write_rows};

use super::summary::{TrafficDetail, TrafficResults, TrafficSummary};
use super::{circuits, counts, intervals};
use crate::experiment::Sweep;
use crate::results::StoreError;
use crate::results::store::{make_folder, read_json, write_json, write_text};
use crate::results::sweep::{Cells, SweepColumn, write_table};
use crate::results::tables::{LaneResult, LatencyResult, PacketResult, TrafficLinkResult};
use netsim::fabric::packet::PacketRecord;
use netsim::statistics::{Histogram, LinkUse, RunFigures, float};
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
    write_text(&folder.join("cdf.csv"), &cdf(results))?;
    intervals::write(folder, results)?;
    counts::write(folder, results)?;
    circuits::write(folder, results.runs())?;
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
pub(in crate::results) const COLUMNS: [SweepColumn<TrafficSummary>; 24] = [
    ("saturated", "Whether the network does not carry what is offered.", Cells::Truth(|row| row.saturated)),
    (
        "offered_load",
        "Flits per node and flit time that were handed over in the measurement.",
        Cells::Figure(|row| row.offered_load),
    ),
    ("accepted_load", "The same that arrived.", Cells::Figure(|row| row.accepted_load)),
    (
        "packet_latency_mean_cycles",
        "Mean time of a packet from hand-over to arrival, in flit times of the host link.",
        Cells::Figure(|row| row.packet_latency_mean_cycles),
    ),
    (
        "network_latency_mean_cycles",
        "The same from when it leaves its host.",
        Cells::Figure(|row| row.network_latency_mean_cycles),
    ),
    (
        "message_latency_mean_cycles",
        "Mean time of a message from hand-over until all of it arrived, in flit times.",
        Cells::Figure(|row| row.message_latency_mean_cycles),
    ),
    (
        "packet_latency_mean_ns",
        "Mean time of a packet from hand-over to arrival.",
        Cells::Figure(|row| row.packet_latency_mean_ns),
    ),
    ("packet_latency_deviation_ns", "Its standard deviation.", Cells::Figure(|row| row.latency_ns["packet"].deviation)),
    (
        "packet_latency_p50_ns",
        "Time that half of the packets do not exceed.",
        Cells::Figure(|row| row.latency_ns["packet"].p50),
    ),
    (
        "packet_latency_p95_ns",
        "Time that 95% of the packets do not exceed.",
        Cells::Figure(|row| row.latency_ns["packet"].p95),
    ),
    (
        "packet_latency_p99_ns",
        "Time that 99% of the packets do not exceed.",
        Cells::Figure(|row| row.latency_ns["packet"].p99),
    ),
    ("packet_latency_max_ns", "The longest time of a packet.", Cells::Figure(|row| row.latency_ns["packet"].max)),
    (
        "packet_latency_half_ns",
        "Half the width of the confidence interval of `packet_latency_mean_ns`; null = one run.",
        Cells::Figure(|row| row.confidence.get("packet_latency_mean_ns").copied()),
    ),
    (
        "accepted_load_half",
        "The same of `accepted_load`.",
        Cells::Figure(|row| row.confidence.get("accepted_load").copied()),
    ),
    ("hops_mean", "Mean number of switches on the way.", Cells::Figure(|row| row.hops_mean)),
    (
        "link_utilisation_mean",
        "Share of the measurement in which a link is busy, mean of all links.",
        Cells::Figure(|row| row.link_utilisation_mean),
    ),
    ("link_utilisation_max", "The same of the busiest link.", Cells::Figure(|row| row.link_utilisation_max)),
    ("wall_s", "What the runs took on this machine, seconds.", Cells::Figure(|row| Some(row.wall_s))),
    ("packets", "Packets delivered in the whole run.", Cells::Count(|row| row.packets)),
    (
        "packets_measured",
        "Packets that count: handed over in the measurement.",
        Cells::Count(|row| row.packets_measured),
    ),
    (
        "packets_undelivered",
        "Of these, packets that had not arrived at the end.",
        Cells::Count(|row| row.packets_undelivered),
    ),
    ("drops", "Packets that were lost.", Cells::Count(|row| row.drops)),
    ("flit_hops", "Flits of the delivered packets, times switches on their way.", Cells::Count(|row| row.flit_hops)),
    ("events", "Events of the simulator.", Cells::Count(|row| row.events)),
];

fn write_links(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let links = || {
        results
            .runs()
            .flat_map(|(point, run)| run.figures.links.iter().map(move |link| (point, run.figures.seed, link)))
    };
    let row = |(point, seed, link): (u32, u64, LinkUse)| TrafficLinkResult {
        point,
        seed,
        link: link.name.into_string(),
        rate_bps: link.rate_bps,
        bytes: link.bytes,
        utilisation: link.utilisation,
        packets: link.packets,
        drops: link.drops,
        queue_max_bytes: link.queue_max_bytes,
    };
    write_row_iter(folder, links().map(row))?;
    let of_link = |(point, seed, link): (u32, u64, LinkUse)| {
        let row = |(vl, utilisation): (u32, &f64)| LaneResult {
            point,
            seed,
            link: link.name.to_string(),
            vl,
            utilisation: *utilisation,
        };
        (0u32..).zip(&link.lanes).map(row).collect::<Vec<_>>()
    };
    let mut lanes = links().flat_map(of_link).peekable();
    if lanes.peek().is_none() { Ok(()) } else { Ok(write_row_iter(folder, lanes)?) }
}

/// The times whose distributions are written.
type LatencyOf = fn(&RunFigures) -> &Histogram;
const LATENCIES: [(&str, LatencyOf); 3] =
    [("packet", |run| &run.packet), ("network", |run| &run.network), ("message", |run| &run.message)];

/// All runs of a combination together.
fn pooled(runs: &[TrafficRun], times: LatencyOf) -> Histogram {
    let mut pool = Histogram::default();
    runs.iter().for_each(|run| pool.add(times(&run.figures)));
    pool
}

/// For each upper end of a bucket, the share of the packets that took no longer.
fn cdf(results: &TrafficResults) -> String {
    let mut text = "point,kind,up_to_ns,share\n".to_owned();
    for (point, runs) in results.runs.iter().enumerate() {
        for (kind, times) in LATENCIES {
            let pool = pooled(runs, times);
            let mut so_far = 0;
            for (low, width, count) in pool.buckets() {
                so_far += count;
                let (up_to, share) = (float(low + width - 1) / 1e3, float(so_far) / float(pool.count()));
                text.push_str(&format!("{point},{kind},{up_to},{share}\n"));
            }
        }
    }
    text
}

fn write_latency(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for (point, runs) in (0u32..).zip(&results.runs) {
        for (kind, times) in LATENCIES {
            let pool = pooled(runs, times);
            let row =
                |(from_ps, width_ps, count)| LatencyResult { point, kind: kind.to_owned(), from_ps, width_ps, count };
            rows.extend(pool.buckets().map(row));
        }
    }
    Ok(write_rows(folder, &rows)?)
}

fn write_packets(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let of_run = |(point, run): (u32, &TrafficRun)| {
        let row = |packet: &PacketRecord| PacketResult {
            point,
            seed: run.figures.seed,
            source: packet.source.0,
            destination: packet.destination.0,
            number: packet.number,
            bytes: packet.bytes,
            flits: packet.flits,
            switches: packet.switches,
            handed_over_ps: packet.handed_over.0,
            left_ps: packet.left.0,
            arrived_ps: packet.arrived.0,
        };
        run.packets.iter().map(row).collect::<Vec<_>>()
    };
    Ok(write_rows(folder, &results.runs().flat_map(of_run).collect::<Vec<_>>())?)
}
