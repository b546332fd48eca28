//! Runs experiments.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use thiserror::Error;
use trace::rows::{HostRow, Trace};
use trace_tables::TableError;

use crate::experiment::Experiment;
use crate::results::{self, RunResults};
use crate::workload;
use causal::{CausalError, Causality, JobGraph, Outcome, Progress};
use netsim::fabric::{self, FabricError};
use netsim::network::Simulation;
use netsim::topology::HostPlace;
use netsim::traffic::{self, RunOptions, TrafficRun};

/// Why an experiment came to no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// No trace was named.
    #[error(
        "nothing to run: give workload.trace in the experiment, or --trace FOLDER (a folder that `merger build` wrote), or \
         a [traffic] table for synthetic traffic"
    )]
    NoTrace,
    /// Traffic was asked for, and there is none.
    #[error("no synthetic traffic: the experiment has no [traffic] table")]
    NoTraffic,
    /// Synthetic traffic came to no result.
    #[error(transparent)]
    Traffic(#[from] traffic::RunError),
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
    /// The fabric is so slow that the job has no end in sight.
    #[error("{slowest}: too slow for this job? {reason}")]
    Endless {
        /// The fabric's slowest rate, or its longest delay, and its other one: `fabric.KEY = VALUE`.
        slowest: String,
        /// How far it came.
        reason: CausalError,
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
}

/// Reads the trace in a folder.
///
/// # Errors
/// If it is no folder of a trace, or a table is missing or cut off.
pub fn read_trace(folder: &Path) -> Result<Trace, RunError> {
    Ok(trace_tables::read_trace(folder)?)
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

/// The same, with [a trace](results::simulated_trace) of the replay.
///
/// # Errors
/// As [`run_experiment`].
pub fn run_with_trace(
    experiment: &Experiment,
    trace: &Trace,
    progress: impl FnMut(Progress),
) -> Result<(RunResults, Trace), RunError> {
    replay(experiment, trace, progress, results::simulated_trace)
}

fn replay<T>(
    experiment: &Experiment,
    trace: &Trace,
    mut progress: impl FnMut(Progress),
    keep: impl FnOnce(&JobGraph, &Outcome) -> T,
) -> Result<(RunResults, T), RunError> {
    let began = Instant::now();
    let graph = JobGraph::new(trace, experiment.workload.job.as_deref(), experiment.workload.options())?;
    let (hosts, notes) = places(experiment, trace)?;
    let mut fabric = fabric::build(&experiment.fabric, &hosts)?;
    let outcome = workload::run(&graph, &mut fabric, &mut progress).map_err(|error| endless(experiment, error))?;
    let figures = fabric.figures();
    let wall_s = began.elapsed().as_secs_f64();
    let mut results = RunResults::new(experiment, &graph, &outcome, &figures, wall_s);
    let causal = experiment.workload.causality != Causality::Recorded;
    if let Some((attempt, phase, by_s)) = results::backwards(&results.detail.tasks).filter(|_| causal) {
        return Err(RunError::Backwards { attempt: attempt.to_owned(), phase, by_s });
    }
    results.detail.summary.notes = notes;
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

/// The error of a replay, with the keys that make the fabric slow where it came to no end.
fn endless(experiment: &Experiment, error: CausalError) -> RunError {
    let slowest = match (fabric::slowest(&experiment.fabric), &error) {
        ((Some(rate), Some(delay)), CausalError::Endless { .. }) => format!("{rate} (the longest delay is {delay})"),
        ((rate, delay), CausalError::Endless { .. }) => rate.or(delay).unwrap_or_else(|| "the fabric".to_owned()),
        _ => return error.into(),
    };
    RunError::Endless { slowest, reason: error }
}

/// Where the hosts stand: as the experiment says, else as the trace says, else in the first rack that the trace knows.
fn places(experiment: &Experiment, trace: &Trace) -> Result<(Vec<HostPlace>, Vec<String>), RunError> {
    let given = &experiment.workload.racks;
    if let Some(host) = given.keys().find(|name| trace.hosts.iter().all(|host| host.name != **name)) {
        let known = trace.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(RunError::UnknownHost { host: host.clone(), known });
    }
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
