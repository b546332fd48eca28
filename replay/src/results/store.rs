//! Writes and reads a folder of results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use causal::JobTime;
use netsim::files;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use trace::ids::HostId;
use trace_tables::{TableError, write_row_iter, write_rows};

use super::detail::{CircuitDetail, Detail, LinkDetail, PieceDetail};
use super::phases::TaskTimes;
use super::summary::Comparison;
use super::tables::{CircuitResult, LinkResult, MessageResult, PathResult, TaskResult, TrafficResult};
use super::{MessageTimes, RunResults};

/// The largest file that is read again, bytes: synthetic traffic of many seeds has all links of each.
const MAX_JSON: u64 = 4 << 30;

/// Results could not be written or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {source}", path = path.display())]
    Json {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with the JSON.
        source: serde_json::Error,
    },
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Results are there already.
    #[error("{path}: holds results; replace them with --force, or choose another folder", path = path.display())]
    Results {
        /// The folder that the error is about.
        path: PathBuf,
    },
    /// A part of a sweep is that of another one.
    #[error(
        "{path}: is of another experiment than this combination; give the experiment of the other parts, or remove {folder}",
        path = path.display(), folder = path.parent().unwrap_or(path).display()
    )]
    OtherPart {
        /// The file that the error is about.
        path: PathBuf,
    },
    /// Something that no command of ours wrote is there.
    #[error("{path}: holds something that is no results of replay; choose another folder", path = path.display())]
    Occupied {
        /// The folder that the error is about.
        path: PathBuf,
    },
    /// The folder holds no results.
    #[error(
        "{path} holds no results: neither detail.json (of `replay run`) nor a summary.json of `replay compare` is there",
        path = path.display()
    )]
    NoResults {
        /// The folder that the error is about.
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
    write_messages(folder, results)?;
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
    let text = files::read_text(path, MAX_JSON).map_err(|source| StoreError::Io { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|source| StoreError::Json { path: path.into(), source })
}

fn write_messages(folder: &Path, results: &RunResults) -> Result<(), StoreError> {
    let host = |host: HostId| results.detail.hosts[host.index()].clone();
    let ns = |at: JobTime| at.0 / 1_000;
    let row = |message: &MessageTimes| MessageResult {
        message: message.message.0,
        kind: message.kind.to_owned(),
        name: message.name.to_string(),
        from: host(message.from),
        to: host(message.to),
        bytes: message.bytes,
        sends: message.sends,
        simulated_sent_ns: message.simulated.map(|(sent, _)| ns(sent)),
        simulated_delivered_ns: message.simulated.map(|(_, delivered)| ns(delivered)),
        recorded_sent_ns: ns(message.recorded.0),
        recorded_delivered_ns: ns(message.recorded.1),
    };
    Ok(write_row_iter(folder, results.messages.iter().map(row))?)
}

fn write_tasks(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let row = |task: &TaskTimes| TaskResult {
        attempt: task.attempt.clone(),
        kind: task.kind.clone(),
        host: task.host.clone(),
        succeeded: task.succeeded,
        simulated_start_s: task.simulated.start,
        recorded_start_s: task.recorded.start,
        simulated_shuffle_end_s: task.simulated.shuffle_end,
        recorded_shuffle_end_s: task.recorded.shuffle_end,
        simulated_sort_end_s: task.simulated.sort_end,
        recorded_sort_end_s: task.recorded.sort_end,
        simulated_finish_s: task.simulated.finish,
        recorded_finish_s: task.recorded.finish,
    };
    Ok(write_rows(folder, &detail.tasks.iter().map(row).collect::<Vec<_>>())?)
}

fn write_links(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let row = |link: &LinkDetail| LinkResult {
        link: link.name.clone(),
        rate_bps: link.rate_bps,
        bytes: link.bytes,
        packets: link.packets,
        drops: link.drops,
        queue_max_bytes: link.queue_max_bytes,
        utilisation: link.utilisation,
    };
    write_rows(folder, &detail.links.iter().map(row).collect::<Vec<_>>())?;
    let of_link = |link: &LinkDetail| {
        let intervals = (0u32..).zip(&link.bytes_by_interval).filter(|(_, bytes)| **bytes > 0);
        let row = |(number, bytes): (u32, &u64)| TrafficResult {
            link: link.name.clone(),
            from_s: f64::from(number) * detail.interval_s,
            bytes: *bytes,
        };
        intervals.map(row).collect::<Vec<_>>()
    };
    Ok(write_row_iter(folder, detail.links.iter().flat_map(of_link))?)
}

/// Writes the circuits of a fabric that has some.
fn write_circuits(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    if detail.circuits.is_empty() {
        return Ok(());
    }
    let row = |circuit: &CircuitDetail| CircuitResult {
        from: circuit.from.clone(),
        input: circuit.input,
        to: circuit.to.clone(),
        output: circuit.output,
        wavelength: circuit.wavelength,
        asked_s: circuit.asked_s,
        granted_s: circuit.granted_s,
        up_s: circuit.up_s,
        last_used_s: circuit.last_used_s,
        released_s: circuit.released_s,
        evicted: circuit.evicted,
        end: circuit.end().map(str::to_owned),
        packets: circuit.packets,
        bytes: circuit.bytes,
    };
    Ok(write_rows(folder, &detail.circuits.iter().map(row).collect::<Vec<_>>())?)
}

fn write_path(folder: &Path, detail: &Detail) -> Result<(), StoreError> {
    let row = |piece: &PieceDetail| PathResult {
        kind: piece.kind.clone(),
        what: piece.what.clone(),
        place: piece.place.clone(),
        from_s: piece.from_s,
        to_s: piece.to_s,
        steps: piece.steps,
    };
    Ok(write_rows(folder, &detail.path.iter().map(row).collect::<Vec<_>>())?)
}
