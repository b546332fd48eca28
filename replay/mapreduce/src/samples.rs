//! Tasks and calls as they were recorded, from which those of a job are drawn.

use netsim::kernel::random;
use netsim::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

use crate::error::JobError;

/// A map that was recorded: a `[[job.map]]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapSample {
    /// What it read.
    pub input: Bytes,
    /// The worker that had its block, counted from 0 in the recorded cluster. Default: blocks
    /// lie on each node in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// How long it waited for the job's files, as the first of the job on its node. Default: `0ps`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub localization: DurationPs,
    /// From its container's start to its first call.
    pub container_start: DurationPs,
    /// From the answer to that until it reads.
    pub task_start: DurationPs,
    /// Input that it computed on.
    pub rate: Rate,
    /// Output that it sorted.
    pub sort_rate: Rate,
    /// Output by input.
    pub output: f64,
}

/// A reduce that was recorded: a `[[job.reduce]]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReduceSample {
    /// Its part of the map output, by that of a mean reduce.
    pub share: f64,
    /// From its container's start to its first call.
    pub container_start: DurationPs,
    /// From the answer to that until it asks for map outputs.
    pub task_start: DurationPs,
    /// Input that it merged.
    pub merge_rate: Rate,
    /// Input that it computed on.
    pub rate: Rate,
    /// Output by input.
    pub output: f64,
}

/// A call, and what the daemon that answers it takes: a table of `[calls]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSample {
    /// Payload of the request.
    pub request: Bytes,
    /// Payload of the response.
    pub response: Bytes,
    /// From the request's arrival to the response.
    pub service: DurationPs,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(duration: &DurationPs) -> bool {
    *duration == DurationPs::ZERO
}

/// Which sample each of `count` tasks is like: all samples in turn, in the recorded order at first (if `as_recorded`) and in a
/// drawn one in each further round.
pub(crate) fn deal(samples: usize, count: usize, as_recorded: bool, seed: u64, salt: u64) -> Vec<u32> {
    let mut dealt = Vec::with_capacity(count);
    let mut round = 0u64;
    while samples > 0 && dealt.len() < count {
        let mut order: Vec<u32> = (0..samples as u32).collect();
        if round > 0 || !as_recorded {
            let stream = random::draw(seed, salt, round);
            order.sort_by_key(|sample| random::draw(stream, salt, u64::from(*sample)));
        }
        order.truncate(count - dealt.len());
        dealt.extend(order);
        round += 1;
    }
    dealt
}

impl MapSample {
    pub(crate) fn check(&self, key: &str, nodes: u32) -> Result<(), JobError> {
        if self.input.0 == 0 {
            return Err(JobError::value(format!("{key}.input"), self.input, "a map reads at least a byte"));
        }
        if let Some(node) = self.node.filter(|node| *node >= nodes) {
            let reason =
                "a worker of the recorded cluster, counted from 0: below job.recorded_nodes (default: cluster.nodes)";
            return Err(JobError::value(format!("{key}.node"), node, reason));
        }
        check_share(&format!("{key}.output"), self.output)
    }
}

impl ReduceSample {
    pub(crate) fn check(&self, key: &str) -> Result<(), JobError> {
        check_share(&format!("{key}.share"), self.share)?;
        check_share(&format!("{key}.output"), self.output)
    }
}

/// Shares and ratios of a sample.
fn check_share(key: &str, value: f64) -> Result<(), JobError> {
    if (0.0..=1e6).contains(&value) { Ok(()) } else { Err(JobError::value(key, value, "between 0 and 1000000")) }
}
