//! A prediction from replays.

use std::collections::BTreeMap;

use super::interval::{geometric_mean, mean};
use super::{
    Ablation, AblationResult, Capture, ENOUGH_CAPTURES, FabricPrediction, Interval, LEVEL, NoiseFloor, PredictedPhase,
    PredictedTask, PredictedTime, ReplayTime, Replayed, Replays, SelfReplay, Wait, answer,
};
use crate::results::{Summary, Times};

impl SelfReplay {
    /// Of replays on a model of the recorded network; `None` without any.
    #[must_use]
    pub fn of(experiment: &str, replays: &Replays) -> Option<Self> {
        let errors: Vec<f64> = own_errors(replays, &job_s).into_iter().map(|error| libm::exp(error) - 1.0).collect();
        (!errors.is_empty()).then(|| Self { experiment: experiment.to_owned(), errors })
    }
}

/// A prediction from the replays on a network: those with everything, and those without something. `own` are replays on the
/// recorded network. `None` without replays.
#[must_use]
pub fn predict(
    replays: &Replays,
    own: Option<&Replays>,
    captures: &[Capture],
    floor: NoiseFloor,
    ablated: &[(Ablation, Replays)],
) -> Option<FabricPrediction> {
    let first = &replays.first()?.first()?.summary;
    let errors = own.map(|own| own_errors(own, &job_s)).unwrap_or_default();
    let interval = Interval::of(&times(replays, &job_s), &errors, floor, LEVEL)?;
    let recorded_s = geometric_mean(recorded(replays, &job_s))?;
    let predicted_s = interval.estimate;
    let of_ablation = |(without, replays): &(Ablation, Replays)| {
        let time_s = geometric_mean(times(replays, &job_s).into_iter().flatten())?;
        Some(AblationResult { without: *without, predicted_s: time_s, change: time_s / predicted_s - 1.0 })
    };
    let critical_path = waits(replays);
    let mut prediction = FabricPrediction {
        name: first.name.clone(),
        fabric: first.fabric.clone(),
        answer: String::new(),
        job: PredictedTime::of(&interval, recorded_s, true),
        sources: interval.sources,
        phases: first.phases.iter().filter_map(|phase| predicted_phase(&phase.name, replays, own)).collect(),
        tasks: tasks(replays),
        most_help: answer::most_help(&critical_path),
        critical_path,
        ablations: ablated.iter().filter_map(of_ablation).collect(),
        replays: replay_times(replays),
        doubts: doubts(replays, captures),
    };
    prediction.answer = answer::sentence(&prediction, captures.len());
    Some(prediction)
}

impl PredictedTime {
    fn of(interval: &Interval, recorded_s: f64, is_known: bool) -> Self {
        Self {
            predicted_s: interval.estimate,
            low_s: is_known.then_some(interval.low),
            high_s: is_known.then_some(interval.high),
            recorded_s,
            change: interval.estimate / recorded_s - 1.0,
        }
    }
}

/// A time of a replay and the same recorded, both above 0.
type TimeOf<'f> = &'f dyn Fn(&Summary) -> Option<(f64, f64)>;

fn job_s(summary: &Summary) -> Option<(f64, f64)> {
    above_nothing((summary.job_time_s, summary.recorded_job_time_s))
}

fn above_nothing(times: (f64, f64)) -> Option<(f64, f64)> {
    Some(times).filter(|(replayed, recorded)| *replayed > 0.0 && *recorded > 0.0)
}

/// Replayed times by capture and seed; captures without any are left out.
fn times(replays: &Replays, of: TimeOf) -> Vec<Vec<f64>> {
    let of_capture = |replays: &Vec<Replayed>| -> Vec<f64> {
        replays.iter().filter_map(|replay| of(&replay.summary)).map(|(replayed, _)| replayed).collect()
    };
    replays.iter().map(of_capture).filter(|times| !times.is_empty()).collect()
}

/// The recorded time of each capture.
fn recorded(replays: &Replays, of: TimeOf) -> Vec<f64> {
    replays.iter().filter_map(|replays| Some(of(&replays.first()?.summary)?.1)).collect()
}

/// Logarithms of replayed over recorded time, by capture.
fn own_errors(own: &Replays, of: TimeOf) -> Vec<f64> {
    let of_capture = |replays: &Vec<Replayed>| {
        let ratios = replays.iter().filter_map(|replay| of(&replay.summary)).map(|(replayed, real)| replayed / real);
        geometric_mean(ratios).map(libm::log)
    };
    own.iter().filter_map(of_capture).collect()
}

/// A phase; its interval is known where enough captures show what phases of runs differ by.
fn predicted_phase(name: &str, replays: &Replays, own: Option<&Replays>) -> Option<PredictedPhase> {
    let phase_s = |summary: &Summary| {
        let phase = summary.phase(name)?;
        above_nothing(phase.seconds.zip(phase.recorded_seconds)?)
    };
    let of: TimeOf = &phase_s;
    let errors = own.map(|own| own_errors(own, of)).unwrap_or_default();
    let times = times(replays, of);
    let interval = Interval::of(&times, &errors, NoiseFloor::default(), LEVEL)?;
    let recorded_s = geometric_mean(recorded(replays, of))?;
    let time = PredictedTime::of(&interval, recorded_s, times.len() >= ENOUGH_CAPTURES);
    Some(PredictedPhase { name: name.to_owned(), time })
}

/// Kind and number of a task: "m_000003" of "attempt_1700000000000_0002_m_000003_0".
fn task_of(attempt: &str) -> Option<&str> {
    let numbers = attempt.strip_prefix("attempt_")?;
    let begin = numbers.match_indices('_').nth(1)?.0 + 1;
    numbers.get(begin..numbers.rfind('_')?)
}

/// When a task began and ended.
fn extent(times: &Times) -> Option<(f64, f64)> {
    times.start.zip(times.finish)
}

fn tasks(replays: &Replays) -> Vec<PredictedTask> {
    type Extent = ((f64, f64), (f64, f64));
    type Extents = Vec<Extent>;
    let mut by_task: BTreeMap<&str, Extents> = BTreeMap::new();
    for task in replays.iter().flatten().flat_map(|replay| &replay.tasks).filter(|task| task.succeeded) {
        if let (Some(name), Some(both)) = (task_of(&task.attempt), extent(&task.simulated).zip(extent(&task.recorded)))
        {
            by_task.entry(name).or_default().push(both);
        }
    }
    let predicted = |(task, extents): (&str, Extents)| {
        let means = |of: fn(&Extent) -> f64| mean(&extents.iter().map(of).collect::<Vec<_>>());
        let lengths = || extents.iter().map(|((start, finish), _)| finish - start);
        Some(PredictedTask {
            task: task.to_owned(),
            predicted_s: means(|((start, finish), _)| finish - start)?,
            least_s: lengths().fold(f64::INFINITY, f64::min),
            most_s: lengths().fold(f64::NEG_INFINITY, f64::max),
            recorded_s: means(|(_, (start, finish))| finish - start)?,
            predicted_finish_s: means(|((_, finish), _)| *finish)?,
            recorded_finish_s: means(|(_, (_, finish))| *finish)?,
        })
    };
    by_task.into_iter().filter_map(predicted).collect()
}

/// What the job waits for, mean over the replays, the longest first.
fn waits(replays: &Replays) -> Vec<Wait> {
    let count = replays.iter().flatten().count() as f64;
    let mut by_kind: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for share in replays.iter().flatten().flat_map(|replay| &replay.summary.critical_path) {
        let sums = by_kind.entry(&share.kind).or_default();
        sums.0 += share.seconds / count;
        sums.1 += share.share / count;
    }
    let wait = |(kind, (seconds, share)): (&str, (f64, f64))| Wait { kind: kind.to_owned(), seconds, share };
    let mut waits: Vec<Wait> = by_kind.into_iter().map(wait).collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    waits
}

fn replay_times(replays: &Replays) -> Vec<ReplayTime> {
    let of_capture = |(capture, replays): (usize, &Vec<Replayed>)| {
        let time = |replay: &Replayed| ReplayTime {
            capture,
            seed: replay.summary.seed,
            job_time_s: replay.summary.job_time_s,
        };
        replays.iter().map(time).collect::<Vec<_>>()
    };
    replays.iter().enumerate().flat_map(of_capture).collect()
}

/// Doubts of each capture, from the first replay that has some.
fn doubts(replays: &Replays, captures: &[Capture]) -> Vec<String> {
    let of_capture = |(replays, capture): (&Vec<Replayed>, &Capture)| {
        let doubted = replays.iter().find(|replay| !replay.summary.doubts.is_empty());
        let doubts = doubted.map(|replay| replay.summary.doubts.as_slice()).unwrap_or_default();
        doubts.iter().map(|doubt| format!("{}: {doubt}", capture.path)).collect::<Vec<_>>()
    };
    replays.iter().zip(captures).flat_map(of_capture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_by_kind_and_number_in_every_run() {
        assert_eq!(task_of("attempt_1700000000000_0002_m_000003_0"), Some("m_000003"));
        assert_eq!(task_of("attempt_1700000000000_0002_r_000000_1"), Some("r_000000"));
        assert_eq!(task_of("attempt_1"), None);
        assert_eq!(task_of("attempt_1_2"), None);
        assert_eq!(task_of("attempt_1_2_"), None);
    }
}
