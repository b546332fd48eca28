//! What can be wrong with a job file, and with its execution.

use thiserror::Error;

/// Why a job cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// The file is no TOML of a job.
    #[error("{0}")]
    Toml(String),
    /// A value that makes no sense; the message begins with its key.
    #[error("{key} = {value}: {reason}")]
    Value {
        /// Key, with its table.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// The network has fewer hosts than the cluster.
    #[error("the fabric has {fabric} hosts, the cluster {cluster} (its workers and one master)")]
    TooFewHosts {
        /// Hosts of the fabric.
        fabric: u32,
        /// Hosts of the cluster.
        cluster: u32,
    },
    /// Nothing can happen any more.
    #[error("{jobs} of the jobs were not done when nothing could happen any more ({at} s)")]
    Halt {
        /// Jobs that were not done.
        jobs: usize,
        /// When, seconds.
        at: String,
    },
    /// More happens than memory has room for.
    #[error(
        "after {at} s of simulated time {steps} things have happened, heartbeats among them; no more are possible: is the \
         network, a disk or a CPU too slow for this job?"
    )]
    TooLong {
        /// Steps.
        steps: usize,
        /// When, seconds.
        at: String,
    },
    /// Longer than times reach.
    #[error("the jobs are not done after {at} of simulated time: too slow a network, disk or CPU")]
    Endless {
        /// When it was given up, with its unit.
        at: String,
    },
}

impl JobError {
    pub(crate) fn value(key: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> Self {
        Self::Value { key: key.into(), value: value.to_string(), reason: reason.into() }
    }
}
