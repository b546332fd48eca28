//! What the recorded jobs' times consist of, and whether a replay could move them.

use serde::Serialize;
use trace::role;
use trace::rows::Trace;

use super::Report;
use crate::causality::check::critical_path;

/// Share of a job's time that may pass without a known cause.
const MAX_OUTSIDE: f64 = 0.5;
/// Share that one process may think that computes nothing of the job's own.
const MAX_THOUGHT: f64 = 0.5;
/// Shorter waits than this are the daemons' own work, however large their share of a short job.
const MIN_DOUBTED_S: f64 = 5.0;

/// The critical path of a job as it was recorded. Shares are of the time from submission to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathDetail {
    /// "job_..."
    pub job: String,
    /// From submission to end.
    pub seconds: f64,
    /// Bytes on their way.
    pub network_share: f64,
    /// Thinking, computing, disks.
    pub thinking_share: f64,
    /// Pauses of timers, and waiting for their beats.
    pub timer_share: f64,
    /// Until something of which no cause is in the trace: it stays as recorded on any network.
    pub outside_share: f64,
    /// The daemon or master that thinks longest.
    pub thinker: String,
    /// Its share.
    pub thinker_share: f64,
}

/// Follows each job's end back to its submission, and tells of those that a replay could not move.
pub(super) fn follow(trace: &Trace, report: &mut Report) {
    for job in trace.jobs.iter().filter(|job| job.finish_ns > job.submit_ns) {
        let ends = trace.events.iter().enumerate().filter(|(_, event)| event.name == "job.finish");
        let nearest = ends.min_by_key(|(_, event)| event.recorded_ns.abs_diff(job.finish_ns));
        let Some((end, _)) = nearest else { continue };
        let (shares, path) = critical_path(&trace.events, &trace.dependencies, end, job.submit_ns);
        let first_ns = path.last().map_or(0, |first| trace.events[*first].recorded_ns);
        let whole = (trace.events[end].recorded_ns.saturating_sub(job.submit_ns)) as f64;
        let share = |ns: u64| if whole > 0.0 { ns as f64 / whole } else { 0.0 };
        let process = |id: trace::ids::ProcessId| trace.processes.get(id.index());
        let thinker = shares.thinkers.iter().filter_map(|(id, ns)| Some((process(*id)?, *ns)));
        let thinker = thinker.filter(|(process, _)| role::only_coordinates(&process.role));
        let thinker = thinker.max_by_key(|(process, ns)| (*ns, std::cmp::Reverse(process.process)));
        report.detail.critical_paths.push(PathDetail {
            job: job.id.clone(),
            seconds: whole / 1e9,
            network_share: share(shares.network_ns),
            thinking_share: share(shares.thinking_ns),
            timer_share: share(shares.timer_ns),
            outside_share: share(first_ns.saturating_sub(job.submit_ns)),
            thinker: thinker.map(|(process, _)| process.role.clone()).unwrap_or_default(),
            thinker_share: share(thinker.map_or(0, |(_, ns)| ns)),
        });
    }
}

impl PathDetail {
    /// Why a replay of this job could not be trusted; none if it could.
    pub(super) fn doubt(&self) -> Option<String> {
        let too_much = |share: f64, most: f64| share > most && share * self.seconds > MIN_DOUBTED_S;
        let of = |share: f64| format!("{:.1} of {:.1} s of {}", share * self.seconds, self.seconds, self.job);
        if too_much(self.outside_share, MAX_OUTSIDE) {
            return Some(format!(
                "{} pass before anything of which a cause is known: they stay as recorded on any network",
                of(self.outside_share)
            ));
        }
        too_much(self.thinker_share, MAX_THOUGHT).then(|| {
            format!(
                "{} are the thinking of {}, which computes nothing of the job's: they stay as recorded on any network",
                of(self.thinker_share),
                self.thinker
            )
        })
    }
}
