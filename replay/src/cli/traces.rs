//! The traces of experiments.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Error};
use replay::experiment::Experiment;
use replay::run::{RunError, read_trace};
use trace::rows::Trace;

use super::common::Common;
use super::progress::Bars;

/// Has an experiment replay the trace of the command line, where one is given.
pub(super) fn use_trace(experiment: &mut Experiment, common: &Common) -> Result<(), Error> {
    if let Some(trace) = &common.trace {
        experiment.workload.trace = Some(trace.clone());
    }
    // The effective configuration must find the trace from wherever it lies.
    if let Some(trace) = &mut experiment.workload.trace {
        *trace = trace.canonicalize().with_context(|| format!("the trace cannot be read: {}", trace.display()))?;
    }
    Ok(())
}

/// The folder of an experiment's trace.
pub(super) fn trace_of(experiment: &Experiment) -> Result<&Path, RunError> {
    experiment.workload.trace.as_deref().ok_or(RunError::NoTrace)
}

/// Reads the traces of some experiments, each once.
pub(super) fn read_traces<'e>(
    experiments: impl IntoIterator<Item = &'e Experiment>,
    bars: &Bars,
) -> Result<BTreeMap<&'e Path, Trace>, Error> {
    let mut traces: BTreeMap<&Path, Trace> = BTreeMap::new();
    for experiment in experiments {
        let folder = trace_of(experiment)?;
        if !traces.contains_key(folder) {
            let spinner = bars.spinner(&format!("reading {}", folder.display()));
            traces.insert(folder, read_trace(folder)?);
            spinner.finish_and_clear();
        }
    }
    Ok(traces)
}
