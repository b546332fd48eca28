//! Tasks and their phases, simulated and recorded.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trace::ids::{EventId, TaskId};
use trace::rows::{EventKind, TaskKind, TaskRow};

use super::seconds::seconds;
use super::summary::{Phase, PhaseWait};
use causal::{JobGraph, JobTime, Outcome, PathKind, critical_path_to};

/// Times of an attempt, seconds since the job was submitted; null where it did not happen or is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// When it started, seconds since the job was submitted.
    pub start: Option<f64>,
    /// Reduces: all map outputs are there.
    pub shuffle_end: Option<f64>,
    /// Reduces: they are merged.
    pub sort_end: Option<f64>,
    /// When it ended, seconds since the job was submitted.
    pub finish: Option<f64>,
}

/// An attempt of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskTimes {
    /// "attempt_..."
    pub attempt: String,
    /// "map", "reduce" or "other".
    pub kind: String,
    /// Where it ran.
    pub host: String,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// In the replay.
    pub simulated: Times,
    /// In the recording.
    pub recorded: Times,
}

/// The attempts of the job, from the marks of its causal graph.
pub(super) fn of_tasks(graph: &JobGraph, outcome: &Outcome) -> Vec<TaskTimes> {
    let mut times: Vec<(Times, Times)> = vec![(Times::default(), Times::default()); graph.trace.tasks.len()];
    for event in graph.during().filter(|event| event.kind == EventKind::Mark) {
        let Some(task) = event.task else { continue };
        let (simulated, recorded) = &mut times[task.index()];
        let slots = match event.name.as_str() {
            "task.start" => (&mut simulated.start, &mut recorded.start),
            "task.shuffle_end" => (&mut simulated.shuffle_end, &mut recorded.shuffle_end),
            "task.sort_end" => (&mut simulated.sort_end, &mut recorded.sort_end),
            "task.finish" => (&mut simulated.finish, &mut recorded.finish),
            _ => continue,
        };
        *slots.0 = outcome.event(event.event).happened().map(JobTime::as_secs_f64);
        *slots.1 = Some(graph.job_time(event.recorded_ns).as_secs_f64());
    }
    let host = |task: &TaskRow| {
        task.host.map_or_else(|| "unknown host".to_owned(), |host| graph.trace.hosts[host.index()].name.clone())
    };
    graph
        .tasks()
        .map(|task| TaskTimes {
            attempt: task.attempt.clone(),
            kind: task.kind.as_str().to_owned(),
            host: host(task),
            succeeded: task.succeeded,
            simulated: times[task.task.index()].0,
            recorded: times[task.task.index()].1,
        })
        .collect()
}

/// A phase: the kind of task that has it, and the marks at its start and its end.
struct Bounds {
    name: &'static str,
    kind: TaskKind,
    start: fn(&Times) -> Option<f64>,
    end: fn(&Times) -> Option<f64>,
    end_mark: &'static str,
}

/// All phases.
const PHASES: [Bounds; 4] = [
    Bounds {
        name: "map",
        kind: TaskKind::Map,
        start: |times| times.start,
        end: |times| times.finish,
        end_mark: "task.finish",
    },
    Bounds {
        name: "shuffle",
        kind: TaskKind::Reduce,
        start: |times| times.start,
        end: |times| times.shuffle_end,
        end_mark: "task.shuffle_end",
    },
    Bounds {
        name: "sort",
        kind: TaskKind::Reduce,
        start: |times| times.shuffle_end,
        end: |times| times.sort_end,
        end_mark: "task.sort_end",
    },
    Bounds {
        name: "reduce",
        kind: TaskKind::Reduce,
        start: |times| times.sort_end,
        end: |times| times.finish,
        end_mark: "task.finish",
    },
];

impl Bounds {
    fn of(&self, times: &Times) -> Option<(f64, f64)> {
        (self.start)(times).zip((self.end)(times))
    }
}

/// A task with the begin and the end of a phase, simulated and recorded, seconds.
type Counted = (TaskId, (f64, f64), (f64, f64));

/// Means and spans over the successful attempts.
pub(super) fn means(graph: &JobGraph, outcome: &Outcome, tasks: &[TaskTimes]) -> Vec<Phase> {
    let rows: Vec<&TaskRow> = graph.tasks().collect();
    PHASES
        .iter()
        .map(|phase| {
            let counted: Vec<Counted> = tasks
                .iter()
                .zip(&rows)
                .filter(|(task, row)| task.succeeded && row.kind == phase.kind)
                .filter_map(|(task, row)| {
                    let (simulated, recorded) = phase.of(&task.simulated).zip(phase.of(&task.recorded))?;
                    Some((row.task, simulated, recorded))
                })
                .collect();
            let simulated: Vec<_> = counted.iter().map(|(_, simulated, _)| *simulated).collect();
            let recorded: Vec<_> = counted.iter().map(|(.., recorded)| *recorded).collect();
            Phase {
                name: phase.name.to_owned(),
                seconds: mean(&simulated),
                recorded_seconds: mean(&recorded),
                span_seconds: span(&simulated),
                recorded_span_seconds: span(&recorded),
                attempts: u32::try_from(counted.len()).unwrap_or(u32::MAX),
                waits: waits(graph, outcome, phase.end_mark, &counted),
            }
        })
        .collect()
}

/// Ends of phases may come so much before their beginnings, seconds: histories count in milliseconds of two hosts' clocks.
const SLACK_S: f64 = 0.1;

/// Of the successful attempts' phases that run backwards in the replay the worst: attempt, phase, and by how many seconds.
pub(crate) fn backwards(tasks: &[TaskTimes]) -> Option<(&str, &'static str, f64)> {
    let phases = tasks.iter().filter(|task| task.succeeded).flat_map(|task| {
        let own = PHASES.iter().filter(|phase| phase.kind.as_str() == task.kind);
        own.filter_map(|phase| {
            let (begin, end) = phase.of(&task.simulated)?;
            Some((task.attempt.as_str(), phase.name, begin - end))
        })
    });
    phases.filter(|(.., by_s)| *by_s > SLACK_S).max_by(|a, b| a.2.total_cmp(&b.2))
}

/// What the phases of some attempts consist of.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time that was picoseconds before, and a number of attempts"
)]
fn waits(graph: &JobGraph, outcome: &Outcome, end_mark: &str, counted: &[Counted]) -> Vec<PhaseWait> {
    let ends: HashMap<TaskId, EventId> = graph
        .during()
        .filter(|event| event.kind == EventKind::Mark && event.name == end_mark)
        .filter_map(|event| Some((event.task?, event.event)))
        .collect();
    let mut totals_s = [0.0; PathKind::ALL.len()];
    for (task, (start_s, _), _) in counted {
        let Some(end) = ends.get(task) else { continue };
        let path = critical_path_to(graph, outcome, *end, (start_s * 1e12).round() as u64);
        for (total_s, kind) in totals_s.iter_mut().zip(PathKind::ALL) {
            *total_s += seconds(path.total_of_ps(kind));
        }
    }
    let parts = PathKind::ALL.into_iter().zip(totals_s).filter(|(_, total_s)| *total_s > 0.0);
    parts
        .map(|(kind, total_s)| PhaseWait { kind: kind.as_str().to_owned(), seconds: total_s / counted.len() as f64 })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "a number of attempts")]
fn mean(bounds: &[(f64, f64)]) -> Option<f64> {
    let sum: f64 = bounds.iter().map(|(start, end)| end - start).sum();
    (!bounds.is_empty()).then(|| sum / bounds.len() as f64)
}

fn span(bounds: &[(f64, f64)]) -> Option<f64> {
    let start = bounds.iter().map(|(start, _)| *start).reduce(f64::min)?;
    let end = bounds.iter().map(|(_, end)| *end).reduce(f64::max)?;
    Some(end - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(sort_end: f64, finish: f64) -> TaskTimes {
        let simulated =
            Times { start: Some(1.0), shuffle_end: Some(2.0), sort_end: Some(sort_end), finish: Some(finish) };
        TaskTimes {
            attempt: format!("attempt_{finish}"),
            kind: "reduce".to_owned(),
            host: "w1".to_owned(),
            succeeded: true,
            simulated,
            recorded: simulated,
        }
    }

    #[test]
    fn a_phase_that_ends_before_it_begins_is_found_and_rounding_is_none() {
        let tasks = [reduce(12.0, 11.0), reduce(12.0, 3.0), reduce(12.0, 11.95)];
        assert_eq!(backwards(&tasks), Some(("attempt_3", "reduce", 9.0)));
        assert_eq!(backwards(&tasks[2..]), None);
        let failed = TaskTimes { succeeded: false, ..reduce(12.0, 3.0) };
        assert_eq!(backwards(&[failed]), None);
    }
}
