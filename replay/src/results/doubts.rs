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
