//! Jobs and tasks, as Hadoop's own history tells them.

use super::column::{named, row};
use crate::ids::{HostId, JobId, ProcessId, TaskId};

named! {
    /// What a task attempt does.
    TaskKind {
        /// Map.
        Map = "map",
        /// Reduce.
        Reduce = "reduce",
        /// Set-up, clean-up.
        Other = "other",
    }
}

row! {
    /// A task attempt. Times are those of the job history, moved to the reference clock.
    TaskRow in "tasks" {
        /// Row number.
        task: TaskId,
        /// Its job.
        job: JobId,
        /// "attempt_..."
        attempt: String,
        /// What it does.
        kind: TaskKind,
        /// Where it ran.
        host: Option<HostId>,
        /// Its JVM, if known.
        process: Option<ProcessId>,
        /// Start.
        start_ns: u64,
        /// Reduce: all map outputs are there.
        shuffle_end_ns: Option<u64>,
        /// Reduce: they are merged.
        sort_end_ns: Option<u64>,
        /// End.
        finish_ns: u64,
        /// Whether it succeeded.
        succeeded: bool,
    }
}

row! {
    /// A job.
    JobRow in "jobs" {
        /// Row number.
        job: JobId,
        /// "job_..."
        id: String,
        /// Name as submitted.
        name: String,
        /// Submitted.
        submit_ns: u64,
        /// Launched.
        launch_ns: u64,
        /// Finished.
        finish_ns: u64,
        /// Completed maps.
        maps: u32,
        /// Completed reduces.
        reduces: u32,
        /// Counter REDUCE_SHUFFLE_BYTES; null = not in the history.
        shuffle_bytes: Option<u64>,
        /// Counter HDFS_BYTES_READ.
        hdfs_bytes_read: Option<u64>,
        /// Counter HDFS_BYTES_WRITTEN.
        hdfs_bytes_written: Option<u64>,
        /// Hosts that the split of a map names as near to its data, median over the maps; 0 = maps ask for no host; null = the history tells of no split.
        split_hosts: Option<u32>,
        /// Different hosts that the splits name together.
        input_hosts: Option<u32>,
        /// Whether it succeeded.
        succeeded: bool,
    }
}
