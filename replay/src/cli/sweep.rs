//! `run` with several values of a key: a recorded job, replayed in all combinations, as many at a time as there are cores.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, bail};
use rayon::prelude::*;
use replay::experiment::{Experiment, Override, Sweep};
use replay::report;
use replay::results::{JobSweep, PartOutcome, Parts, Summary, remove_results, write_jobs};
use replay::run::run_jobs;
use trace::stderr::error_chain;

use super::common::{FOUND_WRONG, Part, RunArgs, say, stopped_by_signals, wrong_key};
use super::jobs::{key_of_jobs, read_all, use_jobs};
use super::parts::{OwnPart, tell_of_missing};
use super::progress::Bars;
use super::table;

/// Replays the combinations of a sweep, those of one task, or none where they are gathered only.
pub(super) fn run(args: &RunArgs, mut sweep: Sweep) -> Result<ExitCode, Error> {
    for point in &mut sweep.points {
        use_jobs(&mut point.experiment, &args.common)?;
    }
    let parts = Parts::in_results(&args.common.out);
    if let Some(part) = args.part {
        return run_part(args, &sweep, part, &parts);
    }
    let outcomes = if args.gather {
        let numbered = sweep.points.iter().enumerate();
        numbered.map(|(number, point)| parts.read(number, point)).collect::<Result<Vec<_>, _>>()?
    } else {
        let all: Vec<usize> = (0..sweep.points.len()).collect();
        replay_all(args, &sweep, &all, |_, _| Ok(()))?
    };
    finish(args, &sweep, outcomes)
}

/// Replays the combinations of one task that are not there yet, and leaves each as a file.
fn run_part(args: &RunArgs, sweep: &Sweep, part: Part, parts: &Parts) -> Result<ExitCode, Error> {
    let own = OwnPart::find::<Summary>(sweep, part, parts)?;
    let outcomes = replay_all(args, sweep, &own.missing, |number, outcome| {
        Ok(parts.write(number, &sweep.points[number], outcome)?)
    })?;
    own.say(args, &outcomes)
}

/// Replays combinations, as many at a time as there are cores, and hands each to `done` at its end; `None` if they were stopped
/// before it began.
fn replay_all(
    args: &RunArgs,
    sweep: &Sweep,
    numbers: &[usize],
    done: impl Fn(usize, &PartOutcome<Summary>) -> Result<(), Error> + Sync,
) -> Result<Vec<Option<PartOutcome<Summary>>>, Error> {
    let bars = Bars::new();
    let read = read_all(numbers.iter().map(|number| &sweep.points[*number].experiment), &bars)?;
    let jobs = JobSweep::new(sweep)?;
    let all = bars.jobs(numbers.len());
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let (stop, is_said) = (stopped_by_signals()?, AtomicBool::new(false));
    // A replay that has begun is finished, for half of one says nothing of the job.
    let stopping = || {
        let stops = stop.load(Ordering::Relaxed);
        if stops && !is_said.swap(true, Ordering::Relaxed) {
            bars.say("replay: stopped: the replays that have begun are finished first; a second signal ends them");
        }
        stops
    };
    let outcomes = threads.install(|| {
        let replayed = |number: usize| {
            let point = &sweep.points[number];
            let bar = bars.bar(&jobs.label(&point.values));
            let outcome = key_of_jobs(&point.experiment).and_then(|key| {
                run_jobs(&point.experiment, &read[&key], |progress| {
                    stopping();
                    bar.show(progress);
                })
            });
            drop(bar);
            all.inc(1);
            let outcome = match outcome {
                Ok(results) => PartOutcome::Done(Box::new(results.detail.summary)),
                Err(error) => {
                    PartOutcome::Failed(error_chain(wrong_key(args.experiment(), &args.common, error).as_ref()))
                }
            };
            done(number, &outcome)?;
            Ok(outcome)
        };
        let each = numbers.par_iter().map(|number| (!stopping()).then(|| replayed(*number)).transpose());
        each.collect::<Result<Vec<_>, Error>>()
    });
    all.finish_and_clear();
    outcomes
}

/// The job of the first combination over the network that all are set against, which takes no key of their fabrics.
fn reference(args: &RunArgs, sweep: &Sweep) -> Result<Option<Box<Summary>>, Error> {
    let Some(path) = &args.against else { return Ok(None) };
    let others: Vec<Override> = args.common.overrides.iter().filter(|one| !one.is_of("fabric")).cloned().collect();
    let mut experiment = Experiment::read(path, &others)?;
    if let Some(first) = sweep.points.first() {
        experiment.workload = first.experiment.workload.clone();
    }
    experiment.check().map_err(Error::msg)?;
    let bars = Bars::new();
    let jobs = read_all([&experiment], &bars)?;
    let bar = bars.bar(&experiment.name);
    let results = run_jobs(&experiment, &jobs[&key_of_jobs(&experiment)?], |progress| bar.show(progress))?;
    Ok(Some(Box::new(results.detail.summary)))
}

/// Writes table and report of what came of all combinations.
fn finish(args: &RunArgs, sweep: &Sweep, outcomes: Vec<Option<PartOutcome<Summary>>>) -> Result<ExitCode, Error> {
    let common = &args.common;
    let mut jobs = JobSweep { group_by: args.group_by.clone(), ..JobSweep::new(sweep)? };
    let missing = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    for (point, outcome) in sweep.points.iter().zip(outcomes) {
        match outcome.map(|outcome| outcome.into_point(point)) {
            Some(Ok(replayed)) => jobs.points.push(replayed),
            Some(Err(reason)) => {
                jobs.failed.insert(jobs.label(&point.values), reason);
            }
            None => jobs.interim = true,
        }
    }
    if jobs.points.is_empty() {
        match jobs.failed.pop_first() {
            Some((label, reason)) => bail!("no combination came to a result; {label}: {reason}"),
            None if args.gather => bail!("{}: no task with --part has left anything there", common.out.display()),
            None => bail!("stopped before anything was replayed"),
        }
    }
    if args.gather {
        tell_of_missing(missing, sweep);
    }
    jobs.reference = reference(args, sweep)?;
    remove_results(&common.out)?;
    write_jobs(&common.out, sweep, &jobs)?;
    report::write_job_curves(&common.out, &jobs)?;
    report::write_jobs(&common.out.join("report.html"), &jobs)?;
    if common.json {
        say(&serde_json::to_string_pretty(&jobs.summary(sweep))?)?;
    } else {
        let report = common.out.join("report.html");
        let pays = jobs.circuits_pay().into_iter().chain(jobs.pays_against());
        let sentences: String = pays.map(|sentence| format!("{sentence}\n")).collect();
        say(&format!("{}{sentences}report     {}", table::of_jobs(&jobs), report.display()))?;
    }
    let doubted = jobs.points.iter().any(|point| !point.summary.doubts.is_empty());
    Ok(ExitCode::from(if jobs.failed.is_empty() && !doubted && !jobs.interim { 0 } else { FOUND_WRONG }))
}
