//! Why a trace could not be replayed.

use thiserror::Error;

/// Why a trace could not be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CausalError {
    /// The trace has no job.
    #[error(
        "the trace has no job: its table `jobs` is empty; a capture needs the job history beside it (job/*.jhist) when it is merged"
    )]
    NoJob,
    /// The trace has no such job.
    #[error("the trace has no job \"{wanted}\"; it has: {known}")]
    UnknownJob {
        /// The job that was asked for.
        wanted: String,
        /// The jobs that are there.
        known: String,
    },
    /// The trace has jobs, but no causal graph.
    #[error("the trace has no events: nothing can be replayed; was the capture empty?")]
    NoEvents,
    /// The end of the job is not in the graph.
    #[error("the trace has no event \"job.finish\" for {job}: without it nobody knows when the job is done")]
    NoFinish {
        /// The job.
        job: String,
    },
    /// A row refers to a row that is not there.
    #[error("table {table}, row {row}: {column} = {value}, but table {other} has {rows} rows")]
    Dangling {
        /// The table with the reference.
        table: &'static str,
        /// Its row, from 0.
        row: usize,
        /// The column.
        column: &'static str,
        /// The number in it.
        value: u32,
        /// The table that it refers to.
        other: &'static str,
        /// How many rows that one has.
        rows: usize,
    },
    /// A row makes no sense.
    #[error("table {table}, row {row}: {reason}")]
    Senseless {
        /// The table.
        table: &'static str,
        /// Its row, from 0.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A factor for processes or tasks that are not in the trace.
    #[error("cpu_factors: \"{wanted}\" is no kind of task and no role of this trace; known are: {known}")]
    UnknownKind {
        /// The kind that was given.
        wanted: String,
        /// What is there.
        known: String,
    },
    /// The replay came to a halt before the job was done.
    #[error("at {at} of the job's time nothing can happen any more, but the job is not done:\n{diagnosis}")]
    Halt {
        /// Simulated time since the job was submitted, for people.
        at: String,
        /// The chain of events that wait for each other, one a line.
        diagnosis: String,
    },
    /// Messages are under way for so long that the job has no end in sight.
    #[error("at {at} of the job's time it is not done, and {in_flight} of its messages are still under way: {why}")]
    Endless {
        /// Simulated time since the job was submitted, for people.
        at: String,
        /// Messages that were sent and have not arrived.
        in_flight: u64,
        /// What ended the simulation.
        why: &'static str,
    },
    /// The network has fewer hosts than the trace.
    #[error("the fabric has {fabric} hosts, the trace has {trace}: give the fabric room for all of them")]
    TooFewHosts {
        /// Hosts of the fabric.
        fabric: u32,
        /// Hosts of the trace.
        trace: usize,
    },
}
