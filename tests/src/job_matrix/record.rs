//! Real runs of a plan's settings.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::plan::{Plan, Setting};
use crate::interruption::Interruption;
use crate::lab_runs::{self, Run, Traces};

fn folder(out: &Path, setting: &Setting, number: usize) -> PathBuf {
    out.join(&setting.name).join(format!("run-{number}"))
}

/// The runs of a setting that are whole, by their numbers.
///
/// # Errors
/// If one cannot be read.
pub fn runs_of(out: &Path, setting: &Setting, most: usize) -> Result<Vec<Run>> {
    (1..=most).filter_map(|number| Run::read(folder(out, setting, number)).transpose()).collect()
}

/// Makes the runs that are missing: one of each setting, then the next of each, so that a machine that changes with the hours
/// changes for all alike.
///
/// # Errors
/// If the lab or the merger cannot do one, or is interrupted; those before it are kept.
pub fn record(plan: &Plan, out: &Path, interruption: &Interruption, tell: &dyn Fn(&str)) -> Result<()> {
    for number in 1..=plan.runs {
        for setting in &plan.settings {
            let folder = folder(out, setting, number);
            if !lab_runs::is_whole(&folder) {
                tell(&format!("{}, run {number} of {}", setting.name, plan.runs));
                let arguments = setting.arguments(&plan.hadoop);
                lab_runs::record(&arguments, &plan.jobs, Traces::OfEachJob, &folder, interruption)?;
            }
        }
    }
    Ok(())
}
