//! The matrix as a table: `matrix.csv`.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::prediction::table::Origin;

/// What is compared of a job: the time from submission to end, or a phase's time, the mean over its tasks.
pub const QUANTITIES: [&str; 5] = ["job", "map", "shuffle", "sort", "reduce"];

/// A prediction of one quantity beside real runs. Times are seconds, errors shares of the measured median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The job, as the lab calls it.
    pub job: String,
    /// Version of Hadoop.
    pub version: String,
    /// "like" or "grow".
    pub by: String,
    /// Setting of the recorded run.
    pub from: String,
    /// Setting of the real runs.
    pub to: String,
    /// Number of the recorded run from which it was learned.
    pub capture: usize,
    /// One of [`QUANTITIES`].
    pub quantity: String,
    /// The prediction: median of the seeds.
    pub predicted_s: f64,
    /// Median of the real runs.
    pub measured_median_s: f64,
    /// How many there were.
    pub measured_runs: usize,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// Median error of a perfect simulator from one run; unknown with one real run.
    pub noise_floor: Option<f64>,
    /// Its 95th percentile.
    pub noise_floor_p95: Option<f64>,
    /// Processors that were busy when the recorded run began.
    pub load: f64,
}

/// Writes predictions, times to 10 ms and shares to 0.01%.
///
/// # Errors
/// If the file cannot be written.
pub fn write_rows(path: &Path, rows: &[Row], origin: &Origin) -> Result<()> {
    let place = || path.display().to_string();
    let mut writer = csv::Writer::from_path(path).with_context(place)?;
    let (seconds, share) = (|value: f64| (value * 100.0).round() / 100.0, |value: f64| (value * 1e4).round() / 1e4);
    for row in rows {
        let row = Row {
            predicted_s: seconds(row.predicted_s),
            measured_median_s: seconds(row.measured_median_s),
            error: share(row.error),
            noise_floor: row.noise_floor.map(share),
            noise_floor_p95: row.noise_floor_p95.map(share),
            ..row.clone()
        };
        writer.serialize((row, origin)).with_context(place)?;
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
