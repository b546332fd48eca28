//! The matrix as tables: `matrix.csv` and `ablations.csv`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A prediction beside real runs. Times are seconds, errors shares of the measured median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The job, as the lab calls it.
    pub job: String,
    /// Version of Hadoop.
    pub version: String,
    /// Network of the captures.
    pub from: String,
    /// Network of the real runs.
    pub to: String,
    /// Of how many captures it is made.
    pub captures: usize,
    /// The prediction.
    pub predicted_s: f64,
    /// Lower end of its interval.
    pub low_s: Option<f64>,
    /// Upper end.
    pub high_s: Option<f64>,
    /// Median of the real runs.
    pub measured_median_s: f64,
    /// How many there were.
    pub measured_runs: usize,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// Median error of a perfect simulator from as many captures; unknown with one real run.
    pub noise_floor: Option<f64>,
    /// Its 95th percentile.
    pub noise_floor_p95: Option<f64>,
    /// Error of the null model: what was recorded, less 1.
    pub null_error: f64,
    /// Real runs within the interval.
    pub covered: usize,
    /// The most processors that were busy when a capture of it began.
    pub load: f64,
}

/// A prediction without something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationRow {
    /// The job.
    pub job: String,
    /// Version of Hadoop.
    pub version: String,
    /// Network of the captures.
    pub from: String,
    /// Network of the real runs.
    pub to: String,
    /// Without what.
    pub without: String,
    /// The prediction, seconds.
    pub predicted_s: f64,
    /// Over the measured median, less 1.
    pub error: f64,
}

/// Where and when the matrix was made: columns at the end of each row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Processors of the machine.
    pub machine: String,
    /// Day, as 2026-01-31.
    pub date: String,
    /// Commit of the programs.
    pub commit: String,
}

impl Origin {
    /// This machine, today, and the commit of this checkout.
    ///
    /// # Errors
    /// If the machine does not say what it is.
    pub fn here() -> Result<Self> {
        let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
        let cpus = std::thread::available_parallelism()?;
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
        let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(checkout).output();
        let commit = commit.ok().filter(|done| done.status.success()).map(|done| done.stdout).unwrap_or_default();
        Ok(Self {
            machine: format!("{cpus} x {}", model.trim_start_matches([' ', '\t', ':'])),
            date: chrono::Utc::now().format("%F").to_string(),
            commit: String::from_utf8(commit).context("git names no commit")?.trim().to_owned(),
        })
    }
}

/// Writes the predictions.
///
/// # Errors
/// If the file cannot be written.
pub fn write_rows(path: &Path, rows: &[Row], origin: &Origin) -> Result<()> {
    let place = || path.display().to_string();
    let mut writer = csv::Writer::from_path(path).with_context(place)?;
    for row in rows {
        writer.serialize((Rounded::from(row), origin)).with_context(place)?;
    }
    writer.flush().with_context(place)
}

/// Writes the ablations.
///
/// # Errors
/// If the file cannot be written.
pub fn write_ablations(path: &Path, rows: &[AblationRow]) -> Result<()> {
    let place = || path.display().to_string();
    let mut writer = csv::Writer::from_path(path).with_context(place)?;
    for row in rows {
        let (predicted_s, error) = (rounded(row.predicted_s, 100.0), rounded(row.error, 10_000.0));
        writer.serialize(AblationRow { predicted_s, error, ..row.clone() }).with_context(place)?;
    }
    writer.flush().with_context(place)
}

/// Reads predictions that were written.
///
/// # Errors
/// If the file is not as it was written.
pub fn read_rows(path: &Path) -> Result<Vec<Row>> {
    let place = || path.display().to_string();
    let mut reader = csv::Reader::from_path(path).with_context(place)?;
    reader.deserialize().collect::<Result<Vec<Row>, _>>().with_context(place)
}

/// A row with times to 10 ms and shares to 0.01%: more would be noise that makes each version of the file differ everywhere.
struct Rounded(Row);

impl From<&Row> for Rounded {
    fn from(row: &Row) -> Self {
        let (seconds, share) = (|value| rounded(value, 100.0), |value| rounded(value, 10_000.0));
        Self(Row {
            predicted_s: seconds(row.predicted_s),
            low_s: row.low_s.map(seconds),
            high_s: row.high_s.map(seconds),
            measured_median_s: seconds(row.measured_median_s),
            error: share(row.error),
            noise_floor: row.noise_floor.map(share),
            noise_floor_p95: row.noise_floor_p95.map(share),
            null_error: share(row.null_error),
            ..row.clone()
        })
    }
}

impl Serialize for Rounded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
