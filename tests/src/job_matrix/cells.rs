//! The cells of the matrix: what one recorded run says of another setting, beside the real runs there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::learn::{Target, job_file, with_seed};
use super::plan::{Plan, Planned, Setting};
use super::record::runs_of;
use super::table::{QUANTITIES, Row};
use crate::lab_runs::{Job, Run, text};
use crate::prediction::noise::{median, noise_floor};
use crate::run_json;

/// Seconds by quantity.
type Times = BTreeMap<&'static str, f64>;

/// The real runs of a setting.
struct Side<'p> {
    setting: &'p Setting,
    runs: Vec<Run>,
}

/// Predicts all cells of which there are runs. `scratch` is an empty folder.
///
/// # Errors
/// If a prediction fails.
pub fn predict_all(plan: &Plan, out: &Path, scratch: &Path, tell: &dyn Fn(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for planned in &plan.predictions {
        let side = |name: &str| -> Result<Side<'_>> {
            let setting = plan.setting(name).context("the plan has no such setting")?;
            Ok(Side { setting, runs: runs_of(out, setting, plan.runs)? })
        };
        let from = side(&planned.from)?;
        for name in &planned.to {
            let to = side(name)?;
            if to.runs.is_empty() || from.runs.is_empty() {
                tell(&format!("{} to {name}: not run", planned.from));
                continue;
            }
            tell(&format!("{} to {name}, {}", planned.from, planned.by.name()));
            for job in &plan.jobs {
                rows.extend(rows_of(plan, planned, *job, (&from, &to), scratch)?);
            }
        }
    }
    Ok(rows)
}

fn rows_of(plan: &Plan, planned: &Planned, job: Job, (from, to): (&Side, &Side), scratch: &Path) -> Result<Vec<Row>> {
    let measured: Vec<Times> =
        to.runs.iter().map(|run| recorded(&run.trace_of(job), scratch)).collect::<Result<_>>()?;
    let fabric = scratch.join("fabric.toml");
    let truth = &to.runs[0].truth;
    fs::write(&fabric, to.setting.network().fabric(truth)?)?;
    let done = truth.jobs.iter().find(|done| done.kind == job.name());
    let input_bytes = done.with_context(|| format!("no {} was run", job.name()))?.size_bytes;
    let target = Target { setting: to.setting, input_bytes, cores: truth.machine.cpus };
    let mut rows = Vec::new();
    for (number, run) in (1..).zip(&from.runs) {
        let file = job_file(planned.by, &run.trace_of(job), &target, scratch)?;
        let of_seed = |seed| generated(&with_seed(&file, seed), &fabric, scratch);
        let predicted: Vec<Times> = (1..=plan.seeds).map(of_seed).collect::<Result<_>>()?;
        for quantity in QUANTITIES {
            let of =
                |times: &[Times]| times.iter().filter_map(|times| times.get(quantity)).copied().collect::<Vec<_>>();
            let (mut predicted, mut measured) = (of(&predicted), of(&measured));
            if predicted.is_empty() || measured.is_empty() {
                continue;
            }
            let floor = noise_floor(&measured, 1);
            let (predicted_s, measured_median_s) = (median(&mut predicted), median(&mut measured));
            rows.push(Row {
                job: job.name().to_owned(),
                version: plan.hadoop.clone(),
                by: planned.by.name().to_owned(),
                from: from.setting.name.clone(),
                to: to.setting.name.clone(),
                capture: number,
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
    }
    Ok(rows)
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
