//! What nodes have free, and what queues use.

use std::collections::{BTreeMap, VecDeque};

use trace::ids::TimerId;

use crate::config::JobFile;
use crate::kernel::{ResourceId, StepId};

/// A container, in the order of their assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContainerId(pub(crate) u32);

/// A worker.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) cpu: ResourceId,
    pub(super) disk: ResourceId,
    /// Computing takes so many times as long as on others.
    pub(super) slowness: f64,
    pub(super) timer: TimerId,
    /// Memory that no container had yet.
    pub(super) unused_mb: u64,
    /// Memory of containers that ended, with their ends.
    pub(super) freed: VecDeque<(StepId, u64)>,
    /// Memory of masters and reduces, which may wait for maps.
    pub(super) pinned_mb: u64,
    /// Containers that ended since the last heartbeat was sent.
    pub(super) ended: Vec<(ContainerId, StepId)>,
    /// Those that the heartbeat under way reports.
    pub(super) reported: Vec<(ContainerId, StepId)>,
}

impl Node {
    pub(super) fn new(cpu: ResourceId, disk: ResourceId, memory_mb: u64) -> Self {
        Self {
            cpu,
            disk,
            slowness: 1.0,
            timer: TimerId(0),
            unused_mb: memory_mb,
            freed: VecDeque::new(),
            pinned_mb: 0,
            ended: Vec::new(),
            reported: Vec::new(),
        }
    }

    pub(super) fn free_mb(&self) -> u64 {
        self.unused_mb + self.freed.iter().map(|(_, memory_mb)| memory_mb).sum::<u64>()
    }

    /// Takes memory: what was never used first, then that of the containers that ended first. Returns their ends.
    pub(super) fn take(&mut self, memory_mb: u64) -> Vec<StepId> {
        let fresh = memory_mb.min(self.unused_mb);
        self.unused_mb -= fresh;
        let (mut wanted, mut ends) = (memory_mb - fresh, Vec::new());
        while let Some((end, freed_mb)) = self.freed.front_mut().filter(|_| wanted > 0) {
            let taken = wanted.min(*freed_mb);
            *freed_mb -= taken;
            wanted -= taken;
            ends.push(*end);
            if *freed_mb == 0 {
                self.freed.pop_front();
            }
        }
        ends
    }
}

/// Queues: what each may have, and has.
#[derive(Debug)]
pub(super) struct Queues {
    /// Share and memory in use, by name.
    by_name: BTreeMap<String, (f64, u64)>,
    /// The queue of each job.
    of_job: Vec<String>,
    pub(super) masters_mb: u64,
}

impl Queues {
    pub(super) fn new(file: &JobFile) -> Self {
        let mut by_name: BTreeMap<_, _> = file.queues.iter().map(|(name, share)| (name.clone(), (*share, 0))).collect();
        if by_name.is_empty() {
            by_name.insert("default".to_owned(), (1.0, 0));
        }
        let first = by_name.keys().next().cloned().unwrap_or_default();
        let of_job = file.jobs.iter().map(|job| job.queue.clone().unwrap_or_else(|| first.clone())).collect();
        Self { by_name, of_job, masters_mb: 0 }
    }

    /// Memory in use by share.
    pub(super) fn pressure(&self, app: u32) -> f64 {
        self.by_name.get(&self.of_job[app as usize]).map_or(0.0, |(share, used)| *used as f64 / share)
    }

    pub(super) fn use_more(&mut self, app: u32, memory_mb: u64) {
        if let Some((_, used)) = self.by_name.get_mut(&self.of_job[app as usize]) {
            *used += memory_mb;
        }
    }

    pub(super) fn use_less(&mut self, app: u32, memory_mb: u64) {
        if let Some((_, used)) = self.by_name.get_mut(&self.of_job[app as usize]) {
            *used = used.saturating_sub(memory_mb);
        }
    }
}
