//! The folder that results go into: new, empty, or with results of before that give way.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use super::store::StoreError;

/// Files by which results are known.
const MARKS: [&str; 7] = [
    "summary.json",
    "detail.json",
    "congestion.json",
    "routequal.json",
    "coflow.json",
    "program.json",
    "prediction.json",
];

/// All other files that commands write.
const OTHERS: [&str; 55] = [
    "effective.toml",
    "report.html",
    "messages.parquet",
    "tasks.parquet",
    "links.parquet",
    "traffic.parquet",
    "circuits.parquet",
    "critical_path.parquet",
    "jobs.json",
    "sweep.parquet",
    "sweep.csv",
    "job_time.svg",
    "map.svg",
    "shuffle.svg",
    "sort.svg",
    "reduce.svg",
    "job_time-grouped.svg",
    "map-grouped.svg",
    "shuffle-grouped.svg",
    "sort-grouped.svg",
    "reduce-grouped.svg",
    "traffic.json",
    "lanes.parquet",
    "latency.parquet",
    "intervals.parquet",
    "pairs.parquet",
    "hops.parquet",
    "occupancy.parquet",
    "vls.parquet",
    "log.parquet",
    "cdf.csv",
    "cdf.svg",
    "packets.parquet",
    "latency.svg",
    "accepted.svg",
    "latency-grouped.svg",
    "accepted-grouped.svg",
    "lost.svg",
    "nacks.svg",
    "lost-grouped.svg",
    "nacks-grouped.svg",
    "coflows.parquet",
    "program_messages.parquet",
    "program_ranks.parquet",
    "cct.svg",
    "congestion.parquet",
    "histograms.parquet",
    "shuffle.parquet",
    "congestion.svg",
    "bandwidth.svg",
    "sum_max.svg",
    "delay.svg",
    "hosts.svg",
    "predicted_tasks.parquet",
    "shown_replays.json",
];

/// The folder of a replay's pictures, in that of its results.
const PLOTS: &str = "plots";

/// Whether results can go into a folder: it is missing, empty, or holds results that may be replaced.
///
/// # Errors
/// If it holds anything else, or cannot be read.
pub fn check_folder(folder: &Path, replace: bool) -> Result<(), StoreError> {
    let entries = match entries(folder) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StoreError::Io { path: folder.into(), source }),
        Ok(entries) => entries,
    };
    // Of a comparison that was stopped there are only the folders of its experiments.
    let is_ours = has_mark(folder) || entries.iter().any(|entry| is_folder(entry) && has_mark(&entry.path()));
    match (entries.is_empty(), is_ours, replace) {
        (true, ..) | (_, true, true) => Ok(()),
        (_, true, false) => Err(StoreError::Results { path: folder.into() }),
        (_, false, _) => Err(StoreError::Occupied { path: folder.into() }),
    }
}

/// Removes the results that a folder holds, those of a comparison's experiments as well. What else lies there stays.
///
/// # Errors
/// If a file cannot be removed.
pub fn remove_results(folder: &Path) -> Result<(), StoreError> {
    let wrong = |source| StoreError::Io { path: folder.into(), source };
    let entries = match entries(folder) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(wrong)?,
    };
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_str().unwrap_or_default();
        if is_folder(&entry) && (name == PLOTS || has_mark(&path)) {
            if name == PLOTS {
                remove_files(&path, |name| has_ending(name, "svg")).map_err(wrong)?;
            } else {
                remove_results(&path)?;
            }
            // One that holds something else stays.
            if self::entries(&path).is_ok_and(|left| left.is_empty()) {
                fs::remove_dir(&path).map_err(wrong)?;
            }
        }
    }
    // The marks go last: what is left of a removal that was stopped can be removed again.
    let is_graph = |name: &str| name.starts_with("congestion") && has_ending(name, "dot");
    remove_files(folder, |name| OTHERS.contains(&name) || is_graph(name)).map_err(wrong)?;
    remove_files(folder, |name| MARKS.contains(&name)).map_err(wrong)
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn has_mark(folder: &Path) -> bool {
    MARKS.iter().any(|mark| folder.join(mark).is_file())
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == ending)
}

fn remove_files(folder: &Path, of_ours: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in entries(folder)? {
        if !is_folder(&entry) && entry.file_name().to_str().is_some_and(&of_ours) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
