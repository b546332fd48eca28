//! `run` of recorded jobs, `compare`, `report`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Error, bail};
use causal::CausalError;
use rayon::prelude::*;
use replay::experiment::{Experiment, Sweep};
use replay::report;
use replay::results::coflow::read_coflows;
use replay::results::congestion::read_congestion;
use replay::results::synthetic::read_traffic;
use replay::results::{
    Baseline, Comparison, RunResults, check_folder, read_comparison, read_jobs, read_prediction, remove_results,
    write_comparison, write_run,
};
use replay::run::{Jobs, RunError, run_jobs, run_with_trace};
use trace::stderr::error_chain;
use trace_tables::write_trace;

use super::common::{COULD_NOT_RUN, Common, FOUND_WRONG, RunArgs, say, tell_of_left_out, wrong_key};
use super::jobs::{Tables, jobs_of, key_of_jobs, path_of_jobs, read_all, use_jobs};
use super::progress::Bars;
use super::{synthetic, table};

/// A replay that came to a halt, or to times that run backwards, has found something wrong in its trace; all else could
/// not run.
pub(super) fn exit_code(failure: &Error) -> u8 {
    match failure.downcast_ref::<RunError>() {
        Some(RunError::Causal(CausalError::Halt { .. }) | RunError::Backwards { .. }) => FOUND_WRONG,
        _ => COULD_NOT_RUN,
    }
}

/// Runs one experiment.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Error> {
    let (path, common) = (args.experiment(), &args.common);
    let is_shared = args.part.is_some() || args.gather;
    if !is_shared {
        check_folder(&common.out, common.force)?;
    }
    let sweep = Sweep::read(path, &common.overrides)?;
    if let Some(first) = sweep.points.first() {
        tell_of_left_out(&first.experiment.fabric);
    }
    if is_shared && !sweep.is_sweep() {
        bail!("--part and --gather share a sweep among tasks; {} is no sweep", path.display());
    }
    if let Some(key) = args.group_by.as_ref().filter(|key| sweep.axes.iter().all(|axis| axis.path != **key)) {
        let swept: Vec<&str> = sweep.axes.iter().map(|axis| axis.path.as_str()).collect();
        let swept = if swept.is_empty() { "none".to_owned() } else { swept.join(", ") };
        bail!("--group-by {key}: no such key has several values in {}; those that have: {swept}", path.display());
    }
    for (option, given, what) in [("--packets", args.packets, "packets"), ("--pairs", args.pairs, "pairs")] {
        if is_shared && given {
            bail!("{option}: tasks that share a sweep keep no {what}; run the combination by itself, by --set");
        }
    }
    if synthetic::has_traffic(&sweep) {
        if args.against.is_some() {
            bail!("--against: {} has synthetic traffic ([traffic]), and no job", path.display());
        }
        if args.simulated_trace.is_some() {
            bail!(
                "--simulated-trace: {} replays no recorded job, but has synthetic traffic ([traffic])",
                path.display()
            );
        }
        return synthetic::run(args, sweep);
    }
    if args.simulated_trace.is_some() && sweep.is_sweep() {
        bail!("--simulated-trace: {} is a sweep; a simulated trace is that of a single replay", path.display());
    }
    for (option, given) in [("--packets", args.packets), ("--pairs", args.pairs)] {
        if given {
            bail!("{option}: {} has no synthetic traffic ([traffic])", path.display());
        }
    }
    if sweep.is_sweep() {
        return super::sweep::run(args, sweep);
    }
    if args.against.is_some() {
        bail!("--against: {} is no sweep; `replay compare` sets experiments side by side", path.display());
    }
    let bars = Bars::new();
    let experiment = read_experiment(path, common)?;
    path_of_jobs(&experiment)?;
    args.simulated_trace.as_deref().map_or(Ok(()), |folder| refuse_existing("--simulated-trace", folder))?;
    let tables = if args.simulated_trace.is_some() { Tables::All } else { Tables::Causal };
    let jobs = jobs_of(&experiment, tables, &bars)?;
    let results = match &args.simulated_trace {
        None => replay_one(path, &experiment, &jobs, common, &bars)?,
        Some(folder) => {
            let bar = bars.bar(&experiment.name);
            let (results, simulated) = run_with_trace(&experiment, &jobs, |progress| bar.show(progress))
                .map_err(|error| wrong_key(path, common, error))?;
            write_trace(folder, &simulated)?;
            results
        }
    };
    remove_results(&common.out)?;
    write_run(&common.out, &results)?;
    report::plots::write(&common.out, &results.detail)?;
    report::write(&common.out.join("report.html"), std::slice::from_ref(&results.detail))?;
    if common.json {
        say(&serde_json::to_string_pretty(&results.detail.summary)?)?;
    } else {
        let report = common.out.join("report.html");
        say(&format!("{}report     {}", table::of_run(&results.detail.summary), report.display()))?;
    }
    Ok(ExitCode::from(if results.detail.summary.doubts.is_empty() { 0 } else { FOUND_WRONG }))
}

/// A trace is never written over what is there.
pub(super) fn refuse_existing(option: &str, folder: &Path) -> Result<(), Error> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        bail!("{option} {}: it is there already; name another folder, or remove it first", folder.display());
    }
    Ok(())
}

/// Replays several experiments, as many at a time as there are cores.
pub(super) fn compare(paths: &[PathBuf], common: &Common) -> Result<ExitCode, Error> {
    check_folder(&common.out, common.force)?;
    let bars = Bars::new();
    let experiments = paths.iter().map(|path| read_experiment(path, common)).collect::<Result<Vec<_>, _>>()?;
    check_names(paths, &experiments)?;
    experiments.iter().for_each(|experiment| tell_of_left_out(&experiment.fabric));
    let jobs = read_all(&experiments, &bars)?;
    remove_results(&common.out)?;
    let outcomes: Vec<Result<RunResults, Error>> = paths
        .par_iter()
        .zip(&experiments)
        .map(|(path, experiment)| {
            let results = replay_one(path, experiment, &jobs[&key_of_jobs(experiment)?], common, &bars)?;
            let folder = common.out.join(&experiment.name);
            write_run(&folder, &results)?;
            report::plots::write(&folder, &results.detail)?;
            report::write(&folder.join("report.html"), std::slice::from_ref(&results.detail))?;
            Ok(results)
        })
        .collect();
    let mut comparison = Comparison { experiments: Vec::new(), failed: BTreeMap::new() };
    let mut details = Vec::new();
    for (experiment, outcome) in experiments.iter().zip(outcomes) {
        match outcome {
            Ok(results) => {
                comparison.experiments.push(results.detail.summary.clone());
                details.push(results.detail);
            }
            Err(error) => {
                comparison.failed.insert(experiment.name.clone(), error_chain(error.as_ref()));
            }
        }
    }
    check_same_job(&comparison)?;
    write_comparison(&common.out, &comparison)?;
    report::write(&common.out.join("report.html"), &details)?;
    if common.json {
        say(&serde_json::to_string_pretty(&comparison)?)?;
    } else {
        let report = common.out.join("report.html");
        let answer = match details.first().map(|first| first.summary.baseline) {
            Some(Baseline::Ideal) => format!("{}\n", report::fast_enough(&details)),
            _ => String::new(),
        };
        say(&format!("{}{answer}report: {}", table::of_comparison(&comparison), report.display()))?;
    }
    let doubted = comparison.experiments.iter().any(|summary| !summary.doubts.is_empty());
    Ok(ExitCode::from(if comparison.failed.is_empty() && !doubted { 0 } else { FOUND_WRONG }))
}

/// Draws the report of results again.
pub(super) fn report(results: &Path, out: Option<PathBuf>) -> Result<ExitCode, Error> {
    let out = out.unwrap_or_else(|| results.join("report.html"));
    if let Some(detail) = read_traffic(results)? {
        report::write_traffic(&out, &detail)?;
    } else if let Some(jobs) = read_jobs(results)? {
        report::write_jobs(&out, &jobs)?;
    } else if let Some((prediction, shown)) = read_prediction(results)? {
        report::write_prediction(&out, &prediction, &shown)?;
    } else if let Some(detail) = read_coflows(results)? {
        report::write_coflow_page(&out, &detail)?;
    } else if let Some(detail) = read_congestion(results)? {
        report::write_congestion_page(&out, &detail)?;
    } else {
        report::write(&out, &read_comparison(results)?)?;
    }
    say(&out.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn read_experiment(path: &Path, common: &Common) -> Result<Experiment, Error> {
    let mut experiment = Experiment::read(path, &common.overrides)?;
    if experiment.traffic.is_some() {
        let text =
            "`[traffic]`: a comparison replays recorded jobs; `replay run` runs synthetic traffic, and sweeps over it";
        return Err(Experiment::wrong(path, &common.overrides, text).into());
    }
    use_jobs(&mut experiment, common)?;
    Ok(experiment)
}

/// Results go into a folder of the experiment's name, so names must be good for that and different.
fn check_names(paths: &[PathBuf], experiments: &[Experiment]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for (path, experiment) in paths.iter().zip(experiments) {
        let name = &experiment.name;
        if name.contains(['/', '\\']) || name.starts_with('.') {
            bail!("{}: name = \"{name}\" is no name for a folder; leave out / and a leading dot", path.display());
        }
        if !names.insert(name) {
            bail!("{}: another experiment is called \"{name}\" too; give one of them another name", path.display());
        }
    }
    Ok(())
}

/// A comparison shows one recording beside its replays.
fn check_same_job(comparison: &Comparison) -> Result<(), Error> {
    let Some(first) = comparison.experiments.first() else { return Ok(()) };
    let other = comparison.experiments.iter().find(|one| (&one.trace, &one.job) != (&first.trace, &first.job));
    if let Some(other) = other {
        bail!(
            "{} replays {} of {}, but {} replays {} of {}: a comparison puts one job side by side (--trace and --set \
             workload.job=... choose it for all)",
            first.name,
            first.job,
            first.trace,
            other.name,
            other.job,
            other.trace
        );
    }
    Ok(())
}

/// Replays an experiment.
fn replay_one(
    path: &Path,
    experiment: &Experiment,
    jobs: &Jobs,
    common: &Common,
    bars: &Bars,
) -> Result<RunResults, Error> {
    let bar = bars.bar(&experiment.name);
    run_jobs(experiment, jobs, |progress| bar.show(progress)).map_err(|error| wrong_key(path, common, error))
}
