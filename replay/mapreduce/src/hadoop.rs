//! Hadoop's own properties that the model follows, with Hadoop's names and defaults.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use trace::rows::TaskKind;

use crate::error::JobError;

/// A property: its name, its default as Hadoop's file has it, and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Hadoop's name.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// The file that has it: `mapred-default.xml`, ...; "code" where no file has. -1 there stands for the default in code.
    pub source: &'static str,
}

macro_rules! properties {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:literal, $name:literal, $source:literal;)+) => {
        /// The properties of `[hadoop]`. Memory is in MB of 2^20 bytes, times are in the unit of their names.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Hadoop {
            $($(#[$doc])* #[serde(rename = $name)] pub $field: $type,)+
        }

        impl Default for Hadoop {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// All properties that the model follows.
        pub const PROPERTIES: &[Property] =
            &[$(Property { name: $name, default: stringify!($default), source: $source },)+];

        impl Hadoop {
            /// Sets a property.
            fn set(&mut self, name: &str, value: toml::Value) -> Result<(), JobError> {
                match name {
                    $($name => {
                        let shown = value.to_string();
                        self.$field = value.try_into().map_err(|error: toml::de::Error| {
                            JobError::value(format!("hadoop.{name}"), &shown, format!("{}; default: {}", error.message(), stringify!($default)))
                        })?;
                    })+
                    _ => return Err(unknown(name, &value)),
                }
                Ok(())
            }
        }
    };
}

properties! {
    /// Bytes of an HDFS block.
    block_bytes: u64 = 134217728, "dfs.blocksize", "hdfs-default.xml";
    /// Copies of a block.
    replication: u32 = 3, "dfs.replication", "hdfs-default.xml";
    /// Packets of 64 KiB that a writer may have under way without their acknowledgements.
    packets_in_flight: u64 = 80, "dfs.client.write.max-packets-in-flight", "hdfs-default.xml";
    /// Between two heartbeats of a DataNode, seconds.
    datanode_heartbeat_s: u64 = 3, "dfs.heartbeat.interval", "hdfs-default.xml";
    /// What a node has for containers.
    node_memory_mb: u64 = 8192, "yarn.nodemanager.resource.memory-mb", "yarn-default.xml (-1)";
    /// Containers have a multiple of this.
    minimum_allocation_mb: u64 = 1024, "yarn.scheduler.minimum-allocation-mb", "yarn-default.xml";
    /// Between two heartbeats of a NodeManager.
    nodemanager_heartbeat_ms: u64 = 1000, "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "yarn-default.xml";
    /// Missed opportunities after which a map may run elsewhere in the rack of its data.
    node_locality_delay: u64 = 40, "yarn.scheduler.capacity.node-locality-delay", "capacity-scheduler.xml";
    /// Whether a heartbeat may bring a node more than one container.
    multiple_assignments: bool = true, "yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled", "code";
    /// How many of these may be reduces, or maps in another rack than their data.
    offswitch_assignments: u64 = 1, "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments", "code";
    /// Memory of the application master.
    am_memory_mb: u64 = 1536, "yarn.app.mapreduce.am.resource.mb", "mapred-default.xml";
    /// Between two heartbeats of the application master.
    am_heartbeat_ms: u64 = 1000, "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms", "mapred-default.xml";
    /// Share of the memory that reduces may get while maps wait.
    reduce_rampup: f64 = 0.5, "yarn.app.mapreduce.am.job.reduce.rampup.limit", "code";
    /// Memory of a map.
    map_memory_mb: u64 = 1024, "mapreduce.map.memory.mb", "mapred-default.xml (-1 in 3.x)";
    /// Memory of a reduce.
    reduce_memory_mb: u64 = 1024, "mapreduce.reduce.memory.mb", "mapred-default.xml (-1 in 3.x)";
    /// Share of a task's memory that is heap.
    heap_ratio: f64 = 0.8, "mapreduce.job.heap.memory-mb.ratio", "mapred-default.xml of 3.x";
    /// Share of the maps that must be done before reduces are asked for.
    slow_start: f64 = 0.05, "mapreduce.job.reduce.slowstart.completedmaps", "mapred-default.xml";
    /// Buffer of a map's output.
    sort_mb: u64 = 100, "mapreduce.task.io.sort.mb", "mapred-default.xml";
    /// Segments that are merged at once.
    sort_factor: usize = 10, "mapreduce.task.io.sort.factor", "mapred-default.xml";
    /// Share of the buffer at which it is spilled.
    spill_percent: f64 = 0.80, "mapreduce.map.sort.spill.percent", "mapred-default.xml";
    /// Fetches of a reduce at a time.
    parallel_copies: usize = 5, "mapreduce.reduce.shuffle.parallelcopies", "mapred-default.xml";
    /// Share of a reduce's heap for fetched outputs.
    shuffle_buffer: f64 = 0.70, "mapreduce.reduce.shuffle.input.buffer.percent", "mapred-default.xml";
    /// Share of that buffer that a single output may take; larger ones go to the disk.
    memory_limit: f64 = 0.25, "mapreduce.reduce.shuffle.memory.limit.percent", "mapred-default.xml";
    /// Share of that buffer at which it is merged to the disk.
    merge_percent: f64 = 0.66, "mapreduce.reduce.shuffle.merge.percent", "mapred-default.xml";
    /// Whether map outputs are compressed.
    compress: bool = false, "mapreduce.map.output.compress", "mapred-default.xml";
    /// Whether slow maps get a second attempt.
    map_speculative: bool = true, "mapreduce.map.speculative", "mapred-default.xml";
    /// Whether slow reduces get a second attempt.
    reduce_speculative: bool = true, "mapreduce.reduce.speculative", "mapred-default.xml";
    /// Share of the running tasks of a kind that may have two attempts.
    speculative_cap_running: f64 = 0.1, "mapreduce.job.speculative.speculative-cap-running-tasks", "mapred-default.xml";
    /// Share of all tasks of a kind that may.
    speculative_cap_total: f64 = 0.01, "mapreduce.job.speculative.speculative-cap-total-tasks", "mapred-default.xml";
    /// So many may in any case.
    speculative_minimum: u64 = 10, "mapreduce.job.speculative.minimum-allowed-tasks", "mapred-default.xml";
    /// Between two looks at all tasks, if the first found none that is too slow.
    retry_after_no_speculate_ms: u64 = 1000, "mapreduce.job.speculative.retry-after-no-speculate", "mapred-default.xml";
    /// The same if it found one.
    retry_after_speculate_ms: u64 = 15000, "mapreduce.job.speculative.retry-after-speculate", "mapred-default.xml";
    /// Between two reports of a task how far it is.
    progress_report_ms: u64 = 6000, "mapreduce.task.progress-report.interval", "code";
    /// Between two questions of the client how far the job is.
    client_poll_ms: u64 = 1000, "mapreduce.client.progressmonitor.pollinterval", "mapred-default.xml";
}

fn unknown(name: &str, value: &toml::Value) -> JobError {
    let near = PROPERTIES
        .iter()
        .min_by_key(|property| strsim::damerau_levenshtein(property.name, name))
        .map_or("", |near| near.name);
    let reason = format!("the model does not follow this property; did you mean {near}? docs/generate.md lists all");
    JobError::value(format!("hadoop.{name}"), value, reason)
}

impl Hadoop {
    /// The properties with those of `table`, in which a dot in a name may stand for a table in a table.
    ///
    /// # Errors
    /// If one is not known, or has a wrong value.
    pub(crate) fn with(mut self, table: &toml::Table) -> Result<Self, JobError> {
        let mut flat = BTreeMap::new();
        flatten("", table, &mut flat);
        for (name, value) in flat {
            self.set(&name, value)?;
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), JobError> {
        const DAY_S: u64 = 86_400;
        const DAY_MS: u64 = DAY_S * 1_000;
        const MAX: u64 = 1 << 40;
        let bounds: [(&str, u64, u64, u64); 19] = [
            ("dfs.blocksize", self.block_bytes, 1, MAX),
            ("dfs.replication", self.replication.into(), 1, 512),
            ("dfs.client.write.max-packets-in-flight", self.packets_in_flight, 1, 1 << 32),
            ("dfs.heartbeat.interval", self.datanode_heartbeat_s, 1, DAY_S),
            ("yarn.nodemanager.resource.memory-mb", self.node_memory_mb, 1, MAX),
            ("yarn.scheduler.minimum-allocation-mb", self.minimum_allocation_mb, 1, MAX),
            ("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", self.nodemanager_heartbeat_ms, 1, DAY_MS),
            (
                "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments",
                self.offswitch_assignments,
                1,
                MAX,
            ),
            ("yarn.app.mapreduce.am.resource.mb", self.am_memory_mb, 1, MAX),
            ("yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms", self.am_heartbeat_ms, 1, DAY_MS),
            ("mapreduce.map.memory.mb", self.map_memory_mb, 1, MAX),
            ("mapreduce.reduce.memory.mb", self.reduce_memory_mb, 1, MAX),
            ("mapreduce.task.io.sort.mb", self.sort_mb, 1, 1 << 20),
            ("mapreduce.task.io.sort.factor", self.sort_factor as u64, 2, MAX),
            ("mapreduce.client.progressmonitor.pollinterval", self.client_poll_ms, 1, DAY_MS),
            ("mapreduce.job.speculative.minimum-allowed-tasks", self.speculative_minimum, 0, MAX),
            ("mapreduce.job.speculative.retry-after-no-speculate", self.retry_after_no_speculate_ms, 1, DAY_MS),
            ("mapreduce.job.speculative.retry-after-speculate", self.retry_after_speculate_ms, 1, DAY_MS),
            ("mapreduce.task.progress-report.interval", self.progress_report_ms, 1, DAY_MS),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(JobError::value(format!("hadoop.{name}"), value, format!("between {least} and {most}")));
            }
        }
        if !(1..=10_000).contains(&self.parallel_copies) {
            let key = "hadoop.mapreduce.reduce.shuffle.parallelcopies";
            return Err(JobError::value(key, self.parallel_copies, "between 1 and 10000"));
        }
        let shares = [
            ("yarn.app.mapreduce.am.job.reduce.rampup.limit", self.reduce_rampup),
            ("mapreduce.job.heap.memory-mb.ratio", self.heap_ratio),
            ("mapreduce.job.reduce.slowstart.completedmaps", self.slow_start),
            ("mapreduce.map.sort.spill.percent", self.spill_percent),
            ("mapreduce.reduce.shuffle.input.buffer.percent", self.shuffle_buffer),
            ("mapreduce.reduce.shuffle.memory.limit.percent", self.memory_limit),
            ("mapreduce.reduce.shuffle.merge.percent", self.merge_percent),
            ("mapreduce.job.speculative.speculative-cap-running-tasks", self.speculative_cap_running),
            ("mapreduce.job.speculative.speculative-cap-total-tasks", self.speculative_cap_total),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(JobError::value(format!("hadoop.{name}"), share, "a share is between 0 and 1"));
            }
        }
        for (name, memory) in [
            ("mapreduce.map.memory.mb", self.map_memory_mb),
            ("mapreduce.reduce.memory.mb", self.reduce_memory_mb),
            ("yarn.app.mapreduce.am.resource.mb", self.am_memory_mb),
        ] {
            if self.container_mb(memory) > self.node_memory_mb {
                let node = self.node_memory_mb;
                let reason =
                    format!("a container of it must fit a node (yarn.nodemanager.resource.memory-mb = {node})");
                return Err(JobError::value(format!("hadoop.{name}"), memory, reason));
            }
        }
        if self.spill_percent == 0.0 {
            return Err(JobError::value("hadoop.mapreduce.map.sort.spill.percent", 0, "a share above 0"));
        }
        Ok(())
    }

    /// Whether slow tasks of a kind get a second attempt.
    #[must_use]
    pub fn speculates(&self, kind: TaskKind) -> bool {
        if kind == TaskKind::Reduce { self.reduce_speculative } else { self.map_speculative }
    }

    /// The memory of a container that is asked for with `memory_mb`.
    #[must_use]
    pub const fn container_mb(&self, memory_mb: u64) -> u64 {
        memory_mb.next_multiple_of(self.minimum_allocation_mb)
    }

    /// The map output, in bytes, that is written as one spill.
    #[must_use]
    pub fn spill_bytes(&self) -> u64 {
        ((self.sort_bytes() as f64 * self.spill_percent) as u64).max(1)
    }

    /// The buffer of map output, bytes.
    #[must_use]
    pub const fn sort_bytes(&self) -> u64 {
        self.sort_mb.saturating_mul(1 << 20)
    }

    /// The buffer of a reduce for fetched outputs, bytes.
    #[must_use]
    pub fn shuffle_bytes(&self) -> u64 {
        (self.reduce_memory_mb as f64 * self.heap_ratio * self.shuffle_buffer * f64::from(1 << 20)) as u64
    }
}

fn flatten(prefix: &str, table: &toml::Table, into: &mut BTreeMap<String, toml::Value>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, into),
            value => {
                into.insert(name, value.clone());
            }
        }
    }
}

impl<'de> Deserialize<'de> for Hadoop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        Self::default().with(&table).map_err(D::Error::custom)
    }
}
