//! What a sweep of a recorded job leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `summary.json` | a [`SweepSummary`] of [`Summary`] |
//! | `effective.toml` | the experiment with every key; running it again gives the same result |
//! | `sweep.parquet`, `sweep.csv` | a row for each combination |
//! | `job_time.svg`, `map.svg`, `shuffle.svg`, `sort.svg`, `reduce.svg` | times over the swept key |
//! | `job_time-grouped.svg` and so on | the same as bars, grouped by a size of packets or another key |
//! | `jobs.json` | what the report is drawn from |
//! | `report.html` | the report |

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::store::{StoreError, make_folder, read_json, write_json, write_text};
use super::summary::Summary;
use super::sweep::{AxisValues, Cells, SweepColumn, SweepPoint, SweepSummary, json_values, label, write_table};
use crate::experiment::Sweep;

/// A combination of a sweep, replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPoint {
    /// Which value of each key.
    pub values: Vec<usize>,
    /// What came out.
    pub summary: Summary,
}

/// All replays of a sweep: what its report is drawn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSweep {
    /// The experiment's name.
    pub name: String,
    /// The experiment with every key.
    pub effective: String,
    /// Whether it was stopped before its end: combinations are missing.
    #[serde(default)]
    pub interim: bool,
    /// The keys with several values.
    pub axes: Vec<AxisValues>,
    /// The combinations that came to a result.
    pub points: Vec<JobPoint>,
    /// Combinations that came to none, each with the reason.
    pub failed: BTreeMap<String, String>,
    /// The same job over a network that the combinations are set against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Box<Summary>>,
    /// The path of the key by whose values pictures are grouped, where it was chosen ([`grouping`](super::grouping)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
}

impl JobSweep {
    /// A sweep without any replay yet.
    ///
    /// # Errors
    /// If the experiment cannot be written as TOML.
    pub fn new(sweep: &Sweep) -> Result<Self, toml::ser::Error> {
        Ok(Self {
            name: sweep.points.first().map(|point| point.experiment.name.clone()).unwrap_or_default(),
            effective: sweep.to_toml()?,
            interim: false,
            axes: AxisValues::of(sweep),
            points: Vec::new(),
            failed: BTreeMap::new(),
            reference: None,
            group_by: None,
        })
    }

    /// The values of a combination: "rate = 1Gbps, seed = 2".
    #[must_use]
    pub fn label(&self, values: &[usize]) -> String {
        label(self.axes.iter().zip(values))
    }

    /// The recording, where all combinations replay the same job, as large as each other.
    #[must_use]
    pub fn recorded(&self) -> Option<&Summary> {
        let first = &self.points.first()?.summary;
        let same = |point: &JobPoint| (&point.summary.trace, &point.summary.job) == (&first.trace, &first.job);
        let grows = self.axes.iter().any(|axis| axis.path.starts_with("workload.grow"));
        (!grows && self.points.iter().all(same)).then_some(first)
    }

    /// What `summary.json` holds.
    #[must_use]
    pub fn summary(&self, sweep: &Sweep) -> SweepSummary<Summary> {
        let point =
            |point: &JobPoint| SweepPoint { values: json_values(sweep, &point.values), summary: point.summary.clone() };
        SweepSummary {
            name: self.name.clone(),
            interim: self.interim,
            axes: self.axes.clone(),
            points: self.points.iter().map(point).collect(),
            failed: self.failed.clone(),
            reference: self.reference.as_deref().cloned(),
        }
    }
}

/// The columns of the table.
pub(super) const COLUMNS: [SweepColumn<Summary>; 16] = [
    ("job_time_s", "From submission to end, seconds.", Cells::Figure(|row| Some(row.job_time_s))),
    (
        "recorded_job_time_s",
        "The same in the recording; of jobs from parameters, on an infinitely fast network.",
        Cells::Figure(|row| Some(row.recorded_job_time_s)),
    ),
    (
        "map_s",
        "Map, mean of the successful attempts, seconds; null = there is none.",
        Cells::Figure(|row| row.phase("map")?.seconds),
    ),
    ("shuffle_s", "The same of the shuffle.", Cells::Figure(|row| row.phase("shuffle")?.seconds)),
    ("sort_s", "The same of the sort.", Cells::Figure(|row| row.phase("sort")?.seconds)),
    ("reduce_s", "The same of the reduce.", Cells::Figure(|row| row.phase("reduce")?.seconds)),
    (
        "network_share",
        "Share of the critical path on which bytes were on their way.",
        Cells::Figure(|row| Some(row.network_share)),
    ),
    (
        "transfer_error_median",
        "Median of (simulated - recorded) / recorded of the transfer times.",
        Cells::Figure(|row| row.transfer_error.median),
    ),
    ("transfer_error_p95", "95th percentile of their amounts.", Cells::Figure(|row| row.transfer_error.p95)),
    ("wall_s", "What the replay took on this machine, seconds.", Cells::Figure(|row| Some(row.wall_s))),
    ("messages", "Messages sent and delivered.", Cells::Count(|row| row.messages)),
    ("messages_unfinished", "Messages not done when the job was.", Cells::Count(|row| row.messages_unfinished)),
    ("bytes", "Payload handed to the fabric.", Cells::Count(|row| row.bytes)),
    ("drops", "Packets that were lost.", Cells::Count(|row| row.drops)),
    ("retransmissions", "Packets that were sent again.", Cells::Count(|row| row.retransmissions)),
    ("events", "Events of the simulator and of the causal graph.", Cells::Count(|row| row.events)),
];

/// Writes all but the report of a sweep into a folder, which is made where it is missing.
///
/// # Errors
/// If something cannot be written.
pub fn write_jobs(folder: &Path, sweep: &Sweep, jobs: &JobSweep) -> Result<(), StoreError> {
    make_folder(folder)?;
    write_json(&folder.join("summary.json"), &jobs.summary(sweep))?;
    write_json(&folder.join("jobs.json"), jobs)?;
    write_text(&folder.join("effective.toml"), &jobs.effective)?;
    let rows: Vec<_> = jobs.points.iter().map(|point| (point.values.as_slice(), &point.summary)).collect();
    write_table(folder, &jobs.axes, &rows, &COLUMNS)
}

/// Reads what the report of a sweep is drawn from; `None` if the folder holds none.
///
/// # Errors
/// If it cannot be understood.
pub fn read_jobs(folder: &Path) -> Result<Option<JobSweep>, StoreError> {
    let path = folder.join("jobs.json");
    if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
}
