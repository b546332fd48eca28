//! From captures to a whole trace, its causal part included.

use std::collections::BTreeMap;
use std::fs;
use std::mem;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use trace::manifest::TraceManifest;
use trace::rows::{MessageRow, SpanRow, Trace};
use trace_tables::{TableError, write_manifest, write_message_iter, write_row_iter, write_rows};

use crate::build::{Options, merge_with};
use crate::causality::{self, CausalRows, CausalityError};
use crate::compact::{Messages, Spans};
use crate::error::MergeError;
use crate::joined::{Joined, LimitRows, TaskEvents, ThreadStarts};
use crate::loss::{self, Loss};
use crate::merged::{HostClock, Merged};
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
    /// The tables cannot be written.
    #[error(transparent)]
    Tables(#[from] TableError),
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

/// What stands in a trace that was written, and figures about its making.
#[derive(Clone, Debug, Default)]
pub struct WrittenTrace {
    /// Its manifest.
    pub manifest: TraceManifest,
    /// Rows of each table but that of hosts.
    pub rows: BTreeMap<String, u64>,
    /// Payload bytes by protocol.
    pub bytes_by_protocol: BTreeMap<String, u64>,
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
    let mut causal = causality::find(&merged.joined, &merged.joined.streams, || {})?;
    causal.findings.report = causal.verify()?;
    let manifest = manifest(captures, &merged, &causal);
    let Merged { joined, packets, clocks, .. } = merged;
    let (events, dependencies) = (causal.events().collect(), causal.dependencies().collect());
    causal.check_read()?;
    let connections = joined.connections.rows().collect();
    let messages = joined.messages.iter().map(MessageRow::from).collect();
    let spans = joined.spans.iter().map(SpanRow::from).collect();
    joined.check_read().map_err(CausalityError::Spill)?;
    let trace = Trace {
        manifest,
        hosts: joined.hosts,
        processes: joined.processes,
        connections,
        limits: joined.limits.iter().collect(),
        messages,
        spans,
        steps: joined.steps,
        events,
        dependencies,
        timers: causal.timers,
        tasks: causal.tasks,
        jobs: causal.jobs,
    };
    Ok(BuiltTrace { trace, packets, clocks: clocks.hosts })
}

/// As [`trace_with`], and writes the trace to a folder as [`trace_tables::write_trace`] does, without ever having all of its rows.
///
/// # Errors
/// As [`trace_with`], or if something cannot be written.
pub fn write_with(
    captures: &[PathBuf],
    options: &Options,
    folder: &Path,
    progress: &impl Progress,
) -> Result<WrittenTrace, BuildError> {
    let mut merged = merge_with(captures, options, progress)?;
    progress.step("cutting messages into events", 1, Unit::Nothing);
    fs::create_dir_all(folder).map_err(|source| TableError::Io { path: folder.into(), source })?;
    // What causes are found of stands in tables too, which are written meanwhile.
    let streams = mem::take(&mut merged.joined.streams);
    let joined = &merged.joined;
    let (begin, begins) = mpsc::channel::<()>();
    let find = || {
        causality::find(joined, streams, || {
            progress.step("finding causes", 1, Unit::Nothing);
            drop(begin);
        })
    };
    let write = move || {
        // Until streams are given up all threads are busy. Nothing is ever sent.
        let _ = begins.recv();
        write_joined(folder, joined)
    };
    let (causal, written) = both(find, write);
    let mut causal = causal?;
    written?;
    joined.check_read().map_err(CausalityError::Spill)?;
    let joined = &mut merged.joined;
    let lengths = [joined.limits.len(), joined.messages.len(), joined.spans.len(), joined.steps.len()];
    // Only to find causes, or written.
    (joined.jvm, joined.threads) = (TaskEvents::default(), ThreadStarts::default());
    (joined.messages, joined.spans) = (Messages::default(), Spans::default());
    (joined.limits, joined.steps) = (LimitRows::default(), Vec::new());
    progress.step("writing tables", 1, Unit::Nothing);
    let nodes = || write_row_iter(folder, causal.events());
    let edges = || {
        write_row_iter(folder, causal.dependencies())?;
        write_rows(folder, &causal.timers)?;
        write_rows(folder, &causal.tasks)?;
        write_rows(folder, &causal.jobs)
    };
    let ((nodes, edges), report) = both(|| both(nodes, edges), || causal.verify());
    nodes.and(edges)?;
    causal.check_read()?;
    causal.findings.report = report?;
    let manifest = manifest(captures, &merged, &causal);
    write_manifest(folder, &manifest)?;
    let joined = &merged.joined;
    let mut bytes_by_protocol: BTreeMap<String, u64> = BTreeMap::new();
    for connection in joined.connections.iter() {
        let name = if connection.protocol.is_empty() { "unknown" } else { connection.protocol };
        *bytes_by_protocol.entry(name.to_owned()).or_default() += connection.figures.bytes.iter().sum::<u64>();
    }
    joined.check_read().map_err(CausalityError::Spill)?;
    let [limits, messages, spans, steps] = lengths;
    let rows = [
        ("processes", joined.processes.len()),
        ("connections", joined.connections.len()),
        ("limits", limits),
        ("messages", messages),
        ("spans", spans),
        ("steps", steps),
        ("events", causal.events().len()),
        ("dependencies", causal.dependencies().len()),
        ("timers", causal.timers.len()),
        ("tasks", causal.tasks.len()),
        ("jobs", causal.jobs.len()),
    ];
    let rows = rows.map(|(name, rows)| (name.to_owned(), rows as u64)).into();
    Ok(WrittenTrace { manifest, rows, bytes_by_protocol, packets: merged.packets, clocks: merged.clocks.hosts })
}

/// Does two things at once.
fn both<A, B: Send>(here: impl FnOnce() -> A, beside: impl FnOnce() -> B + Send) -> (A, B) {
    thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        (here, beside.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn write_joined(folder: &Path, joined: &Joined) -> Result<(), TableError> {
    write_rows(folder, &joined.hosts)?;
    write_rows(folder, &joined.processes)?;
    write_row_iter(folder, joined.connections.rows())?;
    write_row_iter(folder, joined.limits.iter())?;
    let messages = joined.messages.iter().map(MessageRow::from);
    write_message_iter(folder, |connection| joined.connections.processes(connection), messages)?;
    write_row_iter(folder, joined.spans.iter().map(SpanRow::from))?;
    write_rows(folder, &joined.steps)
}

fn manifest(captures: &[PathBuf], merged: &Merged, causal: &CausalRows) -> TraceManifest {
    let joined = &merged.joined;
    let mut notes = merged.notes();
    notes.extend(joined.histories.losses.iter().map(ToString::to_string));
    notes.extend(causal.findings.notes());
    TraceManifest {
        version: 1,
        program: format!("merger {}", env!("CARGO_PKG_VERSION")),
        captures: captures.iter().map(|path| path.display().to_string()).collect(),
        start_ns: joined.window_ns.0,
        end_ns: joined.window_ns.1,
        reference_host: joined.hosts.first().map(|host| host.name.clone()).unwrap_or_default(),
        losses: loss::sum(merged.losses()).iter().map(Loss::written).collect(),
        notes,
        network: Some(merged.network.clone()),
    }
}
