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
        "max_steps = {most}: so many steps were taken after {at} s of simulated time, heartbeats among them; {progress}. Where jobs \
         go on, a larger max_steps in the job file lets them end (a step takes some 900 bytes of memory until it is written), \
         and rarer heartbeats take fewer; where they do not, is the network, a disk or a CPU too slow for this job?"
    )]
    TooLong {
        /// Steps that are allowed.
        most: u32,
        /// When, seconds.
        at: String,
        /// How far the jobs have come, in words.
        progress: String,
        /// Whether a task was done in the last half of the time.
        goes_on: bool,
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
