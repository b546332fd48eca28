//! The job file: a cluster, Hadoop's properties, and jobs.

use std::collections::{BTreeMap, BTreeSet};

use netsim::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::error::JobError;
use crate::hadoop::Hadoop;
use crate::job::Job;
use crate::limits::check_delay;
use crate::presets::expand;
use crate::samples::CallSample;
use crate::sizes::CALLS;

/// More tasks of all jobs together cannot be: ids have 32 bits, and a task has many events.
const MAX_TASKS: u64 = 10_000_000;
/// Steps that a run may have where the file does not say.
const DEFAULT_STEPS: u32 = 20_000_000;
/// What `max_steps` may be at most: steps are numbered by 32 bits.
const MAX_STEPS: u32 = 1_000_000_000;
/// A job file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// For whatever is drawn: places of blocks, phases of heartbeats, speeds of tasks. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Steps that a run may have: all that happens in the simulated world, heartbeats among it. One takes some 900 bytes of memory until it is
    /// written. Default: 20,000,000.
    #[serde(default = "default_steps", skip_serializing_if = "is_default_steps")]
    pub max_steps: u32,
    /// The machines.
    #[serde(default)]
    pub cluster: Cluster,
    /// Hadoop's properties.
    #[serde(default)]
    pub hadoop: Hadoop,
    /// Shares of the cluster by name of a queue. Default: one queue with everything.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, f64>,
    /// Sizes and times of calls, where they differ from the golden terasort's, by Hadoop's name of the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, CallSample>,
    /// The jobs.
    #[serde(rename = "job")]
    pub jobs: Vec<Job>,
}

const fn one() -> u64 {
    1
}

const fn default_steps() -> u32 {
    DEFAULT_STEPS
}

fn is_default_steps(steps: &u32) -> bool {
    *steps == DEFAULT_STEPS
}

impl JobFile {
    /// Reads a job file's text.
    ///
    /// # Errors
    /// If it is no TOML, or a key or a value is wrong.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        Self::of_table(text.parse().map_err(|error: toml::de::Error| JobError::Toml(error.to_string()))?)
    }

    /// The job file that a table says, with its presets.
    ///
    /// # Errors
    /// If a key or a value is wrong.
    pub fn of_table(mut table: toml::Table) -> Result<Self, JobError> {
        expand(&mut table)?;
        let mut file: Self =
            table.try_into().map_err(|error: toml::de::Error| JobError::Toml(error.message().to_owned()))?;
        for (number, job) in (1..).zip(&mut file.jobs) {
            if job.name.is_empty() {
                job.name = format!("job-{number}");
            }
            if job.input.is_none() && job.input_of.is_none() {
                job.input = Some(Bytes(1 << 30));
            }
        }
        file.check()?;
        Ok(file)
    }

    /// The file with every key, as TOML.
    ///
    /// # Errors
    /// If a value cannot be written.
    pub fn to_toml(&self) -> Result<String, JobError> {
        toml::to_string_pretty(self).map_err(|error| JobError::Toml(error.to_string()))
    }

    /// Copies of a job's output.
    #[must_use]
    pub fn replication_of(&self, job: &Job) -> u32 {
        job.output_replication.unwrap_or(self.hadoop.replication).min(self.cluster.nodes)
    }

    fn check(&self) -> Result<(), JobError> {
        self.cluster.check()?;
        if self.jobs.is_empty() {
            return Err(JobError::value("job", "[]", "a file needs at least one [[job]]"));
        }
        self.check_calls()?;
        let hadoop = &self.hadoop;
        let task_mb = hadoop.container_mb(hadoop.map_memory_mb).max(hadoop.container_mb(hadoop.reduce_memory_mb));
        if self.cluster.nodes == 1 && hadoop.container_mb(hadoop.am_memory_mb) + task_mb > hadoop.node_memory_mb {
            let reason = format!("a single node has no room for a task ({task_mb} MB) beside the master");
            let key = "hadoop.yarn.nodemanager.resource.memory-mb";
            return Err(JobError::value(key, hadoop.node_memory_mb, reason));
        }
        let shares: f64 = self.queues.values().sum();
        if let Some((name, share)) = self.queues.iter().find(|(_, share)| !(**share > 0.0 && share.is_finite())) {
            return Err(JobError::value(format!("queues.{name}"), share, "a share is above 0"));
        }
        if shares > 1.0 + 1e-9 {
            return Err(JobError::value("queues", shares, "the shares of all queues together are at most 1"));
        }
        let mut known = BTreeSet::new();
        for job in &self.jobs {
            job.check(&known, &self.queues, self.cluster.nodes)?;
            if !known.insert(job.name.as_str()) {
                return Err(JobError::value("job.name", &job.name, "two jobs have this name"));
            }
        }
        self.check_size()
    }

    /// Whether so many tasks and steps can be.
    fn check_size(&self) -> Result<(), JobError> {
        let tasks: f64 = self.expected_jobs().iter().map(|job| job.maps + job.reduces).sum();
        // A long chain of jobs that write more than they read may end in no number at all.
        let tasks = tasks.min(u64::MAX as f64) as u64;
        if !(1..=MAX_STEPS).contains(&self.max_steps) {
            return Err(JobError::value("max_steps", self.max_steps, format!("between 1 and {MAX_STEPS}")));
        }
        let (steps, most) = (self.expected_steps(), self.max_steps);
        if steps > f64::from(most) && tasks <= MAX_TASKS {
            let reason = format!(
                "it makes about {steps:.1e} steps, and max_steps allows {most}: give larger pieces (cluster.piece), less input, \
                 fewer maps or reduces, or a larger max_steps (a step takes some 900 bytes of memory until it is written)"
            );
            // What the file says is to blame, not what it leaves as it is.
            let is_default = is_default_steps(&most);
            let piece = JobError::value("cluster.piece", self.cluster.piece, &reason);
            return Err(if is_default { piece } else { JobError::value("max_steps", most, reason) });
        }
        if tasks > MAX_TASKS {
            return Err(JobError::value(
                "job.input",
                tasks,
                format!("so many tasks; at most {MAX_TASKS} are possible"),
            ));
        }
        Ok(())
    }

    /// The calls of `[calls]`.
    fn check_calls(&self) -> Result<(), JobError> {
        for (name, call) in &self.calls {
            let key = format!("calls.{name}");
            if !CALLS.iter().any(|known| known.name == name) {
                let known = CALLS.map(|call| call.name).join(", ");
                return Err(JobError::value(key, name, format!("the model has these calls: {known}")));
            }
            for (part, bytes) in [("request", call.request), ("response", call.response)] {
                if !(1..=1 << 30).contains(&bytes.0) {
                    return Err(JobError::value(format!("{key}.{part}"), bytes, "between 1B and 1GiB"));
                }
            }
            check_delay(&format!("{key}.service"), call.service)?;
        }
        Ok(())
    }
}
