//! From captures to a whole trace, its causal part included.

use std::path::PathBuf;

use trace::manifest::TraceManifest;
use trace::rows::Trace;

use crate::build::{Options, merge_with};
use crate::causality::{self, CausalityError};
use crate::error::MergeError;
use crate::loss::{self, Loss};
use crate::merged::HostClock;
use crate::progress::{Progress, Unit};

/// Why a trace could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The captures cannot be read or joined.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The causes cannot be told.
    #[error(transparent)]
    Causality(#[from] CausalityError),
}

/// A trace, and figures about its making.
#[derive(Clone, Debug, Default)]
pub struct BuiltTrace {
    /// The trace.
    pub trace: Trace,
    /// Packets read.
    pub packets: u64,
    /// How clocks were aligned.
    pub clocks: Vec<HostClock>,
}

/// Makes a trace of captures.
///
/// # Errors
/// If they cannot be read, are of different clusters, or their job history cannot be read.
pub fn trace_of(captures: &[PathBuf], progress: &impl Progress) -> Result<BuiltTrace, BuildError> {
    trace_with(captures, &Options::default(), progress)
}

/// As [`trace_of`], with options.
///
/// # Errors
/// As [`trace_of`], or if packets fit neither into memory nor on the disk.
pub fn trace_with(captures: &[PathBuf], options: &Options, progress: &impl Progress) -> Result<BuiltTrace, BuildError> {
    let merged = merge_with(captures, options, progress)?;
    progress.step("finding causes", 1, Unit::Nothing);
    let causal = causality::build(&merged.joined)?;
    let (losses, mut notes) = (merged.losses(), merged.notes());
    let joined = merged.joined;
    let of_histories = joined.histories.losses.iter();
    notes.extend(of_histories.map(ToString::to_string));
    notes.extend(causal.findings.notes());
    let manifest = TraceManifest {
        version: 1,
        program: format!("merger {}", env!("CARGO_PKG_VERSION")),
        captures: captures.iter().map(|path| path.display().to_string()).collect(),
        start_ns: joined.window_ns.0,
        end_ns: joined.window_ns.1,
        reference_host: joined.hosts.first().map(|host| host.name.clone()).unwrap_or_default(),
        losses: loss::sum(losses).iter().map(Loss::written).collect(),
        notes,
        network: Some(merged.network),
    };
    let trace = Trace {
        manifest,
        hosts: joined.hosts,
        processes: joined.processes,
        connections: joined.connections,
        limits: joined.limits,
        messages: joined.messages,
        spans: joined.spans,
        steps: joined.steps,
        events: causal.events,
        dependencies: causal.dependencies,
        timers: causal.timers,
        tasks: causal.tasks,
        jobs: causal.jobs,
    };
    Ok(BuiltTrace { trace, packets: merged.packets, clocks: merged.clocks.hosts })
}
