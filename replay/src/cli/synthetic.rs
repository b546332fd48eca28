//! `run` with synthetic traffic: all combinations of a sweep and all seeds, as many at a time as there are cores; or those of one of
//! several tasks that share them.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Error, bail};
use indicatif::ProgressBar;
use netsim::traffic::{RunOptions, TrafficRun};
use rayon::prelude::*;
use replay::experiment::{Experiment, Sweep};
use replay::ranks::Ranks;
use replay::report;
use replay::results::synthetic::{TrafficResults, write_traffic};
use replay::results::{AxisValues, PartOutcome, Parts, label, remove_results};
use replay::run::{RunError, run_traffic};
use trace::stderr::{error_chain, print};

use super::common::{FOUND_WRONG, Part, RunArgs, say, stopped_by_signals, wrong_key};
use super::parts::{OwnPart, tell_of_missing};
use super::progress::Bars;
use super::table;

/// Whether the experiment has synthetic traffic.
pub(super) fn has_traffic(sweep: &Sweep) -> bool {
    sweep.points.iter().any(|point| point.experiment.traffic.is_some())
}

/// One run: which combination, and its experiment with its seed.
struct Job {
    point: usize,
    label: String,
    experiment: Experiment,
}

/// Runs the traffic of an experiment.
pub(super) fn run(args: &RunArgs, mut sweep: Sweep) -> Result<ExitCode, Error> {
    let common = &args.common;
    if common.trace.is_some() {
        bail!("--trace: {} has synthetic traffic ([traffic]) and replays no trace", args.experiment().display());
    }
    // The effective configuration must find the table from wherever it lies.
    for traffic in sweep.points.iter_mut().filter_map(|point| point.experiment.traffic.as_mut()) {
        if let Some(table) = &mut traffic.table {
            *table = table.canonicalize().with_context(|| format!("traffic.table: {}", table.display()))?;
        }
    }
    let parts = Parts::in_results(&common.out);
    let mut results = TrafficResults::new(&sweep)?;
    results.detail.group_by.clone_from(&args.group_by);
    let jobs = jobs(&sweep, &results.detail.axes)?;
    if let Some(part) = args.part {
        return run_part(args, &sweep, &jobs, part, &parts);
    }
    let mut is_stopped = false;
    if args.gather {
        gather(args, &sweep, &parts, &mut results)?;
    } else {
        let runner = Runner::new(args, jobs.len(), jobs.len())?;
        let outcomes = runner.threads.install(|| jobs.par_iter().map(|job| runner.run(job)).collect());
        runner.done.finish_and_clear();
        collect(args, &sweep, &jobs, outcomes, &mut results)?;
        is_stopped = runner.stop.load(Ordering::Relaxed);
    }
    let detail = &mut results.detail;
    detail.interim |= is_stopped && detail.points.iter().any(|point| point.summary.interim);
    remove_results(&common.out)?;
    write_traffic(&common.out, &sweep, &results, args.packets)?;
    report::write_curves(&common.out, &results.detail)?;
    report::write_traffic(&common.out.join("report.html"), &results.detail)?;
    if common.json {
        say(&serde_json::to_string_pretty(&results.summary(&sweep)?)?)?;
    } else {
        let report = common.out.join("report.html");
        say(&format!("{}report     {}", table::of_traffic(&results.detail), report.display()))?;
    }
    Ok(ExitCode::from(if results.detail.failed.is_empty() && !results.detail.interim { 0 } else { FOUND_WRONG }))
}

/// What all runs have in common.
struct Runner {
    threads: rayon::ThreadPool,
    stop: Arc<AtomicBool>,
    options: RunOptions,
    ranks: Option<Ranks>,
    bars: Bars,
    done: ProgressBar,
}

impl Runner {
    /// For `runs` of the sweep's runs.
    fn new(args: &RunArgs, runs: usize, of_the_sweep: usize) -> Result<Self, Error> {
        let ranks = args.ranks()?;
        // Ranks are as many processes as a run takes: their runs come one after the other.
        let threads = if ranks.is_some() { 1 } else { args.threads.unwrap_or(0) };
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        // What threads there are beyond one a run, runs can use themselves.
        let of_a_run = (threads.current_num_threads() / runs.max(1)).max(1);
        let options = RunOptions {
            keep: args.packets,
            pairs: args.pairs,
            circuits: RunOptions::circuits_of_each(of_the_sweep),
            engine: args.engine.into(),
            threads: of_a_run,
            optimistic: args.optimistic.options(args.engine)?,
        };
        let bars = Bars::new();
        let done = bars.jobs(runs);
        Ok(Self { threads, stop: stopped_by_signals()?, options, ranks, bars, done })
    }

    /// `None` if it was stopped before it began.
    fn run(&self, job: &Job) -> Option<Result<TrafficRun, RunError>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let bar = self.bars.traffic_bar(&job.label);
        let outcome = match &self.ranks {
            Some(ranks) => ranks.run(&job.experiment, &self.stop),
            None => run_traffic(&job.experiment, self.options, &self.stop, |progress| bar.show(progress)),
        };
        drop(bar);
        // Ranks that were stopped have measured nothing.
        if self.ranks.is_some() && outcome.is_err() && self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.done.inc(1);
        Some(outcome)
    }
}

/// Runs the combinations of one task that are not there yet, and leaves each as a file once all its seeds have run.
fn run_part(args: &RunArgs, sweep: &Sweep, jobs: &[Job], part: Part, parts: &Parts) -> Result<ExitCode, Error> {
    let own = OwnPart::find::<Vec<TrafficRun>>(sweep, part, parts)?;
    let of_point = |point: usize| jobs.iter().filter(move |job| job.point == point).collect::<Vec<&Job>>();
    let missing = own.missing.iter().map(|point| of_point(*point).len()).sum();
    let runner = Runner::new(args, missing, jobs.len())?;
    let combination = |number: &usize| {
        let runs: Vec<_> = of_point(*number).par_iter().map(|job| runner.run(job)).collect();
        let Some(runs) = runs.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let outcome = match runs.into_iter().collect::<Result<Vec<TrafficRun>, RunError>>() {
            // Half a run is none.
            Ok(runs) if runs.iter().any(|run| run.figures.interim) => return Ok(None),
            Ok(runs) => PartOutcome::Done(Box::new(runs)),
            Err(error) => PartOutcome::Failed(error_chain(wrong_key(args.experiment(), &args.common, error).as_ref())),
        };
        parts.write(*number, &sweep.points[*number], &outcome)?;
        Ok(Some(outcome))
    };
    let outcomes: Result<Vec<_>, Error> = runner.threads.install(|| own.missing.par_iter().map(combination).collect());
    runner.done.finish_and_clear();
    own.say(args, &outcomes?)
}

/// Puts together what tasks have left.
fn gather(args: &RunArgs, sweep: &Sweep, parts: &Parts, results: &mut TrafficResults) -> Result<(), Error> {
    let mut missing = 0;
    for (number, point) in sweep.points.iter().enumerate() {
        match parts.read::<Vec<TrafficRun>>(number, point)? {
            Some(PartOutcome::Done(runs)) => results.add(point.values.clone(), &point.experiment, *runs),
            Some(PartOutcome::Failed(reason)) => {
                results.detail.failed.insert(label(results.detail.axes.iter().zip(&point.values)), reason);
            }
            None => missing += 1,
        }
    }
    results.detail.interim |= missing > 0;
    if results.detail.points.is_empty() {
        match results.detail.failed.pop_first() {
            Some((label, reason)) => bail!("no combination came to a result; {label}: {reason}"),
            None => bail!("{}: no task with --part has left anything there", args.common.out.display()),
        }
    }
    tell_of_missing(missing, sweep);
    Ok(())
}

/// A run for each combination and seed.
fn jobs(sweep: &Sweep, axes: &[AxisValues]) -> Result<Vec<Job>, Error> {
    let mut jobs = Vec::new();
    for (point, combination) in sweep.points.iter().enumerate() {
        let run = &combination.experiment.run;
        let seeds = run.seeds.as_ref().map_or_else(|| vec![run.seed], |seeds| seeds.seeds(run.seed));
        for seed in &seeds {
            let experiment = combination.experiment.seeded(*seed).map_err(Error::msg)?;
            let values = label(axes.iter().zip(&combination.values));
            let seed = if seeds.len() > 1 { format!(" seed {seed}") } else { String::new() };
            let label = if values.is_empty() { experiment.name.clone() } else { values };
            jobs.push(Job { point, label: format!("{label}{seed}"), experiment });
        }
    }
    Ok(jobs)
}

/// Puts the runs together by combination. A single combination that comes to no result is an error.
fn collect(
    args: &RunArgs,
    sweep: &Sweep,
    jobs: &[Job],
    outcomes: Vec<Option<Result<TrafficRun, RunError>>>,
    results: &mut TrafficResults,
) -> Result<(), Error> {
    let mut outcomes = jobs.iter().zip(outcomes).peekable();
    let mut by_events = BTreeSet::new();
    for (point, combination) in sweep.points.iter().enumerate() {
        let (mut runs, mut failure) = (Vec::new(), None);
        while let Some((_, outcome)) = outcomes.next_if(|(job, _)| job.point == point) {
            match outcome {
                Some(Ok(run)) => {
                    if let Some(reason) = &run.by_events {
                        by_events.insert(reason.clone());
                    }
                    runs.push(run);
                }
                Some(Err(error)) => failure = Some(wrong_key(args.experiment(), &args.common, error)),
                None => results.detail.interim = true,
            }
        }
        match failure {
            Some(error) if sweep.points.len() == 1 => return Err(error),
            Some(error) => {
                let label = label(results.detail.axes.iter().zip(&combination.values));
                results.detail.failed.insert(label, error_chain(error.as_ref()));
            }
            None => results.add(combination.values.clone(), &combination.experiment, runs),
        }
    }
    for reason in by_events {
        print(format!("replay: run one event after the other, by one thread a run: {reason}"));
    }
    if results.detail.points.is_empty() {
        match results.detail.failed.pop_first() {
            Some((label, reason)) => bail!("no combination came to a result; {label}: {reason}"),
            None => bail!("stopped before anything was measured"),
        }
    }
    Ok(())
}
