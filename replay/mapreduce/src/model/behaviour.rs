//! How each task behaves: as the sample does that it is like, or as its job says.

use netsim::kernel::random;
use netsim::units::Rate;
use trace::ids::TaskId;
use trace::rows::TaskKind;

use super::state::{Block, Model};
use crate::samples::deal;
use crate::world::NodeId;

/// What a task takes for its work. Rates are of one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behaviour {
    /// What it waits for the job's files where no other task of the job was before.
    pub(super) localization_ps: u64,
    /// From its container's start to its first call.
    pub(super) container_start_ps: u64,
    /// From the answer to that until it reads or fetches.
    pub(super) task_start_ps: u64,
    /// Input that it computes on.
    pub(super) rate: Rate,
    /// Output that a map sorts.
    pub(super) sort_rate: Rate,
    /// Segments that it merges.
    pub(super) merge_rate: Rate,
    /// Output by input.
    pub(super) output: f64,
    /// What a map's records take of its sort buffer, by input.
    pub(super) buffer_use: f64,
}

/// For what samples are dealt.
const MAPS: u64 = 0x6d61_7073;
const REDUCES: u64 = 0x7265_6475;
const AGAIN: u64 = 0x6167_6169;

impl Model {
    pub(super) fn behaviour(&self, task: TaskId) -> Behaviour {
        let state = &self.tasks[task.index()];
        let (job, app) = (&self.file.jobs[state.app as usize], &self.apps[state.app as usize]);
        let cluster = &self.file.cluster;
        let by_job = Behaviour {
            localization_ps: cluster.localization.ps(),
            container_start_ps: cluster.container_start.ps(),
            task_start_ps: cluster.task_start.ps(),
            rate: job.map_rate,
            sort_rate: job.sort_rate,
            merge_rate: job.merge_rate,
            output: job.map_output,
            buffer_use: job.buffer_use.unwrap_or(job.map_output),
        };
        let number = state.number as usize;
        // A second attempt computes on the same data, at a speed of its own: that of a sample that is drawn.
        let drawn = |samples: usize| {
            let salt = AGAIN ^ u64::from(state.first.0) << 32;
            (state.attempt > 0 && samples > 0).then(|| {
                random::below(random::draw(self.file.seed, salt, state.attempt.into()), samples as u64) as usize
            })
        };
        if state.kind == TaskKind::Reduce {
            let (container_start, task_start) = cluster.reduce_starts();
            let by_job = Behaviour {
                container_start_ps: container_start.ps(),
                task_start_ps: task_start.ps(),
                rate: job.reduce_rate,
                output: job.reduce_output,
                ..by_job
            };
            let sample = app.reduce_samples.get(number).map(|sample| &job.reduce_samples[*sample as usize]);
            return sample.map_or(by_job, |sample| {
                let speed = drawn(job.reduce_samples.len()).map_or(sample, |again| &job.reduce_samples[again]);
                Behaviour {
                    container_start_ps: speed.container_start.ps(),
                    task_start_ps: speed.task_start.ps(),
                    rate: speed.rate,
                    merge_rate: speed.merge_rate,
                    output: sample.output,
                    ..by_job
                }
            });
        }
        let sample = app.map_samples.get(number).map(|sample| &job.map_samples[*sample as usize]);
        sample.map_or(by_job, |sample| {
            let speed = drawn(job.map_samples.len()).map_or(sample, |again| &job.map_samples[again]);
            Behaviour {
                localization_ps: speed.localization.ps(),
                container_start_ps: speed.container_start.ps(),
                task_start_ps: speed.task_start.ps(),
                rate: speed.rate,
                sort_rate: speed.sort_rate,
                output: sample.output,
                buffer_use: job.buffer_use.unwrap_or(sample.output),
                ..by_job
            }
        })
    }

    /// What a NodeManager takes for its next fetch of a job before it sends.
    pub(super) fn fetch_service_ps(&mut self, app: u32, node: NodeId) -> u64 {
        let samples = &self.file.jobs[app as usize].fetch_samples;
        let Some(last) = samples.len().checked_sub(1) else { return 0 };
        let fetches = self.apps[app as usize].fetches.entry(node).or_default();
        let of_number = &samples[last.min(*fetches)];
        *fetches += 1;
        of_number[node.index() % of_number.len()].ps()
    }

    /// Deals out the samples of a job to as many maps; fewer than samples are drawn among these.
    pub(super) fn deal_maps(&self, app: usize, maps: usize) -> Vec<u32> {
        let samples = self.file.jobs[app].map_samples.len();
        deal(samples, maps, maps >= samples, self.file.seed, MAPS ^ (app as u64) << 32)
    }

    /// Deals out the samples of a job to its reduces.
    pub(super) fn deal_reduces(&self, app: usize) -> Vec<u32> {
        let job = &self.file.jobs[app];
        let (samples, reduces) = (job.reduce_samples.len(), job.reduces as usize);
        deal(samples, reduces, reduces >= samples, self.file.seed, REDUCES ^ (app as u64) << 32)
    }

    /// Places what a job reads: blocks written by a task on each node in turn, or on each of the nodes that have a share of the input;
    /// or of recorded blocks each on the node that had it, and in further rounds on the nodes behind the recorded ones. Returns
    /// the samples of the maps as well.
    pub(super) fn place_input(&mut self, app: usize, bytes: u64) -> (Vec<Block>, Vec<u32>) {
        let job = &self.file.jobs[app];
        let copies = job.input_replication.unwrap_or(self.file.hadoop.replication).min(self.file.cluster.nodes);
        let recorded = job.recorded_nodes.unwrap_or(self.file.cluster.nodes);
        let round_maps = job.map_samples.len();
        let (salt, as_recorded) = (MAPS ^ (app as u64) << 32, bytes >= job.round_bytes());
        let dealt = deal(round_maps, job.expected_maps(bytes), as_recorded, self.file.seed, salt);
        let sizes = if round_maps == 0 { Vec::new() } else { job.input_sizes(bytes, &dealt) };
        let recorded_nodes: Vec<Option<u32>> = job.map_samples.iter().map(|sample| sample.node).collect();
        let count = u64::from(self.file.cluster.nodes);
        let writers = ((count as f64 * job.input_share_of_nodes.unwrap_or(1.0)).round() as u64).max(1);
        let block_bytes = self.file.hadoop.block_bytes;
        let first = self.draw_below(count);
        let place = |model: &mut Self, number: usize, bytes: u64, recorded: Option<u64>| {
            let writer = recorded.unwrap_or(first + number as u64 % writers) % count;
            let replicas = model.choose_replicas(NodeId(writer as u32), copies);
            model.block(bytes, replicas)
        };
        if round_maps == 0 {
            let blocks = bytes.div_ceil(block_bytes) as usize;
            let size = |number: usize| block_bytes.min(bytes - number as u64 * block_bytes);
            return ((0..blocks).map(|number| place(self, number, size(number), None)).collect(), Vec::new());
        }
        let blocks = sizes.iter().enumerate().map(|(number, (sample, bytes))| {
            let round = (number / round_maps) as u64;
            let node = recorded_nodes[*sample as usize].map(|node| u64::from(node) + round * u64::from(recorded));
            place(self, number, *bytes, node)
        });
        let blocks = blocks.collect();
        (blocks, sizes.into_iter().map(|(sample, _)| sample).collect())
    }

    /// By reduce, the sum of the shares of all up to it, of the map output.
    pub(super) fn share_ends(&self, app: usize, samples: &[u32]) -> Vec<f64> {
        let job = &self.file.jobs[app];
        let reduces = job.reduces;
        let weight = |number: u32| match samples.get(number as usize - 1) {
            Some(sample) => job.reduce_samples[*sample as usize].share,
            None => libm::pow(f64::from(number), -job.skew),
        };
        if job.skew == 0.0 && samples.is_empty() {
            return (1..=reduces).map(|number| f64::from(number) / f64::from(reduces)).collect();
        }
        let mut ends: Vec<f64> = (1..=reduces)
            .scan(0.0, |sum, number| {
                *sum += weight(number);
                Some(*sum)
            })
            .collect();
        let all = ends.last().copied().unwrap_or(0.0);
        for (number, end) in (1u32..).zip(&mut ends) {
            // Without any share all reduces have the same.
            *end = if all > 0.0 { *end / all } else { f64::from(number) / f64::from(reduces) };
        }
        if let Some(last) = ends.last_mut() {
            *last = 1.0;
        }
        ends
    }
}
