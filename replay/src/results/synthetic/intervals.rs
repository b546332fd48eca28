//! Intervals, batches and bursts of runs, and what hosts have sent each other.

use std::path::Path;

use netsim::statistics::{SeriesSpan, Times, float};
use netsim::traffic::{Burst, TrafficRun};
use trace_tables::write_rows;

use super::summary::{TrafficResults, hops, load};
use crate::results::StoreError;
use crate::results::tables::{IntervalResult, PairResult};

/// Writes the tables that are not empty.
pub(super) fn write(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let intervals: Vec<_> = results.runs().flat_map(|(point, run)| intervals(point, run)).collect();
    if !intervals.is_empty() {
        write_rows(folder, &intervals)?;
    }
    let pairs: Vec<_> = results.runs().flat_map(|(point, run)| pairs(point, run)).collect();
    if pairs.is_empty() { Ok(()) } else { Ok(write_rows(folder, &pairs)?) }
}

fn intervals(point: u32, run: &TrafficRun) -> Vec<IntervalResult> {
    let mut rows = Vec::new();
    let mut under_way = 0;
    for (number, span) in (0..).zip(&run.figures.evolution) {
        under_way += span.row.offered;
        under_way -= (span.row.accepted + span.row.lost).min(under_way);
        rows.push(of_span((point, number, "evolution"), run, span, Some(under_way)));
    }
    rows.extend(
        (0..).zip(&run.figures.batches).map(|(number, span)| of_span((point, number, "batch"), run, span, None)),
    );
    rows.extend((0..).zip(&run.figures.bursts).map(|(number, burst)| of_burst((point, number), run, burst)));
    rows
}

fn of_span(
    (point, number, kind): (u32, u32, &str),
    run: &TrafficRun,
    SeriesSpan { from_ps, until_ps, row }: &SeriesSpan,
    under_way_packets: Option<u64>,
) -> IntervalResult {
    let length = until_ps - from_ps;
    let ns = |ps: Option<f64>| ps.map(|ps| ps / 1e3);
    let max = |times: &Times| times.max().map(|ps| float(ps) / 1e3);
    IntervalResult {
        point,
        seed: run.figures.seed,
        kind: kind.to_owned(),
        number,
        from_ps: *from_ps,
        until_ps: *until_ps,
        offered_packets: Some(row.offered),
        accepted_packets: row.accepted,
        lost_packets: row.lost,
        offered_load: load(&run.plan, row.offered_bytes, length),
        accepted_load: load(&run.plan, row.accepted_bytes, length),
        under_way_packets,
        hops_mean: hops(row),
        packet_latency_mean_ns: ns(row.packet.mean()),
        packet_latency_deviation_ns: ns(row.packet.deviation()),
        packet_latency_max_ns: max(&row.packet),
        network_latency_mean_ns: ns(row.network.mean()),
        network_latency_deviation_ns: ns(row.network.deviation()),
        network_latency_max_ns: max(&row.network),
    }
}

fn of_burst((point, number): (u32, u32), run: &TrafficRun, burst: &Burst) -> IntervalResult {
    IntervalResult {
        point,
        seed: run.figures.seed,
        kind: "burst".to_owned(),
        number,
        from_ps: burst.from_ps,
        until_ps: burst.until_ps,
        offered_packets: None,
        accepted_packets: burst.accepted,
        lost_packets: burst.lost,
        offered_load: None,
        accepted_load: None,
        under_way_packets: None,
        hops_mean: None,
        packet_latency_mean_ns: None,
        packet_latency_deviation_ns: None,
        packet_latency_max_ns: None,
        network_latency_mean_ns: None,
        network_latency_deviation_ns: None,
        network_latency_max_ns: None,
    }
}

fn pairs(point: u32, run: &TrafficRun) -> impl Iterator<Item = PairResult> {
    run.figures.pairs.iter().map(move |(source, destination, count)| PairResult {
        point,
        seed: run.figures.seed,
        source: *source,
        destination: *destination,
        offered_packets: count.offered,
        accepted_packets: count.accepted,
        accepted_bytes: count.accepted_bytes,
    })
}
