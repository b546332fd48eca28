//! `detail.json`: what the report is drawn from.

use serde::{Deserialize, Serialize};

use super::ideal::IdealTimes;
use super::phases::{TaskTimes, Times};
use super::seconds::seconds;
use super::summary::{Baseline, Summary, TransferError};
use super::transfers::{self, KindTransfers, MessageTimes};
use crate::experiment::Experiment;
use causal::{CriticalPath, JobGraph};
use netsim::network::{CircuitFigures, LinkFigures, NetworkFigures};

/// A report shows so many messages as points at most.
const MAX_POINTS: usize = 900;

/// What the report of a replay is drawn from. Times are seconds since the job was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// The summary.
    pub summary: Summary,
    /// The experiment with every key, as TOML.
    pub effective: String,
    /// Hosts of the trace, in its order.
    pub hosts: Vec<String>,
    /// Attempts.
    pub tasks: Vec<TaskTimes>,
    /// Width of the intervals of [`LinkDetail::bytes_by_interval`].
    pub interval_s: f64,
    /// Links.
    pub links: Vec<LinkDetail>,
    /// Optical circuits in the order of their grants, the first 65,536 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circuits: Vec<CircuitDetail>,
    /// The critical path in the order of time.
    pub path: Vec<PieceDetail>,
    /// Transfer times by kind of message.
    pub kinds: Vec<KindTransfers>,
    /// Transfer times of some messages between hosts, evenly chosen from all.
    pub points: Vec<TransferPoint>,
}

impl Detail {
    /// Sets times of the same job on an infinitely fast network in the place of those of a recording, which there is not.
    pub(crate) fn against_ideal(&mut self, ideal: &IdealTimes) {
        let summary = &mut self.summary;
        summary.baseline = Baseline::Ideal;
        summary.recorded_job_time_s = ideal.job_time_s;
        for phase in &mut summary.phases {
            let of_ideal = ideal.phases.iter().find(|ideal| ideal.name == phase.name);
            phase.recorded_seconds = of_ideal.and_then(|phase| phase.seconds);
            phase.recorded_span_seconds = of_ideal.and_then(|phase| phase.span_seconds);
        }
        summary.transfer_error = TransferError::default();
        self.tasks.iter_mut().for_each(|task| task.recorded = Times::default());
        self.kinds.clear();
        self.points.clear();
    }
}

/// A link over the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkDetail {
    /// Name.
    pub name: String,
    /// Rate, bits per second; 0 = it has none.
    pub rate_bps: u64,
    /// Bytes that crossed it, headers included.
    pub bytes: u64,
    /// Packets that crossed it.
    pub packets: u64,
    /// Packets lost at its queue.
    pub drops: u64,
    /// Longest queue in front of it.
    pub queue_max_bytes: u64,
    /// Mean utilisation over the job's time; null where it has no rate.
    pub utilisation: Option<f64>,
    /// Bytes that crossed it in each interval.
    pub bytes_by_interval: Vec<u64>,
    /// Packets lost at its queue in each interval, up to the last one with a loss; empty where the fabric does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops_by_interval: Vec<u64>,
    /// Longest queue in front of it in each interval; empty where the fabric does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue_by_interval: Vec<u64>,
}

/// An optical circuit. Times are seconds since the job was submitted, or since the begin of the traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitDetail {
    /// Rack of its input port.
    pub from: String,
    /// That port, counted from 0 at each rack.
    pub input: u32,
    /// Rack of its output port.
    pub to: String,
    /// That port.
    pub output: u32,
    /// The wavelength of its input port, counted from 0 on each fibre.
    #[serde(default)]
    pub wavelength: u32,
    /// When its rack first asked for it.
    #[serde(default)]
    pub asked_s: f64,
    /// When the switch granted it.
    pub granted_s: f64,
    /// When it could be used; null: not before the end of the run.
    pub up_s: Option<f64>,
    /// When the last packet that it was given has left its rack; null: it was given none.
    #[serde(default)]
    pub last_used_s: Option<f64>,
    /// When it was released; null: not before the end of the run.
    pub released_s: Option<f64>,
    /// Whether it was given up for another request.
    pub evicted: bool,
    /// Whether its end was known when it began, as those of a schedule are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// Packets that crossed it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl From<&CircuitFigures> for CircuitDetail {
    fn from(circuit: &CircuitFigures) -> Self {
        Self {
            from: circuit.from.clone(),
            input: circuit.input,
            to: circuit.to.clone(),
            output: circuit.output,
            wavelength: circuit.wavelength,
            asked_s: seconds(circuit.asked.0),
            granted_s: seconds(circuit.granted.0),
            up_s: circuit.up.map(|at| seconds(at.0)),
            last_used_s: circuit.last_used.map(|at| seconds(at.0)),
            released_s: circuit.released.map(|at| seconds(at.0)),
            evicted: circuit.evicted,
            scheduled: circuit.scheduled,
            packets: circuit.packets,
            bytes: circuit.bytes,
        }
    }
}

impl CircuitDetail {
    /// Why it ended: "idle" (released after it had been idle), "evicted" (given up for another request) or "scheduled" (its time was over);
    /// `None` if it did not.
    #[must_use]
    pub fn end(&self) -> Option<&'static str> {
        ended(self.released_s.is_some(), self.evicted, self.scheduled)
    }
}

/// Why a circuit ended, as [`CircuitDetail::end`] says.
pub(super) fn ended(released: bool, evicted: bool, scheduled: bool) -> Option<&'static str> {
    released.then_some(match (evicted, scheduled) {
        (true, _) => "evicted",
        (_, true) => "scheduled",
        _ => "idle",
    })
}

/// A piece of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PieceDetail {
    /// "network", "think", "hidden-work", "timer-wait", "timer-pause", "slot" or "outside".
    pub kind: String,
    /// More exactly.
    pub what: String,
    /// The hosts between which bytes go, or the host that thinks.
    pub place: String,
    /// Start, seconds since the job was submitted.
    pub from_s: f64,
    /// End, seconds since the job was submitted.
    pub to_s: f64,
    /// Steps of the causal graph that it covers.
    pub steps: u32,
}

/// A message's transfer times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPoint {
    /// Kind of message.
    pub kind: String,
    /// Payload bytes.
    pub bytes: u64,
    /// Recorded, seconds.
    pub recorded_s: f64,
    /// Simulated, seconds.
    pub simulated_s: f64,
}

impl Detail {
    pub(super) fn new(
        summary: Summary,
        experiment: &Experiment,
        graph: &JobGraph,
        tasks: Vec<TaskTimes>,
        messages: &[MessageTimes],
        path: &CriticalPath,
        figures: &NetworkFigures,
    ) -> Self {
        let job_time_s = summary.job_time_s;
        Self {
            effective: experiment.to_toml().unwrap_or_else(|error| format!("# {error}")),
            hosts: graph.trace.hosts.iter().map(|host| host.name.clone()).collect(),
            tasks,
            interval_s: seconds(figures.interval_ps),
            links: figures.links.iter().map(|link| LinkDetail::new(link, job_time_s)).collect(),
            circuits: figures.circuits.iter().map(CircuitDetail::from).collect(),
            path: path
                .pieces
                .iter()
                .map(|piece| PieceDetail {
                    kind: piece.kind.as_str().to_owned(),
                    what: piece.what.clone(),
                    place: piece.place.clone(),
                    from_s: seconds(piece.from_ps),
                    to_s: seconds(piece.to_ps),
                    steps: piece.steps,
                })
                .collect(),
            kinds: transfers::by_kind(messages),
            points: points(messages),
            summary,
        }
    }
}

impl LinkDetail {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn new(link: &LinkFigures, job_time_s: f64) -> Self {
        let capacity = link.rate_bps as f64 * job_time_s;
        Self {
            name: link.name.to_string(),
            rate_bps: link.rate_bps,
            bytes: link.bytes,
            packets: link.packets,
            drops: link.drops,
            queue_max_bytes: link.queue_max_bytes,
            utilisation: (capacity > 0.0).then(|| link.bytes as f64 * 8.0 / capacity),
            bytes_by_interval: link.bytes_by_interval().to_vec(),
            drops_by_interval: link.drops_by_interval().to_vec(),
            queue_by_interval: link.queue_by_interval().to_vec(),
        }
    }
}

/// Messages between hosts, every n-th so that there are not too many.
fn points(messages: &[MessageTimes]) -> Vec<TransferPoint> {
    let between: Vec<_> = messages
        .iter()
        .filter(|message| message.from != message.to)
        .filter_map(|message| {
            let simulated_s = message.simulated.map(|(sent, delivered)| seconds(delivered.since_ps(sent)))?;
            message.error().map(|_| TransferPoint {
                kind: message.kind.to_owned(),
                bytes: message.bytes,
                recorded_s: message.recorded_s(),
                simulated_s,
            })
        })
        .collect();
    let step = between.len().div_ceil(MAX_POINTS).max(1);
    between.into_iter().step_by(step).collect()
}
