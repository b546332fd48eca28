//! Which reduce got how much of which map.

use std::collections::{BTreeMap, HashMap};

use trace::rows::{MessageKind, TaskRow};

use super::tables::{JobShuffleRow, ShuffleRow};
use super::view::View;
use crate::sums::add;

/// A map output for a reduce.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part<'a> {
    job: &'a str,
    map: &'a str,
    reduce: Option<u32>,
    from_host: &'a str,
    to_host: &'a str,
}

/// Map outputs by map and reduce.
#[must_use]
pub fn matrix(view: &View<'_>) -> Vec<ShuffleRow> {
    let tasks: HashMap<&str, &TaskRow> = view.trace.tasks.iter().map(|task| (task.attempt.as_str(), task)).collect();
    let mut all: BTreeMap<Part<'_>, ShuffleRow> = BTreeMap::new();
    for (message, row) in view.messages().filter(|(message, _)| message.kind == MessageKind::ShuffleResponse) {
        let map = message.map.as_deref().unwrap_or_default();
        let job = tasks.get(map).and_then(|task| view.trace.jobs.get(task.job.index()));
        let part = Part {
            job: job.map_or("", |job| job.id.as_str()),
            map,
            reduce: message.reduce,
            from_host: view.host(row.server_host),
            to_host: view.host(row.client_host),
        };
        let sums = all.entry(part).or_insert_with(|| unfetched(part));
        sums.fetches += 1;
        add(&mut sums.bytes, message.bytes);
        add(&mut sums.app_bytes, message.app_bytes);
    }
    all.into_values().collect()
}

fn unfetched(part: Part<'_>) -> ShuffleRow {
    ShuffleRow {
        job: part.job.to_owned(),
        map: part.map.to_owned(),
        reduce: part.reduce,
        from_host: part.from_host.to_owned(),
        to_host: part.to_host.to_owned(),
        fetches: 0,
        bytes: 0,
        app_bytes: 0,
    }
}

/// Sums of one job.
#[derive(Default)]
struct Sums<'a> {
    maps: BTreeMap<&'a str, u64>,
    reduces: BTreeMap<Option<u32>, u64>,
    app_bytes: u64,
    local_bytes: u64,
}

/// A matrix by job.
#[must_use]
pub fn jobs(matrix: &[ShuffleRow]) -> Vec<JobShuffleRow> {
    let mut all: BTreeMap<&str, Sums<'_>> = BTreeMap::new();
    for row in matrix {
        let sums = all.entry(&row.job).or_default();
        add(sums.maps.entry(&row.map).or_default(), row.app_bytes);
        add(sums.reduces.entry(row.reduce).or_default(), row.app_bytes);
        add(&mut sums.app_bytes, row.app_bytes);
        if row.from_host == row.to_host {
            add(&mut sums.local_bytes, row.app_bytes);
        }
    }
    let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
    all.into_iter()
        .map(|(job, sums)| {
            let skew = |largest: Option<&u64>, parts: usize| {
                largest.map_or(0.0, |largest| share(*largest, sums.app_bytes) * parts as f64)
            };
            JobShuffleRow {
                job: job.to_owned(),
                maps: sums.maps.len() as u64,
                reduces: sums.reduces.len() as u64,
                app_bytes: sums.app_bytes,
                reduce_skew: skew(sums.reduces.values().max(), sums.reduces.len()),
                map_skew: skew(sums.maps.values().max(), sums.maps.len()),
                local_share: share(sums.local_bytes, sums.app_bytes),
            }
        })
        .collect()
}
