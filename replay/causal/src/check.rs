//! Checks of a trace before it is replayed: whatever a row refers to must be there.

use std::collections::BTreeSet;

use trace::rows::{EventKind, TaskKind, Trace};

use super::error::CausalError;
use super::options::Options;

/// Longer than anybody thinks, and than a job takes: 30 days in nanoseconds.
pub(crate) const MAX_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// More bytes than any single send has: 1 TiB.
const MAX_BYTES: u64 = 1 << 40;

/// Refuses factors for what is not in the trace.
pub(crate) fn factors(trace: &Trace, options: &Options) -> Result<(), CausalError> {
    if options.cpu.by_kind.is_empty() {
        return Ok(());
    }
    let mut known: BTreeSet<&str> = trace.processes.iter().map(|process| process.role.as_str()).collect();
    known.extend(TaskKind::ALL.iter().map(|kind| kind.as_str()));
    for wanted in options.cpu.by_kind.keys() {
        if !known.contains(wanted.as_str()) {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(CausalError::UnknownKind { wanted: wanted.clone(), known });
        }
    }
    Ok(())
}

/// Refuses rows that refer to rows that are not there, and sends that go nowhere.
pub(crate) fn references(trace: &Trace) -> Result<(), CausalError> {
    let check = |table, row, column, value: u32, other, rows: usize| {
        if (value as usize) < rows {
            Ok(())
        } else {
            Err(CausalError::Dangling { table, row, column, value, other, rows })
        }
    };
    let senseless = |table, row, reason: String| Err(CausalError::Senseless { table, row, reason });
    let (events, hosts) = (trace.events.len(), trace.hosts.len());
    let (connections, processes) = (trace.connections.len(), trace.processes.len());
    for (row, connection) in trace.connections.iter().enumerate() {
        check("connections", row, "client_host", connection.client_host.0, "hosts", hosts)?;
        check("connections", row, "server_host", connection.server_host.0, "hosts", hosts)?;
        for process in [connection.client_process, connection.server_process].into_iter().flatten() {
            check("connections", row, "process", process.0, "processes", processes)?;
        }
    }
    for (row, process) in trace.processes.iter().enumerate() {
        check("processes", row, "host", process.host.0, "hosts", hosts)?;
    }
    for (row, task) in trace.tasks.iter().enumerate() {
        check("tasks", row, "job", task.job.0, "jobs", trace.jobs.len())?;
        if let Some(host) = task.host {
            check("tasks", row, "host", host.0, "hosts", hosts)?;
        }
    }
    for (row, event) in trace.events.iter().enumerate() {
        if event.event.index() != row {
            return senseless("events", row, format!("event = {}, but it is the number of the row", event.event));
        }
        if let Some(connection) = event.connection {
            check("events", row, "connection", connection.0, "connections", connections)?;
        } else if event.kind == EventKind::Send {
            return senseless("events", row, "a send without a connection".to_owned());
        }
        if event.recorded_delivered_ns < event.recorded_ns {
            let (left, arrived) = (event.recorded_ns, event.recorded_delivered_ns);
            return senseless("events", row, format!("arrived at {arrived} ns, before it left at {left} ns"));
        }
        if event.delay_ns > MAX_NS {
            return senseless("events", row, format!("delay_ns = {}; at most 30 days are possible", event.delay_ns));
        }
        if event.bytes > MAX_BYTES {
            return senseless("events", row, format!("bytes = {}; at most {MAX_BYTES} are possible", event.bytes));
        }
        if let Some(process) = event.process {
            check("events", row, "process", process.0, "processes", processes)?;
        }
        if let Some(message) = event.message {
            check("events", row, "message", message.0, "messages", trace.messages.len())?;
        }
        if let Some(task) = event.task {
            check("events", row, "task", task.0, "tasks", trace.tasks.len())?;
        }
        if let Some(timer) = event.timer {
            check("events", row, "timer", timer.0, "timers", trace.timers.len())?;
        }
    }
    for (row, timer) in trace.timers.iter().enumerate() {
        check("timers", row, "connection", timer.connection.0, "connections", connections)?;
    }
    for (row, dependency) in trace.dependencies.iter().enumerate() {
        check("dependencies", row, "event", dependency.event.0, "events", events)?;
        check("dependencies", row, "on_event", dependency.on_event.0, "events", events)?;
        if let Some(timer) = dependency.timer {
            check("dependencies", row, "timer", timer.0, "timers", trace.timers.len())?;
            if dependency.carrier.is_none() {
                return senseless("dependencies", row, "a timer without a carrier".to_owned());
            }
        }
    }
    Ok(())
}
