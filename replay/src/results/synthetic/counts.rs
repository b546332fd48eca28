//! How far packets went, and how many lay in queues.

use std::path::Path;

use netsim::statistics::{Histogram, QueueUse, RunFigures};
use trace_tables::{write_row_iter, write_rows};

use super::summary::TrafficResults;
use crate::results::StoreError;
use crate::results::tables::{HopsResult, OccupancyResult};

/// Writes the tables that were asked for.
pub(super) fn write(folder: &Path, results: &TrafficResults) -> Result<(), StoreError> {
    let hops = hops(results);
    if !hops.is_empty() {
        write_rows(folder, &hops)?;
    }
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
