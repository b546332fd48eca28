//! The jobs of experiments: recorded ones, and such from parameters.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Error};
use replay::experiment::Experiment;
use replay::generate::read_jobs;
use replay::run::{GeneratedJobs, Jobs, RunError, read_trace};

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

/// Reads the jobs of an experiment.
pub(super) fn jobs_of(experiment: &Experiment, bars: &Bars) -> Result<Jobs, Error> {
    if let Some(file) = &experiment.workload.generate {
        return Ok(Jobs::Generated(Box::new(GeneratedJobs::new(read_jobs(file, &[])?)?)));
    }
    let folder = path_of_jobs(experiment)?;
    let spinner = bars.spinner(&format!("reading {}", folder.display()));
    let trace = read_trace(folder)?;
    spinner.finish_and_clear();
    Ok(Jobs::Recorded(Box::new(trace)))
}

/// Reads the jobs of some experiments, each once.
pub(super) fn read_all<'e>(
    experiments: impl IntoIterator<Item = &'e Experiment>,
    bars: &Bars,
) -> Result<BTreeMap<&'e Path, Jobs>, Error> {
    let mut jobs: BTreeMap<&Path, Jobs> = BTreeMap::new();
    for experiment in experiments {
        let path = path_of_jobs(experiment)?;
        if !jobs.contains_key(path) {
            jobs.insert(path, jobs_of(experiment, bars)?);
        }
    }
    Ok(jobs)
}
