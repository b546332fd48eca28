//! The jobs of experiments: recorded ones, and such from parameters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error};
use job_profile::Learn;
use replay::experiment::Experiment;
use replay::generate::{grown_job, read_jobs};
use replay::run::{GeneratedJobs, Jobs, RunError, read_causal_trace, read_trace};

use super::common::Common;
use super::progress::Bars;

/// Has an experiment run the jobs of the command line, where some are given.
pub(super) fn use_jobs(experiment: &mut Experiment, common: &Common) -> Result<(), Error> {
    let workload = &mut experiment.workload;
    if let Some(trace) = &common.trace {
        (workload.trace, workload.generate) = (Some(trace.clone()), None);
    }
    if let Some(jobs) = &common.generate {
        (workload.trace, workload.generate) = (None, Some(jobs.clone()));
    }
    experiment.check().map_err(Error::msg)?;
    let workload = &mut experiment.workload;
    // The effective configuration must find them from wherever it lies.
    if let Some(trace) = &mut workload.trace {
        *trace = trace.canonicalize().with_context(|| format!("the trace cannot be read: {}", trace.display()))?;
    }
    if let Some(jobs) = workload.generate.as_mut().filter(|jobs| jobs.exists()) {
        *jobs = jobs.canonicalize().with_context(|| format!("the job file cannot be read: {}", jobs.display()))?;
    }
    Ok(())
}

/// Where an experiment's jobs lie: the folder of a trace, or a job file.
pub(super) fn path_of_jobs(experiment: &Experiment) -> Result<&Path, RunError> {
    experiment.workload.source().ok_or(RunError::NoTrace)
}

/// How much of a recorded job is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// What a replay needs.
    Causal,
    /// All: a simulated trace has the tables of the recorded one.
    All,
}

/// Reads the jobs of an experiment. Of a job that is grown all tables are read.
pub(super) fn jobs_of(experiment: &Experiment, tables: Tables, bars: &Bars) -> Result<Jobs, Error> {
    let job = experiment.workload.job.as_deref();
    if let Some(file) = &experiment.workload.generate {
        return Ok(Jobs::Generated(Box::new(GeneratedJobs::new(read_jobs(file, &[])?, Vec::new(), job)?)));
    }
    let folder = path_of_jobs(experiment)?;
    let spinner = bars.spinner(&format!("reading {}", folder.display()));
    let trace = match (tables, &experiment.workload.grow) {
        (Tables::Causal, None) => read_causal_trace(folder)?,
        _ => read_trace(folder)?,
    };
    spinner.finish_and_clear();
    let Some(growth) = &experiment.workload.grow else { return Ok(Jobs::Recorded(Box::new(trace))) };
    // `workload.job` is the recorded one; the grown file has one job only.
    let learn = Learn { job, sharing: experiment.core_sharing(), reduce_heap: None };
    let (file, notes) =
        grown_job(&folder.display().to_string(), &trace, learn, &[], growth).context("workload.grow")?;
    Ok(Jobs::Generated(Box::new(GeneratedJobs::new(file, notes, None)?)))
}

/// What jobs are known by: experiments of one key run the same jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobsKey {
    path: PathBuf,
    growth: Option<String>,
    /// Of jobs from parameters: the one whose results are looked at.
    job: Option<String>,
}

/// The key of an experiment's jobs.
pub(super) fn key_of_jobs(experiment: &Experiment) -> Result<JobsKey, RunError> {
    let workload = &experiment.workload;
    let growth = workload.grow.as_ref().map(|growth| format!("{growth:?} {:?}", experiment.core_sharing()));
    let is_generated = workload.generate.is_some() || growth.is_some();
    let job = workload.job.clone().filter(|_| is_generated);
    Ok(JobsKey { path: path_of_jobs(experiment)?.to_owned(), growth, job })
}

/// Reads the jobs of some experiments, each once.
pub(super) fn read_all<'e>(
    experiments: impl IntoIterator<Item = &'e Experiment>,
    bars: &Bars,
) -> Result<BTreeMap<JobsKey, Jobs>, Error> {
    let mut jobs = BTreeMap::new();
    for experiment in experiments {
        if let Entry::Vacant(missing) = jobs.entry(key_of_jobs(experiment)?) {
            missing.insert(jobs_of(experiment, Tables::Causal, bars)?);
        }
    }
    Ok(jobs)
}
