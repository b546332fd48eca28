//! Runs experiments.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use thiserror::Error;
use trace::rows::{HostRow, Trace};
use trace_tables::TableError;

use crate::experiment::Experiment;
use crate::generate::{self, GenerateError};
use crate::placing::{OnPlaces, Places, PlacingError};
use crate::results::{self, IdealTimes, RunResults};
use crate::workload;
use causal::{CausalError, Causality, JobGraph, Outcome, Progress};
use mapreduce::{JobError, JobFile};
use netsim::fabric::{self, FabricConfig, FabricError};
use netsim::network::{NetworkFigures, Simulation};
use netsim::topology::HostPlace;
use netsim::traffic::{self, RunOptions, TrafficRun};

/// Why an experiment came to no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// No trace was named.
    #[error(
        "nothing to run: give workload.trace in the experiment, or --trace FOLDER (a folder that `merger build` wrote), or \
         workload.generate or --generate JOB.toml (a job from parameters), or a [traffic] table for synthetic traffic"
    )]
    NoTrace,
    /// Traffic was asked for, and there is none.
    #[error("no synthetic traffic: the experiment has no [traffic] table")]
    NoTraffic,
    /// Synthetic traffic came to no result.
    #[error(transparent)]
    Traffic(#[from] traffic::TrafficRunError),
    /// Ranks came to no result.
    #[error("--ranks: {0}")]
    Ranks(String),
    /// The trace cannot be read.
    #[error("the trace cannot be read: {0}")]
    Trace(#[from] TableError),
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A rack was given for a host that is not there.
    #[error("workload.racks.{host}: the trace has no such host; it has: {known}")]
    UnknownHost {
        /// The host that was given.
        host: String,
        /// Those that are there.
        known: String,
    },
    /// Its hosts have no places in the fabric.
    #[error(transparent)]
    Placing(#[from] PlacingError),
    /// The fabric is so slow that the job has no end in sight.
    #[error("{slowest}: too slow for this job? {reason}")]
    Endless {
        /// The fabric's slowest rate, or its longest delay, and its other one: `fabric.KEY = VALUE`.
        slowest: String,
        /// How far it came.
        reason: String,
    },
    /// A time that runs backwards: part of the job moved with the network, and what follows on it did not.
    #[error(
        "{attempt}: on this network its {phase} phase ends {by_s:.1} s before it begins: the trace does not know what its \
         end waits for, and it stays where it was recorded. No time of this replay can be trusted; record with the Java \
         agent in all JVMs"
    )]
    Backwards {
        /// Task attempt.
        attempt: String,
        /// Phase.
        phase: &'static str,
        /// How far, seconds.
        by_s: f64,
    },
    /// The trace cannot be replayed.
    #[error(transparent)]
    Causal(#[from] CausalError),
    /// A job from parameters came to no end.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl From<GenerateError> for RunError {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Fabric(error) => Self::Fabric(error),
            GenerateError::Job(error) => Self::Job(error),
        }
    }
}

/// What an experiment runs, if it is no synthetic traffic.
#[derive(Debug)]
pub enum Jobs {
    /// Recorded jobs.
    Recorded(Box<Trace>),
    /// Jobs from parameters.
    Generated(Box<GeneratedJobs>),
}

/// Jobs from parameters, and what they do on an infinitely fast network.
#[derive(Debug)]
pub struct GeneratedJobs {
    file: JobFile,
    notes: Vec<String>,
    ideal: IdealTimes,
}

impl GeneratedJobs {
    /// The jobs of a file, with what is to be said of them. They are run once, on an infinitely fast network. Results are those of
    /// the job `job`; of the one with the largest shuffle if it is `None`.
    ///
    /// # Errors
    /// If they come to no end even there, or there is no such job.
    pub fn new(file: JobFile, notes: Vec<String>, job: Option<&str>) -> Result<Self, RunError> {
        let fabric = FabricConfig::Ideal(Default::default());
        let hosts = mapreduce::places(&file.cluster);
        let (trace, _) = generate::generate(&file, &fabric, &hosts, |_| ())?;
        let graph = JobGraph::new(&trace, job, causal::Options::default())?;
        let ideal = IdealTimes::new(&graph, &causal::recorded(&graph));
        Ok(Self { file, notes, ideal })
    }
}

/// Reads the trace in a folder.
///
/// # Errors
/// If it is no folder of a trace, or a table is missing or cut off.
pub fn read_trace(folder: &Path) -> Result<Trace, RunError> {
    Ok(trace_tables::read_trace(folder)?)
}

/// The same without what a replay does not need: spans and steps.
///
/// # Errors
/// As [`read_trace`].
pub fn read_causal_trace(folder: &Path) -> Result<Trace, RunError> {
    Ok(trace_tables::read_causal_trace(folder)?)
}

/// Replays the experiment's job of `trace` over its fabric. `progress` is called now and then.
///
/// # Errors
/// If the fabric cannot be built, or the trace cannot be replayed.
pub fn run_experiment(
    experiment: &Experiment,
    trace: &Trace,
    progress: impl FnMut(Progress),
) -> Result<RunResults, RunError> {
    replay(experiment, trace, progress, |_, _| ()).map(|(results, ())| results)
}

/// Runs the jobs of an experiment over its fabric. `progress` is called now and then.
///
/// # Errors
/// If the fabric cannot be built, the trace cannot be replayed, or a job from parameters comes to no end.
pub fn run_jobs(experiment: &Experiment, jobs: &Jobs, progress: impl FnMut(Progress)) -> Result<RunResults, RunError> {
    match jobs {
        Jobs::Recorded(trace) => run_experiment(experiment, trace, progress),
        Jobs::Generated(jobs) => run_generated(experiment, jobs, progress).map(|(results, _)| results),
    }
}

/// The same, with [a trace](results::simulated_trace) of what was simulated.
///
/// # Errors
/// As [`run_jobs`].
pub fn run_with_trace(
    experiment: &Experiment,
    jobs: &Jobs,
    progress: impl FnMut(Progress),
) -> Result<(RunResults, Trace), RunError> {
    match jobs {
        Jobs::Recorded(trace) => replay(experiment, trace, progress, results::simulated_trace),
        Jobs::Generated(jobs) => run_generated(experiment, jobs, progress),
    }
}

/// Jobs from parameters: what the model does on the fabric is the result, beside what it does on an infinitely fast one.
fn run_generated(
    experiment: &Experiment,
    jobs: &GeneratedJobs,
    progress: impl FnMut(Progress),
) -> Result<(RunResults, Trace), RunError> {
    let began = Instant::now();
    let mut hosts = mapreduce::places(&jobs.file.cluster);
    check_hosts(&experiment.workload.racks, hosts.iter().map(|host| host.name.as_str()))?;
    for host in &mut hosts {
        if let Some(rack) = experiment.workload.racks.get(&host.name) {
            host.rack.clone_from(rack);
        }
    }
    let places = Places::new(experiment.workload.placement.as_ref(), &experiment.fabric, hosts)?;
    let (trace, figures) = generate::generate_at(&jobs.file, &experiment.fabric, places, progress)
        .map_err(|error| endless(experiment, error.into()))?;
    let wall_s = began.elapsed().as_secs_f64();
    let mut results = recorded_results(experiment, &trace, &figures, wall_s)?;
    results.detail.against_ideal(&jobs.ideal);
    results.detail.summary.notes.extend(jobs.notes.iter().cloned());
    Ok((results, trace))
}

/// The results of a trace that is taken as it was recorded.
fn recorded_results(
    experiment: &Experiment,
    trace: &Trace,
    figures: &NetworkFigures,
    wall_s: f64,
) -> Result<RunResults, RunError> {
    let graph = JobGraph::new(trace, experiment.workload.job.as_deref(), experiment.options())?;
    Ok(RunResults::new(experiment, &graph, &causal::recorded(&graph), figures, wall_s))
}

fn replay<T>(
    experiment: &Experiment,
    trace: &Trace,
    mut progress: impl FnMut(Progress),
    keep: impl FnOnce(&JobGraph, &Outcome) -> T,
) -> Result<(RunResults, T), RunError> {
    let began = Instant::now();
    let graph = JobGraph::new(trace, experiment.workload.job.as_deref(), experiment.options())?;
    let (hosts, notes) = places(experiment, trace)?;
    let places = Places::new(experiment.workload.placement.as_ref(), &experiment.fabric, hosts)?;
    let mut fabric = OnPlaces::new(fabric::build(&experiment.fabric, &places.hosts)?, places.of);
    let outcome =
        workload::run(&graph, &mut fabric, &mut progress).map_err(|error| endless(experiment, error.into()))?;
    let mut figures = fabric.figures();
    figures.equalise_intervals();
    let wall_s = began.elapsed().as_secs_f64();
    let mut results = RunResults::new(experiment, &graph, &outcome, &figures, wall_s);
    let causal = experiment.workload.causality != Causality::Recorded;
    if let Some((attempt, phase, by_s)) = results::backwards(&results.detail.tasks).filter(|_| causal) {
        return Err(RunError::Backwards { attempt: attempt.to_owned(), phase, by_s });
    }
    results.detail.summary.notes.extend(notes);
    Ok((results, keep(&graph, &outcome)))
}

/// Runs the synthetic traffic of an experiment, with its `run.seed`. `stop` ends the run, and `progress` is called now and then.
///
/// # Errors
/// If the experiment has no traffic, or traffic and fabric do not fit each other.
pub fn run_traffic(
    experiment: &Experiment,
    options: RunOptions,
    stop: &AtomicBool,
    mut progress: impl FnMut(traffic::Progress),
) -> Result<TrafficRun, RunError> {
    let Some(traffic) = &experiment.traffic else { return Err(RunError::NoTraffic) };
    Ok(traffic::run(traffic, &experiment.fabric, experiment.run.seed, options, stop, &mut progress)?)
}

/// The error of a run, with the keys that make the fabric slow where it came to no end.
fn endless(experiment: &Experiment, error: RunError) -> RunError {
    let reason = match error {
        RunError::Causal(error @ CausalError::Endless { .. }) => error.to_string(),
        RunError::Job(error @ (JobError::Endless { .. } | JobError::TooLong { goes_on: false, .. })) => {
            error.to_string()
        }
        other => return other,
    };
    let slowest = match fabric::slowest(&experiment.fabric) {
        (Some(rate), Some(delay)) => format!("{rate} (the longest delay is {delay})"),
        (rate, delay) => rate.or(delay).unwrap_or_else(|| "the fabric".to_owned()),
    };
    RunError::Endless { slowest, reason }
}

/// Refuses racks of hosts that are not there.
fn check_hosts<'h>(
    given: &BTreeMap<String, String>,
    known: impl Iterator<Item = &'h str> + Clone,
) -> Result<(), RunError> {
    match given.keys().find(|name| known.clone().all(|host| host != **name)) {
        None => Ok(()),
        Some(host) => {
            let known = known.collect::<Vec<_>>().join(", ");
            Err(RunError::UnknownHost { host: host.clone(), known })
        }
    }
}

/// Where the hosts stand: as the experiment says, else as the trace says, else in the first rack that the trace knows.
fn places(experiment: &Experiment, trace: &Trace) -> Result<(Vec<HostPlace>, Vec<String>), RunError> {
    let given = &experiment.workload.racks;
    check_hosts(given, trace.hosts.iter().map(|host| host.name.as_str()))?;
    let first = trace.hosts.iter().map(|host| host.rack.as_str()).find(|rack| !rack.is_empty()).unwrap_or_default();
    let mut notes = Vec::new();
    let place = |host: &HostRow| {
        let rack = given.get(&host.name).unwrap_or(&host.rack);
        let rack = if rack.is_empty() && !first.is_empty() {
            notes.push(format!(
                "{}: the trace does not know its rack; it was put into {first} (workload.racks puts it elsewhere)",
                host.name
            ));
            first
        } else {
            rack
        };
        HostPlace { name: host.name.clone(), rack: rack.to_owned() }
    };
    Ok((trace.hosts.iter().map(place).collect(), notes))
}
