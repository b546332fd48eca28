//! Writes and reads a folder of results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use causal::JobTime;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use trace::rows::Column;
use trace_tables::{TableError, write_columns};

use super::detail::Detail;
use super::phases::Times;
use super::summary::Comparison;
use super::{MessageTimes, RunResults};

/// Results could not be written or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {source}", path = path.display())]
    Json {
        /// File.
        path: PathBuf,
        /// Reason.
        source: serde_json::Error,
    },
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Results are there already.
    #[error("{path}: holds results; replace them with --force, or choose another folder", path = path.display())]
    Results {
        /// Folder.
        path: PathBuf,
    },
    /// A part of a sweep is that of another one.
    #[error(
        "{path}: is of another experiment than this combination; give the experiment of the other parts, or remove {folder}",
        path = path.display(), folder = path.parent().unwrap_or(path).display()
    )]
    OtherPart {
        /// File.
        path: PathBuf,
    },
    /// Something that no command of ours wrote is there.
    #[error("{path}: holds something that is no results of replay; choose another folder", path = path.display())]
    Occupied {
        /// Folder.
        path: PathBuf,
    },
    /// The folder holds no results.
    #[error(
        "{path} holds no results: neither detail.json (of `replay run`) nor a summary.json of `replay compare` is there",
        path = path.display()
    )]
    NoResults {
        /// Folder.
        path: PathBuf,
    },
}

/// Writes all but the report of a replay into a folder, which is made where it is missing.
///
/// # Errors
/// If something cannot be written.
pub fn write_run(folder: &Path, results: &RunResults) -> Result<(), StoreError> {
    make_folder(folder)?;
    let detail = &results.detail;
    write_json(&folder.join("summary.json"), &detail.summary)?;
    write_json(&folder.join("detail.json"), detail)?;
    write_text(&folder.join("effective.toml"), &detail.effective)?;
    write_messages(folder, &results.messages)?;
    write_tasks(folder, detail)?;
    write_links(folder, detail)?;
    write_circuits(folder, detail)?;
    write_path(folder, detail)
}

/// Writes the summary of a comparison.
///
/// # Errors
/// If it cannot be written.
pub fn write_comparison(folder: &Path, comparison: &Comparison) -> Result<(), StoreError> {
    make_folder(folder)?;
    write_json(&folder.join("summary.json"), comparison)
}

/// Reads what the report of a replay is drawn from.
///
/// # Errors
/// If it is not there or cannot be understood.
pub fn read_detail(folder: &Path) -> Result<Detail, StoreError> {
    read_json(&folder.join("detail.json"))
}

/// Reads the details of one replay, or of all replays of a comparison.
///
/// # Errors
/// If the folder holds neither, or a file cannot be understood.
pub fn read_comparison(folder: &Path) -> Result<Vec<Detail>, StoreError> {
    if folder.join("detail.json").exists() {
        return Ok(vec![read_detail(folder)?]);
    }
    if !folder.join("summary.json").exists() {
        return Err(StoreError::NoResults { path: folder.into() });
    }
    let comparison: Comparison = read_json(&folder.join("summary.json"))?;
    comparison.experiments.iter().map(|summary| read_detail(&folder.join(&summary.name))).collect()
}

/// Writes text into a file.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), StoreError> {
    fs::write(path, text).map_err(|source| StoreError::Io { path: path.into(), source })
}

/// Makes a folder where it is missing.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(|source| StoreError::Io { path: folder.into(), source })
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let text = serde_json::to_string_pretty(value).map_err(|source| StoreError::Json { path: path.into(), source })?;
    write_text(path, &text)
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = fs::read_to_string(path).map_err(|source| StoreError::Io { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|source| StoreError::Json { path: path.into(), source })
}

/// A column of each row's cell.
pub(super) fn column<R, T: Into<Option<C>>, C>(
    rows: &[R],
    name: &str,
    make: fn(Vec<Option<C>>) -> Column,
    cell: impl Fn(&R) -> T,
) -> (String, Column) {
    (name.to_owned(), make(rows.iter().map(|row| cell(row).into()).collect()))
}

fn write_messages(folder: &Path, rows: &[MessageTimes]) -> Result<(), StoreError> {
    let ns = |at: JobTime| at.0 / 1_000;
    let columns = vec![
        column(rows, "message", Column::U32, |row| row.message.0),
        column(rows, "kind", Column::Text, |row| row.kind.to_owned()),
        column(rows, "name", Column::Text, |row| row.name.clone()),
        column(rows, "from", Column::Text, |row| row.from.clone()),
        column(rows, "to", Column::Text, |row| row.to.clone()),
        column(rows, "bytes", Column::U64, |row| row.bytes),
        column(rows, "sends", Column::U32, |row| row.sends),
        column(rows, "simulated_sent_ns", Column::I64, move |row| row.simulated.map(|(sent, _)| ns(sent))),
        column(rows, "simulated_delivered_ns", Column::I64, move |row| row.simulated.map(|(_, at)| ns(at))),
        column(rows, "recorded_sent_ns", Column::I64, move |row| ns(row.recorded.0)),
        column(rows, "recorded_delivered_ns", Column::I64, move |row| ns(row.recorded.1)),
    ];
    Ok(write_columns(&folder.join("messages.parquet"), columns, rows.len())?)
}

fn write_tasks(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    type Moment = fn(&Times) -> Option<f64>;
    const MOMENTS: [(&str, Moment); 4] = [
        ("start_s", |times| times.start),
        ("shuffle_end_s", |times| times.shuffle_end),
        ("sort_end_s", |times| times.sort_end),
        ("finish_s", |times| times.finish),
    ];
    let rows = &detail.tasks;
    let mut columns = vec![
        column(rows, "attempt", Column::Text, |row| row.attempt.clone()),
        column(rows, "kind", Column::Text, |row| row.kind.clone()),
        column(rows, "host", Column::Text, |row| row.host.clone()),
        column(rows, "succeeded", Column::Bool, |row| row.succeeded),
    ];
    for (name, moment) in MOMENTS {
        columns.push(column(rows, &format!("simulated_{name}"), Column::F64, move |row| moment(&row.simulated)));
        columns.push(column(rows, &format!("recorded_{name}"), Column::F64, move |row| moment(&row.recorded)));
    }
    Ok(write_columns(&folder.join("tasks.parquet"), columns, rows.len())?)
}

fn write_links(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let rows = &detail.links;
    let columns = vec![
        column(rows, "link", Column::Text, |row| row.name.clone()),
        column(rows, "rate_bps", Column::U64, |row| row.rate_bps),
        column(rows, "bytes", Column::U64, |row| row.bytes),
        column(rows, "packets", Column::U64, |row| row.packets),
        column(rows, "drops", Column::U64, |row| row.drops),
        column(rows, "queue_max_bytes", Column::U64, |row| row.queue_max_bytes),
        column(rows, "utilisation", Column::F64, |row| row.utilisation),
    ];
    write_columns(&folder.join("links.parquet"), columns, rows.len())?;
    let traffic: Vec<(&str, u32, u64)> = rows
        .iter()
        .flat_map(|link| {
            let intervals = (0u32..).zip(&link.bytes_by_interval);
            intervals.filter(|(_, bytes)| **bytes > 0).map(|(number, bytes)| (link.name.as_str(), number, *bytes))
        })
        .collect();
    let interval_s = detail.interval_s;
    let columns = vec![
        column(&traffic, "link", Column::Text, |row| row.0.to_owned()),
        column(&traffic, "from_s", Column::F64, move |row| f64::from(row.1) * interval_s),
        column(&traffic, "bytes", Column::U64, |row| row.2),
    ];
    Ok(write_columns(&folder.join("traffic.parquet"), columns, traffic.len())?)
}

/// Writes the circuits of a fabric that has some. A table that an earlier run left goes.
fn write_circuits(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let (path, rows) = (folder.join("circuits.parquet"), &detail.circuits);
    if rows.is_empty() {
        return match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StoreError::Io { path, source }),
            _ => Ok(()),
        };
    }
    let columns = vec![
        column(rows, "from", Column::Text, |row| row.from.clone()),
        column(rows, "input", Column::U32, |row| row.input),
        column(rows, "to", Column::Text, |row| row.to.clone()),
        column(rows, "output", Column::U32, |row| row.output),
        column(rows, "granted_s", Column::F64, |row| row.granted_s),
        column(rows, "up_s", Column::F64, |row| row.up_s),
        column(rows, "released_s", Column::F64, |row| row.released_s),
        column(rows, "evicted", Column::Bool, |row| row.evicted),
        column(rows, "packets", Column::U64, |row| row.packets),
        column(rows, "bytes", Column::U64, |row| row.bytes),
    ];
    Ok(write_columns(&path, columns, rows.len())?)
}

fn write_path(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let rows = &detail.path;
    let columns = vec![
        column(rows, "kind", Column::Text, |row| row.kind.clone()),
        column(rows, "what", Column::Text, |row| row.what.clone()),
        column(rows, "place", Column::Text, |row| row.place.clone()),
        column(rows, "from_s", Column::F64, |row| row.from_s),
        column(rows, "to_s", Column::F64, |row| row.to_s),
        column(rows, "steps", Column::U32, |row| row.steps),
    ];
    Ok(write_columns(&folder.join("critical_path.parquet"), columns, rows.len())?)
}
