//! From captures to a whole trace, its causal part included.

use std::collections::BTreeMap;
use std::mem;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, ScopedJoinHandle};

use trace::manifest::TraceManifest;
use trace::rows::{MessageRow, SpanRow, Trace};
use trace_tables::{TableError, begin_trace, write_manifest, write_message_iter, write_row_iter, write_rows};

use crate::build::{Options, merge_with};
use crate::causality::{self, Causal, CausalGraph, CausalityError, Findings, RowBatch, RowCounts};
use crate::compact::{Messages, Spans};
use crate::error::MergeError;
use crate::joined::{Joined, LimitRows, TaskEvents, ThreadStarts};
use crate::loss::{self, Loss};
use crate::merged::{HostClock, Merged};
use crate::progress::{Progress, Unit};

/// Batches of rows that may wait for whoever writes or checks them: those of a row group, which is packed as a whole.
const BATCHES_AHEAD: usize = 8;

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
    let Causal { events, dependencies, timers, tasks, jobs, findings } = causality::build(&merged.joined)?;
    let manifest = manifest(captures, &merged, &findings);
    let Merged { joined, packets, clocks, .. } = merged;
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
        timers,
        tasks,
        jobs,
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
    begin_trace(folder)?;
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
    let counts = write_causal(folder, &mut causal, progress)?;
    let manifest = manifest(captures, &merged, &causal.findings);
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
        ("timers", causal.timers.len()),
        ("tasks", causal.tasks.len()),
        ("jobs", causal.jobs.len()),
    ];
    let rows = rows.map(|(name, rows)| (name, rows as u64)).into_iter();
    let rows = rows.chain([("events", counts.events), ("dependencies", counts.dependencies)]);
    let rows = rows.map(|(name, rows)| (name.to_owned(), rows)).collect();
    Ok(WrittenTrace { manifest, rows, bytes_by_protocol, packets: merged.packets, clocks: merged.clocks.hosts })
}

/// Does two things at once.
fn both<A, B: Send>(here: impl FnOnce() -> A, beside: impl FnOnce() -> B + Send) -> (A, B) {
    thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        (here, joined_thread(beside))
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

/// Writes the tables of causes. Each row is made once, and checked and written beside those that follow on it.
fn write_causal(folder: &Path, causal: &mut CausalGraph, progress: &impl Progress) -> Result<RowCounts, BuildError> {
    let (to_nodes, nodes) = mpsc::sync_channel::<Arc<RowBatch>>(BATCHES_AHEAD);
    let (to_edges, edges) = mpsc::sync_channel::<Arc<RowBatch>>(BATCHES_AHEAD);
    let (to_check, checked) = mpsc::sync_channel::<Arc<RowBatch>>(BATCHES_AHEAD);
    // Each of these threads has memory to give back.
    let going_on = |_: &Arc<RowBatch>| progress.done(0);
    let write_edges = || {
        write_row_iter(folder, edges.into_iter().inspect(going_on).flat_map(RowBatch::dependencies))?;
        write_rows(folder, &causal.timers)?;
        write_rows(folder, &causal.tasks)?;
        write_rows(folder, &causal.jobs)
    };
    let (counts, nodes, edges, report) = thread::scope(|scope| {
        let nodes =
            scope.spawn(|| write_row_iter(folder, nodes.into_iter().inspect(going_on).flat_map(RowBatch::events)));
        let edges = scope.spawn(write_edges);
        let report = scope.spawn(|| causality::check_batches(checked.into_iter().inspect(going_on)));
        let counts = causal.make_rows(|batch| {
            let batch = Arc::new(batch);
            going_on(&batch);
            // Whoever fails takes no more, and says why.
            [&to_nodes, &to_edges, &to_check].iter().all(|to| to.send(Arc::clone(&batch)).is_ok())
        });
        drop((to_nodes, to_edges, to_check));
        (counts, joined_thread(nodes), joined_thread(edges), joined_thread(report))
    });
    nodes.and(edges)?;
    let counts = counts?;
    causal.findings.report = report.map_err(CausalityError::Spill)?;
    causal.findings.cyclic = counts.cyclic;
    Ok(counts)
}

fn joined_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn manifest(captures: &[PathBuf], merged: &Merged, findings: &Findings) -> TraceManifest {
    let joined = &merged.joined;
    let mut notes = merged.notes();
    notes.extend(joined.histories.losses.iter().map(ToString::to_string));
    notes.extend(findings.notes());
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
