//! How far packets went, and which way, what virtual lanes carried, and how many packets lay in queues.

use std::path::Path;

use netsim::fabric::hop_records::{HopEvent, HopRecords, LoggedHop};
use netsim::statistics::{Histogram, QueueUse, RunFigures, VlUse};
use trace_tables::{write_row_iter, write_rows};

use super::summary::TrafficResults;
use crate::results::StoreError;
use crate::results::tables::{HopsResult, LogResult, OccupancyResult, VlResult};

/// Writes the tables that were asked for.
pub(super) fn write(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let hops = hops(results);
    if !hops.is_empty() {
        write_rows(folder, &hops)?;
    }
    write_vls(folder, results)?;
    write_log(folder, results)?;
    let of_queue = |(point, seed, queue): (u32, u64, &QueueUse)| {
        let row = |(packets, share): (u32, &f64)| OccupancyResult {
            point,
            seed,
            link: queue.link.clone(),
            vl: queue.lane,
            packets,
            share: *share,
        };
        (0u32..).zip(&queue.shares).map(row).collect::<Vec<_>>()
    };
    let queues = results
        .runs()
        .flat_map(|(point, run)| run.figures.occupancy.iter().map(move |queue| (point, run.figures.seed, queue)));
    let mut rows = queues.flat_map(of_queue).peekable();
    if rows.peek().is_none() { Ok(()) } else { Ok(write_row_iter(folder, rows)?) }
}

/// Writes what virtual lanes carried, where there are several.
fn write_vls(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let row = |(point, seed, vl, lane): (u32, u64, u32, &VlUse)| VlResult {
        point,
        seed,
        vl,
        flits: lane.flits,
        utilisation_mean: lane.utilisation_mean,
        utilisation_max: lane.utilisation_max,
        queued_mean: lane.queued_mean,
    };
    let lanes = results.runs().flat_map(|(point, run)| {
        (0u32..).zip(&run.figures.vls).map(move |(vl, lane)| (point, run.figures.seed, vl, lane))
    });
    let mut rows = lanes.map(row).peekable();
    if rows.peek().is_none() { Ok(()) } else { Ok(write_row_iter(folder, rows)?) }
}

/// Writes how packets went, where that was logged.
fn write_log(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let name = |names: &[String], place: u32| names.get(place as usize).cloned().unwrap_or_default();
    let row = |(point, seed, log, hop): (u32, u64, &HopRecords, &LoggedHop)| LogResult {
        point,
        seed,
        source: hop.source,
        number: hop.number,
        flit: hop.flit,
        event: match hop.event {
            HopEvent::Leaves => "leaves",
            HopEvent::Arrives => "arrives",
            HopEvent::Lost => "lost",
        }
        .to_owned(),
        at_ps: hop.at_ps,
        node: name(&log.nodes, hop.node),
        port: hop.port,
        link: name(&log.links, hop.link),
        vl: hop.vl,
    };
    let hops = results
        .runs()
        .flat_map(|(point, run)| run.hops.hops.iter().map(move |hop| (point, run.figures.seed, &run.hops, hop)));
    let mut rows = hops.map(row).peekable();
    if rows.peek().is_none() { Ok(()) } else { Ok(write_row_iter(folder, rows)?) }
}

/// A distribution of a run, if it has it.
type Of = fn(&RunFigures) -> Option<&Histogram>;

/// Of each combination in whose runs it was counted how far apart hosts are.
fn hops(results: &TrafficResults) -> Vec<HopsResult> {
    let mut rows = Vec::new();
    for (point, runs) in (0u32..).zip(&results.runs) {
        if runs.iter().all(|run| run.figures.offered_hops.is_none()) {
            continue;
        }
        let kinds: [(&str, Of); 2] =
            [("offered", |run| run.offered_hops.as_ref()), ("accepted", |run| Some(&run.hops))];
        for (kind, of) in kinds {
            let mut pool = Histogram::default();
            runs.iter().filter_map(|run| of(&run.figures)).for_each(|one| pool.add(one));
            let row = |(switches, _, packets)| HopsResult { point, kind: kind.to_owned(), switches, packets };
            rows.extend(pool.buckets().map(row));
        }
    }
    rows
}
