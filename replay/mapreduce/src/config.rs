//! The job file: a cluster, Hadoop's properties, and jobs.

use std::collections::{BTreeMap, BTreeSet};

use netsim::units::{Bytes, DurationPs, Rate, UnitError};
use serde::{Deserialize, Serialize};

use crate::error::JobError;
use crate::hadoop::Hadoop;
use crate::samples::{CallSample, MapSample, ReduceSample, is_zero};
use crate::sizes::CALLS;

/// Profiles of jobs, by name.
const PROFILES: [(&str, &str); 5] = [
    ("terasort", include_str!("../profiles/terasort.toml")),
    ("wordcount", include_str!("../profiles/wordcount.toml")),
    ("protein-clustering", include_str!("../profiles/protein-clustering.toml")),
    ("scan", include_str!("../profiles/scan.toml")),
    ("join", include_str!("../profiles/join.toml")),
];
/// Presets of clusters, by name.
const CLUSTERS: [(&str, &str); 1] = [("hec", include_str!("../profiles/hec.toml"))];

/// More nodes, or more tasks of all jobs together, cannot be: ids have 32 bits, and a task has many events.
const MAX_NODES: u32 = 100_000;
const MAX_TASKS: u64 = 10_000_000;
/// Most jobs that `count` keys make, and how large they may be together, as bytes of TOML: a small file must not fill memory.
const MAX_JOBS: u64 = 10_000;
const MAX_REPEATED_BYTES: u64 = 64 << 20;
/// Steps that a run may have where the file does not say, and at most: they are numbered by 32 bits.
const MAX_STEPS: u32 = 20_000_000;
const MOST_STEPS: u32 = 1_000_000_000;
/// A node's disk or CPU is no slower than a byte a second.
const MIN_RATE_BPS: u64 = 8;
/// No delay of the file is longer: a day.
const MAX_DELAY_PS: u64 = 86_400_000_000_000_000;

/// A job file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// For whatever is drawn: places of blocks, phases of heartbeats, speeds of tasks. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Steps that a run may have: all that happens in the simulated world, heartbeats among it. One takes some 900 bytes of memory until it is
    /// written. Default: 20,000,000.
    #[serde(default = "max_steps", skip_serializing_if = "is_max_steps")]
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

const fn max_steps() -> u32 {
    MAX_STEPS
}

fn is_max_steps(steps: &u32) -> bool {
    *steps == MAX_STEPS
}

/// The machines: the `[cluster]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cluster {
    /// Workers, each with a NodeManager and a DataNode. One machine more has the masters. Default: 16.
    pub nodes: u32,
    /// Racks over which workers are dealt in turn; the masters stand in the first. Default: 1.
    pub racks: u32,
    /// Cores of a worker, or of all. Default: 8.
    pub cores: u32,
    /// Who competes for cores. Default: `none`.
    #[serde(skip_serializing_if = "CoreScope::is_none")]
    pub core_sharing: CoreScope,
    /// Disks of a worker, each with a queue of its own; the next free one serves. Default: 1.
    pub disks: u32,
    /// What a disk reads. Default: `80MB/s`; `unlimited`: all that is read is in memory.
    pub disk_read: Rate,
    /// What a disk writes. Default: `80MB/s`; `unlimited`: memory takes all that is written.
    pub disk_write: Rate,
    /// Before each piece that is read or written. Default: `0ps`.
    pub disk_seek: DurationPs,
    /// From a container's start to its task's first word. Default: `2s`.
    pub container_start: DurationPs,
    /// From then until the task, which knows by then what it is, reads or fetches. Default: `1s`.
    pub task_start: DurationPs,
    /// `container_start` of reduces. Default: that of maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_container_start: Option<DurationPs>,
    /// `task_start` of reduces. Default: that of maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce_task_start: Option<DurationPs>,
    /// From a master's container's start until it registers. Default: `3s`.
    pub master_start: DurationPs,
    /// How long the first task of a job waits on each node but its master's, until the job's files are there. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub localization: DurationPs,
    /// What a reduce takes before it writes its first output, however much that is. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_start: DurationPs,
    /// What it takes from the end of its output until it is done: its output is committed. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_commit: DurationPs,
    /// Bytes that are read, computed on, sent and written at a time. Default: `1MiB`.
    pub piece: Bytes,
    /// Workers that are slow, by name (`w1`, ...): computing takes so many times as long there. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slow: BTreeMap<String, f64>,
}

impl Default for Cluster {
    fn default() -> Self {
        let disk = Rate::from_bps(640_000_000);
        Self {
            nodes: 16,
            racks: 1,
            cores: 8,
            core_sharing: CoreScope::None,
            disks: 1,
            disk_read: disk,
            disk_write: disk,
            disk_seek: DurationPs::ZERO,
            container_start: DurationPs::from_ms(2_000),
            task_start: DurationPs::from_ms(1_000),
            reduce_container_start: None,
            reduce_task_start: None,
            master_start: DurationPs::from_ms(3_000),
            localization: DurationPs::ZERO,
            output_start: DurationPs::ZERO,
            output_commit: DurationPs::ZERO,
            piece: Bytes(1 << 20),
            slow: BTreeMap::new(),
        }
    }
}

/// Who competes for cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreScope {
    /// A piece of computing has a core of its worker until it is done, others wait; starts need none.
    #[default]
    None,
    /// A worker's tasks take turns on its cores, while they start as well.
    Node,
    /// The tasks of all workers take turns on `cores`, as in a lab on one machine.
    Cluster,
}

impl CoreScope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

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
    fn map_bytes(&self, block_bytes: u64) -> f64 {
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
            input_share_of_nodes: None,
            recorded_nodes: None,
            fetch_samples: Vec::new(),
            map_samples: Vec::new(),
            reduce_samples: Vec::new(),
        }
    }
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
        expand_cluster(&mut table)?;
        repeat_jobs(&mut table)?;
        expand_jobs(&mut table)?;
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
        let mut tasks = 0u64;
        for job in &self.jobs {
            self.check_job(job, &known)?;
            if !known.insert(job.name.as_str()) {
                return Err(JobError::value("job.name", &job.name, "two jobs have this name"));
            }
            let map_bytes = job.map_bytes(self.hadoop.block_bytes);
            let maps = job.input.map_or(u64::from(job.reduces), |input| (input.0 as f64 / map_bytes).ceil() as u64);
            tasks = tasks.saturating_add(maps).saturating_add(job.reduces.into());
        }
        if !(1..=MOST_STEPS).contains(&self.max_steps) {
            return Err(JobError::value("max_steps", self.max_steps, format!("between 1 and {MOST_STEPS}")));
        }
        let (steps, most) = (self.expected_steps(), self.max_steps);
        if steps > f64::from(most) && tasks <= MAX_TASKS {
            let reason = format!(
                "it makes about {steps:.1e} steps, and max_steps allows {most}: give larger pieces (cluster.piece), less input, \
                 fewer maps or reduces, or a larger max_steps (a step takes some 900 bytes of memory until it is written)"
            );
            // What the file says is to blame, not what it leaves as it is.
            let is_default = is_max_steps(&most);
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

    /// How many steps the tasks of all jobs take, heartbeats apart.
    fn expected_steps(&self) -> f64 {
        let piece = self.cluster.piece.0 as f64;
        let block = self.hadoop.block_bytes as f64;
        let mut outputs: BTreeMap<&str, f64> = BTreeMap::new();
        let mut steps = 0.0;
        for job in &self.jobs {
            let chained = job.input_of.as_deref().and_then(|name| outputs.get(name).copied());
            let input = job.input.map(|input| input.0 as f64).or(chained).unwrap_or(0.0);
            let reduces = f64::from(job.reduces);
            // What another job wrote has a block of its own for each of its reduces.
            let maps =
                (input / job.map_bytes(self.hadoop.block_bytes)).ceil() + if chained.is_some() { reduces } else { 0.0 };
            let compressed = if self.hadoop.compress { job.compressed } else { 1.0 };
            let shuffled = input * job.map_output * compressed;
            let written = input * job.map_output * job.reduce_output;
            let copies = f64::from(self.replication_of(job));
            let spills = input * job.buffer_use.unwrap_or(job.map_output) / self.hadoop.spill_bytes() as f64;
            steps += maps * 20.0 + 2.0 * input / piece + 3.0 * spills;
            steps += 2.0 * maps * reduces + shuffled / piece;
            steps += reduces * 20.0 + 2.0 * shuffled / piece;
            steps += 3.0 * copies * (written / piece + written / block + reduces);
            outputs.insert(&job.name, written);
        }
        steps
    }

    fn check_job(&self, job: &Job, known: &BTreeSet<&str>) -> Result<(), JobError> {
        let key = |name: &str| format!("job.{name} of {}", job.name);
        if job.input.is_some_and(|input| input.0 == 0) {
            return Err(JobError::value(key("input"), "0B", "a job reads at least a byte"));
        }
        match (&job.input, &job.input_of) {
            (Some(_), Some(_)) => {
                let reason = "a job reads a file of its own (input), or what another one wrote (input_of)";
                return Err(JobError::value(key("input"), "both", reason));
            }
            (None, Some(other)) if !known.contains(other.as_str()) => {
                return Err(JobError::value(key("input_of"), other, "no job before it has this name"));
            }
            _ => {}
        }
        if let Some(queue) = job.queue.as_ref().filter(|queue| !self.queues.contains_key(*queue)) {
            let known = self.queues.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(JobError::value(key("queue"), queue, format!("[queues] has: {known}")));
        }
        if job.reduces == 0 {
            return Err(JobError::value(key("reduces"), 0, "jobs without reduces are not modelled; at least 1"));
        }
        for (name, value, most) in [
            ("map_output", job.map_output, 1e3),
            ("buffer_use", job.buffer_use.unwrap_or(0.0), 1e3),
            ("reduce_output", job.reduce_output, 1e3),
            ("speed_deviation", job.speed_deviation, 2.0),
            ("skew", job.skew, 10.0),
            ("compressed", job.compressed, 1.0),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(JobError::value(key(name), value, format!("between 0 and {most}")));
            }
        }
        for (name, rate) in [
            ("map_rate", job.map_rate),
            ("reduce_rate", job.reduce_rate),
            ("sort_rate", job.sort_rate),
            ("merge_rate", job.merge_rate),
        ] {
            check_rate(&key(name), rate)?;
        }
        if job.output_replication == Some(0) {
            return Err(JobError::value(key("output_replication"), 0, "at least 1"));
        }
        if job.input_replication == Some(0) || job.recorded_nodes == Some(0) {
            let name = if job.recorded_nodes == Some(0) { "recorded_nodes" } else { "input_replication" };
            return Err(JobError::value(key(name), 0, "at least 1"));
        }
        if let Some(share) = job.input_share_of_nodes
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(JobError::value(key("input_share_of_nodes"), share, "above 0, at most 1"));
        }
        self.check_samples(job)?;
        check_delay(&key("submit"), job.submit)
    }

    fn check_samples(&self, job: &Job) -> Result<(), JobError> {
        let nodes = job.recorded_nodes.unwrap_or(self.cluster.nodes);
        for (number, services) in job.fetch_samples.iter().enumerate() {
            let key = format!("job.fetch[{number}] of {}", job.name);
            if services.is_empty() {
                return Err(JobError::value(key, "[]", "at least one time"));
            }
            services.iter().try_for_each(|service| check_delay(&key, *service))?;
        }
        for (number, sample) in job.map_samples.iter().enumerate() {
            let key = format!("job.map[{number}] of {}", job.name);
            sample.check(&key, nodes)?;
            check_rate(&format!("{key}.rate"), sample.rate)?;
            check_rate(&format!("{key}.sort_rate"), sample.sort_rate)?;
            check_delay(&format!("{key}.container_start"), sample.container_start)?;
            check_delay(&format!("{key}.task_start"), sample.task_start)?;
        }
        for (number, sample) in job.reduce_samples.iter().enumerate() {
            let key = format!("job.reduce[{number}] of {}", job.name);
            sample.check(&key)?;
            check_rate(&format!("{key}.rate"), sample.rate)?;
            check_rate(&format!("{key}.merge_rate"), sample.merge_rate)?;
            check_delay(&format!("{key}.container_start"), sample.container_start)?;
            check_delay(&format!("{key}.task_start"), sample.task_start)?;
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

impl Cluster {
    /// What a reduce takes from its container's start to its first word, and from then until it fetches.
    pub(crate) fn reduce_starts(&self) -> (DurationPs, DurationPs) {
        (self.reduce_container_start.unwrap_or(self.container_start), self.reduce_task_start.unwrap_or(self.task_start))
    }

    fn check(&self) -> Result<(), JobError> {
        for (name, value, most) in [
            ("nodes", self.nodes, MAX_NODES),
            ("racks", self.racks, self.nodes.max(1)),
            ("cores", self.cores, 1 << 16),
            ("disks", self.disks, 1 << 16),
        ] {
            if value == 0 || value > most {
                return Err(JobError::value(format!("cluster.{name}"), value, format!("between 1 and {most}")));
            }
        }
        check_rate("cluster.disk_read", self.disk_read)?;
        check_rate("cluster.disk_write", self.disk_write)?;
        check_delay("cluster.disk_seek", self.disk_seek)?;
        check_delay("cluster.container_start", self.container_start)?;
        check_delay("cluster.task_start", self.task_start)?;
        let (container_start, task_start) = self.reduce_starts();
        check_delay("cluster.reduce_container_start", container_start)?;
        check_delay("cluster.reduce_task_start", task_start)?;
        check_delay("cluster.master_start", self.master_start)?;
        check_delay("cluster.localization", self.localization)?;
        check_delay("cluster.output_start", self.output_start)?;
        check_delay("cluster.output_commit", self.output_commit)?;
        if !(1 << 10..=1 << 30).contains(&self.piece.0) {
            return Err(JobError::value("cluster.piece", self.piece, "between 1KiB and 1GiB"));
        }
        for (name, times) in &self.slow {
            let key = format!("cluster.slow.{name}");
            if self.worker(name).is_none() {
                return Err(JobError::value(key, times, format!("the workers are w1 to w{}", self.nodes)));
            }
            if !(1e-3..=1e3).contains(times) {
                return Err(JobError::value(key, times, "between 0.001 and 1000"));
            }
        }
        Ok(())
    }

    /// The number of the worker of this name, from 0.
    pub(crate) fn worker(&self, name: &str) -> Option<usize> {
        let number = name.strip_prefix('w')?.parse::<u32>().ok()?;
        (number >= 1 && number <= self.nodes && name == format!("w{number}")).then(|| number as usize - 1)
    }

    /// Hosts: the workers and the one of the masters.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.nodes + 1
    }
}

fn check_rate(key: &str, rate: Rate) -> Result<(), JobError> {
    match rate.bps() {
        Some(bps) if bps < MIN_RATE_BPS => Err(JobError::value(key, rate, "at least 1B/s")),
        _ => Ok(()),
    }
}

fn check_delay(key: &str, delay: DurationPs) -> Result<(), JobError> {
    if delay.ps() > MAX_DELAY_PS {
        return Err(JobError::value(key, delay, "at most a day"));
    }
    Ok(())
}

/// A preset by its name.
fn preset(key: &str, name: &toml::Value, known: &[(&str, &str)]) -> Result<toml::Table, JobError> {
    let text = name.as_str().and_then(|name| known.iter().find(|(known, _)| *known == name));
    let Some((_, text)) = text else {
        let known = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(JobError::value(key, name, format!("there are: {known}")));
    };
    text.parse().map_err(|error: toml::de::Error| JobError::Toml(error.to_string()))
}

/// Puts the keys of `cluster.preset` below those that are given.
fn expand_cluster(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Table(given)) = table.get_mut("cluster") else { return Ok(()) };
    let Some(name) = given.remove("preset") else { return Ok(()) };
    let preset = preset("cluster.preset", &name, &CLUSTERS)?;
    if let Some(toml::Value::Table(keys)) = preset.get("cluster") {
        for (key, value) in keys {
            given.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// Puts `count` jobs in the place of the table that has this key, each submitted `every` so long after the one before. They have
/// its name, or that of its profile, with a number from 1 on.
fn repeat_jobs(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Array(given)) = table.get_mut("job") else { return Ok(()) };
    let mut jobs = Vec::new();
    for job in std::mem::take(given) {
        let toml::Value::Table(mut keys) = job else {
            jobs.push(job);
            continue;
        };
        let (count, every) = (keys.remove("count"), keys.remove("every"));
        let Some(count) = count else {
            if let Some(every) = every {
                return Err(JobError::value("job.every", every, "it is for jobs that have a `count`"));
            }
            jobs.push(keys.into());
            continue;
        };
        let number = count.as_integer().and_then(|count| u64::try_from(count).ok());
        let Some(number) = number.filter(|number| *number > 0 && jobs.len() as u64 + number <= MAX_JOBS) else {
            let reason = format!("a whole number from 1 on, with at most {MAX_JOBS} jobs in all");
            return Err(JobError::value("job.count", count, reason));
        };
        if (keys.to_string().len() as u64).saturating_mul(number) > MAX_REPEATED_BYTES {
            let reason = format!("so many of this job are larger than {MAX_REPEATED_BYTES} bytes together");
            return Err(JobError::value("job.count", count, reason));
        }
        let every = duration("job.every", every.as_ref())?;
        let first = duration("job.submit", keys.get("submit"))?;
        let name = keys.get("name").or_else(|| keys.get("profile")).and_then(toml::Value::as_str);
        let name = name.unwrap_or("job").to_owned();
        for copy in 0..number {
            let after = every.0.checked_mul(copy).and_then(|after| after.checked_add(first.0));
            let Some(submit) = after.map(DurationPs) else {
                return Err(JobError::value("job.every", every, "the last of these jobs is submitted too late"));
            };
            let mut keys = keys.clone();
            keys.insert("name".to_owned(), format!("{name}-{}", copy + 1).into());
            keys.insert("submit".to_owned(), submit.to_string().into());
            jobs.push(keys.into());
        }
    }
    *given = jobs;
    Ok(())
}

/// A duration of a table; 0 where it says none.
fn duration(key: &str, value: Option<&toml::Value>) -> Result<DurationPs, JobError> {
    let Some(value) = value else { return Ok(DurationPs::ZERO) };
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|error: UnitError| JobError::value(key, value, error.to_string()))
}

/// Puts the jobs of a `profile` in the place of the table that names it. Keys beside it go to each of its jobs, those of the
/// input and the submission to the first; a `name` goes before the names of the profile's own.
fn expand_jobs(table: &mut toml::Table) -> Result<(), JobError> {
    let Some(toml::Value::Array(given)) = table.get_mut("job") else { return Ok(()) };
    let mut jobs = Vec::new();
    for job in std::mem::take(given) {
        let toml::Value::Table(mut keys) = job else {
            jobs.push(job);
            continue;
        };
        let Some(name) = keys.remove("profile") else {
            jobs.push(keys.into());
            continue;
        };
        let mut profile = preset("job.profile", &name, &PROFILES)?;
        let Some(toml::Value::Array(own)) = profile.remove("job") else { continue };
        let prefix = keys.remove("name");
        let prefix = prefix.as_ref().and_then(toml::Value::as_str);
        let is_single = own.len() == 1;
        let renamed = |own: &str| match prefix {
            None => own.to_owned(),
            Some(prefix) if is_single => prefix.to_owned(),
            Some(prefix) => format!("{prefix}-{own}"),
        };
        for (number, own) in own.into_iter().enumerate() {
            let toml::Value::Table(mut own) = own else { continue };
            for key in ["name", "input_of"] {
                if let Some(toml::Value::String(name)) = own.get_mut(key) {
                    *name = renamed(name);
                }
            }
            for (key, value) in &keys {
                if number == 0 || !matches!(key.as_str(), "input" | "input_of" | "submit") {
                    own.insert(key.clone(), value.clone());
                }
            }
            jobs.push(own.into());
        }
    }
    *given = jobs;
    Ok(())
}
