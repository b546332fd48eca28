//! The cells of the matrix: what captures on one network predict for another, beside the real runs there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::noise::{median, noise_floor};
use super::plan::{Cluster, Plan, WITHOUT_AGENT};
use super::record::runs_of;
use super::table::{AblationRow, Row};
use crate::lab_network::Network;
use crate::lab_runs::{Job, Run, text};
use crate::run;

/// Everything that was predicted.
#[derive(Debug, Default)]
pub struct Matrix {
    /// One row for each prediction.
    pub rows: Vec<Row>,
    /// Predictions without something.
    pub ablations: Vec<AblationRow>,
}

/// The part of `prediction.json` that is used here.
#[derive(Debug, Deserialize)]
struct Prediction {
    fabrics: Vec<FabricPrediction>,
}

#[derive(Debug, Deserialize)]
struct FabricPrediction {
    name: String,
    job: PredictedTime,
    ablations: Vec<Ablation>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct PredictedTime {
    predicted_s: f64,
    low_s: Option<f64>,
    high_s: Option<f64>,
    recorded_s: f64,
}

#[derive(Debug, Deserialize)]
struct Ablation {
    without: String,
    predicted_s: f64,
}

/// A network and its real runs.
struct NetworkRuns<'p> {
    network: &'p Network,
    runs: Vec<Run>,
    experiment: PathBuf,
}

/// Predicts all cells of which there are runs.
///
/// # Errors
/// If a prediction fails.
pub fn predict_all(plan: &Plan, out: &Path, tell: &dyn Fn(&str)) -> Result<Matrix> {
    let mut matrix = Matrix::default();
    for cluster in &plan.clusters {
        let sides = sides(plan, cluster, out)?;
        for job in &cluster.jobs {
            for from in &sides {
                tell(&format!("Hadoop {}, {} recorded on {}", cluster.hadoop, job.name(), from.network.name));
                predict_from(plan, cluster, *job, from, &sides, tell, &mut matrix)?;
            }
        }
    }
    Ok(matrix)
}

/// The networks that have runs.
fn sides<'p>(plan: &'p Plan, cluster: &Cluster, out: &Path) -> Result<Vec<NetworkRuns<'p>>> {
    let folder = out.join(cluster.folder()).join("networks");
    let mut sides = Vec::new();
    for network in &plan.networks {
        let runs = runs_of(out, cluster, network, plan.runs)?;
        let Some(first) = runs.first() else { continue };
        let experiment = folder.join(format!("{}.toml", network.name));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        fs::write(&experiment, network.experiment_of_recorded(&first.truth)?)?;
        sides.push(NetworkRuns { network, runs, experiment });
    }
    Ok(sides)
}

fn predict_from(
    plan: &Plan,
    cluster: &Cluster,
    job: Job,
    from: &NetworkRuns,
    sides: &[NetworkRuns],
    tell: &dyn Fn(&str),
    matrix: &mut Matrix,
) -> Result<()> {
    let others: Vec<&NetworkRuns> = sides.iter().filter(|side| side.network.name != from.network.name).collect();
    // A run whose trace was removed still is a real run.
    let is_capture = |run: &&Run| run.job_s(job.name()).is_some() && run.trace().is_dir();
    let of_job: Vec<&Run> = from.runs.iter().filter(is_capture).collect();
    let mut groups: Vec<Vec<&Run>> = of_job.iter().map(|run| vec![*run]).collect();
    if plan.captures > 1 && of_job.len() >= plan.captures {
        groups.push(of_job[..plan.captures].to_vec());
    }
    for group in groups {
        let many = group.len() > 1;
        let traces: Vec<PathBuf> = group.iter().map(|run| run.trace()).collect();
        let replayed_without = plan.without.iter().map(String::as_str).filter(|what| many && *what != WITHOUT_AGENT);
        let predicted = predict(plan, job, from, &others, &traces, &replayed_without.collect::<Vec<_>>())?;
        let mut without: BTreeMap<&str, f64> = BTreeMap::new();
        if many && plan.without.iter().any(|what| what == WITHOUT_AGENT) {
            let traces: Vec<PathBuf> = group.iter().map(|run| run.trace_without_agent()).collect();
            for side in &others {
                // A trace that cannot answer says so and ends with an error: then there is no row.
                match predict(plan, job, from, &[side], &traces, &[]) {
                    Ok(blind) => {
                        without.insert(&side.network.name, of(&blind, side)?.job.predicted_s);
                    }
                    Err(refused) => tell(&format!("without the agent: {refused}")),
                }
            }
        }
        for side in &others {
            let mut runs_s: Vec<f64> = side.runs.iter().filter_map(|run| run.job_s(job.name())).collect();
            if runs_s.is_empty() {
                continue;
            }
            let floor = noise_floor(&runs_s, group.len());
            let found = of(&predicted, side)?;
            let measured_s = median(&mut runs_s);
            let row = Row {
                job: job.name().to_owned(),
                version: cluster.hadoop.clone(),
                from: from.network.name.clone(),
                to: side.network.name.clone(),
                captures: group.len(),
                predicted_s: found.job.predicted_s,
                low_s: found.job.low_s,
                high_s: found.job.high_s,
                measured_median_s: measured_s,
                measured_runs: runs_s.len(),
                error: found.job.predicted_s / measured_s - 1.0,
                noise_floor: floor.map(|floor| floor.median),
                noise_floor_p95: floor.map(|floor| floor.p95),
                null_error: found.job.recorded_s / measured_s - 1.0,
                covered: covered(found.job, &runs_s),
                load: group.iter().map(|run| run.conditions.load).fold(0.0, f64::max),
            };
            let leave_out = |without: &str, predicted_s: f64| AblationRow {
                job: row.job.clone(),
                version: row.version.clone(),
                from: row.from.clone(),
                to: row.to.clone(),
                without: without.to_owned(),
                predicted_s,
                error: predicted_s / measured_s - 1.0,
            };
            matrix.ablations.extend(found.ablations.iter().map(|one| leave_out(&one.without, one.predicted_s)));
            matrix.ablations.extend(
                without.get(side.network.name.as_str()).map(|predicted_s| leave_out(WITHOUT_AGENT, *predicted_s)),
            );
            matrix.rows.push(row);
        }
    }
    Ok(())
}

/// How many of the real runs lie within an interval.
fn covered(job: PredictedTime, runs_s: &[f64]) -> usize {
    let (Some(low), Some(high)) = (job.low_s, job.high_s) else { return 0 };
    runs_s.iter().filter(|run| (low..=high).contains(*run)).count()
}

fn of<'f>(prediction: &'f Prediction, side: &NetworkRuns) -> Result<&'f FabricPrediction> {
    let found = prediction.fabrics.iter().find(|fabric| fabric.name == side.network.name);
    found.with_context(|| format!("nothing is predicted for {}", side.network.name))
}

fn predict(
    plan: &Plan,
    job: Job,
    from: &NetworkRuns,
    others: &[&NetworkRuns],
    traces: &[PathBuf],
    without: &[&str],
) -> Result<Prediction> {
    let mut arguments = vec!["predict".to_owned(), "--json".to_owned()];
    for trace in traces {
        arguments.push(text(trace)?.to_owned());
    }
    for side in others {
        arguments.extend(["--fabric".to_owned(), text(&side.experiment)?.to_owned()]);
    }
    arguments.extend(["--recorded".to_owned(), text(&from.experiment)?.to_owned()]);
    arguments.extend(["--seeds".to_owned(), plan.seeds.to_string()]);
    arguments.extend(["--job".to_owned(), job.submitted_as().to_owned()]);
    if !without.is_empty() {
        arguments.extend(["--without".to_owned(), without.join(",")]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = run("replay", &arguments)?;
    let said = || String::from_utf8_lossy(&done.stderr).trim().to_owned();
    ensure!(matches!(done.status.code(), Some(0 | 1)) && !done.stdout.is_empty(), "{}", said());
    serde_json::from_slice(&done.stdout).with_context(|| format!("replay {arguments:?}"))
}
