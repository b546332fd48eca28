//! `run --part` and `--gather`: a sweep whose combinations several tasks share.

use std::process::ExitCode;

use anyhow::Error;
use replay::experiment::Sweep;
use replay::results::{PartOutcome, PartResult, Parts};
use serde::Serialize;

use super::common::{FOUND_WRONG, Part, RunArgs, say};

/// The combinations of one task.
pub(super) struct OwnPart {
    part: Part,
    all: usize,
    /// Those that have come to no result yet.
    pub(super) missing: Vec<usize>,
}

/// What a task has done.
#[derive(Debug, Serialize)]
struct PartDone {
    part: String,
    combinations: usize,
    replayed: usize,
    there_before: usize,
}

impl OwnPart {
    /// Looks which combinations are there. What came to no result is tried again.
    pub(super) fn find<R: PartResult>(sweep: &Sweep, part: Part, parts: &Parts) -> Result<Self, Error> {
        let own: Vec<usize> = (0..sweep.points.len()).filter(|number| part.has(*number)).collect();
        let mut missing = Vec::new();
        for number in &own {
            if !matches!(parts.read::<R>(*number, &sweep.points[*number])?, Some(PartOutcome::Done(_))) {
                missing.push(*number);
            }
        }
        Ok(Self { part, all: own.len(), missing })
    }

    /// Says what came of those that were missing; `None` stands for one that was stopped.
    pub(super) fn say<R>(&self, args: &RunArgs, outcomes: &[Option<PartOutcome<R>>]) -> Result<ExitCode, Error> {
        let replayed = outcomes.iter().filter(|outcome| matches!(outcome, Some(PartOutcome::Done(_)))).count();
        let done = PartDone {
            part: self.part.to_string(),
            combinations: self.all,
            replayed,
            there_before: self.all - self.missing.len(),
        };
        if args.common.json {
            say(&serde_json::to_string_pretty(&done)?)?;
        } else {
            let PartDone { part, combinations, replayed, there_before } = &done;
            say(&format!(
                "part {part}: {combinations} combinations, {replayed} replayed, {there_before} there before"
            ))?;
        }
        for outcome in outcomes {
            if let Some(PartOutcome::Failed(reason)) = outcome {
                trace::stderr::print(format!("replay: {reason}"));
            }
        }
        Ok(ExitCode::from(if replayed == outcomes.len() { 0 } else { FOUND_WRONG }))
    }
}

/// Says how many combinations no task has left yet.
pub(super) fn tell_of_missing(missing: usize, sweep: &Sweep) {
    if missing > 0 {
        let all = sweep.points.len();
        trace::stderr::print(format!("replay: {missing} of {all} combinations are not there yet"));
    }
}
