//! What reduces compute between their sort and their end.

use causal::{PathKind, Piece, critical_steps_to};
use trace::ids::EventId;
use trace::rows::TaskRow;

use crate::recording::Recording;

/// What a reduce, and whom it waits for, computes between its sort and its end where the network takes no time: what the recorded
/// network hid is not hidden there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReduceComputing {
    pub(super) before_output_ns: u64,
    pub(super) output_ns: u64,
    pub(super) after_output_ns: u64,
}

impl Recording<'_> {
    /// What a reduce computes between its sort and its end; `None` if the trace does not tell when these were.
    pub(super) fn computing_of(&self, task: &TaskRow) -> Option<ReduceComputing> {
        let end = *self.ends.get(&task.task)?;
        let sorted = self.sort_ends.get(&task.task).copied();
        let instant = self.instant.as_ref().zip(sorted);
        let instant = instant.and_then(|(outcome, sorted)| Some((outcome, outcome.event(sorted).happened()?)));
        // Where the job cannot be replayed, what was on the recorded critical path: without what the network hid.
        let (outcome, sorted) = match instant {
            Some(instant) => instant,
            None => (&self.recorded, self.graph.job_time(task.sort_end_ns?)),
        };
        let until = |event: EventId| -> u64 {
            let steps = critical_steps_to(self.graph, outcome, event, sorted.ps());
            steps.iter().map(|piece| self.computing_ps(piece)).fold(0, u64::saturating_add) / 1_000
        };
        let output = task.process.and_then(|process| self.outputs_written.get(&process));
        let (first_ns, last_ns, end_ns) = match output {
            Some((first, last)) => (until(*first), until(*last), until(end)),
            None => (0, until(end), until(end)),
        };
        Some(ReduceComputing {
            before_output_ns: first_ns,
            output_ns: last_ns.saturating_sub(first_ns),
            after_output_ns: end_ns.saturating_sub(last_ns),
        })
    }

    /// What a piece of a path takes whoever computes, with a processor of its own. Daemons and masters compete with nobody.
    fn computing_ps(&self, piece: &Piece) -> u64 {
        let works = matches!(piece.kind, PathKind::Think | PathKind::HiddenWork);
        if !works || self.completion_retries.contains(&piece.event) {
            return 0;
        }
        let took_ps = self.graph.recorded_delay_ps(piece.event);
        let part =
            u128::from(piece.length_ps()) * u128::from(self.event_alone_ps(piece.event)) / u128::from(took_ps.max(1));
        if took_ps == 0 { piece.length_ps() } else { u64::try_from(part).unwrap_or(u64::MAX) }
    }
}
