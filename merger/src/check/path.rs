//! What the recorded jobs' times consist of, and whether a replay could move them.

use std::sync::Arc;

use causal::{
    Doubt, JobGraph, Options, PathKind, RecordedBeats, Recording, TraceGraph, critical_path, doubts,
    thinking_of_coordinators,
};
use rayon::prelude::*;
use serde::Serialize;
use trace::rows::{JobRow, Trace};

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
    /// Why a replay of this job could not be trusted; none if it could.
    #[serde(skip)]
    pub(super) doubt: Option<String>,
}

/// Follows each job's end back to its submission, and tells of those that a replay could not move. Jobs that no replay could
/// begin with are left out.
pub(super) fn follow(trace: &Trace) -> Vec<PathDetail> {
    let Ok(all) = TraceGraph::new(trace).map(Arc::new) else { return Vec::new() };
    let beats = RecordedBeats::new(&trace.events);
    trace.jobs.par_iter().filter_map(|job| path_of(job, &all, &beats)).collect()
}

fn path_of(job: &JobRow, all: &Arc<TraceGraph<'_>>, beats: &RecordedBeats) -> Option<PathDetail> {
    if job.finish_ns <= job.submit_ns {
        return None;
    }
    let as_recorded = Options { handshakes: false, ..Options::default() };
    let graph = JobGraph::of(all, Some(&job.id), as_recorded).ok()?;
    let recording = Recording::new(&graph, beats);
    let (path, job_time_ps) = (critical_path(&graph, &recording), recording.job_time_ps());
    let seconds = |ps: u64| ps as f64 / 1e12;
    let job_s = seconds(job_time_ps);
    let share = |ps: u64| if job_s > 0.0 { seconds(ps) / job_s } else { 0.0 };
    let share_of = |kinds: &[PathKind]| share(kinds.iter().map(|kind| path.total_of_ps(*kind)).sum());
    let thinker = thinking_of_coordinators(&path).into_iter().max_by_key(|(_, ps)| *ps);
    let of = |ps: u64| format!("{:.1} of {job_s:.1} s of {}", seconds(ps), job.id);
    let doubt = doubts(&path, job_time_ps).into_iter().next().map(|doubt| match doubt {
        Doubt::Outside { ps } => {
            format!("{} pass before anything of which a cause is known: they stay as recorded on any network", of(ps))
        }
        Doubt::Thinking { role, ps, .. } => format!(
            "{} are the thinking of {role}, which computes nothing of the job's: they stay as recorded on any network",
            of(ps)
        ),
    });
    Some(PathDetail {
        job: job.id.clone(),
        seconds: job_s,
        network_share: share_of(&[PathKind::Network]),
        thinking_share: share_of(&[PathKind::Think, PathKind::Slot]),
        timer_share: share_of(&[PathKind::TimerWait, PathKind::TimerPause]),
        outside_share: share_of(&[PathKind::Outside]),
        thinker: thinker.map(|((role, _), _)| role.to_owned()).unwrap_or_default(),
        thinker_share: share(thinker.map_or(0, |(_, ps)| ps)),
        doubt,
    })
}
