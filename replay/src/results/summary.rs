//! `summary.json`: the keys that programs may rely on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::heartbeats::HeartbeatWaits;
use super::seconds::seconds;
use causal::{Causality, CriticalPath, PathKind};
use netsim::network::CircuitTotals;
use netsim::time::SimTime;

/// What came out of a replay, in short. Shares and errors are fractions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The experiment's name.
    pub name: String,
    /// Kind of fabric.
    pub fabric: String,
    /// Folder of the trace, or file of the jobs.
    pub trace: String,
    /// Job that was replayed.
    pub job: String,
    /// Its name as it was submitted.
    pub job_name: String,
    /// What decided when messages left.
    pub causality: Causality,
    /// How many times as long as recorded processes thought.
    pub cpu_factor: f64,
    /// Seed.
    pub seed: u64,
    /// What the times that are called recorded are.
    #[serde(default, skip_serializing_if = "Baseline::is_recorded")]
    pub baseline: Baseline,
    /// Whether the experiment says that its fabric models the network of the recording (`workload.recorded_network`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_network: bool,
    /// From the job's submission to its end.
    pub job_time_s: f64,
    /// The same in the recording; of a generated job, on an infinitely fast network.
    pub recorded_job_time_s: f64,
    /// Phases: "map", "shuffle", "sort", "reduce".
    pub phases: Vec<Phase>,
    /// Messages that were sent and delivered.
    pub messages: u64,
    /// Messages of the recording that were not sent, or had not arrived, when the job was done.
    pub messages_unfinished: u64,
    /// Payload bytes that were handed to the network.
    pub bytes: u64,
    /// Packets that the fabric lost.
    pub drops: u64,
    /// Packets that were sent again.
    pub retransmissions: u64,
    /// How long the replay took on this machine.
    pub wall_s: f64,
    /// Events of the fabric and of the causal graph.
    pub events: u64,
    /// Events of the causal graph.
    pub causal_events: u64,
    /// Beats of timers that went on after the recorded ones.
    pub synthetic_beats: u64,
    /// News that waited for beats, by the name of the timer.
    #[serde(default)]
    pub heartbeats: Vec<HeartbeatWaits>,
    /// Share of the critical path on which bytes were on their way.
    pub network_share: f64,
    /// Changes of the messages' transfer times; on a model of the recorded network, its errors.
    pub transfer_error: TransferError,
    /// What the job's time consists of, the longest first.
    pub critical_path: Vec<PathShare>,
    /// Counters of the fabric's own.
    pub counters: BTreeMap<String, u64>,
    /// Optical circuits, all together; missing where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<CircuitSummary>,
    /// What attempts did that did not count; missing where all that ran succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted: Option<WastedWork>,
    /// Why the trace cannot tell what was asked of it, in words; empty if it can.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// What the reader should know, in words.
    pub notes: Vec<String>,
}

/// The optical circuits of a replay, or of synthetic traffic. Times are added up over all input ports of the circuit switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CircuitSummary {
    /// Input ports of the switch.
    pub ports: u64,
    /// Requests, those that were refused and repeated among them.
    pub requests: u64,
    /// Circuits that were set up, or were to be at the end.
    pub set_up: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Circuits that were released after they had been idle.
    pub released_idle: u64,
    /// Circuits that were given up for another request.
    pub evicted: u64,
    /// Share of the ports' time for which circuits held them, set-up included.
    pub occupancy: f64,
    /// How long circuits were set up and nothing could pass: the time lost to reconfiguration.
    pub reconfiguring_s: f64,
    /// The same as a share of the ports' time.
    pub reconfiguring_share: f64,
    /// Packets that crossed circuits.
    pub packets: u64,
    /// Their bytes on the fibre.
    pub bytes: u64,
}

impl CircuitSummary {
    /// What `totals` come to for what was done at `end`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shares and times for people")]
    pub(super) fn new(totals: &CircuitTotals, end: SimTime) -> Self {
        let (held, set_up) = totals.held_and_set_up_ps(end);
        let all = totals.ports as f64 * end.0 as f64;
        let share = |ps: u128| if all > 0.0 { ps as f64 / all } else { 0.0 };
        Self {
            ports: totals.ports,
            requests: totals.requests,
            set_up: totals.granted,
            refused: totals.refused,
            released_idle: totals.idle,
            evicted: totals.evicted,
            occupancy: share(held),
            reconfiguring_s: set_up as f64 / 1e12,
            reconfiguring_share: share(set_up),
            packets: totals.packets,
            bytes: totals.bytes,
        }
    }

    /// Of several runs over the same switch together, so many of which had no circuit: counts and times are sums, shares means. `None` if none
    /// had one.
    pub(super) fn of_runs(runs: Vec<Self>, without: usize) -> Option<Self> {
        let count = u32::try_from(runs.len() + without).map_or(f64::MAX, f64::from);
        let mut sum = runs.into_iter().reduce(|mut all, run| {
            all.ports = all.ports.max(run.ports);
            all.requests += run.requests;
            all.set_up += run.set_up;
            all.refused += run.refused;
            all.released_idle += run.released_idle;
            all.evicted += run.evicted;
            all.occupancy += run.occupancy;
            all.reconfiguring_s += run.reconfiguring_s;
            all.reconfiguring_share += run.reconfiguring_share;
            all.packets += run.packets;
            all.bytes += run.bytes;
            all
        })?;
        sum.occupancy /= count;
        sum.reconfiguring_share /= count;
        Some(sum)
    }
}

/// What attempts did that did not succeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WastedWork {
    /// Attempts that ran and did not succeed.
    pub attempts: u32,
    /// From their starts to their ends in the replay, added up.
    pub seconds: f64,
    /// Payload of the messages sent for them.
    pub bytes: u64,
}

impl WastedWork {
    /// In words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { attempts, seconds, bytes } = self;
        let (noun, verb) = if *attempts == 1 { ("attempt", "was") } else { ("attempts", "were") };
        format!(
            "{attempts} {noun} {verb} killed or failed: {seconds:.1} s of work and {} did not count",
            pages::format::bytes(*bytes)
        )
    }
}

/// What a result is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// The recording.
    #[default]
    Recorded,
    /// Of a generated job: the same job on an infinitely fast network.
    Ideal,
}

impl Baseline {
    /// For tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Ideal => "ideal network",
        }
    }

    /// Whether it is the recording.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded)
    }
}

impl Summary {
    /// Whether what differs from the recording is an error: the fabric models the recorded network, and nothing else was changed.
    #[must_use]
    pub fn shows_error(&self) -> bool {
        self.recorded_network && self.baseline.is_recorded() && (self.cpu_factor - 1.0).abs() < f64::EPSILON
    }

    /// Job time over recorded job time, less 1.
    #[must_use]
    pub fn job_time_change(&self) -> f64 {
        if self.recorded_job_time_s > 0.0 { self.job_time_s / self.recorded_job_time_s - 1.0 } else { 0.0 }
    }

    /// A phase by its name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// A phase of the job's successful attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// "map", "shuffle", "sort" or "reduce".
    pub name: String,
    /// Mean over the attempts; null if none has this phase.
    pub seconds: Option<f64>,
    /// The same in the recording.
    pub recorded_seconds: Option<f64>,
    /// From the start of the first attempt's phase to the end of the last one's.
    pub span_seconds: Option<f64>,
    /// The same in the recording.
    pub recorded_span_seconds: Option<f64>,
    /// Attempts that count.
    pub attempts: u32,
    /// What the mean consists of: the critical path to the end of each attempt's phase, from its start on.
    pub waits: Vec<PhaseWait>,
}

/// A part of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseWait {
    /// "network", "think", "hidden-work", "timer-wait", "timer-pause", "slot" or "outside".
    pub kind: String,
    /// Mean over the attempts.
    pub seconds: f64,
}

/// How far the transfer times of messages (from the first byte's departure to the last one's arrival) are from the
/// recorded ones: (simulated - recorded) / recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferError {
    /// Messages that count: those whose recorded transfer took time.
    pub messages: u64,
    /// Median of the signed error; null without messages.
    pub median: Option<f64>,
    /// 95th percentile of its absolute value.
    pub p95: Option<f64>,
    /// Median of the signed difference in seconds.
    pub median_s: Option<f64>,
    /// 95th percentile of its absolute value, in seconds.
    pub p95_s: Option<f64>,
    /// The same for some classes of messages.
    pub classes: Vec<TransferClass>,
    /// How the transfer times of the messages between hosts are distributed. Which message meets a full queue is
    /// chance; how many do is not.
    pub quantiles: Vec<TransferQuantile>,
}

/// A quantile of the transfer times of the messages between hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferQuantile {
    /// Share of the messages that took no longer.
    pub quantile: f64,
    /// Recorded, seconds.
    pub recorded_s: f64,
    /// Simulated, seconds.
    pub simulated_s: f64,
}

/// Errors of the transfer times of a class of messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferClass {
    /// "between hosts", "between hosts, 64 KiB and more", "within a host".
    pub class: String,
    /// Messages.
    pub messages: u64,
    /// Median of the signed error.
    pub median: Option<f64>,
    /// 95th percentile of its absolute value.
    pub p95: Option<f64>,
}

/// A share of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathShare {
    /// "network", "think", "hidden-work", "timer-wait", "timer-pause", "slot" or "outside".
    pub kind: String,
    /// More exactly: the kind of message, the role that thinks, the timer.
    pub what: String,
    /// How long.
    pub seconds: f64,
    /// Share of the job's time.
    pub share: f64,
}

/// `summary.json` of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiments, in the order in which they were given; each has its results in a folder of its name.
    pub experiments: Vec<Summary>,
    /// Experiments that came to no result, each with the reason.
    pub failed: BTreeMap<String, String>,
}

pub(super) fn network_share(path: &CriticalPath, job_time_ps: u64) -> f64 {
    share(path.total_of_ps(PathKind::Network), job_time_ps)
}

pub(super) fn path_shares(path: &CriticalPath, job_time_ps: u64) -> Vec<PathShare> {
    path.totals_ps()
        .into_iter()
        .map(|(kind, what, ps)| PathShare {
            kind: kind.as_str().to_owned(),
            what,
            seconds: seconds(ps),
            share: share(ps, job_time_ps),
        })
        .collect()
}

fn share(part_ps: u64, whole_ps: u64) -> f64 {
    if whole_ps == 0 { 0.0 } else { seconds(part_ps) / seconds(whole_ps) }
}
