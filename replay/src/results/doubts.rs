//! Whether the trace can tell what was asked of it, in words.

use causal::{Causality, CriticalPath, Doubt, doubts};

use crate::experiment::Workload;

use super::seconds::seconds;

/// What most of the job's time waits for without the trace saying why; such parts stay as recorded on any network.
/// Nothing where it was asked for that all stays as recorded, or where nothing was: what a generated or grown job waits for is simulated.
pub(super) fn of(path: &CriticalPath, job_time_ps: u64, workload: &Workload) -> Vec<String> {
    let is_made = workload.generate.is_some() || workload.grow.is_some();
    if workload.causality == Causality::Recorded || is_made {
        return Vec::new();
    }
    let job_s = seconds(job_time_ps);
    let tell = |doubt: Doubt| match doubt {
        Doubt::Outside { ps } => format!(
            "{:.1} of {job_s:.1} s of the critical path have no cause in the trace (\"outside\") and stay as \
             recorded on any network: it cannot tell how long the job takes on another one. Causes are missing where the \
             Java agent was not in all JVMs, where owners of connections are not known, and in encrypted calls",
            seconds(ps)
        ),
        Doubt::Thinking { role, host, ps } => format!(
            "{:.1} of {job_s:.1} s of the critical path are the thinking of {role} on {host}, which computes \
             nothing of the job's: what it waited for is not in the trace, and the time stays as recorded on any \
             network; record with the Java agent in all JVMs",
            seconds(ps)
        ),
    };
    doubts(path, job_time_ps).into_iter().map(tell).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use causal::{PathKind, Piece};
    use trace::ids::EventId;

    use super::*;

    #[test]
    fn a_recorded_job_is_doubted_and_one_from_parameters_is_not() {
        let job_time_ps = 40_000_000_000_000;
        let (what, place) = ("ResourceManager".to_owned(), "m1".to_owned());
        let waits =
            Piece { kind: PathKind::Think, what, place, from_ps: 0, to_ps: job_time_ps, steps: 1, event: EventId(0) };
        let path = CriticalPath { pieces: vec![waits] };
        let recorded = Workload::default();
        assert_eq!(of(&path, job_time_ps, &recorded).len(), 1);
        let at_recorded_times = Workload { causality: Causality::Recorded, ..recorded.clone() };
        let generated = Workload { generate: Some(PathBuf::from("job.toml")), ..recorded };
        for workload in [at_recorded_times, generated] {
            assert_eq!(of(&path, job_time_ps, &workload), Vec::<String>::new());
        }
    }
}
