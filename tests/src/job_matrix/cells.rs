//! The cells of the matrix: what one recorded run says of another setting, beside the real runs there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde_json::Value;
use trace::truth::Truth;

use super::learn::{Target, job_file, with_seed};
use super::plan::{By, Plan, Setting};
use super::record::runs_of;
use super::table::{QUANTITIES, Row};
use crate::lab_runs::{Job, Run, text};
use crate::prediction::noise::{median, noise_floor};
use crate::run_json;

/// Seconds by quantity.
pub type Times = BTreeMap<&'static str, f64>;

/// The real runs of a setting.
struct SettingRuns<'p> {
    setting: &'p Setting,
    runs: Vec<Run>,
    /// What each run took, by the job's name.
    measured: BTreeMap<&'static str, Vec<Times>>,
}

/// One job of one recorded run, said of another setting.
struct Cell<'s> {
    by: By,
    from: &'s SettingRuns<'s>,
    to: &'s SettingRuns<'s>,
    job: Job,
    /// Index of the recorded run.
    capture: usize,
}

/// Predicts all cells of which there are runs, as many at a time as there are processors; rows are in the order of the plan.
/// `scratch` is an empty folder.
///
/// # Errors
/// If a prediction fails.
pub fn predict_all(plan: &Plan, out: &Path, scratch: &Path, tell: &(dyn Fn(&str) + Sync)) -> Result<Vec<Row>> {
    let sides: Vec<SettingRuns> =
        plan.settings.par_iter().map(|setting| side(plan, setting, out, scratch)).collect::<Result<_>>()?;
    let cells = cells(plan, &sides, tell)?;
    let done = AtomicUsize::new(0);
    let rows = cells.par_iter().map(|cell| {
        let rows = rows_of(plan, cell, scratch)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let (from, to) = (&cell.from.setting.name, &cell.to.setting.name);
        tell(&format!("{done} of {}: {} of {from}, {} to {to}", cells.len(), cell.job.name(), cell.by.name()));
        Ok(rows)
    });
    Ok(rows.collect::<Result<Vec<Vec<Row>>>>()?.concat())
}

/// The runs of a setting, and what they took.
fn side<'p>(plan: &'p Plan, setting: &'p Setting, out: &Path, scratch: &Path) -> Result<SettingRuns<'p>> {
    let runs = runs_of(out, setting, plan.runs)?;
    let scratch = tempfile::tempdir_in(scratch)?;
    let mut measured = BTreeMap::new();
    for job in &plan.jobs {
        let times = runs.iter().map(|run| recorded(&run.trace_of(*job), scratch.path()));
        measured.insert(job.name(), times.collect::<Result<Vec<Times>>>()?);
    }
    Ok(SettingRuns { setting, runs, measured })
}

/// What is to be predicted, in the plan's order.
fn cells<'s>(plan: &Plan, sides: &'s [SettingRuns<'s>], tell: &dyn Fn(&str)) -> Result<Vec<Cell<'s>>> {
    let side = |name: &str| -> Result<&'s SettingRuns<'s>> {
        sides.iter().find(|side| side.setting.name == name).context("the plan has no such setting")
    };
    let mut cells = Vec::new();
    for planned in &plan.predictions {
        let from = side(&planned.from)?;
        for name in &planned.to {
            let to = side(name)?;
            if to.runs.is_empty() || from.runs.is_empty() {
                tell(&format!("{} to {name}: not run", planned.from));
            } else {
                let of_job = |job: &Job| {
                    let job = *job;
                    (0..from.runs.len()).map(move |capture| Cell { by: planned.by, from, to, job, capture })
                };
                cells.extend(plan.jobs.iter().flat_map(of_job));
            }
        }
    }
    Ok(cells)
}

fn rows_of(plan: &Plan, cell: &Cell, scratch: &Path) -> Result<Vec<Row>> {
    let Cell { by, from, to, job, capture } = *cell;
    let scratch = tempfile::tempdir_in(scratch)?;
    let run = &from.runs[capture];
    let predicted = predict(by, (run, job), (to.setting, &to.runs[0].truth), plan.seeds, scratch.path())?;
    let mut rows = Vec::new();
    for quantity in QUANTITIES {
        let mut measured: Vec<f64> =
            to.measured[job.name()].iter().filter_map(|times| times.get(quantity)).copied().collect();
        let Some(predicted_s) = predicted.get(quantity).copied().filter(|_| !measured.is_empty()) else { continue };
        let floor = noise_floor(&measured, 1);
        let measured_median_s = median(&mut measured);
        rows.push(Row {
            job: job.name().to_owned(),
            version: plan.hadoop.clone(),
            by: by.name().to_owned(),
            from: from.setting.name.clone(),
            to: to.setting.name.clone(),
            capture: capture + 1,
            quantity: quantity.to_owned(),
            predicted_s,
            measured_median_s,
            measured_runs: measured.len(),
            error: predicted_s / measured_median_s - 1.0,
            noise_floor: floor.map(|floor| floor.median),
            noise_floor_p95: floor.map(|floor| floor.p95),
            load: run.conditions.load,
        });
    }
    Ok(rows)
}

/// What a recorded run of a job says of another setting, of which `truth` is that of a run: medians of `seeds` generated jobs, by
/// quantity. `scratch` is an empty folder.
///
/// # Errors
/// If a program fails.
pub fn predict(
    by: By,
    (run, job): (&Run, Job),
    (setting, truth): (&Setting, &Truth),
    seeds: u32,
    scratch: &Path,
) -> Result<Times> {
    let fabric = scratch.join("fabric.toml");
    fs::write(&fabric, setting.network().fabric(truth)?)?;
    let done = truth.jobs.iter().find(|done| done.kind == job.name());
    let done = done.with_context(|| format!("no {} was run", job.name()))?;
    let target = Target { setting, input_bytes: done.size_bytes, maps: done.maps, cores: truth.machine.cpus };
    let file = job_file(by, &run.trace_of(job), &target, scratch)?;
    let of_seed = |seed| generated(&with_seed(&file, seed), &fabric, scratch);
    let times: Vec<Times> = (1..=seeds).map(of_seed).collect::<Result<_>>()?;
    let median_of = |quantity: &'static str| {
        let mut found: Vec<f64> = times.iter().filter_map(|times| times.get(quantity)).copied().collect();
        (!found.is_empty()).then(|| (quantity, median(&mut found)))
    };
    Ok(QUANTITIES.into_iter().filter_map(median_of).collect())
}

/// What a trace has recorded.
fn recorded(trace: &Path, scratch: &Path) -> Result<Times> {
    let out = out(scratch);
    let summary = run_json("replay", &["run", "ideal", "--trace", text(trace)?, "--force", "--out", text(&out)?])?;
    times(&summary, "recorded_job_time_s", "recorded_seconds")
}

/// What a job file makes on a network.
fn generated(file: &str, fabric: &Path, scratch: &Path) -> Result<Times> {
    let (job, out) = (scratch.join("job.toml"), out(scratch));
    fs::write(&job, file)?;
    let arguments = ["run", text(fabric)?, "--generate", text(&job)?, "--force", "--out", text(&out)?];
    times(&run_json("replay", &arguments)?, "job_time_s", "seconds")
}

fn out(scratch: &Path) -> PathBuf {
    scratch.join("results")
}

fn times(summary: &Value, job: &str, phase: &str) -> Result<Times> {
    let mut times = Times::new();
    times.insert("job", summary[job].as_f64().with_context(|| format!("no {job} in {summary}"))?);
    for quantity in &QUANTITIES[1..] {
        let phases = summary["phases"].as_array().context("no phases")?;
        let found = phases.iter().find(|row| row["name"] == *quantity).and_then(|row| row[phase].as_f64());
        times.extend(found.map(|seconds| (*quantity, seconds)));
    }
    ensure!(times.len() > 1, "no phases in {summary}");
    Ok(times)
}
