//! Attempts whose work did not count: the slower ones of speculative execution, and those that failed.

use std::collections::HashSet;

use super::phases::TaskTimes;
use super::summary::WastedWork;
use super::transfers::MessageTimes;
use causal::JobGraph;

/// Of a replay; `None` where all attempts that ran succeeded.
pub(super) fn of(graph: &JobGraph, tasks: &[TaskTimes], messages: &[MessageTimes]) -> Option<WastedWork> {
    let lost = || tasks.iter().filter(|task| !task.succeeded);
    let times: Vec<f64> = lost().filter_map(|task| Some(task.simulated.finish? - task.simulated.start?)).collect();
    if times.is_empty() {
        return None;
    }
    let names: HashSet<&str> = lost().map(|task| task.attempt.as_str()).collect();
    let of_lost = messages.iter().filter(|message| message.simulated.is_some()).filter(|message| {
        let attempt = graph.trace.messages[message.message.index()].attempt.as_deref();
        attempt.is_some_and(|attempt| names.contains(attempt))
    });
    Some(WastedWork {
        attempts: u32::try_from(times.len()).unwrap_or(u32::MAX),
        seconds: times.iter().sum(),
        bytes: of_lost.map(|message| message.bytes).sum(),
    })
}
