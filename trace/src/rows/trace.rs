//! A whole trace in memory.

use super::{
    ConnectionRow, DependencyRow, EventRow, HostRow, JobRow, LimitRow, MessageRow, ProcessRow, SpanRow, StepRow,
    TaskRow, TimerRow,
};
use crate::manifest::TraceManifest;

/// A whole trace in memory: the rows of all its tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What it says of itself.
    pub manifest: TraceManifest,
    /// Hosts.
    pub hosts: Vec<HostRow>,
    /// Processes.
    pub processes: Vec<ProcessRow>,
    /// Connections.
    pub connections: Vec<ConnectionRow>,
    /// What held their senders up; none in traces of earlier versions.
    pub limits: Vec<LimitRow>,
    /// Messages.
    pub messages: Vec<MessageRow>,
    /// Processing spans.
    pub spans: Vec<SpanRow>,
    /// Production and consumption by bytes; none in traces of captures without a JVM's word of them.
    pub steps: Vec<StepRow>,
    /// Events of the causal graph.
    pub events: Vec<EventRow>,
    /// Its edges.
    pub dependencies: Vec<DependencyRow>,
    /// Timers.
    pub timers: Vec<TimerRow>,
    /// Task attempts.
    pub tasks: Vec<TaskRow>,
    /// Jobs.
    pub jobs: Vec<JobRow>,
}
