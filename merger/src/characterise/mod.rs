//! What a job puts on the network: who speaks with whom, in messages of what kind and size, when, and how far they go.
//!
//! [`characterise`] computes it from a trace, [`write()`] writes it as tables (Parquet and CSV), JSON, a list of flows and a page
//! with plots, [`show`] shows the most of it on a terminal.

mod calls;
mod connections;
mod page;
mod plane;
mod quantiles;
mod roles;
mod series;
mod show;
mod shuffle;
mod tables;
mod view;

use std::path::Path;

use causal::{CausalError, JobGraph};
use job_profile::Learn;
use trace::rows::{Row, Trace};
use trace_tables::describe::TableDescription;
use trace_tables::{TableError, write_csv, write_rows};

use crate::export::{self, ExportError};
use crate::sums;
pub use show::show;
pub use tables::{
    CallRow, Characteristics, FanRow, JobShuffleRow, KindRow, LocalityRow, PhaseRow, ProtocolRow, RoleRow, SeriesRow,
    ShuffleRow, SizeRow, Totals,
};
use view::{View, payload};

/// Why it could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CharacteriseError {
    /// A table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The list of flows.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The job that was named.
    #[error(transparent)]
    Job(#[from] CausalError),
    /// Another file.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file that the error is about.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Looks at a trace.
#[must_use]
pub fn characterise(trace: &Trace) -> Characteristics {
    let view = View::new(trace);
    let seconds = trace.manifest.end_ns.saturating_sub(trace.manifest.start_ns) as f64 / 1e9;
    let intervals = series::Intervals::of(&view);
    let kinds = roles::kinds(&view);
    let shuffle = shuffle::matrix(&view);
    Characteristics {
        totals: totals(&view, &kinds, seconds),
        roles: roles::roles(&view, intervals, seconds),
        kinds,
        calls: calls::calls(&view),
        phases: series::phases(&view),
        series: series::series(&view, intervals),
        protocols: connections::protocols(&view),
        locality: connections::locality(&view),
        fans: roles::fans(&view),
        sizes: connections::sizes(&view),
        shuffles: shuffle::jobs(&shuffle),
        shuffle,
    }
}

fn totals(view: &View<'_>, kinds: &[KindRow], seconds: f64) -> Totals {
    let of = |plane: &str| sums::sum(kinds.iter().filter(|row| row.plane == plane).map(|row| row.bytes));
    let payload_bytes = sums::sum(view.connections().map(payload));
    let all = sums::sum(view.trace.connections.iter().map(payload));
    Totals {
        seconds,
        hosts: view.trace.hosts.iter().filter(|host| host.captured).count() as u64,
        connections: view.connections().count() as u64,
        messages: kinds.iter().map(|row| row.messages).sum(),
        payload_bytes,
        control_bytes: of("control"),
        data_bytes: of("data"),
        unknown_bytes: of("unknown"),
        other_bytes: all.saturating_sub(payload_bytes),
    }
}

/// What its tables mean.
#[must_use]
pub fn describe() -> Vec<TableDescription> {
    vec![
        TableDescription::of::<RoleRow>(),
        TableDescription::of::<KindRow>(),
        TableDescription::of::<CallRow>(),
        TableDescription::of::<PhaseRow>(),
        TableDescription::of::<SeriesRow>(),
        TableDescription::of::<ProtocolRow>(),
        TableDescription::of::<LocalityRow>(),
        TableDescription::of::<FanRow>(),
        TableDescription::of::<SizeRow>(),
        TableDescription::of::<JobShuffleRow>(),
        TableDescription::of::<ShuffleRow>(),
    ]
}

/// Writes `characteristics.json`, `report.html`, `flows.txt`, `job.toml` (for `replay generate`, where the trace has a job
/// of which it can be learned) and each table as `NAME.parquet` and `NAME.csv` into a folder,
/// which is made where it is missing. `learn`: of which job `job.toml` is. Returns whether it could be learned and was written.
///
/// # Errors
/// If something cannot be written.
pub fn write(
    folder: &Path,
    trace: &Trace,
    found: &Characteristics,
    learn: Learn<'_>,
) -> Result<bool, CharacteriseError> {
    if learn.job.is_some() {
        JobGraph::new(trace, learn.job, causal::Options::default())?;
    }
    std::fs::create_dir_all(folder).map_err(|source| CharacteriseError::Io { path: folder.into(), source })?;
    table(folder, &found.roles)?;
    table(folder, &found.kinds)?;
    table(folder, &found.calls)?;
    table(folder, &found.phases)?;
    table(folder, &found.series)?;
    table(folder, &found.protocols)?;
    table(folder, &found.locality)?;
    table(folder, &found.fans)?;
    table(folder, &found.sizes)?;
    table(folder, &found.shuffles)?;
    table(folder, &found.shuffle)?;
    export::flows(trace, &folder.join("flows.txt"))?;
    let json = serde_json::to_string_pretty(found).map_err(std::io::Error::other);
    text(&folder.join("characteristics.json"), json.map(|json| json + "\n"))?;
    let parameters = job_profile::parameters(trace, learn);
    let job = folder.join("job.toml");
    match &parameters {
        Some(parameters) => text(&job, Ok(parameters.to_toml()))?,
        // One of another job would pass for this one's.
        None if job.symlink_metadata().is_ok() => {
            std::fs::remove_file(&job).map_err(|source| CharacteriseError::Io { path: job, source })?;
        }
        None => {}
    }
    text(&folder.join("report.html"), Ok(page::page(trace, found)))?;
    Ok(parameters.is_some())
}

fn table<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TableError> {
    write_rows(folder, rows)?;
    write_csv(folder, rows)
}

fn text(path: &Path, text: std::io::Result<String>) -> Result<(), CharacteriseError> {
    let written = text.and_then(|text| std::fs::write(path, text));
    written.map_err(|source| CharacteriseError::Io { path: path.into(), source })
}
