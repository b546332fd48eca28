//! What coflows under schedulers and over fabrics leave behind.
//!
//! | file | what |
//! |---|---|
//! | `coflow.json` | [`CoflowDetail`], from which the report is drawn |
//! | `coflows.parquet` | times and bounds, a row for each coflow under each scheduler or over each fabric |

use std::path::Path;

use coflow::Workload;
use netsim::time::SimTime;
use netsim::units::DurationPs;
use serde::{Deserialize, Serialize};
use trace_tables::write_rows;

use super::StoreError;
use super::store::{make_folder, read_json, write_json};
use super::tables::CoflowResult;
use crate::coflows::{CoflowRun, Switch, bounds_of};

/// The file from which the report is drawn.
const DETAIL: &str = "coflow.json";

/// Coflows under schedulers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoflowDetail {
    /// The file of the coflows.
    pub file: String,
    /// Ports of the switch.
    pub ports: usize,
    /// How many coflows.
    pub coflows: usize,
    /// How many flows they have.
    pub flows: usize,
    /// All their bytes.
    pub bytes: f64,
    /// Each port's rate, bits a second.
    pub rate_bps: u64,
    /// How long a circuit is set up, seconds.
    pub delay_s: f64,
    /// Whether each coflow had the switch to itself.
    pub alone: bool,
    /// What came out, scheduler by scheduler.
    pub schedulers: Vec<SchedulerSummary>,
}

/// What a scheduler made of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulerSummary {
    /// Its name; a fabric's is that of its experiment.
    pub scheduler: String,
    /// Completion times, seconds.
    pub cct_s: Figures,
    /// Completion times over the coflow's least time over packets; of schedulers over ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_packet_bound: Option<Figures>,
    /// Completion times over the coflow's least time over circuits; of schedulers of circuits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_circuit_bound: Option<Figures>,
    /// When the last coflow was complete, seconds; null where each had the switch to itself.
    pub end_s: Option<f64>,
    /// Circuits that were set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<u64>,
    /// The share of the time of circuits in which they were set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up_share: Option<f64>,
    /// The share of the time of circuits in which they carried bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Completion times that 0, 1, ... 100% of the coflows do not exceed, seconds.
    pub cct_percentiles_s: Vec<f64>,
}

/// Figures of a value of all coflows. Percentiles are values of coflows, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The mean.
    pub mean: f64,
    /// What half of the coflows do not exceed.
    pub median: f64,
    /// What 95% do not exceed.
    pub p95: f64,
    /// What 99% do not exceed.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Figures {
    /// Of values in ascending order.
    #[expect(clippy::cast_precision_loss, reason = "counts of coflows")]
    fn of(sorted: &[f64]) -> Self {
        let at = |percent| percentile(sorted, percent);
        Self {
            mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
            median: at(50),
            p95: at(95),
            p99: at(99),
            max: at(100),
        }
    }
}

/// The value that `percent` of the values do not exceed, by nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn seconds(span: DurationPs) -> f64 {
    SimTime(span.ps()).as_secs_f64()
}

/// All that is known of a run, as figures and as rows.
#[derive(Debug)]
pub struct CoflowResults {
    /// The figures.
    pub detail: CoflowDetail,
    rows: Vec<CoflowResult>,
}

impl CoflowResults {
    /// Of runs of a workload that was read from `file`.
    #[must_use]
    pub fn new(file: String, workload: &Workload, switch: &Switch, runs: &[CoflowRun]) -> Self {
        let bounds = bounds_of(workload, switch);
        let mut rows = Vec::new();
        for run in runs {
            for ((coflow, done), bound) in workload.coflows().iter().zip(&run.completions).zip(&bounds) {
                rows.push(CoflowResult {
                    scheduler: run.name.clone(),
                    coflow: coflow.id.clone(),
                    flows: coflow.flows.len() as u64,
                    bytes: coflow.bytes(),
                    arrival_s: coflow.arrival.as_secs_f64(),
                    start_s: done.start.as_secs_f64(),
                    end_s: done.end.as_secs_f64(),
                    cct_s: seconds(done.time()),
                    packet_bound_s: seconds(bound.0),
                    circuit_bound_s: seconds(bound.1),
                });
            }
        }
        let count = workload.coflows().len();
        let schedulers = runs.iter().zip(rows.chunks(count.max(1)));
        let detail = CoflowDetail {
            file,
            ports: workload.ports(),
            coflows: count,
            flows: workload.coflows().iter().map(|coflow| coflow.flows.len()).sum(),
            bytes: workload.coflows().iter().map(coflow::Coflow::bytes).sum(),
            rate_bps: switch.rate.bps().unwrap_or(0),
            delay_s: seconds(switch.delay),
            alone: switch.alone,
            schedulers: schedulers.map(|(run, rows)| summary(run, rows, switch.alone)).collect(),
        };
        Self { detail, rows }
    }

    /// Writes all but the report into a folder, which is made where it is missing.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), StoreError> {
        make_folder(folder)?;
        write_json(&folder.join(DETAIL), &self.detail)?;
        Ok(write_rows(folder, &self.rows)?)
    }
}

fn summary(run: &CoflowRun, rows: &[CoflowResult], alone: bool) -> SchedulerSummary {
    let sorted = |of: fn(&CoflowResult) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let times = sorted(|row| row.cct_s);
    let of_circuits = |figures: Figures| run.circuits.is_some().then_some(figures);
    let share = |part: fn(&crate::coflows::CircuitTotals) -> f64| {
        run.circuits.as_ref().filter(|circuits| circuits.held_s > 0.0).map(|circuits| part(circuits) / circuits.held_s)
    };
    SchedulerSummary {
        scheduler: run.name.clone(),
        cct_s: Figures::of(&times),
        over_packet_bound: run.over_ports.then(|| Figures::of(&sorted(|row| row.cct_s / row.packet_bound_s))),
        over_circuit_bound: of_circuits(Figures::of(&sorted(|row| row.cct_s / row.circuit_bound_s))),
        end_s: (!alone).then(|| rows.iter().map(|row| row.end_s).fold(0.0, f64::max)),
        circuits: run.circuits.map(|circuits| circuits.count),
        set_up_share: share(|circuits| circuits.set_up_s),
        busy_share: share(|circuits| circuits.busy_s),
        cct_percentiles_s: (0..=100).map(|percent| percentile(&times, percent)).collect(),
    }
}

/// Reads what the report is drawn from; `None` if the folder holds none.
///
/// # Errors
/// If it cannot be understood.
pub fn read_coflows(folder: &Path) -> Result<Option<CoflowDetail>, StoreError> {
    let path = folder.join(DETAIL);
    if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
}
