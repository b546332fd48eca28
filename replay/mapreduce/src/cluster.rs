//! The machines of a job file.

use std::collections::BTreeMap;

use netsim::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

use crate::error::JobError;
use crate::limits::{check_delay, check_rate};
use crate::samples::is_zero;

/// More nodes cannot be: ids have 32 bits, and a task has many events.
const MAX_NODES: u32 = 100_000;

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
    /// What a reduce takes before it writes its first output, and a map before it reads where there are no reduces. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_start: DurationPs,
    /// What either takes from the end of its output until it is done: its output is committed. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_commit: DurationPs,
    /// What a job's master takes from the end of the last task that writes until the job is finished: it commits the output. Default: `0ps`.
    #[serde(skip_serializing_if = "is_zero")]
    pub job_commit: DurationPs,
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
            job_commit: DurationPs::ZERO,
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

impl Cluster {
    /// What a reduce takes from its container's start to its first word, and from then until it fetches.
    pub(crate) fn reduce_starts(&self) -> (DurationPs, DurationPs) {
        (self.reduce_container_start.unwrap_or(self.container_start), self.reduce_task_start.unwrap_or(self.task_start))
    }

    pub(crate) fn check(&self) -> Result<(), JobError> {
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
        check_delay("cluster.job_commit", self.job_commit)?;
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
