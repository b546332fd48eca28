//! `run` with several values of a key: a recorded job, replayed in all combinations, as many at a time as there are cores.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, bail};
use rayon::prelude::*;
use replay::experiment::{Point, Sweep};
use replay::report;
use replay::results::{JobPoint, JobSweep, Summary, remove_results, write_jobs};
use replay::run::run_jobs;
use trace::stderr::error_chain;

use super::common::{FOUND_WRONG, RunArgs, say, stopped_by_signals, wrong_key};
use super::jobs::{path_of_jobs, read_all, use_jobs};
use super::progress::Bars;
use super::table;

/// Replays the combinations of a sweep.
pub(super) fn run(args: &RunArgs, mut sweep: Sweep) -> Result<ExitCode, Error> {
    let common = &args.common;
    for point in &mut sweep.points {
        use_jobs(&mut point.experiment, common)?;
    }
    let bars = Bars::new();
    let read = read_all(sweep.points.iter().map(|point| &point.experiment), &bars)?;
    let mut jobs = JobSweep::new(&sweep)?;
    let done = bars.jobs(sweep.points.len());
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let (stop, told) = (stopped_by_signals()?, AtomicBool::new(false));
    // A replay that has begun is finished, for half of one says nothing of the job.
    let stopping = || {
        let stops = stop.load(Ordering::Relaxed);
        if stops && !told.swap(true, Ordering::Relaxed) {
            bars.say("replay: stopped: the replays that have begun are finished first; a second signal ends them");
        }
        stops
    };
    let outcomes: Vec<Option<Result<Summary, Error>>> = threads.install(|| {
        let replayed = |point: &Point| {
            let bar = bars.bar(&jobs.label(&point.values));
            let of_point = &read[path_of_jobs(&point.experiment)?];
            let outcome = run_jobs(&point.experiment, of_point, |progress| {
                stopping();
                bar.show(progress);
            });
            drop(bar);
            done.inc(1);
            let results = outcome.map_err(|error| wrong_key(&args.experiment, common, error))?;
            Ok(results.detail.summary)
        };
        sweep.points.par_iter().map(|point| (!stopping()).then(|| replayed(point))).collect()
    });
    done.finish_and_clear();
    for (point, outcome) in sweep.points.iter().zip(outcomes) {
        match outcome {
            Some(Ok(summary)) => jobs.points.push(JobPoint { values: point.values.clone(), summary }),
            Some(Err(error)) => {
                jobs.failed.insert(jobs.label(&point.values), error_chain(error.as_ref()));
            }
            None => jobs.interim = true,
        }
    }
    if jobs.points.is_empty() {
        match jobs.failed.pop_first() {
            Some((label, reason)) => bail!("no combination came to a result; {label}: {reason}"),
            None => bail!("stopped before anything was replayed"),
        }
    }
    remove_results(&common.out)?;
    write_jobs(&common.out, &sweep, &jobs)?;
    report::write_job_curves(&common.out, &jobs)?;
    report::write_jobs(&common.out.join("report.html"), &jobs)?;
    if common.json {
        say(&serde_json::to_string_pretty(&jobs.summary(&sweep))?)?;
    } else {
        let report = common.out.join("report.html");
        say(&format!("{}report     {}", table::of_jobs(&jobs), report.display()))?;
    }
    let doubted = jobs.points.iter().any(|point| !point.summary.doubts.is_empty());
    Ok(ExitCode::from(if jobs.failed.is_empty() && !doubted && !jobs.interim { 0 } else { FOUND_WRONG }))
}
