//! A job of a job file.

use std::collections::{BTreeMap, BTreeSet};

use netsim::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

use crate::error::JobError;
use crate::limits::{check_delay, check_rate};
use crate::samples::{MapSample, ReduceSample};

/// A job: a `[[job]]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Job {
    /// Name, by which others refer to it. Default: `job-1`, ...
    pub name: String,
    /// What it reads, as one file. Default: `1GiB`, unless it reads what another job wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Bytes>,
    /// The job whose output it reads, and on whose end it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_of: Option<String>,
    /// When it is submitted, or how long after the job whose output it reads. Default: `0ps`.
    pub submit: DurationPs,
    /// Its queue. Default: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// `mapreduce.job.reduces`. Default: 1.
    pub reduces: u32,
    /// Map output by input, before compression. Default: 1.
    pub map_output: f64,
    /// What records take of the sort buffer, before a combiner, by input. Default: `map_output`, of recorded maps their `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_use: Option<f64>,
    /// Output by input of the reduces, before compression. Default: 1.
    pub reduce_output: f64,
    /// Input that a map computes on with one core. Default: `50MB/s`.
    pub map_rate: Rate,
    /// Input that a reduce computes on with one core. Default: `50MB/s`.
    pub reduce_rate: Rate,
    /// Map output that a core sorts for a spill. Default: `unlimited`.
    pub sort_rate: Rate,
    /// Segments that a core merges, of maps and of reduces. Default: `unlimited`.
    pub merge_rate: Rate,
    /// Standard deviation of the tasks' speeds (log-normal, mean 1). Default: 0.
    pub speed_deviation: f64,
    /// Exponent of the reduces' shares (Zipf): the nth largest has a share as 1 / n^skew. Default: 0, all alike.
    pub skew: f64,
    /// Compressed by raw bytes of map output, where `mapreduce.map.output.compress` is set. Default: 0.5.
    pub compressed: f64,
    /// Copies of its output. Default: `dfs.replication`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_replication: Option<u32>,
    /// Copies of its input that its splits name (TeraSort names one of several). Default: `dfs.replication`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_replication: Option<u32>,
    /// Whether its maps ask for nodes that have their data; where splits name no host (`DistCp`), they ask for any. Default: true.
    pub locality: bool,
    /// Share of the nodes on which its input was written. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_share_of_nodes: Option<f64>,
    /// Workers of the cluster on which `[[job.map]]` were recorded. Default: `cluster.nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_nodes: Option<u32>,
    /// Recorded maps: each map is like one of them, whatever `map_rate`, `sort_rate`, `map_output`, `dfs.blocksize` and the
    /// cluster's starts are. Default: none.
    #[serde(rename = "map", skip_serializing_if = "Vec::is_empty")]
    pub map_samples: Vec<MapSample>,
    /// What a NodeManager takes for a fetch before it sends, by number of the fetch (its first, its second, ...), of each recorded
    /// NodeManager; further fetches take as long as the last. Default: nothing.
    #[serde(rename = "fetch", skip_serializing_if = "Vec::is_empty")]
    pub fetch_samples: Vec<Vec<DurationPs>>,
    /// Recorded reduces: each reduce is like one of them, whatever `reduce_rate`, `merge_rate`, `reduce_output`, `skew` and the
    /// cluster's starts are. Default: none.
    #[serde(rename = "reduce", skip_serializing_if = "Vec::is_empty")]
    pub reduce_samples: Vec<ReduceSample>,
}

impl Job {
    /// How many maps read `bytes` of input, where the job has samples.
    pub(crate) fn expected_maps(&self, bytes: u64) -> usize {
        let rounds = usize::try_from(bytes.div_ceil(self.round_bytes().max(1))).unwrap_or(usize::MAX);
        rounds.saturating_mul(self.map_samples.len())
    }

    /// Input of all samples.
    pub(crate) fn round_bytes(&self) -> u64 {
        self.map_samples.iter().map(|sample| sample.input.0).fold(0, u64::saturating_add)
    }

    /// Bytes that a map reads: a block, or what a mean sample read.
    pub(crate) fn map_bytes(&self, block_bytes: u64) -> f64 {
        match self.map_samples.len() {
            0 => block_bytes as f64,
            samples => self.round_bytes() as f64 / samples as f64,
        }
    }

    /// By map, its sample and the bytes that it reads: those of the sample, until all of `bytes` are read.
    pub(crate) fn input_sizes(&self, bytes: u64, dealt: &[u32]) -> Vec<(u32, u64)> {
        let mut left = bytes;
        let mut sizes = Vec::new();
        for sample in dealt {
            if left == 0 {
                break;
            }
            let size = self.map_samples[*sample as usize].input.0.min(left);
            sizes.push((*sample, size));
            left -= size;
        }
        sizes
    }
}

impl Default for Job {
    fn default() -> Self {
        Self {
            name: String::new(),
            input: None,
            input_of: None,
            submit: DurationPs::ZERO,
            queue: None,
            reduces: 1,
            map_output: 1.0,
            buffer_use: None,
            reduce_output: 1.0,
            map_rate: Rate::from_bps(400_000_000),
            reduce_rate: Rate::from_bps(400_000_000),
            sort_rate: Rate::UNLIMITED,
            merge_rate: Rate::UNLIMITED,
            speed_deviation: 0.0,
            skew: 0.0,
            compressed: 0.5,
            output_replication: None,
            input_replication: None,
            locality: true,
            input_share_of_nodes: None,
            recorded_nodes: None,
            fetch_samples: Vec::new(),
            map_samples: Vec::new(),
            reduce_samples: Vec::new(),
        }
    }
}

impl Job {
    /// Checks it; the jobs `known` stand before it in the file, whose cluster has so many nodes.
    pub(crate) fn check(
        &self,
        known: &BTreeSet<&str>,
        queues: &BTreeMap<String, f64>,
        nodes: u32,
    ) -> Result<(), JobError> {
        let key = |name: &str| format!("job.{name} of {}", self.name);
        if self.input.is_some_and(|input| input.0 == 0) {
            return Err(JobError::value(key("input"), "0B", "a job reads at least a byte"));
        }
        match (&self.input, &self.input_of) {
            (Some(_), Some(_)) => {
                let reason = "a job reads a file of its own (input), or what another one wrote (input_of)";
                return Err(JobError::value(key("input"), "both", reason));
            }
            (None, Some(other)) if !known.contains(other.as_str()) => {
                return Err(JobError::value(key("input_of"), other, "no job before it has this name"));
            }
            _ => {}
        }
        if let Some(queue) = self.queue.as_ref().filter(|queue| !queues.contains_key(*queue)) {
            let known = queues.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(JobError::value(key("queue"), queue, format!("[queues] has: {known}")));
        }
        for (name, value, most) in [
            ("map_output", self.map_output, 1e3),
            ("buffer_use", self.buffer_use.unwrap_or(0.0), 1e3),
            ("reduce_output", self.reduce_output, 1e3),
            ("speed_deviation", self.speed_deviation, 2.0),
            ("skew", self.skew, 10.0),
            ("compressed", self.compressed, 1.0),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(JobError::value(key(name), value, format!("between 0 and {most}")));
            }
        }
        for (name, rate) in [
            ("map_rate", self.map_rate),
            ("reduce_rate", self.reduce_rate),
            ("sort_rate", self.sort_rate),
            ("merge_rate", self.merge_rate),
        ] {
            check_rate(&key(name), rate)?;
        }
        if self.output_replication == Some(0) {
            return Err(JobError::value(key("output_replication"), 0, "at least 1"));
        }
        if self.input_replication == Some(0) || self.recorded_nodes == Some(0) {
            let name = if self.recorded_nodes == Some(0) { "recorded_nodes" } else { "input_replication" };
            return Err(JobError::value(key(name), 0, "at least 1"));
        }
        if let Some(share) = self.input_share_of_nodes
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(JobError::value(key("input_share_of_nodes"), share, "above 0, at most 1"));
        }
        self.check_samples(nodes)?;
        check_delay(&key("submit"), self.submit)
    }

    fn check_samples(&self, nodes: u32) -> Result<(), JobError> {
        let nodes = self.recorded_nodes.unwrap_or(nodes);
        for (number, services) in self.fetch_samples.iter().enumerate() {
            let key = format!("job.fetch[{number}] of {}", self.name);
            if services.is_empty() {
                return Err(JobError::value(key, "[]", "at least one time"));
            }
            services.iter().try_for_each(|service| check_delay(&key, *service))?;
        }
        for (number, sample) in self.map_samples.iter().enumerate() {
            let key = format!("job.map[{number}] of {}", self.name);
            sample.check(&key, nodes)?;
            check_rate(&format!("{key}.rate"), sample.rate)?;
            check_rate(&format!("{key}.sort_rate"), sample.sort_rate)?;
            check_delay(&format!("{key}.container_start"), sample.container_start)?;
            check_delay(&format!("{key}.task_start"), sample.task_start)?;
        }
        for (number, sample) in self.reduce_samples.iter().enumerate() {
            let key = format!("job.reduce[{number}] of {}", self.name);
            sample.check(&key)?;
            check_rate(&format!("{key}.rate"), sample.rate)?;
            check_rate(&format!("{key}.merge_rate"), sample.merge_rate)?;
            check_delay(&format!("{key}.container_start"), sample.container_start)?;
            check_delay(&format!("{key}.task_start"), sample.task_start)?;
        }
        Ok(())
    }
}
