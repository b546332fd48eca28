//! `run` with several values of a key: a recorded job, replayed in all combinations, as many at a time as there are cores.

use std::process::ExitCode;

use anyhow::{Error, bail};
use rayon::prelude::*;
use replay::experiment::Sweep;
use replay::report;
use replay::results::{JobPoint, JobSweep, Summary, write_jobs};
use replay::run::run_experiment;
use trace::stderr::error_chain;

use super::common::{FOUND_WRONG, RunArgs, say, tell_of_replaced, wrong_key};
use super::progress::Bars;
use super::table;
use super::traces::{read_traces, trace_of, use_trace};

/// Replays the combinations of a sweep.
pub(super) fn run(args: &RunArgs, mut sweep: Sweep) -> Result<ExitCode, Error> {
    let common = &args.common;
    for point in &mut sweep.points {
        use_trace(&mut point.experiment, common)?;
    }
    let bars = Bars::new();
    let traces = read_traces(sweep.points.iter().map(|point| &point.experiment), &bars)?;
    let mut jobs = JobSweep::new(&sweep)?;
    let done = bars.jobs(sweep.points.len());
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let outcomes: Vec<Result<Summary, Error>> = threads.install(|| {
        let one = |point: &replay::experiment::Point| {
            let bar = bars.bar(&jobs.label(&point.values));
            let trace = &traces[trace_of(&point.experiment)?];
            let outcome = run_experiment(&point.experiment, trace, |progress| bar.show(progress));
            drop(bar);
            done.inc(1);
            let results = outcome.map_err(|error| wrong_key(&args.experiment, common, error))?;
            Ok(results.detail.summary)
        };
        sweep.points.par_iter().map(one).collect()
    });
    done.finish_and_clear();
    for (point, outcome) in sweep.points.iter().zip(outcomes) {
        match outcome {
            Ok(summary) => jobs.points.push(JobPoint { values: point.values.clone(), summary }),
            Err(error) => {
                jobs.failed.insert(jobs.label(&point.values), error_chain(error.as_ref()));
            }
        }
    }
    if jobs.points.is_empty()
        && let Some((label, reason)) = jobs.failed.pop_first()
    {
        bail!("no combination came to a result; {label}: {reason}");
    }
    tell_of_replaced(&common.out);
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
    Ok(ExitCode::from(if jobs.failed.is_empty() && !doubted { 0 } else { FOUND_WRONG }))
}
