//! Jobs from parameters, run over a simulated network.

use std::path::Path;

use causal::{CausalError, JobGraph, JobTime, Options, Progress};
use job_profile::Learn;
use mapreduce::{Growth, JobError, JobFile, Model};
use netsim::engine::{self, End};
use netsim::fabric::{self, FabricConfig, FabricError};
use netsim::network::{Network, NetworkFigures, Simulation as _};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use thiserror::Error;
use trace::rows::Trace;

use crate::experiment::{ExperimentError, Override, shipped};
use crate::placing::{OnPlaces, Places};

/// A job file has at most so many bytes. One of a recorded job has some 250 for each of its maps.
const MAX_FILE: u64 = 16 << 20;
/// Between two calls of the progress function this many things happen.
const STEPS_A_REPORT: u64 = 4_096;

/// Why jobs came to no end.
#[derive(Debug, Error)]
pub enum GenerateError {
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The jobs do not end on it.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// Why a recorded job cannot be grown.
#[derive(Debug, Error)]
pub enum GrowError {
    /// There is nothing to learn from.
    #[error("{0}: no job that can be replayed and whose maps read what they work on from HDFS")]
    NoJob(String),
    /// The job that was named.
    #[error(transparent)]
    Named(#[from] CausalError),
    /// What was learned makes no job.
    #[error("the job of {place}: {source}")]
    Job {
        /// Where the trace lies.
        place: String,
        /// What is wrong.
        source: JobError,
    },
    /// An override is wrong.
    #[error(transparent)]
    Override(#[from] ExperimentError),
    /// It cannot grow so far.
    #[error(transparent)]
    Growth(#[from] JobError),
}

/// Reads a job file, or the one of this name that is built in, and applies `overrides`.
///
/// # Errors
/// If it cannot be read, or something in it, or in an override, is wrong.
pub fn read_jobs(path: &Path, overrides: &[Override]) -> Result<JobFile, ExperimentError> {
    let text = shipped::text_of(path, shipped::JOBS, MAX_FILE)?;
    jobs_of_text(&path.display().to_string(), &text, overrides)
}

/// Reads a job file's text, and applies `overrides`. `place` is where it stands, for errors.
///
/// # Errors
/// If something in it, or in an override, is wrong.
pub fn jobs_of_text(place: &str, text: &str, overrides: &[Override]) -> Result<JobFile, ExperimentError> {
    crate::experiment::locate::read_table(place, text, overrides, |table| {
        JobFile::of_table(table).map_err(|error| error.to_string())
    })
}

/// Learns the job of a trace, and grows it. `place` is where the trace lies, for errors; `overrides` change the job as it was
/// recorded, and `learn` says which one it is. Where it tells of processors, the grown job's tasks compete for as many. Also returns
/// what the trace does not say of the job.
///
/// # Errors
/// If the trace has no job that can be learned, or an override or a number is wrong.
pub fn grown_job(
    place: &str,
    trace: &Trace,
    learn: Learn<'_>,
    overrides: &[Override],
    growth: &Growth,
) -> Result<(JobFile, Vec<String>), GrowError> {
    if learn.job.is_some() {
        JobGraph::new(trace, learn.job, Options::default())?;
    }
    let profile = job_profile::profile(trace, learn).ok_or_else(|| GrowError::NoJob(place.to_owned()))?;
    let (file, notes) =
        JobFile::of_profile(&profile).map_err(|source| GrowError::Job { place: place.to_owned(), source })?;
    let file = jobs_of_text(&format!("the job of {place}"), &file.to_toml()?, overrides)?;
    Ok((file.grow(growth)?, notes))
}

/// Runs the jobs of a file over a fabric whose hosts are theirs, and returns all that happened, as a trace, with the network's figures.
/// `progress` is called now and then.
///
/// # Errors
/// If the fabric cannot be built or has too few hosts, or the jobs come to no end on it.
pub fn generate(
    file: &JobFile,
    fabric: &FabricConfig,
    hosts: &[HostPlace],
    progress: impl FnMut(Progress),
) -> Result<(Trace, NetworkFigures), GenerateError> {
    generate_at(file, fabric, Places::first(hosts.to_vec()), progress)
}

/// The same with the jobs' hosts at `places`.
///
/// # Errors
/// As [`generate`].
pub fn generate_at(
    file: &JobFile,
    fabric: &FabricConfig,
    places: Places,
    progress: impl FnMut(Progress),
) -> Result<(Trace, NetworkFigures), GenerateError> {
    let mut network = OnPlaces::new(fabric::build(fabric, &places.hosts)?, places.of);
    let latest = fabric::latest(network.figures().interval_ps);
    let model = run(file, &mut network, latest, progress)?;
    let mut figures = network.figures();
    figures.equalise_intervals();
    Ok((model.into_trace(), figures))
}

/// Runs the jobs over a network, until `latest` at most.
fn run<N: Network>(
    file: &JobFile,
    network: &mut N,
    latest: SimTime,
    progress: impl FnMut(Progress),
) -> Result<Model, GenerateError> {
    let model = Model::new(file.clone());
    if network.hosts() < model.hosts() {
        return Err(JobError::TooFewHosts { fabric: network.hosts(), cluster: model.hosts() }.into());
    }
    let mut watched = Watched { model, progress, steps: 0 };
    match engine::run(network, &mut watched, latest) {
        End::Done(_) if watched.model.is_complete() => Ok(watched.model),
        End::Done(_) | End::Idle => Err(watched.model.halted().into()),
        End::Limit(at) => Err(JobError::Endless { at: at.to_string() }.into()),
    }
}

/// Jobs under way, with whoever wants to know how far they have come.
struct Watched<P> {
    model: Model,
    progress: P,
    steps: u64,
}

impl<P: FnMut(Progress)> Watched<P> {
    fn step_done(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_A_REPORT) {
            let now = JobTime::SUBMISSION.plus_ps(self.model.now().0);
            let (done, all) = self.model.progress();
            // Nothing is recorded: the end is guessed by the tasks that are done.
            let end = now.ps().saturating_mul(all.max(1)) / done.max(1);
            let recorded = JobTime::SUBMISSION.plus_ps(end.max(now.ps()));
            (self.progress)(Progress { now, recorded, causal_events: self.steps });
        }
    }
}

impl<N: Network, P: FnMut(Progress)> engine::Workload<N> for Watched<P> {
    fn next_tick(&self, network: &N) -> Option<SimTime> {
        self.model.next_tick(network)
    }

    fn tick(&mut self, now: SimTime, network: &mut N) {
        self.model.tick(now, network);
        self.step_done();
    }

    fn delivered(&mut self, delivery: &netsim::network::Delivery, network: &mut N) {
        self.model.delivered(delivery, network);
        self.step_done();
    }

    fn is_done(&self) -> bool {
        self.model.is_complete() || self.model.is_full()
    }
}
