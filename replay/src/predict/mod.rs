//! Predicts a recorded job on other networks: several captures of it, replayed with several seeds, with what makes the answer unsure.

mod ablation;
mod answer;
mod assemble;
mod interval;
mod same_job;

use serde::{Deserialize, Serialize};

pub use ablation::Ablation;
pub use assemble::predict;
pub use interval::{ENOUGH_CAPTURES, Interval, NoiseFloor, Source, SourceKind};
pub use same_job::{JobsDiffer, check as check_same_jobs, job_of};

use crate::results::{Summary, TaskTimes};

/// With which probability another run lies within an interval.
pub const LEVEL: f64 = 0.8;
/// By up to this share each thinking differs between seeds, where the experiment does not say.
pub const JITTER: f64 = 0.001;

/// What is left of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its summary.
    pub summary: Summary,
    /// The attempts.
    pub tasks: Vec<TaskTimes>,
}

/// Replays of an experiment: by capture, in the order of the captures, and by seed.
pub type Replays = Vec<Vec<Replayed>>;

/// A job on several networks: `prediction.json`. Times are seconds, shares are fractions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The job's name as it was submitted.
    pub job_name: String,
    /// The captures of it.
    pub captures: Vec<Capture>,
    /// Seeds with which each was replayed.
    pub seeds: Vec<u64>,
    /// With which probability another run lies within an interval.
    pub level: f64,
    /// What runs differ by, where too few captures tell.
    pub noise_floor: NoiseFloor,
    /// The replay of each capture on the network on which it was recorded.
    pub self_replay: Option<SelfReplay>,
    /// The networks, in the order in which they were given.
    pub fabrics: Vec<FabricPrediction>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A capture of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// As it was given: a trace, or a capture that was merged.
    pub path: String,
    /// The job's id.
    pub job: String,
    /// Its name as it was submitted.
    pub job_name: String,
    /// How long it took.
    pub recorded_s: f64,
}

/// How well replays on the recorded network take the recorded time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfReplay {
    /// The experiment that models it.
    pub experiment: String,
    /// By capture: replayed over recorded time, less 1.
    pub errors: Vec<f64>,
}

/// A job on a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FabricPrediction {
    /// The experiment's name.
    pub name: String,
    /// Kind of its fabric.
    pub fabric: String,
    /// The answer in a sentence.
    pub answer: String,
    /// From submission to end. Its `recorded_s` is the null model: nothing changes.
    pub job: PredictedTime,
    /// Why the job's time is unsure.
    pub sources: Vec<Source>,
    /// Means over the attempts of each phase.
    pub phases: Vec<PredictedPhase>,
    /// Each task.
    pub tasks: Vec<PredictedTask>,
    /// What the job waits for: mean over the replays, the longest first.
    pub critical_path: Vec<Wait>,
    /// What would help most, in a sentence.
    pub most_help: String,
    /// Without some of what a replay does.
    pub ablations: Vec<AblationResult>,
    /// Each replay: number of the capture, seed, seconds.
    pub replays: Vec<ReplayTime>,
    /// Why a capture cannot tell what was asked of it.
    pub doubts: Vec<String>,
}

/// A time, predicted and recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedTime {
    /// Geometric mean over captures and seeds.
    pub predicted_s: f64,
    /// Lower end of the interval; null where too few captures tell.
    pub low_s: Option<f64>,
    /// Upper end.
    pub high_s: Option<f64>,
    /// Geometric mean of the captures.
    pub recorded_s: f64,
    /// Predicted over recorded, less 1.
    pub change: f64,
}

/// A phase, predicted and recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedPhase {
    /// "map", "shuffle", "sort" or "reduce".
    pub name: String,
    /// Its mean over the attempts.
    #[serde(flatten)]
    pub time: PredictedTime,
}

/// A task, predicted and recorded: means over captures and seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedTask {
    /// "m_000003": kind and number, as in its attempt's id.
    pub task: String,
    /// How long it runs.
    pub predicted_s: f64,
    /// The shortest of all replays.
    pub least_s: f64,
    /// The longest.
    pub most_s: f64,
    /// How long it ran.
    pub recorded_s: f64,
    /// When it ends, since the job's submission.
    pub predicted_finish_s: f64,
    /// When it ended.
    pub recorded_finish_s: f64,
}

/// What the job waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// "network", "think", "hidden-work", "timer-wait", "timer-pause", "slot" or "outside".
    pub kind: String,
    /// How long.
    pub seconds: f64,
    /// Share of the job's time.
    pub share: f64,
}

/// A prediction without something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationResult {
    /// Without what.
    pub without: Ablation,
    /// The job's time.
    pub predicted_s: f64,
    /// Over that with everything, less 1.
    pub change: f64,
}

/// One replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayTime {
    /// Number of the capture, from 0.
    pub capture: usize,
    /// Seed.
    pub seed: u64,
    /// The job's time.
    pub job_time_s: f64,
}
